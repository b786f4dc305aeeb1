//! Whether other processes used the machine: its processors, or the devices under the stack.
//!
//! A file system writes more than it is given (journals, metadata, whole blocks) and the kernel
//! works for a trial in threads of its own, so only what goes far beyond that is counted as theirs.
//!
//! Each flush ends a transaction of the file system, whatever the size of what is synced. Below a loop device there is
//! a second file system, which syncs the device's file at each of its flushes. Measured with 300 fsyncs of 4 KiB each,
//! overwritten, appended or in a new file, beyond the data: on a device at most 16 KiB a flush by ext4, 3 by XFS, 54
//! by Btrfs; below a loop device for each of its flushes at most 20, 12 and 152.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, is_loop, is_stacked, share};
use stackrace_base::event::DeviceCounted;
use stackrace_base::unit;

/// A device may read so much more than the program fetched: metadata, and files put in order.
const READ_FACTOR: f64 = 1.5;

/// A device may write so many times what the program sent: a journal that holds data writes it
/// twice, and small files are mostly metadata.
const WRITE_FACTOR: f64 = 3.0;

/// A file system may write so much of its own for each flush of the device below it.
const FLUSH_BYTES: f64 = 65_536.0;

/// The file system below a loop device may write so much of its own for each flush of that device.
const LOOP_FLUSH_BYTES: f64 = 163_840.0;

/// A sync makes a file system flush so often: after the data, and after the transaction.
const SYNC_FLUSHES: f64 = 2.0;

/// Fewer bytes than this beyond that are not judged: every file system stirs now and then.
const FOREIGN_BYTES_MIN: f64 = 4_194_304.0;

/// Above this share of a device's bytes that this program cannot have caused, others used it too.
const FOREIGN_SHARE: f64 = 0.10;

/// Above this share of the processors' time in use by others, while tasks waited for a processor
/// for as much of the time, the machine was not the trial's own.
pub(super) const PROCESSORS_SHARE: f64 = 0.10;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "neighbours",
    question: "Did other processes use the machine or its devices?",
    limits: false,
    priority: 15,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let counted = &reading.trial.counted;
    let cpus = f64::from(counted.cpus.max(1));
    let own = counted.cpu_user_ns as f64 + counted.cpu_system_ns as f64;
    // Clocks of processors tick in hundredths of a second: of an idle machine the difference may be
    // negative.
    let others = (counted.cpu_machine_busy_ns as f64 - own).max(0.0) / (window * cpus);
    // For the same reason it may be a little more than all.
    let others = others.min(1.0);
    let waited = counted.pressure_cpu_ns;
    let waited = waited.map(|ns| (ns as f64 / window).min(1.0));
    let foreign = foreign(reading);
    let (device, strange) = foreign.clone().unwrap_or_default();
    let mut evidence = Vec::new();
    if foreign.is_some() {
        let name = format!("I/O of {device} caused by others");
        evidence.push(EvidenceFigure::new(name, strange, "share").against(FOREIGN_SHARE));
    }
    evidence.push(
        EvidenceFigure::new("CPU time used by others", others, "share").against(PROCESSORS_SHARE),
    );
    evidence.extend(waited.map(|part| {
        EvidenceFigure::new("a task waited for a processor", part, "share")
            .against(PROCESSORS_SHARE)
    }));
    // Others that use idle processors disturb little; only where a task waited they took something
    // away.
    let crowded = others > PROCESSORS_SHARE && waited.is_some_and(|part| part > PROCESSORS_SHARE);
    let mut parts = Vec::new();
    if strange > FOREIGN_SHARE {
        let part = unit::percent(strange);
        parts.push(format!("other processes caused {part} of {device}'s I/O"));
    }
    if crowded {
        let part = unit::percent(others);
        parts.push(format!(
            "other processes and the kernel used {part} of CPU time"
        ));
    }
    let (grade, sentence) = match parts.is_empty() {
        false => (Grade::Note, format!("disturbed: {}", parts.join("; "))),
        true => (Grade::Ok, "no other process interfered".to_owned()),
    };
    Some(CheckFinding {
        // Trials are ordered by the graver of the two.
        strength: strange.max(others),
        ..CheckFinding::new(grade, sentence, evidence)
    })
}

