//! Wall clock and monotonic clock behind one trait, so that tests can use a clock of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Source of wall clock and monotonic time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;
    /// Time of day, RFC 3339 in UTC with milliseconds.
    fn today(&self) -> String;
    /// Waits; the only place of the program that does, besides the pacing of the load.
    fn sleep(&self, duration: Duration);
}

/// The wall clock and the monotonic clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Nanoseconds since 1970 by the wall clock, which may be set: for what has to agree with it.
    pub fn unix_ns(self) -> u64 {
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

/// A clock that shows what it was last set to: the time of guests whose clock counts instructions.
#[derive(Debug)]
pub struct GivenClock {
    unix_ns: AtomicU64,
}

impl GivenClock {
    /// A clock that shows a time of day (RFC 3339); `None` if that is no time.
    pub fn at(today: &str) -> Option<Self> {
        let time: jiff::Timestamp = today.parse().ok()?;
        let unix_ns = AtomicU64::new(u64::try_from(time.as_nanosecond()).ok()?);
        Some(Self { unix_ns })
    }

    /// Sets it, ns since 1970; it never goes back.
    pub fn set(&self, unix_ns: u64) {
        self.unix_ns.fetch_max(unix_ns, Ordering::Relaxed);
    }
}

impl Clock for GivenClock {
    fn now_ns(&self) -> u64 {
        self.unix_ns.load(Ordering::Relaxed)
    }

    fn today(&self) -> String {
        let time = jiff::Timestamp::from_nanosecond(self.now_ns().into());
        // Out of range only after the year 9999.
        let time = time.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }

    /// Waiting takes no time of this clock.
    fn sleep(&self, _duration: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_clock_shows_what_it_was_set_to_and_never_goes_back() {
        let clock = GivenClock::at("2026-01-01T00:00:00Z").unwrap();
        let began = clock.now_ns();
        clock.set(began + 61_234_000_000);
        clock.set(began);
        assert_eq!(clock.today(), "2026-01-01T00:01:01.234Z");
        assert!(GivenClock::at("yesterday").is_none());
    }
}
