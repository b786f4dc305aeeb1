//! The whole answer of a run.

use serde::Serialize;

use super::course::PhaseCourse;
use super::effects::EffectTable;
use super::enough::{self, Enough, RequiredRow};
use super::slices::OrderEffect;
use super::statement::{Comparison, ConfigurationRow, More, State, VerdictWord};

/// The answer of a run as far as it has come.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The answer in plain words.
    pub sentence: String,
    /// Further sentences: one per workload that differs from the overall answer, at most five.
    pub details: Vec<String>,
    /// State of the answer to the question asked.
    pub state: State,
    /// True if more rounds of the configurations that did not fail would change nothing.
    #[serde(skip)]
    pub settled: bool,
    /// All that is open is so because the figures are too coarse: no number of rounds would answer it.
    pub too_coarse: bool,
    /// Complete rounds in the record.
    pub rounds: u32,
    /// Complete rounds the statements rest on; `None` if there are too few for any.
    pub checked_at: Option<u32>,
    /// No claim of the verdict is wrong, at any check, with at least this probability.
    pub confidence: f64,
    /// Differences smaller than this ratio do not matter.
    pub margin: f64,
    /// The primary comparisons, with the baseline: over all workloads.
    pub overall: Vec<Comparison>,
    /// The best configuration with each other one that did not fail, best first; empty unless a
    /// ranking is asked.
    pub ranking: Vec<Comparison>,
    /// Comparisons on the primary metric of each workload.
    pub workloads: Vec<Comparison>,
    /// Every configuration, best first where a ranking is asked, else in the study's order.
    pub configurations: Vec<ConfigurationRow>,
    /// Effects of each factor, where two or more are varied: the overall figure, then each workload.
    pub effects: Vec<EffectTable>,
    /// Findings in the time series of the trials, of each configuration, workload and phase.
    pub courses: Vec<PhaseCourse>,
    /// Effects of the order of turns, of each workload whose slices stayed.
    pub order_effects: Vec<OrderEffect>,
    /// Projection: how many more rounds would decide.
    pub more: Option<More>,
    /// Requirements of the study, of each configuration; empty if it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<RequiredRow>,
    /// Notes the reader must know before believing the figures.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Returns true if the question is open, and there is a hint which way it goes: a grade of its own.
    pub fn hints(&self) -> bool {
        let mut comparisons = self.overall.iter().chain(&self.ranking);
        // A hint on one comparison of an answered question is no news: the claims are its grade.
        self.state == State::Undecided
            && comparisons.any(|c| matches!(c.word, VerdictWord::Probably { .. }))
    }

    /// Returns true if a configuration was dropped, by name.
    pub(super) fn dropped(&self, name: &str) -> bool {
        dropped(&self.configurations, name)
    }

    /// Degree to which the question is answered, as people read it.
    pub fn grade(&self) -> &'static str {
        let failed = |row: &ConfigurationRow| row.left().is_some_and(|left| left.after == 0);
        match self.state {
            _ if self.hints() => "probably",
            // More rounds would not change that.
            State::TooFew if self.configurations.iter().any(failed) => "failed",
            state => state.label(),
        }
    }
}

/// Findings that the outlook and the sentences of a verdict are made from.
#[derive(Clone, Copy)]
pub(super) struct VerdictGrounds<'a> {
    pub(super) state: State,
    pub(super) settled: bool,
    pub(super) too_coarse: bool,
    pub(super) by_workload: bool,
    pub(super) rounds: u32,
    pub(super) checked_at: Option<u32>,
    pub(super) confidence: f64,
    pub(super) overall: &'a [Comparison],
    pub(super) ranking: &'a [Comparison],
    /// The same on each workload; empty unless a ranking of several is asked.
    pub(super) rankings: &'a [Vec<Comparison>],
    pub(super) workloads: &'a [Comparison],
    pub(super) configurations: &'a [ConfigurationRow],
}

impl VerdictGrounds<'_> {
    /// Returns true if a configuration was dropped, by name.
    pub(super) fn dropped(&self, name: &str) -> bool {
        dropped(self.configurations, name)
    }
}

fn dropped(rows: &[ConfigurationRow], name: &str) -> bool {
    let mut rows = rows.iter();
    rows.any(|row| row.dropped_after.is_some() && row.name == name)
}

impl Verdict {
    /// The answer of one configuration; `None` if nothing is required.
    pub fn enough_of(&self, configuration: usize) -> Option<Enough> {
        let required = !self.required.is_empty();
        required.then(|| enough::of(&self.required, configuration))
    }

    /// The answer of the run: one configuration that meets all is enough; `None` if nothing is required.
    pub fn enough(&self) -> Option<Enough> {
        let mut each: Vec<usize> = self.required.iter().map(|row| row.configuration).collect();
        each.dedup();
        let words: Vec<Enough> = each
            .into_iter()
            .map(|it| enough::of(&self.required, it))
            .collect();
        let any = |word| words.contains(&word);
        match (any(Enough::Meets), any(Enough::Open)) {
            _ if words.is_empty() => None,
            (true, _) => Some(Enough::Meets),
            (_, true) => Some(Enough::Open),
            _ => Some(Enough::Fails),
        }
    }
}
