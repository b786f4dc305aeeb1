//! What power cuts took, said in the very sentence that says what is faster: speed without its losses
//! is half an answer.

use std::collections::BTreeMap;

use super::answer::VerdictGrounds;
use super::evidence::Evidence;
use stackrace_base::event::{Cut, RunStarted};
use stackrace_base::unit::{self, counted};

/// Names whose losses are written out; of more, only how many there are.
const WRITTEN_OUT: usize = 4;
/// Conditions that are written out under which nothing was lost.
const NEVER_MAX: usize = 2;

/// Losses in the cuts of the configurations of one name.
struct Taken<'a> {
    name: &'a str,
    cuts: usize,
    broken: usize,
    /// Most acknowledged work that one cut took, ns.
    rpo_ns: u64,
    /// Levels of other factors under which no cut broke a promise: `barrier = 1`.
    never: Vec<String>,
}

/// The names that the answer compares, the leader of a ranking first, each once.
pub(super) fn named<'a>(judged: &VerdictGrounds<'a>) -> Vec<&'a str> {
    // A ranking compares what is asked; without one, the comparisons with the baseline do.
    let compared = match judged.ranking.is_empty() {
        true => judged.overall,
        false => judged.ranking,
    };
    let mut names: Vec<&'a str> = Vec::new();
    for name in compared.iter().flat_map(|c| [c.a.as_str(), c.b.as_str()]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// `; async lost up to 5.18 s of acknowledged work in 30 of 40 power cuts`, of each name whose cuts broke a
/// promise, in one workload or in all; empty without cuts.
pub(super) fn clause(evidence: &Evidence<'_>, names: &[&str], workload: Option<usize>) -> String {
    let cuts = evidence.cuts.iter();
    let here: Vec<&Cut> = cuts
        .filter(|cut| workload.is_none_or(|workload| cut.workload == workload))
        .copied()
        .collect();
    let taken = names.iter().map(|name| taken(evidence, name, &here));
    let taken: Vec<Taken<'_>> = taken.filter(|taken| taken.cuts > 0).collect();
    if taken.is_empty() {
        return String::new();
    }
    let (broken, kept): (Vec<Taken<'_>>, Vec<Taken<'_>>) =
        taken.into_iter().partition(|taken| taken.broken > 0);
    if broken.is_empty() {
        let cuts = kept.iter().map(|taken| taken.cuts).sum();
        return format!("; no promise was broken in {}", counted(cuts, "power cut"));
    }
    let mut parts: Vec<String> = broken.iter().take(WRITTEN_OUT).map(lost).collect();
    if let more @ 1.. = broken.len().saturating_sub(WRITTEN_OUT) {
        parts.push(format!("{more} others broke promises, too"));
    }
    format!("; {}", parts.join("; "))
}

fn lost(taken: &Taken<'_>) -> String {
    let what = match taken.rpo_ns {
        // Data at rest were damaged, or nothing could be mounted.
        0 => "broke promises".to_owned(),
        ns => format!(
            "lost up to {} of acknowledged work",
            unit::time_ns(ns as f64)
        ),
    };
    let cuts = counted(taken.cuts, "power cut");
    // Of a level that loses under one condition alone, the sum says too much.
    let never = match &taken.never[..] {
        [] => String::new(),
        never if never.len() <= NEVER_MAX => format!(" (none with {})", never.join(", none with ")),
        never => format!(" (none in {} of its configurations)", never.len()),
    };
    format!("{} {what} in {} of {cuts}{never}", taken.name, taken.broken)
}

/// Losses in the cuts of all configurations of a name: of one, or of all with one level of the factor that is compared.
fn taken<'a>(evidence: &Evidence<'_>, name: &'a str, cuts: &[&Cut]) -> Taken<'a> {
    let head = evidence.head;
    let compared = head.decide.comparison.as_ref();
    let factor = compared.and_then(|factor| head.factors.iter().position(|one| one == factor));
    let is_of = |cut: &&&Cut| {
        let configuration = head.configurations.get(cut.configuration);
        configuration.is_some_and(|one| match factor {
            Some(factor) => one.levels.get(factor).is_some_and(|level| level == name),
            None => one.name == name,
        })
    };
    let mut taken = Taken {
        name,
        cuts: 0,
        broken: 0,
        rpo_ns: 0,
        never: Vec::new(),
    };
    let mut broke: BTreeMap<usize, bool> = BTreeMap::new();
    for cut in cuts.iter().filter(is_of) {
        taken.cuts += 1;
        taken.broken += usize::from(cut.broke_a_promise());
        *broke.entry(cut.configuration).or_default() |= cut.broke_a_promise();
        let lost = cut.found.as_ref().map_or(0, |found| found.rpo_ns);
        taken.rpo_ns = taken.rpo_ns.max(lost);
    }
    if taken.broken > 0 {
        let never = broke.iter().filter(|(_, broke)| !**broke);
        taken.never = never
            .map(|(at, _)| others(head, *at, factor))
            .filter(|others| !others.is_empty())
            .collect();
    }
    taken
}

/// Levels of the factors that are not compared, of a configuration: `barrier = 1`.
fn others(head: &RunStarted, configuration: usize, compared: Option<usize>) -> String {
    let levels = head.configurations[configuration].levels.iter();
    let levels = head.factors.iter().zip(levels).enumerate();
    let levels = levels.filter(|(at, _)| Some(*at) != compared);
    let levels: Vec<String> = levels
        .map(|(_, (factor, level))| format!("{factor} = {level}"))
        .collect();
    levels.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::super::{Evidence, judge};
    use stackrace_results::record::sample_cuts;

    #[test]
    fn what_is_called_fastest_has_its_losses_in_the_same_sentence() {
        let record = sample_cuts::with_cuts();
        let verdict = judge(&Evidence::of(&record));
        let sentence = verdict.sentence.split_inclusive(". ").next().unwrap();
        assert!(sentence.contains("async is fastest"), "{sentence}");
        assert!(
            sentence
                .contains("async lost up to 5.18 s of acknowledged work in 30 of 40 power cuts"),
            "{sentence}"
        );
        // Those that lost nothing are not said to have lost.
        assert!(!sentence.contains("sync, cache off lost"), "{sentence}");
    }

    #[test]
    fn where_nothing_was_lost_the_sentence_says_in_how_many_cuts() {
        let record = sample_cuts::with_cuts();
        let mut evidence = Evidence::of(&record);
        evidence.cuts.retain(|cut| !cut.broke_a_promise());
        let sentence = judge(&evidence).sentence;
        let kept = evidence.cuts.len();
        let words = format!("no promise was broken in {kept} power cuts");
        assert!(sentence.contains(&words), "{sentence}");
        evidence.cuts.clear();
        assert!(!judge(&evidence).sentence.contains("power cut"));
    }

    #[test]
    fn a_level_that_loses_under_one_condition_alone_is_said_to() {
        let mut record = sample_cuts::with_cuts();
        record.head.factors = vec!["export".to_owned(), "barrier".to_owned()];
        record.head.decide.comparison = Some("export".to_owned());
        let levels = [["sync", "1"], ["async", "0"], ["async", "1"], ["sync", "0"]];
        for (configuration, levels) in record.head.configurations.iter_mut().zip(levels) {
            configuration.levels = levels.map(str::to_owned).to_vec();
        }
        let said = super::clause(&Evidence::of(&record), &["sync", "async"], None);
        assert!(
            said.contains("in 2 of 80 power cuts (none with barrier = 1)"),
            "{said}"
        );
        assert!(
            said.contains("in 30 of 80 power cuts (none with barrier = 1)"),
            "{said}"
        );
    }
}
