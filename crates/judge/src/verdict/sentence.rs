//! A verdict in plain words: the answer with its number, then how sure that is. The vocabulary is
//! fixed: see `docs/methodology.md`.

use libm::log as ln;
use stackrace_stats::FIRST_LOOK;

use super::answer::VerdictGrounds;
use super::enough::{self, RequiredRow};
use super::evidence::{Evidence, FailedConfiguration};
use super::fragment::{bound, capital, known_to, range, tells, times};
use super::headline::{self, against, both, ends, turned};
use super::statement::{Comparison, ConfigurationRow, Interval, State, VerdictWord};
use super::{fidelity, forecast, guarantee, imported, still};
use stackrace_base::event::RunStarted;
use stackrace_base::unit::{self, Rounded, counted, listed, listed_names};

/// Comparisons that are written out; of more in a ranking, only how far the leader is ahead, and with a
/// baseline, which are how far.
const WRITTEN_OUT: usize = 4;
/// Further sentences below the answer.
const DETAILS_MAX: usize = 5;

/// A comparison as a sentence of its own, with its workload and metric.
pub(super) fn answer(c: &Comparison, head: &RunStarted) -> String {
    match &c.metric {
        None => {
            let said = pair(c, &over(head), only_unit(head));
            format!("{}.", capital(&said, &[&c.a, &c.b]))
        }
        Some(metric) => {
            let said = pair(c, "", &metric.unit);
            format!("{}, {}: {said}.", c.workload, metric.name)
        }
    }
}

/// The answer in one or two sentences; `forecast`: what would decide that is open, behind it.
pub(super) fn whole(
    judged: &VerdictGrounds<'_>,
    required: &[RequiredRow],
    forecast: &str,
    evidence: &Evidence<'_>,
) -> String {
    let head = evidence.head;
    if judged.state == State::Unpaired {
        return imported::sentence(judged, head, &over(head));
    }
    let failed = failures(evidence);
    if head.configurations.len() == 1 && !failed.is_empty() {
        return format!("No verdict: {failed}.");
    }
    if head.configurations.len() == 1
        && let Some(why) = fidelity::withheld(evidence)
    {
        return format!("No verdict: {why}.");
    }
    if head.configurations.len() == 1 && !required.is_empty() {
        let answer = enough::alone(required, evidence, judged.rounds);
        return answer + forecast;
    }
    let enough = enough::sentence(required, evidence);
    let compared = compared(judged, forecast, evidence);
    format!(
        "{enough}{}{compared}",
        if enough.is_empty() { "" } else { " " }
    )
}

/// The first figure of each workload of one configuration; `None` if it has none.
fn measured(row: &ConfigurationRow) -> Option<String> {
    let cells = row.cells.iter().filter(|cell| cell.primary);
    let figures = cells.filter_map(|cell| {
        let figure = unit::of_metric(&cell.metric.unit, cell.value?.estimate);
        Some(format!("{} {figure}", cell.workload_name))
    });
    let figures: Vec<String> = figures.take(DETAILS_MAX).collect();
    (!figures.is_empty()).then(|| figures.join(", "))
}

