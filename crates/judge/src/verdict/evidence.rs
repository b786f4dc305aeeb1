//! What a verdict is made from, collected from a record.

use std::collections::BTreeSet;

use crate::audit::SetUps;
use stackrace_base::event::{Cut, Observation, RunStarted, SlicesEnded};
use stackrace_results::record::{Record, RecordSkim, RunMarks};

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
    /// Workloads with a trial in slices.
    pub(super) sliced: BTreeSet<usize>,
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
    /// Configurations of which something is required and that lie in memory, by index.
    pub in_memory: Vec<usize>,
}

/// Configurations that are measured no more, each with the number of complete rounds it took part in.
pub(super) fn out(marks: &RunMarks<'_>) -> Vec<(usize, u32)> {
    let mut dropped = marks.dropped();
    let rounds = marks.complete_rounds();
    // A failure keeps its configuration out as a drop does, from its round on.
    for trial in marks.failures() {
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

/// Those of which something is required, and which lie in memory.
fn in_memory(record: &Record) -> Vec<usize> {
    let head = &record.head;
    let all = match head.decide.required.is_empty() {
        true => 0..0,
        false => 0..head.configurations.len(),
    };
    let lost = |it: &usize| record.lies_on(*it).iter().any(|on| on.is_in_memory());
    all.filter(lost).collect()
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
        let mut skim = RecordSkim::default();
        skim.follow(&record.head.run, &record.lines);
        Self::skimmed(record, &skim)
    }

    /// The same of a record that was followed until now.
    pub(super) fn skimmed(record: &'a Record, skim: &RecordSkim) -> Self {
        let marks = skim.marks(&record.lines);
        let times = marks.round_times();
        // The first round may also lay out data that the others find: it says little of them.
        let typical = if times.len() > 1 {
            &times[1..]
        } else {
            &times[..]
        };
        let sum: f64 = typical.iter().map(|time| time.seconds).sum();
        let round_seconds = (!typical.is_empty()).then(|| sum / typical.len() as f64);
        let slices_ended = marks.slices_ended().into_iter();
        Self {
            head: &record.head,
            trials: skim.trials(&record.lines),
            failures: marks.failures(),
            rounds: marks.complete_rounds(),
            dropped: out(&marks),
            sliced: skim.sliced().clone(),
            slices_ended: slices_ended
                .map(|(rounds, ended)| (rounds, ended.clone()))
                .collect(),
            round_seconds,
            cuts: marks.cuts(),
            set_ups: SetUps::of(&record.lines),
            imported: marks.imported(),
            ended: record.ended().is_some(),
            in_memory: in_memory(record),
        }
    }

    /// Number of complete rounds that do not count for a workload, because its slices ended after them.
    pub(super) fn rounds_before(&self, workload: usize) -> usize {
        let mut ended = self.slices_ended.iter();
        let found = ended.find(|(_, ended)| ended.workload == workload);
        found.map_or(0, |(rounds, _)| *rounds as usize)
    }

    /// Returns true if a workload was measured in slices, and is so still.
    pub(super) fn in_slices(&self, workload: usize) -> bool {
        self.rounds_before(workload) == 0 && self.sliced.contains(&workload)
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
