//! Stopping a run from outside: a flag, and the phase that runs at the moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use stackrace_engine::Control;

/// Raised once, by Ctrl-C or from the live page, and never taken back.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    flag: AtomicBool,
    current: Mutex<Option<Arc<Control>>>,
}

impl Interrupt {
    /// Asks the run to end; the phase under way ends as soon as its outstanding operations do.
    pub(crate) fn raise(&self) {
        self.flag.store(true, Ordering::SeqCst);
        if let Some(control) = self
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            control.stop.store(true, Ordering::SeqCst);
        }
    }

    /// Whether it was asked.
    pub(crate) fn raised(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Makes a control that this interrupt stops.
    pub(crate) fn control(&self) -> Arc<Control> {
        let control = Arc::new(Control::default());
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&control));
        // Raised between two phases: the new one must not run on.
        control.stop.store(self.raised(), Ordering::SeqCst);
        control
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
}
