//! The common start: no worker begins before all have laid out what they need.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::{Calibration, FastClock};
use crate::cpu::Cpu;
use crate::error::StartError;

/// Holds all workers until everything is laid out, then lets them go at once.
#[derive(Default)]
pub(crate) struct StartGate {
    state: Mutex<StartGateState>,
    changed: Condvar,
}

#[derive(Default)]
struct StartGateState {
    arrived: usize,
    first_error: Option<StartError>,
    verdict: Option<StartDecision>,
}

#[derive(Clone, Copy)]
enum StartDecision {
    /// Begin, with this clock: its origin is the common start.
    Go(FastClock),
    /// Somebody could not lay out what it needs.
    GoHome,
}

impl StartGate {
    fn state(&self) -> MutexGuard<'_, StartGateState> {
        // A poisoned gate means a worker panicked; the join reports that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker is ready, or cannot be. Returns when all may start; `None`: none may.
    pub(crate) fn pass(&self, error: Option<StartError>) -> Option<FastClock> {
        let mut state = self.state();
        state.arrived += 1;
        if state.first_error.is_none() {
            state.first_error = error;
        }
        self.changed.notify_all();
        loop {
            match state.verdict {
                Some(StartDecision::Go(clock)) => return Some(clock),
                Some(StartDecision::GoHome) => return None,
                None => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Waits for `workers` to be ready and starts them, unless one could not be, or `error` is
    /// given already. The clock is calibrated while they lay out what they need; the processor time
    /// spent until the start is not theirs.
    pub(crate) fn open(
        &self,
        workers: usize,
        calibration: Calibration,
        error: Option<StartError>,
    ) -> Result<(FastClock, Cpu), StartError> {
        let mut state = self.state();
        while state.arrived < workers {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let error = error.or_else(|| state.first_error.take());
        let clock = calibration.finish();
        let cpu = Cpu::now();
        state.verdict = Some(match error {
            None => StartDecision::Go(clock),
            Some(_) => StartDecision::GoHome,
        });
        self.changed.notify_all();
        error.map_or(Ok((clock, cpu)), Err)
    }
}
