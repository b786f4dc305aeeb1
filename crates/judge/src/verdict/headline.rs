//! The headline workload by workload: what is sure, with its figures, the largest first. People do not run an average
//! of workloads, so the figure over all leads only where the workloads say the same, or the user weighs them and it is decided.

use std::mem::discriminant;

use libm::log as ln;

use super::answer::VerdictGrounds;
use super::fragment::{bound, tells, times, times_rounded};
use super::statement::{Comparison, Interval, VerdictWord};
use stackrace_base::event::RunStarted;
use stackrace_base::unit::{self, Rounded, counted, listed_names};

/// Sure statements that are written out; of more, the largest.
const SURE_MAX: usize = 4;
/// Workloads that are named where nothing is certain; of more, how many there are.
const OPEN_MAX: usize = 4;
/// Name that runs of `compare` have as a study: their weights come from the purpose, not from the user.
const COMPARE: &str = "compare";

/// A statement on one workload.
struct Clause {
    /// Place in the sentence: differences, then ties, then what is known in part.
    place: u8,
    /// Size of the difference on the log scale.
    size: f64,
    text: String,
}

/// What is sure on single workloads, then what is not, as one sentence without its end; `None` where the figure over
/// all leads.
pub(super) fn by_workload(judged: &VerdictGrounds<'_>, head: &RunStarted) -> Option<String> {
    if head.workloads.len() < 2 || are_weighed(head) && judged.settled {
        return None;
    }
    let (mut clauses, open) = match judged.ranking.is_empty() {
        true => of_pairs(judged)?,
        false => of_rankings(judged)?,
    };
    clauses.sort_by(|x, y| x.place.cmp(&y.place).then(y.size.total_cmp(&x.size)));
    let more = clauses.len().saturating_sub(SURE_MAX);
    let clauses = clauses.into_iter().take(SURE_MAX);
    let mut parts: Vec<String> = clauses.map(|clause| clause.text).collect();
    if more > 0 {
        let verb = if more == 1 { "is" } else { "are" };
        parts.push(format!("{more} more {verb} certain"));
    }
    parts.extend(not_certain(&open));
    Some(parts.join("; "))
}

/// Returns true if the user gave the workloads different weights.
fn are_weighed(head: &RunStarted) -> bool {
    let mut weights = head.workloads.iter().map(|workload| workload.weight);
    let first = weights.find(|weight| *weight > 0.0);
    head.study_name != COMPARE && weights.any(|weight| weight > 0.0 && Some(weight) != first)
}

/// `not certain yet: small files and random read`
fn not_certain(open: &[String]) -> Option<String> {
    match open.len() {
        0 => None,
        few if few <= OPEN_MAX => Some(format!("not certain yet: {}", listed_names(open))),
        many => Some(format!("not certain yet: {many} others")),
    }
}

/// What is sure of two configurations, or of each with the baseline, and the names of what is not.
fn of_pairs(judged: &VerdictGrounds<'_>) -> Option<(Vec<Clause>, Vec<String>)> {
    let whole = || judged.workloads.iter().filter(|c| c.within.is_empty());
    let agree = judged.overall.iter().all(|over| {
        let mut own = whole().filter(|c| (&c.a, &c.b) == (&over.a, &over.b));
        over.word.decides() && own.all(|c| discriminant(&c.word) == discriminant(&over.word))
    });
    if agree || !whole().any(|c| c.word.decides()) {
        return None;
    }
    let alone = judged.overall.len() == 1;
    // Without a difference that names both, a tie does.
    let named = whole().any(|c| c.word.decides() && !c.word.is_tie());
    let (sure, open): (Vec<&Comparison>, Vec<&Comparison>) = whole()
        .flat_map(|c| told(c, judged.workloads))
        .partition(|c| c.word.decides());
    let open = open
        .into_iter()
        .map(|c| match (alone, c.coarse.undecidable) {
            // More rounds would not help.
            (_, true) => format!("{} (its figures are too coarse)", work(c)),
            (true, false) => c.workload.clone(),
            (false, false) => format!("{} ({})", work(c), c.b),
        });
    let sure = sure.into_iter();
    let sure = sure.filter_map(|c| clause(c, !(alone && named)));
    Some((sure.collect(), open.collect()))
}

