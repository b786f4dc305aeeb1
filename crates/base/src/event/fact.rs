//! What was found out about something: a name and a value.

use serde::{Deserialize, Serialize};

/// What is known of a machine or a stack, under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fact {
    /// `kernel`, `mount options in force` …
    pub(crate) name: String,
    /// As the system gave it.
    pub(crate) value: String,
}

impl Fact {
    /// The fact that says how a run was made in the lab.
    pub(crate) const LAB: &'static str = "lab";
    /// How its value begins where the time was virtual.
    pub(crate) const VIRTUAL_TIME: &'static str = "virtual time";

    /// A fact of this name, with its value in words.
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// Whether a run with these facts was made in virtual time.
    pub(crate) fn in_virtual_time(facts: &[Self]) -> bool {
        Self::value_of(facts, Self::LAB).is_some_and(|made| made.starts_with(Self::VIRTUAL_TIME))
    }

    /// The value of the first fact of a name; none: there is no such fact.
    pub(crate) fn value_of<'a>(facts: &'a [Self], name: &str) -> Option<&'a str> {
        let found = facts.iter().find(|fact| fact.name == name)?;
        Some(&found.value)
    }
}

/// What one layer really got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerFacts {
    /// Kind of layer (`loop`, `ext4` …).
    pub(crate) layer: String,
    /// Read back from the system, never copied from the study.
    pub(crate) facts: Vec<Fact>,
}
