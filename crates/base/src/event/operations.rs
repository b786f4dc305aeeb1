//! Whose operations a workload does: what the readers of its figures have to know, without its name.

use serde::{Deserialize, Serialize};

/// Whose operations a workload does, and what is known of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationsOf {
    /// Its own.
    #[default]
    Itself,
    /// Those of a command that the user gives: only the kernel's counters are known, and what the command prints.
    Command,
    /// Those of a program that a job of the user's directs; known likewise.
    Job,
    /// Its own, each promised to survive a power cut and kept in a ledger.
    Promised,
}

impl OperationsOf {
    /// Returns true if only the kernel's counters are known of them, and what their program prints.
    pub fn are_foreign(self) -> bool {
        matches!(self, Self::Command | Self::Job)
    }
}
