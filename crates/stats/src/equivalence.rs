//! Classifies an interval: better, worse, no difference that matters, or undecided.
//!
//! "No difference" needs proof like any other claim. An interval that merely includes 1 proves
//! nothing: it may be wide after two rounds. The claim holds when the whole interval lies inside
//! the margin, which the user declared irrelevant. This file also estimates how many more rounds an
//! undecided interval needs.

use crate::interval::{Ratio, all_finite, is_level, mean, t_quantile, variance};

/// The result of a comparison of a ratio "B over A", oriented so that above 1 means B is better.
///
/// All numbers are fractions of A: 0.12 is 12 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Classification {
    /// B is better: above A by at least `low - 1` and at most `high - 1`.
    Better {
        /// The smallest improvement the interval allows.
        at_least: f64,
        /// The largest.
        at_most: f64,
    },
    /// B is worse: below A by at least `1 - high` and at most `1 - low`.
    Worse {
        /// The smallest loss the interval allows.
        at_least: f64,
        /// The largest.
        at_most: f64,
    },
    /// The whole interval lies in `[1 / (1 + margin), 1 + margin]`.
    NoDifference {
        /// There is no difference larger than this: `max(|low - 1|, |high - 1|)`.
        larger_than: f64,
    },
    /// The interval allows both 1 and a difference that matters.
    Undecided,
}

/// Classifies an interval, with the margin as a fraction (0.05 is 5 %).
///
/// An interval that excludes 1 but lies within the margin is [`Classification::NoDifference`]: a
/// proven difference, but one that does not matter.
pub fn classify(ratio: &Ratio, margin: f64) -> Classification {
    let Ratio { low, high, .. } = *ratio;
    if low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin {
        return Classification::NoDifference {
            larger_than: (low - 1.0).abs().max((high - 1.0).abs()),
        };
    }
    if low > 1.0 {
        Classification::Better {
            at_least: low - 1.0,
            at_most: high - 1.0,
        }
    } else if high < 1.0 {
        Classification::Worse {
            at_least: 1.0 - high,
            at_most: 1.0 - low,
        }
    } else {
        Classification::Undecided
    }
}

/// Largest projection; it means "this many rounds or more".
pub const ROUNDS_MAX: u32 = 10_000;

/// How many rounds in total would decide, if mean d̄ and deviation s of the log differences
/// stayed as they are: the smallest n with
/// `t(n−1, 1−alpha/2) · s / √n < max(|d̄|, ln(1+margin) − |d̄|)`.
///
/// The first distance is what excludes 1, the second what fits the interval into the margin;
/// either decides. `alpha` is that of one look. This is a projection, not a promise: with few
/// rounds, d̄ and s themselves are rough guesses. At most [`ROUNDS_MAX`], which stands for "or
/// more"; `None` while s is unknown (fewer than two rounds, or values that are not finite).
///
/// Example: d̄ = 0.01, s = 0.03, margin 5 %, alpha 0.01. The margin is 0.0488 − 0.01 = 0.0388
/// away: 8 rounds (3.50 · 0.03 / √8 = 0.0371), not 7 (3.71 · 0.03 / √7 = 0.0420).
pub fn rounds_to_decide(log_differences: &[f64], alpha: f64, margin: f64) -> Option<u32> {
    if log_differences.len() < 2 || !is_level(alpha) || !all_finite(log_differences) {
        return None;
    }
    let effect = mean(log_differences).abs();
    let deviation = variance(log_differences).sqrt();
    let distance = effect.max(margin.ln_1p() - effect);
    Some(rounds_until(deviation, alpha, distance))
}