/// A comparison over all levels of the other factors, or those within them where one of these says something else:
/// a mean over drives hides what is sure on one of them.
fn told<'a>(whole: &'a Comparison, all: &'a [Comparison]) -> Vec<&'a Comparison> {
    let same = |c: &&Comparison| {
        !c.within.is_empty() && (&c.workload, &c.a, &c.b) == (&whole.workload, &whole.a, &whole.b)
    };
    let within: Vec<&Comparison> = all.iter().filter(same).collect();
    let is_in = |ratio: Option<Interval>| {
        let mean = whole.ratio.map_or(1.0, |ratio| ratio.estimate);
        ratio.is_some_and(|own| own.low <= mean && mean <= own.high)
    };
    // Another answer, or the same one with another size.
    let other = |c: &&Comparison| {
        let same = discriminant(&c.word) == discriminant(&whole.word);
        c.word.decides() && !(same && is_in(c.ratio))
    };
    match within.iter().any(other) {
        true => within,
        false => vec![whole],
    }
}

/// `random read (sata-ssd)`: the workload, with the levels that the comparison is within.
fn work(c: &Comparison) -> String {
    match c.within.as_str() {
        "" => c.workload.clone(),
        within => format!("{} ({within})", c.workload),
    }
}

/// `in streaming write xfs does 265 MB/s, ext4 212 MB/s: 1.25 x as fast (1.20 to 1.30)`
fn clause(c: &Comparison, names: bool) -> Option<Clause> {
    let (place, text) = match c.word {
        VerdictWord::NoDifference { larger_than } => {
            let between = match names {
                true => format!(" between {} and {}", c.a, c.b),
                false => String::new(),
            };
            let bound = bound(larger_than);
            (
                1,
                format!("{}: no difference larger than {bound}{between}", work(c)),
            )
        }
        _ => (0, difference(c)?),
    };
    let size = c.ratio.map_or(0.0, |ratio| ln(ratio.estimate).abs());
    Some(Clause { place, size, text })
}

/// The faster one with its value, then the other one, then by how much.
fn difference(c: &Comparison) -> Option<String> {
    let ratio = c.ratio?;
    let better = ratio.estimate > 1.0;
    let (faster, slower) = if better { (&c.b, &c.a) } else { (&c.a, &c.b) };
    let by = by(if better { ratio } else { turned(ratio) });
    let workload = work(c);
    Some(match shown(c, better) {
        Some((verb, values)) => {
            let [fast, slow] = values;
            format!("in {workload} {faster} {verb} {fast}, {slower} {slow}: {by}")
        }
        None => format!("in {workload} {faster} is {by} as {slower}"),
    })
}

/// The verb for the metric, and both values with their units, that of the faster one first.
fn shown(c: &Comparison, better: bool) -> Option<(&'static str, [String; 2])> {
    let unit = &c.metric.as_ref()?.unit;
    let [a, b] = values(c, unit)?;
    let verb = match unit.as_str() {
        "s" | "ns" => "takes",
        "B/s" | "op/s" => "does",
        _ => "has",
    };
    Some((verb, if better { [b, a] } else { [a, b] }))
}

/// Both values behind a sentence that names the faster one first: `: 265 MB/s against 212 MB/s`; empty over several
/// workloads.
pub(super) fn against(c: &Comparison, unit: &str) -> String {
    let better = c.ratio.is_some_and(|ratio| ratio.estimate > 1.0);
    values(c, unit).map_or(String::new(), |[a, b]| match better {
        true => format!(": {b} against {a}"),
        false => format!(": {a} against {b}"),
    })
}

/// Both values where neither is faster: ` (ext4 212 MB/s, xfs 215 MB/s)`; empty over several workloads.
pub(super) fn both(c: &Comparison, unit: &str) -> String {
    values(c, unit).map_or(String::new(), |[a, b]| {
        format!(" ({} {a}, {} {b})", c.a, c.b)
    })
}

/// How certain a hint is: not at all, or as far as an earlier check was.
pub(super) fn how_certain(c: &Comparison, better: bool) -> String {
    match c.certain_before {
        None => "not certain".to_owned(),
        Some(before) if before.better == better => format!(
            "that it is faster was certain after round {}, how much is not",
            before.round
        ),
        Some(before) => format!(
            "not certain, and after round {} the other one was certain to be faster: the storage changed, or chance misled",
            before.round
        ),
    }
}

/// What an earlier check was certain of, where now not even a hint is left: `; that b is faster was certain after round
/// 7: the storage changed, or chance misled`.
pub(super) fn was_certain(c: &Comparison) -> String {
    c.certain_before.map_or(String::new(), |before| {
        let faster = if before.better { &c.b } else { &c.a };
        let round = before.round;
        format!(
            "; that {faster} is faster was certain after round {round}: the storage changed, or chance misled"
        )
    })
}

