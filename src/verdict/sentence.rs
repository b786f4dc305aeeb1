//! A verdict in plain words. The vocabulary is fixed: see `docs/methodology.md`.

use super::{Comparison, ConfigurationRow, Interval, State, Verdict, VerdictWord};
use crate::event::RunStarted;
use crate::unit;

/// What a comparison says, as a fragment that follows "B is" or stands alone.
pub(super) fn fragment(word: VerdictWord, ratio: Option<Interval>) -> String {
    match word {
        VerdictWord::Better { at_least, at_most } => faster(at_least, at_most),
        VerdictWord::Worse { at_least, at_most } => {
            format!("{} slower", span(at_least, at_most))
        }
        VerdictWord::NoDifference { larger_than } => {
            format!("no difference larger than {}", unit::percent(larger_than))
        }
        VerdictWord::Undecided => match ratio {
            Some(ratio) => format!("undecided: between {}", between(ratio)),
            None => "undecided".to_owned(),
        },
        VerdictWord::TooFew => "too few rounds for an interval".to_owned(),
        VerdictWord::Unpaired { runs, differs } => unpaired(runs, differs, ratio),
    }
}

/// What an interaction says: how the effect there compares with the effect at the baseline.
pub(super) fn interaction(word: VerdictWord, ratio: Option<Interval>) -> String {
    match (word, ratio) {
        (VerdictWord::Better { at_least, at_most }, _) => {
            format!("{} larger there", span(at_least, at_most))
        }
        (VerdictWord::Worse { at_least, at_most }, _) => {
            format!("{} smaller there", span(at_least, at_most))
        }
        (VerdictWord::NoDifference { larger_than }, _) => {
            format!("the same there, within {}", unit::percent(larger_than))
        }
        (VerdictWord::Undecided, Some(ratio)) => {
            format!(
                "undecided: between {} and {} times",
                times(ratio.low),
                times(ratio.high)
            )
        }
        (word, ratio) => fragment(word, ratio),
    }
}

/// A comparison as a sentence of its own, with its workload and metric.
pub(super) fn answer(c: &Comparison, head: &RunStarted) -> String {
    match &c.metric {
        None => format!("{}.", pair(c, head)),
        Some(metric) => format!(
            "{}, {}: {}.",
            c.workload,
            metric.name,
            pair(c, &alone(head))
        ),
    }
}

/// What is said of results that were not made in turn: never that one is faster.
fn unpaired(runs: (usize, usize), differs: bool, ratio: Option<Interval>) -> String {
    match (ratio.filter(|ratio| ratio.low.is_finite()), runs) {
        (Some(ratio), _) if differs => format!("differs: between {}, unpaired", between(ratio)),
        (Some(ratio), _) => format!("between {}, unpaired", between(ratio)),
        (None, (1, 1)) => "one run each, so no interval".to_owned(),
        (None, (a, b)) => format!("{b} and {a} runs, too few for an interval"),
    }
}

/// `12-19 % faster`, or `3.1-4.2 times as fast` where per cents would be unreadable.
fn faster(at_least: f64, at_most: f64) -> String {
    if at_most >= 1.0 {
        let (low, high) = (times(1.0 + at_least), times(1.0 + at_most));
        return if low == high {
            format!("{low} times as fast")
        } else {
            format!("{low}-{high} times as fast")
        };
    }
    format!("{} faster", span(at_least, at_most))
}

fn span(low: f64, high: f64) -> String {
    let (low, high) = (unit::percent(low), unit::percent(high));
    if low == high {
        low
    } else {
        format!("{}-{high}", low.trim_end_matches(" %"))
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        // An interval that knows nothing has ends of any size: their digits mean nothing.
        r if r >= 9999.5 => format!("{r:.0e}"),
        r if r >= 99.5 => format!("{r:.0}"),
        r if r >= 9.95 => format!("{r:.1}"),
        r if r >= 0.0995 => format!("{r:.2}"),
        r if r >= 0.001 => format!("{r:.3}"),
        r => format!("{r:.0e}"),
    }
}

/// `3 % slower and 12 % faster`, or `0.02 and 4.1 times as fast` where per cents would be
/// unreadable.
pub(super) fn between(ratio: Interval) -> String {
    if ratio.low < 0.5 || ratio.high > 2.0 {
        return format!(
            "{} and {} times as fast",
            times(ratio.low),
            times(ratio.high)
        );
    }
    format!("{} and {}", change(ratio.low), change(ratio.high))
}

fn change(ratio: f64) -> String {
    if ratio >= 1.0 {
        format!("{} faster", unit::percent(ratio - 1.0))
    } else {
        format!("{} slower", unit::percent(1.0 - ratio))
    }
}

