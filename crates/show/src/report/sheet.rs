//! A page that is no report of a run: a title, facts, tables and lists, on a terminal or in Markdown.

use super::content::TextTable;

/// Content of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet {
    /// Heading.
    pub(super) title: String,
    /// Paragraphs below it.
    pub(super) lead: Vec<String>,
    /// Named facts; without a name: further words on the one before.
    pub(super) facts: Vec<(String, String)>,
    /// Parts that follow, in order.
    pub(super) parts: Vec<SheetPart>,
}

/// A part of a page.
#[derive(Debug, Clone)]
pub(super) enum SheetPart {
    /// Figures.
    Table(TextTable),
    /// Sentences below a heading.
    List(String, Vec<String>),
}
