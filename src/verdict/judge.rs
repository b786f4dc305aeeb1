//! The rules: which comparisons are asked, what may be said of each, and what follows.
//!
//! The error of a run (1 - confidence) is shared by the overall comparisons and those of single
//! workloads (`shares.rs`), and each comparison spends its share over all rounds, from the third on
//! (`stackrace_stats::looks`). With one workload both are the same and nothing is shared. Comparisons
//! within levels of other factors are shown beside them, not corrected for their number; their text
//! says so.

use stackrace_stats::FIRST_LOOK;

use super::answer::Verdict;
use super::compared::{on_each_workload, overall};
use super::shares::Shares;
use super::sides::{Sides, ranked_sides, sides};
use super::statement::VerdictWord;
use super::table::{Evidence, ObservationTable};
use super::{course, effects, outlook, rows, sentence, slices};
use crate::event::{Decide, Until};

/// What the record says so far.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Verdict {
    let decide = &evidence.head.decide;
    let table = ObservationTable::new(evidence);
    let complete = u32::try_from(table.rounds.len()).unwrap_or(u32::MAX);
    // What was imported is looked at once, whole, and never judged.
    let checked_at = (complete >= FIRST_LOOK && !evidence.imported).then_some(complete);
    let (within, whole): (Vec<Sides>, Vec<Sides>) = sides(&table)
        .into_iter()
        .partition(|pair| !pair.within.is_empty());
    let shares = Shares::of(&table, whole.len());
    // A single workload is the overall figure: said once.
    let mut workloads = match table.workloads() {
        1 => Vec::new(),
        _ => on_each_workload(&table, &whole, shares.workload),
    };
    workloads.extend(overall(&table, &within, shares.within));
    if table.workloads() > 1 {
        workloads.extend(on_each_workload(&table, &within, shares.within));
    }
    if evidence.imported {
        // Foreign results need not have anything in common.
        workloads.retain(|comparison| comparison.ratio.is_some());
    }
    let whole = overall(&table, &whole, shares.overall);
    let ranking = overall(&table, &ranked_sides(&table), shares.overall);
    let settled = checked_at.is_some() && outlook::settled(&table, &whole, &ranking);
    let courses = course::courses(evidence);
    let mut notes = rows::notes(&table);
    notes.extend(course::notes(evidence, &courses));
    let mut verdict = Verdict {
        sentence: String::new(),
        details: Vec::new(),
        state: outlook::state(&table, checked_at.is_some(), settled),
        settled,
        rounds: complete,
        checked_at,
        confidence: decide.confidence,
        margin: decide.margin,
        configurations: rows::rows(&table, &whole, decide.comparison.is_none()),
        overall: whole,
        ranking,
        workloads,
        effects: effects::effects(&table, checked_at.is_some()),
        courses,
        order_effects: slices::order_effects(evidence),
        more: None,
        notes,
    };
    // Outlook and sentences read the judged rest, and the sentence quotes the outlook: this order.
    verdict.more = outlook::more(&table, &verdict, shares);
    verdict.sentence = sentence::whole(&verdict, evidence);
    verdict.details = sentence::details(&verdict, evidence);
    verdict
}

/// Configurations to drop after these rounds: those that the verdict says are worse than the best
/// one, so a drop is no further claim and has no further error. Only where a ranking is asked, not
/// where every round was, and not after the last round, where it would save nothing. The baseline
/// stays: every other one is compared with it. `decide` is what is asked of the run now: a resumed run
/// may go on for longer than it was begun for.
pub(crate) fn to_drop(evidence: &Evidence<'_>, decide: &Decide) -> Vec<usize> {
    let table = ObservationTable::new(evidence);
    let rounds = u32::try_from(table.rounds.len()).unwrap_or(u32::MAX);
    if decide.until == Until::Never || rounds >= decide.rounds_max {
        return Vec::new();
    }
    let ranked = ranked_sides(&table);
    let shares = Shares::of(&table, ranked.len());
    let compared = overall(&table, &ranked, shares.overall);
    let worse = ranked
        .iter()
        .zip(&compared)
        .filter(|(_, c)| matches!(c.word, VerdictWord::Worse { .. }));
    let mut dropped: Vec<usize> = worse
        .map(|(sides, _)| sides.b[0])
        .filter(|t| *t != 0 && table.live(*t))
        .collect();
    dropped.sort_unstable();
    dropped
}
