//! `stackrace diff`: two stored results side by side.

use super::args::Diff;
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::print;
use super::words::named;
use crate::record::{Record, Store};
use crate::report;
use crate::verdict;

pub(super) fn exec(setting: &Setting, verb: Diff) -> Result<u8, Failure> {
    let store = setting.session.open_store()?;
    let (record_a, a) = side(&store, &verb.a)?;
    let (record_b, b) = side(&store, &verb.b)?;
    let difference = verdict::difference((&record_a, a), (&record_b, b));
    print(&if verb.json {
        format!(
            "{:#}\n",
            serde_json::to_value(&difference).unwrap_or_default()
        )
    } else {
        report::diff(&difference, setting.screen)
    });
    Ok(0)
}

/// `RUN[/CONFIGURATION]`: the run, and which of its configurations is meant.
fn side(store: &Store, word: &str) -> Result<(Record, usize), Failure> {
    let (run, configuration) = match word.split_once('/') {
        Some((run, configuration)) => (run, Some(configuration)),
        None => (word, None),
    };
    let record = store
        .read(run)
        .map_err(|error| Failure::usage(error.to_string()).next(error.next()))?;
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
