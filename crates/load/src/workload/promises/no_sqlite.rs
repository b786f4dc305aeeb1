//! Stands for SQLite where the program was built without it.

use std::convert::Infallible;
use std::path::Path;

use stackrace_engine::promises::CommitError;

use crate::workload::kind::{WorkloadError, trouble};

/// The database in the directory of a trial.
pub(super) const FILE: &str = "data.db";
const MISSING: &str = "built without SQLite (cargo install --path . --features full)";

/// Modes that SQLite would be asked for.
#[derive(Debug, Clone)]
pub(super) struct Durability {
    /// `PRAGMA journal_mode`.
    pub(super) journal: String,
    /// `PRAGMA synchronous`.
    pub(super) synchronous: String,
}

/// Always an error: this program was built without SQLite.
pub(super) fn available() -> Result<(), String> {
    Err(MISSING.to_owned())
}

/// Returns the ledger's name of a row.
pub(super) fn object(row: u32) -> String {
    format!("{FILE}#{row}")
}

/// A database of a program built without SQLite: no value of it exists.
pub(super) struct Database(Infallible);

impl Database {
    /// Always fails: this program was built without SQLite.
    pub(super) fn open(_: &Path, _: &Durability) -> Result<Self, WorkloadError> {
        Err(trouble(MISSING))
    }

    /// Cannot be called, as there is no value.
    pub(super) fn commit(&self, _: u32, _: &[u8]) -> Result<(), CommitError> {
        match self.0 {}
    }
}

/// Always fails: this program was built without SQLite.
pub(super) fn lay_out(
    _: &Path,
    _: &Durability,
    _: (u32, u32),
    _: u64,
) -> Result<(), WorkloadError> {
    Err(trouble(MISSING))
}

/// Always fails: this program was built without SQLite.
pub(super) fn rows(_: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    Err(MISSING.to_owned())
}
