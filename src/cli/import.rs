//! `stackrace import`: what other tools printed becomes a run like any other, except that nothing
//! was measured and no verdict is given.

use std::path::Path;
use std::sync::Arc;

use super::Setting;
use super::args::Import;
use super::execute::{broken, entropy, show, where_it_is};
use super::failure::Failure;
use crate::event::Event;
use crate::import::{self, Misread, Source};
use crate::record::{Record, RecordError, Store, run_id};
use crate::run::Ledger;
use crate::time::{Clock, SystemClock};
use crate::verdict::{self, Evidence};

/// Largest text that is read; it goes into the log as it is.
const TEXT_MAX: usize = 16 << 20;

pub(super) fn exec(setting: &Setting, verb: Import) -> Result<u8, Failure> {
    if let Some(tool) = &verb.tool {
        let names: Vec<&str> = import::ALL.iter().map(|importer| importer.name).collect();
        if !names.contains(&tool.as_str()) {
            return Err(super::show::unknown("importer", tool, &names));
        }
    }
    let (mut sources, mut refusals) = (Vec::new(), Vec::new());
    for word in &verb.files {
        match source(word, verb.tool.as_deref()) {
            Ok(source) => sources.push(source),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if !refusals.is_empty() {
        return Err(Failure::refused(refusals.join("\n")));
    }
    let title = verb.title.unwrap_or_else(|| import::title(&sources));
    let store = setting.open_store()?;
    let ledger = keep(&store, &sources, title, setting.command.clone()).map_err(broken)?;
    let record = ledger.record();
    let verdict = verdict::judge(&Evidence::of(record));
    show(setting, record, &verdict, &verb.output, None)?;
    where_it_is(setting, &store, &ledger);
    Ok(0)
}

/// One file and what is read from it, or why it is refused.
fn source(word: &str, tool: Option<&str>) -> Result<Source, String> {
    let (name, file) = match word.split_once('=') {
        Some((name, file)) if !Path::new(word).exists() => (Some(name), file),
        _ => (None, word),
    };
    let refused = |what: &str, next: &str| format!("error: {file}: {what}\n  next: {next}");
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(refused("its name is empty", "write NAME=FILE"));
    }
    let bytes = std::fs::read(file)
        .map_err(|error| refused(&format!("cannot be read: {error}"), "name an existing file"))?;
    if bytes.len() > TEXT_MAX {
        let what = format!("is larger than {}", crate::unit::bytes(TEXT_MAX as u64));
        return Err(refused(&what, "give it the results alone"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let whole = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..whole];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!(
            "error: {file}:{line}: this is no text in UTF-8\n  next: give it what the tool printed"
        )
    })?;
    let name = name.map(|name| name.trim().to_owned());
    Source::read(name, file, text, tool).map_err(|misread| explained(file, &misread))
}

fn explained(file: &str, misread: &Misread) -> String {
    format!(
        "error: {file}:{}: {}\n  next: {}",
        misread.line, misread.what, misread.next
    )
}

/// Writes what was imported as a run of its own.
///
/// # Errors
/// The store does not take it.
pub(super) fn keep(
    store: &Store,
    sources: &[Source],
    title: String,
    command: Vec<String>,
) -> Result<Ledger, RecordError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let design = import::design(sources, &clock.today());
    let head = design.head(run_id(&clock.today(), entropy()), title, command);
    let (log, line) = store.create_run(head.clone(), Arc::clone(&clock))?;
    let record = Record {
        head,
        lines: vec![line],
        notes: Vec::new(),
    };
    let mut ledger = Ledger::new(log, store.index(), record);
    for event in design.events() {
        ledger.append(event)?;
    }
    let verdict = verdict::judge(&Evidence::of(ledger.record()));
    ledger.append(Event::Checked {
        rounds: verdict.rounds,
        sentence: verdict.sentence,
        dropped: Vec::new(),
    })?;
    ledger.append(Event::RunEnded {
        reason: "imported".to_owned(),
        detail: "nothing was measured".to_owned(),
    })?;
    Ok(ledger)
}
