//! The reports of the classic tools as data: read, and printed byte for byte as the tools do.
//!
//! No I/O, and no clock: text in, figures out, and back. A workload that does what a classic does
//! and an import of what the classic printed give the same metrics, so that they can be contrasted.

pub(crate) mod sysbench;

/// Why a text is no report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misread {
    /// From 1.
    pub(crate) line: usize,
    /// What is wrong there.
    pub(crate) what: String,
    /// What to do about it; begins with a verb.
    pub(crate) next: String,
}

impl std::fmt::Display for Misread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.what, self.next)
    }
}

impl std::error::Error for Misread {}
