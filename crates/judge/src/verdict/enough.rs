//! Is it enough? The bounds that a study requires, judged for each configuration.
//!
//! A round gives one value of each metric, also of a quantile: the operations inside of a trial are no
//! repetitions, they share the state of the device. The value of a typical round is estimated from the rounds, with an
//! interval that holds at every look, and the whole interval must lie on one side of the bound before anything is said.
//! All statements share the error of the run.

use libm::log as ln;
use serde::Serialize;
use stackrace_stats::{FIRST_LOOK, geometric_mean, rounds_to_decide, two_sided_level};

use super::evidence::Evidence;
use super::fidelity;
use super::fragment::times_rounded;
use super::lacking::few_operations;
use super::statement::{Interval, More};
use super::still;
use super::table::{ComparedFigure, ObservationTable};
use stackrace_base::event::{BoundSide, Decide, Ended, MetricHead, NamedQuantile, Requirement};
use stackrace_base::unit::{self, Rounded, counted, listed_names};
use stackrace_base::video;

/// Difference from the bound that counts as one: any.
const NO_MARGIN: f64 = 1e-9;

/// The answer to a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enough {
    /// The figure is surely within the bound.
    Meets,
    /// Not certain yet.
    Open,
    /// The figure is surely beyond the bound.
    Fails,
}

impl Enough {
    /// The answer as it stands in a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Meets => "meets it",
            Self::Open => "not certain yet",
            Self::Fails => "does not meet it",
        }
    }
}

/// One requirement of one configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequiredRow {
    /// Configuration by index.
    pub configuration: usize,
    /// Name of the configuration.
    pub name: String,
    /// Name of the workload.
    pub workload: String,
    /// The metric that is bounded.
    pub metric: MetricHead,
    /// Side of the bound on which it must stay.
    pub limit: BoundSide,
    /// The bound, in the unit of the metric.
    pub bound: f64,
    /// Value in a typical round with its interval; `None` before the first look.
    pub value: Option<Interval>,
    /// The answer.
    pub enough: Enough,
    /// Operations of the trial that has fewest, where they are too few for a quantile to say that it is enough; `None` if
    /// they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Length of the shortest phase, ns, where it is too short for a slowest second; `None` if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_ns: Option<u64>,
    /// True if the figure is the same to the last digit in every round, as no measurement is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub still: bool,
    /// Logarithms of value over bound, one for each round.
    #[serde(skip)]
    logs: Vec<f64>,
    /// Width of a step of the value, on the log scale.
    #[serde(skip)]
    log_step: f64,
}

impl RequiredRow {
    /// `fsync latency p99 8.12 ms (7.60 ms to 8.70 ms), required at most 10.0 ms: at least 13 % below`
    pub fn words(&self) -> String {
        let shown = |value: f64| unit::of_metric(&self.metric.unit, value);
        let bound = format!("required {} {}", self.limit.words(), shown(self.bound));
        let few = format!("{}{}", self.few_words(), self.still_words());
        let Some(value) = self.value else {
            return format!("{}: no figure yet, {bound}{few}", self.metric.name);
        };
        let range = format!("({} to {})", shown(value.low), shown(value.high));
        // The end of the interval that is nearest to the bound: so much is sure.
        let apart = match (value.low > self.bound, value.high < self.bound) {
            (true, _) if value.low >= 2.0 * self.bound => {
                let times = times_rounded(value.low / self.bound, Rounded::Down);
                format!(", at least {times} times as much")
            }
            (true, _) => format!(
                ", at least {} above it",
                unit::percent_rounded(value.low / self.bound - 1.0, Rounded::Down)
            ),
            (_, true) if value.high <= 0.5 * self.bound => {
                let times = times_rounded(self.bound / value.high, Rounded::Down);
                format!(", which is at least {times} times as much")
            }
            (_, true) => format!(
                ", at least {} below it",
                unit::percent_rounded(1.0 - value.high / self.bound, Rounded::Down)
            ),
            _ => String::new(),
        };
        format!(
            "{} {} {range}; {bound}{apart}{few}",
            self.metric.name,
            shown(value.estimate)
        )
    }

    /// Doubt about a figure that never moves; empty if it does.
    fn still_words(&self) -> String {
        match self.still {
            true => format!("; but it has {}", still::DOUBT),
            false => String::new(),
        }
    }

    /// Returns true if longer trials would answer what further rounds do not.
    pub fn is_too_short(&self) -> bool {
        self.operations.is_some() || self.phase_ns.is_some()
    }

