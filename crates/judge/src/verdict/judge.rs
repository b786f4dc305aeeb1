//! The whole answer of a run, with what only a report says: notes, effects, courses.

use super::answer::Verdict;
use super::compared::{AskedPair, coarse_notes, order_notes};
use super::course::PhaseCourse;
use super::evidence::Evidence;
use super::look::Look;
use super::sides::sides;
use super::statement::Comparison;
use super::table::ObservationTable;
use super::{course, effects, enough, fidelity, lacking, rows, sentence, slices, still};

/// Judges the record so far.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let mut look = Look::at(evidence);
    let table = &look.table;
    beside(table, &look.asked, &mut look.overall);
    beside(table, &look.ranked, &mut look.ranking);
    beside(table, &look.narrower, &mut look.workloads);
    rows::complete(table, &mut look.configurations, &look.required);
    let courses = course::courses(evidence);
    let compared = look.overall.iter().chain(&look.workloads);
    let decide = &evidence.head.decide;
    Verdict {
        notes: notes(table, &courses, compared),
        sentence: look.sentence(),
        details: [
            enough::details(&look.required),
            sentence::details(&look.grounds(), evidence),
        ]
        .concat(),
        state: look.state,
        settled: look.settled,
        too_coarse: look.too_coarse,
        rounds: look.rounds(),
        checked_at: look.checked_at,
        confidence: decide.confidence,
        margin: decide.margin,
        effects: effects::effects(table, look.checked_at.is_some()),
        configurations: look.configurations,
        overall: look.overall,
        ranking: look.ranking,
        workloads: look.workloads,
        courses,
        order_effects: slices::order_effects(evidence),
        more: look.more,
        required: look.required,
    }
}

/// Puts what only a report shows beside each comparison.
fn beside(table: &ObservationTable<'_>, asked: &[AskedPair], compared: &mut [Comparison]) {
    for (pair, comparison) in asked.iter().zip(compared) {
        pair.complete(table, comparison);
    }
}

/// Notes on what spoils or limits the figures, on their courses, on the order in a round, and on how coarse they are.
fn notes<'a>(
    table: &ObservationTable<'_>,
    courses: &[PhaseCourse],
    compared: impl Iterator<Item = &'a Comparison> + Clone,
) -> Vec<String> {
    let head = table.evidence.head;
    let mut notes = rows::notes(table);
    notes.extend(course::notes(table.evidence, courses));
    notes.extend(order_notes(head, compared.clone()));
    notes.extend(still::notes(head, compared.clone()));
    notes.extend(coarse_notes(head, compared));
    notes.extend(lacking::notes(table));
    notes.extend(fidelity::notes(table.evidence));
    notes
}

/// Returns true if a further round can add to a comparison that is asked: a configuration that failed has no further
/// round, and neither has what is compared with it.
pub fn can_compare(evidence: &Evidence<'_>) -> bool {
    let failed = evidence.failed();
    // Of a ranking, any two can be compared.
    if failed.is_empty() || evidence.ranks() {
        return true;
    }
    let stands = |t: &usize| failed.iter().all(|failure| failure.configuration != *t);
    let asked = sides(&ObservationTable::new(evidence));
    let mut whole = asked.iter();
    whole.any(|sides| sides.a.iter().chain(&sides.b).all(stands))
}
