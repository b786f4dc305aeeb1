//! Processor time and sleep of a replay.

use crate::worker_pool::{Halt, Worker};
use stackrace_system::{monotonic_ns, sleep_ns, thread_cpu_ns};

/// Shortest time that is measured by the thread's own processor time: to read that is a system call.
const MEASURED_NS: u64 = 20_000;
/// Longest time between two looks whether the phase goes on.
const LOOK_NS: u64 = 50_000_000;

fn spin(ns: u64) {
    let until = monotonic_ns() + ns;
    while monotonic_ns() < until {
        std::hint::spin_loop();
    }
}

/// Uses so much processor time: what the storage computes meanwhile competes for it, as it did with the application.
pub(super) fn compute(ns: u64, worker: &Worker<'_>) -> Result<(), Halt> {
    if ns < MEASURED_NS {
        spin(ns);
        return Ok(());
    }
    // By its own processor time: a thread that another one displaced has not computed yet.
    let until = thread_cpu_ns().saturating_add(ns);
    loop {
        let left = until.saturating_sub(thread_cpu_ns());
        if left == 0 {
            return Ok(());
        }
        spin(left.min(LOOK_NS));
        worker.proceed()?;
    }
}

/// Sleeps until this moment of the phase, ns since its start.
pub(super) fn sleep_until(at_ns: u64, worker: &mut Worker<'_>) -> Result<(), Halt> {
    loop {
        let left = at_ns.saturating_sub(worker.now_ns());
        if left == 0 {
            return Ok(());
        }
        // Asked before each sleep, so that a stop is noticed within one of them.
        worker.proceed()?;
        sleep_ns(left.min(LOOK_NS));
    }
}
