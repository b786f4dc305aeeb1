//! What a workload is: its kind, what it costs, where it works.

use std::any::Any;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use stackrace_engine::promises::Acknowledged;
use stackrace_engine::shape::Permutation;
use stackrace_engine::{ContentLedger, Control, OpError, PhaseOutcome, StartError};

use super::kept::{DataLayout, DataUse};
use super::metric::{self, Figure};
use stackrace_base::event::{
    FailureCause, LedgerLine, MetricHead, OperationsOf, RecordedApplication,
};
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_machine::host::{Host, HostError, Needs};

/// Width of one step of every time series, ns: 100 ms.
pub const SLICE_NS: u64 = 100_000_000;

/// Degree to which a workload may be measured in slices, in turn with the same one on other stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slicing {
    /// No slices: the workload leaves work behind that goes on in the slices of others, or has a
    /// cache of its own to fill.
    Never,
    /// Slices of writes, each ending with its data handed over: only where the run itself shows
    /// that slices change nothing.
    Writes,
    /// Slices of reads, of data that nothing changes.
    Reads,
}

/// Place and means of a trial.
pub struct Place<'a> {
    /// An empty directory of the trial's own.
    pub directory: &'a Path,
    /// Bare devices, where the stack leaves them to the workload; the directory then lies elsewhere.
    pub bare: Option<BareDevices<'a>>,
    /// A file or device that exists and is only read, in place of data of the workload's own; only
    /// for workloads whose [`Workload::on_existing`] allows it.
    pub existing: Option<&'a Path>,
    /// Set if a phase begins with its data out of the page cache; each pass over them then does too.
    pub cold: bool,
    /// Content the data must have, for all phases of a trial that is verified; empty in the
    /// beginning.
    pub ledger: &'a OnceLock<ContentLedger>,
    /// The machine that its programs run on, where that is not this one: nothing but programs can be
    /// measured there.
    pub elsewhere: Option<&'a dyn Host>,
    /// Its place among the processes that measure one storage at once; `None` if it is alone.
    pub seat: Option<Seat<'a>>,
    /// Seed from which everything random in this trial follows; the same for every configuration of
    /// a round.
    pub seed: u64,
    /// Control for stopping and watching.
    pub control: &'a Control,
}

impl<'a> Place<'a> {
    /// An empty directory on this machine, by one process alone; what it reads may be in memory.
    pub fn alone(
        directory: &'a Path,
        seed: u64,
        ledger: &'a OnceLock<ContentLedger>,
        control: &'a Control,
    ) -> Self {
        Self {
            directory,
            bare: None,
            existing: None,
            cold: false,
            ledger,
            elsewhere: None,
            seat: None,
            seed,
            control,
        }
    }
}

/// One of the processes that measure one storage at once.
#[derive(Debug, Clone, Copy)]
pub struct Seat<'a> {
    /// Its number, from 0.
    pub rank: u32,
    /// Number of these processes, at least 1.
    pub of: u32,
    /// The directory that all of them share.
    pub shared: &'a Path,
    /// The seed that all of them have in common; that of each follows from it and its rank.
    pub seed: u64,
}

impl Seat<'_> {
    /// The directory of one of them, which is in the shared one.
    pub fn directory_of(&self, rank: u32) -> PathBuf {
        self.shared.join(format!("client-{rank}"))
    }

    /// The seed of one of them: the same blocks of two clients could be kept once.
    pub fn seed_of(&self, rank: u32) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&u64::from(rank).to_le_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(bytes)
    }

    /// Returns the rank whose data this process visits.
    pub fn visited(&self, visits: Visits) -> u32 {
        match visits {
            Visits::Own => self.rank,
            Visits::Next => (self.rank + 1) % self.of.max(1),
            Visits::Shuffled => {
                let ranks = Permutation::new(u64::from(self.of), self.seed);
                // A permutation of so many ranks has only ranks.
                ranks.apply(u64::from(self.rank)) as u32
            }
        }
    }
}

/// The data a process visits, of those that each of them made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visits {
    /// The data that it made itself.
    Own,
    /// The data of the next rank: what one client wrote another one reads.
    Next,
    /// The data of a rank that is drawn, each once.
    Shuffled,
}

