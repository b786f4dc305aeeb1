//! What is said of one comparison, and the rows a verdict is made of.

use libm::{exp, log as ln};
use serde::Serialize;
use stackrace_stats::{Ratio, Statement, resolution};

use super::lacking::Lacking;
use stackrace_base::event::{MetricHead, RunStarted};

/// State of the answer to the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Answered.
    Decided,
    /// The intervals hold both a difference that matters and none.
    Undecided,
    /// Fewer complete rounds than the first look needs.
    TooFew,
    /// Imported: there are ratios, and nothing that would carry a verdict.
    Unpaired,
}

/// The further work that would decide it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct More {
    /// Further rounds that are enough with a probability of 80 %; `None` if it cannot be told yet.
    pub rounds: Option<u32>,
    /// Time they take at the pace so far, seconds.
    pub seconds: Option<f64>,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Best estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The word for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "word")]
pub enum VerdictWord {
    /// B is better than A by at least … at most (ratios less 1: 0.1 is 10 %).
    Better {
        /// Low end.
        at_least: f64,
        /// High end.
        at_most: f64,
    },
    /// B is worse than A by at least … at most (shares of A lost).
    Worse {
        /// Low end.
        at_least: f64,
        /// High end.
        at_most: f64,
    },
    /// No difference larger than this.
    NoDifference {
        /// 0.03 is 3 %.
        larger_than: f64,
    },
    /// A hint, no claim: not decided, but the plain 80 % interval of these rounds excludes 1.
    Probably {
        /// True if B seems better, false if worse.
        better: bool,
    },
    /// The interval allows too much.
    Undecided,
    /// Too few rounds for an interval.
    TooFew,
    /// Results that were not made in turn.
    Unpaired {
        /// Numbers of runs of A and B.
        runs: (usize, usize),
        /// True if an interval could be given, and it excludes a ratio of 1.
        differs: bool,
    },
}

/// Fineness of the figures of a comparison: the last digit printed, the tick of a clock, whole operations. Both ends of
/// the interval are moved out by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Coarseness {
    /// Share by which the ratio may be off because of it (0.08 is 8 %); 0 if not at all.
    pub resolution: f64,
    /// Nothing is decided, and no number of rounds would: the resolution is larger than what is asked.
    #[serde(rename = "too_coarse")]
    pub undecidable: bool,
    /// Another program printed the figures; otherwise they are whole operations and times of our own.
    #[serde(skip)]
    pub printed: bool,
}

impl Coarseness {
    /// Coarseness of a statement about figures that another program `printed`, or not.
    pub(super) fn of(said: &Statement, printed: bool) -> Self {
        Self {
            undecidable: said.too_coarse,
            ..Self::known_to(said.resolution, printed)
        }
    }

    /// Coarseness of figures whose ratio may be off by so much on the log scale.
    pub(super) fn known_to(log_width: f64, printed: bool) -> Self {
        Self {
            resolution: resolution::share(log_width),
            undecidable: false,
            printed,
        }
    }
}

/// Two configurations, or two levels, on one workload or over all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Baseline.
    pub a: String,
    /// Compared with it.
    pub b: String,
    /// Levels of the other factors this is within; empty for all of them.
    pub within: String,
    /// Name of the workload; empty for all workloads (weighted geometric mean).
    pub workload: String,
    /// Metric; `None` for the overall figure.
    pub metric: Option<MetricHead>,
    /// B over A, oriented so that above 1 B is better; its ends are not numbers where no interval
    /// can be given (only of imported results).
    pub ratio: Option<Interval>,
    /// A's and B's value in the metric's unit, means over the rounds used; `None` over several workloads.
    pub values: Option<(f64, f64)>,
    /// Meaning of the interval.
    pub word: VerdictWord,
    /// The word as a sentence fragment (`12-19 % faster`).
    pub text: String,
    /// What is missing for an interval; `None` if there is one.
    #[serde(skip)]
    pub lacking: Option<Lacking>,
    /// Ratio in each round used, oriented the same way, with the round's number.
    pub rounds: Vec<(u32, f64)>,
    /// Robust companion (Hodges–Lehmann), from 8 rounds on.
    pub robust: Option<Interval>,
    /// Factor by which a configuration is better when it comes later in a round than the other one, if the intervals
    /// are without that; `None` if they are those of the rounds as they are.
    pub order_effect: Option<f64>,
    /// Fineness of the figures, which is part of the interval.
    #[serde(flatten)]
    pub coarse: Coarseness,
    /// Sides whose printed figure is the same in every round, to the last of many digits.
    #[serde(skip)]
    pub still: Vec<String>,
    /// The direction that an earlier check was certain of; `None` if there is none, or the word says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certain_before: Option<CertainBefore>,
    /// Log differences of the rounds that the intervals rest on.
    #[serde(skip)]
    pub logs: Vec<f64>,
}

