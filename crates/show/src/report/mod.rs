//! A run and its verdict as something to read: one file per form.
//!
//! A report is a pure function: the same record, verdict and options give the same bytes, without
//! a clock, the environment or the network. A value that could not be had is shown as missing,
//! never as 0.

mod answer;
mod asked;
mod audited;
mod chart;
mod clients;
mod content;
mod cost;
mod csv;
mod cut;
mod diff;
mod durability;
mod effects;
mod figure;
mod form;
mod gate;
mod grid;
mod html;
mod json;
mod junit;
mod latencies;
mod markdown;
mod picture;
mod published;
mod render;
mod screen;
mod sheet;
mod standing;
mod styled;
mod terminal;
mod told;

pub use answer::answers;
pub use diff::{diff, diff_html, refused};
pub use figure::{harmless, on_one_line, value as figure_text};
pub use form::{ReportForm, ReportOptions};
pub use gate::{gate, required};
pub use grid::stacked;
#[cfg(any(test, feature = "testing"))]
pub use html::latency_tail;
pub use html::{STYLE, alone, body, doing, history, prose, race, small, written};
pub use junit::{junit, junit_required};
pub use picture::pictures;
#[cfg(feature = "png")]
pub use picture::png::Painter;
pub use published::{FORMS as PUBLISHED_FORMS, published};
pub use screen::{Screen, wrap, wrap_whole};
pub use standing::{Standing, Standings, standings};
pub use styled::{Style, Styled, columns_of, cut, cut_at_blank};
pub use terminal::{page, table};

/// Every form, alphabetical, in one line each: the only place a new one is registered.
pub const ALL: &[ReportForm] = &[
    csv::CSV,
    html::HTML,
    json::JSON,
    markdown::MARKDOWN,
    terminal::TERMINAL,
];

/// Their names, for help texts.
pub fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|report| report.name).collect();
    names.join(", ")
}

/// The form of that name.
pub fn by_name(name: &str) -> Option<&'static ReportForm> {
    ALL.iter().find(|report| report.name == name)
}

#[cfg(test)]
mod required_tests;
#[cfg(test)]
mod tests;
