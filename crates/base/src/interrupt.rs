//! Stopping a run from outside: a flag, and the phases that run at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Raised once, by Ctrl-C or from the live page, and never taken back.
#[derive(Debug, Default)]
pub struct Interrupt {
    flag: AtomicBool,
    /// True as long as nothing stands that would have to be torn down.
    nothing_stands: AtomicBool,
    /// Ends a phase that runs at the moment, one flag for each.
    current: Mutex<Vec<Arc<AtomicBool>>>,
}

impl Interrupt {
    /// Asks the run to end; the phase under way ends as soon as its outstanding operations do.
    pub fn raise(&self) {
        // The flag first: a flag of a phase that is made just now reads it after it can be found.
        self.flag.store(true, Ordering::SeqCst);
        for stop in &*self.current.lock() {
            stop.store(true, Ordering::SeqCst);
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

    /// Makes the flag that ends the phase which begins now.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop_flags(1).swap_remove(0)
    }

    /// Makes the flags that end phases which run at the same time.
    pub fn stop_flags(&self, phases: usize) -> Vec<Arc<AtomicBool>> {
        let stops: Vec<Arc<AtomicBool>> = (0..phases).map(|_| Arc::default()).collect();
        *self.current.lock() = stops.clone();
        // Raised between two phases: the new ones must not run on.
        for stop in &stops {
            stop.store(self.raised(), Ordering::SeqCst);
        }
        stops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(stop: &AtomicBool) -> bool {
        stop.load(Ordering::SeqCst)
    }

    #[test]
    fn a_phase_that_begins_after_the_interrupt_is_stopped_too() {
        let interrupt = Interrupt::default();
        let before = interrupt.stop_flag();
        assert!(!stopped(&before));
        interrupt.raise();
        assert!(stopped(&before));
        assert!(stopped(&interrupt.stop_flag()));
    }

    #[test]
    fn phases_that_run_at_the_same_time_are_all_stopped() {
        let interrupt = Interrupt::default();
        let stops = interrupt.stop_flags(2);
        interrupt.raise();
        assert!(stops.iter().all(|stop| stopped(stop)));
    }
}
