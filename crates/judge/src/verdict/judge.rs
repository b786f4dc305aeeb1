//! The rules: which comparisons are asked, what may be said of each, and what follows.
//!
//! The error of a run (1 - confidence) is shared by the overall comparisons and those of single
//! workloads (`shares.rs`), and each comparison spends its share over all rounds, from the third on
//! (`stackrace_stats::looks`). With one workload both are the same and nothing is shared. Comparisons
//! within levels of other factors are shown beside them, not corrected for their number; their text
//! says so.

use stackrace_stats::FIRST_LOOK;

use super::answer::{Verdict, VerdictGrounds};
use super::compared::{coarse_notes, comparison, on_each_workload, order_notes, overall};
use super::course::PhaseCourse;
use super::enough::RequiredRow;
use super::outlook::is_known;
use super::shares::Shares;
use super::sides::{Sides, ranked_sides, sides, whole};
use super::statement::{Comparison, VerdictWord};
use super::table::{ComparedFigure, Evidence, ObservationTable};
use super::{course, effects, enough, headline, outlook, rows, sentence, slices};
use stackrace_base::event::{Decide, Precision, Until};

/// Judges the record so far.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let decide = &evidence.head.decide;
    let table = ObservationTable::new(evidence);
    let complete = u32::try_from(table.rounds.len()).unwrap_or(u32::MAX);
    // What was imported is looked at once, whole, and never judged.
    let checked_at = (complete >= FIRST_LOOK && !evidence.imported).then_some(complete);
    let (within, whole): (Vec<Sides>, Vec<Sides>) = sides(&table)
        .into_iter()
        .partition(|pair| !pair.within.is_empty());
    let shares = Shares::of(&table, whole.len());
    let workloads = narrower(&table, &whole, &within, &shares);
    let whole = overall(&table, &whole, shares.overall);
    let ranking = ranking(&table, shares.overall);
    let required = enough::rows(&table);
    let settled = checked_at.is_some() && answers(&table, &whole, &ranking, &required);
    let too_coarse = checked_at.is_some() && outlook::too_coarse(&table, &whole, &ranking);
    let rankings = rankings(&table, shares.workload);
    let courses = course::courses(evidence);
    let notes = notes(&table, &courses, whole.iter().chain(&workloads));
    let configurations = rows::rows(&table, &whole, decide.comparison.is_none());
    let mut judged = VerdictGrounds {
        state: outlook::state(&table, checked_at.is_some(), settled),
        settled,
        too_coarse,
        by_workload: false,
        rounds: complete,
        checked_at,
        confidence: decide.confidence,
        overall: &whole,
        ranking: &ranking,
        rankings: &rankings,
        workloads: &workloads,
        configurations: &configurations,
    };
    judged.by_workload = headline::by_workload(&judged, evidence.head).is_some();
    let compared = outlook::more(&table, &judged, shares);
    let more = enough::longest(enough::more(&required, &table), compared);
    Verdict {
        sentence: sentence::whole(&judged, &required, more.as_ref(), evidence),
        details: [
            enough::details(&required),
            sentence::details(&judged, evidence),
        ]
        .concat(),
        state: judged.state,
        settled,
        too_coarse,
        by_workload: judged.by_workload,
        rounds: complete,
        checked_at,
        confidence: decide.confidence,
        margin: decide.margin,
        configurations,
        overall: whole,
        ranking,
        workloads,
        effects: effects::effects(&table, checked_at.is_some()),
        courses,
        order_effects: slices::order_effects(evidence),
        more,
        required,
        notes,
    }
}

/// The comparisons on each workload, and those within the levels of other factors.
fn narrower(
    table: &ObservationTable<'_>,
    whole: &[Sides],
    within: &[Sides],
    shares: &Shares,
) -> Vec<Comparison> {
    // A single workload is the overall figure: said once.
    let each = table.workloads() > 1;
    let mut all = Vec::new();
    if each {
        all.extend(on_each_workload(table, whole, shares.workload));
    }
    all.extend(overall(table, within, shares.within));
    if each {
        all.extend(on_each_workload(table, within, shares.within));
    }
    if table.evidence.imported {
        // Foreign results need not have anything in common.
        all.retain(|comparison| comparison.ratio.is_some());
    }
    all
}

