//! Results that were not made in turn: imported ones, and those of different runs side by side.
//!
//! Nothing in them separates the configuration from the time of day, the machine or the version, so no
//! verdict follows. The ratio is that of geometric means; from three runs on each side it has
//! Welch's interval on the log scale (`stackrace_stats::welch_ratio`), 95 % each on its own, and the
//! strongest word is that they differ. What did other work is not compared.

use libm::exp;
use serde::Serialize;
use stackrace_stats::resolution;

use super::evidence::Evidence;
use super::separate::{self, RUNS_MIN, RunLogs, Side};
use super::statement::{Coarseness, Comparison, Interval, VerdictWord};
use super::table::{ComparedFigure, ObservationTable};
use super::{fragment, still, work};
use crate::published::distinct;
use stackrace_base::event::{Better, Fact, MetricHead, WorkloadHead};
use stackrace_results::record::Record;

/// Probability of each interval to miss.
const ALPHA: f64 = 0.05;

/// B over A from logarithms that are oriented so that larger is better; none where one side has
/// nothing. Where no interval can be given its ends are not numbers. `resolution`: how far the ratio may be
/// off because the figures are given in steps, on the log scale; both ends are moved out by it.
pub(super) fn ratio(a: &[f64], b: &[f64], resolution: f64) -> Option<Interval> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let interval = (a.len() >= RUNS_MIN && b.len() >= RUNS_MIN)
        .then(|| stackrace_stats::welch_ratio(a, b, ALPHA))
        .flatten()
        .map(|ratio| ratio.widened(resolution));
    Some(interval.map_or_else(
        || Interval {
            estimate: exp(stackrace_stats::mean(b) - stackrace_stats::mean(a)),
            low: f64::NAN,
            high: f64::NAN,
        },
        Interval::from,
    ))
}

/// Uncertainty of the ratio of two means: a mean step of the side with the coarser ones, log scale.
pub(super) fn coarser(steps_a: &[f64], steps_b: &[f64]) -> f64 {
    let of = |steps: &[f64]| match steps.is_empty() {
        true => 0.0,
        false => stackrace_stats::mean(steps),
    };
    of(steps_a).max(of(steps_b))
}

/// Returns true if there is an interval, and it excludes a ratio of 1.
pub(super) fn differs(ratio: Option<Interval>) -> bool {
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
    let steps = |configuration: usize| -> Vec<f64> {
        (0..table.rounds.len())
            .filter(|at| table.ln(configuration, figure, *at).is_some())
            .map(|at| table.log_step(configuration, figure, at))
            .collect()
    };
    let still = [a, b].into_iter().filter(|t| {
        let rounds = 0..table.rounds.len();
        let has = rounds.filter(|at| table.ln(*t, figure, *at).is_some());
        still::is_still(table, *t, figure, &has.collect::<Vec<_>>())
    });
    let still = still.map(|t| head.configurations[t].name.clone());
    let (logs_a, logs_b) = (logs(a), logs(b));
    let resolution = coarser(&steps(a), &steps(b));
    let ratio = ratio(&logs_a, &logs_b, resolution);
    let coarse = Coarseness::known_to(resolution, true);
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
        values: None,
        word,
        text: fragment::fragment(word, ratio, coarse),
        rounds: Vec::new(),
        robust: None,
        lacking: None,
        order_effect: None,
        coarse,
        still: still.collect(),
        certain_before: None,
        logs: Vec::new(),
    }
}

/// Notes for the reader of imported ratios, and what was noted while they were read.
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
pub struct Stored {
    /// Its first run.
    pub run: String,
    /// Further runs of it.
    pub more_runs: Vec<String>,
    /// Title of the run.
    pub title: String,
    /// Name of the configuration in that run.
    pub configuration: String,
    /// Index of the configuration of the run, from 0.
    pub index: usize,
    /// Another tool measured it.
    pub imported: bool,
    /// Figures only this one has, as `workload: metric`.
    pub only: Vec<String>,
}

/// Two stored results side by side.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// The baseline.
    pub a: Stored,
    /// Compared with it.
    pub b: Stored,
    /// Facts of the machine and the stack that are not the same: name, A, B; `None` if not told.
    pub environment: Vec<(String, Option<String>, Option<String>)>,
    /// Workloads both have.
    pub workloads: Vec<WorkloadPair>,
    /// Reasons nothing, or not everything, is compared: another machine, or the same results; one
    /// sentence each.
    pub refused: Vec<String>,
    /// Warnings in either run, settings that differ within an imported one among them.
    pub notes: Vec<String>,
}

