//! How large the trials of a comparison are: the workloads themselves are tried, small at first.
//!
//! Fixed work is repeated with more data until it lasts long enough to tell how much a whole trial
//! needs. The fastest directory sets the size, as none of its trials may be too short. These
//! trials are never reported and no verdict counts them.

use std::path::Path;

use stackrace_engine::Control;
use stackrace_engine::residency;
use stackrace_engine::spec::{Content, IoTarget};

use super::room::TrialRoom;
use stackrace_base::event::Ended;
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::setting::Refusal;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::programs;
use stackrace_load::workload::Workload;
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_machine::journal::Journal;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Preparation;
use stackrace_run::prepare::temporary::{self, PrivateDir, refused};
use stackrace_run::run::{AroundPhase, SingleTrial};
use stackrace_study::purpose::{PurposeWorkload, SizedBy, WorkloadSize};

/// A trial this long, as a share of what a whole one is to last, says how much that needs.
/// A whole trial follows and corrects it, so this may be short.
const LONG_ENOUGH: f64 = 0.12;
/// The same where none follows: no block of it is written for the first time.
const LONG_ENOUGH_ALONE: f64 = 0.25;
/// Length that the next trial aims at, as a multiple of what is long enough.
const AIMED_AT: f64 = 1.6;
/// A trial grows by no more than this: a short one says little.
const GROWTH_MAX: f64 = 10.0;
/// Trials of one workload in one directory at most.
const TRIALS_MAX: usize = 5;
/// The fastest trial is to last so much longer than was asked for: they differ from one to the next.
const RESERVE: f64 = 1.05;
/// A whole trial that lasts so much longer than it was to, as a factor, twice, gets less to do.
const TOO_LONG: f64 = 1.1;
/// The kernel's file that drops its caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// A workload with the size of its trials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizedPart {
    /// Its index in the purpose.
    pub(crate) index: usize,
    /// Amount of work of one trial.
    pub(crate) size: WorkloadSize,
    /// Seconds that one trial in each of the directories takes, all together.
    pub(crate) seconds: f64,
    /// Seconds that laying out its data takes in all of them, before the first trial.
    pub(crate) lays_out_seconds: f64,
    /// The directory in which it took longest; `None` if it was not tried in each.
    pub(crate) slowest: Option<SlowestSide>,
}

/// The slowest of several directories.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowestSide {
    /// Its index.
    pub(crate) side: usize,
    /// Its time as a multiple of that in the fastest one.
    pub(crate) times: f64,
}

impl SlowestSide {
    fn of(seconds: &[f64]) -> Option<Self> {
        let fastest = seconds.iter().copied().reduce(f64::min)?;
        let all = seconds.iter().enumerate();
        let (side, slowest) = all.max_by(|a, b| a.1.total_cmp(b.1))?;
        Some(Self {
            side,
            times: slowest / fastest.max(1e-9),
        })
    }
}

/// Facts that must be known to size the workloads of a purpose.
pub(crate) struct Sizing<'a> {
    /// Directories of the work, with the names for errors.
    pub(crate) directories: Vec<(&'a str, &'a Path)>,
    /// The workloads of the purpose.
    pub(crate) parts: &'static [PurposeWorkload],
    /// Seconds a trial is to last.
    pub(crate) seconds: f64,
    /// Room for the data of one workload.
    pub(crate) room: TrialRoom,
    /// Bytes that were asked for.
    pub(crate) bytes: Option<u64>,
    /// True if trials begin with caches dropped.
    pub(crate) cold: bool,
    /// Ends it at once.
    pub(crate) interrupt: &'a Interrupt,
    /// Shows which workload is tried where.
    pub(crate) doing: &'a dyn Preparation,
    /// Makes a workload of the purpose at a size: [`of_purpose`], but for tests.
    pub(crate) make: &'a MakeWorkload<'a>,
}

/// Makes a workload at a size.
pub(crate) type MakeWorkload<'a> =
    dyn Fn(&PurposeWorkload, &WorkloadSize) -> Result<Box<dyn Workload>, Failure> + 'a;

/// The workload at this size, as the study of the comparison will have it.
pub(crate) fn of_purpose(
    part: &PurposeWorkload,
    size: &WorkloadSize,
) -> Result<Box<dyn Workload>, Failure> {
    let failed = |refusal: Refusal| Failure::internal(refusal.message);
    let settings = part.settings(size);
    let kind = programs::kind(&settings.owner);
    let kind = kind.ok_or_else(|| Failure::internal("a purpose of an unknown workload"))?;
    (kind.parse)(&settings).map_err(failed)
}

