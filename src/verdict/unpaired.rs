//! Results that were not made in turn: imported ones, and those of different runs side by side.
//!
//! Nothing in them separates the configuration from the time of day, the machine or the version, so no
//! verdict follows. The ratio is that of geometric means; from three results on each side it has
//! Welch's interval on the log scale (`stackrace_stats::welch_ratio`), 95 % each on its own, and the
//! strongest word is that they differ.

use serde::Serialize;

use super::table::{ComparedFigure, Evidence, ObservationTable};
use super::{Comparison, Interval, VerdictWord, sentence};
use crate::event::{Better, Fact, MetricHead, WorkloadHead};
use crate::record::Record;

/// Results on a side from which an interval is given.
const RESULTS_MIN: usize = 3;
/// Probability of each interval to miss.
const ALPHA: f64 = 0.05;

/// B over A from logarithms that are oriented so that larger is better; none where one side has
/// nothing. Where no interval can be given its ends are not numbers.
fn ratio(a: &[f64], b: &[f64]) -> Option<Interval> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let interval = (a.len() >= RESULTS_MIN && b.len() >= RESULTS_MIN)
        .then(|| stackrace_stats::welch_ratio(a, b, ALPHA))
        .flatten();
    Some(interval.map_or_else(
        || Interval {
            estimate: (stackrace_stats::mean(b) - stackrace_stats::mean(a)).exp(),
            low: f64::NAN,
            high: f64::NAN,
        },
        Interval::from,
    ))
}

/// Whether there is an interval, and it excludes a ratio of 1.
fn differs(ratio: Option<Interval>) -> bool {
    // Comparisons with what is no number are false.
    ratio.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
}

/// Two configurations of an imported run.
pub(super) fn comparison(
    table: &ObservationTable<'_>,
    (a, b): (usize, usize),
    figure: ComparedFigure,
) -> Comparison {
    let head = table.evidence.head;
    let logs = |configuration: usize| -> Vec<f64> {
        (0..table.rounds.len())
            .filter_map(|at| table.ln(configuration, figure, at))
            .collect()
    };
    let (logs_a, logs_b) = (logs(a), logs(b));
    let ratio = ratio(&logs_a, &logs_b);
    let word = VerdictWord::Unpaired {
        runs: (logs_a.len(), logs_b.len()),
        differs: differs(ratio),
    };
    Comparison {
        a: head.configurations[a].name.clone(),
        b: head.configurations[b].name.clone(),
        within: String::new(),
        workload: figure.workload_name(head),
        metric: figure.metric(head).cloned(),
        ratio,
        word,
        text: sentence::fragment(word, ratio),
        rounds: Vec::new(),
        robust: None,
    }
}

/// What a reader of imported ratios must know, and what was noted while they were read.
pub(super) fn notes(evidence: &Evidence<'_>) -> Vec<String> {
    let mut notes = vec![
        "imported figures: the runs were neither randomized nor measured in turn, so any other change between them (time, machine, versions, settings) is in the ratio".to_owned(),
        "ratios are of geometric means; intervals need 3 runs on each side (Welch on logarithms, 95 % each)".to_owned(),
    ];
    for trial in &evidence.trials {
        if let Some(workload) = evidence.head.workloads.get(trial.workload) {
            for note in &trial.notes {
                let named = format!("{}: {note}", workload.name);
                if !notes.contains(&named) {
                    notes.push(named);
                }
            }
        }
    }
    notes
}

/// One of two results side by side.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stored {
    /// Its run.
    pub(crate) run: String,
    /// Title of the run.
    pub(crate) title: String,
    /// Its configuration.
    pub(crate) configuration: String,
    /// Which of the run's configurations that is, from 0.
    pub(crate) index: usize,
    /// Another tool measured it.
    pub(crate) imported: bool,
    /// What only this one has, as `workload: metric`.
    pub(crate) only: Vec<String>,
}

/// Two stored results side by side.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Difference {
    /// The baseline.
    pub(crate) a: Stored,
    /// Compared with it.
    pub(crate) b: Stored,
    /// What is known of the machine and the stack and is not the same: name, A, B; none: not told.
    pub(crate) environment: Vec<(String, Option<String>, Option<String>)>,
    /// Workloads both have.
    pub(crate) workloads: Vec<WorkloadPair>,
    /// What was warned of in either run, settings that differ within an imported one among it.
    pub(crate) notes: Vec<String>,
}

/// One workload of both.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WorkloadPair {
    /// Kind of workload.
    pub(crate) kind: String,
    /// Its name and its summary in A.
    pub(crate) a: (String, String),
    /// In B.
    pub(crate) b: (String, String),
    /// Metrics both have.
    pub(crate) figures: Vec<FigurePair>,
}

/// One metric of both.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FigurePair {
    /// The metric.
    pub(crate) metric: MetricHead,
    /// Geometric mean of A's results, in the metric's unit.
    pub(crate) a: f64,
    /// Of B's.
    pub(crate) b: f64,
    /// How many results each has.
    pub(crate) results: (usize, usize),
    /// B over A, oriented so that above 1 B is better; its ends are not numbers where no interval
    /// can be given.
    pub(crate) ratio: Interval,
    /// The interval excludes a ratio of 1.
    pub(crate) differs: bool,
}

/// A configuration of a stored run.
struct StoredSide<'a> {
    record: &'a Record,
    configuration: usize,
}

