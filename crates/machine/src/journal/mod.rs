//! Everything that stackrace creates, with how to undo it.
//!
//! An append-only file, one JSON object a line. An entry is on the disk *before* the thing it
//! names is created. So everything that exists outside the record is named here at every moment,
//! also after a crash. The opposite can happen (an entry without its thing), so every undo is
//! harmless when there is nothing to undo.
//!
//! The file is locked while a run lives. A process that gets the lock may clean up after a dead
//! run.
//!
//! Format 4: `{"journal":4,"run":"ID"}`, then the random digits that the run drew and the
//! directories in which it creates what carries them (`{"mark":"…"}`, `{"place":"/srv"}`), then
//! `{"entry":3,"group":"r1-t0","undo":{"remove-file":"/a%20b"}}` `{"made":3,"thing":…}` and `{"done":3}`. Paths are bytes:
//! everything but printable ASCII, and `%`, is written as `%` with two hexadecimal digits.

mod busy;
mod bytes;
mod check;
mod devices;
mod entry;
mod error;
mod file;
mod gone;
mod layer;
mod peers;
mod proof;
mod undo;

/// Name of a journal's file, in the directory of its run.
pub const FILE: &str = "journal.jsonl";

pub use busy::{busy, unmount, until_free};
pub use devices::{erase, partitions};
pub use entry::{Entry, EntryId, GROUND, Undo};
pub use error::JournalError;
pub use file::Journal;
pub use gone::is_here_or_gone;
pub use layer::{Param, UndoKind, text};
pub use peers::{BOOT, named};
pub use undo::{UndoReport, check_all, undo_all, undo_entries};

#[cfg(test)]
mod tests;
