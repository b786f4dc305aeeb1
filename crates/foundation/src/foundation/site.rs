//! Where a stack is set up, and for whom.

use stackrace_base::interrupt::Interrupt;
use stackrace_machine::host::Host;
use stackrace_machine::journal::{Journal, UndoKind};
use std::path::PathBuf;

/// The place where a stack is set up, and its owner.
pub struct Site<'a> {
    /// The machine on which it is set up; others are its peers.
    pub host: &'a dyn Host,
    /// The journal, which is told first of what is created.
    pub journal: &'a Journal,
    /// An absolute directory of the run: mount points live here, and disk files where the study
    /// names no directory. Created when it is not there; part of the record, not journalled.
    pub scratch: PathBuf,
    /// Names this set-up: `r3-t1`.
    pub tag: String,
    /// Seed of random content.
    pub seed: u64,
    /// Ids of devices that may be wiped although they carry something, repeated on the command line.
    pub wipe: &'a [String],
    /// Ways in which layers undo what only their own tools can undo.
    pub undo: &'static [&'static UndoKind],
    /// Ends a set-up that takes its time, once it is raised; `None` where nothing ends it.
    pub interrupt: Option<&'a Interrupt>,
}
