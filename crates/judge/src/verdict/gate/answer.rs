//! What a gate is asked, and what it answers.

use serde::Serialize;

use crate::verdict::Interval;
use crate::verdict::lacking::Lacking;
use stackrace_base::event::MetricHead;

/// The change a gate lets pass, and the figures it looks at.
#[derive(Debug, Clone)]
pub struct Threshold {
    /// Worse by more than this share is too much (0.05: 5 %).
    pub worse_than: f64,
    /// Least probability that everything said holds together; `None` means as the run was asked.
    pub confidence: Option<f64>,
    /// Workloads by name; empty for the overall figure, or all that have the metric.
    pub workloads: Vec<String>,
    /// A metric by name; `None` for the primary ones.
    pub metric: Option<String>,
    /// Other work or another machine is compared all the same, and the notes say so.
    pub anyway: bool,
}

/// Reasons there can be no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateError {
    /// A name that is not there.
    Unknown {
        /// `workload`, `metric`.
        what: &'static str,
        /// The name as it was given.
        name: String,
        /// The names that the runs have.
        valid: Vec<String>,
    },
    /// The two runs have no overall figure in common.
    NothingInCommon,
    /// The runs did other work, or ran on another machine: what differs.
    OtherWork(Vec<String>),
    /// A run, or a text that was imported, is there more than once.
    SameResults(String),
}

/// The answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// Shown not to be worse by more than what is allowed.
    Passed,
    /// Neither can be excluded.
    Undecided,
    /// Shown to be worse by more than that.
    Worse,
}

/// One of the two that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateSide {
    /// Ids of the runs that were taken together.
    pub runs: Vec<String>,
    /// Its name.
    pub configuration: String,
}

/// The answer on one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureAnswer {
    /// Name of the workload; empty for all workloads.
    pub workload: String,
    /// The metric; `None` for the overall figure.
    pub metric: Option<MetricHead>,
    /// Over the baseline, oriented so that above 1 is better; `None` if there are too few values.
    pub ratio: Option<Interval>,
    /// What is missing for a ratio; `None` if there is one.
    #[serde(skip)]
    pub(in crate::verdict) lacking: Option<Lacking>,
    /// Share by which the ratio may be off because the figures are given in steps (0.08 is 8 %); part of the interval,
    /// so that no pass rests on figures that are too coarse for it.
    pub resolution: f64,
    /// Rounds used of the baseline and of what is compared with it; of separate runs, how many runs.
    pub values: (usize, usize),
    /// Outcome of the figure.
    pub outcome: GateOutcome,
    /// Further rounds, or further runs of each, that would decide if all stayed as it is; `None` if
    /// decided, or more than anyone would wait for.
    pub more: Option<u32>,
}

/// The answer on all figures, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateAnswer {
    /// The worst of the answers.
    pub outcome: GateOutcome,
    /// The answer in plain words.
    pub sentence: String,
    /// The runs that are to pass.
    pub compared: GateSide,
    /// The side it is compared with.
    pub baseline: GateSide,
    /// The share that is too much.
    pub worse_than: f64,
    /// All answers hold together with at least this probability.
    pub confidence: f64,
    /// Compared round by round.
    pub paired: bool,
    /// One per figure asked about.
    pub answers: Vec<FigureAnswer>,
    /// Parts of the question the study did not ask before the results were there.
    pub undeclared: Vec<String>,
    /// Error of the first failed trial of either: no other answer counts then.
    pub failed: Option<GateFailure>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A trial that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateFailure {
    /// Name of its configuration.
    pub configuration: String,
    /// Error of the trial.
    pub error: String,
}