/// One workload of both.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadPair {
    /// Kind of workload.
    pub kind: String,
    /// Its name and its summary in A.
    pub a: (String, String),
    /// The same in B.
    pub b: (String, String),
    /// Differences in the work, one clause each; empty if it is the same work.
    pub other_work: Vec<String>,
    /// Metrics both have; empty where the work differs, unless it is compared all the same.
    pub figures: Vec<FigurePair>,
}

/// One metric of both.
#[derive(Debug, Clone, Serialize)]
pub struct FigurePair {
    /// The figure, with its unit.
    pub metric: MetricHead,
    /// Geometric mean of A's results, in the metric's unit.
    pub a: f64,
    /// Geometric mean of B's results, in the metric's unit.
    pub b: f64,
    /// Number of runs of each.
    pub results: (usize, usize),
    /// B over A, oriented so that above 1 B is better; its ends are not numbers where no interval
    /// can be given.
    pub ratio: Interval,
    /// Share by which the ratio may be off because the figures are given in steps (0.08 is 8 %); part of the interval.
    pub resolution: f64,
    /// The interval excludes a ratio of 1.
    pub differs: bool,
}

/// Two configurations of stored runs, own or imported, side by side: of one run or several each.
/// What did other work, or ran on another machine, is compared only `anyway`.
pub fn difference(a: &Side<'_>, b: &Side<'_>, anyway: bool) -> Difference {
    let refused = refused(a, b);
    let (mut used_a, mut used_b) = (Vec::new(), Vec::new());
    let mut workloads = Vec::new();
    let (first_a, first_b) = (a[0].0, b[0].0);
    for (one, other) in matching(&first_a.head.workloads, &first_b.head.workloads) {
        let (head_a, head_b) = (&first_a.head.workloads[one], &first_b.head.workloads[other]);
        let other_work = other_work(a, b, &head_a.name, &head_b.name);
        let mut figures = Vec::new();
        for (at, metric) in head_a.metrics.iter().enumerate() {
            // Name, unit and direction must agree: values of one name in other units have no ratio.
            let place = head_b.metrics.iter().position(|known| known == metric);
            let Some(place) = place else { continue };
            let runs_a = separate::run_logs(a, Some((&head_a.name, &metric.name)));
            let runs_b = separate::run_logs(b, Some((&head_b.name, &metric.name)));
            if let Some(figure) = figure(metric, &runs_a, &runs_b) {
                used_a.push((one, at));
                used_b.push((other, place));
                figures.push(figure);
            }
        }
        // A pair of workloads without a common metric is not listed; what each alone has is in
        // `only`.
        if !figures.is_empty() {
            let differs = !refused.is_empty() || !other_work.is_empty();
            if differs && !anyway {
                figures.clear();
            }
            workloads.push(WorkloadPair {
                kind: head_a.kind.clone(),
                a: (head_a.name.clone(), head_a.summary.clone()),
                b: (head_b.name.clone(), head_b.summary.clone()),
                other_work,
                figures,
            });
        }
    }
    let warnings = a.iter().chain(b).flat_map(|(record, _)| record.warnings());
    let notes = distinct(warnings.map(str::to_owned));
    Difference {
        notes,
        environment: differing_facts(a[0], b[0]),
        a: stored(a, &used_a),
        b: stored(b, &used_b),
        workloads,
        refused,
    }
}

/// Reasons two sides are not compared at all, one sentence each.
fn refused(a: &Side<'_>, b: &Side<'_>) -> Vec<String> {
    let own = a[0].0;
    let mut refused: Vec<String> = Vec::new();
    let all: Vec<&Record> = a.iter().chain(b).map(|(record, _)| *record).collect();
    for (at, record) in all.iter().enumerate() {
        let run = &record.head.run;
        // Two configurations of one run are the same record twice, and a fair comparison.
        let of_one_run = a.len() == 1 && b.len() == 1 && own.head.run == *run;
        let known = all[..at]
            .iter()
            .any(|other| work::same_results(record, other));
        if known && !of_one_run {
            refused.push(format!("the results of {run} are there more than once"));
        }
        for clause in work::other_machine(&own.head, &record.head) {
            refused.push(format!("{run} is of another machine: {clause}"));
        }
    }
    refused
}