/// Returns true if all that is asked has its answer: the comparisons, and what is required.
fn answers(
    table: &ObservationTable<'_>,
    whole: &[Comparison],
    ranking: &[Comparison],
    required: &[RequiredRow],
) -> bool {
    let compared = is_alone(table) || outlook::settled(table, whole, ranking);
    compared && enough::closed(required, table)
}

/// Returns true if one configuration is asked whether it is enough: there is nothing to compare it with.
fn is_alone(table: &ObservationTable<'_>) -> bool {
    table.configurations() == 1 && !table.evidence.head.decide.required.is_empty()
}

/// The best configuration over all workloads with each other one.
fn ranking(table: &ObservationTable<'_>, alpha: f64) -> Vec<Comparison> {
    overall(table, &ranked_sides(table, ComparedFigure::Overall), alpha)
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
    notes.extend(coarse_notes(head, compared));
    notes
}

/// The best configuration on each workload with each other one; empty unless a ranking of several workloads is asked.
/// Each pair has its share of the error, so the data may choose which one leads.
fn rankings(table: &ObservationTable<'_>, alpha: f64) -> Vec<Vec<Comparison>> {
    if table.workloads() < 2 || !table.evidence.ranks() {
        return Vec::new();
    }
    let figures = (0..table.workloads()).map(ComparedFigure::primary);
    let ranked = figures.map(|figure| {
        let sides = ranked_sides(table, figure);
        let on = |sides: &Sides| comparison(table, sides, figure, alpha);
        sides.iter().map(on).collect()
    });
    ranked.collect()
}

/// Configurations to drop after these rounds, so that the next ones go to what is open. None where every
/// round was asked for, nor after the last round, where it would save nothing. The baseline stays: every
/// other one is compared with it. `decide` is what is asked of the run now: a resumed run may go on for
/// longer than it was begun for.
pub fn to_drop(evidence: &Evidence<'_>, decide: &Decide) -> Vec<usize> {
    let table = ObservationTable::new(evidence);
    let rounds = u32::try_from(table.rounds.len()).unwrap_or(u32::MAX);
    if decide.until == Until::Never || rounds >= decide.rounds_max {
        return Vec::new();
    }
    let mut dropped = match evidence.ranks() {
        true => beaten(&table, decide.precision),
        false => answered(&table, decide),
    };
    let required = enough::rows(&table);
    dropped.retain(|t| *t != 0 && table.live(*t) && enough::is_closed(&required, *t));
    dropped.sort_unstable();
    dropped
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
    let whole = |sides: &Sides| sides.a.iter().chain(&sides.b).all(stands);
    asked.iter().any(whole)
}

/// Configurations that the verdict says are worse than the best one: a drop is no further claim and
/// has no further error. The next one to it stays until it is known by how much.
fn beaten(table: &ObservationTable<'_>, precision: Precision) -> Vec<usize> {
    let ranked = ranked_sides(table, ComparedFigure::Overall);
    let shares = Shares::of(table, ranked.len());
    let compared = overall(table, &ranked, shares.overall);
    let live = ranked.iter().zip(&compared);
    let live = live.filter(|(sides, _)| table.live(sides.b[0]));
    let worse = live.enumerate().filter(|(at, (_, c))| {
        matches!(c.word, VerdictWord::Worse { .. }) && (*at > 0 || is_known(c, precision))
    });
    worse.map(|(_, (sides, _))| sides.b[0]).collect()
}

/// Configurations whose level's comparison with the first level is decided, and the size of the difference known. The claim has spent its share of the error up to this check, and no later round can take it back.
fn answered(table: &ObservationTable<'_>, decide: &Decide) -> Vec<usize> {
    // Where slices end, the rounds before do not count any more: what was answered may be open again.
    if (0..table.workloads()).any(|workload| table.evidence.in_slices(workload)) {
        return Vec::new();
    }
    let asked = whole(table);
    let shares = Shares::of(table, asked.len());
    let done = |sides: &&Sides| {
        let on = |figure, share| comparison(table, sides, figure, share);
        let over_all = on(ComparedFigure::Overall, shares.overall);
        let mut workloads = (0..table.workloads()).map(ComparedFigure::primary);
        let closed = |c: &Comparison| c.word.decides() && is_known(c, decide.precision);
        closed(&over_all)
            && (decide.until != Until::Each
                || workloads.all(|figure| closed(&on(figure, shares.workload))))
    };
    let answered = asked.iter().filter(done);
    answered.flat_map(|sides| sides.b.iter().copied()).collect()
}
