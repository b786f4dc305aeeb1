//! Stands for a database where the program was built without it. A study that asks for it is refused before.

use std::convert::Infallible;
use std::path::Path;

use stackrace_engine::promises::CommitError;

use crate::workload::kind::{WorkloadError, trouble};

const MISSING: &str = "built without this database (cargo install --path . --features full)";

/// False: this program was built without it.
pub(super) const THERE: bool = false;

/// A connection of a program built without the database: no value of it exists.
pub(super) struct Session(Infallible);

impl Session {
    /// Always fails.
    pub(super) fn open<A>(_: &Path, _: &A) -> Result<Self, WorkloadError> {
        Err(trouble(MISSING))
    }

    /// Cannot be called, as there is no value.
    pub(super) fn commit(&mut self, _: u32, _: &[u8]) -> Result<(), CommitError> {
        match self.0 {}
    }
}

/// Always fails.
pub(super) fn lay_out<A>(_: &Path, _: &A, _: (u32, u32), _: u64) -> Result<(), WorkloadError> {
    Err(trouble(MISSING))
}

/// Always fails.
pub(super) fn rows(_: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    Err(MISSING.to_owned())
}

/// True: reading it says why nothing is known.
pub(super) fn exists(_: &Path) -> bool {
    true
}

/// Always fails.
pub(super) fn start(_: &Path, _: &mut Vec<String>) -> Result<(), WorkloadError> {
    Err(trouble(MISSING))
}

/// Does nothing: a program that was built without it can have started no server.
pub(super) fn end(_: &Path) -> Result<(), WorkloadError> {
    Ok(())
}