/// How many rounds in total would show on which side of a ratio the truth lies, if the mean log
/// difference `effect` and the standard deviation `deviation` stayed as they are: the smallest n
/// with `t(n−1, 1−alpha/2) · s / √n < |d̄ − ln(ratio)|`.
///
/// For two sides that are no pairs, the deviation is the root of the sum of their variances and n
/// the rounds on each; that is a little too many, for the degrees of freedom are those of one side.
/// At most [`ROUNDS_MAX`], which stands for "or more"; `None` while the deviation is unknown.
///
/// Example: d̄ = 0, s = 0.03, ratio 0.95, alpha 0.01. ln 0.95 is 0.0513 away: 6 rounds
/// (4.03 · 0.03 / √6 = 0.0494), not 5 (4.60 · 0.03 / √5 = 0.0618).
pub fn rounds_to_exclude(effect: f64, deviation: f64, alpha: f64, ratio: f64) -> Option<u32> {
    let distance = (effect - ratio.ln()).abs();
    let usable = deviation.is_finite() && deviation >= 0.0 && distance.is_finite();
    (usable && is_level(alpha)).then(|| rounds_until(deviation, alpha, distance))
}

/// The smallest n, of at least 2, whose half-width is below the distance; at most [`ROUNDS_MAX`].
fn rounds_until(deviation: f64, alpha: f64, distance: f64) -> u32 {
    // The half-width shrinks with every round, so the first n that decides can be bisected.
    let (mut first, mut last) = (2, ROUNDS_MAX);
    while first < last {
        let middle = first.midpoint(last);
        if half_width(deviation, middle, alpha) < distance {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    first
}

/// The smallest ratio above 1 that `n` rounds can tell from 1, where the log differences have
/// the standard deviation `sd`: `exp(t(n−1, 1−alpha/2) · sd / √n)`.
///
/// A true ratio of this size is found in about half of all such studies, a larger one more
/// often. `None` with fewer than two rounds or without a usable `sd`.
pub fn detectable(sd: f64, n: u32, alpha: f64) -> Option<f64> {
    if n < 2 || !sd.is_finite() || sd < 0.0 || !is_level(alpha) {
        return None;
    }
    // A huge deviation would overflow to infinity, which JSON cannot hold.
    Some(half_width(sd, n, alpha).exp().min(f64::MAX))
}

/// Half the width of the t interval of `n` log differences with standard deviation `sd`.
fn half_width(sd: f64, n: u32, alpha: f64) -> f64 {
    let n = f64::from(n);
    t_quantile(1.0 - alpha / 2.0, n - 1.0) * sd / n.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: f64, high: f64) -> Ratio {
        let estimate = (low * high).sqrt();
        Ratio {
            estimate,
            low,
            high,
        }
    }

    /// The example in the documentation, and an effect that lies on the ratio itself.
    #[test]
    fn a_ratio_far_away_is_excluded_after_fewer_rounds() {
        assert_eq!(rounds_to_exclude(0.0, 0.03, 0.01, 0.95), Some(6));
        assert_eq!(rounds_to_exclude(0.1, 0.03, 0.01, 0.95), Some(4));
        assert_eq!(
            rounds_to_exclude(0.95_f64.ln(), 0.03, 0.01, 0.95),
            Some(ROUNDS_MAX)
        );
        assert_eq!(rounds_to_exclude(0.0, f64::NAN, 0.01, 0.95), None);
    }

    #[track_caller]
    fn same(got: Classification, expected: Classification) {
        let numbers = |word| match word {
            Classification::Better { at_least, at_most } => (1, at_least, at_most),
            Classification::Worse { at_least, at_most } => (2, at_least, at_most),
            Classification::NoDifference { larger_than } => (3, larger_than, 0.0),
            Classification::Undecided => (4, 0.0, 0.0),
        };
        let (got, expected) = (numbers(got), numbers(expected));
        assert_eq!(got.0, expected.0);
        assert!((got.1 - expected.1).abs() < 1e-12 && (got.2 - expected.2).abs() < 1e-12);
    }

    #[test]
    fn each_interval_has_one_classification() {
        let cases = [
            (
                1.10,
                1.20,
                Classification::Better {
                    at_least: 0.10,
                    at_most: 0.20,
                },
            ),
            (
                0.70,
                0.90,
                Classification::Worse {
                    at_least: 0.10,
                    at_most: 0.30,
                },
            ),
            (
                0.97,
                1.02,
                Classification::NoDifference { larger_than: 0.03 },
            ),
            // Includes 1 and more than the margin on one side, then on both.
            (0.99, 1.06, Classification::Undecided),
            (0.80, 1.30, Classification::Undecided),
            // Excludes 1 and reaches beyond the margin: the difference is the news.
            (
                1.01,
                1.08,
                Classification::Better {
                    at_least: 0.01,
                    at_most: 0.08,
                },
            ),
            // Excludes 1 within the margin: a difference that was declared not to matter.
            (
                1.01,
                1.04,
                Classification::NoDifference { larger_than: 0.04 },
            ),
            (
                0.96,
                0.99,
                Classification::NoDifference { larger_than: 0.04 },
            ),
            // Touching 1 is not excluding it.
            (1.00, 1.20, Classification::Undecided),
            (0.80, 1.00, Classification::Undecided),
        ];
        for (low, high, expected) in cases {
            same(classify(&between(low, high), 0.05), expected);
        }
    }

    /// 1/1.05 is 0.952: the lower end of the margin is where B slower by as much as A would be
    /// faster, so exchanging the two never changes the word.
    #[test]
    fn the_margin_is_a_ratio_and_includes_its_ends() {
        let ends = between(1.0 / 1.05, 1.05);
        same(
            classify(&ends, 0.05),
            Classification::NoDifference { larger_than: 0.05 },
        );
        same(
            classify(&between(0.951, 1.0), 0.05),
            Classification::Undecided,
        );
        same(
            classify(&between(1.0, 1.0), 0.0),
            Classification::NoDifference { larger_than: 0.0 },
        );
    }

    /// ln(1.05) = 0.048790; the worked example of the documentation, then s scaled by 2.
    #[test]
    fn rounds_that_decide() {
        let around = |centre: f64, deviation: f64| {
            let step = deviation * (3.0_f64 / 4.0).sqrt();
            [centre - step, centre + step, centre - step, centre + step]
        };
        assert_eq!(rounds_to_decide(&around(0.01, 0.03), 0.01, 0.05), Some(8));
        assert_eq!(rounds_to_decide(&around(-0.01, 0.03), 0.01, 0.05), Some(8));
        // Far from 1: excluding it is the nearer goal, 4.604 · 0.03 / √5 = 0.0618 < 0.08.
        assert_eq!(rounds_to_decide(&around(0.08, 0.03), 0.01, 0.05), Some(5));
        // Halfway to the margin is the worst place: 0.0244 from either goal.
        assert!(rounds_to_decide(&around(0.0244, 0.03), 0.01, 0.05) > Some(12));
    }

    #[test]
    fn projections_have_limits() {
        assert_eq!(rounds_to_decide(&[0.1], 0.05, 0.05), None);
        assert_eq!(rounds_to_decide(&[0.1, f64::NAN], 0.05, 0.05), None);
        assert_eq!(rounds_to_decide(&[-9.0, 9.0], 0.05, 0.05), Some(ROUNDS_MAX));
        assert_eq!(rounds_to_decide(&[-1.0, 1.0], 0.05, 0.0), Some(ROUNDS_MAX));
        assert_eq!(rounds_to_decide(&[0.1, 0.1], 0.05, 0.05), Some(2));
        assert_eq!(detectable(0.03, 1, 0.05), None);
        assert_eq!(detectable(f64::NAN, 5, 0.05), None);
        assert_eq!(detectable(-0.1, 5, 0.05), None);
        assert_eq!(detectable(0.0, 5, 0.05), Some(1.0));
    }

    /// methodology: with s = 3 % and five looks, half-widths of 17, 6.2, 3.7, 2.7 and 1.9 %.
    #[test]
    fn the_detectable_difference_shrinks_as_documented() {
        let documented = [(3, 5.73), (5, 2.06), (8, 1.24), (12, 0.90), (20, 0.64)];
        for (n, multiple) in documented {
            let ratio = detectable(0.03, n, 0.01).unwrap();
            assert!(
                (ratio.ln() / 0.03 - multiple).abs() < 0.0051,
                "{n}: {ratio}"
            );
        }
    }
}
