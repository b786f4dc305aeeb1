//! Repetitions are of the same work: results of one configuration whose settings differ are told
//! apart by those settings, in every configuration.

use std::collections::BTreeMap;

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

/// The settings in which repetitions of a workload, known by its name and kind, differ.
type Apart<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a str>>;

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
    let settings = apart.get(&(result.workload.as_str(), result.kind.as_str()));
    let settings = settings.into_iter().flatten();
    settings.fold(
        result.workload.clone(),
        |name, setting| match Fact::value_of(&result.settings, setting) {
            Some(value) => format!("{name}, {setting}={value}"),
            None => format!("{name}, {setting} not told"),
        },
    )
}

/// Goes through results, each with its configuration.
fn differing<'a>(results: impl Iterator<Item = (&'a Imported, &'a str)>) -> Apart<'a> {
    let mut apart: Apart<'_> = BTreeMap::new();
    // The first result of a configuration with a setting stands for those after it.
    let mut first: BTreeMap<(&str, &str, &str, &str), &str> = BTreeMap::new();
    for (result, configuration) in results {
        let work = (result.workload.as_str(), result.kind.as_str());
        for fact in &result.settings {
            let (name, value) = (fact.name.as_str(), fact.value.as_str());
            if NAMES.contains(&name) {
                continue;
            }
            let known = first
                .entry((work.0, work.1, configuration, name))
                .or_insert(value);
            let of_work = apart.entry(work).or_default();
            if *known != value && !of_work.contains(&name) {
                of_work.push(name);
            }
        }
    }
    apart
}
