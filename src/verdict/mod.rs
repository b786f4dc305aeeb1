//! What the observations say: comparisons judged, configurations ranked, one sentence.
//!
//! Input is a run's record, measured here or imported; output is data without presentation. The rules are
//! those of `docs/methodology.md`.

mod asked;
mod beside;
mod course;
mod effects;
mod gate;
mod history;
mod judge;
mod sentence;
mod separate;
mod table;
#[cfg(test)]
mod tests;
mod unpaired;
mod words;
mod work;

pub(crate) use asked::{Question, RunAnswer, Sought, ask};
pub(crate) use beside::{Beside, BesideRow, beside};
pub(crate) use course::{PhaseCourse, RateChange};
pub(crate) use effects::{EffectKind, EffectRow, EffectTable};
pub(crate) use gate::{FigureAnswer, GateAnswer, GateError, GateOutcome, Threshold, gate, on};
pub(crate) use history::{HistoryLine, HistoryPoint, history};
pub(crate) use judge::{judge, may_stop, to_drop};
pub(crate) use table::Evidence;
pub(crate) use unpaired::{Difference, Stored, WorkloadPair, difference};

use serde::Serialize;

use crate::event::MetricHead;

/// The answer of a run as far as it has come.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    /// The answer in plain words.
    pub(crate) sentence: String,
    /// Further sentences: one per workload that differs from the overall answer, at most five.
    pub(crate) details: Vec<String>,
    /// Whether the question asked is answered.
    pub(crate) state: State,
    /// Complete rounds in the record.
    pub(crate) rounds: u32,
    /// Complete rounds at the check the statements hold at; none: too few rounds for any.
    pub(crate) checked_at: Option<u32>,
    /// Planned checks, in complete rounds.
    pub(crate) planned_checks: Vec<u32>,
    /// All statements hold together with at least this probability.
    pub(crate) confidence: f64,
    /// Differences smaller than this ratio do not matter.
    pub(crate) margin: f64,
    /// The primary comparisons: over all workloads.
    pub(crate) overall: Vec<Comparison>,
    /// Comparisons on the primary metric of each workload.
    pub(crate) workloads: Vec<Comparison>,
    /// Every configuration, best first where a ranking is asked, else in the study's order.
    pub(crate) configurations: Vec<ConfigurationRow>,
    /// What each factor does, where two or more are varied: the overall figure, then each workload.
    pub(crate) effects: Vec<EffectTable>,
    /// What the time series of the trials say, of each configuration, workload and phase.
    pub(crate) courses: Vec<PhaseCourse>,
    /// Projection: how many more rounds would decide.
    pub(crate) more: Option<More>,
    /// What the reader must know before believing the figures.
    pub(crate) notes: Vec<String>,
}

/// How far the question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// Answered.
    Decided,
    /// Not yet.
    Undecided,
    /// Fewer complete rounds than the first look needs.
    TooFew,
    /// Imported: there are ratios, and nothing that would carry a verdict.
    Unpaired,
}

/// What would decide it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct More {
    /// Further rounds; none: more than anyone would wait for.
    pub(crate) rounds: Option<u32>,
    /// How long they take at the pace so far, seconds.
    pub(crate) seconds: Option<f64>,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Interval {
    /// Best estimate.
    pub(crate) estimate: f64,
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
}

/// The word for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "word")]
pub(crate) enum VerdictWord {
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
    /// The interval allows too much.
    Undecided,
    /// Too few rounds for an interval.
    TooFew,
    /// Results that were not made in turn.
    Unpaired {
        /// How many A has, and B.
        runs: (usize, usize),
        /// Whether an interval could be given, and it excludes a ratio of 1.
        differs: bool,
    },
}

/// Two configurations, or two levels, on one workload or over all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Baseline.
    pub(crate) a: String,
    /// Compared with it.
    pub(crate) b: String,
    /// Levels of the other factors this is within; empty: over all of them.
    pub(crate) within: String,
    /// Name of the workload; empty: over all workloads (weighted geometric mean).
    pub(crate) workload: String,
    /// Metric; none: the overall figure.
    pub(crate) metric: Option<MetricHead>,
    /// B over A, oriented so that above 1 B is better; its ends are not numbers where no interval
    /// can be given (only of imported results).
    pub(crate) ratio: Option<Interval>,
    /// What follows.
    pub(crate) word: VerdictWord,
    /// The word as a sentence fragment (`12-19 % faster`).
    pub(crate) text: String,
    /// Ratio in each round used, oriented the same way, with the round's number.
    pub(crate) rounds: Vec<(u32, f64)>,
    /// Robust companion (Hodges–Lehmann), from 8 rounds on.
    pub(crate) robust: Option<Interval>,
}

/// One configuration in the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConfigurationRow {
    /// Index in the record.
    pub(crate) configuration: usize,
    /// Its name.
    pub(crate) name: String,
    /// Level of each factor.
    pub(crate) levels: Vec<String>,
    /// After how many rounds it was dropped; none: it is still in.
    pub(crate) dropped_after: Option<u32>,
    /// Overall figure relative to the leader or baseline (1 for itself), oriented up.
    pub(crate) overall: Option<Interval>,
    /// Every metric of every workload, in the record's order.
    pub(crate) cells: Vec<MetricCell>,
}

/// One configuration's figure on one metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MetricCell {
    /// Workload by index.
    pub(crate) workload: usize,
    /// Name of the workload.
    pub(crate) workload_name: String,
    /// The metric.
    pub(crate) metric: MetricHead,
    /// Whether it is the workload's primary metric.
    pub(crate) primary: bool,
    /// Geometric mean over the rounds with its own interval (not for comparing configurations).
    pub(crate) value: Option<Interval>,
    /// Value in each round, with the round's number.
    pub(crate) rounds: Vec<(u32, f64)>,
}
