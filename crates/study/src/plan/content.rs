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

/// Facts about the machine that a plan needs.
pub struct MachineFacts<'a> {
    /// The exact commands that set up one configuration, by index, or why it cannot be set up.
    pub commands: &'a dyn Fn(usize, &Configuration) -> Commands,
    /// Lists what this machine lacks to set up the configurations, none twice, and what to do about
    /// it.
    pub missing: &'a dyn Fn() -> Vec<String>,
    /// Bytes free in the file system a path lies on.
    pub free_bytes: &'a dyn Fn(&Path) -> Option<u64>,
    /// Speed of its storage.
    pub speed: StorageSpeed,
    /// Bytes of memory; `None` if not known.
    pub memory_bytes: Option<u64>,
    /// Directory of the disk files for which the study names none.
    pub scratch: &'a Path,
}

/// Knowledge of how fast data move.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum StorageSpeed {
    /// Nothing is known.
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

/// Everything a study will do.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Title of the study.
    pub title: String,
    /// The question at length.
    pub question: Option<String>,
    /// Name of the place the study was read from.
    pub study_name: String,
    /// Seed from which everything random follows.
    pub seed: u64,
    /// The question asked, and the rule when to stop.
    pub decide: Decide,
    /// Places where configurations are tried; `None` if there is one place only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<PlannedPlaces>,
    /// Every configuration with its commands.
    pub configurations: Vec<PlannedConfiguration>,
    /// Workloads that each configuration goes through, in order.
    pub workloads: Vec<PlannedWorkload>,
    /// Order of the first round, by index of configuration.
    pub first_order: Vec<usize>,
    /// Set if a round goes workload by workload: the order is then that of the first one.
    pub workload_by_workload: bool,
    /// Bytes written and read.
    pub moved: MovedBytes,
    /// Room that must be free.
    pub disk: Vec<DiskNeed>,
    /// Estimate of the time it takes.
    pub time: TimeEstimate,
    /// Cost of virtual time on this machine; `None` if the study keeps real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<VirtualTime>,
    /// Comparisons the probability of error is shared among, at each check.
    pub comparisons: usize,
    /// Checks of the results: when they are made, and what could be told then.
    pub looks: Vec<PlannedLook>,
    /// Points the reader should think about first.
    pub lints: Vec<Lint>,
}

impl Plan {
    /// Returns the problems for which `run` refuses it.
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
    /// Names of the places.
    pub levels: Vec<String>,
}

/// A configuration, as a plan shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedConfiguration {
    /// Name, as reports have it.
    pub name: String,
    /// Its layers as asked for, from the bottom up.
    pub layers: Vec<String>,
    /// Commands that set it up, as they would be typed.
    pub commands: Vec<String>,
}

/// A workload, as a plan shows it.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedWorkload {
    /// Description, as the record will have it.
    #[serde(flatten)]
    pub head: WorkloadHead,
    /// Duration of its measured part, seconds; `None` if that depends on the storage.
    pub measured_seconds: Option<f64>,
    /// Turns that the configurations take within it; `None` if each is measured in one go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<PlannedSlices>,
}

/// Turns that the configurations take within a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedSlices {
    /// Time that one of them works before the next one has its turn, ns.
    pub slice_ns: u64,
    /// Set if the first three rounds also measure in one go, and slices stay only where both agree.
    pub on_trial: bool,
}

/// Bytes moved; what is moved by the clock is not in it. Most of it is written: what is read has
/// been written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MovedBytes {
    /// Bytes moved by the largest trial.
    pub trial_bytes: u64,
    /// Bytes moved by a round of all configurations.
    pub round_bytes: u64,
    /// Bytes moved by all rounds, if none is spared.
    pub total_bytes: u64,
    /// Set if some workloads move as much as the storage can, on top of that.
    pub open_ended: bool,
    /// Room the data of the largest trial take.
    pub data_bytes: u64,
    /// Work the study asks for to bring its stacks to rest; `None` if it asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<PlannedPrecondition>,
}

/// Work that brings the stacks of all configurations to their steady state once, on top of what the
/// trials move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedPrecondition {
    /// Set if it is done in each round; else it is done before the first one alone.
    pub each_round: bool,
    /// Bytes, with as few passes as there can be.
    pub least_bytes: u64,
    /// Bytes, with as many passes as there can be.
    pub most_bytes: u64,
}

/// Room needed at once in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskNeed {
    /// Directory.
    pub path: PathBuf,
    /// Bytes that must be free there.
    pub needed_bytes: u64,
    /// Bytes free; `None` if not known.
    pub free_bytes: Option<u64>,
}

/// Time the run takes, as far as that can be known before.
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
    /// Assumptions it is based on.
    pub assumed: String,
}

/// Cost of a run in virtual time to the machine it is made on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VirtualTime {
    /// Guests of a round.
    pub guests: usize,
    /// Number of them that run side by side.
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

/// A check after so many rounds, and what it can show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedLook {
    /// Number of complete rounds after which it is made.
    pub rounds: u32,
    /// Probability of error it may spend on one comparison.
    pub alpha: f64,
    /// Smallest difference (0.1: 10 %) that could be told, for each of [`NOISES`].
    pub detectable: [Option<f64>; 3],
}

/// Something to think about before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lint {
    /// Weight of the point.
    pub weight: LintWeight,
    /// The point, in one sentence.
    pub text: String,
}

/// Weight of a remark on a plan.
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
