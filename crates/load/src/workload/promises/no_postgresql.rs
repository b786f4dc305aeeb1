//! Stands for PostgreSQL where the program was built without a client for it.

use std::convert::Infallible;
use std::path::Path;

use stackrace_engine::promises::CommitError;

use crate::workload::kind::{WorkloadError, trouble};

const MISSING: &str = "built without PostgreSQL (cargo install --path . --features full)";

/// Switches that PostgreSQL would be asked for.
#[derive(Debug, Clone)]
pub(super) struct Switches {
    /// Switch by which the server ever waits for the disk.
    pub(super) fsync: String,
    /// Switch by which a commit waits until its log is on the disk.
    pub(super) synchronous_commit: String,
    /// Switch by which pages are logged whole after a checkpoint.
    pub(super) full_page_writes: String,
}

/// Always an error: this program was built without PostgreSQL.
pub(super) fn available() -> Result<(), String> {
    Err(MISSING.to_owned())
}

/// Returns the ledger's name of a row.
pub(super) fn object(row: u32) -> String {
    format!("postgresql#{row}")
}

/// A connection of a program built without PostgreSQL: no value of it exists.
pub(super) struct PostgresSession(Infallible);

impl PostgresSession {
    /// Always fails: this program was built without PostgreSQL.
    pub(super) fn open(_: &Path) -> Result<Self, WorkloadError> {
        Err(trouble(MISSING))
    }

    /// Cannot be called, as there is no value.
    pub(super) fn commit(&mut self, _: u32, _: &[u8]) -> Result<(), CommitError> {
        match self.0 {}
    }
}

/// Always fails: this program was built without PostgreSQL.
pub(super) fn lay_out(_: &Path, _: &Switches, _: (u32, u32), _: u64) -> Result<(), WorkloadError> {
    available().map_err(trouble)
}

/// Returns false: nothing is known of any cluster, as this program was built without PostgreSQL.
pub(super) fn exists(_: &Path) -> bool {
    false
}

/// Always fails: this program was built without PostgreSQL.
pub(super) fn start(_: &Path, _: &mut Vec<String>) -> Result<(), WorkloadError> {
    available().map_err(trouble)
}

/// Does nothing: no server can have been started by a program built without PostgreSQL.
pub(super) fn end(_: &Path) -> Result<(), WorkloadError> {
    Ok(())
}

/// Always fails: this program was built without PostgreSQL.
pub(super) fn rows(_: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    Err(MISSING.to_owned())
}

/// Ends nothing, as there is no value: dropping means the same with and without PostgreSQL.
impl Drop for PostgresSession {
    fn drop(&mut self) {}
}
