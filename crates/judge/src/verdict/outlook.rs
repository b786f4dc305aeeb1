//! How far the question is answered, and what would answer it.

use libm::{log as ln, log1p as ln_1p};

use super::answer::VerdictGrounds;
use super::shares::Shares;
use super::statement::{Comparison, More, State, VerdictWord};
use super::table::ObservationTable;
use stackrace_base::event::{Decide, Precision, Until};

/// Returns true if more rounds would change nothing for those that did not fail: what is asked,
/// over all workloads, is answered.
pub(super) fn settled(
    table: &ObservationTable<'_>,
    overall: &[Comparison],
    ranking: &[Comparison],
) -> bool {
    if table.evidence.ranks() {
        // Which is best: every other one is worse than the leader or within the margin of it.
        // A dropped one was found to be worse then. It is measured no more, so its interval need
        // not go on saying so.
        let dropped = |c: &Comparison| {
            let mut dropped = table.evidence.dropped.iter();
            dropped.any(|(t, _)| table.evidence.head.configurations[*t].name == c.b)
        };
        return !ranking.is_empty() && ranking.iter().all(|c| c.word.settles_rank() || dropped(c));
    }
    !overall.is_empty() && overall.iter().all(|c| c.word.decides())
}

/// The state of the question. One that failed is neither beaten nor dropped: the question about it
/// stays open.
pub(super) fn state(table: &ObservationTable<'_>, checked: bool, settled: bool) -> State {
    if table.evidence.imported {
        State::Unpaired
    } else if !checked {
        State::TooFew
    } else if settled && table.evidence.failed().is_empty() {
        State::Decided
    } else {
        State::Undecided
    }
}

/// Returns true if it is known how large each difference is that the sentence leads with.
pub(super) fn sizes_known(judged: &VerdictGrounds<'_>, decide: &Decide) -> bool {
    let of = (judged.overall, judged.ranking, judged.workloads);
    let open = open_sizes(of, judged.by_workload, decide.precision);
    open.iter()
        .all(|c| judged.dropped(&c.a) || judged.dropped(&c.b))
}

/// The comparisons of the answer whose interval is too wide to say how large the difference is: over all workloads
/// and in a ranking, and on each workload where the sentence goes by them.
fn open_sizes<'a>(
    (overall, ranking, workloads): (&'a [Comparison], &'a [Comparison], &'a [Comparison]),
    by_workload: bool,
    precision: Precision,
) -> Vec<&'a Comparison> {
    let (asked, each) = match ranking {
        [] => (overall, workloads),
        // Of those that are behind, the next one alone is quoted.
        ranking => (ranking, &[][..]),
    };
    let each = each.iter().filter(|c| by_workload && c.within.is_empty());
    let sure = asked.iter().chain(each).filter(|c| c.word.decides());
    sure.filter(|c| !is_known(c, precision)).collect()
}

/// Returns true if the interval of a comparison is as narrow as is asked, or cannot be narrower.
pub(super) fn is_known(comparison: &Comparison, precision: Precision) -> bool {
    let Some(ratio) = comparison.ratio else {
        return false;
    };
    let widest = match precision {
        Precision::Direction => return true,
        // It lies within the margin: that is its size.
        Precision::Size if comparison.word.is_tie() => return true,
        Precision::Size => stackrace_stats::widest(ratio.estimate),
        Precision::Within(share) => 1.0 + share,
    };
    let finest = 2.0 * ln_1p(comparison.coarse.resolution);
    ratio.high / ratio.low <= widest || finest >= ln(widest)
}

/// Returns true if more rounds would change nothing about a comparison.
pub(super) fn is_closed(comparison: &Comparison) -> bool {
    comparison.word.decides() || comparison.coarse.undecidable
}

