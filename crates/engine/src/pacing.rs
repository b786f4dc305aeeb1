//! When each operation of an open-loop phase is meant to start.
//!
//! An open-loop phase offers operations at times that do not depend on how soon earlier ones
//! complete, and latency is counted from the *intended* start. A stall is thus charged to every
//! operation that waited behind it. A pacer that skips the starts it missed would report a
//! stalled device as a fast one with a few slow operations ("coordinated omission", G. Tene,
//! "How NOT to Measure Latency").
//!
//! The schedules are arithmetic only: no clock, no randomness of their own. The engine passes in
//! what it has read or drawn; the tests pass in what they made up.
//!
//! Units: nanoseconds since the phase began; operations per second.

use rustix::thread::NanosleepRelativeResult;
use rustix::time::Timespec;

const NS_PER_SECOND: f64 = 1e9;

/// The intended starts of one worker's operations, its share of the whole phase's arrivals.
#[derive(Debug, Clone)]
pub struct Schedule {
    kind: Kind,
    next_ns: f64,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Arrival `index` of this worker is number `worker + index * workers` of the phase.
    Fixed {
        gap_ns: f64,
        first_ns: f64,
        index: u64,
    },
    /// Exponential gaps with this mean. Independent Poisson streams add up to a Poisson stream.
    Poisson { mean_ns: f64 },
}

impl Schedule {
    /// Evenly spaced arrivals, `per_second` over all `workers`; this is the share of `worker`.
    pub fn fixed(per_second: f64, worker: u32, workers: u32) -> Schedule {
        let gap = gap_ns(per_second);
        let first_ns = f64::from(worker) * gap;
        let gap_ns = gap * f64::from(workers);
        Schedule {
            kind: Kind::Fixed {
                gap_ns,
                first_ns,
                index: 0,
            },
            next_ns: first_ns,
        }
    }

    /// Poisson arrivals, `per_second` on average over all `workers`. `random` starts the stream.
    pub fn poisson(per_second: f64, workers: u32, random: u64) -> Schedule {
        let mean_ns = gap_ns(per_second) * f64::from(workers);
        let kind = Kind::Poisson { mean_ns };
        Schedule {
            kind,
            next_ns: exponential(mean_ns, random),
        }
    }

    /// When the next operation is meant to start: the first whole nanosecond not before it.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        // Rounded up, so that an operation issued then is never early. Saturates at 584 years.
        self.next_ns.ceil() as u64
    }

    /// Goes on to the following operation. `random` is used by Poisson arrivals only.
    #[inline]
    pub fn advance(&mut self, random: u64) {
        match &mut self.kind {
            Kind::Fixed {
                gap_ns,
                first_ns,
                index,
            } => {
                *index += 1;
                // By multiplication, not by adding up: rounding errors do not accumulate.
                self.next_ns = *first_ns + *index as f64 * *gap_ns;
            }
            Kind::Poisson { mean_ns } => self.next_ns += exponential(*mean_ns, random),
        }
    }

    /// Whether `advance` needs a random number.
    pub fn is_random(&self) -> bool {
        matches!(self.kind, Kind::Poisson { .. })
    }
}

/// Time between two arrivals. Of a rate so low that it would be endless, the 584 years a schedule
/// can say: with an infinite gap, a start could be no number.
fn gap_ns(per_second: f64) -> f64 {
    (NS_PER_SECOND / per_second).min(u64::MAX as f64)
}

/// An exponentially distributed number with this mean, by inversion. `random` is uniform.
fn exponential(mean: f64, random: u64) -> f64 {
    // (0, 1]: zero would give infinity.
    let uniform = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln() * mean
}

/// Gives the processor away for about this long. Returns early if a signal arrives.
pub(crate) fn sleep_ns(ns: u64) {
    let request = Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    match rustix::thread::nanosleep(&request) {
        // Whoever waits reads the clock again: neither an interruption nor a refusal makes an
        // operation start early.
        NanosleepRelativeResult::Ok
        | NanosleepRelativeResult::Interrupted(_)
        | NanosleepRelativeResult::Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All workers together offer exactly the arrivals of one worker with the whole rate.
        #[test]
        fn shares_add_up(per_second in 0.5f64..2e6, workers in 1u32..20) {
            let mut shares: Vec<Schedule> =
                (0..workers).map(|w| Schedule::fixed(per_second, w, workers)).collect();
            for number in 0..200u32 {
                let share = &mut shares[(number % workers) as usize];
                let expected = f64::from(number) * 1e9 / per_second;
                prop_assert!((share.next_ns() as f64 - expected).abs() <= 1.001,
                    "arrival {number}: {} instead of {expected}", share.next_ns());
                share.advance(0);
            }
        }

        /// Time does not run backwards, whatever is drawn.
        #[test]
        fn starts_ascend(per_second in 0.5f64..2e6, draws in prop::collection::vec(any::<u64>(), 1..100)) {
            let mut schedule = Schedule::poisson(per_second, 3, draws[0]);
            for draw in draws {
                let before = schedule.next_ns();
                schedule.advance(draw);
                prop_assert!(schedule.next_ns() >= before);
            }
        }
    }

    /// Found by fuzzing: an endless gap times nothing was no number, and the next start was at 0.
    #[test]
    fn a_rate_of_almost_nothing_does_not_go_back() {
        for mut schedule in [
            Schedule::fixed(1e-300, 3, 4),
            Schedule::poisson(1e-300, 4, 0),
        ] {
            let mut before = 0;
            for draw in [0, u64::MAX, 1, u64::MAX] {
                assert!(schedule.next_ns() >= before);
                before = schedule.next_ns();
                schedule.advance(draw);
            }
        }
    }

    #[test]
    fn poisson_gaps_have_the_asked_mean_and_spread() {
        let mut draw = crate::draw::Draw::new(7, 0);
        let mut schedule = Schedule::poisson(1_000.0, 1, draw.bits());
        let mut last = schedule.next_ns();
        let (mut sum, mut squares) = (0.0, 0.0);
        let count = 200_000;
        for _ in 0..count {
            schedule.advance(draw.bits());
            let gap = (schedule.next_ns() - last) as f64;
            last = schedule.next_ns();
            sum += gap;
            squares += gap * gap;
        }
        let mean = sum / f64::from(count);
        let deviation = (squares / f64::from(count) - mean * mean).sqrt();
        assert!((mean - 1e6).abs() < 1e4, "mean {mean}");
        assert!(
            (deviation - 1e6).abs() < 2e4,
            "standard deviation {deviation}"
        );
    }

    /// The reason this file exists: a device that stands still for one second owes a second's
    /// worth of operations, and the first of them has waited the whole second.
    #[test]
    fn a_stall_is_owed_in_full() {
        let mut schedule = Schedule::fixed(1_000.0, 0, 1);
        while schedule.next_ns() <= 5_000_000_000 {
            schedule.advance(0);
        }
        let first_missed = schedule.next_ns();
        let woke_at = 6_000_000_000;
        let mut owed = 0;
        while schedule.next_ns() <= woke_at {
            owed += 1;
            schedule.advance(0);
        }
        assert_eq!(owed, 1_000);
        assert_eq!(woke_at - first_missed, 999_000_000);
    }
}
