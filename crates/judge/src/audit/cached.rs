//! Whether bytes that were read came from memory: the page cache, or that of a file system below.

use super::check::AuditCheck;
use super::commanded;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// Above this share of bytes read from memory a figure is not the storage's: at a tenth, reads that
/// cost nothing already make it look 11 % faster than it is, more than most margins.
const MEMORY_SHARE: f64 = 0.10;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "page cache",
    question: "Did the bytes read come from storage, or from memory?",
    limits: false,
    priority: 2,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let read = reading.read_bytes();
    // Bytes that no device holds look like hits in memory: other checks name them.
    if reading.not_as_stored() > MEMORY_SHARE {
        return None;
    }
    if reading.whose.are_foreign() && read == 0.0 {
        return Some(commanded::judge(reading, MEMORY_SHARE));
    }
    let counted = &reading.trial.counted;
    // Logs of older versions count what this program read of `/proc` meanwhile: of few operations that
    // was the larger part. No more can have come from memory than was read and not fetched.
    // The counters do not tell workloads apart that were measured at once: what came from memory is their share.
    let beside = reading.trial.beside.as_ref();
    let beside = beside.map_or(0.0, |beside| beside.read_bytes as f64);
    let all = reading.read_or_copied_bytes() + beside;
    let upper: f64 = reading.upper().map(|device| device.read_bytes as f64).sum();
    let unfetched = (all - fetched(reading, upper)).max(0.0);
    let hit = (counted.cache_hit_bytes? as f64).min(unfetched);
    let hit = hit * share(read, read + beside)?;
    let top = share(hit.min(read), read)?;
    let piled = piled(reading);
    let below = piled.map_or(0.0, |piled| below(reading, upper, piled));
    // What the page cache did not have may still have come from memory further below.
    let memory = top + (1.0 - top) * below;
    let mut evidence = vec![
        EvidenceFigure::new("bytes read that came from memory", memory, "share")
            .against(MEMORY_SHARE),
        EvidenceFigure::new("read by the workload", read, "B"),
        EvidenceFigure::new("of that from the page cache", hit.min(read), "B"),
        EvidenceFigure::new("read by devices", upper, "B"),
    ];
    evidence.extend(piled.map(|it| EvidenceFigure::new("read by the disks below them", it, "B")));
    if let Some(prepared) = reading.trial.settled.prepared_bytes {
        evidence.push(EvidenceFigure::new(
            "working set (data prepared)",
            prepared as f64,
            "B",
        ));
    }
    if let Some(installed) = reading.memory_bytes {
        evidence.push(EvidenceFigure::new("memory of the machine", installed, "B"));
    }
    let grade = match (
        memory > MEMORY_SHARE,
        reading.trial.settled.caches == "none",
    ) {
        (false, _) => Grade::Ok,
        // The user asked for warm caches.
        (true, true) => Grade::Note,
        (true, false) => Grade::NotAsAsked,
    };
    let shown = unit::percent(memory);
    let sentence = match grade {
        Grade::Ok => format!(
            "{} of {} read came from storage",
            unit::percent(1.0 - memory),
            unit::si_bytes(read)
        ),
        _ if top > MEMORY_SHARE => {
            format!("{shown} of the bytes read came from the page cache, not from storage")
        }
        _ => format!(
            "{shown} of the bytes read came from the cache of a file system below, not from a disk"
        ),
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

/// Bytes that were fetched from storage for this trial. What a program of FUSE fetched is counted as its own: there the
/// devices tell what did not come from memory.
fn fetched(reading: &TrialReading<'_>, upper: f64) -> f64 {
    let fetched = reading.trial.counted.fetched_bytes as f64;
    match reading.trial.settled.served_by_program {
        true => upper.max(fetched),
        false => fetched,
    }
}

/// Bytes that the disks below the upper devices read; `None` if there are none.
fn piled(reading: &TrialReading<'_>) -> Option<f64> {
    let piled = reading.lower().map(|device| device.read_bytes as f64);
    reading.lower().next().map(|_| piled.sum())
}

/// Share of what the upper devices got without a disk below having read it: it came from memory too.
fn below(reading: &TrialReading<'_>, upper: f64, piled: f64) -> f64 {
    // DRBD counts each of its reads twice; what the kernel fetched for this program is an upper bound.
    let fetched = reading.trial.counted.fetched_bytes as f64;
    let reached = if fetched > 0.0 {
        upper.min(fetched)
    } else {
        upper
    };
    share((reached - piled).max(0.0), reached).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, operation, trial};
    use super::*;
    use stackrace_base::event::WorkedBeside;

    #[test]
    fn a_tenth_may_come_from_memory() {
        let mut trial = trial();
        assert_eq!(grade(&CHECK, &trial), None, "nothing was read");
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        assert_eq!(grade(&CHECK, &trial), None, "nothing counted them");
        for (hit, wanted) in [(100_000, Grade::Ok), (100_001, Grade::NotAsAsked)] {
            trial.counted.cache_hit_bytes = Some(hit);
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{hit}");
        }
        // A study that asks for warm caches gets what it asks for.
        trial.settled.caches = "none".to_owned();
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
    }

    /// mergerfs reads for the trial: the kernel counts it as the reads of mergerfs.
    #[test]
    fn what_a_program_of_fuse_read_from_the_device_did_not_come_from_memory() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        trial.counted.cache_hit_bytes = Some(1_000_000);
        trial.counted.fetched_bytes = 0;
        for device in &mut trial.counted.devices {
            device.read_bytes = 950_000;
        }
        assert_eq!(grade(&CHECK, &trial), Some(Grade::NotAsAsked));
        trial.settled.served_by_program = true;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        for device in &mut trial.counted.devices {
            device.read_bytes = 100_000;
        }
        assert_eq!(grade(&CHECK, &trial), Some(Grade::NotAsAsked));
    }

    /// The kernel counts what a program fetched as one: a backup that came from the disk hides nothing.
    #[test]
    fn reads_from_memory_are_found_beside_a_workload_that_reads_from_the_device() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        trial.counted.fetched_bytes = 1_000_000;
        trial.counted.cache_hit_bytes = Some(1_000_000);
        let read_bytes = 1_000_000;
        trial.beside = Some(WorkedBeside {
            workloads: vec![1],
            read_bytes,
        });
        let finding = found(&CHECK, &trial).unwrap();
        assert!(
            finding
                .sentence
                .starts_with("50 % of the bytes read came from the page cache")
        );
        trial.counted.fetched_bytes = 2_000_000;
        trial.counted.cache_hit_bytes = Some(0);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
    }

    /// Five reads of 4 KiB that the device delivered, while this program read its own counters.
    #[test]
    fn reads_of_this_program_are_no_hits_of_the_workload() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 5, 4096)];
        trial.counted.cache_hit_bytes = Some(15_360);
        trial.counted.fetched_bytes = 5 * 4096;
        trial
            .counted
            .devices
            .iter_mut()
            .for_each(|device| device.read_bytes = 5 * 4096);
        let finding = found(&CHECK, &trial).unwrap();
        assert_eq!(finding.grade, Grade::Ok, "{}", finding.sentence);
        // Only one of them was fetched: the others came from memory.
        trial.counted.fetched_bytes = 4096;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::NotAsAsked));
    }

    /// The loop device read all of it, the disk under its file only a fifth.
    #[test]
    fn a_cache_below_the_device_is_found() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        trial.counted.cache_hit_bytes = Some(0);
        trial.counted.devices[0].read_bytes = 1_000_000;
        trial.counted.devices[1].read_bytes = 200_000;
        let finding = found(&CHECK, &trial).unwrap();
        assert_eq!(finding.grade, Grade::NotAsAsked);
        assert!(
            finding
                .sentence
                .starts_with("80 % of the bytes read came from the cache of")
        );
        trial.counted.devices[1].read_bytes = 900_000;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
    }

    /// The disk under DRBD read all of it, and DRBD counted it twice.
    #[test]
    fn a_device_that_counts_its_reads_twice_is_no_sign_of_a_cache() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        trial.counted.cache_hit_bytes = Some(0);
        trial.counted.fetched_bytes = 1_000_000;
        trial.counted.devices[0].read_bytes = 2_000_000;
        trial.counted.devices[1].read_bytes = 1_000_000;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
    }
}
