//! What every importer needs of a text: lines with numbers, figures, refusals.

use super::figure::{PrintedFigure, plain_digits};
use super::{ImportError, Imported};
use crate::event::{Better, Fact, MetricHead};

/// Characters of a foreign line that a refusal shows.
const SHOWN: usize = 60;
/// Two statements of the same figure may differ by so much: tools print two to four digits.
const ROUNDING: f64 = 0.051;

impl ImportError {
    /// A refusal at a line counted from 0.
    pub fn at(index: usize, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            line: index + 1,
            what: what.into(),
            next: next.into(),
            contradiction: false,
        }
    }

    /// The same as one of two places that contradict each other: no other layout of the text makes both right.
    #[must_use]
    pub fn contradicting(self) -> Self {
        Self {
            contradiction: true,
            ..self
        }
    }
}

/// One line of a text.
#[derive(Debug, Clone, Copy)]
pub struct TextLine<'a> {
    /// Index of the line, from 0.
    pub index: usize,
    /// The line without its line break.
    pub text: &'a str,
}

impl<'a> TextLine<'a> {
    /// A refusal of this line.
    pub fn refuse(self, expected: impl Into<String>) -> ImportError {
        ImportError::at(
            self.index,
            format!("\"{}\" is not understood", cut(self.text.trim())),
            format!("expected here: {}", expected.into()),
        )
    }

    /// A refusal because this line contradicts another, or itself.
    pub fn contradicts(self, what: impl std::fmt::Display) -> ImportError {
        ImportError::at(
            self.index,
            format!("\"{}\" contradicts {what}", cut(self.text.trim())),
            "give it the output as the tool wrote it",
        )
        .contradicting()
    }

    /// A refusal of this line as the rest of a command that was folded: to pass over it would lose what it says.
    pub fn rest_of_command(self) -> ImportError {
        ImportError::at(
            self.index,
            format!(
                "\"{}\" seems to be the rest of the command before it",
                cut(self.text.trim())
            ),
            "put the whole command into one line",
        )
    }

    /// A number in this line.
    pub fn number(self, word: &str) -> Result<PrintedFigure, ImportError> {
        PrintedFigure::read(word)
            .ok_or_else(|| self.refuse(format!("a number where \"{}\" is", cut(word))))
    }

    /// A whole number in this line.
    pub fn whole(self, word: &str) -> Result<u64, ImportError> {
        let whole = plain_digits(word).then(|| word.parse().ok()).flatten();
        // Digits only: Rust would also read "+5", which no tool prints.
        whole.ok_or_else(|| self.refuse(format!("a whole number where \"{}\" is", cut(word))))
    }

    /// Text that follows a word, in this line.
    pub fn after(self, word: &str) -> Option<&'a str> {
        self.text.trim().strip_prefix(word).map(str::trim)
    }
}

/// The lines of a text. Of a line that was overwritten on the terminal (carriage returns) the last
/// state counts.
pub fn lines(text: &str) -> Vec<TextLine<'_>> {
    text.split('\n')
        .enumerate()
        .map(|(index, text)| {
            // Line breaks of Windows end with a carriage return that overwrites nothing.
            let text = text.trim_end_matches('\r');
            let text = text.rsplit('\r').next().unwrap_or_default();
            TextLine { index, text }
        })
        .collect()
}

/// The end of a text, for what is missing there.
pub fn end(text: &str, missing: &str) -> ImportError {
    ImportError::at(
        text.lines().count().saturating_sub(1),
        format!("the text ends before {missing}"),
        "give it the whole output; what is cut off may change a figure",
    )
}

/// Returns true if two statements of one figure agree as far as they were rounded.
pub fn agree(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.max(other)
}

/// Bytes of a unit as most tools write it.
pub fn bytes_of(unit: &str) -> Option<f64> {
    times_of(unit.strip_suffix('B')?)
}

