//! After a power cut: what is there, against what was promised.
//!
//! [`look`] reads what a trial left in its directory, [`judge`] compares that with the ledger. The
//! second is pure, so that damage can be planted in its tests. Nothing here fails: what cannot be
//! read is a finding.

mod judge;
mod look;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::event::{CheckedPromises, Promised};

/// Looks for everything that had been promised in `directory` when the power went at `at_ns`, on the
/// clock of the ledger. Opening a database recovers it, so the directory is written to.
pub(crate) fn check(directory: &Path, promised: &Promised, at_ns: u64) -> CheckedPromises {
    judge::judge(promised, &look::look(directory, promised), at_ns)
}

/// The same where nothing can be read: the file system could not be mounted.
pub(crate) fn check_nothing(promised: &Promised, at_ns: u64) -> CheckedPromises {
    judge::judge(promised, &look::Seen::nothing(), at_ns)
}
