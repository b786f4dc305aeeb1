//! The monotonic clock, and sleep.

use rustix::thread::NanosleepRelativeResult;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // The monotonic clock starts near zero at boot: it is neither negative nor beyond 584 years.
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Sleeps for about this long; shorter if a signal arrives.
pub fn sleep_ns(ns: u64) {
    let request = Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    match rustix::thread::nanosleep(&request) {
        // Every caller reads the clock again, so neither a signal nor an error makes an operation
        // start early.
        NanosleepRelativeResult::Ok
        | NanosleepRelativeResult::Interrupted(_)
        | NanosleepRelativeResult::Err(_) => {}
    }
}