impl Sizing<'_> {
    /// Finds the sizes of the workloads `wanted`, by their indices in the purpose.
    ///
    /// # Errors
    /// A directory cannot be written to.
    pub(crate) fn find(
        &self,
        context: &Context,
        host: &LocalHost,
        wanted: &[usize],
    ) -> Result<Vec<SizedPart>, Failure> {
        loop {
            let found = self.tried(context, host, wanted);
            let less = found.as_ref().err().and_then(|_| self.room.less());
            let Some(said) = less else {
                return found;
            };
            self.doing.note(&said);
        }
    }

    /// The same with the room that is known so far.
    fn tried(
        &self,
        context: &Context,
        host: &LocalHost,
        wanted: &[usize],
    ) -> Result<Vec<SizedPart>, Failure> {
        temporary::work(context, host, |journal, id| {
            let mut probe = Probe::new(self, (context, host), journal, id)?;
            let mut sized = Vec::new();
            // In their order: what one stream needs is where the next one begins.
            for (at, index) in wanted.iter().enumerate() {
                let name = self.parts[*index].name;
                probe.step = format!("finding sizes: {name} ({} of {})", at + 1, wanted.len());
                sized.push(probe.size(*index)?);
            }
            Ok(sized)
        })
    }

    /// Returns the same parts with trials `times` as long, as far as there is room for their data.
    ///
    /// # Errors
    /// There is no such workload.
    pub(crate) fn longer(
        &self,
        sized: &[SizedPart],
        times: f64,
    ) -> Result<Vec<SizedPart>, Failure> {
        let longer = |part: &SizedPart| {
            let mut size = part.size;
            match self.parts[part.index].sized_by {
                SizedBy::Clock => size.seconds *= times,
                SizedBy::Bytes | SizedBy::Files => size = self.scaled(part.index, size, times)?,
            }
            Ok(SizedPart {
                size,
                seconds: part.seconds * times,
                ..*part
            })
        };
        sized.iter().map(longer).collect()
    }

    /// A size with `times` as much in it, as far as there is room for it and for a copy.
    fn scaled(
        &self,
        index: usize,
        size: WorkloadSize,
        times: f64,
    ) -> Result<WorkloadSize, Failure> {
        let (part, room) = (&self.parts[index], self.room.bytes());
        let size = part.scaled(size, times, room);
        if part.sized_by != SizedBy::Files {
            return Ok(size);
        }
        // How large its files are is known to the workload alone.
        let (needed, most) = (
            self.workload(index, size)?.cost().disk_bytes,
            room.saturating_mul(2),
        );
        Ok(match needed > most {
            true => part.scaled(size, most as f64 / needed as f64, room),
            false => size,
        })
    }

    fn workload(&self, index: usize, size: WorkloadSize) -> Result<Box<dyn Workload>, Failure> {
        (self.make)(&self.parts[index], &size)
    }
}

/// Durations of the parts of a trial.
struct Tried {
    /// Time of all phases together, s.
    measured: f64,
    /// Time of laying out the data, s.
    laid_out: f64,
}

/// The caches of a trial's data before each of its phases.
struct Settling<'a> {
    probe: &'a Probe<'a>,
    directory: &'a Path,
    /// True if many files are in it.
    many: bool,
}

impl AroundPhase for Settling<'_> {
    fn before(&mut self, _phase: usize) {
        self.probe.settle(self.directory, self.many);
    }
}

/// Drops what is in memory of a directory, and of everything where `all` is set and root asks. Where it does not work,
/// what is tried is only a worse guess.
pub(crate) fn settle(host: &LocalHost, directory: &Path, all: bool, interrupt: &Interrupt) {
    let _ = host.sync_file_system(directory);
    let _ = residency::evict_tree(directory, &|| !interrupt.raised());
    if all && host.is_root() {
        let _ = host.write_text(Path::new(DROP_CACHES), "3");
    }
}

/// Sizing under way.
struct Probe<'a> {
    asked: &'a Sizing<'a>,
    context: &'a Context,
    host: &'a LocalHost,
    /// The workload under way, and how far it is.
    step: String,
    /// A directory of our own on each of the places.
    roots: Vec<PrivateDir>,
    /// Bytes per second that data are laid out with, the mean of all; `None` if it is not needed yet.
    lays_out: Option<f64>,
    /// Bytes of a whole trial of the last stream; `None` if no stream was tried yet.
    stream_bytes: Option<u64>,
}