/// The answer of a comparison.
fn compared(judged: &VerdictGrounds<'_>, forecast: &str, evidence: &Evidence<'_>) -> String {
    let head = evidence.head;
    if let [alone] = judged.configurations
        && let Some(measured) = measured(alone)
    {
        return format!(
            "{}: {measured}; {}, nothing to compare it with.",
            alone.name,
            counted(judged.rounds as usize, "complete round")
        );
    }
    if head.configurations.len() < 2 || judged.overall.is_empty() {
        return format!(
            "{} measured in {}; the study compares nothing.",
            counted(head.configurations.len(), "configuration"),
            counted(judged.rounds as usize, "complete round")
        );
    }
    let failed = failures(evidence);
    if judged.state == State::TooFew && !failed.is_empty() {
        return format!("No verdict: {failed}.");
    }
    if judged.state == State::TooFew {
        return too_few(judged, evidence);
    }
    let ranked = !judged.ranking.is_empty();
    let by_workload = headline::by_workload(judged, head);
    let found = if let Some(found) = by_workload {
        found
    } else if let Some(why) = fidelity::withheld(evidence) {
        return format!("No verdict: {why}.");
    } else if ranked {
        ranking(judged, head)
    } else {
        let over = over(head);
        let said = judged.overall.iter();
        // One that failed at once has nothing to be compared.
        let said = said.filter(|c| failed.is_empty() || c.word != VerdictWord::TooFew);
        let said: Vec<&Comparison> = said.collect();
        match said.len() > WRITTEN_OUT {
            true => against_one(&said, &over, failed.is_empty()),
            false => {
                let unit = only_unit(head);
                let part = |c: &&Comparison| pair(c, &over, unit) + &headline::earlier(c, &said);
                let parts: Vec<String> = said.iter().map(part).collect();
                parts.join("; ")
            }
        }
    };
    // Each comparison involves one that failed before it had a round.
    if found.is_empty() {
        return format!("No verdict: {failed}.");
    }
    let kept = guarantee::clause(evidence, &guarantee::named(judged), None);
    let found = format!("{found}{kept}; {}.", certainty(judged, !failed.is_empty()));
    // With a failure no number of rounds answers the whole question, so none is projected.
    match (failed.is_empty(), ranked) {
        (true, _) => capital(&found, &guarantee::named(judged)) + forecast,
        (false, true) => format!("{failed}. Without it: {found}"),
        (false, false) => format!("{failed}. In the rounds before: {found}"),
    }
}

/// The state before the first verdict, with the estimates of the rounds so far.
fn too_few(judged: &VerdictGrounds<'_>, evidence: &Evidence<'_>) -> String {
    let head = evidence.head;
    let goes_on = forecast::goes_on(judged, evidence);
    // What was lost needs no rounds to be said.
    let kept = guarantee::clause(evidence, &guarantee::named(judged), None);
    format!(
        "No verdict yet: {}; the first verdict needs {FIRST_LOOK}{kept}.{}{goes_on}",
        counted(judged.rounds as usize, "complete round"),
        headline::so_far(judged.overall, &over(head), only_unit(head))
    )
}

