//! Figures that another program printed and that never move. A measurement has a spread; one that shows none is
//! known no better than its last digit, which is part of each interval, and may be no measurement: a pattern that
//! catches a version says the same for every storage.

use super::sides::Sides;
use super::statement::Comparison;
use super::table::{ComparedFigure, ObservationTable};
use stackrace_base::event::RunStarted;
use stackrace_base::unit::listed_names;
use stackrace_stats::resolution;

/// Rounds, or imported runs, with equal figures from which on it is no chance.
const SAME_ROUNDS_MIN: usize = 3;

/// Share of the margin that a step may have at most: coarser figures are often equal.
const FINE: f64 = 0.1;

/// Names of the sides whose figure is the same in every round, to the last of many digits.
pub(super) fn sides(
    table: &ObservationTable<'_>,
    sides: &Sides,
    figure: ComparedFigure,
) -> Vec<String> {
    // Most figures are our own, and this is asked at each look.
    if !figure.is_printed(table.evidence) {
        return Vec::new();
    }
    let rounds = sides.rounds(table, figure);
    let still = |t: &usize| is_still(table, *t, figure, &rounds);
    let both = [(&sides.a, &sides.a_name), (&sides.b, &sides.b_name)];
    let both = both.into_iter();
    both.filter(|(side, _)| side.iter().all(still))
        .map(|(_, name)| name.clone())
        .collect()
}

/// Returns true if a figure of a configuration is the same in all of these rounds, to the last of many digits.
pub(super) fn is_still(
    table: &ObservationTable<'_>,
    configuration: usize,
    figure: ComparedFigure,
    rounds: &[usize],
) -> bool {
    // A single workload is the overall figure; that of several is as still as they are.
    let figure = match figure {
        ComparedFigure::Overall if table.workloads() == 1 => ComparedFigure::primary(0),
        figure => figure,
    };
    let printed = figure != ComparedFigure::Overall && figure.is_printed(table.evidence);
    if !printed || rounds.len() < SAME_ROUNDS_MIN {
        return false;
    }
    let fine = table.evidence.head.decide.margin * FINE;
    let step = table.log_step(configuration, figure, rounds[0]);
    let first = table.ln(configuration, figure, rounds[0]);
    let mut all = rounds.iter();
    // To the last bit: what is printed alike is read alike.
    resolution::share(step) <= fine && all.all(|at| table.ln(configuration, figure, *at) == first)
}

/// Doubt about one configuration, as a clause.
pub(super) const DOUBT: &str =
    "the same figure to the last digit every time, as no measurement has";

/// Notes for the reader, once for each workload.
pub(super) fn notes<'a>(
    head: &RunStarted,
    compared: impl Iterator<Item = &'a Comparison>,
) -> Vec<String> {
    // The baseline is in several comparisons, and named once.
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for comparison in compared.filter(|one| one.within.is_empty()) {
        let workload = comparison.workload_of(head);
        let at = found.iter().position(|(known, _)| *known == workload);
        let at = at.unwrap_or_else(|| {
            found.push((workload, Vec::new()));
            found.len() - 1
        });
        let names = &mut found[at].1;
        let new = comparison.still.iter().map(String::as_str);
        names.extend(new.filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    found.retain(|(_, names)| !names.is_empty());
    let note = |(workload, names): &(&str, Vec<&str>)| {
        format!(
            "{workload}: {}: see whether it is a figure of the work, and not a version or a setting",
            said(names)
        )
    };
    found.iter().map(note).collect()
}

/// The same behind a verdict; empty if there is none.
pub(super) fn clause<'a>(compared: impl Iterator<Item = &'a Comparison>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in compared.flat_map(|one| &one.still) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => String::new(),
        false => format!("; but {}", said(&names)),
    }
}

fn said(names: &[&str]) -> String {
    let have = match names {
        [one] => format!("{one} has"),
        all => format!("{} each have", listed_names(all)),
    };
    format!("{have} {DOUBT}")
}

#[cfg(test)]
mod tests {
    use crate::verdict::tests::{evidence, head, trials};
    use crate::verdict::{Verdict, judge};
    use stackrace_base::event::{OperationsOf, RunStarted};

    fn two(operations: OperationsOf) -> RunStarted {
        let mut head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
        head.workloads[0].operations = Some(operations);
        head
    }

    /// The verdict on what a command printed in 5 rounds of a and of b, in such steps.
    fn judged(a: [f64; 5], b: [f64; 5], steps: [f64; 2]) -> Verdict {
        let head = two(OperationsOf::Command);
        let mut all = trials(&head, 5, 0.0, 1, |_, _| 1.0);
        for trial in &mut all {
            let at = trial.round as usize - 1;
            trial.metrics[0] = Some([a, b][trial.configuration][at]);
            trial.resolution = vec![Some(steps[trial.configuration])];
        }
        judge(&evidence(&head, &all, 5))
    }

    #[test]
    fn a_figure_that_never_moves_is_doubted_in_the_verdict_whatever_the_other_one_does() {
        let (still, moves) = ([10.0; 5], [12.0, 12.1, 11.9, 12.05, 12.0]);
        let doubt =
            "; but a has the same figure to the last digit every time, as no measurement has.";
        let one = judged(still, moves, [1e-4; 2]);
        assert!(one.sentence.ends_with(doubt), "{}", one.sentence);
        let told = |verdict: &Verdict| -> Vec<String> {
            let notes = verdict.notes.iter();
            notes
                .filter(|note| note.contains("same figure"))
                .cloned()
                .collect()
        };
        assert!(told(&one)[0].starts_with("w0: a has the same figure"));
        let both = judged(still, [12.0; 5], [1e-4; 2]);
        let said = "; but a and b each have the same figure to the last digit";
        assert!(both.sentence.contains(said), "{}", both.sentence);
        assert_eq!(told(&both).len(), 1, "{:?}", both.notes);
        let other = judged(moves, still, [1e-4; 2]);
        assert!(
            other.sentence.contains("; but b has the same"),
            "{}",
            other.sentence
        );
    }

    #[test]
    fn figures_that_move_are_few_or_have_few_digits_are_not_doubted() {
        let moves = [12.0, 12.1, 11.9, 12.05, 12.0];
        let none = |verdict: &Verdict| {
            let said = format!("{}{:?}", verdict.sentence, verdict.notes);
            assert!(!said.contains("same figure"), "{said}");
        };
        none(&judged(moves, moves, [0.01; 2]));
        // Two digits are often equal; what they hide is in the interval.
        none(&judged([10.0; 5], moves, [1.0, 0.01]));
        // Of our own figures the digits are no choice of a program.
        let head = two(OperationsOf::Itself);
        let own = trials(&head, 3, 0.0, 1, |_, _| 1.0);
        none(&judge(&evidence(&head, &own, 3)));
    }

    #[test]
    fn the_interval_of_still_figures_has_the_rounding_of_either_side() {
        let width = |steps| {
            let ratio = judged([10.0; 5], [12.0; 5], steps).overall[0]
                .ratio
                .unwrap();
            (ratio.high / ratio.low).ln() / 2.0
        };
        for (steps, least) in [
            ([0.1, 1e-6], 0.1 / 10.0),
            ([1e-6, 0.1], 0.1 / 12.0),
            ([1e-3; 2], 0.5e-3 / 10.0 + 0.5e-3 / 12.0),
        ] {
            assert!(width(steps) >= least, "{steps:?}: {}", width(steps));
        }
    }
}
