//! The time, at the lowest cost this machine offers.
//!
//! Where the processor's time-stamp counter runs at a constant rate in every power state (CPUID
//! leaf 8000_0007h, EDX bit 8, "invariant TSC"), one reading costs about half of a reading of the
//! monotonic clock. The processor's claim is not enough: an emulated processor may claim it
//! wrongly, or several processors may disagree. The kernel watches the counter from boot on and
//! drops it as clock source if it misbehaves; then this file drops it too. The rate is measured
//! against `CLOCK_MONOTONIC` and checked again at the end of each phase. A disagreement is
//! reported, never corrected silently.
//!
//! Units: nanoseconds since the clock's origin; ticks are whatever the counter counts.

use std::sync::OnceLock;

use stackrace_system::{monotonic_ns, sleep_ns};

/// The counter's rate is measured over an interval this many times as long as the uncertainty of
/// its two readings. The error is then 50 parts in a million, a twentieth of a histogram's
/// resolution. Each reading is good to about twenty nanoseconds, so a millisecond is enough.
const DOUBTS: u64 = 20_000;
/// Longest interval, ns, for machines where even the best readings are uncertain.
const CALIBRATION_NS_MAX: u64 = 20_000_000;
/// Bracketed readings to try. The tightest is kept, so that an interrupt between the two clocks
/// does no harm.
const BRACKETS: usize = 16;
/// Fraction bits of the scale.
const SCALE_BITS: u32 = 32;

/// Nanoseconds per tick, times 2^32; measured once per process.
static SCALE: OnceLock<u64> = OnceLock::new();

/// A reading of both clocks at (nearly) the same moment.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ticks: u64,
    ns: u64,
    /// Largest distance between the two readings, ns.
    doubt_ns: u64,
}

/// The time-stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor, and reads a counter without side effects.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Stands in for the counter on other processors. Never called: `invariant` is false here.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn counter() -> u64 {
    monotonic_ns()
}

/// File in which the kernel names its clock source.
#[cfg(target_arch = "x86_64")]
const CHOICE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Returns true if the counter can be trusted.
#[cfg(target_arch = "x86_64")]
fn invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const LEAF: u32 = 0x8000_0007;
    let claimed = __cpuid(0x8000_0000).eax >= LEAF && __cpuid(LEAF).edx & (1 << 8) != 0;
    // If the kernel's choice is unknown, the counter is unchecked: do not use it.
    claimed && std::fs::read_to_string(CHOICE).is_ok_and(|choice| choice.trim() == "tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant() -> bool {
    false
}

impl Pair {
    fn read() -> Pair {
        let bracket = || {
            let before = monotonic_ns();
            let ticks = counter();
            let after = monotonic_ns();
            let width = after - before;
            Pair {
                ticks,
                // The counter was read somewhere in between: the middle halves the largest error.
                ns: before + width / 2,
                doubt_ns: width.div_ceil(2),
            }
        };
        let mut best = bracket();
        for _ in 1..BRACKETS {
            let next = bracket();
            if next.doubt_ns < best.doubt_ns {
                best = next;
            }
        }
        best
    }

    /// The reading taken ahead, unless it is so old that the machine may have been suspended since.
    fn or_ahead(self, ahead: Option<Pair>) -> Pair {
        ahead
            .filter(|ahead| self.ns.saturating_sub(ahead.ns) < CALIBRATION_NS_MAX)
            .unwrap_or(self)
    }

    /// Time still to wait, ns, until the rate between this reading and one like `last` is precise
    /// enough. `None` if it is.
    fn left_ns(self, last: Pair) -> Option<u64> {
        let needed_ns = (self.doubt_ns + last.doubt_ns).saturating_mul(DOUBTS);
        let passed_ns = last.ns.saturating_sub(self.ns);
        needed_ns
            .min(CALIBRATION_NS_MAX)
            .checked_sub(passed_ns)
            .filter(|left_ns| *left_ns > 0)
    }
}

/// A calibration in progress: begin it, set everything up, finish it.
#[derive(Debug)]
pub struct Calibration {
    /// The first reading; `None` if nothing is left to measure.
    first: Option<Pair>,
}

/// A first reading taken ahead of the first phase.
static AHEAD: OnceLock<Pair> = OnceLock::new();

impl Calibration {
    /// Takes a first reading ahead: a phase that begins within a few milliseconds need not wait then until it is precise.
    pub fn ahead() {
        AHEAD.get_or_init(Pair::read);
    }

    /// Takes the first reading.
    pub fn begin() -> Calibration {
        let needed = SCALE.get().is_none() && invariant();
        Calibration {
            first: needed.then(|| Pair::read().or_ahead(AHEAD.get().copied())),
        }
    }

    /// Takes the second reading, waiting until enough time has passed (mostly less than a
    /// millisecond since the first one, and only once per process), and returns a clock whose
    /// origin is now.
    pub fn finish(self) -> FastClock {
        if let Some(first) = self.first {
            let mut last = Pair::read();
            while let Some(left_ns) = first.left_ns(last) {
                sleep_ns(left_ns);
                last = Pair::read();
            }
            let ticks = u128::from(last.ticks.saturating_sub(first.ticks)).max(1);
            let scale = (u128::from(last.ns - first.ns) << SCALE_BITS) / ticks;
            // Another thread may have measured meanwhile. The first result stays: one rate per
            // process keeps phases comparable.
            let _ = SCALE.set(u64::try_from(scale).unwrap_or(u64::MAX));
        }
        FastClock::start()
    }
}

