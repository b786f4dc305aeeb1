//! What the checks ask of figures.

use crate::published::ratio::on;
use crate::published::table::{PublishedFigure, PublishedTable};

/// Per cent of one processor from which a figure is the processor's.
pub(super) const CPU_BOUND: f64 = 95.0;

/// Below this many seconds bonnie++ 1.03 gives no rate, unless it is built otherwise.
pub(super) const BRIEF_S: f64 = 0.5;

pub(super) fn cpu_bound(figure: &PublishedFigure) -> bool {
    figure
        .cpu_percent
        .is_some_and(|percent| percent >= CPU_BOUND)
}

pub(super) fn is_brief(figure: &PublishedFigure) -> bool {
    figure.seconds().is_some_and(|seconds| seconds < BRIEF_S)
}

/// `sequential create (8 of 8)`: how many of each metric's figures something holds for.
pub(super) fn counts(table: &PublishedTable, holds: impl Fn(&PublishedFigure) -> bool) -> String {
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

pub(super) fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    high / low
}
