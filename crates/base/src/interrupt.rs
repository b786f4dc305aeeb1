//! Stopping a run from outside: a flag, and the phases that run at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use stackrace_engine::{AlternationSeat, Control};

/// Raised once, by Ctrl-C or from the live page, and never taken back.
#[derive(Debug, Default)]
pub struct Interrupt {
    flag: AtomicBool,
    /// True as long as nothing stands that would have to be torn down.
    nothing_stands: AtomicBool,
    current: Mutex<Vec<Arc<Control>>>,
}

impl Interrupt {
    /// Asks the run to end; the phase under way ends as soon as its outstanding operations do.
    pub fn raise(&self) {
        // The flag first: a control that is made just now reads it after it can be found.
        self.flag.store(true, Ordering::SeqCst);
        for control in &*self.current.lock() {
            control.stop.store(true, Ordering::SeqCst);
        }
    }

    /// Says whether something may stand that has to be torn down when it is asked to end.
    pub fn may_stand(&self, something: bool) {
        self.nothing_stands.store(!something, Ordering::SeqCst);
    }

    /// Returns true if nothing stands yet.
    pub fn nothing_stands(&self) -> bool {
        self.nothing_stands.load(Ordering::SeqCst)
    }

    /// Returns true if it was asked.
    pub fn raised(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Makes a control that this interrupt stops.
    pub fn control(&self) -> Arc<Control> {
        self.controls([None]).swap_remove(0)
    }

    /// Makes controls for phases that run at the same time, each with its seat if they alternate.
    pub fn controls(
        &self,
        seats: impl IntoIterator<Item = Option<AlternationSeat>>,
    ) -> Vec<Arc<Control>> {
        let control = |seat| {
            Arc::new(Control {
                seat,
                ..Control::default()
            })
        };
        let controls: Vec<Arc<Control>> = seats.into_iter().map(control).collect();
        *self.current.lock() = controls.clone();
        // Raised between two phases: the new ones must not run on.
        for control in &controls {
            control.stop.store(self.raised(), Ordering::SeqCst);
        }
        controls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_that_begins_after_the_interrupt_is_stopped_too() {
        let interrupt = Interrupt::default();
        let before = interrupt.control();
        assert!(!before.stopped());
        interrupt.raise();
        assert!(before.stopped());
        assert!(interrupt.control().stopped());
    }

    #[test]
    fn phases_that_run_at_the_same_time_are_all_stopped() {
        let interrupt = Interrupt::default();
        let controls = interrupt.controls([None, None]);
        interrupt.raise();
        assert!(controls.iter().all(|control| control.stopped()));
    }
}
