//! What a careful reader would say of the figures, each found by a check over the data.
//!
//! A check is asked of every study: it looks at figures, at the names of factors and at stated
//! numbers, and is silent where they give it no reason to speak.

mod limit;
mod obtained;
mod sense;

use super::card::Card;
use super::ratio::on;
use super::table::{PublishedFigure, PublishedTable};

/// A remark, and the check that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Name of the check: `single-run`.
    pub(crate) check: &'static str,
    /// One or two sentences.
    pub(crate) text: String,
}

/// Per cent of one processor from which a figure is the processor's.
const CPU_BOUND: f64 = 95.0;
/// Below this many seconds bonnie++ 1.03 gives no rate, unless it is built otherwise.
const BRIEF_S: f64 = 0.5;

type Check = fn(&Card, &PublishedTable) -> Vec<String>;

/// Every check, in the order a reader needs them.
const ALL: &[(&str, Check)] = &[
    ("no-figures", obtained::no_figures),
    ("single-run", obtained::single_run),
    ("contradiction", obtained::contradiction),
    ("stated-size", obtained::stated_size),
    ("confounded", obtained::confounded),
    ("order", sense::order),
    ("cpu", limit::cpu),
    ("outlier", limit::outlier),
    ("too-short", limit::too_short),
    ("brief", limit::brief),
    ("memory", limit::memory),
    ("size", limit::size),
    ("line", limit::line),
    ("below-line", limit::below_line),
    ("rounding", sense::rounding),
    ("control", sense::control),
    ("placement", sense::placement),
    ("resilver", sense::resilver),
    ("rotation", sense::rotation),
];

/// Everything the checks find.
pub(crate) fn remarks(card: &Card, table: &PublishedTable) -> Vec<Remark> {
    ALL.iter()
        .flat_map(|(check, find)| {
            find(card, table)
                .into_iter()
                .map(|text| Remark { check, text })
        })
        .collect()
}

/// Figures, by their places, that say nothing of storage: the processor was the limit, the phase
/// was too brief, or the figure contradicts another.
pub(crate) fn unfit(table: &PublishedTable) -> Vec<usize> {
    let odd = obtained::contradictions(table);
    table
        .figures
        .iter()
        .enumerate()
        .filter(|(at, figure)| {
            cpu_bound(figure) || is_brief(figure) || odd.iter().any(|odd| odd.figures.contains(at))
        })
        .map(|(at, _)| at)
        .collect()
}

fn cpu_bound(figure: &PublishedFigure) -> bool {
    figure
        .cpu_percent
        .is_some_and(|percent| percent >= CPU_BOUND)
}

fn is_brief(figure: &PublishedFigure) -> bool {
    figure.seconds().is_some_and(|seconds| seconds < BRIEF_S)
}

/// `sequential create (8 of 8)`: how many of each metric's figures something holds for.
fn counts(table: &PublishedTable, holds: impl Fn(&PublishedFigure) -> bool) -> String {
    let mut texts = Vec::new();
    for (workload, metric) in table.metrics() {
        let of: Vec<&PublishedFigure> = table.of_metric(workload, metric).collect();
        let n = of.iter().filter(|figure| holds(figure)).count();
        if n > 0 {
            texts.push(format!("{} ({n} of {})", on(workload, metric), of.len()));
        }
    }
    texts.join(", ")
}

fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    high / low
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
