//! What is known of a workload before its first trial: its name, its sentence, its metrics.

use std::borrow::Cow;

use libm::{exp, log as ln};
use serde::{Deserialize, Serialize};

use super::older;
use super::operations::OperationsOf;
use super::recorded::RecordedApplication;

/// One workload, as a report needs it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkloadHead {
    /// Unique in the study.
    pub name: String,
    /// Kind of workload (`random`, `files` …).
    pub kind: String,
    /// One sentence: what it does, with its numbers.
    pub summary: String,
    /// Weight in the overall figure (a weighted geometric mean); 0 if not in it.
    pub weight: f64,
    /// Metrics it reports; the first is primary.
    pub metrics: Vec<MetricHead>,
    /// True if the sizes of its files are drawn, so that another seed is other work; `None` if the log is from before
    /// this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_sizes: Option<bool>,
    /// Whether its rate ought to be level, because it does one thing from the beginning of a phase to its end;
    /// `None`: as for `drawn_sizes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<bool>,
    /// Whose operations it does; `None`: as for `drawn_sizes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<OperationsOf>,
    /// True if it runs commands that the user gives; false in logs from before this was kept, where only those of
    /// [`OperationsOf::Command`] are known to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_commands: bool,
    /// The settings of an imported workload, without the version of its tool; `None` if it is not imported, or
    /// the log is from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// The recorded application that it replays; `None` if it replays none, or its trace was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Box<RecordedApplication>>,
}

impl WorkloadHead {
    /// Whether another seed is another amount of work.
    pub fn draws_sizes(&self) -> bool {
        let older = || older::draws_sizes(&self.kind, &self.summary);
        self.drawn_sizes.unwrap_or_else(older)
    }

    /// Whether its rate ought to be level.
    pub fn is_level(&self) -> bool {
        self.level.unwrap_or_else(|| older::is_level(&self.kind))
    }

    /// The work in words, without the version of the tool that did it: another version of a tool is no other
    /// work.
    pub fn work(&self) -> Cow<'_, str> {
        match &self.imported {
            Some(settings) => Cow::Borrowed(settings),
            None => Cow::Owned(older::work(&self.summary)),
        }
    }

    /// Whose operations it does.
    pub fn operations(&self) -> OperationsOf {
        self.operations
            .unwrap_or_else(|| older::operations(&self.kind))
    }

    /// Whether its figures are printed by a program that the user gives or sets, in digits of its choice.
    pub fn is_printed(&self) -> bool {
        self.operations().are_foreign()
    }
}

/// Metric of a workload: a name, a unit and a direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricHead {
    /// `throughput`, `operations`, `elapsed`, `read latency p95` …
    pub name: String,
    /// `B/s`, `op/s`, `s`, `ns`, `%`.
    pub unit: String,
    /// Direction that is better.
    pub better: Better,
}

impl MetricHead {
    /// A metric by name, unit and direction.
    pub fn new(name: impl Into<String>, unit: &str, better: Better) -> Self {
        Self {
            name: name.into(),
            unit: unit.to_owned(),
            better,
        }
    }

    /// Its name behind that of a workload, which may have it already: `browse: throughput`.
    pub fn on(&self, workload: &str) -> String {
        let named = workload.strip_suffix(&self.name);
        match named.is_some_and(|before| before.ends_with(", ")) {
            true => workload.to_owned(),
            false => format!("{workload}: {}", self.name),
        }
    }
}

/// The direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Bigger is better.
    Higher,
    /// Smaller is better.
    Lower,
}

impl Better {
    /// The word as it is written in the log and in every table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
        }
    }

    /// Natural logarithm of a value, oriented so that larger is better.
    pub fn oriented_ln(self, value: f64) -> f64 {
        // Logarithms, because configurations are compared by ratios.
        self.oriented(ln(value))
    }

    /// A logarithm turned so that larger is better, or turned back.
    pub fn oriented(self, ln: f64) -> f64 {
        match self {
            Self::Higher => ln,
            Self::Lower => -ln,
        }
    }

    /// The value of an [oriented logarithm](Self::oriented_ln).
    pub fn value_of(self, oriented_ln: f64) -> f64 {
        exp(self.oriented(oriented_ln))
    }
}
