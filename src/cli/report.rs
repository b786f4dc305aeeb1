//! `stackrace report`, `runs` and `reindex`: what is on record, in any form.

use std::path::Path;

use super::Setting;
use super::args::Report;
use super::failure::Failure;
use crate::record::{Record, RecordError};
use crate::report;
use crate::verdict::{self, Evidence, Verdict};

pub(super) fn exec(setting: &Setting, verb: Report) -> Result<u8, Failure> {
    let record = setting.open_store()?.read(&verb.run).map_err(explain)?;
    let verdict = verdict::judge(&Evidence::of(&record));
    if let Some(path) = &verb.html {
        write(path, "html", &record, &verdict)?;
        return Ok(0);
    }
    if let Some(path) = &verb.output {
        write(path, &verb.format, &record, &verdict)?;
        return Ok(0);
    }
    let bytes = render(&verb.format, &record, &verdict, setting.colour)?;
    super::print(&String::from_utf8_lossy(&bytes));
    Ok(0)
}

fn render(
    format: &str,
    record: &Record,
    verdict: &Verdict,
    colour: bool,
) -> Result<Vec<u8>, Failure> {
    let Some(kind) = report::by_name(format) else {
        let names: Vec<&str> = report::ALL.iter().map(|kind| kind.name()).collect();
        return Err(Failure::usage(format!("there is no report \"{format}\""))
            .next(format!("choose one of: {}", names.join(", "))));
    };
    Ok(kind.render(
        record,
        verdict,
        &report::Options {
            colour,
            ..report::Options::default()
        },
    ))
}

/// Writes a report beside its final name and renames it: an old report is never half overwritten.
pub(super) fn write(
    path: &Path,
    format: &str,
    record: &Record,
    verdict: &Verdict,
) -> Result<(), Failure> {
    let bytes = render(format, record, verdict, false)?;
    let mut name = path
        .file_name()
        .map(std::ffi::OsStr::to_os_string)
        .ok_or_else(|| Failure::usage(format!("{} is no file name", path.display())))?;
    name.push(".part");
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| {
        Failure::internal(format!(
            "cannot write the report to {}: {error}",
            path.display()
        ))
        .next("the run itself is on record: stackrace report --output FILE")
    })?;
    super::error(&format!("report  {}\n", path.display()));
    Ok(())
}

/// `stackrace runs`.
pub(super) fn list(setting: &Setting) -> Result<u8, Failure> {
    let runs = setting.open_store()?.runs().map_err(explain)?;
    let mut text = String::new();
    for run in &runs {
        let state = run
            .unreadable
            .as_deref()
            .or(run.ended.as_deref())
            .unwrap_or("not ended");
        text.push_str(&format!(
            "{}  {} round(s), {}  {}\n",
            run.run, run.rounds, state, run.title
        ));
        if let Some(sentence) = &run.sentence {
            text.push_str(&format!("    {sentence}\n"));
        }
    }
    if runs.is_empty() {
        text.push_str("no runs on record\n");
    }
    super::print(&text);
    Ok(0)
}

/// `stackrace reindex`.
pub(super) fn reindex(setting: &Setting) -> Result<u8, Failure> {
    let store = setting.open_store()?;
    store.reindex().map_err(explain)?;
    super::print(&format!("{}\n", store.dir().join("stackrace.db").display()));
    Ok(0)
}

fn explain(error: RecordError) -> Failure {
    Failure::usage(error.to_string()).next(error.next())
}
