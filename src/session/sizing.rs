//! How large the trials of a comparison are: the workloads themselves are tried, small at first.
//!
//! Fixed work is repeated with more data until it lasts long enough to tell how much a whole trial
//! needs. The fastest directory sets the size, as none of its trials may be too short. These
//! trials are never reported and no verdict counts them.

use std::path::Path;
use std::sync::OnceLock;

use stackrace_engine::spec::{Content, IoTarget};
use stackrace_engine::{Control, residency};

use super::context::Context;
use super::temporary::{self, PrivateDir, refused};
use crate::failure::Failure;
use crate::host::{Host, local::LocalHost};
use crate::journal::Journal;
use crate::purpose::{PurposeWorkload, SizedBy, WorkloadSize};
use crate::study::Study;
use crate::time::{Clock, SystemClock};
use crate::workload::{Place, Workload};

/// A trial this long, as a share of what a whole one is to last, says how much that needs.
/// A whole trial follows and corrects it, so this may be short.
const LONG_ENOUGH: f64 = 0.12;
/// What the next trial aims at, as a share of a whole one: a little more than is long enough.
const AIMED_AT: f64 = 0.2;
/// A trial grows by no more than this: a short one says little.
const GROWTH_MAX: f64 = 10.0;
/// Trials of one workload in one directory at most.
const TRIALS_MAX: usize = 5;
/// The fastest trial is to last so much longer than the least: they differ from one to the next.
const RESERVE: f64 = 1.15;
/// A whole trial that lasts so much longer than it was to, as a factor, gets less to do.
const TOO_LONG: f64 = 1.1;
/// The kernel's file that drops its caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// A workload with the size of its trials.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizedPart {
    /// Its index in the purpose.
    pub(super) index: usize,
    /// How much one trial does.
    pub(super) size: WorkloadSize,
    /// Seconds that one trial in each of the directories takes, all together.
    pub(super) seconds: f64,
}

/// What must be known to size the workloads of a purpose.
pub(super) struct Sizing<'a> {
    /// Where the work is put, with the names for errors.
    pub(super) directories: Vec<(&'a str, &'a Path)>,
    /// The workloads of the purpose.
    pub(super) parts: &'static [PurposeWorkload],
    /// Seconds a trial is to last.
    pub(super) seconds: f64,
    /// Bytes that one workload's data may take; a copy of them takes as much again.
    pub(super) room: u64,
    /// Bytes that were asked for.
    pub(super) bytes: Option<u64>,
    /// Whether trials begin with caches dropped.
    pub(super) cold: bool,
    /// The study with these workloads.
    pub(super) study: &'a dyn Fn(&[SizedPart]) -> Result<Study, Failure>,
}

impl Sizing<'_> {
    /// Finds the sizes of the workloads `wanted`, by their indices in the purpose.
    ///
    /// # Errors
    /// A directory cannot be written to.
    pub(super) fn find(
        &self,
        context: &Context,
        host: &LocalHost,
        wanted: &[usize],
    ) -> Result<Vec<SizedPart>, Failure> {
        temporary::work(context, host, |journal, id| {
            let mut probe = Probe::new(self, host, journal, id)?;
            wanted.iter().map(|index| probe.size(*index)).collect()
        })
    }

    /// A size with `times` as much in it, as far as there is room for it and for a copy.
    fn scaled(
        &self,
        index: usize,
        size: WorkloadSize,
        times: f64,
    ) -> Result<WorkloadSize, Failure> {
        let (part, room) = (&self.parts[index], self.room);
        let size = part.scaled(size, times, room);
        if part.sized_by != SizedBy::Files {
            return Ok(size);
        }
        // How large its files are is known to the workload alone.
        let (needed, most) = (
            self.study_of(index, size)?.trial_disk_bytes(),
            room.saturating_mul(2),
        );
        Ok(match needed > most {
            true => part.scaled(size, most as f64 / needed as f64, room),
            false => size,
        })
    }

    /// The study with this workload alone.
    fn study_of(&self, index: usize, size: WorkloadSize) -> Result<Study, Failure> {
        (self.study)(&[SizedPart {
            index,
            size,
            seconds: 0.0,
        }])
    }
}

