//! The observations as a table: one value for each configuration, workload, metric and complete round.

use crate::audit::SetUps;
use stackrace_base::event::{
    Cut, Ended, MetricHead, Observation, RunStarted, SlicesEnded, WorkloadHead,
};
use stackrace_results::record::Record;
use stackrace_stats::resolution;

/// Evidence a verdict is made from; nothing else is looked at.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The run's head.
    pub head: &'a RunStarted,
    /// Every trial on record.
    pub trials: Vec<&'a Observation>,
    /// Trials that failed and keep their configuration out ([`Record::failures`]).
    pub failures: Vec<&'a Observation>,
    /// Rounds that were finished, ascending.
    pub rounds: Vec<u32>,
    /// Configurations dropped so far, each with the number of complete rounds it took part in.
    pub dropped: Vec<(usize, u32)>,
    /// Workloads measured in one go after they had been measured in slices, each with the number of
    /// complete rounds before: only what came then counts.
    pub slices_ended: Vec<(u32, SlicesEnded)>,
    /// Mean wall time of a round so far, seconds.
    pub round_seconds: Option<f64>,
    /// Every cut of the power on record.
    pub cuts: Vec<&'a Cut>,
    /// The stacks as they were set up, for the audit.
    pub set_ups: SetUps<'a>,
    /// Another tool measured this: rounds only count repetitions, and nothing is a pair.
    pub imported: bool,
    /// Nothing is measured any more, unless the run is resumed.
    pub ended: bool,
}

/// Configurations that are measured no more, each with the number of complete rounds it took part in.
fn out(record: &Record, rounds: &[u32], failures: &[&Observation]) -> Vec<(usize, u32)> {
    let mut dropped = record.dropped();
    // A failure keeps its configuration out as a drop does, from its round on.
    for trial in failures {
        if !dropped
            .iter()
            .any(|(configuration, _)| *configuration == trial.configuration)
        {
            let before = rounds.iter().filter(|round| **round < trial.round).count();
            dropped.push((
                trial.configuration,
                u32::try_from(before).unwrap_or(u32::MAX),
            ));
        }
    }
    dropped
}

/// A configuration that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedConfiguration {
    /// Index in the record.
    pub(super) configuration: usize,
    /// The round it failed in.
    pub(super) round: u32,
    /// Error of the trial.
    pub(super) error: String,
}

impl<'a> Evidence<'a> {
    /// Collects the evidence a record holds.
    pub fn of(record: &'a Record) -> Self {
        let rounds = record.complete_rounds();
        let failures: Vec<&Observation> = record.failures().collect();
        let dropped = out(record, &rounds, &failures);
        let times = record.round_times();
        // The first round may also lay out data that the others find: it says little of them.
        let typical = if times.len() > 1 {
            &times[1..]
        } else {
            &times[..]
        };
        let sum: f64 = typical.iter().map(|time| time.seconds).sum();
        let round_seconds = (!typical.is_empty()).then(|| sum / typical.len() as f64);
        Self {
            head: &record.head,
            trials: record.trials().collect(),
            failures,
            rounds,
            dropped,
            slices_ended: record
                .slices_ended()
                .map(|(rounds, ended)| (rounds, ended.clone()))
                .collect(),
            round_seconds,
            cuts: record.cuts().collect(),
            set_ups: SetUps::of(record.events()),
            imported: record.imported(),
            ended: record.ended().is_some(),
        }
    }

    /// Configurations that are measured no more, each with the number of complete rounds it took part in.
    pub fn dropped_of(record: &Record) -> Vec<(usize, u32)> {
        let failures: Vec<&Observation> = record.failures().collect();
        out(record, &record.complete_rounds(), &failures)
    }

    /// Number of complete rounds that do not count for a workload, because its slices ended after them.
    pub(super) fn rounds_before(&self, workload: usize) -> usize {
        let mut ended = self.slices_ended.iter();
        let found = ended.find(|(_, ended)| ended.workload == workload);
        found.map_or(0, |(rounds, _)| *rounds as usize)
    }