/// The answer in one sentence.
pub(super) fn whole(verdict: &Verdict, head: &RunStarted) -> String {
    if verdict.state == State::Unpaired {
        return imported(verdict, head);
    }
    if head.configurations.len() < 2 || verdict.overall.is_empty() {
        return format!(
            "{} measured in {}; the study compares nothing.",
            counted(head.configurations.len(), "configuration"),
            counted(verdict.rounds as usize, "complete round")
        );
    }
    if verdict.state == State::TooFew {
        let first = verdict.planned_checks.first().copied().unwrap_or(3);
        return format!(
            "No verdict yet: {}; the first verdict needs {first}.",
            counted(verdict.rounds as usize, "complete round")
        );
    }
    if head.decide.comparison.is_none() && head.configurations.len() > 2 {
        return ranking(verdict, head);
    }
    let parts: Vec<String> = verdict.overall.iter().map(|c| pair(c, head)).collect();
    format!(
        "{} ({}).{}",
        parts.join("; "),
        certainty(verdict),
        outlook(verdict, head)
    )
}

/// The ratios of imported results, with what they are worth.
fn imported(verdict: &Verdict, head: &RunStarted) -> String {
    let compared = verdict.overall.iter().filter(|c| c.ratio.is_some());
    let ratios = match (verdict.overall.as_slice(), compared.count()) {
        (_, 0) if head.configurations.len() > 1 => "no workload is in all of them".to_owned(),
        (_, 0) => "one configuration, and nothing to compare it with".to_owned(),
        ([only], _) => ratio(only, head),
        (several, _) => {
            let leader = several.first().map_or("", |c| c.a.as_str());
            let part = |c: &Comparison| Some(format!("{} {}", c.b, times(c.ratio?.estimate)));
            let parts: Vec<String> = several.iter().filter_map(part).collect();
            let over = over(head);
            format!(
                "{leader} is best{over}; relative to it: {}",
                parts.join(", ")
            )
        }
    };
    let intervals = verdict.overall.iter().filter_map(|c| c.ratio);
    let worth = match verdict.overall.as_slice() {
        _ if intervals.clone().count() == 0 => "",
        [_] => "",
        _ if intervals.into_iter().all(|ratio| ratio.low.is_nan()) => {
            "; intervals need at least 3 runs on each side"
        }
        _ => "; the runs are not paired, so there is no verdict",
    };
    format!("Imported, not measured here: {ratios}{worth}.")
}

/// `b against a: ratio 1.23; one run each, so no interval`
fn ratio(c: &Comparison, head: &RunStarted) -> String {
    let over = over(head);
    match c.ratio {
        None => format!("{} and {} have no metric in common", c.a, c.b),
        Some(ratio) => format!(
            "{} against {}{over}: ratio {}; {}",
            c.b,
            c.a,
            times(ratio.estimate),
            c.text
        ),
    }
}

fn certainty(verdict: &Verdict) -> String {
    format!(
        "{} confidence, {} rounds",
        unit::percent(verdict.confidence).replace(".0 ", " "),
        verdict.checked_at.unwrap_or(0)
    )
}

fn over(head: &RunStarted) -> String {
    match head.workloads.iter().filter(|w| w.weight > 0.0).count() {
        1 => String::new(),
        n => format!(" over all {n} workloads"),
    }
}

fn pair(c: &Comparison, head: &RunStarted) -> String {
    let over = over(head);
    match (c.word, c.ratio) {
        // The faster one is the subject, so that the reader need not turn the sentence round.
        (VerdictWord::Worse { .. }, Some(r)) => {
            let by = faster(1.0 / r.high - 1.0, 1.0 / r.low - 1.0);
            format!("{} is {} {}{over}", c.a, than(&by), c.b)
        }
        (VerdictWord::Better { .. } | VerdictWord::Worse { .. }, _) => {
            format!("{} is {} {}{over}", c.b, than(&c.text), c.a)
        }
        (VerdictWord::NoDifference { .. }, _) => {
            format!("{} between {} and {}{over}", capital(&c.text), c.a, c.b)
        }
        (VerdictWord::Unpaired { .. }, _) => ratio(c, head),
        (VerdictWord::Undecided, Some(ratio)) => {
            let range = format!("between {}", between(ratio));
            format!("Undecided: {} is {} {}{over}", c.b, than(&range), c.a)
        }
        (VerdictWord::Undecided | VerdictWord::TooFew, _) => {
            format!("{} against {}{over}: {}", c.b, c.a, c.text)
        }
    }
}