/// The rounds of a comparison that was answered before others of its sentence: its values are of these alone.
pub(super) fn earlier(c: &Comparison, all: &[&Comparison]) -> String {
    let rounds = c.logs.len();
    match all.iter().any(|other| other.logs.len() > rounds) && rounds > 0 {
        true => format!(", in {}", counted(rounds, "round")),
        false => String::new(),
    }
}

/// The values of A and B with their unit.
fn values(c: &Comparison, unit: &str) -> Option<[String; 2]> {
    let (a, b) = c.values.filter(|(a, b)| a.is_finite() && b.is_finite())?;
    Some([a, b].map(|value| unit::of_metric(unit, value)))
}

/// `1.25 x as fast (1.20 to 1.30)`
fn by(ratio: Interval) -> String {
    format!("{} x as fast{}", times(ratio.estimate), ends(ratio))
}

/// ` (1.07 to 1.38)`; where the upper end tells nothing, ` (at least 1.07 x)`; nothing where both ends are the number
/// that stands there already.
pub(super) fn ends(ratio: Interval) -> String {
    let end = |end: f64| match (ratio.low..=ratio.high).contains(&1.0) {
        true => times(end),
        false => unit::not_one(end).unwrap_or_else(|| times(end)),
    };
    match (end(ratio.low), end(ratio.high)) {
        _ if ratio.low.is_nan() => String::new(),
        // A bound alone is a claim, and holds as it is shown; two ends show how well it is known.
        _ if !is_narrow(ratio) => {
            format!(" (at least {} x)", times_rounded(ratio.low, Rounded::Down))
        }
        (low, high) if low == high => String::new(),
        (low, high) => format!(" ({low} to {high})"),
    }
}

/// Estimates of the first rounds, which have no interval: ` So far b 1.25 x as fast as a in mail (…), roughly.`
pub(super) fn so_far(overall: &[Comparison], over: &str, unit: &str) -> String {
    let part = |c: &Comparison| {
        let ratio = c.so_far()?;
        let (faster, slower, ratio) = match ratio.estimate > 1.0 {
            true => (&c.b, &c.a, ratio),
            false => (&c.a, &c.b, turned(ratio)),
        };
        let both = both(c, unit);
        Some(format!("{faster} {} as {slower}{over}{both}", by(ratio)))
    };
    let parts: Vec<String> = overall.iter().filter_map(part).take(SURE_MAX).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" So far, as a rough estimate: {}.", parts.join("; ")),
    }
}

/// Returns true if both ends are worth reading: a large ratio may be known less well.
fn is_narrow(ratio: Interval) -> bool {
    tells(&ratio) || ratio.high / ratio.low <= stackrace_stats::widest(ratio.estimate)
}

/// A over B instead of B over A.
pub(super) fn turned(ratio: Interval) -> Interval {
    Interval {
        estimate: 1.0 / ratio.estimate,
        low: 1.0 / ratio.high,
        high: 1.0 / ratio.low,
    }
}

/// Who is best at what, and the names of the workloads that nothing is known of.
fn of_rankings(judged: &VerdictGrounds<'_>) -> Option<(Vec<Clause>, Vec<String>)> {
    let leader = judged.ranking.first().map(|c| c.a.as_str());
    let first = |ranking: &[Comparison]| {
        let ahead = ranking.iter().all(is_behind);
        ranking.first().filter(|_| ahead).map(|c| c.a.clone())
    };
    let best: Vec<Option<String>> = judged
        .rankings
        .iter()
        .map(|ranking| first(ranking))
        .collect();
    if judged.settled && best.iter().all(|best| best.as_deref() == leader) {
        return None;
    }
    let (mut clauses, mut open) = (Vec::new(), Vec::new());
    for ranking in judged.rankings {
        match ranked(ranking) {
            Some(clause) => clauses.push(clause),
            None => open.extend(ranking.first().map(|c| c.workload.clone())),
        }
    }
    (!clauses.is_empty()).then_some((clauses, open))
}

fn is_behind(c: &Comparison) -> bool {
    matches!(c.word, VerdictWord::Worse { .. })
}

