//! The printed results of other tools, read into our own words: one file per tool.
//!
//! An importer recognises its tool by what the text says, never by the name of a file. What it does
//! not understand it refuses, with the line: a line that looks like a result and is none of those
//! the tool is known to print is never passed over, and where a text says the same thing twice, both
//! have to agree. A figure that the tool could not give is none, with a note that says why.
//!
//! Units inside: bytes, ns, B/s. This room reads texts and nothing else; files, the store and the
//! terminal are the business of others.

mod bonnie;
mod dd;
mod design;
mod elbencho;
mod fio;
mod ior;
mod iozone;
mod mdtest;
mod phoronix;
mod postmark;
mod sysbench;
#[cfg(test)]
mod tests;
mod text;
mod time;

pub(crate) use design::{Source, design, title};

pub(crate) use crate::classic::Misread;
use crate::event::{Fact, MetricHead};

/// One result of another tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Imported {
    /// The tool, as its importer is called.
    pub(crate) tool: &'static str,
    /// Its version, where the text says it.
    pub(crate) version: Option<String>,
    /// What the text itself calls the thing that was measured (a machine, a test's name).
    pub(crate) label: Option<String>,
    /// What was done, such that equal words mean comparable results: `fio randread 4k`.
    pub(crate) workload: String,
    /// Kind of workload. That of the native workload where the semantics are the same.
    pub(crate) kind: String,
    /// How it was set, as the text says.
    pub(crate) settings: Vec<Fact>,
    /// The machine and everything around it, as far as the text says.
    pub(crate) environment: Vec<Fact>,
    /// What is reported; the first is primary.
    pub(crate) metrics: Vec<MetricHead>,
    /// The figures, in the order of `metrics`; none: the text has none, and a note says why.
    pub(crate) values: Vec<Option<f64>>,
    /// What a reader of the figures must know.
    pub(crate) notes: Vec<String>,
}

/// One tool whose results can be read.
pub(crate) struct Importer {
    /// The word for it: `fio`.
    pub(crate) name: &'static str,
    /// Which of its outputs are read.
    pub(crate) summary: &'static str,
    /// Whether a text has something that only this tool prints.
    pub(crate) recognises: fn(&str) -> bool,
    /// Every result in a text, in its order.
    pub(crate) read: fn(&str) -> Result<Vec<Imported>, Misread>,
}

/// Every importer, alphabetical.
pub(crate) const ALL: &[Importer] = &[
    bonnie::IMPORTER,
    dd::IMPORTER,
    elbencho::IMPORTER,
    fio::IMPORTER,
    ior::IMPORTER,
    iozone::IMPORTER,
    mdtest::IMPORTER,
    phoronix::IMPORTER,
    postmark::IMPORTER,
    sysbench::IMPORTER,
    time::IMPORTER,
];

/// Every result in a text, by all importers that recognise it (`time dd …` prints for both), or by
/// the one that is named.
///
/// # Errors
/// Nothing recognises the text, the named importer is unknown, or one cannot read it.
pub(crate) fn read(text: &str, tool: Option<&str>) -> Result<Vec<Imported>, Misread> {
    let readers: Vec<&Importer> = match tool {
        Some(tool) => ALL
            .iter()
            .filter(|importer| importer.name == tool)
            .collect(),
        None => {
            let all = ALL.iter();
            all.filter(|importer| (importer.recognises)(text)).collect()
        }
    };
    let mut results = Vec::new();
    for importer in &readers {
        // What is missing at the end may be told of the line behind the last one.
        let lines = text.split('\n').count();
        let found = (importer.read)(text).map_err(|misread| Misread {
            line: misread.line.clamp(1, lines),
            ..misread
        })?;
        if found.is_empty() {
            let what = format!("there is no result of {} in this text", importer.name);
            return Err(Misread::at(
                0,
                what,
                format!("give it {}", importer.summary),
            ));
        }
        results.extend(found);
    }
    if results.is_empty() {
        let first = text.lines().next().unwrap_or_default();
        let names: Vec<&str> = ALL.iter().map(|importer| importer.name).collect();
        return Err(Misread::at(
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
