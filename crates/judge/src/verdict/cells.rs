//! The values of the trials that count, worked out once.
//!
//! Between two checks a run adds one round. So the values can be kept, and only the trials that came since are looked
//! at: going over all trials again, which lie scattered in memory, would take longer than all that is asked of them.

use super::evidence::Evidence;
use stackrace_base::event::{Ended, MetricHead, Observation};
use stackrace_stats::resolution;

/// A value, and how finely it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    /// Its trial, by its place in the evidence.
    trial: usize,
    value: f64,
}

/// A value on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OnLogScale {
    /// Its logarithm, oriented so that larger is better.
    pub(super) ln: f64,
    /// The width of one step.
    pub(super) step: f64,
}

impl OnLogScale {
    fn of(trial: &Observation, value: f64, metric: usize, head: &MetricHead) -> Self {
        Self {
            ln: head.better.oriented_ln(value),
            step: resolution::log_step(value, trial.step(metric)),
        }
    }
}

/// Which trials of a workload count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counting {
    in_slices: bool,
    /// Complete rounds that do not count, because its slices ended after them.
    rounds_before: usize,
}

/// What the trials of one configuration say of one workload.
#[derive(Debug, Clone, Default, PartialEq)]
struct Cell {
    /// `[metric][position in rounds]`
    values: Vec<Vec<Option<Known>>>,
    /// What is compared of the primary metric. Worked out once, because each comparison asks for it again in every
    /// round; of another metric only when it is asked for.
    primary: Vec<Option<OnLogScale>>,
    /// Place in the order of the round of each trial that counts, none of one in slices.
    places: Vec<Option<usize>>,
}

/// Values by configuration, workload, metric and round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cells {
    run: String,
    rounds: Vec<u32>,
    counting: Vec<Counting>,
    /// Trials that need not be looked at again: all before the first of a round that has not ended.
    settled: usize,
    /// `[configuration][workload]`
    cells: Vec<Vec<Cell>>,
    /// The overall figure's logarithm: `[configuration][position in rounds]`
    overall: Vec<Vec<Option<f64>>>,
}

impl Cells {
    /// Takes in the trials that are new; all of them if other trials count now than counted before.
    ///
    /// Complete trials of finished rounds count. A trial measured twice (after a resume) counts
    /// once, the first time: which one is kept must not depend on its value. In slices it is the last
    /// time, which all configurations have in common.
    pub(super) fn grow(&mut self, evidence: &Evidence<'_>) {
        let workloads = 0..evidence.head.workloads.len();
        let counting = workloads.map(|workload| Counting {
            in_slices: evidence.in_slices(workload),
            rounds_before: evidence.rounds_before(workload),
        });
        let counting: Vec<Counting> = counting.collect();
        let grows = self.run == evidence.head.run
            && self.cells.len() == evidence.head.configurations.len()
            && self.counting == counting
            && evidence.rounds.starts_with(&self.rounds)
            && self.settled <= evidence.trials.len();
        if !grows {
            *self = Self::empty(evidence, counting);
        }
        self.rounds.clone_from(&evidence.rounds);
        let rounds = self.rounds.len();
        for cell in self.cells.iter_mut().flatten() {
            cell.places.resize(rounds, None);
            cell.primary.resize(rounds, None);
            for values in &mut cell.values {
                values.resize(rounds, None);
            }
        }
        self.overall
            .iter_mut()
            .for_each(|all| all.resize(rounds, None));
        let (mut settled, mut entered) = (None, Vec::new());
        for (at, trial) in evidence.trials.iter().enumerate().skip(self.settled) {
            // The numbers ascend. What is not among them is of a round that has not ended, or never will.
            match self.rounds.binary_search(&trial.round) {
                Ok(round) => {
                    self.enter(evidence, at, trial, round);
                    entered.push((trial.configuration, round));
                }
                Err(_) => settled = settled.or(Some(at)),
            }
        }
        self.settled = settled.unwrap_or(evidence.trials.len());
        entered.dedup();
        for (configuration, round) in entered {
            let overall = self.mean_of_workloads(evidence, configuration, round);
            if let Some(known) = self.overall.get_mut(configuration) {
                known[round] = overall;
            }
        }
    }

