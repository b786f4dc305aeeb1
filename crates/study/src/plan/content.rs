//! What a plan says, and what must be known of a machine to say it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::event::{Decide, WorkloadHead};
use crate::study::Configuration;

/// Standard deviations of the ratio of two configurations from round to round for which the
/// detectable difference is shown: a quiet, an ordinary and a noisy storage.
pub(crate) const NOISES: [f64; 3] = [0.01, 0.03, 0.10];
/// Times a stack that is preconditioned is written over from beginning to end: twice its capacity,
/// as the SNIA Solid State Storage Performance Test Specification has it.
pub(crate) const FILLS: u32 = 2;
/// Commands as they would be typed, or why there are none.
pub(crate) type Commands = Result<Vec<String>, String>;

/// What must be known of the machine.
pub(crate) struct MachineFacts<'a> {
    /// The exact commands that set up one configuration, by index, or why it cannot be set up.
    pub(crate) commands: &'a dyn Fn(usize, &Configuration) -> Commands,
    /// What this machine lacks to set up the configurations, none twice, and what to do about it.
    pub(crate) missing: &'a dyn Fn() -> Vec<String>,
    /// Bytes free in the file system a path lies on.
    pub(crate) free_bytes: &'a dyn Fn(&Path) -> Option<u64>,
    /// How fast its storage is.
    pub(crate) speed: StorageSpeed,
    /// Memory; none: not known.
    pub(crate) memory_bytes: Option<u64>,
    /// Where disk files lie for which the study names no directory.
    pub(crate) scratch: &'a Path,
}

/// What is known of how fast data move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StorageSpeed {
    /// Nothing.
    Unknown,
    /// The measured rate of writing, B/s.
    Measured(f64),
    /// The rates of models, B/s: of the slowest drive alone, and of all drives of the fastest stack.
    Modelled(Bounds),
}

/// A figure known only to lie between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Bounds {
    /// The low end.
    pub(crate) least: f64,
    /// The high end.
    pub(crate) most: f64,
}

/// What a study will do.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Plan {
    /// Title of the study.
    pub(crate) title: String,
    /// The question at length.
    pub(crate) question: Option<String>,
    /// Where the study was read from.
    pub(crate) study_name: String,
    /// Everything random follows from it.
    pub(crate) seed: u64,
    /// What is asked and when to stop.
    pub(crate) decide: Decide,
    /// Where configurations are tried; none: at one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) places: Option<PlannedPlaces>,
    /// Every configuration with its commands.
    pub(crate) configurations: Vec<PlannedConfiguration>,
    /// What each configuration goes through, in order.
    pub(crate) workloads: Vec<PlannedWorkload>,
    /// Order of the first round, by index of configuration.
    pub(crate) first_order: Vec<usize>,
    /// Whether a round goes workload by workload: the order is then that of the first one.
    pub(crate) workload_by_workload: bool,
    /// What is written and read.
    pub(crate) moved: MovedBytes,
    /// What must be free.
    pub(crate) disk: Vec<DiskNeed>,
    /// How long it takes.
    pub(crate) time: TimeEstimate,
    /// What virtual time costs here; none: the study keeps real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) virtual_time: Option<VirtualTime>,
    /// Comparisons the probability of error is shared among, at each check.
    pub(crate) comparisons: usize,
    /// When the results are checked, and what could be told then.
    pub(crate) looks: Vec<PlannedLook>,
    /// What the reader should think about first.
    pub(crate) lints: Vec<Lint>,
}

/// The places a study is tried at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedPlaces {
    /// The factor they are the levels of.
    pub(crate) factor: String,
    /// What they are called.
    pub(crate) levels: Vec<String>,
}

/// A configuration, as a plan shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PlannedConfiguration {
    /// As reports name it.
    pub(crate) name: String,
    /// Its layers as asked for, from the bottom up.
    pub(crate) layers: Vec<String>,
    /// Commands that set it up, as they would be typed.
    pub(crate) commands: Vec<String>,
}

