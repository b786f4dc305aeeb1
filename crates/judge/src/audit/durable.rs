//! Whether what was written would have outlived a power cut when the clock stopped.

use super::check::AuditCheck;
use super::compressed::{Written, written};
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::limit::is_partition;
use super::reading::{TrialReading, counts_flushes, share};
use stackrace_base::event::{DeviceCounted, OperationsOf};
use stackrace_base::unit;

/// Above this share of sent bytes that were still in memory when the clock stopped, a figure is in
/// good part that of the memory.
const IN_MEMORY_SHARE: f64 = 0.10;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "durability",
    question: "Was everything written safe on the device when the clock stopped?",
    limits: false,
    priority: 5,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let devices = &reading.trial.counted.devices;
    let (wrote, fsyncs) = (reading.written_bytes(), reading.fsyncs());
    if wrote <= 0.0 || devices.is_empty() {
        return None;
    }
    // Kernels before 5.5 count no flushes.
    let counts = devices.iter().filter_map(|device| device.flushes);
    let flushes = counts.map(|count| count as f64).reduce(|a, b| a + b);
    // Their operations sync by themselves, and a journal of md keeps what its disks may lose.
    let promised = reading.whose == OperationsOf::Promised;
    let elsewhere = promised && flushes.is_some_and(|count| count > 0.0);
    let unflushed: Vec<&str> = devices
        .iter()
        .filter(|device| !elsewhere && never_flushed(device, devices))
        .map(|device| device.device.as_str())
        .collect();
    let mut evidence = Vec::new();
    let known = written(reading);
    let in_memory = known.as_ref().and_then(|w| share(w.in_memory, w.sent));
    if let (Some(part), Some(Written { sent, arrived, .. })) = (in_memory, &known) {
        evidence.push(
            EvidenceFigure::new("bytes sent that were still in memory", part, "share")
                .against(IN_MEMORY_SHARE),
        );
        evidence.push(EvidenceFigure::new("sent towards storage", *sent, "B"));
        evidence.push(EvidenceFigure::new("written to devices", *arrived, "B"));
    }
    evidence.push(EvidenceFigure::new("written by the workload", wrote, "B"));
    evidence.push(EvidenceFigure::new("fsyncs called", fsyncs, ""));
    evidence.extend(
        flushes.map(|count| EvidenceFigure::new("flushes that reached a device", count, "")),
    );
    evidence.extend(
        unflushed
            .iter()
            .map(|name| EvidenceFigure::new(format!("flushes of {name} alone"), 0.0, "")),
    );
    let named = unflushed.join(", ");
    // The gravest first: data were thought to be safe and were not.
    let (grade, sentence) = if fsyncs > 0.0 && !unflushed.is_empty() {
        let sentence = format!(
            "not durable: fsync was called, but no flush reached {named}, which was written to and has a volatile write cache"
        );
        (Grade::NotAsAsked, sentence)
    } else if in_memory.is_some_and(|part| part > IN_MEMORY_SHARE) {
        let sentence = format!(
            "not durable: {} of the bytes written ({}) were still in memory when the clock stopped",
            unit::percent(in_memory.unwrap_or(0.0)),
            unit::si_bytes(known.map_or(0.0, |w| w.in_memory))
        );
        (Grade::Note, sentence)
    } else if fsyncs == 0.0 && !unflushed.is_empty() {
        let nothing = match promised {
            true => "",
            false => "nothing was synced, and ",
        };
        let sentence =
            format!("not durable: {nothing}the volatile write cache of {named} was never flushed");
        (Grade::Note, sentence)
    } else if in_memory.is_none() && !(fsyncs > 0.0 && flushes.is_some()) {
        return None;
    } else {
        (Grade::Ok, durable(fsyncs, flushes))
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

/// Returns true if a device was written to, may hold that in volatile memory, and was never told to flush. Each is
/// judged alone: the flushes of one do not empty the cache of another.
fn never_flushed(device: &DeviceCounted, all: &[DeviceCounted]) -> bool {
    // A partition does not count flushes, its disk does.
    let mut others = all.iter();
    let disk = others.find(|other| is_partition(&device.device, &other.device));
    // Without a volatile cache a device needs no flush.
    counts_flushes(device)
        && device.write_cache.as_deref() == Some("write back")
        && device.written_bytes > 0
        && disk.unwrap_or(device).flushes == Some(0)
}

fn durable(fsyncs: f64, flushes: Option<f64>) -> String {
    match flushes {
        Some(flushes) if fsyncs > 0.0 => {
            format!("{fsyncs:.0} fsyncs called, {flushes:.0} flushes reached a device")
        }
        _ => "everything written had reached the device".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, operation, reading, trial};
    use super::*;
    use stackrace_base::event::Observation;

    /// 10 MB written, so many fsyncs and flushes, so many bytes left in memory.
    fn writing(fsyncs: u64, flushes: u64, in_memory: u64) -> Observation {
        let mut trial = trial();
        let fsync = operation("fsync", fsyncs, 0);
        trial.phases[0].operations = vec![operation("write", 10_000, 1000), fsync];
        trial.counted.sent_bytes = 10_000_000;
        trial.counted.cancelled_bytes = Some(0);
        trial.counted.unwritten_bytes = Some(in_memory);
        trial.counted.devices[0].written_bytes = 10_000_000 - in_memory;
        trial.counted.devices[0].flushes = Some(flushes);
        trial.counted.devices[0].write_cache = Some("write back".to_owned());
        trial
    }

    #[test]
    fn a_tenth_may_be_in_memory() {
        assert_eq!(grade(&CHECK, &writing(1, 1, 1_000_000)), Some(Grade::Ok));
        let finding = found(&CHECK, &writing(0, 1, 1_000_001)).unwrap();
        assert_eq!(finding.grade, Grade::Note);
        assert!(
            finding
                .sentence
                .starts_with("not durable: 10 % of the bytes")
        );
    }

    #[test]
    fn an_fsync_without_a_flush_is_none() {
        assert_eq!(grade(&CHECK, &writing(1, 0, 0)), Some(Grade::NotAsAsked));
        assert_eq!(grade(&CHECK, &writing(0, 0, 0)), Some(Grade::Note));
        // A device that keeps nothing in volatile memory needs no flush.
        let mut through = writing(1, 0, 0);
        through.counted.devices[0].write_cache = Some("write through".to_owned());
        assert_eq!(grade(&CHECK, &through), Some(Grade::Ok));
    }

    /// Two members that were both written to: one flushed a hundred times, the other never.
    #[test]
    fn the_flushes_of_one_device_are_not_those_of_another() {
        let mut two = writing(100, 100, 0);
        two.counted.devices[1].written_bytes = 10_000_000;
        two.counted.devices[1].write_cache = Some("write back".to_owned());
        let finding = found(&CHECK, &two).unwrap();
        assert_eq!(finding.grade, Grade::NotAsAsked);
        assert!(finding.sentence.contains("no flush reached vda"));
        two.counted.devices[1].written_bytes = 0;
        assert_eq!(
            grade(&CHECK, &two),
            Some(Grade::Ok),
            "it was not written to"
        );
        // An array passes flushes on and counts none: those of its disks say what happened.
        let mut array = writing(100, 0, 0);
        let disk = array.counted.devices[0].clone();
        array.counted.devices[0].device = "md127".to_owned();
        array.counted.devices[0].write_cache = Some("write back".to_owned());
        array.counted.devices[1] = DeviceCounted {
            flushes: Some(100),
            ..disk
        };
        assert_eq!(grade(&CHECK, &array), Some(Grade::Ok));
        array.counted.devices[1].flushes = Some(0);
        assert_eq!(grade(&CHECK, &array), Some(Grade::NotAsAsked));
        // A partition has its flushes counted by its disk.
        two.counted.devices[0].device = "vda1".to_owned();
        two.counted.devices[0].flushes = Some(0);
        two.counted.devices[1].flushes = Some(100);
        assert_eq!(grade(&CHECK, &two), Some(Grade::Ok));
    }

    /// The journal of an array is flushed, and its other disks are not: a cut breaks no promise.
    #[test]
    fn operations_that_are_promised_something_sync_by_themselves() {
        let mut trial = writing(0, 0, 0);
        let judged = |trial: &Observation| {
            let reading = TrialReading {
                whose: OperationsOf::Promised,
                ..reading(trial)
            };
            judge(&reading).unwrap()
        };
        let finding = judged(&trial);
        assert_eq!(finding.grade, Grade::Note);
        assert!(
            !finding.sentence.contains("nothing was synced"),
            "{}",
            finding.sentence
        );
        trial.counted.devices[1].flushes = Some(60);
        assert_eq!(judged(&trial).grade, Grade::Ok);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let mut old = writing(0, 1, 0);
        old.counted.unwritten_bytes = None;
        assert_eq!(grade(&CHECK, &old), None);
        old.counted.devices.clear();
        assert_eq!(
            grade(&CHECK, &old),
            None,
            "a file system in memory has no device"
        );
        assert_eq!(grade(&CHECK, &trial()), None, "nothing was written");
    }
}