    /// Returns true if a workload was measured in slices, and is so still.
    pub(super) fn in_slices(&self, workload: usize) -> bool {
        let mut trials = self.trials.iter();
        self.rounds_before(workload) == 0
            && trials.any(|trial| trial.workload == workload && trial.sliced.is_some())
    }

    /// Returns true if the question is which of more than two configurations is best.
    pub(super) fn ranks(&self) -> bool {
        self.head.decide.comparison.is_none() && self.head.configurations.len() > 2
    }

    /// The configurations that failed, each with its first failure.
    pub(super) fn failed(&self) -> Vec<FailedConfiguration> {
        let mut failed: Vec<FailedConfiguration> = Vec::new();
        for trial in &self.failures {
            let known = |known: &FailedConfiguration| known.configuration == trial.configuration;
            if !failed.iter().any(known) {
                failed.push(FailedConfiguration {
                    configuration: trial.configuration,
                    round: trial.round,
                    error: trial.ended.error().unwrap_or_default().to_owned(),
                });
            }
        }
        failed
    }

    /// Trials that failed and were tried again after a resume, one sentence each.
    pub(super) fn tried_again(&self) -> Vec<String> {
        let again = |trial: &&&Observation| {
            // The very trial, not one that is equal to it: two attempts may fail in the same way.
            trial.ended.error().is_some()
                && !self
                    .failures
                    .iter()
                    .any(|kept| std::ptr::eq(*kept, **trial))
        };
        let again = self.trials.iter().filter(again);
        again
            .map(|trial| {
                let configuration = self.head.configurations.get(trial.configuration);
                let name = configuration.map_or("a configuration", |c| c.name.as_str());
                let error = trial.ended.error().unwrap_or_default();
                format!(
                    "{name} failed in round {} and was tried again after `resume`: {error}",
                    trial.round
                )
            })
            .collect()
    }
}

/// The figure that two configurations are compared on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedFigure {
    /// The weighted mean over the workloads' primary metrics.
    Overall,
    /// One metric of one workload, by index.
    Metric { workload: usize, metric: usize },
}

impl ComparedFigure {
    /// The primary metric of a workload.
    pub(super) fn primary(workload: usize) -> Self {
        Self::Metric {
            workload,
            metric: 0,
        }
    }

    /// Name of the workload; empty for all of them.
    pub(super) fn workload_name(self, head: &RunStarted) -> String {
        match self {
            Self::Overall => String::new(),
            Self::Metric { workload, .. } => head.workloads[workload].name.clone(),
        }
    }

    /// Returns true if another program printed it, so that its digits are the program's choice.
    pub(super) fn is_printed(self, evidence: &Evidence<'_>) -> bool {
        let workloads = &evidence.head.workloads;
        evidence.imported
            || match self {
                Self::Overall => workloads.iter().all(WorkloadHead::is_printed),
                Self::Metric { workload, .. } => workloads
                    .get(workload)
                    .is_some_and(WorkloadHead::is_printed),
            }
    }

    /// The metric; `None` for the overall figure.
    pub(super) fn metric(self, head: &RunStarted) -> Option<&MetricHead> {
        match self {
            Self::Overall => None,
            Self::Metric { workload, metric } => head.workloads[workload].metrics.get(metric),
        }
    }
}

/// A value, and how finely it is known.
#[derive(Debug, Clone, Copy)]
struct Known<'a> {
    trial: &'a Observation,
    value: f64,
    /// What is compared of it. Worked out once for a primary metric, because each comparison asks for it again, and
    /// for another one only when it is asked for.
    primary: Option<OnLogScale>,
}

/// A value on the log scale.
#[derive(Debug, Clone, Copy)]
struct OnLogScale {
    /// Its logarithm, oriented so that larger is better.
    ln: f64,
    /// The width of one step.
    step: f64,
}

