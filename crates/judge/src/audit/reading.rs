//! One trial's counters, read as the checks need them.
//!
//! Logs may hold any number: everything here is a float, and a share of nothing is no share.

use super::limit::{Limit, is_partition};
use stackrace_base::event::{DeviceCounted, Observation, OperationObservation, OperationsOf};

/// Below this much time shares are not judged, ns: processor time is counted in ticks of 10 ms and
/// device time in ms, so that a share of a shorter window is mostly rounding.
pub(super) const WINDOW_NS_MIN: f64 = 100e6;

/// A trial, and what is known of the machine it ran on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialReading<'a> {
    pub(super) trial: &'a Observation,
    /// Whose operations its workload does.
    pub(super) whose: OperationsOf,
    /// Set if the rate of the workload ought to be level.
    pub(super) level: bool,
    pub(super) limits: &'a [Limit],
    /// Memory of the machine, bytes.
    pub(super) memory_bytes: Option<f64>,
    /// Processors that a control group lets the program use; `None` if it may use them all.
    pub(super) processors_allowed: Option<f64>,
}

impl<'a> TrialReading<'a> {
    /// Operations of all phases.
    pub(super) fn operations(&self) -> impl Iterator<Item = &'a OperationObservation> + use<'a> {
        self.trial.phases.iter().flat_map(|phase| &phase.operations)
    }

    fn bytes(&self, ops: &[&str]) -> f64 {
        let these = self.operations().filter(|op| ops.contains(&op.op.as_str()));
        these.map(|op| op.bytes as f64).sum()
    }

    /// Bytes the operations read.
    pub(super) fn read_bytes(&self) -> f64 {
        // PostMark reads a file in one operation that includes opening it.
        self.bytes(&["read", "open"])
    }

    /// The same with those that were read to be copied.
    pub(super) fn read_or_copied_bytes(&self) -> f64 {
        self.bytes(&["read", "open", "copy"])
    }

    /// Bytes the operations wrote.
    pub(super) fn written_bytes(&self) -> f64 {
        self.bytes(&["write", "create", "append", "copy"])
    }

    /// Completed operations, fsyncs left out.
    pub(super) fn count(&self) -> f64 {
        let these = self.operations().filter(|op| op.op != "fsync");
        these.map(|op| op.count as f64).sum()
    }

    /// Completed operations that may change something.
    pub(super) fn changes(&self) -> f64 {
        let still = ["read", "open", "stat", "readdir", "fsync"];
        let these = self
            .operations()
            .filter(|op| !still.contains(&op.op.as_str()));
        these.map(|op| op.count as f64).sum()
    }

    /// Number of fsyncs the trial completed.
    pub(super) fn fsyncs(&self) -> f64 {
        let these = self.operations().filter(|op| op.op == "fsync");
        these.map(|op| op.count as f64).sum()
    }

    /// The time the counters cover, ns; `None` if it is too short for shares of it, or nothing was counted.
    pub(super) fn window_ns(&self) -> Option<f64> {
        // A machine has a processor: where none is counted, the other counters are not idle but missing.
        if self.trial.counted.cpus == 0 {
            return None;
        }
        let elapsed = self.trial.elapsed_ns as f64;
        let window = self.trial.counted.window_ns.map_or(elapsed, |ns| ns as f64);
        // Two clocks may disagree by a little.
        (elapsed >= WINDOW_NS_MIN).then_some(window.max(elapsed))
    }

    /// Processor time of the program in the measured part alone, ns: user and all.
    pub(super) fn own_cpu_ns(&self) -> (f64, f64) {
        let counted = &self.trial.counted;
        let phases = self.trial.phases.iter();
        // Per phase where it is known: only that time belongs to what was measured.
        let mut within = phases.map(|phase| phase.cpu_user_ns.zip(phase.cpu_system_ns));
        let sum = within.try_fold((0.0, 0.0), |(user, all), phase| {
            let (u, s) = phase?;
            Some((user + u as f64, all + u as f64 + s as f64))
        });
        let user = counted.cpu_user_ns as f64;
        sum.filter(|_| !self.trial.phases.is_empty())
            .unwrap_or((user, user + counted.cpu_system_ns as f64))
    }

    /// Time of the measured part times the threads that worked in it, ns: what they could use.
    pub(super) fn thread_time_ns(&self) -> f64 {
        let phases = self.trial.phases.iter();
        phases
            .map(|phase| phase.elapsed_ns as f64 * phase.threads.len().max(1) as f64)
            .sum()
    }

    /// Share of the data that is compressed; `None` if the file system does not tell.
    pub(super) fn squeezed(&self) -> Option<f64> {
        let stored = self.trial.settled.stored?;
        share(stored.encoded_bytes as f64, stored.bytes as f64)
    }

