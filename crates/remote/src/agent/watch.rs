//! Watches the clients that measure together: a client that falls silent fails the trial.

use super::connection::Connection;
use super::message::{COORDINATOR, WorkerRequest};
use stackrace_base::time::{Clock, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which each client is spoken to.
const BEAT: Duration = Duration::from_secs(1);

/// A client that was silent for so long is lost.
const LOST: Duration = Duration::from_secs(4);

/// Number of unanswered questions at which a client is lost: if this program itself was stopped for a while, it has
/// asked no client.
const UNANSWERED: u32 = 3;

/// Seconds without a word from the coordinator after which a client ends by itself.
pub const ORPHAN_S: u32 = 20;

/// Speaks to each client every second, and gives a connection up that has been silent for four. Ends
/// when nothing needs the connections any more.
pub fn watch(connections: &[Arc<Connection>]) {
    let mut watched: Vec<_> = connections
        .iter()
        .map(|connection| {
            (
                Arc::downgrade(connection),
                Silence::from(SystemClock.now_ns()),
            )
        })
        .collect();
    std::thread::spawn(move || {
        while !watched.is_empty() {
            SystemClock.sleep(BEAT);
            watched.retain_mut(|(connection, silence)| {
                let needed = connection.upgrade();
                needed.is_some_and(|connection| look(&connection, silence))
            });
        }
    });
}

/// False: the connection is lost.
fn look(connection: &Arc<Connection>, silence: &mut Silence) -> bool {
    if silence.is_lost(SystemClock.now_ns(), connection.silent_ns()) {
        let seconds = LOST.as_secs();
        connection.end(Some(&format!("it has said nothing for {seconds} s")));
        return false;
    }
    // One that cannot be told is lost: its reading end says so.
    connection.open(COORDINATOR, &WorkerRequest::Hello).is_ok()
}

/// Record of a client's silence.
struct Silence {
    /// Time when it was asked last, ns.
    asked_ns: u64,
    /// Number of questions in turn it has not answered.
    unanswered: u32,
}

impl Silence {
    fn from(now_ns: u64) -> Self {
        Self {
            asked_ns: now_ns,
            unanswered: 0,
        }
    }

    /// Returns true if a client that has been silent for so long is lost; if not, it is asked now.
    fn is_lost(&mut self, now_ns: u64, silent_ns: u64) -> bool {
        let heard_ns = now_ns.saturating_sub(silent_ns);
        self.unanswered = match heard_ns >= self.asked_ns {
            true => 0,
            false => self.unanswered + 1,
        };
        self.asked_ns = now_ns;
        u128::from(silent_ns) > LOST.as_nanos() && self.unanswered >= UNANSWERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_client_that_falls_silent_is_lost_within_five_seconds() {
        let mut silence = Silence::from(0);
        let lost = (1..=5).map(|at| silence.is_lost(at * S, at * S));
        assert_eq!(lost.collect::<Vec<_>>(), [false, false, false, false, true]);
    }

    #[test]
    fn no_client_is_lost_because_this_program_was_stopped() {
        let mut silence = Silence::from(0);
        assert!(!silence.is_lost(S, S - 1));
        // Stopped for a minute; its answer to the last question was the last that came.
        assert!(!silence.is_lost(61 * S, 60 * S - 1));
        assert!(!silence.is_lost(62 * S, S - 1));
    }
}
