//! Watches the clients that measure together: a client that falls silent fails the trial.

use super::connection::Connection;
use super::message::{COORDINATOR, WorkerRequest};
use crate::time::{Clock, SystemClock};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often each client is spoken to.
const BEAT: Duration = Duration::from_secs(1);

/// A client that was silent for so long is lost.
const LOST: Duration = Duration::from_secs(4);

/// After how many seconds without a word from the coordinator a client ends by itself.
pub(crate) const ORPHAN_S: u32 = 20;

/// Speaks to each client every second, and gives a connection up that has been silent for four. Ends
/// when nothing needs the connections any more.
pub(crate) fn watch(connections: &[Arc<Connection>]) {
    let watched: Vec<Weak<Connection>> = connections.iter().map(Arc::downgrade).collect();
    std::thread::spawn(move || {
        let mut lost = vec![false; watched.len()];
        loop {
            SystemClock.sleep(BEAT);
            let mut needed = false;
            for (connection, lost) in watched.iter().zip(&mut lost) {
                let Some(connection) = connection.upgrade().filter(|_| !*lost) else {
                    continue;
                };
                needed = true;
                if u128::from(connection.silent_ns()) > LOST.as_nanos() {
                    *lost = true;
                    connection.end();
                    continue;
                }
                // One that cannot be told is lost: its reading end says so.
                *lost = connection.open(COORDINATOR, &WorkerRequest::Hello).is_err();
            }
            if !needed {
                return;
            }
        }
    });
}
