//! One setting as a study has it: its value, and where it is written.

use std::ops::Range;

/// Bytes of the study's text that a message points at.
pub type Span = Range<usize>;

/// Refusal of something written in a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Position; `None` for the study as a whole.
    pub span: Option<Span>,
    /// Error, in one clause that begins in lower case.
    pub message: String,
    /// Advice on what to write instead; empty if there is nothing helpful to say.
    pub help: String,
}

impl Refusal {
    /// A refusal at a place.
    pub fn at(span: &Span, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            span: Some(span.clone()),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// A value as written, placeholders already replaced.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text in quotes: `"ext4"`.
    Text(String),
    /// `12`.
    Integer(i64),
    /// `0.5`.
    Float(f64),
    /// `true`.
    Flag(bool),
    /// A list in brackets: `["ext4", "xfs"]`.
    List(Vec<Value>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    /// A number that TOML cannot write whole is refused where a whole one is meant.
    fn from(number: u64) -> Self {
        // Settings that take it say what they take; a smaller number would be another one.
        i64::try_from(number).map_or(Self::Float(number as f64), Self::Integer)
    }
}

impl From<f64> for Value {
    /// A whole number is written as one.
    fn from(number: f64) -> Self {
        // Up to here a float has every whole number.
        let whole = number.fract() == 0.0 && number.abs() < 1e15;
        match whole {
            true => Self::Integer(number as i64),
            false => Self::Float(number),
        }
    }
}

impl FromIterator<String> for Value {
    fn from_iter<T: IntoIterator<Item = String>>(texts: T) -> Self {
        Self::List(texts.into_iter().map(Self::Text).collect())
    }
}

/// Kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
    /// Amounts of bytes with weights: `"4 KiB:70, 64 KiB:30"`.
    Weights,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One setting as written.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenSetting {
    /// The setting's word in the study.
    pub name: String,
    /// Value behind the word.
    pub value: Value,
    /// Position of the value.
    pub span: Span,
    /// Position of the word.
    pub name_span: Span,
}

impl GivenSetting {
    /// A setting that stands in no text.
    pub fn new(name: &str, value: impl Into<Value>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
            // A refusal of it is told without a line.
            span: 0..0,
            name_span: 0..0,
        }
    }
}

impl Value {
    /// Name of the kind, for a message.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a number",
            Self::Float(_) => "a decimal number",
            Self::Flag(_) => "a flag",
            Self::List(_) => "a list",
        }
    }

    /// Bytes of its texts and number of its elements: what it costs to hold.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Integer(_) | Self::Float(_) | Self::Flag(_) => 8,
            Self::List(values) => values.iter().map(|value| 1 + value.size()).sum(),
        }
    }

    /// The value inside a longer text: texts as they are, lists joined by a space.
    pub fn as_words(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(values) => {
                let words: Vec<String> = values.iter().map(Self::as_words).collect();
                words.join(" ")
            }
        }
    }
}