/// Sizing under way.
struct Probe<'a> {
    asked: &'a Sizing<'a>,
    host: &'a LocalHost,
    /// A directory of our own on each of the places.
    roots: Vec<PrivateDir>,
    /// Bytes per second that data are laid out with, the mean of all; none: not needed yet.
    lays_out: Option<f64>,
}

impl<'a> Probe<'a> {
    fn new(
        asked: &'a Sizing<'a>,
        host: &'a LocalHost,
        journal: &Journal,
        id: &str,
    ) -> Result<Self, Failure> {
        let mut roots = Vec::new();
        for (name, path) in &asked.directories {
            let root = temporary::private(host, journal, path, "probe", id, name);
            roots.push(root?);
        }
        Ok(Self {
            asked,
            host,
            roots,
            lays_out: None,
        })
    }

    fn size(&mut self, index: usize) -> Result<SizedPart, Failure> {
        let part = &self.asked.parts[index];
        let target = self.asked.seconds;
        let mut size = WorkloadSize {
            seconds: target,
            ..WorkloadSize::LEAST
        };
        let sides = self.roots.len() as f64;
        let (size, seconds) = match (part.sized_by, self.asked.bytes) {
            (SizedBy::Clock, bytes) => {
                let laid_out = self.lays_out()? * target / size.bytes as f64;
                size = part.scaled(size, laid_out, self.asked.room);
                size.bytes = bytes.unwrap_or(size.bytes);
                (size, target * sides)
            }
            (SizedBy::Bytes, Some(bytes)) => {
                let seconds = bytes as f64 / self.lays_out()?;
                (WorkloadSize { bytes, ..size }, seconds * sides)
            }
            _ => self.try_out(index, size)?,
        };
        Ok(SizedPart {
            index,
            size,
            seconds,
        })
    }

    /// Tries a workload everywhere with more and more in it, until the fastest takes long enough, and
    /// once more there with a whole trial.
    fn try_out(&self, index: usize, first: WorkloadSize) -> Result<(WorkloadSize, f64), Failure> {
        let part = &self.asked.parts[index];
        let target = self.asked.seconds * RESERVE;
        let scaled = |size, times| self.asked.scaled(index, size, times);
        let everywhere: Vec<usize> = (0..self.roots.len()).collect();
        let mut size = first;
        let mut trials = 0;
        let seconds = loop {
            let seconds = self.trials(index, size, &everywhere)?;
            let fastest = seconds.iter().copied().fold(f64::INFINITY, f64::min);
            trials += 1;
            let aimed_at = (target * AIMED_AT / fastest).min(GROWTH_MAX);
            let larger = scaled(size, aimed_at)?;
            // It cannot grow: the room is used up.
            if fastest >= target * LONG_ENOUGH || trials == TRIALS_MAX || larger == size {
                break seconds;
            }
            size = larger;
        };
        let order = |a: &usize, b: &usize| seconds[*a].total_cmp(&seconds[*b]);
        let fastest = everywhere.into_iter().min_by(order).unwrap_or(0);
        let mut whole = scaled(size, target / seconds[fastest])?;
        // Where a block is written for the first time it may take longer than ever again: thin disks,
        // images of disks. And a short trial says only about how much a whole one needs.
        let again = self.trials(index, whole, &[fastest])?[0];
        if again < self.asked.seconds || again > target * TOO_LONG {
            whole = scaled(whole, target / again)?;
        }
        let amount = |size: &WorkloadSize| match part.sized_by {
            SizedBy::Files => size.files as f64,
            SizedBy::Bytes | SizedBy::Clock => (size.bytes * size.passes) as f64,
        };
        let times = amount(&whole) / amount(&size);
        Ok((whole, seconds.iter().sum::<f64>() * times))
    }

