//! A run as the checks of differences read it, and what they find.

use serde::Serialize;

use crate::audit::cell::AuditCell;
use crate::audit::set_ups::SetUps;
use stackrace_base::event::{Observation, RunStarted};

/// Number of configurations that are named in one sentence.
const NAMED_MAX: usize = 3;

/// A thing that differs between configurations and was not asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unlike {
    /// Name of the check that found it.
    pub check: &'static str,
    /// The difference, its evidence and its effect, without a full stop.
    pub sentence: String,
}

/// A whole run, as the checks across its trials read it.
pub(in crate::audit) struct RunReading<'a> {
    pub(in crate::audit) head: &'a RunStarted,
    pub(in crate::audit) trials: &'a [&'a Observation],
    pub(in crate::audit) set_ups: &'a SetUps<'a>,
    pub(in crate::audit) cells: &'a [AuditCell],
}

impl RunReading<'_> {
    pub(super) fn name(&self, configuration: usize) -> &str {
        &self.head.configurations[configuration].name
    }

    /// Every configuration that was ever set up or tried, with a value; those without one are left
    /// out.
    pub(super) fn each<T>(&self, value: impl Fn(usize) -> Option<T>) -> Vec<(usize, T)> {
        let all = 0..self.head.configurations.len();
        all.filter_map(|at| Some((at, value(at)?))).collect()
    }
}

/// `ext4, xfs and 3 more`
pub(in crate::audit) fn named(head: &RunStarted, configurations: &[usize]) -> String {
    let names: Vec<&str> = configurations
        .iter()
        .take(NAMED_MAX)
        .map(|at| head.configurations[*at].name.as_str())
        .collect();
    match configurations.len().saturating_sub(NAMED_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}