impl Comparison {
    /// Name of its workload: the overall figure of a single one is that workload's.
    pub(super) fn workload_of<'a>(&'a self, head: &'a RunStarted) -> &'a str {
        match (self.workload.as_str(), &head.workloads[..]) {
            ("", [only]) => &only.name,
            (workload, _) => workload,
        }
    }

    /// The estimate of the rounds so far where they are too few for an interval: its ends are no numbers.
    pub(super) fn so_far(&self) -> Option<Interval> {
        let logs: Vec<f64> = self.rounds.iter().map(|(_, ratio)| ln(*ratio)).collect();
        (!logs.is_empty()).then(|| Interval {
            estimate: exp(stackrace_stats::mean(&logs)),
            low: f64::NAN,
            high: f64::NAN,
        })
    }
}

/// A direction that was certain at an earlier check, and that the interval of all rounds leaves open. The error is that of
/// all checks together, so it still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CertainBefore {
    /// The last round after which it was certain.
    pub round: u32,
    /// True if B was better.
    pub better: bool,
}

/// One configuration in the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigurationRow {
    /// Index in the record.
    pub configuration: usize,
    /// Name in reports.
    pub name: String,
    /// Level of each factor.
    pub levels: Vec<String>,
    /// Number of complete rounds after which it was dropped: it is measured no more. `None` if it is still in.
    pub dropped_after: Option<u32>,
    /// True if it was dropped because every comparison with it is answered, not because it was beaten or failed.
    pub answered: bool,
    /// Overall figure relative to the baseline (1 for itself), oriented up.
    pub overall: Option<Interval>,
    /// True if it is the baseline: its 1 is no measurement and has no interval.
    #[serde(skip)]
    pub baseline: bool,
    /// What its comparison with the baseline lacks, if it has complete rounds and no interval.
    #[serde(skip)]
    pub lacking: Option<Lacking>,
    /// Every metric of every workload, in the record's order.
    pub cells: Vec<MetricCell>,
}

/// The way a configuration came to be measured no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Number of complete rounds after which it left.
    pub after: u32,
    /// Every comparison with it is answered; otherwise it was beaten, or it failed.
    pub answered: bool,
}

impl Left {
    /// Short form for where room is short: `out, round 3`, `answered, round 5`, `failed`.
    pub fn short(self) -> String {
        match self.after {
            0 => self.word().to_owned(),
            after => format!("{}, round {after}", self.word()),
        }
    }

    fn word(self) -> &'static str {
        match (self.after, self.answered) {
            // Without a complete round none is beaten, and nothing is answered.
            (0, _) => "failed",
            (_, true) => "answered",
            (_, false) => "out",
        }
    }
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.after {
            0 => write!(f, "{} in the first round", self.word()),
            after => write!(f, "{} after round {after}", self.word()),
        }
    }
}

impl ConfigurationRow {
    /// The end of its measurement; `None` if it is still in.
    pub fn left(&self) -> Option<Left> {
        let after = self.dropped_after?;
        let answered = self.answered;
        Some(Left { after, answered })
    }
}

/// One configuration's figure on one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricCell {
    /// Workload by index.
    pub workload: usize,
    /// Name of the workload in the study.
    pub workload_name: String,
    /// The figure of the workload, with its unit.
    pub metric: MetricHead,
    /// True if it is the workload's primary metric.
    pub primary: bool,
    /// Geometric mean over the rounds with its own interval (not for comparing configurations).
    pub value: Option<Interval>,
    /// Value in each round, with the round's number.
    pub rounds: Vec<(u32, f64)>,
    /// Fineness of the values: the mean width of a step on the log scale.
    #[serde(skip)]
    pub log_step: f64,
}

impl From<Ratio> for Interval {
    fn from(ratio: Ratio) -> Self {
        Self {
            estimate: ratio.estimate,
            low: ratio.low,
            high: ratio.high,
        }
    }
}

impl From<stackrace_stats::Classification> for VerdictWord {
    fn from(word: stackrace_stats::Classification) -> Self {
        match word {
            stackrace_stats::Classification::Better { at_least, at_most } => {
                Self::Better { at_least, at_most }
            }
            stackrace_stats::Classification::Worse { at_least, at_most } => {
                Self::Worse { at_least, at_most }
            }
            stackrace_stats::Classification::NoDifference { larger_than } => {
                Self::NoDifference { larger_than }
            }
            stackrace_stats::Classification::Probably { better } => Self::Probably { better },
            stackrace_stats::Classification::Undecided => Self::Undecided,
        }
    }
}