    /// Share of the data that no device holds as it is read: holes, unwritten and compressed extents;
    /// 0 where it is not known.
    pub(super) fn not_as_stored(&self) -> f64 {
        let Some(stored) = self.trial.settled.stored else {
            return 0.0;
        };
        let zeros = stored.hole_bytes as f64 + stored.unwritten_bytes as f64;
        share(zeros + stored.encoded_bytes as f64, stored.bytes as f64).unwrap_or(0.0)
    }

    /// Most threads of a phase.
    pub(super) fn threads(&self) -> usize {
        let threads = self.trial.phases.iter().map(|phase| phase.threads.len());
        threads.max().unwrap_or(0).max(1)
    }

    /// The devices the top file system lies on, without the disks below them where those are others:
    /// what passes through a loop or mapped device is counted again further down.
    pub(super) fn upper(&self) -> impl Iterator<Item = &'a DeviceCounted> + use<'a> {
        let devices = &self.trial.counted.devices;
        let stacked = devices.first().is_some_and(is_stacked);
        // Without a pile, a disk is the same as the partition before it: the first one speaks, and
        // those of the same sort beside it (members of a file system of several devices).
        devices.iter().filter(move |device| {
            is_stacked(device) == stacked && (stacked || !has_partition(device, devices))
        })
    }

    /// The disks below a pile of loop or mapped devices; empty where there is no pile.
    pub(super) fn lower(&self) -> impl Iterator<Item = &'a DeviceCounted> + use<'a> {
        let devices = &self.trial.counted.devices;
        let piled = devices.first().is_some_and(is_stacked);
        devices
            .iter()
            .filter(move |device| piled && !is_stacked(device))
    }

    /// The device that was busy for the largest share of the window, with that share.
    pub(super) fn busiest(&self) -> Option<(&'a DeviceCounted, f64)> {
        let window = self.window_ns()?;
        let devices = self.trial.counted.devices.iter();
        let shares = devices.map(|device| (device, (device.busy_ns as f64 / window).min(1.0)));
        // Of two that are as busy, the upper one: it is the one the study names.
        shares.fold(
            None,
            |best: Option<(&DeviceCounted, f64)>, (device, share)| match best {
                Some((_, most)) if most >= share => best,
                _ => Some((device, share)),
            },
        )
    }
}

/// Returns true if a device is made of others.
pub(super) fn is_stacked(device: &DeviceCounted) -> bool {
    is_loop(device) || !counts_flushes(device)
}

/// Returns true if a device lies in a file.
pub(super) fn is_loop(device: &DeviceCounted) -> bool {
    device.device.starts_with("loop")
}

/// Returns true if the kernel counts a device's flushes. It does so where it queues them (block/blk-flush.c); these
/// kinds pass on what they are given, and the devices below them count.
pub(super) fn counts_flushes(device: &DeviceCounted) -> bool {
    let mut without = ["dm-", "md", "drbd", "bcache", "zd"].iter();
    !without.any(|kind| device.device.starts_with(kind))
}

/// Returns true if a device is the whole disk of a partition in the list.
fn has_partition(device: &DeviceCounted, devices: &[DeviceCounted]) -> bool {
    let mut others = devices.iter();
    others.any(|other| is_partition(&other.device, &device.device))
}

/// Bytes a device moved.
pub(super) fn moved(device: &DeviceCounted) -> f64 {
    device.read_bytes as f64 + device.written_bytes as f64
}

/// `part` of `whole`; none where there is nothing to be a part of.
pub(super) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_pile_is_counted_at_its_top_and_a_partition_once() {
        let names = |devices: &[&str]| {
            let mut trial = sample::trial();
            trial.counted.devices = devices.iter().map(|name| sample::device(name)).collect();
            let reading = sample::reading(&trial);
            let names = |devices: Vec<&DeviceCounted>| {
                let names = devices.iter().map(|device| device.device.clone());
                names.collect::<Vec<String>>().join(" ")
            };
            (
                names(reading.upper().collect()),
                names(reading.lower().collect()),
            )
        };
        let is = |upper: &str, lower: &str| (upper.to_owned(), lower.to_owned());
        assert_eq!(names(&["loop3", "loop4", "vda"]), is("loop3 loop4", "vda"));
        assert_eq!(names(&["vda1", "vda"]), is("vda1", ""));
        assert_eq!(names(&["sda", "sdb"]), is("sda sdb", ""));
        assert_eq!(names(&["nvme0n1p2", "nvme0n1"]), is("nvme0n1p2", ""));
        assert_eq!(names(&[]), is("", ""));
    }

    #[test]
    fn what_is_too_short_has_no_shares() {
        let mut trial = sample::trial();
        assert_eq!(sample::reading(&trial).window_ns(), Some(1e9));
        trial.counted.window_ns = Some(1_100_000_000);
        assert_eq!(sample::reading(&trial).window_ns(), Some(1.1e9));
        trial.elapsed_ns = 99_999_999;
        assert_eq!(sample::reading(&trial).window_ns(), None);
    }
}
