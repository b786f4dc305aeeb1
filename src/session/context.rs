//! What every command of a session needs: the store, the machine and its peers.

use std::path::PathBuf;
use std::sync::Arc;

use super::failure::Failure;
use crate::agent::peer::Peer;
use crate::agent::relay::Line;
use crate::host::Host;
use crate::host::local::{LocalHost, Sink};
use crate::record::Store;
use crate::time::{Clock, SystemClock};

/// What the command line and the environment say of every command.
pub(crate) struct Context {
    /// Where runs are kept; none: neither the command line nor the environment names a place.
    pub(crate) store: Option<PathBuf>,
    /// The command line, for the record.
    pub(crate) command: Vec<String>,
    /// Lines to the other machines of a stack, from number 2 on.
    pub(crate) peers: Vec<Arc<Line>>,
}

impl Context {
    /// Where runs are kept. A command that keeps nothing never asks, and runs without one.
    ///
    /// # Errors
    /// No place is named.
    pub(crate) fn store_dir(&self) -> Result<PathBuf, Failure> {
        let Some(dir) = &self.store else {
            return Err(Failure::usage("no place for results: HOME is not set")
                .next("name one: --store DIR"));
        };
        // Commands run in other directories, and a resumed run goes back to where it was begun.
        std::path::absolute(dir)
            .map_err(|error| Failure::usage(format!("{}: {error}", dir.display())))
    }

    /// Opens the store; it is made where it does not exist yet.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open_store(&self) -> Result<Store, Failure> {
        Store::open(&self.store_dir()?)
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))
    }

    /// This machine with its peers; every command goes to `sink`.
    pub(crate) fn host(&self, sink: Sink) -> LocalHost {
        let mut peers = crate::lab::peer::all(&sink);
        for line in &self.peers {
            let sink = Arc::clone(&sink);
            peers.push(Box::new(Peer::relayed(Arc::clone(line), sink)));
        }
        LocalHost::new(sink).with_peers(peers)
    }
}

/// Bits that differ from one execution to the next; the system's randomness where it gives any.
pub(crate) fn entropy() -> u64 {
    let host = LocalHost::new(Arc::new(|_| ()));
    let nonce = host
        .nonce()
        .ok()
        .and_then(|text| u64::from_str_radix(&text, 16).ok());
    // Two processes may start in the same nanosecond, but not with the same number.
    nonce.unwrap_or_else(|| SystemClock.now_ns() ^ u64::from(std::process::id()) << 32)
}
