//! Every importer, and the reading of a text by those that recognise it.

mod dbench;
mod dd;
mod elbencho;
mod io500;
mod ioping;
mod ior;
mod iozone;
mod mdtest;
mod pgbench;
mod phoronix;
mod time;
mod tiotest;
mod vdbench;

use std::sync::LazyLock;

use crate::tools;
use stackrace_base::printed::{ImportError, ImportSource, Imported, Importer, text};

/// Every importer but those of the classic tools, alphabetical; [`importers`] has them all.
pub(super) const ALL: &[Importer] = &[
    dbench::IMPORTER,
    dd::IMPORTER,
    elbencho::IMPORTER,
    io500::IMPORTER,
    ioping::IMPORTER,
    ior::IMPORTER,
    iozone::IMPORTER,
    mdtest::IMPORTER,
    pgbench::IMPORTER,
    phoronix::IMPORTER,
    time::IMPORTER,
    tiotest::IMPORTER,
    vdbench::IMPORTER,
];

/// Every importer, alphabetical: those of this room and those of the tools.
pub fn importers() -> &'static [Importer] {
    static IMPORTERS: LazyLock<Vec<Importer>> = LazyLock::new(|| {
        let tools = tools::ALL.iter().map(|tool| tool.importer);
        let mut importers: Vec<Importer> = ALL.iter().copied().chain(tools).collect();
        importers.sort_by_key(|importer| importer.name);
        importers
    });
    &IMPORTERS
}

/// Every result in a text, by all importers that recognise it (`time dd …` prints for both), or by
/// the one that is named.
///
/// # Errors
/// Nothing recognises the text, the named importer is unknown, or one cannot read it.
pub fn read(text: &str, tool: Option<&str>) -> Result<Vec<Imported>, ImportError> {
    let readers: Vec<&Importer> = match tool {
        // A tool that was named reads the text even where it would not recognise it: its refusal
        // names the line.
        Some(tool) => importers()
            .iter()
            .filter(|importer| importer.name == tool)
            .collect(),
        None => {
            let all = importers().iter();
            all.filter(|importer| (importer.recognises)(text)).collect()
        }
    };
    let mut results = Vec::new();
    for importer in &readers {
        // What is missing at the end may be told of the line behind the last one.
        let lines = text.split('\n').count();
        let found = (importer.read)(text).map_err(|misread| ImportError {
            line: misread.line.clamp(1, lines),
            ..misread
        })?;
        // The text was taken for one of this tool: to go on without a result would hide that it was
        // cut off.
        if found.is_empty() {
            let what = format!("there is no result of {} in this text", importer.name);
            return Err(ImportError::at(
                0,
                what,
                format!("give it {}", importer.summary),
            ));
        }
        results.extend(found);
    }
    if results.is_empty() {
        let first = text.lines().next().unwrap_or_default();
        let names: Vec<&str> = importers().iter().map(|importer| importer.name).collect();
        return Err(ImportError::at(
            0,
            format!(
                "no tool is known to print a text that begins with \"{}\"",
                text::cut(first)
            ),
            format!(
                "give it the unchanged output of one of: {}",
                names.join(", ")
            ),
        ));
    }
    Ok(results)
}

/// Reads a text as that of a file of this name, by the importer that is named, or by all that
/// recognise it.
///
/// # Errors
/// It is not understood: see [`read`].
pub fn source(
    name: Option<String>,
    file: &str,
    text: String,
    tool: Option<&str>,
) -> Result<ImportSource, ImportError> {
    let results = read(&text, tool)?;
    Ok(ImportSource::of(name, file, text, results))
}
