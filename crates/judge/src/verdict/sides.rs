//! Which configurations are compared with which.

use stackrace_stats::WithoutOrder;

use super::fidelity;
use super::table::{ComparedFigure, ObservationTable};
use crate::published::distinct;
use stackrace_base::event::RunStarted;

/// A set of configurations compared with another, pair by pair (`a[i]` with `b[i]`), averaged.
#[derive(Debug, Clone)]
pub(super) struct Sides {
    pub(super) a: Vec<usize>,
    pub(super) b: Vec<usize>,
    pub(super) a_name: String,
    pub(super) b_name: String,
    pub(super) within: String,
}

impl Sides {
    /// One configuration, and the one it is compared with.
    pub(super) fn of_two(head: &RunStarted, a: usize, b: usize) -> Self {
        Self {
            a: vec![a],
            b: vec![b],
            a_name: head.configurations[a].name.clone(),
            b_name: head.configurations[b].name.clone(),
            within: String::new(),
        }
    }

    /// Returns true if all of them are still measured.
    pub(super) fn live(&self, table: &ObservationTable<'_>) -> bool {
        self.a.iter().chain(&self.b).all(|t| table.live(*t))
    }

    /// Uncertainty of the mean of these differences because the figures are given in steps, on the log scale: of equal
    /// figures it is the same in every round, so it does not average out.
    pub(super) fn resolution(
        &self,
        table: &ObservationTable<'_>,
        figure: ComparedFigure,
        pairs: &[(usize, f64)],
    ) -> f64 {
        let of_round = |at: usize| {
            let pairs = self.a.iter().zip(&self.b);
            let steps: f64 = pairs.map(|(a, b)| table.apart(&[*a, *b], figure, at)).sum();
            steps / self.a.len() as f64
        };
        let steps: Vec<f64> = pairs.iter().map(|(at, _)| of_round(*at)).collect();
        match steps.is_empty() {
            true => 0.0,
            false => stackrace_stats::mean(&steps),
        }
    }

    /// The same differences without the effect of the order in a round; `None` if more than two
    /// configurations are in them, the order did not vary, or all of it was measured in slices.
    pub(super) fn without_order(
        &self,
        table: &ObservationTable<'_>,
        figure: ComparedFigure,
        pairs: &[(usize, f64)],
    ) -> Option<WithoutOrder> {
        let (&[a], &[b]) = (&self.a[..], &self.b[..]) else {
            return None;
        };
        let workloads = match figure {
            ComparedFigure::Metric { workload, .. } => vec![(1.0, workload, figure)],
            ComparedFigure::Overall => {
                let heads = table.evidence.head.workloads.iter().enumerate();
                heads
                    .filter(|(_, head)| head.weight > 0.0)
                    .map(|(w, head)| (head.weight, w, ComparedFigure::primary(w)))
                    .collect()
            }
        };
        let (mut parts, mut any) = (Vec::new(), false);
        // Each workload has an order of its own, and none in slices.
        for (weight, workload, figure) in workloads {
            let mut differences = Vec::with_capacity(pairs.len());
            let mut first = Vec::with_capacity(pairs.len());
            for (at, _) in pairs {
                differences.push(table.ln(b, figure, *at)? - table.ln(a, figure, *at)?);
                first.extend(table.first(a, b, workload, *at));
            }
            // Where one round has no order, none is taken out.
            let part = match first.len() == pairs.len() {
                true => WithoutOrder::of(&differences, &first)?,
                false => WithoutOrder::none(differences),
            };
            any |= first.len() == pairs.len();
            parts.push((weight, part));
        }
        WithoutOrder::mean(&parts).filter(|_| any)
    }

    /// The rounds that have both sides, by position in the table.
    pub(super) fn rounds(
        &self,
        table: &ObservationTable<'_>,
        figure: ComparedFigure,
    ) -> Vec<usize> {
        let pairs = self.pairs(table, figure).into_iter();
        pairs.map(|(at, _)| at).collect()
    }