/// `3 times as fast as`, `3 % faster than`.
fn than(text: &str) -> String {
    if text.ends_with("as fast") {
        format!("{text} as")
    } else {
        format!("{text} than")
    }
}

/// `1 trial`, `2 trials`.
fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

fn outlook(verdict: &Verdict, head: &RunStarted) -> String {
    if verdict.state != State::Undecided {
        return String::new();
    }
    match &verdict.more {
        Some(more) => match more.rounds {
            Some(rounds) if verdict.rounds + rounds > head.decide.rounds_max => {
                format!(" At this noise, about {}{} would decide; the study allows {}. Allow more rounds and time, or widen the margin.", more_rounds(rounds), about(more.seconds), head.decide.rounds_max)
            }
            Some(rounds) => format!(" {}{} would decide.", more_rounds(rounds), about(more.seconds)),
            None => " At this noise, no affordable number of rounds would decide. Make trials longer, or widen the margin.".to_owned(),
        },
        None => String::new(),
    }
}

fn more_rounds(rounds: u32) -> String {
    counted(rounds as usize, "more round")
}

fn about(seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| {
        format!(" (about {})", unit::long_time(seconds))
    })
}

fn ranking(verdict: &Verdict, head: &RunStarted) -> String {
    let leader = verdict.overall.first().map_or("", |c| c.a.as_str());
    let ties: Vec<&Comparison> = verdict.overall.iter().filter(|c| c.word.is_tie()).collect();
    // A configuration that was dropped is out by its own rule, whatever the wider interval says.
    let dropped = |name: &str| {
        let gone = |row: &ConfigurationRow| row.name == name && row.dropped_after.is_some();
        verdict.configurations.iter().any(gone)
    };
    let open: Vec<&Comparison> = verdict
        .overall
        .iter()
        .filter(|c| !c.word.settles_rank())
        .filter(|c| !dropped(&c.b))
        .collect();
    let beaten: Vec<f64> = verdict
        .overall
        .iter()
        .filter_map(|c| {
            if let VerdictWord::Worse { .. } = c.word {
                c.ratio.map(|r| 1.0 / r.high - 1.0)
            } else {
                None
            }
        })
        .collect();
    let least = beaten.iter().copied().fold(f64::INFINITY, f64::min);
    let over = over(head);
    let mut text = if !open.is_empty() && verdict.state == State::Undecided {
        let names: Vec<&str> = open.iter().map(|c| c.b.as_str()).collect();
        format!("Undecided between {leader} and {}{over}", list(&names))
    } else if ties.is_empty() {
        format!("{leader} is fastest{over}")
    } else {
        format!("{}{over}", tie(leader, &ties))
    };
    if least.is_finite() {
        let others = if beaten.len() + 1 == head.configurations.len() {
            "all others".to_owned()
        } else {
            format!("the other {}", beaten.len())
        };
        let joint = if ties.is_empty() && open.is_empty() {
            ", "
        } else {
            "; the leader is "
        };
        let by = unit::percent(least);
        text.push_str(&format!("{joint}at least {by} ahead of {others}"));
    }
    format!("{text} ({}).{}", certainty(verdict), outlook(verdict, head))
}

/// The leader and those within the margin of it.
fn tie(leader: &str, ties: &[&Comparison]) -> String {
    let mut names = vec![leader];
    names.extend(ties.iter().map(|c| c.b.as_str()));
    let largest = ties.iter().map(|c| match c.word {
        VerdictWord::NoDifference { larger_than } => larger_than,
        _ => 0.0,
    });
    let largest = unit::percent(largest.fold(0.0, f64::max));
    format!(
        "{} are tied: no difference larger than {largest}",
        list(&names)
    )
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// One sentence for each workload, the largest differences first, at most five.
pub(super) fn details(verdict: &Verdict, head: &RunStarted) -> Vec<String> {
    if head.workloads.len() < 2 || verdict.state == State::TooFew {
        return Vec::new();
    }
    let mut comparisons: Vec<&Comparison> = verdict
        .workloads
        .iter()
        .filter(|c| c.within.is_empty())
        .collect();
    let size = |c: &Comparison| c.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs());
    comparisons.sort_by(|x, y| size(y).total_cmp(&size(x)));
    comparisons
        .iter()
        .take(5)
        .map(|c| format!("{}: {}.", c.workload, pair(c, &alone(head))))
        .collect()
}

/// The head without the words about several workloads.
fn alone(head: &RunStarted) -> RunStarted {
    let mut head = head.clone();
    head.workloads.truncate(1);
    for workload in &mut head.workloads {
        workload.weight = 1.0;
    }
    head
}