/// Bare devices, for a workload that makes pools of ZFS on them: see [`Workload::wants_bare`].
#[derive(Clone, Copy)]
pub struct BareDevices<'a> {
    /// The machine they are on.
    pub host: &'a dyn Host,
    /// The devices, all of which may be written over.
    pub devices: &'a [PathBuf],
    /// Names of the pools that may be made; the journal has them already.
    pub pools: &'a [String; 2],
}

/// Cost of a trial, for the plan. Bytes; ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes written before the clock starts.
    pub prepare_bytes: u64,
    /// Bytes moved while it runs; `None` if that depends on the storage.
    pub measured_bytes: Option<u64>,
    /// Bytes needed on disk at once.
    pub disk_bytes: u64,
    /// Longest time the measured part may take; `None` if it is fixed work.
    pub measured_ns: Option<u64>,
    /// Number of files made.
    pub files: u64,
    /// Bytes it reads back or overwrites: if they fit in memory, caches matter.
    pub working_set_bytes: u64,
}

impl Cost {
    /// Returns what it costs where so many machines do it at once, each on data of its own. Each
    /// needs only its own share in its memory.
    pub fn on(self, machines: usize) -> Self {
        // A study may ask for absurd sizes: the plan shows them, and must not wrap around.
        let times = |bytes: u64| bytes.saturating_mul(machines as u64);
        Self {
            prepare_bytes: times(self.prepare_bytes),
            measured_bytes: self.measured_bytes.map(times),
            disk_bytes: times(self.disk_bytes),
            files: times(self.files),
            // Machines work at the same time, so that the time stays that of one.
            ..self
        }
    }
}

/// Reason why a workload could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{said}{}{next}", if next.is_empty() { "" } else { "; " })]
pub struct WorkloadError {
    /// Trouble, as a person reads it.
    pub said: String,
    /// What to do about it, one clause that begins with a verb; empty if there is nothing to be said.
    pub next: String,
    /// Cause as the system gave it; `None` if it is none of the system's, or is not known as a value.
    pub cause: Option<FailureCause>,
}

impl WorkloadError {
    /// The same with other words, which say more.
    #[must_use]
    pub fn saying(self, said: String) -> Self {
        Self { said, ..self }
    }

    /// The same with what was tried before its words; its cause stays.
    #[must_use]
    pub fn while_doing(self, what: &str) -> Self {
        let said = format!("{what}: {}", self.said);
        self.saying(said)
    }
}

/// Objects that a check of the workload's own found after a power cut, or what it said where it failed over them.
pub type OwnFindings = Result<Vec<String>, String>;

