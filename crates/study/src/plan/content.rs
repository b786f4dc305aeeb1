//! What a plan says, and what must be known of a machine to say it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::study::Configuration;
use stackrace_base::event::{Decide, WorkloadHead};

/// Standard deviations of the ratio of two configurations from round to round for which the
/// detectable difference is shown: a quiet, an ordinary and a noisy storage.
pub(super) const NOISES: [f64; 3] = [0.01, 0.03, 0.10];
/// Times a stack that is preconditioned is written over from beginning to end: twice its capacity,
/// as the SNIA Solid State Storage Performance Test Specification has it.
pub const FILLS: u32 = 2;
/// Commands as they would be typed, or why there are none.
pub(super) type Commands = Result<Vec<String>, String>;

/// What must be known of the machine.
pub struct MachineFacts<'a> {
    /// The exact commands that set up one configuration, by index, or why it cannot be set up.
    pub commands: &'a dyn Fn(usize, &Configuration) -> Commands,
    /// What this machine lacks to set up the configurations, none twice, and what to do about it.
    pub missing: &'a dyn Fn() -> Vec<String>,
    /// Bytes free in the file system a path lies on.
    pub free_bytes: &'a dyn Fn(&Path) -> Option<u64>,
    /// How fast its storage is.
    pub speed: StorageSpeed,
    /// Memory; none: not known.
    pub memory_bytes: Option<u64>,
    /// Where disk files lie for which the study names no directory.
    pub scratch: &'a Path,
}

/// What is known of how fast data move.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum StorageSpeed {
    /// Nothing.
    #[default]
    Unknown,
    /// The rates of models, B/s: of the slowest drive alone, and of all drives of the fastest stack.
    Modelled(Bounds),
}

/// A figure known only to lie between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// The low end.
    pub least: f64,
    /// The high end.
    pub most: f64,
}

/// What a study will do.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Title of the study.
    pub title: String,
    /// The question at length.
    pub question: Option<String>,
    /// Where the study was read from.
    pub study_name: String,
    /// Everything random follows from it.
    pub seed: u64,
    /// What is asked and when to stop.
    pub decide: Decide,
    /// Where configurations are tried; none: at one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<PlannedPlaces>,
    /// Every configuration with its commands.
    pub configurations: Vec<PlannedConfiguration>,
    /// What each configuration goes through, in order.
    pub workloads: Vec<PlannedWorkload>,
    /// Order of the first round, by index of configuration.
    pub first_order: Vec<usize>,
    /// Whether a round goes workload by workload: the order is then that of the first one.
    pub workload_by_workload: bool,
    /// What is written and read.
    pub moved: MovedBytes,
    /// What must be free.
    pub disk: Vec<DiskNeed>,
    /// How long it takes.
    pub time: TimeEstimate,
    /// What virtual time costs here; none: the study keeps real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<VirtualTime>,
    /// Comparisons the probability of error is shared among, at each check.
    pub comparisons: usize,
    /// When the results are checked, and what could be told then.
    pub looks: Vec<PlannedLook>,
    /// What the reader should think about first.
    pub lints: Vec<Lint>,
}

impl Plan {
    /// What `run` refuses of it.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        let problems = self
            .lints
            .iter()
            .filter(|lint| lint.weight == LintWeight::Problem);
        problems.map(|lint| lint.text.as_str())
    }

    /// Adds something that `run` refuses.
    pub fn add_problem(&mut self, text: String) {
        let weight = LintWeight::Problem;
        self.lints.push(Lint { weight, text });
    }
}

/// The places a study is tried at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedPlaces {
    /// The factor they are the levels of.
    pub factor: String,
    /// What they are called.
    pub levels: Vec<String>,
}

/// A configuration, as a plan shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedConfiguration {
    /// As reports name it.
    pub name: String,
    /// Its layers as asked for, from the bottom up.
    pub layers: Vec<String>,
    /// Commands that set it up, as they would be typed.
    pub commands: Vec<String>,
}

/// A workload, as a plan shows it.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedWorkload {
    /// As the record will describe it.
    #[serde(flatten)]
    pub head: WorkloadHead,
    /// How long its measured part takes, seconds; none: that depends on the storage.
    pub measured_seconds: Option<f64>,
    /// How the configurations take turns within it; none: each is measured in one go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<PlannedSlices>,
}

/// How the configurations take turns within a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedSlices {
    /// How long one of them works before the next one has its turn, ns.
    pub slice_ns: u64,
    /// Whether the first three rounds also measure in one go, and slices stay only where both agree.
    pub on_trial: bool,
}

/// Bytes moved; what is moved by the clock is not in it. Most of it is written: what is read has
/// been written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MovedBytes {
    /// By the largest trial.
    pub trial_bytes: u64,
    /// By a round of all configurations.
    pub round_bytes: u64,
    /// By all rounds, if none is spared.
    pub total_bytes: u64,
    /// Whether some workloads move as much as the storage can, on top of that.
    pub open_ended: bool,
    /// Room the data of the largest trial take.
    pub data_bytes: u64,
    /// What the study asks for to bring its stacks to rest; none: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PlannedPrecondition>,
}

/// What it takes to bring the stacks of all configurations to their steady state once, on top of what
/// the trials move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedPrecondition {
    /// In each round; else before the first one alone.
    pub each_round: bool,
    /// Bytes, with as few passes as there can be.
    pub least_bytes: u64,
    /// Bytes, with as many.
    pub most_bytes: u64,
}

/// Room needed at once in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskNeed {
    /// Directory.
    pub path: PathBuf,
    /// Bytes that must be free there.
    pub needed_bytes: u64,
    /// Bytes free; none: not known.
    pub free_bytes: Option<u64>,
}

/// How long it takes, as far as that can be known before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeEstimate {
    /// Seconds of one round.
    pub round_seconds: Bounds,
    /// Seconds of the run: from a verdict at the first check to the last round that fits.
    pub run_seconds: Bounds,
    /// Rounds that fit into the time allowed; the low end goes with slow rounds.
    pub rounds: (u32, u32),
    /// Names of workloads whose time is not known at all: they come on top.
    pub unknown: Vec<String>,
    /// What was assumed.
    pub assumed: String,
}

/// What a run in virtual time costs the machine it is made on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VirtualTime {
    /// Guests of a round.
    pub guests: usize,
    /// How many of them run side by side.
    pub jobs: usize,
    /// Seconds of real time that the run takes.
    pub wall_seconds: Bounds,
    /// Bytes that the drives of a guest hold: of the largest trial alone, and of all trials if nothing
    /// that is deleted is given back.
    pub content_bytes: (u64, u64),
    /// Bytes of a guest's memory that its drives may take.
    pub room_bytes: u64,
    /// Bytes that each guest may keep on this machine's disk beyond that.
    pub disk_bytes: u64,
}

/// What a check after so many rounds can show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedLook {
    /// After so many complete rounds.
    pub rounds: u32,
    /// Probability of error it may spend on one comparison.
    pub alpha: f64,
    /// Smallest difference (0.1: 10 %) that could be told, for each of [`NOISES`].
    pub detectable: [Option<f64>; 3],
}

/// Something to think about before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lint {
    /// How bad.
    pub weight: LintWeight,
    /// One sentence.
    pub text: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LintWeight {
    /// The run would fail, or end without an answer: `run` refuses it.
    Problem,
    /// The answer may be another than the reader thinks.
    Note,
}

/// Turns nanoseconds into seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
