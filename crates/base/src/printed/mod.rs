//! What an importer needs: the text of another tool taken apart, one result in our own words, and
//! why a text is refused.
//!
//! This room is the common ground of `import` and of the tools that read their own reports.

mod alike;
pub mod bonnie;
mod design;
mod figure;
mod repeated;
mod source;
pub mod text;

pub use alike::{changes_no_work, told_apart};
pub use design::{Design, title};
pub use figure::PrintedFigure;
pub use repeated::{find, is_telling};
pub use source::ImportSource;

use crate::event::{Fact, MetricHead};

/// One result of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The tool, as its importer is called.
    pub tool: &'static str,
    /// Its version, where the text says it.
    pub version: Option<String>,
    /// The text's own name for the thing that was measured (a machine, a test's name).
    pub label: Option<String>,
    /// Description of the work, such that equal words mean comparable results: `fio randread 4k`.
    pub workload: String,
    /// Kind of workload. That of the native workload where the semantics are the same.
    pub kind: String,
    /// Settings, as the text says.
    pub settings: Vec<Fact>,
    /// The command line that a shell shows above it, as far as it says what was done; `None` if there is none, or the
    /// settings have what it says.
    pub command: Option<String>,
    /// The machine and everything around it, as far as the text says.
    pub environment: Vec<Fact>,
    /// Metrics that are reported; the first is primary.
    pub metrics: Vec<MetricHead>,
    /// The figures, in the order of `metrics`; `None` if the text has none, and a note says why.
    pub values: Vec<Option<PrintedFigure>>,
    /// Notes a reader of the figures must know.
    pub notes: Vec<String>,
    /// Those of them that speak against the figures.
    pub against: Vec<String>,
}

/// One tool whose results can be read.
#[derive(Clone, Copy)]
pub struct Importer {
    /// The word for it: `fio`.
    pub name: &'static str,
    /// Outputs that are read.
    pub summary: &'static str,
    /// Returns true if a text has something that only this tool prints.
    pub recognises: fn(&str) -> bool,
    /// Every result in a text, in its order.
    pub read: fn(&str) -> Result<Vec<Imported>, ImportError>,
}

/// Reason a text is not what it was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Line, from 1.
    pub line: usize,
    /// Description of the error.
    pub what: String,
    /// Advice on it.
    pub next: String,
    /// Set if two places of the text say different things of one figure.
    pub contradiction: bool,
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
