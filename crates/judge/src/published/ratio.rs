//! Ratios between the levels of a factor.

use libm::{exp, log as ln};

use super::card::Card;
use super::table::{PublishedFigure, PublishedTable};
use stackrace_base::event::MetricHead;

/// One level of a factor against the baseline, everything else equal, on one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRatio {
    /// The factor, by its place in the card.
    pub factor: usize,
    /// Baseline: the first level, in the card's order, measured among its equals.
    pub a: String,
    /// Compared with it.
    pub b: String,
    /// Levels of the other factors (of `b`, where a factor is nested), those that apply.
    pub within: String,
    /// Name of the load.
    pub workload: String,
    /// Metric whose values are divided.
    pub metric: MetricHead,
    /// B over A, oriented so that above 1 B is better.
    pub ratio: f64,
    /// The two figures, by their places in the table: A, B.
    pub figures: [usize; 2],
}

impl PublishedRatio {
    /// `copy-file: elapsed`, or `block input` where one load makes all figures.
    pub fn on(&self) -> String {
        on(&self.workload, &self.metric.name)
    }
}

/// A metric with its load; bonnie++ is not named, its phases are known.
pub(super) fn on(workload: &str, metric: &str) -> String {
    // The names of its phases are unique among all loads.
    if workload.starts_with("bonnie++") {
        metric.to_owned()
    } else {
        format!("{workload}: {metric}")
    }
}

/// Every comparison of a study, by factor, then in the order published.
///
/// A figure computed from others is left out: its ratios would be theirs again.
pub fn comparisons(card: &Card, table: &PublishedTable) -> Vec<PublishedRatio> {
    (0..card.factors.len())
        .flat_map(|factor| of_factor(card, table, factor))
        .collect()
}

fn of_factor(card: &Card, table: &PublishedTable, factor: usize) -> Vec<PublishedRatio> {
    let rank = |figure: &PublishedFigure| {
        let levels = card.factors[factor].levels;
        levels
            .iter()
            .position(|level| *level == figure.levels[factor])
    };
    let equal = |a: &PublishedFigure, b: &PublishedFigure| {
        // A nested factor is left out: its levels differ by definition when the outer level does.
        (a.workload == b.workload && a.metric == b.metric)
            && (0..card.factors.len())
                .filter(|at| *at != factor && !card.factors[*at].nested)
                .all(|at| a.levels[at] == b.levels[at])
    };
    let mut found = Vec::new();
    for (at, b) in table.figures.iter().enumerate() {
        let base = table
            .figures
            .iter()
            .enumerate()
            .filter(|(_, a)| equal(a, b) && a.value().is_some())
            // A configuration may lack the first level; the nearest one after it is then the
            // baseline.
            .min_by_key(|(_, a)| rank(a));
        let Some((base_at, a)) = base else { continue };
        let (Some(base), Some(value)) = (a.value(), b.value()) else {
            continue;
        };
        // The baseline is no comparison with itself.
        if a.levels[factor] == b.levels[factor] || b.derived() {
            continue;
        }
        let mut others = b.levels.clone();
        others[factor].clear();
        found.push(PublishedRatio {
            factor,
            a: a.levels[factor].clone(),
            b: b.levels[factor].clone(),
            within: card.configuration(&others),
            workload: b.workload.clone(),
            metric: b.metric.clone(),
            // Through logarithms, so that times and rates are oriented alike.
            ratio: exp(b.metric.better.oriented_ln(value) - b.metric.better.oriented_ln(base)),
            figures: [base_at, at],
        });
    }
    found
}

/// The geometric mean; none of nothing.
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ln(*ratio)).sum();
    // The mean of ratios is geometric: 2 and 0.5 cancel out, whichever side is the baseline.
    (!ratios.is_empty()).then(|| exp(sum / ratios.len() as f64))
}