    /// Why a quantile or a slowest second cannot say that it is enough; empty if it can.
    fn few_words(&self) -> String {
        if let Some(ns) = self.phase_ns {
            let lasted = unit::time_ns(ns as f64);
            return format!(
                "; a phase lasted only {lasted}, and it takes a second: longer trials would tell, further rounds would not"
            );
        }
        let few = self.operations.zip(NamedQuantile::of(&self.metric.name));
        few.map_or(String::new(), |(count, quantile)| {
            let (word, needed) = (quantile.word, quantile.needed);
            let needed = unit::count(needed);
            format!(
                "; a trial has only {}, and {word} takes {needed}: longer trials would tell, further rounds would not",
                counted(count as usize, "operation")
            )
        })
    }
}

/// Every requirement of every configuration.
pub(super) fn rows(table: &ObservationTable<'_>) -> Vec<RequiredRow> {
    let head = table.evidence.head;
    let all = (0..table.configurations()).flat_map(|configuration| {
        head.decide
            .required
            .iter()
            .map(move |it| (configuration, it))
    });
    all.filter_map(|(configuration, required)| row(table, configuration, required))
        .collect()
}

/// One of them; `None` if a log names what it does not have.
fn row(
    table: &ObservationTable<'_>,
    configuration: usize,
    required: &Requirement,
) -> Option<RequiredRow> {
    let head = table.evidence.head;
    let workload = head.workloads.get(required.workload)?;
    let metric = workload.metrics.get(required.metric)?;
    let figure = ComparedFigure::Metric {
        workload: required.workload,
        metric: required.metric,
    };
    let value = |at| table.value(configuration, required.workload, required.metric, at);
    let rounds = 0..table.rounds_of(configuration);
    let rounds: Vec<usize> = rounds.filter(|at| value(*at).is_some()).collect();
    let steps = rounds
        .iter()
        .map(|at| table.log_step(configuration, figure, *at));
    let log_step = steps.fold(0.0, f64::max);
    let values: Vec<f64> = rounds.iter().filter_map(|at| value(*at)).collect();
    let still = still::is_still(table, configuration, figure, &rounds);
    let (value, enough) = match table.evidence.imported {
        true => (None, Enough::Open),
        false => judged(&values, log_step, required, alpha(table)),
    };
    // Too few operations see too little of the tail: their quantile is too small, so that one beyond the bound is sure.
    let few = few_operations(table, configuration, required.workload, &metric.name);
    let few = few.map(|(have, _)| have);
    // Where every trial has too few there is no figure at all, however many rounds are run.
    let rounds = u32::try_from(table.rounds.len()).unwrap_or(u32::MAX);
    let never = value.is_none() && rounds >= FIRST_LOOK;
    let operations = few.filter(|_| enough == Enough::Meets || never);
    let phase_ns = phase_below_a_second(table, (configuration, required.workload), &metric.name)
        .filter(|_| enough == Enough::Meets);
    let figure = ComparedFigure::Metric {
        workload: required.workload,
        metric: required.metric,
    };
    let enough = match operations.or(phase_ns) {
        Some(_) => Enough::Open,
        // Of the application it says nothing.
        None if fidelity::is_unlike(table.evidence, figure) => Enough::Open,
        None => enough,
    };
    Some(RequiredRow {
        configuration,
        name: head.configurations[configuration].name.clone(),
        workload: workload.name.clone(),
        metric: metric.clone(),
        limit: required.limit,
        bound: required.bound,
        value,
        enough,
        operations,
        phase_ns,
        still,
        logs: values
            .iter()
            .map(|value| ln(value / required.bound))
            .collect(),
        log_step,
    })
}

/// Length of the shortest phase of these trials, ns, where the figure is that of a slowest second and none was so long.
fn phase_below_a_second(
    table: &ObservationTable<'_>,
    of: (usize, usize),
    metric: &str,
) -> Option<u64> {
    if ![video::WRITE_SLOWEST, video::READ_SLOWEST].contains(&metric) {
        return None;
    }
    let all = table.evidence.trials.iter();
    let own = all.filter(|it| (it.configuration, it.workload) == of && it.ended == Ended::Complete);
    let phases = own.flat_map(|trial| &trial.phases);
    let shortest = phases.map(|phase| phase.elapsed_ns).min()?;
    (shortest < video::WINDOW_NS).then_some(shortest)
}

