//! Progress of a running phase, and the signal to stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::alternation::AlternationSeat;

/// Shared between the engine's threads and the caller.
///
/// The engine reads `stop` and adds to the counters once per batch of work, not per operation, so
/// watching costs nothing measurable.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end the phase as soon as outstanding operations complete.
    pub stop: AtomicBool,
    /// Operations completed so far, for display only.
    pub ops: AtomicU64,
    /// Bytes moved so far, for display only.
    pub bytes: AtomicU64,
    /// The phase alternates with others. Only phases of block I/O ([`crate::run`]) do; for others,
    /// leave this empty.
    pub seat: Option<AlternationSeat>,
}

impl Control {
    /// Whether the phase was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
