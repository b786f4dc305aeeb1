//! What the rounds say of two sides on a figure.

use libm::exp;
use stackrace_stats::{FIRST_LOOK, Statement, WithoutOrder};

use super::lacking::Lacking;
use super::sides::Sides;
use super::slices::SHARE_OF_MARGIN;
use super::statement::{CertainBefore, Coarseness, Comparison, Interval, VerdictWord};
use super::table::{ComparedFigure, ObservationTable};
use super::{fragment, still, unpaired};
use stackrace_base::event::RunStarted;
use stackrace_base::unit;

/// Rounds from which the robust interval is given.
const ROBUST_FROM: usize = 8;

/// A comparison that is asked: two sides on a figure, with its share of the error.
pub(super) struct AskedPair {
    pub(super) sides: Sides,
    pub(super) figure: ComparedFigure,
    pub(super) alpha: f64,
}

impl AskedPair {
    /// What the rounds say of it, without the second opinion.
    pub(super) fn compared(&self, table: &ObservationTable<'_>) -> Comparison {
        let (sides, figure) = (&self.sides, self.figure);
        // Imported results are numbered, not paired: pairing them by number would be arbitrary.
        if table.evidence.imported {
            return unpaired::comparison(table, (sides.a[0], sides.b[0]), figure);
        }
        let head = table.evidence.head;
        // Found once: of a long run this is most of what a comparison takes.
        let pairs = sides.pairs(table, figure);
        let plain: Vec<f64> = pairs.iter().map(|(_, d)| *d).collect();
        let (said, without) = self.said(table, &pairs);
        let without = without.filter(|_| said.is_some_and(|said| said.without_order));
        let order_effect = without.as_ref().map(|without| exp(without.effect));
        let logs = without.map_or(plain, |without| without.differences);
        let word = said.map_or(VerdictWord::TooFew, |said| said.word.into());
        let lacking = said
            .is_none()
            .then(|| Lacking::of(table, sides, figure, pairs.len()));
        let interval = said.map(|said| Interval::from(said.ratio));
        let printed = figure.is_printed(table.evidence);
        let coarse = said.map_or_else(Coarseness::default, |said| Coarseness::of(&said, printed));
        Comparison {
            a: sides.a_name.clone(),
            b: sides.b_name.clone(),
            // Names instead of indices: a comparison is also written to files that are read without a
            // record.
            within: sides.within.clone(),
            workload: figure.workload_name(head),
            metric: figure.metric(head).cloned(),
            ratio: interval,
            values: values(table, sides, figure, &pairs),
            word,
            text: match lacking {
                Some(lacking) => lacking.words(),
                None => fragment::fragment(word, interval, coarse),
            },
            lacking,
            rounds: match interval {
                // They are all that can be said.
                None => ratios(table, &pairs),
                // A report shows them beside it.
                Some(_) => Vec::new(),
            },
            robust: None,
            order_effect,
            coarse,
            still: still::sides(table, sides, figure),
            certain_before: None,
            logs,
        }
    }

    /// The statement of the first rounds, or of all; with their differences without the effect of the order.
    fn said(
        &self,
        table: &ObservationTable<'_>,
        pairs: &[(usize, f64)],
    ) -> (Option<Statement>, Option<WithoutOrder>) {
        let plain: Vec<f64> = pairs.iter().map(|(_, d)| *d).collect();
        let without = self.sides.without_order(table, self.figure, pairs);
        let said = stackrace_stats::state_in_order(
            &plain,
            without.as_ref(),
            self.sides.resolution(table, self.figure, pairs),
            self.alpha,
            table.evidence.head.decide.margin,
        );
        (said, without)
    }

    /// The last check that was certain of a direction, of a comparison that now is not.
    fn certain_before(
        &self,
        table: &ObservationTable<'_>,
        pairs: &[(usize, f64)],
    ) -> Option<CertainBefore> {
        let mut checks = (FIRST_LOOK as usize..pairs.len()).rev();
        checks.find_map(|rounds| {
            // As that check saw it: its error is the one that it spent.
            let first = &pairs[..rounds];
            let better = match self.said(table, first).0?.word.into() {
                VerdictWord::Better { .. } => true,
                VerdictWord::Worse { .. } => false,
                _ => return None,
            };
            let round = table.rounds[first.last()?.0];
            Some(CertainBefore { round, better })
        })
    }

    /// Puts what a report shows beside a comparison: the ratio of each round, and a second opinion on all of them.
    pub(super) fn complete(&self, table: &ObservationTable<'_>, comparison: &mut Comparison) {
        // Imported results have no pairs.
        if table.evidence.imported {
            return;
        }
        let pairs = self.sides.pairs(table, self.figure);
        comparison.rounds = ratios(table, &pairs);
        comparison.robust = self.robust(table, &pairs, &comparison.logs);
        // A check of few comparisons knows it already.
        if is_open(comparison) && comparison.certain_before.is_none() {
            comparison.certain_before = self.certain_before(table, &pairs);
        }
    }