/// The best on one workload, with the next one, or what it is not separated from; `None` if nothing is certain.
fn ranked(ranking: &[Comparison]) -> Option<Clause> {
    let next = ranking.first()?;
    let (leader, workload) = (&next.a, &next.workload);
    let named = |of: &dyn Fn(&Comparison) -> bool| -> Vec<String> {
        let all = ranking.iter().filter(|c| of(c));
        all.map(|c| c.b.clone()).collect()
    };
    let behind = named(&is_behind);
    let ties = named(&|c| c.word.is_tie());
    let open = ranking.len() - behind.len() - ties.len();
    let size = next.ratio.map_or(0.0, |ratio| ln(ratio.estimate).abs());
    if behind.len() == ranking.len() {
        let by = by(turned(next.ratio?));
        let text = match shown(next, false) {
            Some((verb, [fast, slow])) => format!(
                "in {workload} {leader} is best: it {verb} {fast}, the next one ({}) {slow}: {by}",
                next.b
            ),
            None => format!("in {workload} {leader} is best: {by} as {}", next.b),
        };
        return Some(Clause {
            place: 0,
            size,
            text,
        });
    }
    let ahead = match behind.is_empty() {
        true => String::new(),
        false => format!(", ahead of {}", few(&behind)),
    };
    if open == 0 {
        let tied: Vec<String> = std::iter::once(leader.clone()).chain(ties).collect();
        let bounds = ranking.iter().map(|c| match c.word {
            VerdictWord::NoDifference { larger_than } => larger_than,
            _ => 0.0,
        });
        let text = format!(
            "in {workload} {} are tied{ahead} (no difference larger than {})",
            few(&tied),
            bound(bounds.fold(0.0, f64::max))
        );
        return Some(Clause {
            place: 1,
            size,
            text,
        });
    }
    let rest = named(&|c| !is_behind(c));
    let text = format!(
        "in {workload} {leader} is ahead of {}, not separated from {}",
        few(&behind),
        few(&rest)
    );
    (!behind.is_empty()).then_some(Clause {
        place: 2,
        size,
        text,
    })
}

