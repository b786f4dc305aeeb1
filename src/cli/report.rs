//! `stackrace report` and `reindex`: what is on record, in any form.

use stackrace_base::event::again;
use stackrace_base::unit::ShownPath;
use std::path::Path;

use super::args::ReportArgs;
use super::failure::Failure;
use super::output;
use super::setting::Setting;
use super::terminal::{error, print, print_data, print_styled, say};
use super::words::not_read;
use crate::commands::{compare, standing};
use stackrace_judge::published;
use stackrace_judge::verdict::{self, Beside, Evidence, Placed, Verdict};
use stackrace_results::record::Record;
use stackrace_show::report::{self, ReportOptions};

pub(super) fn exec(setting: &Setting, verb: ReportArgs) -> Result<u8, Failure> {
    let format = form(&verb)?;
    let record = setting
        .session
        .look_into_store()?
        .read(&verb.run)
        .map_err(not_read)?;
    let evidence = Evidence::of(&record);
    let verdict = verdict::judge(&evidence);
    let beside = match &verb.beside_published {
        None => None,
        // Refused before anything is written.
        Some(_) if format == "csv" => {
            return Err(
                Failure::usage("csv is a row per trial; nothing stands beside it")
                    .next("choose terminal, markdown, json or html"),
            );
        }
        Some(name) => Some(beside(&evidence, name)?),
    };
    let mut options = ReportOptions {
        beside,
        placed: match record.head.configurations.len() {
            // One directory alone is compared with its own past.
            1 if record.head.study_name == compare::COMPARE => {
                standing::past(&setting.session, &record, &verdict)
            }
            _ => Placed::default(),
        },
        ..ReportOptions::default()
    };
    if let Some(path) = &verb.html {
        write(path, "html", &record, &verdict, &options)?;
        return Ok(0);
    }
    if let Some(path) = &verb.output {
        write(path, format, &record, &verdict, &options)?;
        return Ok(0);
    }
    if verb.svg.is_some() || verb.png.is_some() {
        return plots(&verb, &record, &verdict);
    }
    options.screen = setting.screen;
    if format == "terminal" {
        let page = report::page(&record, &verdict, &options);
        print_styled(&page, setting.colour);
    } else {
        print_data(&render(format, &record, &verdict, &options)?);
    }
    Ok(0)
}

/// As asked; else as the file is named; else for a terminal.
fn form(verb: &ReportArgs) -> Result<&str, Failure> {
    if verb.json {
        return Ok("json");
    }
    if let Some(asked) = &verb.format {
        return Ok(asked);
    }
    let ending = verb.output.as_deref().and_then(Path::extension);
    let ending = ending.map(|ending| ending.to_string_lossy().into_owned());
    match ending.as_deref() {
        None | Some("txt") => Ok("terminal"),
        Some("md") => Ok("markdown"),
        // A page with the name of another format would not be opened as one.
        Some(ending) => report::by_name(ending)
            .map(|form| form.name)
            .ok_or_else(|| {
                Failure::usage(format!("there is no format \"{ending}\"")).next(format!(
                    "name the file .html, .md, .csv, .json or .txt, or say it: --format {}",
                    report::names().split(',').next().unwrap_or("html")
                ))
            }),
    }
}

/// Writes every plot of the page to the directories that are named, and says what each shows.
fn plots(verb: &ReportArgs, record: &Record, verdict: &Verdict) -> Result<u8, Failure> {
    // Only directories that exist: a missing one could be a misspelt name.
    for dir in verb.svg.iter().chain(&verb.png) {
        if !dir.is_dir() {
            return Err(output::no_directory(dir));
        }
    }
    let pictures = report::pictures(record, verdict);
    // Fonts are looked for once, and before the first file is written.
    let painter = verb.png.is_some().then(painter).transpose()?;
    for picture in &pictures {
        if let Some(dir) = &verb.svg {
            let path = dir.join(format!("{}.svg", picture.name));
            output::write(&path, picture.svg.as_bytes())?;
        }
        if let (Some(dir), Some(painter)) = (&verb.png, &painter) {
            let png = painter
                .paint(&picture.svg)
                .map_err(|why| Failure::internal(format!("the plot {}: {why}", picture.name)))?;
            output::write(&dir.join(format!("{}.png", picture.name)), &png)?;
        }
        say(&format!("{:<24} {}\n", picture.name, picture.title));
    }
    if pictures.is_empty() {
        say("this run has nothing to plot\n");
    }
    Ok(0)
}

#[cfg(feature = "png")]
fn painter() -> Result<report::Painter, Failure> {
    report::Painter::new().map_err(|why| {
        Failure::unable(format!("--png: {why}"))
            .next("install fonts (Debian: fonts-dejavu-core), or take --svg DIR")
    })
}

/// A program without that part has none of these.
#[cfg(not(feature = "png"))]
enum Painter {}

#[cfg(not(feature = "png"))]
impl Painter {
    fn paint(&self, _: &str) -> Result<Vec<u8>, String> {
        match *self {}
    }
}

#[cfg(not(feature = "png"))]
fn painter() -> Result<Painter, Failure> {
    Err(
        Failure::unable("--png: this program was built without PNG (the feature png)").next(
            "take --svg DIR, or build it with all parts: cargo install --path . --features full",
        ),
    )
}

/// The run's ratios beside those of a published study; an empty name: the one the study is named
/// after.
fn beside(evidence: &Evidence<'_>, name: &str) -> Result<Beside, Failure> {
    let study = &evidence.head.study_name;
    let stem = Path::new(study)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let card = match (name, published::by_name(&stem)) {
        // A study that is named after a published one is its repetition.
        ("", Some(card)) => card,
        ("", None) => {
            let names: Vec<&str> = published::ALL.iter().map(|card| card.name).collect();
            return Err(
                Failure::usage(format!("{study} is named after no published study"))
                    .next(format!("name one of them: {}", names.join(", "))),
            );
        }
        (name, _) => super::published::find(name)?,
    };
    verdict::beside(evidence, card)
        .map_err(|why| Failure::internal(format!("the data of {}: {why}", card.name)))
}

pub(super) fn render(
    format: &str,
    record: &Record,
    verdict: &Verdict,
    options: &ReportOptions,
) -> Result<Vec<u8>, Failure> {
    let Some(kind) = report::by_name(format) else {
        let names: Vec<&str> = report::ALL.iter().map(|kind| kind.name).collect();
        return Err(Failure::usage(format!("there is no report \"{format}\""))
            .next(format!("choose one of: {}", names.join(", "))));
    };
    Ok(kind.render(record, verdict, options))
}

/// Writes a report, and says where.
pub(super) fn write(
    path: &Path,
    format: &str,
    record: &Record,
    verdict: &Verdict,
    options: &ReportOptions,
) -> Result<(), Failure> {
    let bytes = render(format, record, verdict, options)?;
    output::write(path, &bytes).map_err(|failure| {
        let again = again(&["report", &record.head.run, "--output", "FILE"]);
        failure.next(format!("the run itself is on record: {again}"))
    })?;
    if !output::is_standard_output(path) {
        error(&format!("report  {}\n", path.shown()));
    }
    Ok(())
}

/// Carries out `stackrace reindex`; gives its exit code.
pub(super) fn reindex(setting: &Setting) -> Result<u8, Failure> {
    let store = setting.session.look_into_store()?;
    store.reindex().map_err(not_read)?;
    print(&format!("{}\n", store.dir().join("stackrace.db").display()));
    Ok(0)
}