impl OnLogScale {
    fn of(trial: &Observation, value: f64, metric: usize, head: &MetricHead) -> Self {
        Self {
            ln: head.better.oriented_ln(value),
            step: resolution::log_step(value, trial.step(metric)),
        }
    }
}

/// Values by configuration, workload, metric and round.
#[derive(Debug)]
pub(super) struct ObservationTable<'a> {
    pub(super) evidence: &'a Evidence<'a>,
    /// `[configuration][workload][metric][position in rounds]`
    values: Vec<Vec<Vec<Vec<Option<Known<'a>>>>>>,
    /// Place in the order of the round of each trial that counts, none of one in slices:
    /// `[configuration][workload][position in rounds]`
    places: Vec<Vec<Vec<Option<usize>>>>,
    pub(super) rounds: Vec<u32>,
}

impl<'a> ObservationTable<'a> {
    /// Takes complete trials of finished rounds. A trial measured twice (after a resume) counts
    /// once, the first time: which one is kept must not depend on its value. In slices it is the last
    /// time, which all configurations have in common.
    pub(super) fn new(evidence: &'a Evidence<'a>) -> Self {
        let head = evidence.head;
        let rounds = evidence.rounds.clone();
        let metrics = |w: usize| head.workloads[w].metrics.len();
        let mut values: Vec<Vec<Vec<Vec<Option<Known<'a>>>>>> = (0..head.configurations.len())
            .map(|_| {
                (0..head.workloads.len())
                    .map(|w| vec![vec![None; rounds.len()]; metrics(w)])
                    .collect()
            })
            .collect();
        let none = vec![vec![None; rounds.len()]; head.workloads.len()];
        let mut places = vec![none; head.configurations.len()];
        let in_slices: Vec<bool> = (0..head.workloads.len())
            .map(|workload| evidence.in_slices(workload))
            .collect();
        for trial in evidence
            .trials
            .iter()
            .filter(|trial| trial.ended == Ended::Complete)
        {
            // The numbers ascend. What is not among them is of a round that never ended.
            let Ok(at) = rounds.binary_search(&trial.round) else {
                continue;
            };
            // Trials of both kinds are never mixed.
            if in_slices.get(trial.workload) != Some(&trial.sliced.is_some())
                || at < evidence.rounds_before(trial.workload)
            {
                continue;
            }
            let Some(cell) = values
                .get_mut(trial.configuration)
                .and_then(|row| row.get_mut(trial.workload))
            else {
                continue;
            };
            let place = &mut places[trial.configuration][trial.workload][at];
            if place.is_none() && trial.sliced.is_none() {
                *place = Some(trial.position);
            }
            for (m, metric) in cell.iter_mut().enumerate() {
                if metric[at].is_none() || trial.sliced.is_some() {
                    metric[at] = known(trial, m, &head.workloads[trial.workload].metrics[m]);
                }
            }
        }
        Self {
            evidence,
            values,
            places,
            rounds,
        }
    }

    /// Returns true if a configuration came before another one in a round; `None` if they took turns in slices, or one
    /// of them was not measured.
    pub(super) fn first(
        &self,
        one: usize,
        other: usize,
        workload: usize,
        at: usize,
    ) -> Option<bool> {
        let place = |configuration: usize| self.places[configuration][workload][at];
        Some(place(one)? < place(other)?)
    }

    pub(super) fn configurations(&self) -> usize {
        self.evidence.head.configurations.len()
    }

    pub(super) fn workloads(&self) -> usize {
        self.evidence.head.workloads.len()
    }

    /// One value as it was measured.
    pub(super) fn value(
        &self,
        configuration: usize,
        workload: usize,
        metric: usize,
        at: usize,
    ) -> Option<f64> {
        let known = self.values[configuration][workload].get(metric)?[at]?;
        Some(known.value)
    }

