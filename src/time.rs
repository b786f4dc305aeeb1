//! Wall clock and monotonic clock behind one trait, so that tests can use a clock of their own.

use std::time::Duration;

/// Where time comes from.
pub(crate) trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;
    /// Time of day, RFC 3339 in UTC with milliseconds.
    fn today(&self) -> String;
    /// Waits; the only place of the program that does, besides the pacing of the load.
    fn sleep(&self, duration: Duration);
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl SystemClock {
    /// Nanoseconds since 1970 by the wall clock, which may be set: for what has to agree with it.
    pub(crate) fn unix_ns(self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(now.tv_nsec).unwrap_or(0)
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        // The monotonic clock starts at 0 at boot: neither part is negative.
        u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(now.tv_nsec).unwrap_or(0)
    }

    fn today(&self) -> String {
        jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
            .to_string()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "everything else waits by calling this"
    )]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
