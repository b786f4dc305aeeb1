//! The rules: which rounds count, which comparisons are asked, what may be said of each.
//!
//! A run's error probability (1 - confidence) is spent in halves: one on the overall comparisons,
//! one on the workloads'. Each half is shared equally over its comparisons (Bonferroni) and over the
//! planned looks, so every statement made at any look holds together with the others. With one
//! workload both are the same and nothing is halved. Comparisons within levels of other factors are
//! shown beside them, not corrected for their number; their text says so.

use stackrace_stats::{Looks, Ratio};

use super::table::{ComparedFigure, Evidence, ObservationTable};
use super::{
    Comparison, ConfigurationRow, Interval, MetricCell, More, State, Verdict, VerdictWord,
};
use super::{course, effects, sentence};
use crate::event::{Ended, RunStarted};

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
            stackrace_stats::Classification::Undecided => Self::Undecided,
        }
    }
}

/// A set of configurations compared with another, pair by pair (`a[i]` with `b[i]`), averaged.
#[derive(Debug, Clone)]
pub(super) struct Sides {
    pub(super) a: Vec<usize>,
    pub(super) b: Vec<usize>,
    pub(super) a_name: String,
    pub(super) b_name: String,
    pub(super) within: String,
}

/// How much error each comparison of a family may spend at one look.
#[derive(Debug, Clone, Copy)]
struct Spending {
    overall: f64,
    workload: f64,
    within: f64,
}

/// What the record says so far.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Verdict {
    let decide = &evidence.head.decide;
    let looks = Looks::plan(decide.rounds_max);
    let all = ObservationTable::new(evidence);
    let complete = u32::try_from(all.rounds.len()).unwrap_or(u32::MAX);
    // What was imported is looked at once, whole, and never judged.
    let look = looks
        .last_look_at_or_before(complete)
        .filter(|_| !evidence.imported);
    // Between looks the statements of the last look stand; before the first there are none.
    let mut at_look = evidence.clone();
    at_look.rounds.truncate(look.unwrap_or(complete) as usize);
    let table = ObservationTable::new(&at_look);
    let pairs = sides(&table);
    let spending = spending(&table, &looks, &pairs);
    let (within, whole): (Vec<Sides>, Vec<Sides>) =
        pairs.into_iter().partition(|pair| !pair.within.is_empty());
    let whole_figure = |pairs: &[Sides], spent| -> Vec<Comparison> {
        let compared = pairs
            .iter()
            .map(|pair| comparison(&table, pair, ComparedFigure::Overall, spent, look));
        compared.collect()
    };
    let overall = whole_figure(&whole, spending.overall);
    // A single workload is the overall figure: said once.
    let mut workloads = match table.workloads() {
        1 => Vec::new(),
        _ => workload_comparisons(&table, &whole, spending.workload, look),
    };
    let mut parts = whole_figure(&within, spending.within);
    if table.workloads() > 1 {
        parts.extend(workload_comparisons(&table, &within, spending.within, look));
    }
    workloads.extend(parts);
    if evidence.imported {
        // Foreign results need not have anything in common.
        workloads.retain(|comparison| comparison.ratio.is_some());
    }
    let state = state(&table, &overall, look);
    let more = more(
        &table, &looks, &overall, &workloads, spending, state, complete,
    );
    let courses = course::courses(evidence);
    let mut notes = notes(&table);
    notes.extend(course::notes(evidence, &courses));
    let mut verdict = Verdict {
        sentence: String::new(),
        details: Vec::new(),
        state,
        rounds: complete,
        checked_at: look,
        planned_checks: looks.rounds().to_vec(),
        confidence: decide.confidence,
        margin: decide.margin,
        configurations: rows(&table, &overall, decide.comparison.is_none()),
        overall,
        workloads,
        effects: effects::effects(&table, &looks, look),
        courses,
        more,
        notes,
    };
    verdict.sentence = match failure(evidence) {
        Some(failure) if verdict.state == State::TooFew => failure,
        _ => sentence::whole(&verdict, evidence.head),
    };
    verdict.details = sentence::details(&verdict, evidence.head);
    verdict
}

