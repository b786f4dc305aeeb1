//! What was found out about something: a name and a value.

use serde::{Deserialize, Serialize};

use super::drive::DriveTold;
use super::figure::{self, FactFigure};
use crate::unit;

/// A fact about a machine or a stack, under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "FactOnRecord")]
pub struct Fact {
    /// `kernel`, `mount options in force` …
    pub name: String,
    /// The value as the system gave it, or in words: for people.
    pub value: String,
    /// The same as a value, for what computes with it; `None` if it is words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<FactFigure>,
    /// The drive that it describes; `None` if it is about something else.
    // Beside the value: a reader of before this was kept passes over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveTold>,
}

/// A fact as a log has it, also one from before facts had values.
#[derive(Deserialize)]
struct FactOnRecord {
    name: String,
    value: String,
    #[serde(default)]
    figure: Option<FactFigure>,
    #[serde(default)]
    drive: Option<DriveTold>,
}

impl From<FactOnRecord> for Fact {
    fn from(read: FactOnRecord) -> Self {
        let FactOnRecord {
            name,
            value,
            figure,
            drive,
        } = read;
        let drive = drive.or_else(|| figure::drive_of_words(&name, &value));
        let fact = match figure {
            Some(figure) => Self::new(name, value).with(figure),
            None => Self::of_older_log(name, value),
        };
        Self { drive, ..fact }
    }
}

impl Fact {
    /// A fact of this name, with its value in words.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            figure: None,
            drive: None,
        }
    }

    /// A fact of a log from before facts had values: read from its words where it has one.
    pub fn of_older_log(name: impl Into<String>, words: impl Into<String>) -> Self {
        let fact = Self::new(name, words);
        Self {
            figure: figure::of_words(&fact.name, &fact.value),
            ..fact
        }
    }

    /// The same fact with its value.
    #[must_use]
    pub fn with(self, figure: FactFigure) -> Self {
        Self {
            figure: Some(figure),
            ..self
        }
    }

    /// The same fact with the drive that it describes.
    #[must_use]
    pub fn of_drive(self, drive: DriveTold) -> Self {
        Self {
            drive: Some(drive),
            ..self
        }
    }

    /// Its value for people: an amount in its unit, and a moment as a date.
    pub fn shown(&self) -> String {
        let date = |seconds: u64| {
            let at = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
            Some(at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        };
        let shown = match &self.figure {
            Some(FactFigure::Bytes(bytes)) => Some(unit::bytes(*bytes)),
            // File systems that keep no such moment give the beginning of all counting.
            Some(FactFigure::SecondsSince1970(0)) => Some("not told".to_owned()),
            Some(FactFigure::SecondsSince1970(seconds)) => date(*seconds),
            _ => None,
        };
        shown.unwrap_or_else(|| self.value.clone())
    }

    /// The fact that something carries so many bytes per second at most, and how that is known.
    pub fn rate(name: impl Into<String>, bytes_per_s: u64, known_by: impl Into<String>) -> Self {
        let known_by = known_by.into();
        Self::new(name, format!("{bytes_per_s} B/s, {known_by}")).with(FactFigure::Rate {
            bytes_per_s,
            known_by,
        })
    }

    /// The fact that a guest was started from these images, that of its system first.
    pub fn images(name: impl Into<String>, images: Vec<String>) -> Self {
        Self::new(name, images.join(" with ")).with(FactFigure::Images(images))
    }

    /// The value of the first fact of a name; `None` if there is no such fact.
    pub fn value_of<'a>(facts: &'a [Self], name: &str) -> Option<&'a str> {
        let found = facts.iter().find(|fact| fact.name == name)?;
        Some(&found.value)
    }
}

/// Facts that one layer really got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerFacts {
    /// Kind of layer (`loop`, `ext4` …).
    pub layer: String,
    /// Read back from the system, never copied from the study.
    pub facts: Vec<Fact>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_moments_are_shown_for_people() {
        let shown = |figure| Fact::new("fact", "as the system says").with(figure).shown();
        let bytes = 25_276_510_208;
        assert_eq!(shown(FactFigure::Bytes(bytes)), unit::bytes(bytes));
        let date = shown(FactFigure::SecondsSince1970(1_795_899_198));
        assert_eq!(date, "2026-11-28 20:53:18 UTC");
        assert_eq!(shown(FactFigure::SecondsSince1970(0)), "not told");
        for as_it_is in [
            FactFigure::SecondsSince1970(u64::MAX),
            FactFigure::BeforeTheRun(true),
        ] {
            assert_eq!(shown(as_it_is), "as the system says");
        }
    }
}