/// Error of one statement over all looks.
fn alpha(table: &ObservationTable<'_>) -> f64 {
    let decide: &Decide = &table.evidence.head.decide;
    let configurations = table.configurations();
    let statements = (configurations * decide.required.len()).max(1);
    decide.required_error(configurations) / statements as f64
}

/// The value of a typical round with the interval that holds at all looks, and what follows from it.
fn judged(
    values: &[f64],
    log_step: f64,
    required: &Requirement,
    alpha: f64,
) -> (Option<Interval>, Enough) {
    let rounds = u32::try_from(values.len()).unwrap_or(u32::MAX);
    if rounds < FIRST_LOOK {
        return (None, Enough::Open);
    }
    // A value is known to half a step on either side.
    let value = geometric_mean(values, two_sided_level(alpha, rounds))
        .map(|value| Interval::from(value.widened(log_step / 2.0)));
    let enough = match value {
        None => Enough::Open,
        Some(value) => {
            let keeps = |end| required.limit.holds(end, required.bound);
            match (keeps(value.low), keeps(value.high)) {
                (true, true) => Enough::Meets,
                (false, false) => Enough::Fails,
                _ => Enough::Open,
            }
        }
    };
    (value, enough)
}

/// Returns true if further rounds would answer nothing more about the requirements of a configuration.
pub(super) fn is_closed(rows: &[RequiredRow], configuration: usize) -> bool {
    let own = rows.iter().filter(|row| row.configuration == configuration);
    // More rounds do not make trials longer.
    let open = own.filter(|row| row.enough == Enough::Open && !row.is_too_short());
    of(rows, configuration) != Enough::Open || open.count() == 0
}

/// Returns true if further rounds would answer nothing more of what is required, of the configurations that are still
/// measured. Where none is, nothing was answered.
pub(super) fn closed(rows: &[RequiredRow], table: &ObservationTable<'_>) -> bool {
    let mut live = live(table).peekable();
    let left = rows.is_empty() || live.peek().is_some();
    left && live.all(|configuration| is_closed(rows, configuration))
}

/// Returns true if all that is still open is so because trials have too few operations.
pub(super) fn too_short(rows: &[RequiredRow], table: &ObservationTable<'_>) -> bool {
    let open = |configuration| of(rows, configuration) == Enough::Open;
    closed(rows, table) && live(table).any(open)
}

fn live(table: &ObservationTable<'_>) -> impl Iterator<Item = usize> {
    (0..table.configurations()).filter(|c| table.live(*c))
}

/// The answer of one configuration: it meets all, fails one, or neither is certain.
pub(super) fn of(rows: &[RequiredRow], configuration: usize) -> Enough {
    let own = rows.iter().filter(|row| row.configuration == configuration);
    // One that fails is enough to know; the order of the words says which counts most.
    let mut words = own.map(|row| row.enough).peekable();
    if words.peek().is_none() {
        return Enough::Meets;
    }
    words.fold(Enough::Meets, |all, one| match (all, one) {
        (Enough::Fails, _) | (_, Enough::Fails) => Enough::Fails,
        (Enough::Open, _) | (_, Enough::Open) => Enough::Open,
        _ => Enough::Meets,
    })
}

/// Which configurations meet what is required, in a sentence; empty if nothing is.
pub(super) fn sentence(rows: &[RequiredRow], evidence: &Evidence<'_>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = evidence
        .head
        .configurations
        .iter()
        .map(|it| &*it.name)
        .collect();
    let failed = evidence.failed();
    let with = |word: Enough| {
        let all = names.iter().enumerate().filter(|(at, _)| {
            !failed.iter().any(|it| it.configuration == *at) && of(rows, *at) == word
        });
        all.map(|(_, name)| *name).collect::<Vec<_>>()
    };
    let plural = |all: &[&str], one: &'static str, several: &'static str| match all.len() {
        1 => one,
        _ => several,
    };
    let mut parts = Vec::new();
    let (meets, open, fails) = (with(Enough::Meets), with(Enough::Open), with(Enough::Fails));
    if !meets.is_empty() {
        parts.push(format!(
            "{} {} it",
            listed_names(&meets),
            plural(&meets, "meets", "meet")
        ));
    }
    if !fails.is_empty() {
        let not = plural(&fails, "does not meet", "do not meet");
        parts.push(format!("{} {not} it", listed_names(&fails)));
    }
    if !open.is_empty() {
        let not = if parts.is_empty() { "Not" } else { "not" };
        let meet = plural(&open, "meets", "meet");
        parts.push(format!(
            "{not} certain yet whether {} {meet} it",
            listed_names(&open)
        ));
    }
    // Those that failed have no answer.
    if parts.is_empty() {
        return String::new();
    }
    let cheapest = cheapest(&meets, &open, evidence);
    // With one configuration and one bound, the figure is the answer.
    let said = match rows {
        [only] => format!("{}: {}.", parts.join("; "), only.words()),
        _ => format!("{}.{cheapest}", parts.join("; ")),
    };
    let lost = evidence.in_memory.iter().filter_map(|at| names.get(*at));
    let lost: Vec<&str> = lost.copied().collect();
    match lost.is_empty() {
        true => said,
        false => format!(
            "{} {} in memory: nothing there is kept when the machine is switched off. {said}",
            listed_names(&lost),
            plural(&lost, "lies", "lie")
        ),
    }
}