/// The device most used by others, with the share of its bytes that is beyond what this program can
/// have caused; `None` if there is no device.
fn foreign(reading: &TrialReading<'_>) -> Option<(String, f64)> {
    // The I/O of a program that serves the file system is the trial's, and looks like that of others.
    if reading.trial.settled.served_by_program {
        return None;
    }
    let devices = &reading.trial.counted.devices;
    let shares = devices.iter().enumerate().map(|(at, device)| {
        let own = Own::at(reading, device, &devices[..at]);
        let (read, written) = (device.read_bytes as f64, device.written_bytes as f64);
        let strange_reads = read - READ_FACTOR * own.read;
        let strange_writes = written - WRITE_FACTOR * own.written - own.flushed;
        let strange = strange_reads.max(0.0) + strange_writes.max(0.0);
        let part = match strange > FOREIGN_BYTES_MIN {
            true => share(strange, read + written).unwrap_or(0.0),
            false => 0.0,
        };
        (device.device.clone(), part)
    });
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// What this program caused on a device, bytes.
struct Own {
    read: f64,
    written: f64,
    /// What file systems wrote because something was flushed.
    flushed: f64,
}

impl Own {
    /// `above`: devices before it in the list, of which those that are made of others may lie on it. What they moved
    /// is held against the program at themselves.
    fn at(reading: &TrialReading<'_>, device: &DeviceCounted, above: &[DeviceCounted]) -> Self {
        let counted = &reading.trial.counted;
        let above = || above.iter().filter(|device| is_stacked(device));
        // The files of several loop devices may lie on one disk. Members of an array, and what maps a
        // disk, write each what the whole does: they are held against the largest.
        let moved = |bytes: fn(&DeviceCounted) -> u64| {
            let loops = above()
                .filter(|one| is_loop(one))
                .map(|device| bytes(device) as f64);
            let others = above().map(|device| bytes(device) as f64);
            others.fold(loops.sum::<f64>(), f64::max)
        };
        let loops = above()
            .filter(|one| is_loop(one))
            .filter_map(|one| one.flushes);
        let own_flushes = match above().next() {
            None => flushes(reading, device) * FLUSH_BYTES,
            Some(_) => loops.map(|flushes| flushes as f64).sum::<f64>() * LOOP_FLUSH_BYTES,
        };
        Self {
            read: moved(|device| device.read_bytes).max(counted.fetched_bytes as f64),
            written: moved(|device| device.written_bytes).max(counted.sent_bytes as f64),
            flushed: own_flushes,
        }
    }
}

/// Flushes of a device below the file system in use that this program may have caused. Others may share the device:
/// where the program's operations are known, there are no more than these ask for.
fn flushes(reading: &TrialReading<'_>, device: &DeviceCounted) -> f64 {
    // One that has no cache to be flushed gets none: then a transaction shows as two writes.
    let seen = match device.flushes {
        Some(flushes) if flushes > 0 => flushes as f64,
        _ => device.writes as f64 / 2.0,
    };
    match reading.whose.are_issued_here() {
        // Any of these may be synced: by itself, or because its file is open for that.
        true => seen.min(SYNC_FLUSHES * (reading.fsyncs() + reading.changes())),
        false if reading.trial.counted.sent_bytes == 0 => 0.0,
        false => seen,
    }
}

#[cfg(test)]
mod tests {
    use super::super::judgement::Judgement;
    use super::super::sample::{found, grade, operation, reading, trial};
    use super::*;
    use stackrace_base::event::OperationsOf;

    #[test]
    fn bytes_beyond_what_this_program_caused_are_counted_as_others() {
        let mut trial = trial();
        trial.counted.fetched_bytes = 100_000_000;
        trial.counted.sent_bytes = 100_000_000;
        trial.counted.devices[1].read_bytes = 150_000_000;
        trial.counted.devices[1].written_bytes = 350_000_000;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok), "a tenth");
        trial.counted.devices[1].written_bytes += 1_000_000;
        let finding = found(&CHECK, &trial).unwrap();
        assert_eq!(finding.grade, Grade::Note);
        assert!(
            finding.sentence.contains("of vda's I/O"),
            "{}",
            finding.sentence
        );
        let mut served = trial.clone();
        served.settled.served_by_program = true;
        assert_eq!(grade(&CHECK, &served), Some(Grade::Ok), "FUSE");
        // As large a share of little is no disturbance.
        trial.counted.fetched_bytes = 0;
        trial.counted.sent_bytes = 0;
        trial.counted.devices[1].read_bytes = 4_194_304;
        trial.counted.devices[1].written_bytes = 0;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.counted.devices[1].read_bytes += 1;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
    }

    /// What 300 synced writes of 4 KiB do on ext4 in a file on ext4, and what one who copies beside them adds.
    fn synced_on_a_loop_device(beside: u64) -> Option<Grade> {
        let mut trial = trial();
        trial.phases[0].operations =
            vec![operation("write", 300, 4096), operation("fsync", 300, 0)];
        trial.counted.sent_bytes = 300 * 4096;
        let [file, disk] = &mut trial.counted.devices[..] else {
            panic!("a loop device on a disk");
        };
        (file.flushes, file.written_bytes) = (Some(600), 11_059_200);
        (disk.flushes, disk.written_bytes) = (Some(1200), 22_978_560 + beside);
        grade(&CHECK, &trial)
    }

    #[test]
    fn what_file_systems_write_for_each_sync_is_ones_own_and_a_writer_beside_it_is_not() {
        assert_eq!(synced_on_a_loop_device(0), Some(Grade::Ok));
        assert_eq!(synced_on_a_loop_device(400_000_000), Some(Grade::Note));
        // Without a loop device: the journal of the file system itself.
        let journalled = |syncs, beside: u64, whose| {
            let mut trial = trial();
            trial.phases[0].operations =
                vec![operation("write", 1000, 4096), operation("fsync", syncs, 0)];
            trial.counted.sent_bytes = 1000 * 4096;
            let disk = &mut trial.counted.devices[1];
            (disk.flushes, disk.written_bytes) = (Some(2000), 40_960_000 + beside);
            trial.counted.devices.remove(0);
            let reading = TrialReading {
                whose,
                ..reading(&trial)
            };
            judge(&reading).map(|finding| finding.grade)
        };
        for whose in [OperationsOf::Itself, OperationsOf::Command] {
            assert_eq!(journalled(1000, 0, whose), Some(Grade::Ok));
            assert_eq!(journalled(1000, 300_000_000, whose), Some(Grade::Note));
        }
    }

    #[test]
    fn flushes_of_others_explain_nothing() {
        let mut trial = trial();
        trial.counted.devices.remove(0);
        trial.phases[0].operations = vec![operation("read", 1000, 4096)];
        trial.counted.fetched_bytes = 1000 * 4096;
        trial.counted.devices[0].read_bytes = 1000 * 4096;
        trial.counted.devices[0].written_bytes = 40_000_000;
        trial.counted.devices[0].flushes = Some(10_000);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
    }

    #[test]
    fn a_device_of_several_files_on_one_disk_is_held_against_their_sum() {
        let mut trial = trial();
        trial.counted.sent_bytes = 100_000_000;
        trial
            .counted
            .devices
            .insert(1, super::super::sample::device("loop1"));
        for (device, bytes) in trial.counted.devices.iter_mut().zip([100, 100, 600]) {
            device.written_bytes = bytes * 1_000_000;
        }
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        // What one who shares the mapped device does is found there, and once.
        trial.counted.devices[0].written_bytes = 1_000_000_000;
        let finding = found(&CHECK, &trial).unwrap();
        assert!(
            finding.sentence.contains("of loop0's I/O"),
            "{}",
            finding.sentence
        );
    }

    #[test]
    fn others_on_the_processors_count_where_tasks_wait() {
        let mut trial = trial();
        trial.counted.cpu_system_ns = 300_000_000;
        trial.counted.cpu_machine_busy_ns = 510_000_000;
        trial.counted.pressure_cpu_ns = Some(100_000_000);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.counted.pressure_cpu_ns = Some(101_000_000);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
        trial.counted.cpu_machine_busy_ns = 500_000_000;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
    }

    #[test]
    fn a_median_too_small_for_its_digits_is_said_to_be_small() {
        let mut trial = trial();
        trial.counted.devices[1].read_bytes = 1 << 40;
        let finding = found(&CHECK, &trial).unwrap();
        let worst = finding.evidence[0].value;
        for (median, words) in [
            (0.0, "(median 0 %)"),
            (0.000_02, "(median below 0.01 %)"),
            (0.000_2, "(median 0.02 %)"),
        ] {
            let judgement = Judgement {
                check: CHECK.name,
                grade: finding.grade,
                sentence: finding.sentence.clone(),
                trials: 1,
                of: 3,
                round: 1,
                evidence: finding.evidence.clone(),
                values: vec![0.0, median, worst],
                strength: finding.strength,
            };
            assert!(judgement.words().contains(words), "{}", judgement.words());
        }
    }

    #[test]
    fn nobody_used_more_than_the_whole_machine() {
        let mut trial = trial();
        // Ticks that began before the trial: 2.1 s of two processors in one second.
        trial.counted.cpu_machine_busy_ns = 2_100_000_000;
        trial.counted.pressure_cpu_ns = Some(1_100_000_000);
        let finding = found(&CHECK, &trial).unwrap();
        assert!(
            finding.sentence.contains("used 100 % of CPU time"),
            "{}",
            finding.sentence
        );
        assert!(finding.evidence.iter().all(|figure| figure.value <= 1.0));
    }
}