/// Why there will be no verdict, if a configuration failed.
fn failure(evidence: &Evidence<'_>) -> Option<String> {
    evidence.trials.iter().find_map(|trial| match &trial.ended {
        Ended::Failed { error } => {
            let name = &evidence.head.configurations.get(trial.configuration)?.name;
            let round = trial.round;
            Some(format!(
                "No verdict: {name} failed in round {round}: {error}."
            ))
        }
        _ => None,
    })
}

/// Configurations the data of a look say to drop: those that are worse than the leader. The best is
/// ever dropped with at most the run's error probability. Only where a ranking is asked, and not
/// where every round was: that is meant for every configuration.
pub(crate) fn to_drop(evidence: &Evidence<'_>) -> Vec<usize> {
    use crate::event::Until;
    let decide = &evidence.head.decide;
    let table = ObservationTable::new(evidence);
    let looks = Looks::plan(decide.rounds_max);
    let live: Vec<usize> = (0..table.configurations())
        .filter(|t| table.live(*t))
        .collect();
    let ranking = decide.comparison.is_none() && decide.until != Until::Never;
    if !ranking || table.configurations() < 3 || live.len() < 2 {
        return Vec::new();
    }
    stackrace_stats::eliminate(
        &overall_series(&table),
        &live,
        looks.alpha_per_look(1.0 - decide.confidence),
        table.configurations(),
    )
}

/// Overall figures `[configuration][round]`; a missing one is not a number, and its round is left out.
fn overall_series(table: &ObservationTable<'_>) -> Vec<Vec<f64>> {
    let figure = |t, at| table.overall_ln(t, at).unwrap_or(f64::NAN);
    (0..table.configurations())
        .map(|t| (0..table.rounds.len()).map(|at| figure(t, at)).collect())
        .collect()
}

/// The comparisons the study asks for, those over everything first.
pub(super) fn sides(table: &ObservationTable<'_>) -> Vec<Sides> {
    let head = table.evidence.head;
    match &head.decide.comparison {
        Some(factor) => factor_sides(head, factor),
        None => configuration_sides(table),
    }
}

/// Every level of a factor against its first, over all other factors and within their levels.
pub(super) fn factor_sides(head: &RunStarted, factor: &str) -> Vec<Sides> {
    let Some(index) = head.factors.iter().position(|name| name == factor) else {
        return Vec::new();
    };
    let mut levels: Vec<&str> = Vec::new();
    for configuration in &head.configurations {
        if !levels.contains(&configuration.levels[index].as_str()) {
            levels.push(&configuration.levels[index]);
        }
    }
    let others = |t: usize| -> Vec<&str> {
        head.configurations[t]
            .levels
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != index)
            .map(|(_, level)| level.as_str())
            .collect()
    };
    let of_level = |level: &str| -> Vec<usize> {
        (0..head.configurations.len())
            .filter(|t| head.configurations[*t].levels[index] == level)
            .collect()
    };
    let (Some(base), rest) = (levels.first(), levels.iter().skip(1)) else {
        return Vec::new();
    };
    let mut whole = Vec::new();
    let mut within = Vec::new();
    for level in rest {
        let mut matched = (Vec::new(), Vec::new());
        for a in of_level(base) {
            // Only combinations that exist at both levels are compared.
            let Some(b) = of_level(level)
                .into_iter()
                .find(|b| others(*b) == others(a))
            else {
                continue;
            };
            matched.0.push(a);
            matched.1.push(b);
            let place = within_name(head, a, index);
            within.push(Sides {
                a: vec![a],
                b: vec![b],
                a_name: (*base).to_owned(),
                b_name: (*level).to_owned(),
                within: place,
            });
        }
        if !matched.0.is_empty() {
            whole.push(Sides {
                a: matched.0,
                b: matched.1,
                a_name: (*base).to_owned(),
                b_name: (*level).to_owned(),
                within: String::new(),
            });
        }
    }
    if whole.iter().any(|sides| sides.a.len() > 1) {
        whole.extend(within);
    }
    whole
}

