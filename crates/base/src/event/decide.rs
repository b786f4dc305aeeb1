//! The question of a run, and when it may stop.

use serde::{Deserialize, Serialize};

use super::require::Requirement;

/// Question of the run and when it may stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decide {
    /// Factor whose levels are compared, the first level being the baseline; `None` asks which
    /// configuration is best.
    pub comparison: Option<String>,
    /// Differences smaller than this ratio do not matter (0.05: 5 %).
    pub margin: f64,
    /// 0.95: all statements of the run hold together with at least this probability.
    pub confidence: f64,
    /// Greatest number of rounds.
    pub rounds_max: u32,
    /// No round is begun that would end later than this, ns since the run began.
    pub time_max_ns: u64,
    /// Stop when the overall figure is decided (`overall`), or every workload too (`each`).
    pub until: Until,
    /// How well a difference must be known before it stops. Logs from before this was asked stopped at its direction.
    #[serde(default)]
    pub precision: Precision,
    /// Bounds that a configuration must keep to be enough; empty if none are asked for, as in older logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Requirement>,
}

impl Decide {
    /// A run that has no limit ends after this, ns: 30 days.
    pub const NO_LIMIT_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

    /// Time it may take, ns; `None` if it has no limit.
    pub fn time_limit_ns(&self) -> Option<u64> {
        (self.time_max_ns < Self::NO_LIMIT_NS).then_some(self.time_max_ns)
    }

    /// Error of all comparisons together; half of the whole where there are requirements to be judged beside them.
    pub fn compared_error(&self) -> f64 {
        let share = if self.required.is_empty() { 1.0 } else { 0.5 };
        (1.0 - self.confidence) * share
    }

    /// Error of all statements on requirements together, of so many configurations: one alone is compared with none.
    pub fn required_error(&self, configurations: usize) -> f64 {
        let share = if configurations > 1 { 0.5 } else { 1.0 };
        (1.0 - self.confidence) * share
    }

    /// The share of the error that the comparisons over all workloads have; the rest is for those on
    /// single workloads. A run that stops when the overall figure is decided has most of it there.
    pub fn overall_share(&self, workloads: usize) -> f64 {
        match self.until {
            _ if workloads < 2 => 1.0,
            Until::Overall => 0.8,
            Until::Each | Until::Never => 0.5,
        }
    }
}

/// Part of the question that must be decided before a run stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The overall figure.
    Overall,
    /// The overall figure and every workload.
    Each,
    /// Nothing: every round that fits is done.
    Never,
}

/// How well a difference must be known before a run stops by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Which one is faster, and no more.
    #[default]
    Direction,
    /// How large it is, too: to `stackrace_stats::widest`.
    Size,
    /// The upper end of its interval is at most this share above the lower one (0.1: 10 %).
    Within(f64),
}