    /// The weighted mean of the primary metrics on the log scale, none if one is missing. (A weighted geometric mean of
    /// the metrics themselves: unit-free only as a ratio.)
    fn mean_of_workloads(
        &self,
        evidence: &Evidence<'_>,
        configuration: usize,
        round: usize,
    ) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (cell, head) in self
            .cells
            .get(configuration)?
            .iter()
            .zip(&evidence.head.workloads)
        {
            if head.weight > 0.0 {
                sum += head.weight * cell.primary[round]?.ln;
                weights += head.weight;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }

    fn empty(evidence: &Evidence<'_>, counting: Vec<Counting>) -> Self {
        let workloads = evidence.head.workloads.iter();
        let row = workloads.map(|workload| Cell {
            values: vec![Vec::new(); workload.metrics.len()],
            ..Cell::default()
        });
        Self {
            run: evidence.head.run.clone(),
            cells: vec![row.collect(); evidence.head.configurations.len()],
            overall: vec![Vec::new(); evidence.head.configurations.len()],
            counting,
            ..Self::default()
        }
    }

    /// Enters a trial of a round by its position. Entering it again changes nothing.
    fn enter(
        &mut self,
        evidence: &Evidence<'_>,
        trial_at: usize,
        trial: &Observation,
        round: usize,
    ) {
        // Trials of both kinds are never mixed.
        let sliced = trial.sliced.is_some();
        let counts = self
            .counting
            .get(trial.workload)
            .is_some_and(|it| it.in_slices == sliced && round >= it.rounds_before);
        if trial.ended != Ended::Complete || !counts {
            return;
        }
        let row = self.cells.get_mut(trial.configuration);
        let Some(cell) = row.and_then(|row| row.get_mut(trial.workload)) else {
            return;
        };
        if cell.places[round].is_none() && !sliced {
            cell.places[round] = Some(trial.position);
        }
        let heads = &evidence.head.workloads[trial.workload].metrics;
        for (metric, (values, head)) in cell.values.iter_mut().zip(heads).enumerate() {
            if values[round].is_none() || sliced {
                values[round] = known((trial_at, trial), metric);
                if metric == 0 {
                    let on_log_scale = |it: Known| OnLogScale::of(trial, it.value, metric, head);
                    cell.primary[round] = values[round].map(on_log_scale);
                }
            }
        }
    }

    /// Place of a configuration in the order of a round; `None` in slices, or if it was not measured.
    pub(super) fn place(&self, configuration: usize, workload: usize, at: usize) -> Option<usize> {
        self.cells[configuration][workload].places[at]
    }

    fn known(&self, (configuration, workload, metric, at): CellAt) -> Option<Known> {
        self.cells[configuration][workload].values.get(metric)?[at]
    }

    /// One value as it was measured.
    pub(super) fn value(
        &self,
        configuration: usize,
        workload: usize,
        metric: usize,
        at: usize,
    ) -> Option<f64> {
        Some(self.known((configuration, workload, metric, at))?.value)
    }

    /// One value as it is compared, of the evidence that the cells were filled from.
    pub(super) fn on_log_scale(&self, evidence: &Evidence<'_>, cell: CellAt) -> Option<OnLogScale> {
        let (configuration, workload, metric, at) = cell;
        if metric == 0 {
            return self.cells[configuration][workload].primary[at];
        }
        let known = self.known(cell)?;
        let head = &evidence.head.workloads[workload].metrics[metric];
        let trial = evidence.trials[known.trial];
        Some(OnLogScale::of(trial, known.value, metric, head))
    }

    /// The overall figure's logarithm.
    pub(super) fn overall_ln(&self, configuration: usize, at: usize) -> Option<f64> {
        self.overall[configuration][at]
    }
}

/// A configuration, a workload, a metric, and a round by its position.
type CellAt = (usize, usize, usize, usize);

/// The value of a metric in a trial; `None` if it is no figure that has a logarithm.
fn known((at, trial): (usize, &Observation), metric: usize) -> Option<Known> {
    let value = trial.metrics.get(metric).copied().flatten()?;
    // Only a positive, finite figure has a logarithm.
    let usable = value.is_finite() && value > 0.0;
    usable.then_some(Known { trial: at, value })
}
