//! Wall clock and monotonic clock behind one trait, so that tests can use a clock of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Source of wall clock and monotonic time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;
    /// The same, with the time in which the machine was suspended, where the system counts that.
    fn with_sleep_ns(&self) -> u64 {
        self.now_ns()
    }
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
        count_ns(rustix::time::clock_gettime(rustix::time::ClockId::Realtime))
    }
}

/// A time of a clock, ns; 0 before its beginning, and the highest number there is for what is beyond that.
// A wall clock can be set to any year: 2554 is the last one in 64 bits of nanoseconds.
fn count_ns(time: rustix::time::Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// A time of day, RFC 3339 in UTC with milliseconds; of a clock beyond the years that have such a text, the nearest
/// one that has.
fn written(seconds: i64, nanoseconds: i32) -> String {
    let nearest = match seconds < 0 {
        // No system lets a clock be set to before 1970.
        true => jiff::Timestamp::UNIX_EPOCH,
        false => jiff::Timestamp::MAX,
    };
    let time = jiff::Timestamp::new(seconds, nanoseconds).unwrap_or(nearest);
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        count_ns(rustix::time::clock_gettime(
            rustix::time::ClockId::Monotonic,
        ))
    }

    fn today(&self) -> String {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        written(now.tv_sec, i32::try_from(now.tv_nsec).unwrap_or(0))
    }

    fn with_sleep_ns(&self) -> u64 {
        // The same clock as for the pauses of a trial: it goes on while the machine is suspended.
        let now = rustix::time::clock_gettime(stackrace_system::BOOT_CLOCK);
        count_ns(now)
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
        let now = self.now_ns();
        // Less than 2^64 ns: both parts fit.
        written((now / 1_000_000_000) as i64, (now % 1_000_000_000) as i32)
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

    #[test]
    fn a_clock_that_is_set_to_any_year_has_a_time_of_day() {
        assert_eq!(written(0, 1_000_000), "1970-01-01T00:00:00.001Z");
        // 10208, and the last and the first second that there are.
        for (seconds, year) in [
            (260_000_000_000, "9999"),
            (i64::MAX, "9999"),
            (i64::MIN, "1970"),
        ] {
            assert!(
                written(seconds, 0).starts_with(year),
                "{}",
                written(seconds, 0)
            );
        }
        let year_2600 = rustix::time::Timespec {
            tv_sec: 19_900_000_000,
            tv_nsec: 7,
        };
        assert_eq!(count_ns(year_2600), u64::MAX);
    }
}
