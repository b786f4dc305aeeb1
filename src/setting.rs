//! The words a layer or a workload is given in a study, each with the place it was written.
//!
//! A study's table is checked once against the list of settings its owner documents
//! ([`SettingDoc`]); after that the typed getters cannot fail on spelling or kind, only on what the
//! owner itself refuses. The same lists make `--help`, the JSON schema and the nearest-word advice.

use std::ops::Range;

/// Bytes of the study's text that a message points at.
pub(crate) type Span = Range<usize>;

/// Why something written in a study is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Where; none: the study as a whole.
    pub(crate) span: Option<Span>,
    /// What is wrong, in one clause that begins in lower case.
    pub(crate) message: String,
    /// What to write instead; empty: nothing helpful to say.
    pub(crate) help: String,
}

impl Refusal {
    /// A refusal at a place.
    pub(crate) fn at(span: &Span, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            span: Some(span.clone()),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// A value as written, placeholders already replaced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `"text"`.
    Text(String),
    /// `12`.
    Integer(i64),
    /// `0.5`.
    Float(f64),
    /// `true`.
    Flag(bool),
    /// `[…]`.
    List(Vec<Value>),
}

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An amount of bytes with its unit, or a whole number of bytes.
    Bytes,
    /// A whole number ≥ 0.
    Count,
    /// A number ≥ 0.
    Number,
    /// A share: `"5 %"` or `0.05`.
    Share,
    /// A time with its unit.
    Time,
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// A list of texts; one text is a list of one.
    Texts,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One setting as its owner documents it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingDoc {
    /// The word, kebab-case.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) kind: Kind,
    /// The default, as it would be written; empty: none (required, or absent means absent).
    pub(crate) default: &'static str,
    /// Must be given.
    pub(crate) required: bool,
    /// One sentence.
    pub(crate) doc: &'static str,
}

/// One setting as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// The word.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: Value,
    /// Where the value stands.
    pub(crate) span: Span,
    /// Where the word stands.
    pub(crate) name_span: Span,
}

/// The table given to one layer or workload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// Kind of layer or workload, for messages.
    pub(crate) owner: String,
    /// Where the table stands.
    pub(crate) span: Span,
    /// As written, in order.
    pub(crate) settings: Vec<Setting>,
}
