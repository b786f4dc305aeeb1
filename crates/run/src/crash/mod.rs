//! After a power cut: what is there, against what was promised.
//!
//! [`Remains`] starts the server of a database where one is needed. [`look`] reads what a trial left in its directory, [`judge`] compares that with the ledger. The
//! second is pure, so that damage can be planted in its tests. Nothing here fails: what cannot be
//! read is a finding.

mod judge;
mod look;
#[cfg(test)]
mod tests;

use std::path::Path;

use stackrace_base::event::{CheckedPromises, Promised};
use stackrace_load::workload::OwnFindings;
use stackrace_load::workload::promises::database::DatabaseKind;

/// Remains of a power cut in the directory of a trial, with the server of its database, if it has
/// one.
pub struct Remains<'a> {
    directory: &'a Path,
    promised: &'a Promised,
    /// Message of the server that did not start.
    refused: Option<String>,
    repair: Vec<String>,
    /// What a check of the workload's own found.
    found: Option<OwnFindings>,
}

impl<'a> Remains<'a> {
    /// Starts the server that reads them, which recovers them first; it answers when this returns. `found` is what a
    /// check of the workload's own found, if it has one.
    pub fn open(directory: &'a Path, promised: &'a Promised, found: Option<OwnFindings>) -> Self {
        // Without its files there is nothing to start: its rows are gone.
        let kind = look::database(promised).filter(|kind| kind.exists(directory));
        let mut repair = Vec::new();
        let started = kind.map(|kind| kind.start(directory, &mut repair));
        Self {
            directory,
            promised,
            refused: started.and_then(Result::err),
            repair,
            found,
        }
    }

    /// Returns true if a server is needed to read them.
    pub fn has_server(&self) -> bool {
        look::database(self.promised).is_some_and(DatabaseKind::has_server)
    }

    /// Message of the server that did not start; `None` if it answers, or if none is needed.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Commands an operator had to give before the server started, as typed.
    pub fn repair(&self) -> &[String] {
        &self.repair
    }

    /// Looks for everything that had been promised when the power went at `at_ns`, on the clock of the
    /// ledger. Opening SQLite's file recovers it, so the directory is written to.
    pub fn check(&self, at_ns: u64) -> CheckedPromises {
        let seen = match &self.found {
            Some(found) => look::checked(self.promised, found),
            None => look::look(self.directory, self.promised, self.refused()),
        };
        judge::judge(self.promised, &seen, at_ns)
    }

    /// Ends the server.
    ///
    /// # Errors
    /// It does not end.
    pub fn close(self) -> Result<(), String> {
        look::database(self.promised).map_or(Ok(()), |kind| kind.end(self.directory))
    }
}

/// The same where nothing can be read: the file system could not be mounted.
#[cfg(any(test, feature = "testing"))]
pub fn check_nothing(promised: &Promised, at_ns: u64) -> CheckedPromises {
    judge::judge(promised, &look::Seen::nothing(), at_ns)
}