/// The cheapest of those that meet it, and cheaper ones of which that is not certain; empty if the study has no costs.
fn cheapest(meets: &[&str], open: &[&str], evidence: &Evidence<'_>) -> String {
    let all = &evidence.head.configurations;
    let cost = |name: &str| all.iter().find(|it| it.name == name)?.cost.as_ref();
    let priced = meets.iter().filter_map(|name| Some((*name, cost(name)?)));
    let Some((_, least)) = priced
        .clone()
        .min_by(|a, b| a.1.amount.total_cmp(&b.1.amount))
    else {
        return String::new();
    };
    let names: Vec<&str> = priced
        .filter(|(_, it)| it.amount <= least.amount)
        .map(|(name, _)| name)
        .collect();
    let cheaper = |name: &&&str| cost(name).is_some_and(|it| it.amount < least.amount);
    let cheaper: Vec<&str> = open.iter().filter(cheaper).copied().collect();
    let unsure = match cheaper.is_empty() {
        true => String::new(),
        false => format!("; {} would be cheaper", listed_names(&cheaper)),
    };
    format!(
        " The cheapest that {} {} ({}){unsure}.",
        match names.len() {
            1 => "meets it is",
            _ => "meet it are",
        },
        listed_names(&names),
        least.words()
    )
}

/// One sentence for each requirement of each configuration, where there are several.
pub(super) fn details(rows: &[RequiredRow]) -> Vec<String> {
    if rows.len() < 2 {
        return Vec::new();
    }
    let said = rows.iter().map(|row| {
        let answer = row.enough.words();
        format!("{}, {}: {answer}: {}.", row.name, row.workload, row.words())
    });
    said.collect()
}

/// Further rounds that would answer what is open about the requirements; `None` if nothing is.
pub(super) fn more(rows: &[RequiredRow], table: &ObservationTable<'_>) -> Option<More> {
    let open = |row: &&RequiredRow| {
        table.live(row.configuration)
            && !is_closed(rows, row.configuration)
            && row.enough == Enough::Open
            && !row.is_too_short()
    };
    let open: Vec<&RequiredRow> = rows.iter().filter(open).collect();
    if open.is_empty() || table.evidence.imported {
        return None;
    }
    let further = |row: &&RequiredRow| {
        let total = rounds_to_decide(&row.logs, row.log_step, alpha(table), NO_MARGIN)?;
        Some(total.saturating_sub(u32::try_from(row.logs.len()).unwrap_or(total)))
    };
    let all: Option<Vec<u32>> = open.iter().map(further).collect();
    let rounds = all.and_then(|all| all.into_iter().max());
    let pace = table.evidence.round_seconds;
    Some(More {
        rounds,
        seconds: rounds.zip(pace).map(|(n, s)| f64::from(n) * s),
    })
}

/// The longer of two ways to go; one that cannot be told is the longest.
pub(super) fn longest(one: Option<More>, other: Option<More>) -> Option<More> {
    match (one, other) {
        (Some(one), Some(other)) => Some(match (one.rounds, other.rounds) {
            (Some(a), Some(b)) if a >= b => one,
            (None, _) => one,
            _ => other,
        }),
        (one, other) => one.or(other),
    }
}

/// What one configuration alone was asked: whether it is enough.
pub(super) fn alone(rows: &[RequiredRow], evidence: &Evidence<'_>, rounds: u32) -> String {
    let answer = sentence(rows, evidence);
    match (rounds < FIRST_LOOK, answer.is_empty()) {
        (true, _) => format!(
            "No answer yet: {}; the first needs {FIRST_LOOK}.",
            counted(rounds as usize, "complete round")
        ),
        (_, true) => answer,
        _ => format!("{} {}.", answer, counted(rounds as usize, "round")),
    }
}