/// A workload, as a plan shows it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlannedWorkload {
    /// As the record will describe it.
    #[serde(flatten)]
    pub(crate) head: WorkloadHead,
    /// How long its measured part takes, seconds; none: that depends on the storage.
    pub(crate) measured_seconds: Option<f64>,
    /// How the configurations take turns within it; none: each is measured in one go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slices: Option<PlannedSlices>,
}

/// How the configurations take turns within a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedSlices {
    /// How long one of them works before the next one has its turn, ns.
    pub(crate) slice_ns: u64,
    /// Whether the first three rounds also measure in one go, and slices stay only where both agree.
    pub(crate) on_trial: bool,
}

/// Bytes moved; what is moved by the clock is not in it. Most of it is written: what is read has
/// been written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct MovedBytes {
    /// By the largest trial.
    pub(crate) trial_bytes: u64,
    /// By a round of all configurations.
    pub(crate) round_bytes: u64,
    /// By all rounds, if none is spared.
    pub(crate) total_bytes: u64,
    /// Whether some workloads move as much as the storage can, on top of that.
    pub(crate) open_ended: bool,
    /// Room the data of the largest trial take.
    pub(crate) data_bytes: u64,
    /// What the study asks for to bring its stacks to rest; none: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) precondition: Option<PlannedPrecondition>,
}

/// What it takes to bring the stacks of all configurations to their steady state once, on top of what
/// the trials move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedPrecondition {
    /// In each round; else before the first one alone.
    pub(crate) each_round: bool,
    /// Bytes, with as few passes as there can be.
    pub(crate) least_bytes: u64,
    /// Bytes, with as many.
    pub(crate) most_bytes: u64,
}

/// Room needed at once in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DiskNeed {
    /// Directory.
    pub(crate) path: PathBuf,
    /// Bytes that must be free there.
    pub(crate) needed_bytes: u64,
    /// Bytes free; none: not known.
    pub(crate) free_bytes: Option<u64>,
}

/// How long it takes, as far as that can be known before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TimeEstimate {
    /// Seconds of one round.
    pub(crate) round_seconds: Bounds,
    /// Seconds of the run: from a verdict at the first check to the last round that fits.
    pub(crate) run_seconds: Bounds,
    /// Rounds that fit into the time allowed; the low end goes with slow rounds.
    pub(crate) rounds: (u32, u32),
    /// Names of workloads whose time is not known at all: they come on top.
    pub(crate) unknown: Vec<String>,
    /// What was assumed.
    pub(crate) assumed: String,
}

/// What a run in virtual time costs the machine it is made on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct VirtualTime {
    /// Guests of a round.
    pub(crate) guests: usize,
    /// How many of them run side by side.
    pub(crate) jobs: usize,
    /// Seconds of real time that the run takes.
    pub(crate) wall_seconds: Bounds,
    /// Bytes that the drives of a guest hold: of the largest trial alone, and of all trials if nothing
    /// that is deleted is given back.
    pub(crate) content_bytes: (u64, u64),
    /// Bytes of a guest's memory that its drives may take.
    pub(crate) room_bytes: u64,
    /// Bytes that each guest may keep on this machine's disk beyond that.
    pub(crate) disk_bytes: u64,
}

/// What a check after so many rounds can show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PlannedLook {
    /// After so many complete rounds.
    pub(crate) rounds: u32,
    /// Probability of error it may spend on one comparison.
    pub(crate) alpha: f64,
    /// Smallest difference (0.1: 10 %) that could be told, for each of [`NOISES`].
    pub(crate) detectable: [Option<f64>; 3],
}

/// Something to think about before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Lint {
    /// How bad.
    pub(crate) weight: LintWeight,
    /// One sentence.
    pub(crate) text: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LintWeight {
    /// The run will fail, or end without an answer.
    Problem,
    /// The answer may be another than the reader thinks.
    Note,
}

/// Turns nanoseconds into seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
