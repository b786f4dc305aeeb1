//! `stackrace export`: runs as tables for other programs.

use stackrace_base::unit::{InWords, ShownPath};
use std::io::IsTerminal;
use std::path::Path;

use super::args::Export;
use super::failure::Failure;
use super::output;
use super::setting::Setting;
use super::terminal::{error, print_data};
use stackrace_results::record::Record;
use stackrace_results::tables::TableForm;
use stackrace_show::export::{ALL, ExportTable};

pub(super) fn exec(setting: &Setting, verb: &Export) -> Result<u8, Failure> {
    let kinds = kinds(&verb.table)?;
    let form = form(verb)?;
    let to_dir = match verb.output.as_deref() {
        Some(output) if output.is_dir() => true,
        // For one table a missing directory could be a misspelt file.
        _ if kinds.len() == 1 => false,
        Some(output) if output.extension().is_none() && !output.exists() => true,
        _ => {
            return Err(Failure::usage("all tables are several files")
                .next("name a directory: --output DIR"));
        }
    };
    // Binary data may change how a terminal behaves.
    if form == TableForm::Parquet && verb.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::usage("Parquet is nothing for a terminal")
            .next(format!("--output {}.parquet", verb.table)));
    }
    let records = read(setting, &verb.runs)?;
    if let Some(output) = verb.output.as_deref().filter(|_| to_dir) {
        std::fs::create_dir_all(output).map_err(|error| {
            Failure::refused(format!(
                "cannot make {}: {error}",
                output.shown(),
                error = error.in_words()
            ))
            .next("name a directory where you may write")
        })?;
    }
    for kind in kinds {
        let table = (kind.of)(&records);
        let bytes = form
            .render(&table)
            .map_err(|why| Failure::internal(format!("the table {}: {why}", kind.name)))?;
        let Some(output) = &verb.output else {
            print_data(&bytes);
            continue;
        };
        let path = if to_dir {
            output.join(format!("{}.{}", kind.name, form.name()))
        } else {
            output.clone()
        };
        output::write(&path, &bytes)?;
        // On standard error: standard output may be a table of its own.
        error(&format!("{:>9} rows  {}\n", table.rows(), path.shown()));
    }
    Ok(0)
}

/// The tables asked for.
fn kinds(name: &str) -> Result<Vec<&'static ExportTable>, Failure> {
    if name == "all" {
        return Ok(ALL.iter().collect());
    }
    let kind = ALL.iter().find(|kind| kind.name == name);
    kind.map(|kind| vec![kind]).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name).chain(["all"]).collect();
        super::words::unknown("table", name, &names)
    })
}

/// As asked; else as the file is named; else CSV.
fn form(verb: &Export) -> Result<TableForm, Failure> {
    let file = verb
        .output
        .as_deref()
        .filter(|path| !path.is_dir() && verb.table != "all");
    let ending = file.and_then(Path::extension);
    let asked = verb.json.then_some("json").or(verb.format.as_deref());
    match asked {
        // The name of the file says the form unless the user does: another one would not be opened by what
        // its name promises.
        None => ending.map_or(Ok(TableForm::Csv), |ending| {
            let ending = ending.to_string_lossy();
            TableForm::by_name(&ending).ok_or_else(|| {
                let known = TableForm::ALL.map(TableForm::name);
                Failure::usage(format!("there is no format \"{ending}\"")).next(format!(
                    "name the file .{}, or say it: --format csv",
                    known.join(", .")
                ))
            })
        }),
        Some(name) => TableForm::by_name(name).ok_or_else(|| {
            super::words::unknown("format", name, &TableForm::ALL.map(TableForm::name))
        }),
    }
}

/// The runs, each once.
fn read(setting: &Setting, names: &[String]) -> Result<Vec<Record>, Failure> {
    let store = setting.session.look_into_store()?;
    let mut records: Vec<Record> = Vec::new();
    for name in names {
        let record = super::words::run(&store, name)?;
        // "last" and an id may be the same run, whose rows would then count twice.
        if records
            .iter()
            .all(|known| known.head.run != record.head.run)
        {
            records.push(record);
        }
    }
    Ok(records)
}
