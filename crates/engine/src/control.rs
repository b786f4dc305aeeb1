//! Progress of a running phase, and the signal to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::alternation::AlternationSeat;
use stackrace_system::monotonic_ns;
use stackrace_system::sleep_ns;
use stackrace_system::wake_precisely;

/// Shared between the engine's threads and the caller.
///
/// The engine reads `stop` and adds to the counters once per batch of work, not per operation, so
/// watching costs nothing measurable.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end the phase as soon as outstanding operations complete.
    pub stop: Arc<AtomicBool>,
    /// Operations completed so far, for display only.
    pub ops: AtomicU64,
    /// Bytes moved so far, for display only.
    pub bytes: AtomicU64,
    /// The phase alternates with others. Only phases of block I/O ([`crate::run`]) do; for others,
    /// leave this empty.
    pub seat: Option<AlternationSeat>,
    /// When a phase begins, ns of the monotonic clock; 0: as soon as it is set up; [`START_IS_TOLD`]: not
    /// before this is changed. For phases of several machines that begin at one instant.
    pub start_at_ns: AtomicU64,
    /// Set if a phase is set up and only waits for its start.
    pub set_up: AtomicBool,
    /// Set if the phase goes on until it is stopped, whatever time it was given: another one decides when it ends.
    pub endless: AtomicBool,
    /// Start of the first phase, ns of the monotonic clock; 0 if none has begun.
    pub began_ns: AtomicU64,
}

/// The start of a phase that is to be set up now, and is told later when it begins.
pub const START_IS_TOLD: u64 = u64::MAX;

/// Longest wait that is spent looking at the clock: a sleeping thread wakes up late, ns.
const WATCHED_NS: u64 = 30_000;
/// Longest sleep, after which it is checked whether the start was told or called off, ns.
const SLEEP_NS: u64 = 5_000_000;

impl Control {
    /// The control of a phase that ends when this flag is set.
    pub fn ended_by(stop: Arc<AtomicBool>) -> Self {
        Self {
            stop,
            ..Self::default()
        }
    }

    /// Returns true if the phase was asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until a phase that is set up may begin. A phase that is set up too late begins at once:
    /// `began_ns` shows it.
    pub(crate) fn await_start(&self) {
        self.set_up.store(true, Ordering::Relaxed);
        if self.start_at_ns.load(Ordering::Relaxed) > 0 {
            // All machines of a phase begin at one instant.
            wake_precisely();
        }
        loop {
            // Read again each time: it may be told while this waits.
            let start_ns = self.start_at_ns.load(Ordering::Relaxed);
            let left_ns = start_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 || self.stopped() {
                return;
            }
            if left_ns > WATCHED_NS {
                // Woken a little before the time, and the rest is spent looking at the clock.
                sleep_ns((left_ns - WATCHED_NS).min(SLEEP_NS));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Says that a phase begins now; of several, the first one counts.
    pub(crate) fn begins(&self) {
        let now = monotonic_ns();
        // Another value than 0 is that of an earlier one.
        let _ = self
            .began_ns
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_waits_for_its_start_and_not_once_it_is_called_off() {
        let control = Control::default();
        // Without a start, and with one that is over, nothing is waited for.
        control.await_start();
        let start = monotonic_ns() + 5_000_000;
        control.start_at_ns.store(start, Ordering::Relaxed);
        control.await_start();
        control.begins();
        assert!(control.began_ns.load(Ordering::Relaxed) >= start);
        control.start_at_ns.store(START_IS_TOLD, Ordering::Relaxed);
        control.stop.store(true, Ordering::Relaxed);
        control.await_start();
    }
}