    /// Puts beside a comparison that is not certain what an earlier check was certain of. Each of them is made again.
    pub(super) fn remember(&self, table: &ObservationTable<'_>, comparison: &mut Comparison) {
        if is_open(comparison) {
            let pairs = self.sides.pairs(table, self.figure);
            comparison.certain_before = self.certain_before(table, &pairs);
        }
    }

    fn robust(
        &self,
        table: &ObservationTable<'_>,
        pairs: &[(usize, f64)],
        logs: &[f64],
    ) -> Option<Interval> {
        if logs.len() < ROBUST_FROM {
            return None;
        }
        let n = u32::try_from(logs.len()).ok()?;
        // The same error as the interval it stands beside, so that only the method differs.
        let level = stackrace_stats::two_sided_level(self.alpha, n);
        let robust = stackrace_stats::hodges_lehmann(logs, level)?;
        let resolution = self.sides.resolution(table, self.figure, pairs);
        Some(robust.widened(resolution).into())
    }
}

/// Returns true if nothing is certain of a comparison that has an interval.
fn is_open(comparison: &Comparison) -> bool {
    matches!(
        comparison.word,
        VerdictWord::Probably { .. } | VerdictWord::Undecided
    )
}

/// The ratio of each round, with its number.
fn ratios(table: &ObservationTable<'_>, pairs: &[(usize, f64)]) -> Vec<(u32, f64)> {
    let pairs = pairs.iter();
    pairs.map(|(at, d)| (table.rounds[*at], exp(*d))).collect()
}

/// Both sides in the unit of the metric: of the rounds that the ratio is of, so that they fit to it. A level that is
/// compared on several configurations has none: the mean rate of a hard disk and an SSD is no storage's.
fn values(
    table: &ObservationTable<'_>,
    sides: &Sides,
    figure: ComparedFigure,
    pairs: &[(usize, f64)],
) -> Option<(f64, f64)> {
    // A single workload is the overall figure.
    let figure = match figure {
        ComparedFigure::Overall if table.workloads() == 1 => ComparedFigure::primary(0),
        figure => figure,
    };
    let better = figure.metric(table.evidence.head)?.better;
    if sides.a.len() > 1 {
        return None;
    }
    let mean = |side: &[usize]| {
        let logs = side.iter().flat_map(|t| {
            let logs = pairs.iter();
            logs.filter_map(|(at, _)| table.ln(*t, figure, *at))
        });
        let logs: Vec<f64> = logs.collect();
        (!logs.is_empty()).then(|| better.value_of(stackrace_stats::mean(&logs)))
    };
    Some((mean(&sides.a)?, mean(&sides.b)?))
}

/// These pairs on the primary metric of each workload, workload by workload.
pub(super) fn on_each_workload(
    table: &ObservationTable<'_>,
    pairs: &[Sides],
    alpha: f64,
) -> Vec<AskedPair> {
    let on = |w: usize| on_figure(pairs, ComparedFigure::primary(w), alpha);
    (0..table.workloads()).flat_map(on).collect()
}

/// These pairs on one figure.
pub(super) fn on_figure(pairs: &[Sides], figure: ComparedFigure, alpha: f64) -> Vec<AskedPair> {
    let asked = |sides: &Sides| AskedPair {
        sides: sides.clone(),
        figure,
        alpha,
    };
    pairs.iter().map(asked).collect()
}

/// Notes for the reader on the order in a round, once for each workload where it is taken out of a comparison and
/// matters.
pub(super) fn order_notes<'a>(
    head: &RunStarted,
    compared: impl Iterator<Item = &'a Comparison>,
) -> Vec<String> {
    let (mut notes, mut named) = (Vec::new(), Vec::new());
    for comparison in compared.filter(|one| one.within.is_empty()) {
        let workload = comparison.workload_of(head);
        let Some(effect) = comparison.order_effect else {
            continue;
        };
        let share = (1.0 / effect - 1.0).abs();
        let matters = share >= head.decide.margin * SHARE_OF_MARGIN;
        if !matters || workload.is_empty() || named.contains(&workload) {
            continue;
        }
        named.push(workload);
        let slower = if effect > 1.0 { "slower" } else { "faster" };
        notes.push(format!(
            "{workload}: a configuration is {} {slower} when it comes first in a round. Each one comes first equally often, and the comparison leaves this effect out",
            unit::percent(share)
        ));
    }
    notes
}

/// Notes for the reader on figures that are coarse beside the margin, once for each workload.
pub(super) fn coarse_notes<'a>(
    head: &RunStarted,
    compared: impl Iterator<Item = &'a Comparison>,
) -> Vec<String> {
    let (mut notes, mut named) = (Vec::new(), Vec::new());
    for comparison in compared.filter(|one| one.within.is_empty() && one.ratio.is_some()) {
        // The overall figure of several workloads is as coarse as they are.
        let workload = comparison.workload_of(head);
        let matters = comparison.coarse.resolution >= head.decide.margin * SHARE_OF_MARGIN;
        if !matters || workload.is_empty() || named.contains(&workload) {
            continue;
        }
        named.push(workload);
        let known = fragment::known_to(comparison.coarse);
        let finer = fragment::finer(comparison.coarse);
        notes.push(format!(
            "{workload}: {known}. Every interval is wider by that; for less, {finer}"
        ));
    }
    notes
}