impl<'a> Probe<'a> {
    fn new(
        asked: &'a Sizing<'a>,
        (context, host): (&'a Context, &'a LocalHost),
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
            context,
            host,
            step: String::new(),
            roots,
            lays_out: None,
            stream_bytes: None,
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
        let (size, seconds, laid_out) = match (part.sized_by, self.asked.bytes) {
            (SizedBy::Clock, bytes) => {
                let laid_out = self.lays_out()? * target / size.bytes as f64;
                size = part.scaled(size, laid_out, self.asked.room.bytes());
                size.bytes = bytes.unwrap_or(size.bytes);
                (size, target, size.bytes as f64 / self.lays_out()?)
            }
            (SizedBy::Bytes, Some(bytes)) => {
                let seconds = bytes as f64 / self.lays_out()?;
                (WorkloadSize { bytes, ..size }, seconds, seconds)
            }
            _ => {
                let sized = self.try_out(index, size)?;
                if part.sized_by == SizedBy::Bytes {
                    self.stream_bytes = Some(sized.size.bytes * sized.size.passes);
                }
                return Ok(sized);
            }
        };
        Ok(SizedPart {
            index,
            size,
            seconds: seconds * sides,
            lays_out_seconds: laid_out * sides,
            slowest: None,
        })
    }

    /// Tries a workload everywhere with more and more in it, until the fastest takes long enough; what
    /// writes new files, once more there with a whole trial.
    fn try_out(&self, index: usize, first: WorkloadSize) -> Result<SizedPart, Failure> {
        let part = &self.asked.parts[index];
        let target = self.asked.seconds * RESERVE;
        let scaled = |size, times| self.asked.scaled(index, size, times);
        let everywhere: Vec<usize> = (0..self.roots.len()).collect();
        let writes_new = self.writes_new_blocks(index, first)?;
        let long_enough = match writes_new {
            true => LONG_ENOUGH,
            false => LONG_ENOUGH_ALONE,
        };
        // Streams are about equally fast: what one needs is where the next one begins.
        let known = self
            .stream_bytes
            .filter(|_| part.sized_by == SizedBy::Bytes);
        let begin = known.map_or(1.0, |bytes| {
            bytes as f64 * long_enough * AIMED_AT / first.bytes as f64
        });
        let mut size = scaled(first, begin.max(1.0))?;
        let mut trials = 0;
        let tried = loop {
            let tried = self.trials(index, size, &everywhere)?;
            let measured = tried.iter().map(|tried| tried.measured);
            let fastest = measured.fold(f64::INFINITY, f64::min);
            trials += 1;
            let aimed_at = (target * long_enough * AIMED_AT / fastest).min(GROWTH_MAX);
            let larger = scaled(size, aimed_at)?;
            // It cannot grow: the room is used up.
            if fastest >= target * long_enough || trials == TRIALS_MAX || larger == size {
                break tried;
            }
            size = larger;
        };
        let order = |a: &usize, b: &usize| tried[*a].measured.total_cmp(&tried[*b].measured);
        let fastest = everywhere.into_iter().min_by(order).unwrap_or(0);
        let mut whole = scaled(size, target / tried[fastest].measured)?;
        let amount = |size: &WorkloadSize| match part.sized_by {
            SizedBy::Files => size.files as f64,
            SizedBy::Bytes | SizedBy::Clock => (size.bytes * size.passes) as f64,
        };
        let mut longer = amount(&whole) / amount(&size);
        if writes_new {
            // Where a block is written for the first time it may take longer than ever again: thin disks,
            // images of disks. And a short trial says only about how much a whole one needs.
            let try_whole = || -> Result<f64, Failure> {
                Ok(self.trials(index, whole, &[fastest])?[0].measured)
            };
            let mut again = try_whole()?;
            if again > target * TOO_LONG {
                // Something disturbed it, perhaps: with less to do, the next ones would be too short.
                again = again.min(try_whole()?);
            }
            longer = again / tried[fastest].measured;
            if again < self.asked.seconds || again > target * TOO_LONG {
                let tried = amount(&whole);
                whole = scaled(whole, target / again)?;
                longer *= amount(&whole) / tried;
            }
        }
        let each: Vec<f64> = tried.iter().map(|tried| tried.measured).collect();
        let sum = |of: fn(&Tried) -> f64| tried.iter().map(of).sum::<f64>();
        Ok(SizedPart {
            index,
            size: whole,
            seconds: longer * sum(|tried| tried.measured),
            lays_out_seconds: amount(&whole) / amount(&size) * sum(|tried| tried.laid_out),
            slowest: SlowestSide::of(&each),
        })
    }

    /// Returns true if a workload writes files that its preparation did not lay out.
    fn writes_new_blocks(&self, index: usize, size: WorkloadSize) -> Result<bool, Failure> {
        let cost = self.asked.workload(index, size)?.cost();
        Ok(cost.disk_bytes > cost.prepare_bytes)
    }

