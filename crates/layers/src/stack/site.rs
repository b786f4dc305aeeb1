//! Where a stack is set up, and for whom.

use crate::host::Host;
use crate::journal::{Journal, UndoKind};
use std::path::PathBuf;

/// Where a stack is set up, and for whom.
pub(crate) struct Site<'a> {
    /// The machine on which it is set up; others are its peers.
    pub(crate) host: &'a dyn Host,
    /// What is created is said here first.
    pub(crate) journal: &'a Journal,
    /// An absolute directory of the run: mount points live here, and disk files where the study
    /// names no directory. Created when it is not there; part of the record, not journalled.
    pub(crate) scratch: PathBuf,
    /// Names this set-up: `r3-t1`.
    pub(crate) tag: String,
    /// What random content follows from.
    pub(crate) seed: u64,
    /// Ids of devices that may be wiped although they carry something, repeated on the command line.
    pub(crate) wipe: &'a [String],
    /// How layers undo what only their own tools can undo.
    pub(crate) undo: &'static [&'static UndoKind],
}
