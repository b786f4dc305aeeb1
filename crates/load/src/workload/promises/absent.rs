//! Stands for a database where the program was built without it. A study that asks for it is refused before.

use std::path::Path;

use stackrace_engine::promises::Commit;
use stackrace_engine::{OpError, PhaseOutcome};

use crate::workload::kind::{WorkloadError, trouble};

const MISSING: &str = "built without this database (cargo install --path . --features full)";

/// False: this program was built without it.
pub(super) const THERE: bool = false;

/// Fails: this program was built without it.
pub(super) fn during<A>(
    _: &Path,
    _: &A,
    _: impl FnOnce(&mut Commit<'_>) -> Result<PhaseOutcome, OpError>,
) -> Result<PhaseOutcome, WorkloadError> {
    Err(trouble(MISSING))
}

/// Fails: this program was built without it.
pub(super) fn lay_out<A>(_: &Path, _: &A, _: (u32, u32), _: u64) -> Result<(), WorkloadError> {
    Err(trouble(MISSING))
}

/// Fails: this program was built without it.
pub(super) fn rows(_: &Path) -> Result<Vec<(u32, Vec<u8>)>, String> {
    Err(MISSING.to_owned())
}

/// True: reading it says why nothing is known.
pub(super) fn exists(_: &Path) -> bool {
    true
}

/// Fails: this program was built without it.
pub(super) fn start(_: &Path, _: &mut Vec<String>) -> Result<(), WorkloadError> {
    Err(trouble(MISSING))
}

/// Does nothing: a program that was built without it can have started no server.
pub(super) fn end(_: &Path) -> Result<(), WorkloadError> {
    Ok(())
}