/// Two configurations of stored runs, own or imported, side by side.
pub(crate) fn difference(a: (&Record, usize), b: (&Record, usize)) -> Difference {
    let (a, b) = (StoredSide::of(a), StoredSide::of(b));
    let (evidence_a, evidence_b) = (Evidence::of(a.record), Evidence::of(b.record));
    let (table_a, table_b) = (
        ObservationTable::new(&evidence_a),
        ObservationTable::new(&evidence_b),
    );
    let mut workloads = Vec::new();
    let (mut used_a, mut used_b) = (Vec::new(), Vec::new());
    for (one, other) in matching(&a.record.head.workloads, &b.record.head.workloads) {
        let (head_a, head_b) = (
            &a.record.head.workloads[one],
            &b.record.head.workloads[other],
        );
        let mut figures = Vec::new();
        for (at, metric) in head_a.metrics.iter().enumerate() {
            let place = head_b.metrics.iter().position(|known| known == metric);
            let Some(place) = place else { continue };
            let values_a = values(&table_a, a.configuration, one, at);
            let values_b = values(&table_b, b.configuration, other, place);
            if let Some(figure) = figure(metric, &values_a, &values_b) {
                used_a.push((one, at));
                used_b.push((other, place));
                figures.push(figure);
            }
        }
        if !figures.is_empty() {
            workloads.push(WorkloadPair {
                kind: head_a.kind.clone(),
                a: (head_a.name.clone(), head_a.summary.clone()),
                b: (head_b.name.clone(), head_b.summary.clone()),
                figures,
            });
        }
    }
    let mut notes: Vec<String> = Vec::new();
    for warning in a.record.warnings().into_iter().chain(b.record.warnings()) {
        if !notes.iter().any(|known| known == warning) {
            notes.push(warning.to_owned());
        }
    }
    Difference {
        notes,
        environment: differing(&a.facts(), &b.facts()),
        a: a.stored(&table_a, &used_a),
        b: b.stored(&table_b, &used_b),
        workloads,
    }
}

impl<'a> StoredSide<'a> {
    fn of((record, configuration): (&'a Record, usize)) -> Self {
        Self {
            record,
            configuration,
        }
    }

    fn stored(&self, table: &ObservationTable<'_>, used: &[(usize, usize)]) -> Stored {
        let head = &self.record.head;
        let mut only = Vec::new();
        for (w, workload) in head.workloads.iter().enumerate() {
            for (m, metric) in workload.metrics.iter().enumerate() {
                let there = !values(table, self.configuration, w, m).is_empty();
                if there && !used.contains(&(w, m)) {
                    only.push(format!("{}: {}", workload.name, metric.name));
                }
            }
        }
        Stored {
            run: head.run.clone(),
            title: head.title.clone(),
            configuration: head.configurations[self.configuration].name.clone(),
            index: self.configuration,
            imported: self.record.imported(),
            only,
        }
    }

    /// The machine, and what the layers got when they were first raised.
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.record.head.environment.clone();
        let raised = self.record.layer_facts(self.configuration);
        for layer in raised.first().copied().unwrap_or_default() {
            let named =
                |fact: &Fact| Fact::new(format!("{}: {}", layer.layer, fact.name), &fact.value);
            facts.extend(layer.facts.iter().map(named));
        }
        facts
    }
}

/// Pairs of workloads by position: those of the same kind and name, then those that are the only
/// ones of their kind left on both sides.
fn matching(a: &[WorkloadHead], b: &[WorkloadHead]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (at, one) in a.iter().enumerate() {
        let same = |other: &WorkloadHead| other.kind == one.kind && other.name == one.name;
        if let Some(other) = b.iter().position(same) {
            pairs.push((at, other));
        }
    }
    let named = pairs.clone();
    let left = |all: &[WorkloadHead], kind: &str, side: fn(&(usize, usize)) -> usize| {
        let free = |at: &usize| !named.iter().any(|pair| side(pair) == *at);
        let mut of_kind = (0..all.len())
            .filter(|at| all[*at].kind == kind)
            .filter(free);
        let first = of_kind.next();
        first.filter(|_| of_kind.next().is_none())
    };
    for (at, one) in a.iter().enumerate() {
        if left(a, &one.kind, |pair| pair.0) == Some(at)
            && let Some(other) = left(b, &one.kind, |pair| pair.1)
        {
            pairs.push((at, other));
        }
    }
    pairs
}

fn values(
    table: &ObservationTable<'_>,
    configuration: usize,
    workload: usize,
    metric: usize,
) -> Vec<f64> {
    (0..table.rounds.len())
        .filter_map(|at| table.value(configuration, workload, metric, at))
        .collect()
}

/// One metric of two results, from their values; none where one side has none.
pub(super) fn figure(metric: &MetricHead, a: &[f64], b: &[f64]) -> Option<FigurePair> {
    let logs = |values: &[f64], better: Better| -> Vec<f64> {
        values
            .iter()
            .map(|value| better.oriented_ln(*value))
            .collect()
    };
    let (oriented_a, oriented_b) = (logs(a, metric.better), logs(b, metric.better));
    let ratio = ratio(&oriented_a, &oriented_b)?;
    let mean = |values: &[f64]| stackrace_stats::mean(&logs(values, Better::Higher)).exp();
    Some(FigurePair {
        metric: metric.clone(),
        a: mean(a),
        b: mean(b),
        results: (a.len(), b.len()),
        ratio,
        differs: differs(Some(ratio)),
    })
}

/// Facts that are not the same on both sides, in A's order, then B's.
fn differing(a: &[Fact], b: &[Fact]) -> Vec<(String, Option<String>, Option<String>)> {
    let of = |facts: &[Fact], name: &str| {
        let fact = facts.iter().find(|fact| fact.name == name);
        fact.map(|fact| fact.value.clone())
    };
    let mut names: Vec<&str> = Vec::new();
    for fact in a.iter().chain(b) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    names
        .into_iter()
        .map(|name| (name.to_owned(), of(a, name), of(b, name)))
        .filter(|(_, a, b)| a != b)
        .collect()
}