    /// Log differences of the rounds that have both sides, with the position of each in the table; none of a replay that
    /// is not like its application.
    pub(super) fn pairs(
        &self,
        table: &ObservationTable<'_>,
        figure: ComparedFigure,
    ) -> Vec<(usize, f64)> {
        if fidelity::is_unlike(table.evidence, figure) {
            return Vec::new();
        }
        // A partner of a dropped configuration goes on alone; those rounds are no pairs.
        let sides = self.a.iter().chain(&self.b);
        let rounds = sides.map(|t| table.rounds_of(*t)).min().unwrap_or(0);
        let pair = |at: usize| {
            let mut sum = 0.0;
            for (a, b) in self.a.iter().zip(&self.b) {
                sum += table.ln(*b, figure, at)? - table.ln(*a, figure, at)?;
            }
            Some((at, sum / self.a.len() as f64))
        };
        // Nearly all rounds have both: a list that grows step by step would be moved again and again.
        let mut pairs = Vec::with_capacity(rounds);
        pairs.extend((0..rounds).filter_map(pair));
        pairs
    }
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
    let configurations = head.configurations.iter();
    let levels = distinct(configurations.map(|t| t.levels[index].as_str()));
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
    // With one combination, the row within it would only repeat the whole.
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

/// Every other configuration against the baseline: the first one. It stays the same from round to
/// round; only of imported results, which have no rounds, it is the best one.
fn configuration_sides(table: &ObservationTable<'_>) -> Vec<Sides> {
    let n = table.configurations();
    let base = if n > 2 && table.evidence.imported {
        leader(table, ComparedFigure::Overall)
    } else {
        0
    };
    (0..n)
        .filter(|t| *t != base)
        .map(|t| Sides::of_two(table.evidence.head, base, t))
        .collect()
}

/// The best configuration against each other one that did not fail, best first; empty unless a
/// ranking is asked.
pub(super) fn ranked_sides(table: &ObservationTable<'_>, figure: ComparedFigure) -> Vec<Sides> {
    let asked = table.evidence.ranks() && !table.evidence.imported;
    if !asked {
        return Vec::new();
    }
    let best = leader(table, figure);
    let failed = table.evidence.failed();
    let others = (0..table.configurations())
        .filter(|t| *t != best && failed.iter().all(|failure| failure.configuration != *t));
    // Against the best one, in rounds both have: those that were dropped have fewer of their own.
    let behind = |t: usize| {
        let sides = Sides::of_two(table.evidence.head, best, t);
        let pairs = sides.pairs(table, figure);
        let values: Vec<f64> = pairs.iter().map(|(_, log)| *log).collect();
        stackrace_stats::mean(&values)
    };
    // Each one's distance once, and not in every step of the sorting.
    let mut ranked: Vec<(f64, usize)> = others.map(|t| (behind(t), t)).collect();
    ranked.sort_by(|(x, _), (y, _)| y.total_cmp(x));
    let ranked = ranked.into_iter();
    ranked
        .map(|(_, t)| Sides::of_two(table.evidence.head, best, t))
        .collect()
}

/// The live configuration with the best mean of a figure over the rounds it has.
fn leader(table: &ObservationTable<'_>, figure: ComparedFigure) -> usize {
    let mean = |t: usize| -> f64 {
        let values: Vec<f64> = (0..table.rounds_of(t))
            .filter_map(|at| table.ln(t, figure, at))
            .collect();
        if values.is_empty() {
            // One without any value never leads.
            f64::NEG_INFINITY
        } else {
            stackrace_stats::mean(&values)
        }
    };
    let live = (0..table.configurations()).filter(|t| table.live(*t));
    let means = live.map(|t| (mean(t), t));
    let best = means.max_by(|(x, _), (y, _)| x.total_cmp(y));
    best.map_or(0, |(_, t)| t)
}
