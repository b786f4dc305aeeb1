//! The answer of a gate in a sentence.

use super::answer::{FigureAnswer, GateAnswer, GateOutcome, GateSide};
use crate::verdict::Interval;
use crate::verdict::fragment::range;
use libm::log as ln;
use stackrace_base::unit;

pub(super) fn sentence(gate: &GateAnswer) -> String {
    if let Some(failure) = &gate.failed {
        return format!(
            "a trial of {} failed, so there is no answer: {}",
            failure.configuration, failure.error
        );
    }
    let name = |side: &GateSide| match gate.compared.runs == gate.baseline.runs {
        true => side.configuration.clone(),
        false => format!("{} of {}", side.configuration, runs(side)),
    };
    let (b, a) = (name(&gate.compared), name(&gate.baseline));
    let by = share(gate.worse_than);
    // One of those that made the outcome what it is stands for all.
    let of_outcome = || gate.answers.iter().filter(|a| a.outcome == gate.outcome);
    let Some(answer) = of_outcome().min_by(|x, y| estimate(x).total_cmp(&estimate(y))) else {
        return String::new();
    };
    let place = match of_outcome().count() {
        1 => on(answer),
        n => format!("{}, the worst of {n}", on(answer)),
    };
    let found = found(gate, answer, &place);
    let told = match gate.outcome {
        GateOutcome::Passed => format!("{b} is not more than {by} worse than {a}: {found}"),
        GateOutcome::Worse => format!("{b} is more than {by} worse than {a}: {found}"),
        GateOutcome::Undecided => {
            let most = of_outcome().map(|answer| answer.more);
            // One that no number of rounds would decide leaves the whole undecided.
            let most = most
                .reduce(|x, y| x.zip(y).map(|(x, y)| x.max(y)))
                .flatten();
            let outlook = outlook(gate, answer, most);
            format!("{b} may be more than {by} worse than {a}: {found}{outlook}")
        }
    };
    let paired = if gate.paired { "" } else { ", unpaired" };
    let declared = match gate.undeclared.is_empty() {
        true => "",
        false => ", not declared before",
    };
    format!(
        "{told} ({} confidence{paired}{declared}).",
        unit::percent(gate.confidence)
    )
}

fn runs(side: &GateSide) -> String {
    match side.runs.as_slice() {
        [run] => run.clone(),
        [first, others @ ..] => format!("{first} and {} more", others.len()),
        [] => String::new(),
    }
}

/// What was found on the figure that stands for all, at its place.
fn found(gate: &GateAnswer, answer: &FigureAnswer, place: &str) -> String {
    match (answer.ratio, answer.lacking) {
        (Some(ratio), _) => format!("{} {place}", range(ratio)),
        // Of separate runs each is one value, so that it is runs they lack.
        (None, Some(lacking)) if gate.paired || !lacking.takes_rounds() => {
            format!("{place}: {}", lacking.words())
        }
        (None, _) => format!("too few runs for an interval {place}"),
    }
}

/// What would decide, behind what was found.
fn outlook(gate: &GateAnswer, answer: &FigureAnswer, more: Option<u32>) -> String {
    let (one, many) = match gate.paired {
        true => ("round", "rounds"),
        false => ("run of each", "runs of each"),
    };
    match (more, answer.ratio) {
        (Some(1), _) => format!("; 1 more {one} might decide"),
        (Some(more), _) => format!("; about {more} more {many} would decide"),
        // Figures of larger steps than what is asked about.
        (None, Some(ratio)) if hidden(ratio, answer.resolution, gate.worse_than) => format!(
            "; the figures are known to {} only, and no number of {} changes that",
            unit::percent_rounded(answer.resolution, unit::Rounded::Up),
            if gate.paired { "rounds" } else { "runs" },
        ),
        (None, Some(_)) => {
            format!("; how many more {many} would decide cannot be told yet")
        }
        // What would help is said with what is lacking.
        (None, None) => String::new(),
    }
}

/// A share that is mostly a round number: `5 %`.
pub(super) fn share(value: f64) -> String {
    unit::percent(value).replace(".0 ", " ")
}

/// Returns true if the limit is nearer than a step of the figures.
fn hidden(ratio: Interval, resolution: f64, worse_than: f64) -> bool {
    let beyond = ln(ratio.estimate) - ln(1.0 - worse_than);
    resolution > 0.0 && beyond.abs() <= ln(1.0 + resolution)
}

fn estimate(answer: &FigureAnswer) -> f64 {
    answer.ratio.map_or(0.0, |ratio| ratio.estimate)
}

/// `over all workloads`, `copy: throughput`.
pub fn figure_of(answer: &FigureAnswer) -> String {
    match &answer.metric {
        None => "over all workloads".to_owned(),
        Some(metric) => metric.on(&answer.workload),
    }
}

/// `over all workloads`, `on copy: throughput`.
pub fn on(answer: &FigureAnswer) -> String {
    let on = if answer.metric.is_some() { "on " } else { "" };
    format!("{on}{}", figure_of(answer))
}