    fn on_log_scale(
        &self,
        configuration: usize,
        workload: usize,
        metric: usize,
        at: usize,
    ) -> Option<OnLogScale> {
        let known = self.values[configuration][workload].get(metric)?[at]?;
        let head = &self.evidence.head.workloads[workload].metrics[metric];
        let fresh = || OnLogScale::of(known.trial, known.value, metric, head);
        Some(known.primary.unwrap_or_else(fresh))
    }

    /// Fineness of a figure: the width of one step on the log scale; 0 if there is no value.
    pub(super) fn log_step(&self, configuration: usize, figure: ComparedFigure, at: usize) -> f64 {
        self.apart(&[configuration], figure, at)
    }

    /// Uncertainty of the ratio of two configurations because their figures are given in steps: a step of the coarser
    /// one, on the log scale.
    pub(super) fn apart(&self, either: &[usize], figure: ComparedFigure, at: usize) -> f64 {
        let of = |workload: usize, metric: usize| {
            let steps = either.iter().filter_map(|t| {
                let known = self.on_log_scale(*t, workload, metric, at)?;
                Some(known.step)
            });
            steps.fold(0.0, f64::max)
        };
        match figure {
            ComparedFigure::Metric { workload, metric } => of(workload, metric),
            ComparedFigure::Overall => {
                let weighed = self.evidence.head.workloads.iter().enumerate();
                let (mut sum, mut weights) = (0.0, 0.0);
                for (workload, head) in weighed.filter(|(_, head)| head.weight > 0.0) {
                    sum += head.weight * of(workload, 0);
                    weights += head.weight;
                }
                if weights > 0.0 { sum / weights } else { 0.0 }
            }
        }
    }

    /// The overall figure's logarithm: the weighted mean over the workloads, none if one is
    /// missing. (A weighted geometric mean of the metrics themselves: unit-free only as a ratio.)
    pub(super) fn overall_ln(&self, configuration: usize, at: usize) -> Option<f64> {
        let mut sum = 0.0;
        let mut weights = 0.0;
        for (workload, head) in self.evidence.head.workloads.iter().enumerate() {
            if head.weight > 0.0 {
                sum +=
                    head.weight * self.ln(configuration, ComparedFigure::primary(workload), at)?;
                weights += head.weight;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }

    /// A figure's logarithm, oriented so that larger is better.
    pub(super) fn ln(
        &self,
        configuration: usize,
        figure: ComparedFigure,
        at: usize,
    ) -> Option<f64> {
        match figure {
            ComparedFigure::Overall => self.overall_ln(configuration, at),
            ComparedFigure::Metric { workload, metric } => {
                let known = self.on_log_scale(configuration, workload, metric, at)?;
                Some(known.ln)
            }
        }
    }

    /// Number of the rounds, from the first, that a configuration took part in.
    pub(super) fn rounds_of(&self, configuration: usize) -> usize {
        let all = self.rounds.len();
        self.evidence
            .dropped
            .iter()
            .find(|(dropped, _)| *dropped == configuration)
            .map_or(all, |(_, n)| all.min(*n as usize))
    }

    /// Returns true if a configuration is still in the race.
    pub(super) fn live(&self, configuration: usize) -> bool {
        !self
            .evidence
            .dropped
            .iter()
            .any(|(dropped, _)| *dropped == configuration)
    }
}

/// The value of a metric in a trial; `None` if it is no figure that has a logarithm.
fn known<'a>(trial: &'a Observation, metric: usize, head: &MetricHead) -> Option<Known<'a>> {
    let value = trial.metrics.get(metric).copied().flatten()?;
    // Only a positive, finite figure has a logarithm.
    let usable = value.is_finite() && value > 0.0;
    usable.then(|| Known {
        trial,
        value,
        primary: (metric == 0).then(|| OnLogScale::of(trial, value, metric, head)),
    })
}
