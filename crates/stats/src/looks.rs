//! After which rounds a study may look at its results and stop: after each, from the third on.
//!
//! Looking after every round with the plain 95 % interval finds a "difference" between two identical
//! configurations in about a quarter of all studies of 20 rounds. So each look has a level of its
//! own, much smaller than the error of the study, and the table in `levels.rs` says which: with it, a
//! t statistic is beyond its level at *any* look, however many there are, with the probability that
//! the study allows.
//!
//! The level is the same for the looks at 3 to 20 rounds. Beyond that it falls with the number of
//! rounds to the power 1.5. So the sum over all looks stays finite, and nothing about their number
//! has to be fixed in advance: a study may stop at any look, for any reason, and a study that
//! stopped may go on.
//!
//! The table was integrated (`bench/boundary`): the t statistic of a normal sample is a Markov
//! chain, so the probability of ever being beyond the levels takes one integral for each round.

use crate::levels::LEVELS;
use libm::{exp, log as ln, pow};

/// Complete rounds at the first look: two differences say nothing of their spread.
pub const FIRST_LOOK: u32 = 3;

/// Last round up to which all looks have the same level.
const EQUAL_UNTIL: u32 = 20;

/// Speed at which the levels fall beyond that: with this power of the number of rounds.
const FALL: f64 = 1.5;

/// Factor for the error of the interpolation between two rows of the table, to the safe side.
const CAUTION: f64 = 0.995;

/// The sum of the weights of all looks is below this: 18 + 20^1.5 · 2 / √20.
const WEIGHTS: f64 = 58.0;

/// The level of the look after `n` rounds, relative to that of the first.
pub fn weight(n: u32) -> f64 {
    pow((f64::from(EQUAL_UNTIL) / f64::from(n)).min(1.0), FALL)
}

/// The level of a two-sided statement (there is a difference; an interval) at the look after `n`
/// rounds, such that it is wrong at any look of a study with a probability of at most `alpha`.
pub fn two_sided_level(alpha: f64, n: u32) -> f64 {
    weight(n) * first_level(alpha, |row| row.1)
}

/// The same for a statement to one side: it is not larger, not smaller, than a limit.
pub fn one_sided_level(alpha: f64, n: u32) -> f64 {
    weight(n) * first_level(alpha, |row| row.2)
}

/// The level of the first look, from the table, between two rows on logarithmic scales.
fn first_level(alpha: f64, error: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let first = LEVELS.iter().position(|row| error(row) <= alpha);
    match first {
        // More error than any row stands for: the largest level there is.
        Some(0) => LEVELS[0].0,
        Some(at) => {
            let (above, below) = (&LEVELS[at - 1], &LEVELS[at]);
            let span = ln(error(above)) - ln(error(below));
            let share = (ln(alpha) - ln(error(below))) / span;
            let level = ln(below.0) + share * (ln(above.0) - ln(below.0));
            CAUTION * exp(level)
        }
        // Less than the last row: shared by all looks, as if none had anything to do with another.
        None => alpha / WEIGHTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_are_equal_at_first_and_fall_later() {
        assert_eq!(two_sided_level(0.05, 3), two_sided_level(0.05, 20));
        let quarter = two_sided_level(0.05, 80) / two_sided_level(0.05, 20);
        assert!((quarter - 1.0 / 8.0).abs() < 1e-12);
        assert!(one_sided_level(0.05, 21) < one_sided_level(0.05, 20));
    }

    /// Two directions leave less for each; less error allowed means a smaller level.
    #[test]
    fn a_level_is_a_part_of_the_error_and_grows_with_it() {
        let mut before = (0.0, 0.0);
        for step in 1..1_000 {
            let alpha = 0.9 * 0.97_f64.powi(1_000 - step);
            let (two, one) = (two_sided_level(alpha, 3), one_sided_level(alpha, 3));
            assert!(two >= before.0 && one >= before.1, "{alpha}");
            assert!(
                0.0 < two && two < alpha && two <= one && one < alpha,
                "{alpha}"
            );
            assert!(2.0 * one >= two, "{alpha}");
            before = (two, one);
        }
    }

    /// Every row of the table is its own answer, but for the caution.
    #[test]
    fn the_rows_of_the_table_are_kept() {
        for (level, two, one) in &LEVELS[1..] {
            assert!((two_sided_level(*two, 3) / level / CAUTION - 1.0).abs() < 1e-9);
            assert!((one_sided_level(*one, 3) / level / CAUTION - 1.0).abs() < 1e-9);
        }
    }
}
