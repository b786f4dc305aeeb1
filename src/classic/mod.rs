//! The reports of the classic tools, as data: printed and read as the originals print them.
//!
//! A report is numbers; this room neither does I/O nor knows an engine, so that what our own
//! workloads measured and what an original printed go through the same metrics.

pub(crate) mod bonnie;
pub(crate) mod fio;
pub(crate) mod postmark;
pub(crate) mod sysbench;

/// Why a text is not what it was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misread {
    /// Where, from 1.
    pub(crate) line: usize,
    /// What is wrong with it.
    pub(crate) what: String,
    /// What to do.
    pub(crate) next: String,
}

impl std::fmt::Display for Misread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)?;
        if !self.next.is_empty() {
            write!(f, "\n  next: {}", self.next)?;
        }
        Ok(())
    }
}
