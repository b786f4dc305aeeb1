//! What an importer needs: the text of another tool taken apart, one result in our own words, and
//! why a text is refused.
//!
//! This room is the common ground of `import` and of the tools that read their own reports.

pub(crate) mod bonnie;
mod design;
mod repeated;
mod source;
pub(crate) mod text;

pub(crate) use design::{Design, title};
#[cfg(test)]
pub(crate) use repeated::find;
pub(crate) use source::ImportSource;

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
#[derive(Clone, Copy)]
pub(crate) struct Importer {
    /// The word for it: `fio`.
    pub(crate) name: &'static str,
    /// Which of its outputs are read.
    pub(crate) summary: &'static str,
    /// Whether a text has something that only this tool prints.
    pub(crate) recognises: fn(&str) -> bool,
    /// Every result in a text, in its order.
    pub(crate) read: fn(&str) -> Result<Vec<Imported>, ImportError>,
}

/// Why a text is not what it was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportError {
    /// Where, from 1.
    pub(crate) line: usize,
    /// What is wrong with it.
    pub(crate) what: String,
    /// What to do.
    pub(crate) next: String,
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)?;
        if !self.next.is_empty() {
            write!(f, "\n  next: {}", self.next)?;
        }
        Ok(())
    }
}