/// One workload with its settings.
pub trait Workload: Send + Sync {
    /// Summary in one sentence, with its numbers.
    fn summary(&self) -> String;
    /// The metrics of a workload of one phase, the primary one first, each with how it follows from
    /// the outcome. A workload of several phases implements `metrics` and `evaluate` instead; one whose
    /// figures are reported to it implements `metrics` alone.
    fn figures(&self) -> Vec<Figure<'_>> {
        Vec::new()
    }
    /// Metrics it reports, the primary one first.
    fn metrics(&self) -> Vec<MetricHead> {
        metric::heads(self.figures())
    }
    /// Bytes, files and time that one trial takes.
    fn cost(&self) -> Cost;
    /// Names of its phases, in order.
    fn phases(&self) -> Vec<&'static str>;
    /// Programs that it starts, and what else it needs of the machine it runs on.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// Commands that its settings have it run, as they would be typed; a study's need the
    /// user's permission.
    fn commands(&self) -> Vec<String> {
        Vec::new()
    }
    /// Has the program that it starts check what it will be given, on the machine where it will run; none: all is
    /// well, or there is nothing to check. Called where everything that it needs is there.
    fn refused_on(&self, host: &dyn Host) -> Option<String> {
        let _ = host;
        None
    }
    /// Files of this machine that it reads, beside its data: a guest of the lab is given copies at the same paths.
    fn reads(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Whether the stack is settled (caches dropped, remounted) before a phase. Only a workload
    /// whose phases are to find what the one before left in memory says no, and never to the first.
    fn settles(&self, _phase: usize) -> bool {
        true
    }
    /// Reads what is to be in memory when the clock starts; called once the stack is settled.
    ///
    /// # Errors
    /// The system refuses.
    fn warm(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        Ok(())
    }
    /// Returns true if it works on bare devices; if not, it works in a directory.
    fn wants_bare(&self) -> bool {
        false
    }
    /// Says what it does with the data it lays out: whether they can serve the next trial too.
    fn data_use(&self) -> DataUse {
        DataUse::Spent
    }
    /// The data it needs and leaves, where another workload could work on them; `None` if they are its
    /// own.
    fn data_layout(&self) -> Option<DataLayout> {
        None
    }
    /// Returns true if it works on the data that the workload before it left.
    fn uses_data_before(&self) -> bool {
        false
    }
    /// Returns true if the sizes of its files are drawn from the seed: another seed is other work
    /// then.
    fn draws_sizes(&self) -> bool {
        false
    }
    /// Says whether it may be measured in slices.
    fn slicing(&self) -> Slicing {
        Slicing::Never
    }
    /// Operations per second the open loop of a phase offers; `None` if it is a closed loop.
    fn offered_per_s(&self, _phase: usize) -> Option<f64> {
        None
    }
    /// Most operations of a kind (`read`, `write`, `fsync`) that one trial does; `None` if only the trial tells.
    fn operations_most(&self, _op: &str) -> Option<u64> {
        None
    }
    /// Checks that a file or device that exists can take the place of its data, and will only be
    /// read.
    ///
    /// # Errors
    /// The reason, as a sentence for the user.
    fn on_existing(&self) -> Result<(), WorkloadError> {
        Err(trouble("its data are files it makes itself"))
    }
    /// The summary where it reads the beginning of such a file or device.
    fn summary_on_existing(&self) -> String {
        self.summary()
    }
    /// Lays out what the first phase needs. Not measured.
    ///
    /// # Errors
    /// What was tried, on what, what the system said.
    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError>;
    /// Runs one phase. A failure in mid-phase is in the outcome, with what was measured till then.
    ///
    /// # Errors
    /// The phase could not begin.
    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError>;
    /// As [`Workload::measure`]; `told` hears of each promised operation at once.
    ///
    /// # Errors
    /// As [`Workload::measure`].
    fn measure_told(
        &self,
        phase: usize,
        place: &Place<'_>,
        _told: &dyn Acknowledged,
    ) -> Result<PhaseOutcome, WorkloadError> {
        self.measure(phase, place)
    }
    /// Lists what [`Workload::promised`] will say, before any operation was begun: those of one
    /// thread in their order.
    fn planned(&self, _place: &Place<'_>) -> Vec<LedgerLine> {
        Vec::new()
    }
    /// Lists what each operation of a phase was promised, and before them the data at rest; empty
    /// if its operations are promised nothing.
    fn promised(&self, _place: &Place<'_>, _outcome: &PhaseOutcome) -> Vec<LedgerLine> {
        Vec::new()
    }
    /// Objects of its ledger that a check of its own finds in the trial's directory after a power cut; `None` if what
    /// it promises is found by reading files or rows.
    ///
    /// # Errors
    /// The check could not look: what is there is not known.
    fn found_after_cut(&self, directory: &Path) -> Result<Option<OwnFindings>, WorkloadError> {
        let _ = directory;
        Ok(None)
    }
    /// The recorded application that it replays; its home is not looked for. `None` for what repeats no recording.
    fn recorded(&self) -> Option<RecordedApplication> {
        None
    }
    /// Name of the configuration, or a level of it, on the storage where that was recorded; `None` if it is not said.
    fn home(&self) -> Option<&str> {
        None
    }
    /// Ends what is left of a trial, whatever came of it, before its directory is removed. Not measured.
    ///
    /// # Errors
    /// What could not be ended.
    fn finish(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        let _ = place;
        Ok(())
    }
    /// Value of each metric, in the order of [`Workload::metrics`], from one outcome per phase.
    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        match &self.figures()[..] {
            [] => metric::reported(outcomes, self.metrics().len()),
            figures => metric::values(figures, outcomes),
        }
    }
    /// Returns how finely each of these values is known, in its own unit; `None` if no coarser than
    /// its digits.
    fn resolution(&self, outcomes: &[PhaseOutcome], values: &[Option<f64>]) -> Vec<Option<f64>> {
        let timed = self.cost().measured_ns.is_some();
        metric::resolution(&self.metrics(), values, outcomes, timed)
    }
}

