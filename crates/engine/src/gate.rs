//! The common start: no worker begins before all are set up.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::{Calibration, FastClock};
use crate::control::Control;
use crate::error::StartError;
use stackrace_system::cpu::Cpu;

/// Holds all workers until everything is set up, then starts them at once.
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
    /// The workers begin, with this clock: its origin is the common start.
    Go(FastClock),
    /// A worker could not be set up: none starts.
    CallOff,
}

impl StartGate {
    fn state(&self) -> MutexGuard<'_, StartGateState> {
        // A poisoned gate means a worker panicked; the join reports that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a worker is ready or failed, and waits. Returns when all may start, or `None`
    /// if none may.
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
                Some(StartDecision::CallOff) => return None,
                None => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Waits until `workers` workers are ready and starts them, unless one failed or `error` is
    /// given; not before the time that `control` says. The clock is calibrated during their set-up.
    /// Processor time used before the start is not charged to the phase.
    pub(crate) fn open(
        &self,
        workers: usize,
        calibration: Calibration,
        error: Option<StartError>,
        control: &Control,
    ) -> Result<(FastClock, Cpu), StartError> {
        let mut state = self.state();
        while state.arrived < workers {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let error = error.or_else(|| state.first_error.take());
        if error.is_none() {
            control.await_start();
        }
        // Only now: the clock's origin is the common start.
        let clock = calibration.finish();
        control.begins();
        let cpu = Cpu::now();
        state.verdict = Some(match error {
            None => StartDecision::Go(clock),
            Some(_) => StartDecision::CallOff,
        });
        self.changed.notify_all();
        error.map_or(Ok((clock, cpu)), Err)
    }
}