fn within_name(head: &RunStarted, configuration: usize, without: usize) -> String {
    let names: Vec<&str> = head.configurations[configuration]
        .levels
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != without)
        .map(|(_, level)| level.as_str())
        .collect();
    names.join(", ")
}

/// Two configurations: the second against the first. More: each against the leader.
fn configuration_sides(table: &ObservationTable<'_>) -> Vec<Sides> {
    let head = table.evidence.head;
    let n = table.configurations();
    if n < 2 {
        return Vec::new();
    }
    let base = if n == 2 { 0 } else { leader(table) };
    (0..n)
        .filter(|t| *t != base)
        .map(|t| Sides {
            a: vec![base],
            b: vec![t],
            a_name: head.configurations[base].name.clone(),
            b_name: head.configurations[t].name.clone(),
            within: String::new(),
        })
        .collect()
}

/// The live configuration with the best mean overall figure over the rounds it has.
fn leader(table: &ObservationTable<'_>) -> usize {
    let mean = |t: usize| -> f64 {
        let values: Vec<f64> = (0..table.rounds_of(t))
            .filter_map(|at| table.overall_ln(t, at))
            .collect();
        if values.is_empty() {
            f64::NEG_INFINITY
        } else {
            stackrace_stats::mean(&values)
        }
    };
    (0..table.configurations())
        .filter(|t| table.live(*t))
        .max_by(|x, y| mean(*x).total_cmp(&mean(*y)))
        .unwrap_or(0)
}

fn spending(table: &ObservationTable<'_>, looks: &Looks, pairs: &[Sides]) -> Spending {
    let decide = &table.evidence.head.decide;
    let k = table.configurations();
    // Against the leader the pair is chosen by the data: every pair could have been asked.
    let comparisons = match &decide.comparison {
        None if k > 2 => k * (k - 1) / 2,
        _ => pairs
            .iter()
            .filter(|pair| pair.within.is_empty())
            .count()
            .max(1),
    } as f64;
    let workloads = table.workloads() as f64;
    let look = looks.alpha_per_look(1.0 - decide.confidence);
    if table.workloads() == 1 {
        return Spending {
            overall: look / comparisons,
            workload: look / comparisons,
            within: look,
        };
    }
    Spending {
        overall: look / 2.0 / comparisons,
        workload: look / 2.0 / comparisons / workloads,
        within: look,
    }
}

fn workload_comparisons(
    table: &ObservationTable<'_>,
    pairs: &[Sides],
    alpha: f64,
    look: Option<u32>,
) -> Vec<Comparison> {
    let by_workload = |w: usize| {
        pairs
            .iter()
            .map(move |pair| comparison(table, pair, ComparedFigure::primary(w), alpha, look))
    };
    (0..table.workloads()).flat_map(by_workload).collect()
}

/// Log differences of one comparison, by position in the rounds.
fn differences(
    table: &ObservationTable<'_>,
    sides: &Sides,
    figure: ComparedFigure,
) -> Vec<(u32, f64)> {
    let rounds = sides
        .a
        .iter()
        .chain(&sides.b)
        .map(|t| table.rounds_of(*t))
        .min()
        .unwrap_or(0);
    (0..rounds)
        .filter_map(|at| {
            let mut sum = 0.0;
            for (a, b) in sides.a.iter().zip(&sides.b) {
                sum += table.ln(*b, figure, at)? - table.ln(*a, figure, at)?;
            }
            Some((table.rounds[at], sum / sides.a.len() as f64))
        })
        .collect()
}