/// One kind of workload.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadKind {
    /// The word in a study.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Source of its semantics.
    pub source: &'static str,
    /// Every setting that a study may give it.
    pub settings: &'static [SettingDoc],
    /// A working example in TOML.
    pub example: &'static str,
    /// Whose operations it does.
    pub operations: OperationsOf,
    /// Set if its figures are rates and latencies of the engine, so that those of several clients make one.
    pub mergeable: bool,
    /// Set if it does one thing from the first to the last moment of a phase, so that its rate ought to be
    /// level. The rate of a tree of files of all sizes need not be.
    pub level: bool,
    /// The way to have it on a machine with nothing but a shell.
    pub over_shell: OverShell,
    /// Checks the settings and makes the workload.
    pub parse: fn(&Settings) -> Result<Box<dyn Workload>, Refusal>,
}

impl WorkloadKind {
    /// What holds of a kind that does not say otherwise; the rest each has to say.
    pub const PLAIN: Self = Self {
        name: "",
        summary: "",
        source: "",
        settings: &[],
        example: "",
        operations: OperationsOf::Itself,
        mergeable: false,
        level: false,
        over_shell: OverShell::Never,
        parse: |settings| Err(Refusal::at(&settings.span, "there is no such workload", "")),
    };
}

/// A trouble from anything that explains itself, with its cause where that is a value.
pub fn trouble<E: Display + 'static>(error: E) -> WorkloadError {
    WorkloadError {
        cause: cause_of(&error),
        said: said(&error),
        next: String::new(),
    }
}

/// The same of a file, which the system's error does not name.
pub fn trouble_at(path: &Path, error: std::io::Error) -> WorkloadError {
    trouble(error).while_doing(&path.shown().to_string())
}

/// The same with what to do about it, which begins with a verb.
pub fn advised<E: Display + 'static>(error: E, next: &str) -> WorkloadError {
    WorkloadError {
        next: next.to_owned(),
        ..trouble(error)
    }
}

/// An error in words, whatever it is.
fn said<E: Display + 'static>(error: &E) -> String {
    let of_system = (error as &dyn Any).downcast_ref::<std::io::Error>();
    of_system.map_or_else(|| error.to_string(), InWords::in_words)
}

/// Cause of an error of a kind that has it as a value. One place, so that no workload forgets it.
fn cause_of(error: &dyn Any) -> Option<FailureCause> {
    if let Some(error) = error.downcast_ref::<HostError>() {
        return error.cause();
    }
    let started = || error.downcast_ref::<StartError>()?.errno();
    if let Some(error) = error.downcast_ref::<OpError>() {
        return cause_of_operation(error);
    }
    let called = || error.downcast_ref::<std::io::Error>()?.raw_os_error();
    started().or_else(called).map(FailureCause::Errno)
}

/// Cause of a failed operation; `None` if the data are wrong, which no system told.
pub fn cause_of_operation(error: &OpError) -> Option<FailureCause> {
    Some(error.errno)
        .filter(|errno| *errno != 0)
        .map(FailureCause::Errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_engine::Op;

    #[test]
    fn the_cause_of_a_trouble_is_the_number_that_the_system_gave() {
        let full = || std::io::Error::from_raw_os_error(28);
        let operation = || OpError {
            op: Op::Write,
            path: "/mnt/a/data".into(),
            offset: Some(0),
            errno: 28,
            detail: String::new(),
        };
        let path = Path::new("/mnt/a");
        let of_the_system = [
            trouble(full()),
            trouble_at(path, full()),
            advised(full(), "make room"),
            trouble(operation()),
            advised(StartError::LayOut(operation()), "make room"),
        ];
        for one in of_the_system {
            assert_eq!(one.cause, Some(FailureCause::Errno(28)), "{one}");
            assert!(one.said.contains("No space left on device"), "{one}");
        }
        // Apart, so that a verdict quotes the one and the last line of a page the other.
        let advised = advised("it is full", "make room");
        assert_eq!(
            (&*advised.said, &*advised.next),
            ("it is full", "make room")
        );
        assert_eq!(advised.to_string(), "it is full; make room");
        let wrong_data = OpError {
            errno: 0,
            detail: "wrong data".to_owned(),
            ..operation()
        };
        for none in [trouble("it is not so"), trouble(wrong_data)] {
            assert_eq!(none.cause, None, "{none}");
        }
    }
}