/// Number that a prefix stands for: `k` and `M`, `Ki` and `Mi`, or none.
pub fn times_of(prefix: &str) -> Option<f64> {
    let exponents = ["", "K", "M", "G", "T", "P"];
    // fio and dd print both kinds: "KiB" is 1024 bytes, "kB" is 1000.
    if let Some(binary) = prefix.strip_suffix('i') {
        let power = exponents
            .iter()
            .skip(1)
            .position(|letter| *letter == binary)?;
        return Some(1024f64.powi(i32::try_from(power).ok()? + 1));
    }
    let power = exponents
        .iter()
        .position(|letter| *letter == prefix || (*letter == "K" && prefix == "k"))?;
    Some(1000f64.powi(i32::try_from(power).ok()?))
}

/// A size in the words of the tools: `4k`, `64k`, `1M`, where it is a whole one.
pub fn size(bytes: u64) -> String {
    for (letter, shift) in [("G", 30), ("M", 20), ("k", 10)] {
        // Only without a remainder: a rounded size would name another workload.
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{letter}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// The beginning of a foreign text on one line, without what would steer a terminal.
pub fn cut(text: &str) -> String {
    cut_at(text, SHOWN)
}

/// Words of a reader of JSON or XML on an error, cut short: it may quote as much of the text as it likes.
pub fn cause(error: &dyn std::fmt::Display) -> String {
    cut_at(&error.to_string(), 2 * SHOWN)
}

fn cut_at(text: &str, letters: usize) -> String {
    // A foreign text may hold sequences that move the cursor or change colours.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = text.chars().take(letters).map(plain).collect();
    if text.chars().count() > letters {
        format!("{shown}…")
    } else {
        shown
    }
}

/// Metrics with their values while they are collected.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Name, unit and better direction of each, in the order of the text.
    pub metrics: Vec<MetricHead>,
    /// One for each metric, in its unit; none where the text gives no number.
    pub values: Vec<Option<PrintedFigure>>,
}

impl Figures {
    /// Adds a metric with its value; `None` if the text has the metric, and no value of it.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        unit: &str,
        better: Better,
        value: Option<PrintedFigure>,
    ) {
        self.metrics.push(MetricHead::new(name, unit, better));
        self.values.push(value);
    }

    /// Adds those of others behind its own.
    pub fn append(&mut self, others: Self) {
        self.metrics.extend(others.metrics);
        self.values.extend(others.values);
    }

    /// Adds a rate: bigger is better.
    pub fn rate(&mut self, name: impl Into<String>, unit: &str, value: Option<PrintedFigure>) {
        self.add(name, unit, Better::Higher, value);
    }

    /// Adds a time: smaller is better.
    pub fn time(&mut self, name: impl Into<String>, unit: &str, value: Option<PrintedFigure>) {
        self.add(name, unit, Better::Lower, value);
    }

    /// A result with these figures, of which a text need not say anything else but what was done.
    pub fn imported(self, tool: &'static str, workload: impl Into<String>) -> Imported {
        Imported {
            tool,
            version: None,
            label: None,
            workload: workload.into(),
            kind: tool.to_owned(),
            settings: Vec::new(),
            command: None,
            environment: Vec::new(),
            metrics: self.metrics,
            values: self.values,
            notes: Vec::new(),
            against: Vec::new(),
        }
    }

    /// A sentence about the figures that are missing; empty if none is.
    pub fn missing(&self, why: &str) -> Vec<String> {
        let missing: Vec<&str> = self
            .metrics
            .iter()
            .zip(&self.values)
            .filter(|(_, value)| value.is_none())
            .map(|(metric, _)| metric.name.as_str())
            .collect();
        if missing.is_empty() {
            Vec::new()
        } else {
            vec![format!("{}: {why}", missing.join(", "))]
        }
    }
}

/// Facts with a value. Blanks between its words count as one: a mail that folds its lines leaves no more.
pub fn facts<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Fact> {
    pairs
        .into_iter()
        .map(|(name, value)| {
            let words: Vec<&str> = value.split_whitespace().collect();
            (name.trim(), words.join(" "))
        })
        // What a tool left empty was not said, and is no difference between two results.
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Fact::new(name, value))
        .collect()
}