/// What the rounds of a look say of two sides on a figure.
pub(super) fn comparison(
    table: &ObservationTable<'_>,
    sides: &Sides,
    figure: ComparedFigure,
    alpha: f64,
    look: Option<u32>,
) -> Comparison {
    if table.evidence.imported {
        return super::unpaired::comparison(table, (sides.a[0], sides.b[0]), figure);
    }
    let head = table.evidence.head;
    let pairs = differences(table, sides, figure);
    let logs: Vec<f64> = pairs.iter().map(|(_, d)| *d).collect();
    // Three pairs are the least an interval is made from, wherever values are missing.
    let ratio = (look.is_some() && logs.len() >= 3)
        .then(|| stackrace_stats::paired_ratio(&logs, alpha))
        .flatten();
    let word = ratio.map_or(VerdictWord::TooFew, |ratio| {
        stackrace_stats::classify(&ratio, head.decide.margin).into()
    });
    let interval = ratio.map(Interval::from);
    Comparison {
        a: sides.a_name.clone(),
        b: sides.b_name.clone(),
        within: sides.within.clone(),
        workload: figure.workload_name(head),
        metric: figure.metric(head).cloned(),
        ratio: interval,
        word,
        text: sentence::fragment(word, interval),
        rounds: pairs.iter().map(|(round, d)| (*round, d.exp())).collect(),
        robust: (logs.len() >= 8)
            .then(|| stackrace_stats::hodges_lehmann(&logs, alpha))
            .flatten()
            .map(Interval::from),
    }
}

fn state(table: &ObservationTable<'_>, overall: &[Comparison], look: Option<u32>) -> State {
    if table.evidence.imported {
        return State::Unpaired;
    }
    if look.is_none() {
        return State::TooFew;
    }
    if overall.is_empty() {
        return State::Undecided;
    }
    if table.evidence.head.decide.comparison.is_some() || table.configurations() == 2 {
        return if overall.iter().all(|c| c.word.decides()) {
            State::Decided
        } else {
            State::Undecided
        };
    }
    // Which is best: every other one is worse than the leader or within the margin of it.
    let dropped = |c: &Comparison| {
        table
            .evidence
            .dropped
            .iter()
            .any(|(t, _)| table.evidence.head.configurations[*t].name == c.b)
    };
    if overall.iter().all(|c| c.word.settles_rank() || dropped(c)) {
        State::Decided
    } else {
        State::Undecided
    }
}

/// Whether the run may stop at this look.
pub(crate) fn may_stop(verdict: &Verdict, head: &RunStarted) -> bool {
    use crate::event::Until;
    match head.decide.until {
        Until::Never => false,
        Until::Overall => verdict.state == State::Decided,
        Until::Each => {
            let each = verdict.workloads.iter().filter(|c| c.within.is_empty());
            verdict.state == State::Decided && each.into_iter().all(|c| c.word.decides())
        }
    }
}

fn more(
    table: &ObservationTable<'_>,
    looks: &Looks,
    overall: &[Comparison],
    workloads: &[Comparison],
    spending: Spending,
    state: State,
    complete: u32,
) -> Option<More> {
    use crate::event::Until;
    let head = table.evidence.head;
    let open: Vec<(&Comparison, f64)> = match (state, head.decide.until) {
        (State::TooFew | State::Unpaired, _) => return None,
        (State::Undecided, _) => overall.iter().map(|c| (c, spending.overall)).collect(),
        (State::Decided, Until::Each) => workloads
            .iter()
            .filter(|c| c.within.is_empty())
            .map(|c| (c, spending.workload))
            .collect(),
        (State::Decided, _) => return None,
    };
    let mut needed: Option<u32> = Some(0);
    for (comparison, alpha) in open
        .into_iter()
        .filter(|(c, _)| c.word == VerdictWord::Undecided)
    {
        let logs: Vec<f64> = comparison
            .rounds
            .iter()
            .map(|(_, ratio)| ratio.ln())
            .collect();
        let rounds = stackrace_stats::rounds_to_decide(&logs, alpha, head.decide.margin);
        needed = needed.zip(rounds).map(|(x, y)| x.max(y));
    }
    if needed == Some(0) {
        return None;
    }
    // A verdict comes only at a look: the first planned one that is far enough.
    let total = needed
        .filter(|n| *n < stackrace_stats::equivalence::ROUNDS_MAX)
        .map(|n| {
            looks
                .rounds()
                .iter()
                .copied()
                .find(|look| *look >= n && *look > complete)
                .unwrap_or(n.max(complete + 1))
        });
    let rounds = total.map(|total| total - complete);
    Some(More {
        rounds,
        seconds: rounds
            .zip(table.evidence.round_seconds)
            .map(|(n, s)| f64::from(n) * s),
    })
}

