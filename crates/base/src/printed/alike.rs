//! Repetitions are of the same work: results of one configuration whose settings differ are told
//! apart by those settings, in every configuration.

use std::collections::{BTreeMap, BTreeSet};

use super::Imported;
use super::source::ImportSource;
use crate::event::Fact;

/// Settings that say what a run was called, or where it wrote its logs, and change no work.
const NAMES: [&str; 8] = [
    "name",
    "description",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
    "randseed",
    "output",
];

/// The setting with the command line, of which a name has only the words that not all have.
const COMMAND: &str = "command";
/// Most settings that a name lists although a result does not tell them.
const NOT_TOLD_MAX: usize = 3;

/// Returns true if a setting only says what a run was called, or where it wrote its logs.
pub fn changes_no_work(setting: &str) -> bool {
    NAMES.contains(&setting)
}

/// Settings in which repetitions of a workload, known by its name and kind, differ.
type Apart<'a> = BTreeMap<(&'a str, &'a str), Differing<'a>>;

/// Settings in which results of one workload differ.
#[derive(Default)]
struct Differing<'a> {
    names: Vec<&'a str>,
    /// Words that the commands of all of them have.
    words: Option<BTreeSet<&'a str>>,
}

/// Names of the results of one text, each with the settings in which it differs from others that do
/// the same.
pub fn told_apart(results: &[Imported]) -> Vec<String> {
    let apart = differing(results.iter().map(|result| (result, "")));
    results.iter().map(|result| named(result, &apart)).collect()
}

/// Name of each result of each source: its workload, with the settings in which repetitions of it
/// differ within a configuration.
pub(super) fn workloads(
    sources: &[ImportSource],
    configurations: &[Vec<String>],
) -> Vec<Vec<String>> {
    let results = sources.iter().zip(configurations);
    let results = results.flat_map(|(source, names)| source.results.iter().zip(names));
    let apart = differing(results.map(|(result, name)| (result, name.as_str())));
    let of_source = |source: &ImportSource| {
        let results = source.results.iter();
        results.map(|result| named(result, &apart)).collect()
    };
    sources.iter().map(of_source).collect()
}

fn named(result: &Imported, apart: &Apart<'_>) -> String {
    let mut name = result.workload.clone();
    let Some(differing) = apart.get(&(result.workload.as_str(), result.kind.as_str())) else {
        return name;
    };
    let mut untold = Vec::new();
    for setting in &differing.names {
        match told(result, setting) {
            Some(command) if *setting == COMMAND => {
                let own = differing.own_words(command);
                name.push_str(&format!(", {setting}={own}"));
            }
            Some(value) => name.push_str(&format!(", {setting}={value}")),
            None => untold.push(*setting),
        }
    }
    // What is told is named, so that results with other settings have other names all the same.
    match untold.len() {
        0..=NOT_TOLD_MAX => {
            let each = untold.iter().map(|setting| format!(", {setting} not told"));
            name.extend(each);
        }
        all => name.push_str(&format!(", {all} settings not told")),
    }
    name
}

impl Differing<'_> {
    /// The words of a command that not all have; all of them where only their order differs.
    fn own_words(&self, command: &str) -> String {
        let common = |word: &&str| self.words.as_ref().is_some_and(|all| all.contains(word));
        let own: Vec<&str> = command
            .split_whitespace()
            .filter(|word| !common(word))
            .collect();
        match own.is_empty() {
            true => command.to_owned(),
            false => own.join(" "),
        }
    }
}

/// Goes through results, each with its configuration. A setting that one of them has and another does not is another
/// value too: without it a tool does something else.
fn differing<'a>(results: impl Iterator<Item = (&'a Imported, &'a str)>) -> Apart<'a> {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&Imported>> = BTreeMap::new();
    for (result, configuration) in results {
        let work = (
            result.workload.as_str(),
            result.kind.as_str(),
            configuration,
        );
        groups.entry(work).or_default().push(result);
    }
    let mut apart: Apart<'_> = BTreeMap::new();
    for ((workload, kind, _), group) in groups {
        let of_work = apart.entry((workload, kind)).or_default();
        for command in group.iter().filter_map(|result| told(result, COMMAND)) {
            let words: BTreeSet<&str> = command.split_whitespace().collect();
            of_work.words = Some(match of_work.words.take() {
                Some(known) => known.intersection(&words).copied().collect(),
                None => words,
            });
        }
        let settings = group.iter().flat_map(|result| &result.settings);
        let names = settings.map(|fact| fact.name.as_str()).chain([COMMAND]);
        for name in names.filter(|name| !changes_no_work(name)) {
            let first = told(group[0], name);
            let differs = group.iter().any(|result| told(result, name) != first);
            if differs && !of_work.names.contains(&name) {
                of_work.names.push(name);
            }
        }
    }
    apart
}

/// What a result says of a setting.
fn told<'a>(result: &'a Imported, name: &str) -> Option<&'a str> {
    let shown = || result.command.as_deref().filter(|_| name == COMMAND);
    Fact::value_of(&result.settings, name).or_else(shown)
}
