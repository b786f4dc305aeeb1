//! When each operation of an open-loop phase is meant to start.
//!
//! An open-loop phase offers operations at times that do not depend on when earlier ones complete.
//! Latency is counted from the *intended* start, so a stall is charged to every operation that
//! waited behind it. A pacer that skips missed starts would report a stalled device as a fast one
//! with a few slow operations ("coordinated omission", G. Tene, "How NOT to Measure Latency").
//!
//! The schedules are pure arithmetic without a clock. Poisson arrivals have their own stream of
//! random numbers, so that a phase does the same operations however it is paced.
//!
//! Units: nanoseconds since the phase began; operations per second.

use stackrace_system::draw::{Draw, unit};

const NS_PER_SECOND: f64 = 1e9;
/// Most Poisson arrivals that are counted one by one. More are estimated from the rate; the error
/// is then below one in a thousand.
const COUNTED_MAX: u64 = 10_000_000;

/// The intended starts of one worker's share of the phase's arrivals.
#[derive(Debug, Clone)]
pub struct Schedule {
    kind: ArrivalKind,
    next_ns: f64,
}

#[derive(Debug, Clone)]
enum ArrivalKind {
    /// Arrival `index` of this worker is number `worker + index * workers` of the phase.
    Fixed {
        gap_ns: f64,
        first_ns: f64,
        index: u64,
    },
    /// Exponential gaps with this mean. Independent Poisson streams add up to a Poisson stream.
    Poisson { mean_ns: f64, draw: Draw },
}

impl Schedule {
    /// Evenly spaced arrivals, `per_second` over all `workers`; this is the share of `worker`.
    pub fn fixed(per_second: f64, worker: u32, workers: u32) -> Schedule {
        let gap = gap_ns(per_second);
        let first_ns = f64::from(worker) * gap;
        let gap_ns = gap * f64::from(workers);
        Schedule {
            kind: ArrivalKind::Fixed {
                gap_ns,
                first_ns,
                index: 0,
            },
            next_ns: first_ns,
        }
    }

    /// Poisson arrivals, `per_second` on average over all `workers`; `draw` is this worker's own.
    pub fn poisson(per_second: f64, workers: u32, mut draw: Draw) -> Schedule {
        let mean_ns = gap_ns(per_second) * f64::from(workers);
        let next_ns = exponential(mean_ns, draw.bits());
        let kind = ArrivalKind::Poisson { mean_ns, draw };
        Schedule { kind, next_ns }
    }

    /// The intended start of the next operation, rounded up to a nanosecond.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        // Rounded up, so that an operation issued then is never early. Saturates at 584 years.
        self.next_ns.ceil() as u64
    }

    /// Advances to the next operation.
    #[inline]
    pub fn advance(&mut self) {
        match &mut self.kind {
            ArrivalKind::Fixed {
                gap_ns,
                first_ns,
                index,
            } => {
                *index += 1;
                // By multiplication, not by adding up: rounding errors do not accumulate.
                self.next_ns = *first_ns + *index as f64 * *gap_ns;
            }
            ArrivalKind::Poisson { mean_ns, draw } => {
                self.next_ns += exponential(*mean_ns, draw.bits());
            }
        }
    }

    /// Number of operations, from the next one on, that should start before `until_ns`.
    pub fn due_before(mut self, until_ns: u64) -> u64 {
        // Starts are rounded up to whole nanoseconds, so the last one that counts is `until_ns -
        // 1`.
        let Some(last_ns) = until_ns.checked_sub(1).map(|last_ns| last_ns as f64) else {
            return 0;
        };
        let gaps = |from_ns: f64, gap_ns: f64| ((last_ns - from_ns) / gap_ns).max(0.0) as u64;
        match self.kind {
            _ if self.next_ns > last_ns => 0,
            ArrivalKind::Fixed { gap_ns, .. } => 1 + gaps(self.next_ns, gap_ns),
            ArrivalKind::Poisson { mean_ns, .. } => {
                for counted in 0..COUNTED_MAX {
                    if self.next_ns > last_ns {
                        return counted;
                    }
                    self.advance();
                }
                COUNTED_MAX + gaps(self.next_ns, mean_ns)
            }
        }
    }
}

/// Time between two arrivals, at most the 584 years that 64 bits of nanoseconds hold. An infinite
/// gap multiplied by zero would not be a number.
fn gap_ns(per_second: f64) -> f64 {
    (NS_PER_SECOND / per_second).min(u64::MAX as f64)
}

