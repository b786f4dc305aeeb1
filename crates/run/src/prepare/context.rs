//! What every command of a session needs: the store, the machine and its peers.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::PathBuf;
use std::sync::Arc;

use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::host::Host;
use stackrace_machine::host::local::{LocalHost, Sink};
use stackrace_machine::journal::JournalError;
use stackrace_remote::agent::remote_host::{Peer, clean_command};
use stackrace_results::record::{RecordError, Store};

/// Part of the command line and the environment that concerns every command.
pub struct Context {
    /// Directory of the runs; `None` if neither the command line nor the environment names a place.
    pub store: Option<PathBuf>,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The other machines of a stack, from number 2 on.
    pub peers: Vec<Peer>,
    /// Options of the command line that name this machine; empty if it is the one that it was typed at.
    pub named_by: Vec<String>,
    /// True on a guest in virtual time, whose stacks have their second machine in its own kernel.
    pub one_kernel: bool,
}

impl Context {
    /// Returns the directory of the runs. A command that keeps nothing never asks, and runs without one.
    ///
    /// # Errors
    /// No place is named.
    pub fn store_dir(&self) -> Result<PathBuf, Failure> {
        let Some(dir) = &self.store else {
            return Err(Failure::usage(
                "no place for results: HOME is not set, or not a whole path",
            )
            .next("name one: --store DIR"));
        };
        // Commands run in other directories, and a resumed run goes back to where it was begun.
        std::path::absolute(dir).map_err(|error| {
            Failure::usage(format!(
                "cannot find the store {} from the directory you stand in: {error}",
                dir.shown(),
                error = error.in_words()
            ))
            .next("go to another directory (cd), or give the whole path: --store /DIR")
        })
    }

    /// Opens the store; it is made where it does not exist yet.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_store(&self) -> Result<Store, Failure> {
        Store::open(&self.store_dir()?).map_err(unrecorded)
    }

    /// Opens the store to read what is in it; where there is none, none is made.
    ///
    /// # Errors
    /// It is not the user's own.
    pub fn look_into_store(&self) -> Result<Store, Failure> {
        Store::look(&self.store_dir()?).map_err(unrecorded)
    }

    /// Returns this machine with its peers; every command goes to `sink`.
    pub fn host(&self, sink: Sink) -> LocalHost {
        let cleaned_by = clean_command(&self.named_by, &[]);
        let peers = self.peers.iter().map(|peer| -> Box<dyn Host> {
            // Each peer tells of the commands it was given.
            Box::new(peer.host(Arc::clone(&sink), &cleaned_by))
        });
        let second = self
            .one_kernel
            .then(|| -> Box<dyn Host> { Box::new(LocalHost::second(Arc::clone(&sink))) });
        let peers = peers.chain(second).collect();
        let host = LocalHost::new(sink).with_peers(peers);
        host.with_cleaned_by(cleaned_by)
    }
}

/// The failure of a store that does not take a run, or is not the user's own.
pub fn unrecorded(error: RecordError) -> Failure {
    let failure = match error.is_refusal() {
        true => Failure::refused,
        false => Failure::internal,
    };
    failure(error.to_string()).next(error.next())
}

/// The failure of a journal that cannot be used.
pub fn unjournalled(error: JournalError) -> Failure {
    let failure = match error {
        JournalError::System(_) => Failure::internal,
        _ => Failure::refused,
    };
    failure(error.to_string()).next(error.next())
}

/// Bits that differ from one execution to the next; the system's randomness where it gives any.
pub fn entropy() -> u64 {
    let host = LocalHost::new(Arc::new(|_| ()));
    let nonce = host
        .nonce()
        .ok()
        .and_then(|text| u64::from_str_radix(&text, 16).ok());
    // Two processes may start in the same nanosecond, but not with the same number.
    nonce.unwrap_or_else(|| SystemClock.now_ns() ^ u64::from(std::process::id()) << 32)
}