    /// Makes one trial in each of these directories, one after the other.
    fn trials(
        &self,
        index: usize,
        size: WorkloadSize,
        sides: &[usize],
    ) -> Result<Vec<Tried>, Failure> {
        let workload = self.asked.workload(index, size)?;
        let trial = |side: &usize| {
            let directory = self.roots[*side].path().join(".stackrace-trial");
            self.trial(&*workload, &directory, self.asked.directories[*side].0)
        };
        sides.iter().map(trial).collect()
    }

    /// A trial of all phases of a workload, in a directory that is gone afterwards.
    fn trial(
        &self,
        workload: &dyn Workload,
        directory: &Path,
        name: &str,
    ) -> Result<Tried, Failure> {
        self.asked.doing.now(&self.step, name);
        if self.asked.interrupt.raised() {
            return Err(temporary::interrupted(self.context));
        }
        self.host
            .create_dir(directory)
            .map_err(|error| refused(name, &error))?;
        let trial = SingleTrial {
            workload,
            directory,
            existing: None,
            cold: self.asked.cold,
            seed: 1,
            interrupt: self.asked.interrupt,
        };
        let mut settling = Settling {
            probe: self,
            directory,
            // Names and sizes of many files are cached elsewhere than their pages.
            many: workload.cost().files > 1,
        };
        let tried = trial.run(&mut settling);
        // A quota shows only to the one who meets it.
        let needed = workload.cost().disk_bytes;
        self.asked.room.note(name, needed, tried.cause.as_ref());
        // What stays is found and removed with the directory above it.
        let _ = self.host.remove_tree(directory);
        if let Some(left) = &tried.left {
            return Err(refused(name, left));
        }
        match tried.ended {
            // Half a trial is none.
            Ended::Interrupted => Err(temporary::interrupted(self.context)),
            // The time until an operation failed says nothing of what the work takes.
            Ended::Failed { error } => Err(match tried.advice.is_empty() {
                true => refused(name, &error),
                false => refused(name, &error).next(tried.advice),
            }),
            Ended::Complete => {
                let elapsed = tried.outcomes.iter().map(|outcome| outcome.elapsed_ns);
                Ok(Tried {
                    measured: (elapsed.sum::<u64>() as f64 / 1e9).max(1e-6),
                    laid_out: tried.laid_out_ns as f64 / 1e9,
                })
            }
        }
    }

    /// Settles a directory as before a trial that counts. Trials of many files alone drop all caches: what they drop makes the first writes after it slow, and a size too
    /// small is worse than one too large.
    fn settle(&self, directory: &Path, many: bool) {
        if self.asked.cold {
            settle(self.host, directory, many, self.asked.interrupt);
        }
    }

    /// Bytes per second that data are laid out with.
    fn lays_out(&mut self) -> Result<f64, Failure> {
        if let Some(rate) = self.lays_out {
            return Ok(rate);
        }
        let least = WorkloadSize::LEAST.bytes;
        let bytes = self.asked.bytes.map_or(least, |bytes| bytes.min(least));
        let mut seconds = 0.0;
        for (root, (name, _)) in self.roots.iter().zip(&self.asked.directories) {
            let target = IoTarget {
                path: root.path().join("data"),
                bytes,
            };
            let control = Control::ended_by(self.asked.interrupt.stop_flag());
            self.asked.doing.now(&self.step, name);
            let began = SystemClock.now_ns();
            // Random: storage that compresses or deduplicates would look faster than it is.
            let laid_out = stackrace_engine::lay_out(&[target], Content::Random, 1, &control);
            if control.stopped() {
                return Err(temporary::interrupted(self.context));
            }
            laid_out.map_err(|error| refused(name, &error))?;
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
    use stackrace_study::purpose;

    struct Unseen;

    impl Preparation for Unseen {
        fn now(&self, _: &str, _: &str) {}
        fn note(&self, _: &str) {}
    }

    #[test]
    fn files_that_grow_by_any_factor_fit_into_the_room_with_their_copy() {
        const ROOM: u64 = 34 << 20;
        let files = purpose::find("files").unwrap();
        let interrupt = Interrupt::default();
        let sizing = Sizing {
            interrupt: &interrupt,
            doing: &Unseen,
            directories: Vec::new(),
            parts: files.parts,
            seconds: 1.0,
            room: TrialRoom::of(ROOM * 3, 1),
            bytes: None,
            cold: true,
            make: &of_purpose,
        };
        for index in 0..files.parts.len() {
            let grown = sizing.scaled(index, WorkloadSize::LEAST, 1e6).unwrap();
            let needed = sizing.workload(index, grown).unwrap().cost().disk_bytes;
            // Most of the room is used, and no more.
            assert!((ROOM..=ROOM * 2).contains(&needed), "{needed}");
            let few = sizing.scaled(index, WorkloadSize::LEAST, 2.0).unwrap();
            assert_eq!(few.files, 2 * WorkloadSize::LEAST.files);
        }
    }
}