/// Names, or how many there are.
fn few(names: &[String]) -> String {
    match names.len() {
        many if many > OPEN_MAX => counted(many, "other"),
        _ => listed_names(names),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{evidence, head, trials};
    use super::super::{Evidence, Verdict, judge};
    use stackrace_base::event::RunStarted;

    /// The verdict after 12 rounds with the truth of each configuration and workload.
    fn judged(head: &RunStarted, noise: f64, truth: impl Fn(usize, usize) -> f64) -> Verdict {
        let data = trials(head, 12, noise, 5, truth);
        let evidence = Evidence {
            ended: true,
            ..evidence(head, &data, 12)
        };
        judge(&evidence)
    }

    /// The second of two configurations by workload.
    fn of_two(truths: &[f64]) -> Verdict {
        with_noise(0.01, truths)
    }

    fn with_noise(noise: f64, truths: &[f64]) -> Verdict {
        let mut head = head(&["fs"], &[&["ext4"], &["xfs"]], truths.len(), Some("fs"));
        for workload in &mut head.workloads {
            workload.metrics[0].unit = "B/s".to_owned();
            workload.metrics[0].better = stackrace_base::event::Better::Higher;
        }
        judged(&head, noise, |t, w| if t == 1 { truths[w] } else { 1.0 })
    }

    #[test]
    fn an_end_that_excludes_one_does_not_read_as_one() {
        let ends = |low, high| {
            super::ends(super::Interval {
                estimate: 1.06,
                low,
                high,
            })
        };
        assert_eq!(ends(1.004, 1.12), " (1.004 to 1.12)");
        assert_eq!(ends(0.998, 1.12), " (1.00 to 1.12)");
    }

    #[test]
    fn what_is_sure_leads_workload_by_workload_with_its_figures() {
        let said = of_two(&[1.0, 1.25, 1.03]).sentence;
        assert!(said.starts_with("In w1 xfs does "), "{said}");
        assert!(said.contains(" B/s, ext4 "), "{said}");
        assert!(said.contains(" x as fast (1.2"), "{said}");
        assert!(said.contains("; w0: no difference larger than "), "{said}");
        assert!(said.contains("95 % confidence, 12 rounds."), "{said}");
        assert!(!said.contains("over all"), "{said}");
    }

    #[test]
    fn what_is_not_certain_is_named_and_the_overall_figure_follows() {
        let verdict = with_noise(0.02, &[1.3, 1.035, 0.8]);
        let said = &verdict.sentence;
        let places = [
            "In w0 xfs does ",
            "; in w2 ext4 does ",
            "; not certain yet: w1; ",
        ];
        let places = places.map(|part| said.find(part).unwrap_or_else(|| panic!("{said}")));
        assert!(places.is_sorted(), "{said}");
        let first = verdict.details[0].to_lowercase();
        assert!(first.contains("over all 3 workloads"), "{first}");
    }

    #[test]
    fn what_is_sure_on_one_drive_alone_is_said_of_that_drive_with_its_figures() {
        let cells: &[&[&str]] = &[
            &["none", "hdd"],
            &["none", "ssd"],
            &["bfq", "hdd"],
            &["bfq", "ssd"],
        ];
        let mut head = head(&["scheduler", "drive"], cells, 2, Some("scheduler"));
        for workload in &mut head.workloads {
            workload.metrics[0].better = stackrace_base::event::Better::Higher;
        }
        // bfq halves the reads of the SSD; the rest is the same.
        let truth = |t: usize, w: usize| match (t, w) {
            (0 | 2, _) => 1.0,
            (3, 0) => 50.0,
            _ => 100.0,
        };
        let said = judged(&head, 0.01, truth).sentence;
        assert!(said.starts_with("In w0 (ssd) none does 8"), "{said}");
        assert!(said.contains("bfq 4"), "{said}");
        assert!(
            said.contains("w0 (hdd): no difference larger than"),
            "{said}"
        );
        assert!(said.contains("w1: no difference larger than"), "{said}");
    }

    #[test]
    fn where_all_workloads_agree_the_overall_figure_leads() {
        let said = of_two(&[1.3, 1.25, 1.4]).sentence;
        assert!(said.starts_with("xfs is 1.3"), "{said}");
        assert!(said.contains(" over all 3 workloads"), "{said}");
    }

    #[test]
    fn of_many_workloads_the_largest_are_named_and_the_rest_counted() {
        let said = of_two(&[1.2, 1.3, 0.5, 1.6, 2.0, 0.7, 1.4]).sentence;
        assert_eq!(said.matches(" x as fast").count(), 4, "{said}");
        assert!(
            said.starts_with("In w2 ext4 does ") || said.starts_with("In w4 xfs"),
            "{said}"
        );
        assert!(said.contains("; 3 more are certain; "), "{said}");
    }

    #[test]
    fn weights_of_the_user_let_the_overall_figure_lead_and_those_of_a_purpose_do_not() {
        let mut head = head(&["fs"], &[&["ext4"], &["xfs"]], 3, Some("fs"));
        head.workloads[0].weight = 4.0;
        let truth = |t: usize, w: usize| if t == 1 && w == 0 { 2.0 } else { 1.0 };
        let said = judged(&head, 0.02, truth).sentence;
        assert!(said.contains("over all 3 workloads"), "{said}");
        head.study_name = super::COMPARE.to_owned();
        let said = judged(&head, 0.02, truth).sentence;
        assert!(said.starts_with("In w0 xfs does "), "{said}");
    }

    #[test]
    fn a_ranking_says_who_is_best_at_what_and_what_is_not_separated() {
        let mut head = head(&["fs"], &[&["ext4"], &["xfs"], &["btrfs"]], 3, None);
        for workload in &mut head.workloads {
            workload.metrics[0].better = stackrace_base::event::Better::Higher;
        }
        let truths = [[1.0, 1.3, 0.9], [1.5, 1.25, 0.9], [1.0, 1.0, 1.0]];
        let said = judged(&head, 0.01, |t, w| truths[w][t]).sentence;
        for part in [
            "in w0 xfs is best: it does ",
            "in w1 ext4 is best: it does ",
            "the next one (xfs) ",
            "in w2 xfs, btrfs and ext4 are tied (no difference larger than ",
        ] {
            assert!(said.to_lowercase().contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_time_is_taken_and_the_shorter_one_comes_first() {
        let mut head = head(&["fs"], &[&["ext4"], &["xfs"]], 2, Some("fs"));
        for workload in &mut head.workloads {
            workload.metrics[0].better = stackrace_base::event::Better::Lower;
            workload.metrics[0].unit = "ns".to_owned();
        }
        let said = judged(&head, 0.02, |t, w| if (t, w) == (1, 0) { 2.0 } else { 1.0 }).sentence;
        assert!(said.starts_with("In w0 xfs takes "), "{said}");
        assert!(said.contains(" ns, ext4 1"), "{said}");
    }
}
