//! The time that a run may take, and whether a further round fits into it.

use stackrace_base::unit;
use stackrace_stats::FIRST_LOOK;

/// A round may end so much later than the time allowed, as a share of it: how long it takes is an
/// estimate, and the time left over would be of no use.
const TIME_TOLERANCE: f64 = 0.03;
/// The same for the round that makes the first verdict possible: without it all others are of little use.
const FIRST_TIME_TOLERANCE: f64 = 0.10;

/// Rounds from which on their times say how much these differ.
const SPREAD_FROM: usize = 3;
/// Standard deviations by which a round may be longer than the mean of those before: about one of fifteen is longer.
const SPREADS: f64 = 1.5;

/// What is known of the time of a run before a round.
#[derive(Debug, Clone)]
pub(super) struct TimeLeft {
    /// Time allowed, s.
    pub(super) allowed_s: f64,
    /// Time spent, s.
    pub(super) spent_s: f64,
    /// How long each complete round took, s.
    pub(super) rounds_s: Vec<f64>,
    /// Time of the trials of the first round alone, s, where it also set up stacks and laid out data that stay; `None` if
    /// each round does that.
    pub(super) first_trials_s: Option<f64>,
}

/// How the next round fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextRound {
    /// It ends in time.
    Fits,
    /// It ends late, and is worth it: what is said before it begins.
    Late(String),
    /// It must not begin: why.
    TooLate(String),
}

impl TimeLeft {
    /// How long the next round takes, s, as far as measured rounds tell; `None` before the first one.
    fn expected_s(&self) -> Option<f64> {
        let first = *self.rounds_s.first()?;
        let typical = match (self.first_trials_s, &self.rounds_s[1..]) {
            (Some(trials), []) => return Some(trials.min(first)),
            (Some(_), more) => more,
            (None, _) => &self.rounds_s[..],
        };
        let mean = stackrace_stats::mean(typical);
        let spread = match typical.len() >= SPREAD_FROM {
            true => SPREADS * stackrace_stats::variance(typical).sqrt(),
            false => 0.0,
        };
        // Storage that gets slower gets slower still.
        typical.last().map(|last| last.max(mean + spread))
    }

    /// How the next round fits.
    pub(super) fn next(&self) -> NextRound {
        let left = self.allowed_s - self.spent_s;
        let Some(expected) = self.expected_s() else {
            // How long a round takes is not known before one is done.
            return match left > 0.0 {
                true => NextRound::Fits,
                false => NextRound::TooLate("the time allowed is over".to_owned()),
            };
        };
        let late = expected - left;
        if late <= self.allowed_s * TIME_TOLERANCE {
            return NextRound::Fits;
        }
        let round = self.rounds_s.len() as u32 + 1;
        if round == FIRST_LOOK && late <= self.allowed_s * FIRST_TIME_TOLERANCE {
            return NextRound::Late(format!(
                "round {round} ends about {} after the time allowed: there is no verdict without it",
                unit::long_time(late)
            ));
        }
        let verdict = match round <= FIRST_LOOK {
            true => format!("; the first verdict needs {FIRST_LOOK} rounds"),
            false => String::new(),
        };
        NextRound::TooLate(format!(
            "another round takes about {}, and {} of the time allowed are left{verdict}",
            unit::long_time(expected),
            unit::long_time(left.max(0.0))
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(allowed_s: f64, rounds_s: &[f64]) -> NextRound {
        let time = TimeLeft {
            allowed_s,
            spent_s: rounds_s.iter().sum(),
            rounds_s: rounds_s.to_vec(),
            first_trials_s: None,
        };
        time.next()
    }

    #[test]
    fn a_round_that_fits_is_measured_whether_or_not_a_verdict_can_follow() {
        // 90 s, of which one round took 38 s: the second one fits, and a third one does not.
        assert_eq!(after(90.0, &[38.0]), NextRound::Fits);
        let NextRound::TooLate(why) = after(90.0, &[38.0, 38.0]) else {
            panic!("a third round of 38 s in 14 s");
        };
        assert_eq!(
            why,
            "another round takes about 38 s, and 14 s of the time allowed are left; the first verdict needs 3 rounds"
        );
        let late = "round 3 ends about 5 s after the time allowed: there is no verdict without it";
        assert_eq!(after(85.0, &[30.0, 30.0]), NextRound::Late(late.to_owned()));
        assert!(matches!(after(85.0, &[22.5; 3]), NextRound::TooLate(_)));
    }

    #[test]
    fn the_layout_of_data_that_stay_is_no_part_of_the_next_round() {
        let time = TimeLeft {
            allowed_s: 60.0,
            spent_s: 40.0,
            rounds_s: vec![40.0],
            first_trials_s: Some(12.0),
        };
        assert_eq!(time.next(), NextRound::Fits);
        assert_eq!(time.expected_s(), Some(12.0));
    }

    /// Rounds whose times vary by a tenth, on a clock that is made up.
    #[test]
    fn limits_are_kept_and_used() {
        // Any spread of numbers does: each round takes another share of its typical time.
        let mut state = 1_u64;
        let mut varied = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            0.9 + 0.2 * (state >> 40) as f64 / (1 << 24) as f64
        };
        let (mut kept, mut runs) = (0, 0);
        for rounds in 4..40 {
            for allowed_s in [20.0, 60.0, 90.0, 600.0] {
                let typical = allowed_s / (f64::from(rounds) + varied() - 0.9);
                let mut time = TimeLeft {
                    allowed_s,
                    spent_s: 0.0,
                    rounds_s: Vec::new(),
                    first_trials_s: None,
                };
                while !matches!(time.next(), NextRound::TooLate(_)) {
                    let round = typical * varied();
                    time.spent_s += round;
                    time.rounds_s.push(round);
                }
                runs += 1;
                kept += u32::from(time.spent_s <= allowed_s * 1.03);
                // What is left is less than a round that is as long as they may become.
                assert!(allowed_s - time.spent_s < typical * 1.2, "{time:?}");
                assert!(time.spent_s <= allowed_s * 1.08, "{time:?}");
            }
        }
        assert!(kept * 100 >= runs * 95, "{kept} of {runs}");
    }

    /// As in virtual time, where each round draws how its disks and its start are: one of them took 24 s.
    #[test]
    fn a_round_does_not_begin_that_may_be_as_long_as_others_were() {
        assert!(matches!(
            after(90.0, &[22.7, 17.1, 16.8, 17.0]),
            NextRound::TooLate(_)
        ));
        assert_eq!(after(97.0, &[17.1, 16.8, 17.0, 16.9]), NextRound::Fits);
    }
}
