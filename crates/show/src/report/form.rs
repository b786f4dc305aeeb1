//! What a form of report is, and what its reader's side is like.

use super::screen::Screen;
use stackrace_judge::verdict::{Beside, Placed, Verdict};
use stackrace_results::record::Record;

/// One form of report.
pub struct ReportForm {
    /// The word it is asked for by: `html`.
    pub name: &'static str,
    /// Purpose of the form, one clause.
    pub summary: &'static str,
    /// The extension of its files, without the dot.
    pub extension: &'static str,
    /// Function that writes it.
    pub(super) render: fn(&Record, &Verdict, &ReportOptions) -> Vec<u8>,
}

impl ReportForm {
    /// Bytes of a whole file: the same record, verdict and options give the same ones.
    pub fn render(&self, record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8> {
        (self.render)(record, verdict, options)
    }
}

/// Options of the reader of a report.
#[derive(Debug, Clone, Default)]
pub struct ReportOptions {
    /// Properties of the terminal.
    pub screen: Screen,
    /// Lines of the terminal's page, of at least 16: where it would be longer, only the answer is
    /// said, and where the rest is. `None` for the whole page.
    pub lines_max: Option<usize>,
    /// What to do before the command that is proposed next, in words; empty if nothing.
    pub before_next: String,
    /// The command to propose next; empty if none.
    pub next: String,
    /// Where the storage stands against its past and among drives; empty if that is not known.
    pub placed: Placed,
    /// Own ratios beside published ones, where asked for.
    pub beside: Option<Beside>,
}