/// A running clock. Copies share origin and rate.
#[derive(Debug, Clone, Copy)]
pub struct FastClock {
    origin: u64,
    scale: u64,
    tsc: bool,
    reference: Pair,
}

impl FastClock {
    /// Calibrates, if that has not been done yet (a millisecond), and starts.
    pub fn calibrated() -> FastClock {
        Calibration::begin().finish()
    }

    /// Starts with the rate known so far: the counter if it was calibrated, else the monotonic
    /// clock.
    fn start() -> FastClock {
        let reference = Pair::read();
        match SCALE.get() {
            Some(&scale) => FastClock {
                origin: reference.ticks,
                scale,
                tsc: true,
                reference,
            },
            None => {
                let scale = 1 << SCALE_BITS;
                FastClock {
                    origin: reference.ns,
                    scale,
                    tsc: false,
                    reference,
                }
            }
        }
    }

    #[inline(always)]
    fn ticks(&self) -> u64 {
        if self.tsc { counter() } else { monotonic_ns() }
    }

    /// Nanoseconds since the origin; 0 before it.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        // 128 bits: ticks times scale overflows 64 bits after a few seconds.
        let ticks = u128::from(self.ticks().saturating_sub(self.origin));
        // Truncation: 2^64 ns are 584 years.
        ((ticks * u128::from(self.scale)) >> SCALE_BITS) as u64
    }

    /// Moves the origin so that it is now `now_ns`.
    pub(crate) fn set(&mut self, now_ns: u64) {
        let ticks = (u128::from(now_ns) << SCALE_BITS) / u128::from(self.scale.max(1));
        // 64 bits of ticks are more than a century on any processor.
        self.origin = self.ticks().saturating_sub(ticks as u64);
    }

    /// `tsc` where the processor's counter is read, else `monotonic`.
    pub fn name(&self) -> &'static str {
        if self.tsc { "tsc" } else { "monotonic" }
    }

    /// Drift between this clock and the monotonic clock since it was started, as a fraction of that
    /// time, beyond what the readings themselves leave in doubt. 0 for the monotonic clock itself.
    pub fn disagreement(&self) -> f64 {
        if !self.tsc {
            return 0.0;
        }
        let now = Pair::read();
        let ticks = u128::from(now.ticks.saturating_sub(self.reference.ticks));
        let ours = (ticks * u128::from(self.scale)) >> SCALE_BITS;
        let theirs = u128::from(now.ns - self.reference.ns);
        let doubt = u128::from(now.doubt_ns + self.reference.doubt_ns);
        let apart = ours.abs_diff(theirs).saturating_sub(doubt);
        apart as f64 / theirs.max(1) as f64
    }
}

/// One thread's readings of a clock; they never go back.
#[derive(Debug)]
pub(crate) struct Readings {
    clock: FastClock,
    last_ns: u64,
    /// Readings that went back and were corrected.
    pub(crate) back: u64,
}

impl Readings {
    pub(crate) fn new(clock: FastClock) -> Readings {
        Readings {
            clock,
            last_ns: 0,
            back: 0,
        }
    }

    /// Goes on from `now_ns`, which is not before the last reading.
    pub(crate) fn set(&mut self, now_ns: u64) {
        self.clock.set(now_ns.max(self.last_ns));
    }

    /// Nanoseconds since the clock's origin, never less than before.
    #[inline(always)]
    pub(crate) fn now_ns(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        if now_ns < self.last_ns {
            self.back += 1;
            return self.last_ns;
        }
        self.last_ns = now_ns;
        now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_advances_and_never_goes_back() {
        let clock = FastClock::calibrated();
        let mut last = clock.now_ns();
        let first = last;
        for _ in 0..100_000 {
            let now = clock.now_ns();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        assert!(last > first);
    }

    #[test]
    fn both_clocks_show_the_same_time() {
        let clock = FastClock::calibrated();
        sleep_ns(20_000_000);
        let apart = clock.disagreement();
        assert!(
            apart < 0.001,
            "{} apart by a share of {apart}",
            clock.name()
        );
    }

    /// The uncertainty of two readings is a small share of the interval, unless a longer wait would
    /// be noticed.
    #[test]
    fn the_interval_grows_with_the_uncertainty_of_the_readings() {
        let pair = |ns, doubt_ns| Pair {
            ticks: 0,
            ns,
            doubt_ns,
        };
        let first = pair(1_000, 20);
        assert_eq!(first.left_ns(pair(1_000, 30)), Some(50 * DOUBTS));
        assert_eq!(first.left_ns(pair(1_000 + 50 * DOUBTS - 1, 30)), Some(1));
        assert_eq!(first.left_ns(pair(1_000 + 50 * DOUBTS, 30)), None);
        let loose = pair(0, 1_000_000);
        assert_eq!(
            loose.left_ns(pair(1, 1_000_000)),
            Some(CALIBRATION_NS_MAX - 1)
        );
        assert_eq!(loose.left_ns(pair(CALIBRATION_NS_MAX, 1_000_000)), None);
    }

    #[test]
    fn a_reading_taken_ahead_counts_until_it_is_old() {
        let pair = |ns| Pair {
            ticks: ns,
            ns,
            doubt_ns: 1,
        };
        let first = |now: u64, ahead| pair(now).or_ahead(ahead).ns;
        assert_eq!(first(1_000_000, Some(pair(7))), 7);
        assert_eq!(first(1_000_000, None), 1_000_000);
        let old = 7 + CALIBRATION_NS_MAX;
        assert_eq!(first(old, Some(pair(7))), old);
    }
}