/// Returns true if all that is still open is so because the figures are too coarse for it.
pub(super) fn too_coarse(
    table: &ObservationTable<'_>,
    overall: &[Comparison],
    ranking: &[Comparison],
) -> bool {
    let asked = match table.evidence.ranks() {
        true => ranking,
        false => overall,
    };
    let mut open = asked.iter().filter(|c| !c.word.decides()).peekable();
    open.peek().is_some() && open.all(|c| c.coarse.undecidable)
}

/// Number of further rounds that would decide, for each comparison with a probability of 80 %.
pub(super) fn more(
    table: &ObservationTable<'_>,
    judged: &VerdictGrounds<'_>,
    shares: Shares,
) -> Option<More> {
    let head = table.evidence.head;
    if judged.state == State::Decided
        && let more @ Some(_) = more_for_sizes(table, judged, shares)
    {
        return more;
    }
    let primary = if table.evidence.ranks() {
        judged.ranking
    } else {
        judged.overall
    };
    // With `until = "each"` a decided overall figure is not the end; single workloads are open
    // then.
    let open: Vec<(&Comparison, f64)> = match (judged.state, head.decide.until) {
        (State::TooFew | State::Unpaired, _) => return None,
        (State::Undecided, _) if !judged.settled && !judged.too_coarse => {
            primary.iter().map(|c| (c, shares.overall)).collect()
        }
        (State::Decided, Until::Each) => judged
            .workloads
            .iter()
            .filter(|c| c.within.is_empty())
            .map(|c| (c, shares.workload))
            .collect(),
        _ => return None,
    };
    let open = open.into_iter().filter(|(c, _)| {
        let undecided = matches!(
            c.word,
            VerdictWord::Undecided | VerdictWord::Probably { .. }
        );
        undecided && !judged.dropped(&c.a) && !judged.dropped(&c.b)
    });
    let mut needed: Option<u32> = Some(0);
    for (comparison, alpha) in open {
        let logs = &comparison.logs;
        let resolution = ln_1p(comparison.coarse.resolution);
        let total = stackrace_stats::rounds_to_decide(logs, resolution, alpha, head.decide.margin);
        let rounds = total.map(|total| total - u32::try_from(logs.len()).unwrap_or(total));
        // If nothing would decide one of them, there is no projection for the whole.
        needed = needed.zip(rounds).map(|(x, y)| x.max(y));
    }
    if needed == Some(0) {
        return None;
    }
    let seconds = needed
        .zip(table.evidence.round_seconds)
        .map(|(n, s)| f64::from(n) * s);
    Some(More {
        rounds: needed,
        seconds,
    })
}

/// Number of further rounds that would make the intervals of a decided answer narrow; `None` if they are.
fn more_for_sizes(
    table: &ObservationTable<'_>,
    judged: &VerdictGrounds<'_>,
    shares: Shares,
) -> Option<More> {
    let precision = table.evidence.head.decide.precision;
    let of = (judged.overall, judged.ranking, judged.workloads);
    let mut open = open_sizes(of, judged.by_workload, precision);
    open.retain(|c| !judged.dropped(&c.a) && !judged.dropped(&c.b));
    let further = |c: &&Comparison| {
        let estimate = c.ratio?.estimate;
        let alpha = match c.workload.is_empty() {
            true => shares.overall,
            false => shares.workload,
        };
        let widest = match precision {
            Precision::Within(share) => 1.0 + share,
            Precision::Size | Precision::Direction => stackrace_stats::widest(estimate),
        };
        let resolution = ln_1p(c.coarse.resolution);
        let total = stackrace_stats::rounds_to_narrow(&c.logs, resolution, alpha, widest)?;
        Some(total - u32::try_from(c.logs.len()).unwrap_or(total))
    };
    let all: Option<Vec<u32>> = open.iter().map(further).collect();
    let rounds = all.and_then(|all| all.into_iter().max());
    let pace = table.evidence.round_seconds;
    (!open.is_empty()).then(|| More {
        rounds,
        seconds: rounds.zip(pace).map(|(n, s)| f64::from(n) * s),
    })
}
