//! What was found out about something: a name and a value.

use serde::{Deserialize, Serialize};

/// What is known of a machine or a stack, under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// `kernel`, `mount options in force` …
    pub name: String,
    /// As the system gave it.
    pub value: String,
}

impl Fact {
    /// The fact that says how a run was made in the lab.
    pub const LAB: &'static str = "lab";
    /// How its value begins where the time was virtual.
    pub const VIRTUAL_TIME: &'static str = "virtual time";

    /// A fact of this name, with its value in words.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// Whether a run with these facts was made in virtual time.
    pub fn in_virtual_time(facts: &[Self]) -> bool {
        Self::value_of(facts, Self::LAB).is_some_and(|made| made.starts_with(Self::VIRTUAL_TIME))
    }

    /// The value of the first fact of a name; none: there is no such fact.
    pub fn value_of<'a>(facts: &'a [Self], name: &str) -> Option<&'a str> {
        let found = facts.iter().find(|fact| fact.name == name)?;
        Some(&found.value)
    }
}

/// What one layer really got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerFacts {
    /// Kind of layer (`loop`, `ext4` …).
    pub layer: String,
    /// Read back from the system, never copied from the study.
    pub facts: Vec<Fact>,
}
