//! Whether other processes used the machine: its processors, or the devices under the stack.
//!
//! A file system writes more than it is given (journals, metadata, whole blocks) and the kernel
//! works for a trial in threads of its own, so only what goes far beyond that is counted as theirs.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// A device may read so much more than the program fetched: metadata, and files put in order.
const READ_FACTOR: f64 = 1.5;

/// A device may write so many times what the program sent: a journal that holds data writes it
/// twice, and small files are mostly metadata.
const WRITE_FACTOR: f64 = 3.0;

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
    let counted = &reading.trial.counted;
    // Not what a mirror writes to each side: each device is held against all that was sent.
    let shares = counted.devices.iter().map(|device| {
        let (read, written) = (device.read_bytes as f64, device.written_bytes as f64);
        let strange_reads = read - READ_FACTOR * counted.fetched_bytes as f64;
        let strange_writes = written - WRITE_FACTOR * counted.sent_bytes as f64;
        let strange = strange_reads.max(0.0) + strange_writes.max(0.0);
        let part = match strange > FOREIGN_BYTES_MIN {
            true => share(strange, read + written).unwrap_or(0.0),
            false => 0.0,
        };
        (device.device.clone(), part)
    });
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, trial};
    use super::*;

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
        // As large a share of little is no disturbance.
        trial.counted.fetched_bytes = 0;
        trial.counted.sent_bytes = 0;
        trial.counted.devices[1].read_bytes = 4_194_304;
        trial.counted.devices[1].written_bytes = 0;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.counted.devices[1].read_bytes += 1;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
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
