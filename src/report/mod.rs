//! A run and its verdict as something to read: one file per form.
//!
//! A report is a pure function: the same record, verdict and options give the same bytes, without
//! a clock, the environment or the network. A value that could not be had is shown as missing,
//! never as 0.

mod answer;
mod audited;
mod chart;
mod content;
mod csv;
mod diff;
mod effects;
mod figure;
mod gate;
mod html;
mod json;
mod markdown;
mod published;
mod sheet;
mod standing;
mod terminal;

pub(crate) use answer::answers;
pub(crate) use diff::{diff, diff_html, refused};
pub(crate) use gate::gate;
pub(crate) use html::{STYLE, body, doing, history, latency_tail, race};
pub(crate) use published::{FORMS as PUBLISHED_FORMS, published};
pub(crate) use standing::{Standing, Standings, standings};
pub(crate) use terminal::wrap;

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
#[derive(Debug, Clone)]
pub(crate) struct ReportOptions {
    /// Columns of the terminal; more than 80 are not used.
    pub(crate) width: usize,
    /// Lines of the terminal's page, of at least 16: where it would be longer, only the answer is
    /// said, and where the rest is. None: the whole page.
    pub(crate) lines_max: Option<usize>,
    /// Whether the terminal shows colours.
    pub(crate) colour: bool,
    /// The command to propose next; empty: none.
    pub(crate) next: String,
    /// Own ratios beside published ones, where asked for.
    pub(crate) beside: Option<Beside>,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            width: terminal::WIDTH_MAX,
            lines_max: None,
            colour: false,
            next: String::new(),
            beside: None,
        }
    }
}

/// Every form, alphabetical, in one line each: the only place a new one is registered.
pub(crate) const ALL: &[&dyn ReportForm] = &[
    &csv::Csv,
    &html::Html,
    &json::Json,
    &markdown::Markdown,
    &terminal::Terminal,
];

/// Their names, for help texts.
pub(crate) fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|report| report.name()).collect();
    names.join(", ")
}

/// The form of that name.
pub(crate) fn by_name(name: &str) -> Option<&'static dyn ReportForm> {
    ALL.iter().copied().find(|report| report.name() == name)
}

#[cfg(test)]
mod tests;
