//! One line of a run's log, and what is wrong with one that cannot be read.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};

use super::Event;

/// One line of a run's log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogLine {
    /// Time, RFC 3339, UTC: for people, because this clock can be set while a run goes on.
    pub at: String,
    /// Time since this execution of the run began, by the monotonic clock, ns; `None` in the logs of older versions
    /// and in texts that were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// The event of that time.
    // One flat object a line: SQL and jq then reach every field without a path.
    #[serde(flatten)]
    pub event: Event,
}

/// Part of a line that is looked at first.
#[derive(Deserialize)]
struct LineKind<'a> {
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(default)]
    since_ns: Option<u64>,
    #[serde(borrow)]
    event: Cow<'a, str>,
}

impl LogLine {
    /// Reads a line.
    ///
    /// # Errors
    /// It is not whole, or of a kind that this program does not know.
    pub fn read(text: &[u8]) -> Result<Self, LineError> {
        Self::taken_apart(text).map_err(|_| LineError::of(text))
    }

    fn taken_apart(text: &[u8]) -> Result<Self, serde_json::Error> {
        // A flat object of any kind is taken apart into values before its kind is known, which costs
        // several times as much as reading it. Nearly all of a log are trials: they are read as such.
        if let Ok(kind) = serde_json::from_slice::<LineKind<'_>>(text)
            && kind.event == "trial"
        {
            return Ok(Self {
                at: kind.at.into_owned(),
                since_ns: kind.since_ns,
                event: Event::Trial(serde_json::from_slice(text)?),
            });
        }
        serde_json::from_slice(text)
    }
}

/// What is wrong with a line, as a clause that follows the place of the line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Nothing stands there.
    #[error("it is empty")]
    Empty,
    /// It was cut, or never was JSON.
    #[error("it is no JSON, or not a whole line of it")]
    NotJson,
    /// JSON of something else.
    #[error("it is JSON, but no event of a run")]
    NoEvent,
    /// One of those that follow the first one.
    #[error("it is not \"run-started\", with which a run begins")]
    NotFirst,
    /// Of a kind that came later, or of another program.
    #[error("it is an event \"{}\", which this stackrace does not know", .0.escape_debug())]
    Unknown(String),
    /// Of a known kind, without something that this kind has.
    #[error(
        "it is an event \"{0}\", but a part of it is missing or not as this stackrace writes it"
    )]
    Parts(String),
}

impl LineError {
    /// The reason for which this line could not be read.
    fn of(text: &[u8]) -> Self {
        if text.trim_ascii().is_empty() {
            return Self::Empty;
        }
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(text) else {
            return Self::NotJson;
        };
        let Some(kind) = value.get("event").and_then(serde_json::Value::as_str) else {
            return Self::NoEvent;
        };
        match is_known(kind) {
            true => Self::Parts(kind.to_owned()),
            false => Self::Unknown(kind.to_owned()),
        }
    }
}

/// Returns true if there are events of this kind: one without its parts is refused for these, not for its kind.
fn is_known(kind: &str) -> bool {
    let alone = MapDeserializer::<_, KindError>::new(std::iter::once(("event", kind)));
    !matches!(Event::deserialize(alone), Err(KindError::Unknown))
}

/// The first thing that a reader of events stumbles over.
#[derive(Debug)]
enum KindError {
    Unknown,
    Other,
}

impl fmt::Display for KindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no event")
    }
}

impl std::error::Error for KindError {}

impl serde::de::Error for KindError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn what_is_wrong_with_a_line_is_told_without_words_of_the_reader() {
        let error = |text: &str| LogLine::read(text.as_bytes()).unwrap_err();
        assert_eq!(error(" \n"), LineError::Empty);
        assert_eq!(error("{\"at\":\"x\",\"eve"), LineError::NotJson);
        assert_eq!(error("{\"jobs\":[]}"), LineError::NoEvent);
        assert_eq!(error("[1,2]"), LineError::NoEvent);
        let unknown = r#"{"at":"x","event":"tea-made","cups":2}"#;
        assert_eq!(error(unknown), LineError::Unknown("tea-made".to_owned()));
        let parts = |kind: &str| LineError::Parts(kind.to_owned());
        assert_eq!(error(r#"{"at":"x","event":"trial"}"#), parts("trial"));
        assert_eq!(
            error(r#"{"at":"x","event":"run-started"}"#),
            parts("run-started")
        );
        assert_eq!(error(r#"{"event":"warned","text":"y"}"#), parts("warned"));
    }

    #[test]
    fn a_trial_read_by_itself_is_the_same_as_one_of_any_kind() {
        let trial = LogLine {
            at: "2026-01-02T03:04:05.678Z".to_owned(),
            since_ns: Some(1_500_000_000),
            event: Event::Trial(Box::new(Observation {
                metrics: vec![Some(0.1), None, Some(3.0)],
                notes: vec!["a \"note\"\n".to_owned()],
                ..Observation::unmeasured(Ended::Interrupted)
            })),
        };
        let text = serde_json::to_vec(&trial).unwrap();
        let value = |line: &LogLine| serde_json::to_value(line).unwrap();
        let of_any_kind: LogLine = serde_json::from_slice(&text).unwrap();
        assert_eq!(value(&LogLine::read(&text).unwrap()), value(&of_any_kind));
        assert_eq!(value(&of_any_kind), value(&trial));
        // Of a kind of its own, and of none at all.
        let warned = br#"{"at":"x","event":"warned","text":"y","new":1}"#;
        assert!(matches!(
            LogLine::read(warned).unwrap().event,
            Event::Warned { .. }
        ));
        for text in [
            "",
            "{}",
            r#"{"at":"x","event":"trial"}"#,
            r#"{"at":"x","event":7}"#,
        ] {
            assert!(LogLine::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
