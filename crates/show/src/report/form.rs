//! What a form of report is, and what its reader's side is like.

use super::screen::Screen;
use crate::record::Record;
use crate::verdict::{Beside, Verdict};

/// One form of report.
pub(crate) trait ReportForm: Sync {
    /// The word it is asked for by: `html`.
    fn name(&self) -> &'static str;
    /// What it is for, one clause.
    fn summary(&self) -> &'static str;
    /// The extension of its files, without the dot.
    fn extension(&self) -> &'static str;
    /// The whole report.
    fn render(&self, record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8>;
}

/// What the reader's side of a report is like.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportOptions {
    /// What the terminal is like.
    pub(crate) screen: Screen,
    /// Lines of the terminal's page, of at least 16: where it would be longer, only the answer is
    /// said, and where the rest is. None: the whole page.
    pub(crate) lines_max: Option<usize>,
    /// The command to propose next; empty: none.
    pub(crate) next: String,
    /// Own ratios beside published ones, where asked for.
    pub(crate) beside: Option<Beside>,
}