    /// Seconds that one trial measures in each of these directories, one after the other.
    fn trials(
        &self,
        index: usize,
        size: WorkloadSize,
        sides: &[usize],
    ) -> Result<Vec<f64>, Failure> {
        let study = self.asked.study_of(index, size)?;
        let trial = |side: &usize| {
            let workload = &*study.configurations[*side].workloads[0];
            let directory = self.roots[*side].path().join(".stackrace-trial");
            self.trial(workload, &directory, self.asked.directories[*side].0)
        };
        sides.iter().map(trial).collect()
    }

    /// Seconds that the phases of a workload take together, in a directory that is gone afterwards.
    fn trial(&self, workload: &dyn Workload, directory: &Path, name: &str) -> Result<f64, Failure> {
        self.host
            .create_dir(directory)
            .map_err(|error| refused(name, &error))?;
        let (ledger, control) = (OnceLock::new(), Control::default());
        let place = Place {
            cold: self.asked.cold,
            ..Place::alone(directory, 1, &ledger, &control)
        };
        let measured = workload.prepare(&place).and_then(|()| {
            let mut elapsed_ns = 0;
            // Names and sizes of many files are cached elsewhere than their pages.
            let many = workload.cost().files > 1;
            for phase in 0..workload.phases().len() {
                self.settle(directory, many);
                elapsed_ns += workload.measure(phase, &place)?.elapsed_ns;
            }
            Ok(elapsed_ns)
        });
        let _ = workload.finish(&place);
        // What stays is found and removed with the directory above it.
        let _ = self.host.remove_tree(directory);
        let elapsed_ns = measured.map_err(|trouble| refused(name, &trouble))?;
        Ok((elapsed_ns as f64 / 1e9).max(1e-6))
    }

    /// As before a trial that counts. Where it does not work, the size is only a worse guess.
    /// Those of many files alone drop all caches: what they drop makes the first writes after it slow,
    /// and a size too small is worse than one too large.
    fn settle(&self, directory: &Path, many: bool) {
        if !self.asked.cold {
            return;
        }
        let _ = self.host.sync_file_system(directory);
        let _ = residency::evict_tree(directory);
        if many && self.host.is_root() {
            let _ = self.host.write_text(Path::new(DROP_CACHES), "3");
        }
    }

    /// Bytes per second that data are laid out with.
    fn lays_out(&mut self) -> Result<f64, Failure> {
        if let Some(rate) = self.lays_out {
            return Ok(rate);
        }
        let bytes = WorkloadSize::LEAST.bytes;
        let mut seconds = 0.0;
        for (root, (name, _)) in self.roots.iter().zip(&self.asked.directories) {
            let target = IoTarget {
                path: root.path().join("data"),
                bytes,
            };
            let began = SystemClock.now_ns();
            // Random: storage that compresses or deduplicates would look faster than it is.
            stackrace_engine::lay_out(&[target], Content::Random, 1, &Control::default())
                .map_err(|error| refused(name, &error))?;
            seconds += SystemClock.now_ns().saturating_sub(began) as f64 / 1e9;
        }
        let rate = bytes as f64 * self.roots.len() as f64 / seconds.max(1e-6);
        self.lays_out = Some(rate);
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purpose;
    use crate::session::compare;

    #[test]
    fn files_that_grow_by_any_factor_fit_into_the_room_with_their_copy() {
        const ROOM: u64 = 34 << 20;
        let study = |parts: &[SizedPart]| compare::study_of_files(parts);
        let files = purpose::find("files").unwrap();
        let sizing = Sizing {
            directories: Vec::new(),
            parts: files.parts,
            seconds: 1.0,
            room: ROOM,
            bytes: None,
            cold: true,
            study: &study,
        };
        for index in 0..files.parts.len() {
            let grown = sizing.scaled(index, WorkloadSize::LEAST, 1e6).unwrap();
            let needed = sizing.study_of(index, grown).unwrap().trial_disk_bytes();
            // Most of the room is used, and no more.
            assert!((ROOM..=ROOM * 2).contains(&needed), "{needed}");
            let few = sizing.scaled(index, WorkloadSize::LEAST, 2.0).unwrap();
            assert_eq!(few.files, 2 * WorkloadSize::LEAST.files);
        }
    }
}