/// An exponentially distributed number with this mean, by inversion. `random` is uniform.
pub(crate) fn exponential(mean: f64, random: u64) -> f64 {
    // 1 - [0, 1) is never zero, whose logarithm would be infinite.
    -(1.0 - unit(random)).ln() * mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All workers together offer exactly the arrivals of one worker at the full rate.
        #[test]
        fn shares_add_up(per_second in 0.5f64..2e6, workers in 1u32..20) {
            let mut shares: Vec<Schedule> =
                (0..workers).map(|w| Schedule::fixed(per_second, w, workers)).collect();
            for number in 0..200u32 {
                let share = &mut shares[(number % workers) as usize];
                let expected = f64::from(number) * 1e9 / per_second;
                prop_assert!((share.next_ns() as f64 - expected).abs() <= 1.001,
                    "arrival {number}: {} instead of {expected}", share.next_ns());
                share.advance();
            }
        }

        /// Counting due operations gives the same number as advancing to the end.
        #[test]
        fn counting_due_operations_equals_stepping_through_them(
            per_second in 0.5f64..2e6, worker in 0u32..4, passed in 0u32..50, until in 0u64..2_000_000, seed: u64,
        ) {
            let poisson = Schedule::poisson(per_second, 4, Draw::new(seed, 0));
            for mut schedule in [Schedule::fixed(per_second, worker, 4), poisson] {
                for _ in 0..passed {
                    schedule.advance();
                }
                let counted = schedule.clone().due_before(until);
                let mut walked = 0;
                while schedule.next_ns() < until {
                    schedule.advance();
                    walked += 1;
                }
                prop_assert_eq!(counted, walked);
            }
        }

        /// Starts ascend, whatever numbers are drawn.
        #[test]
        fn starts_never_go_back(per_second in 0.5f64..2e6, seed: u64) {
            let mut schedule = Schedule::poisson(per_second, 3, Draw::new(seed, 0));
            for _ in 0..100 {
                let before = schedule.next_ns();
                schedule.advance();
                prop_assert!(schedule.next_ns() >= before);
            }
        }
    }

    /// Found by fuzzing: an infinite gap times zero was not a number, and the next start was at 0.
    #[test]
    fn a_tiny_rate_never_goes_back() {
        for mut schedule in [
            Schedule::fixed(1e-300, 3, 4),
            Schedule::poisson(1e-300, 4, Draw::new(1, 0)),
        ] {
            let mut before = 0;
            for _ in 0..4 {
                assert!(schedule.next_ns() >= before);
                before = schedule.next_ns();
                schedule.advance();
            }
        }
    }

    /// Every number is allowed, the ends of the range too.
    #[test]
    fn no_gap_is_infinite_or_negative() {
        assert_eq!(exponential(1.0, 0), 0.0);
        assert!((36.0..37.0).contains(&exponential(1.0, u64::MAX)));
    }

    /// The largest distance between the gaps' distribution and 1 - exp(-t / mean), against the
    /// critical value of Kolmogorov and Smirnov at 1 % (1.63 / sqrt(n)); the seed is fixed.
    #[test]
    fn poisson_gaps_are_exponential() {
        let mut schedule = Schedule::poisson(1_000.0, 1, Draw::new(7, 0));
        let mut last_ns = 0;
        let mut gaps: Vec<f64> = Vec::new();
        for _ in 0..100_000 {
            gaps.push((schedule.next_ns() - last_ns) as f64);
            last_ns = schedule.next_ns();
            schedule.advance();
        }
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        assert!((mean - 1e6).abs() < 1e4, "mean {mean}");
        let apart = |(rank, gap): (usize, &f64)| {
            let expected = 1.0 - (-gap / 1e6).exp();
            let (below, above) = (rank as f64 / count, (rank + 1) as f64 / count);
            (expected - below).abs().max((above - expected).abs())
        };
        let distance = gaps.iter().enumerate().map(apart).fold(0.0, f64::max);
        assert!(distance < 1.63 / count.sqrt(), "{distance}");
    }

    /// Independent gaps: the variance of the number of arrivals in equal times equals its mean.
    #[test]
    fn the_variance_of_poisson_counts_is_their_mean() {
        let mut schedule = Schedule::poisson(1_000.0, 1, Draw::new(3, 0));
        let counts: Vec<f64> = (1..=10_000u64)
            .map(|window| {
                let mut count = 0;
                while schedule.next_ns() < window * 10_000_000 {
                    schedule.advance();
                    count += 1;
                }
                f64::from(count)
            })
            .collect();
        let windows = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / windows;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / windows;
        assert!((variance / mean - 1.0).abs() < 0.05, "{variance} / {mean}");
    }

    /// The reason for this file: after a stall of one second, one second's worth of operations is
    /// due, and the first of them has waited the whole second.
    #[test]
    fn a_stall_is_charged_in_full() {
        let mut schedule = Schedule::fixed(1_000.0, 0, 1);
        while schedule.next_ns() <= 5_000_000_000 {
            schedule.advance();
        }
        let first_missed = schedule.next_ns();
        let woke_at = 6_000_000_000;
        let mut owed = 0;
        while schedule.next_ns() <= woke_at {
            owed += 1;
            schedule.advance();
        }
        assert_eq!(owed, 1_000);
        assert_eq!(woke_at - first_missed, 999_000_000);
    }
}