/// `c failed in round 2 (out of space)`, of each that did.
fn failures(evidence: &Evidence<'_>) -> String {
    let failed = evidence.failed();
    let name = |failed: &FailedConfiguration| {
        let configuration = evidence.head.configurations.get(failed.configuration);
        configuration.map_or("a configuration", |c| c.name.as_str())
    };
    // What failed in the same way is said once.
    let alike = failed.chunk_by(|one, next| (one.round, &one.error) == (next.round, &next.error));
    let parts = alike.map(|alike| {
        let names: Vec<&str> = alike.iter().map(name).collect();
        let (round, error) = (alike[0].round, &alike[0].error);
        format!("{} failed in round {round}: {error}", listed_names(&names))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// The unit of the primary metric of the only workload; of several, there is none.
fn only_unit(head: &RunStarted) -> &str {
    match &head.workloads[..] {
        [only] => only.metrics.first().map_or("", |metric| &metric.unit),
        _ => "",
    }
}

/// Certainty of the verdict: only claims have a confidence.
fn certainty(judged: &VerdictGrounds<'_>, failed: bool) -> String {
    let rankings = judged.rankings.iter().flatten();
    let all = judged.overall.iter().chain(judged.ranking);
    let comparisons = all.chain(judged.workloads).chain(rankings);
    let checked = judged.checked_at.unwrap_or(0) as usize;
    // One that failed has fewer rounds than the run. A check between rounds has not listed them.
    let most = comparisons.clone().map(|c| c.logs.len()).max();
    let most = most.filter(|most| failed && *most > 0);
    let rounds = counted(most.map_or(checked, |most| most.min(checked)), "round");
    let sure = comparisons.clone().any(|c| c.word.decides());
    let doubt = still::clause(comparisons);
    let confidence = unit::percent(judged.confidence).replace(".0 ", " ");
    match sure {
        true => format!("{confidence} confidence, {rounds}{doubt}"),
        false => format!("{rounds}{doubt}"),
    }
}

fn over(head: &RunStarted) -> String {
    // Workloads without weight are not part of the overall figure.
    let weighed = head.workloads.iter().filter(|w| w.weight > 0.0);
    match weighed.collect::<Vec<_>>()[..] {
        [only] => format!(" in {}", only.name),
        ref all => format!(" over all {} workloads", all.len()),
    }
}

/// `xfs is 1.22 x as fast as ext4 (between 1.07 and 1.38 times as fast)`: the faster one is the subject, so
/// that the reader need not turn the sentence round.
///
/// `unit`: that of its values.
fn pair(c: &Comparison, over: &str, unit: &str) -> String {
    let shown = against(c, unit);
    let both = both(c, unit);
    match (c.word, c.ratio) {
        (VerdictWord::Better { .. }, Some(ratio)) => {
            format!(
                "{} is {} as fast as {}{over}{}{shown}",
                c.b,
                by(ratio),
                c.a,
                ends(ratio)
            )
        }
        (VerdictWord::Worse { .. }, Some(ratio)) => {
            let ratio = turned(ratio);
            format!(
                "{} is {} as fast as {}{over}{}{shown}",
                c.a,
                by(ratio),
                c.b,
                ends(ratio)
            )
        }
        (VerdictWord::Probably { better }, Some(ratio)) => {
            let (faster, ratio) = if better {
                (&c.b, ratio)
            } else {
                (&c.a, turned(ratio))
            };
            let other = if better { &c.a } else { &c.b };
            let ends = Some(ratio).filter(tells).map_or(String::new(), ends);
            let certain = headline::how_certain(c, better);
            format!(
                "{faster} is probably {} as fast as {other}{over}{ends}{shown}; {certain}",
                by(ratio)
            )
        }
        (VerdictWord::NoDifference { .. }, Some(ratio)) => {
            format!(
                "{} between {} and {}{over}{both} ({} is {})",
                c.text,
                c.a,
                c.b,
                c.b,
                between(ratio)
            )
        }
        (VerdictWord::Unpaired { .. }, _) => imported::ratio(c, over),
        (VerdictWord::Undecided, _) if c.coarse.undecidable => format!(
            "{} and {} cannot be told apart{over}: {}",
            c.a,
            c.b,
            known_to(c.coarse)
        ),
        (VerdictWord::Undecided, ratio) => {
            let may_be = ratio.filter(tells).map(range);
            let may_be = may_be.map_or(String::new(), |range| format!(": {} may be {range}", c.b));
            let before = headline::was_certain(c);
            format!(
                "{} and {} cannot be told apart yet{over}{both}{may_be}{before}",
                c.a, c.b
            )
        }
        (_, _) => format!("{} against {}{over}: {}", c.b, c.a, c.text),
    }
}

/// `1.22 x`
fn by(ratio: Interval) -> String {
    format!("{} x", times(ratio.estimate))
}

fn between(ratio: Interval) -> String {
    match (times(ratio.low), times(ratio.high)) {
        (low, high) if low == high => format!("{low} times as fast"),
        (low, high) => format!("between {low} and {high} times as fast"),
    }
}

/// Many comparisons with one baseline, gathered by what is known of them, the fastest first: a sentence for
/// each would bury the answer. `whole`: no configuration failed; else none is called fastest.
fn against_one(comparisons: &[&Comparison], over: &str, whole: bool) -> String {
    let speed = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate);
    let mut ordered = comparisons.to_vec();
    ordered.sort_by(|x, y| speed(y).total_cmp(&speed(x)));
    let mut known: Vec<(u8, String, Vec<String>)> = Vec::new();
    for c in ordered {
        let (place, what) = match c.word {
            VerdictWord::Better { .. } => (0, "faster".to_owned()),
            VerdictWord::Worse { .. } => (1, "slower".to_owned()),
            VerdictWord::NoDifference { .. } => (2, c.text.clone()),
            VerdictWord::Probably { better: true } => {
                (3, "probably faster, not certain".to_owned())
            }
            VerdictWord::Probably { better: false } => {
                (4, "probably slower, not certain".to_owned())
            }
            VerdictWord::Undecided => (5, "not told apart yet".to_owned()),
            VerdictWord::TooFew | VerdictWord::Unpaired { .. } => (6, c.text.clone()),
        };
        let name = match (place, c.ratio) {
            (0 | 1 | 3 | 4, Some(ratio)) => format!("{} ({})", c.b, by(ratio)),
            _ => c.b.clone(),
        };
        match known.iter_mut().find(|known| known.1 == what) {
            Some(known) => known.2.push(name),
            None => known.push((place, what, vec![name])),
        }
    }
    known.sort_by_key(|known| known.0);
    let baseline = comparisons.first().map_or("", |c| c.a.as_str());
    if let ([(1, _, slower)], true) = (&known[..], whole) {
        return format!("{baseline} is fastest{over}; slower: {}", slower.join(", "));
    }
    let parts = known.iter();
    let parts = parts.map(|(_, what, names)| format!("{what}: {}", names.join(", ")));
    format!(
        "Against {baseline}{over}: {}",
        parts.collect::<Vec<_>>().join("; ")
    )
}

/// The best configuration, what it is ahead of, and what it is not separated from.
fn ranking(judged: &VerdictGrounds<'_>, head: &RunStarted) -> String {
    let leader = judged.ranking.first().map_or("", |c| c.a.as_str());
    // One that was dropped is out by what was said then, whatever its interval says now.
    let (behind, others): (Vec<&Comparison>, Vec<&Comparison>) = judged
        .ranking
        .iter()
        .partition(|c| matches!(c.word, VerdictWord::Worse { .. }) || judged.dropped(&c.b));
    let (ties, open): (Vec<&Comparison>, Vec<&Comparison>) =
        others.into_iter().partition(|c| c.word.is_tie());
    let over = over(head);
    let mut parts = vec![match (ties.is_empty(), open.is_empty()) {
        (true, true) => format!("{leader} is fastest{over}"),
        (_, false) => format!("{leader} leads{over}, not certainly"),
        (false, true) => format!("{}{over}", tie(leader, &ties)),
    }];
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(|c| not_separated(c)).collect();
        parts.push(format!("not separated from {}", listed_names(&names)));
        if !ties.is_empty() {
            parts.push(tie(leader, &ties));
        }
    }
    parts.extend(ahead(leader, &behind));
    parts.join("; ")
}

/// `xfs (probably slower)`
fn not_separated(c: &Comparison) -> String {
    match c.word {
        VerdictWord::Probably { better: false } => format!("{} (probably slower)", c.b),
        _ => c.b.clone(),
    }
}

/// The configurations the leader is ahead of, and by how much.
fn ahead(leader: &str, behind: &[&Comparison]) -> Option<String> {
    let ratio = |c: &&Comparison| c.ratio.map(turned);
    if behind.is_empty() {
        return None;
    }
    if behind.len() <= WRITTEN_OUT {
        let part = |c: &&Comparison| {
            let ratio = ratio(c)?;
            Some(format!("{} as fast as {}{}", by(ratio), c.b, ends(ratio)))
        };
        let parts: Vec<String> = behind.iter().filter_map(part).collect();
        return Some(format!("{leader} is {}", listed(&parts)));
    }
    // The intervals hold all together, so the smallest of their ends holds for each.
    let least = behind.iter().filter_map(ratio).map(|ratio| ratio.low);
    let least = least.fold(f64::INFINITY, f64::min) - 1.0;
    // One that was left out was compared with the leader of that time.
    if least <= 0.0 {
        return Some(format!("{leader} is ahead of {} others", behind.len()));
    }
    let least = unit::percent_rounded(least, Rounded::Down);
    Some(format!(
        "{leader} is at least {least} ahead of {} others",
        behind.len()
    ))
}

/// The leader and those within the margin of it.
fn tie(leader: &str, ties: &[&Comparison]) -> String {
    // The widest bound is the one that holds for all that are named.
    let names = std::iter::once(leader.to_owned()).chain(ties.iter().map(|c| c.b.clone()));
    let largest = ties.iter().map(|c| match c.word {
        VerdictWord::NoDifference { larger_than } => larger_than,
        _ => 0.0,
    });
    let largest = bound(largest.fold(0.0, f64::max));
    format!(
        "{} are tied: no difference larger than {largest}",
        listed_names(&names.collect::<Vec<_>>())
    )
}

/// One sentence for each workload, the largest differences first, at most five.
pub(super) fn details(judged: &VerdictGrounds<'_>, evidence: &Evidence<'_>) -> Vec<String> {
    let head = evidence.head;
    if head.workloads.len() < 2 || judged.state == State::TooFew {
        return Vec::new();
    }
    let over = over(head);
    // What leads stands in the sentence; the figure over all then follows it.
    let led = judged.by_workload;
    let first = judged.overall.iter().filter(|_| led);
    let first = first.map(|c| format!("{}.", capital(&pair(c, &over, ""), &[&c.a, &c.b])));
    let mut comparisons: Vec<&Comparison> = judged
        .workloads
        .iter()
        .filter(|c| c.within.is_empty())
        .collect();
    // On the log scale twice as fast and half as fast are equally far from no difference.
    let size = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ln(ratio.estimate).abs());
    comparisons.sort_by(|x, y| size(y).total_cmp(&size(x)));
    // Of two, the sentence has said what is sure.
    if led && judged.overall.len() == 1 {
        comparisons.retain(|c| !c.word.decides());
    }
    let each = comparisons.iter().map(|c| {
        let workload = head.workloads.iter().position(|w| w.name == c.workload);
        let kept = guarantee::clause(evidence, &[&c.a, &c.b], workload);
        let unit = c.metric.as_ref().map_or("", |metric| &metric.unit);
        format!("{}: {}{kept}.", c.workload, pair(c, "", unit))
    });
    first
        .take(WRITTEN_OUT)
        .chain(each)
        .take(DETAILS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::statement::Coarseness;

    #[test]
    fn many_comparisons_are_gathered_by_what_is_known() {
        let compared = |b: &str, estimate, word| Comparison {
            a: "stripe".to_owned(),
            b: b.to_owned(),
            within: String::new(),
            workload: String::new(),
            metric: None,
            ratio: Some(Interval {
                estimate,
                low: estimate * 0.8,
                high: estimate * 1.25,
            }),
            values: None,
            word,
            text: "no difference larger than 3 %".to_owned(),
            rounds: Vec::new(),
            robust: None,
            lacking: None,
            order_effect: None,
            coarse: Coarseness::default(),
            still: Vec::new(),
            certain_before: None,
            logs: Vec::new(),
        };
        let (at_least, at_most) = (0.1, 0.5);
        let all = [
            compared("raidz1", 0.4, VerdictWord::Probably { better: false }),
            compared("mirrors", 0.5, VerdictWord::Worse { at_least, at_most }),
            compared("raidz2", 0.3, VerdictWord::Probably { better: false }),
            compared(
                "other",
                1.0,
                VerdictWord::NoDifference { larger_than: 0.03 },
            ),
            compared("fast", 2.0, VerdictWord::Better { at_least, at_most }),
            compared("unclear", 1.1, VerdictWord::Undecided),
        ];
        let all: Vec<&Comparison> = all.iter().collect();
        assert_eq!(
            against_one(&all, " over all 5 workloads", true),
            "Against stripe over all 5 workloads: faster: fast (2.00 x); slower: mirrors (0.50 x); no difference \
             larger than 3 %: other; probably slower, not certain: raidz1 (0.40 x), raidz2 (0.30 x); not told \
             apart yet: unclear"
        );
        assert_eq!(
            against_one(&all[1..2], " in mail", true),
            "stripe is fastest in mail; slower: mirrors (0.50 x)"
        );
        assert_eq!(
            against_one(&all[1..2], " in mail", false),
            "Against stripe in mail: slower: mirrors (0.50 x)"
        );
    }

    #[test]
    fn an_interval_narrower_than_its_digits_is_written_once() {
        let ratio = |low, high| Interval {
            estimate: 1.0402,
            low,
            high,
        };
        assert_eq!(between(ratio(1.0398, 1.0405)), "1.04 times as fast");
        assert_eq!(ends(ratio(1.0398, 1.0405)), "");
        assert_eq!(ends(ratio(1.03, 1.05)), " (1.03 to 1.05)");
    }
}