fn rows(
    table: &ObservationTable<'_>,
    overall: &[Comparison],
    ranked: bool,
) -> Vec<ConfigurationRow> {
    let head = table.evidence.head;
    let mut rows: Vec<ConfigurationRow> = (0..table.configurations())
        .map(|t| ConfigurationRow {
            configuration: t,
            name: head.configurations[t].name.clone(),
            levels: head.configurations[t].levels.clone(),
            dropped_after: table
                .evidence
                .dropped
                .iter()
                .find(|(dropped, _)| *dropped == t)
                .map(|(_, n)| *n),
            overall: overall
                .iter()
                .find(|c| c.b == head.configurations[t].name)
                .and_then(|c| c.ratio),
            cells: cells(table, t),
        })
        .collect();
    let compared = !table.evidence.imported || overall.iter().any(|c| c.ratio.is_some());
    let base = overall.first().filter(|_| compared).map(|c| c.a.clone());
    for row in rows
        .iter_mut()
        .filter(|row| Some(&row.name) == base.as_ref())
    {
        row.overall = Some(Interval {
            estimate: 1.0,
            low: 1.0,
            high: 1.0,
        });
    }
    if ranked && rows.len() > 1 {
        let figure = |row: &ConfigurationRow| row.overall.map_or(0.0, |overall| overall.estimate);
        rows.sort_by(|x, y| figure(y).total_cmp(&figure(x)));
    }
    rows
}

fn cells(table: &ObservationTable<'_>, configuration: usize) -> Vec<MetricCell> {
    let head = table.evidence.head;
    let mut cells = Vec::new();
    for (w, workload) in head.workloads.iter().enumerate() {
        for (m, metric) in workload.metrics.iter().enumerate() {
            let rounds: Vec<(u32, f64)> = (0..table.rounds.len())
                .filter_map(|at| {
                    table
                        .value(configuration, w, m, at)
                        .map(|value| (table.rounds[at], value))
                })
                .collect();
            let values: Vec<f64> = rounds.iter().map(|(_, value)| *value).collect();
            let value = stackrace_stats::geometric_mean(&values, 0.05)
                .map(Interval::from)
                .or_else(|| {
                    // One round: the figure stands without an interval.
                    values.first().map(|value| Interval {
                        estimate: *value,
                        low: f64::NAN,
                        high: f64::NAN,
                    })
                });
            cells.push(MetricCell {
                workload: w,
                workload_name: workload.name.clone(),
                metric: metric.clone(),
                primary: m == 0,
                value,
                rounds,
            });
        }
    }
    cells
}

/// What spoils or limits the figures.
fn notes(table: &ObservationTable<'_>) -> Vec<String> {
    if table.evidence.imported {
        return super::unpaired::notes(table.evidence);
    }
    let mut notes = crate::audit::notes(
        table.evidence.head,
        &table.evidence.trials,
        &table.evidence.set_ups,
    );
    let missing = (0..table.configurations())
        .flat_map(|t| (0..table.rounds_of(t)).map(move |at| (t, at)))
        .filter(|(t, at)| table.overall_ln(*t, *at).is_none())
        .count();
    if missing > 0 && table.evidence.head.workloads.iter().any(|w| w.weight > 0.0) {
        notes.push(format!("a finished round lacks a complete trial {missing} times: it is left out of that configuration's overall comparison"));
    }
    notes
}