/// Differences in the work of a workload between any run of either side and the first.
fn other_work(a: &Side<'_>, b: &Side<'_>, name_a: &str, name_b: &str) -> Vec<String> {
    let at = |record: &Record, name: &str| {
        let mut workloads = record.head.workloads.iter();
        workloads.position(|workload| workload.name == name)
    };
    let own = a[0].0;
    let Some(first) = at(own, name_a) else {
        return Vec::new();
    };
    let named = |name| move |(record, _): &(_, usize)| (*record, name);
    let all = a
        .iter()
        .map(named(name_a))
        .chain(b.iter().map(named(name_b)));
    let mut differing: Vec<String> = Vec::new();
    for (record, name) in all {
        let clauses = at(record, name).map_or(Vec::new(), |other| {
            work::other_work((own, first), (record, other))
        });
        differing.extend(
            clauses
                .into_iter()
                .filter(|clause| !differing.contains(clause))
                .collect::<Vec<_>>(),
        );
    }
    differing
}

/// The shown part of a side; `used` are the figures, by workload and metric, that both have.
fn stored(side: &Side<'_>, used: &[(usize, usize)]) -> Stored {
    let (record, configuration) = side[0];
    let head = &record.head;
    let mut only = Vec::new();
    for (w, workload) in head.workloads.iter().enumerate() {
        for (m, metric) in workload.metrics.iter().enumerate() {
            let named = Some((workload.name.as_str(), metric.name.as_str()));
            // A metric without any value is no figure that the other side lacks.
            if !used.contains(&(w, m)) && !separate::run_logs(side, named).logs.is_empty() {
                only.push(format!("{}: {}", workload.name, metric.name));
            }
        }
    }
    let others = side[1..].iter().map(|(record, _)| record.head.run.clone());
    Stored {
        run: head.run.clone(),
        more_runs: others.collect(),
        title: head.title.clone(),
        configuration: head.configurations[configuration].name.clone(),
        index: configuration,
        imported: record.imported(),
        only,
    }
}

/// Facts of the machine and the stack that are not the same: name, A, B; `None` if not told.
pub(super) fn differing_facts(
    a: (&Record, usize),
    b: (&Record, usize),
) -> Vec<(String, Option<String>, Option<String>)> {
    differing(&facts(a), &facts(b))
}

/// The machine, and what the layers got when they were first set up.
fn facts((record, configuration): (&Record, usize)) -> Vec<Fact> {
    let mut facts = record.head.environment.clone();
    let set_up = record.layer_facts(configuration);
    // The first set-up stands for all of them: later ones were made from the same study.
    for layer in set_up.first().copied().unwrap_or_default() {
        let named =
            |fact: &Fact| Fact::new(format!("{}: {}", layer.layer, fact.name), fact.shown());
        facts.extend(layer.facts.iter().map(named));
    }
    facts
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
    // Fixed before the second pass, so that a pair it finds does not make another one unique.
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

/// One metric of two sides, from what each run has, oriented up; none where one side has none.
fn figure(metric: &MetricHead, a: &RunLogs, b: &RunLogs) -> Option<FigurePair> {
    let resolution = coarser(&a.steps, &b.steps);
    let ratio = ratio(&a.logs, &b.logs, resolution)?;
    // The logarithms are oriented up, so a mean of "lower is better" has its sign turned back.
    let value = |logs: &[f64]| {
        let mean = stackrace_stats::mean(logs);
        match metric.better {
            Better::Higher => exp(mean),
            Better::Lower => exp(-mean),
        }
    };
    Some(FigurePair {
        metric: metric.clone(),
        a: value(&a.logs),
        b: value(&b.logs),
        results: (a.logs.len(), b.logs.len()),
        ratio,
        resolution: resolution::share(resolution),
        differs: differs(Some(ratio)),
    })
}

/// Facts that are not the same on both sides, in A's order, then B's.
fn differing(a: &[Fact], b: &[Fact]) -> Vec<(String, Option<String>, Option<String>)> {
    let of = |facts: &[Fact], name: &str| Fact::value_of(facts, name).map(str::to_owned);
    distinct(a.iter().chain(b).map(|fact| fact.name.as_str()))
        .into_iter()
        .map(|name| (name.to_owned(), of(a, name), of(b, name)))
        .filter(|(_, a, b)| a != b)
        .collect()
}
