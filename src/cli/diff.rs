//! `stackrace diff`: two stored results side by side.

use super::args::Diff;
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{print_data, print_styled};
use super::words::{self, named};
use stackrace_judge::verdict;
use stackrace_results::record::{Record, Store};
use stackrace_show::report;

pub(super) fn exec(setting: &Setting, verb: Diff) -> Result<u8, Failure> {
    let store = setting.session.look_into_store()?;
    let read = |first: &String, more: &[String]| -> Result<Vec<(Record, usize)>, Failure> {
        let words = std::iter::once(first).chain(more);
        words.map(|word| side(&store, word)).collect()
    };
    let (a, b) = (read(&verb.a, &verb.more_a)?, read(&verb.b, &verb.more_b)?);
    let difference = verdict::difference(&borrowed(&a), &borrowed(&b), verb.anyway);
    let refused = report::refused(&difference);
    let nothing = difference
        .workloads
        .iter()
        .all(|pair| pair.figures.is_empty());
    // Where a part can be compared, the page says what cannot.
    if !verb.anyway && nothing && !refused.is_empty() {
        return Err(Failure::refused(format!(
            "these are not compared, because the work or the machine differs:\n       {}",
            refused.join("\n       ")
        ))
        .next("--anyway shows them side by side all the same"));
    }
    if verb.json {
        let json = serde_json::to_value(&difference).unwrap_or_default();
        print_data(format!("{json:#}\n").as_bytes());
    } else {
        print_styled(&report::diff(&difference, setting.screen), setting.colour);
    }
    Ok(0)
}

fn borrowed(side: &[(Record, usize)]) -> Vec<(&Record, usize)> {
    side.iter().map(|(record, at)| (record, *at)).collect()
}

/// `RUN[/CONFIGURATION]`: the run, and which of its configurations is meant.
fn side(store: &Store, word: &str) -> Result<(Record, usize), Failure> {
    let (run, configuration) = match word.split_once('/') {
        // Ids of runs have no slash; names of configurations may.
        Some((run, configuration)) => (run, Some(configuration)),
        None => (word, None),
    };
    if run.is_empty() {
        return Err(Failure::usage(format!("{word} names no run"))
            .next("write RUN or RUN/CONFIGURATION; what another tool printed becomes a run first: stackrace import FILE"));
    }
    let record = words::run(store, run)?;
    let names: Vec<&str> = record
        .head
        .configurations
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    let at = match configuration {
        None if names.len() == 1 => 0,
        None => {
            return Err(
                Failure::usage(format!("{word} has {} configurations", names.len())).next(format!(
                    "name one of them, as {word}/NAME: {}",
                    names.join("; ")
                )),
            );
        }
        Some(wanted) => named("configuration", wanted, &names)?,
    };
    Ok((record, at))
}
