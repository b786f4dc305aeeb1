//! `stackrace import`: what other tools printed becomes a run like any other, except that nothing
//! was measured and no verdict is given.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::Setting;
use super::args::Import;
use super::execute::{broken, entropy, show, where_it_is};
use super::failure::Failure;
use crate::event::{Event, RunStarted};
use crate::import::{self, Design, Misread, Source};
use crate::record::{Record, Store, run_id};
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
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let design = import::design(&sources, &clock.today());
    let title = verb.title.unwrap_or_else(|| title(&sources));
    let store = setting.open_store()?;
    let ledger = keep(setting, &store, &clock, design, title)?;
    let record = ledger.record();
    let verdict = verdict::judge(&Evidence::of(record));
    show(setting, record, &verdict, &verb.output)?;
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
    let results = import::read(&text, tool).map_err(|misread| explained(file, &misread))?;
    Ok(Source {
        name: name.map(|name| name.trim().to_owned()),
        file: file.to_owned(),
        stem: Path::new(file).file_stem().map_or_else(
            || file.to_owned(),
            |stem| stem.to_string_lossy().into_owned(),
        ),
        hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
        text,
        results,
    })
}

fn explained(file: &str, misread: &Misread) -> String {
    format!(
        "error: {file}:{}: {}\n  next: {}",
        misread.line, misread.what, misread.next
    )
}

/// `Imported from fio-3.39, IOR-4.0.0`.
fn title(sources: &[Source]) -> String {
    let tools: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| &source.results)
        .map(|result| result.version.as_deref().unwrap_or(result.tool))
        .collect();
    let tools: Vec<&str> = tools.into_iter().collect();
    format!("Imported from {}", tools.join(", "))
}

/// Writes the run as it would have been written while it went on.
fn keep(
    setting: &Setting,
    store: &Store,
    clock: &Arc<dyn Clock>,
    design: Design,
    title: String,
) -> Result<Ledger, Failure> {
    let run = run_id(&clock.today(), entropy());
    let head = RunStarted {
        format: crate::event::FORMAT,
        run,
        stackrace: env!("CARGO_PKG_VERSION").to_owned(),
        command: setting.command.clone(),
        study_hash: blake3::hash(design.study.as_bytes()).to_hex().to_string(),
        study: design.study,
        study_name: "import".to_owned(),
        title,
        factors: Vec::new(),
        treatments: design.treatments,
        workloads: design.workloads,
        decide: design.decide,
        seed: 0,
        environment: design.environment,
    };
    let (log, line) = store.create_run(head, Arc::clone(clock)).map_err(broken)?;
    let record = Record::begin(line)
        .ok_or_else(|| Failure::internal("the run's first line is not its head"))?;
    let mut ledger = Ledger::new(log, store.index(), record);
    let origins = design
        .origins
        .into_iter()
        .map(|origin| Event::Imported(Box::new(origin)));
    let warnings = design
        .warnings
        .into_iter()
        .map(|text| Event::Warned { text });
    for event in origins.chain(warnings) {
        ledger.append(event).map_err(broken)?;
    }
    let mut trials = design.trials.into_iter().peekable();
    while let Some(round) = trials.peek().map(|trial| trial.round) {
        let mut of_round = Vec::new();
        while let Some(trial) = trials.next_if(|trial| trial.round == round) {
            of_round.push(trial);
        }
        let mut order: Vec<usize> = of_round.iter().map(|trial| trial.treatment).collect();
        order.dedup();
        ledger
            .append(Event::RoundStarted { round, order })
            .map_err(broken)?;
        for trial in of_round {
            ledger
                .append(Event::Trial(Box::new(trial)))
                .map_err(broken)?;
        }
        ledger
            .append(Event::RoundFinished { round })
            .map_err(broken)?;
    }
    let verdict = verdict::judge(&Evidence::of(ledger.record()));
    for event in [
        Event::Looked {
            rounds: verdict.rounds,
            sentence: verdict.sentence,
            dropped: Vec::new(),
        },
        Event::RunEnded {
            reason: "imported".to_owned(),
            detail: "nothing was measured".to_owned(),
        },
    ] {
        ledger.append(event).map_err(broken)?;
    }
    Ok(ledger)
}
