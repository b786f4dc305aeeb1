//! What may be said of a comparison: better, worse, no difference that matters, probably, undecided.
//!
//! "No difference" needs proof like any other claim. An interval that merely includes 1 proves
//! nothing: it may be wide after three rounds. So there are two questions with an error of their own.
//! Is there a difference? The two-sided interval excludes 1. Is there none larger than the margin?
//! Each of two one-sided bounds lies inside it. No ratio makes both claims wrong: the first is
//! wrong where the ratio is 1, the second where it is the margin or more. So each may use the
//! whole error of the comparison.
//!
//! This file also estimates how many more rounds an undecided comparison needs.

use libm::{exp, log as ln, log1p as ln_1p};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::crossover::WithoutOrder;
use crate::interval::{Ratio, Spread, all_finite, chi_parts, is_level, mean, t_quantile, variance};
use crate::looks::{FIRST_LOOK, one_sided_level, two_sided_level};
use crate::resolution::hides;

/// The result of a comparison of a ratio "B over A", oriented so that above 1 means B is better.
///
/// All numbers are fractions of A: 0.12 is 12 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Classification {
    /// B is better: above A by at least `low - 1` and at most `high - 1`.
    Better {
        /// The smallest improvement the interval allows.
        at_least: f64,
        /// The largest improvement it allows.
        at_most: f64,
    },
    /// B is worse: below A by at least `1 - high` and at most `1 - low`.
    Worse {
        /// The smallest loss the interval allows.
        at_least: f64,
        /// The largest loss it allows.
        at_most: f64,
    },
    /// The whole interval lies in `[1 / (1 + margin), 1 + margin]`.
    NoDifference {
        /// Bound of the difference: `max(|low - 1|, |high - 1|)`.
        larger_than: f64,
    },
    /// The comparison is not decided, but the plain 80 % interval of these rounds excludes 1. A
    /// hint, no claim.
    Probably {
        /// True if B seems better, false if it seems worse.
        better: bool,
    },
    /// The interval allows both 1 and a difference that matters.
    Undecided,
}

/// Error of the plain interval that makes an undecided comparison a probable one.
pub const PROBABLE: f64 = 0.2;

/// The statement of the rounds so far on a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statement {
    /// The ratio with the interval that the word rests on: of two one-sided bounds where there is no
    /// difference that matters, two-sided otherwise.
    pub ratio: Ratio,
    /// The answer of the rounds so far.
    pub word: Classification,
    /// Set if it rests on the differences without the effect of the order.
    pub without_order: bool,
    /// Set if it is not decided, and no number of rounds would: the figures are too coarse.
    pub too_coarse: bool,
    /// Largest error of the ratio because the figures are given in steps, on the log scale; part of
    /// the interval.
    pub resolution: f64,
}

/// Rounds from which a comparison is also made without the effect of the order.
const ORDER_FROM: u32 = 5;

/// The levels of both comparisons from then on, as shares of the level of a look: both together are wrong
/// at any look no more often than one alone with the whole level (`bench/validate`).
const SHARE_AS_IT_IS: f64 = 0.8;
const SHARE_WITHOUT_ORDER: f64 = 0.5;

/// The statement of the log differences of all rounds so far, with an error of at most `alpha` over
/// all looks of the study: that made before, this one, and any that may follow.
///
/// `None` with fewer rounds than the first look needs, with a value that is not finite, or with an
/// `alpha` outside (0, 1).
pub fn state(log_differences: &[f64], alpha: f64, margin: f64) -> Option<Statement> {
    state_in_order(log_differences, None, 0.0, alpha, margin)
}

/// The same where it is known which treatment came first in each round: from five rounds on, the answer
/// is that of the differences as they are, or of those without the effect of the order, whichever says
/// more. `resolution` is how far the mean may be off because the figures are given in steps
/// ([`crate::resolution`]): both ends of the interval move out by so much.
///
/// `None` as [`state`], and with another number of rounds without the effect.
pub fn state_in_order(
    log_differences: &[f64],
    without_order: Option<&WithoutOrder>,
    resolution: f64,
    alpha: f64,
    margin: f64,
) -> Option<Statement> {
    let n = u32::try_from(log_differences.len()).ok()?;
    if n < FIRST_LOOK || !is_level(alpha) || resolution.is_nan() {
        return None;
    }
    let as_it_is = Differences {
        spread: Spread::of(log_differences),
        resolution,
        estimated: 1.0,
        balance: 1.0,
        level: 1.0,
    };
    let Some(without) = without_order.filter(|_| n >= ORDER_FROM) else {
        return as_it_is.state(n, alpha, margin);
    };
    if without.differences.len() != log_differences.len() {
        return None;
    }
    let as_it_is = Differences {
        level: SHARE_AS_IT_IS,
        ..as_it_is
    };
    let other = Differences {
        spread: Spread::of(&without.differences),
        resolution,
        estimated: 2.0,
        balance: without.balance,
        level: SHARE_WITHOUT_ORDER,
    };
    let said = as_it_is.state(n, alpha, margin)?;
    let mut without = other.state(n, alpha, margin)?;
    without.without_order = true;
    let more = rank(without.word).cmp(&rank(said.word));
    let narrower = width(&said.ratio).total_cmp(&width(&without.ratio));
    Some(match more.then(narrower).is_gt() {
        true => without,
        false => said,
    })
}

/// Rank of a word by how much it says.
fn rank(word: Classification) -> u8 {
    match word {
        Classification::Undecided => 0,
        Classification::Probably { .. } => 1,
        Classification::Better { .. }
        | Classification::Worse { .. }
        | Classification::NoDifference { .. } => 2,
    }
}

/// The width of an interval on the log scale.
fn width(ratio: &Ratio) -> f64 {
    ln(ratio.high) - ln(ratio.low)
}

/// One of the lists of differences that a comparison is made of.
#[derive(Clone, Copy)]
struct Differences {
    spread: Spread,
    /// Largest error of their mean because the figures are given in steps.
    resolution: f64,
    /// Numbers that were estimated from them: degrees of freedom that they have lost.
    estimated: f64,
    /// The share of the rounds that counts.
    balance: f64,
    /// The share of the level of a look that it may use.
    level: f64,
}

impl Differences {
    fn ratio(&self, level: f64) -> Option<Ratio> {
        let ratio = self.spread.ratio(self.estimated, self.balance, level)?;
        Some(ratio.widened(self.resolution))
    }

    fn state(&self, n: u32, alpha: f64, margin: f64) -> Option<Statement> {
        let centre = self.spread.mean.abs();
        let error = self.spread.standard_error(self.estimated, self.balance);
        let said = |ratio, word| {
            Some(Statement {
                ratio,
                word,
                without_order: false,
                too_coarse: false,
                resolution: self.resolution,
            })
        };
        // No bound is nearer than one standard error: most rounds need not be asked for more.
        if centre + error + self.resolution <= ln_1p(margin) {
            // Both bounds of a pair of one-sided ones, as a two-sided interval of twice that level.
            let ratio = self.ratio(self.level * 2.0 * one_sided_level(alpha, n))?;
            if let word @ Classification::NoDifference { .. } = classify(&ratio, margin) {
                return said(ratio, word);
            }
        }
        let ratio = self.ratio(self.level * two_sided_level(alpha, n))?;
        let word = match classify(&ratio, 0.0) {
            Classification::Undecided if centre > error => self.probably(),
            word => word,
        };
        let of_chance = width(&ratio) / 2.0 - self.resolution;
        let hidden = hides(centre, of_chance, self.resolution, ln_1p(margin));
        let too_coarse = hidden && rank(word) < 2;
        said(ratio, word).map(|said| Statement { too_coarse, ..said })
    }

    fn probably(&self) -> Classification {
        match self.ratio(PROBABLE) {
            Some(plain) if plain.excludes_one() => Classification::Probably {
                better: plain.estimate > 1.0,
            },
            _ => Classification::Undecided,
        }
    }
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

/// Certainty of a projection: of all that are made, at least this share comes true.
pub const SURE: f64 = 0.8;

/// The deviation of what true log differences usually are: two of three ratios lie within 10 %.
const USUAL: f64 = 0.1;

/// A projection reaches no further than this many times the rounds it rests on.
pub const AHEAD_MAX: u32 = 20;

/// Number of rounds in total that are enough to decide with a probability of [`SURE`].
///
/// Mean and deviation of the log differences so far are estimates. Given them, the deviation to come
/// is spread as `s √(ν / χ²)` with ν = n − 1 degrees of freedom. What is true is normal around the mean
/// so far, drawn towards 0 where the noise is larger than usual differences are: of means that seem
/// large, most are so by accident. That the study may decide earlier on the way is left out, so the
/// number is rather too large. `resolution` is as in [`state_in_order`].
///
/// `None` where it cannot be told yet: fewer rounds than the first look needs, values that are not
/// finite, or more than [`AHEAD_MAX`] times the rounds so far.
pub fn rounds_to_decide(
    log_differences: &[f64],
    resolution: f64,
    alpha: f64,
    margin: f64,
) -> Option<u32> {
    let n = u32::try_from(log_differences.len()).ok()?;
    if n < FIRST_LOOK || !is_level(alpha) || !all_finite(log_differences) {
        return None;
    }
    let outlook = Outlook::new(log_differences, resolution, alpha, ln_1p(margin));
    let enough = |rounds: u32| outlook.chance(rounds) >= SURE;
    let (mut first, mut last) = (n + 1, n.saturating_mul(AHEAD_MAX));
    if !enough(last) {
        return None;
    }
    while first < last {
        let middle = first.midpoint(last);
        if enough(middle) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    Some(first)
}

/// The outlook of the rounds so far on those to come.
struct Outlook {
    n: f64,
    centre: f64,
    deviation: f64,
    /// Deviations the noise may have, equally probable.
    deviations: Vec<f64>,
    resolution: f64,
    alpha: f64,
    margin: f64,
}

impl Outlook {
    fn new(log_differences: &[f64], resolution: f64, alpha: f64, margin: f64) -> Self {
        let n = log_differences.len() as f64;
        let deviation = variance(log_differences).sqrt();
        let parts = chi_parts(log_differences.len()).into_iter();
        let deviations = parts.map(|chi| deviation * ((n - 1.0) / chi).sqrt());
        Self {
            n,
            centre: mean(log_differences),
            deviation,
            deviations: deviations.collect(),
            resolution,
            alpha,
            margin,
        }
    }

    /// The probability that so many rounds in total decide.
    fn chance(&self, rounds: u32) -> f64 {
        let total = f64::from(rounds);
        let two = -t_quantile(two_sided_level(self.alpha, rounds) / 2.0, total - 1.0);
        let one = -t_quantile(one_sided_level(self.alpha, rounds), total - 1.0);
        let chances = self.deviations.iter().map(|deviation| {
            let old = (self.n - 1.0) * self.deviation.powi(2);
            let new = (total - self.n) * deviation.powi(2);
            let error = ((old + new) / (total - 1.0) / total).sqrt();
            let equal = (self.margin - one * error - self.resolution).max(0.0);
            let different = two * error + self.resolution;
            let (centre, spread) = self.end(total, *deviation);
            1.0 - between(equal, different, centre, spread)
        });
        chances.sum::<f64>() / self.deviations.len() as f64
    }

    /// The expected mean of so many rounds, and its deviation, with this noise.
    fn end(&self, total: f64, deviation: f64) -> (f64, f64) {
        let noise = deviation.powi(2).max(f64::MIN_POSITIVE);
        // What is true, given the rounds so far and what differences are usual.
        let variance = 1.0 / (1.0 / USUAL.powi(2) + self.n / noise);
        let truth = variance * self.n / noise * self.centre;
        let further = total - self.n;
        let centre = (self.n * self.centre + further * truth) / total;
        (
            centre,
            further / total * (variance + noise / further).sqrt(),
        )
    }
}

/// The probability that a mean is, on either side, too large for "no difference" and too small for a
/// difference.
fn between(equal: f64, different: f64, centre: f64, spread: f64) -> f64 {
    if equal >= different {
        return 0.0;
    }
    let Ok(normal) = Normal::new(centre, spread.max(f64::MIN_POSITIVE)) else {
        return 1.0;
    };
    let part = |from: f64, to: f64| normal.cdf(to) - normal.cdf(from);
    part(equal, different) + part(-different, -equal)
}

/// Number of rounds in total that would show on which side of a ratio the truth lies, if the mean
/// log difference `effect` and the standard deviation `deviation` stayed as they are: the smallest
/// n with `t(n−1, 1−alpha/2) · s / √n < |d̄ − ln(ratio)|`.
///
/// For two sides that are no pairs, the deviation is the root of the sum of their variances and n
/// the rounds on each; that is a little too many, for the degrees of freedom are those of one side.
/// At most [`ROUNDS_MAX`], which stands for "or more"; `None` while the deviation is unknown.
///
/// Example: d̄ = 0, s = 0.03, ratio 0.95, alpha 0.01. ln 0.95 is 0.0513 away: 6 rounds
/// (4.03 · 0.03 / √6 = 0.0494), not 5 (4.60 · 0.03 / √5 = 0.0618).
pub fn rounds_to_exclude(effect: f64, deviation: f64, alpha: f64, ratio: f64) -> Option<u32> {
    let distance = (effect - ln(ratio)).abs();
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
    Some(exp(half_width(sd, n, alpha)).min(f64::MAX))
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
            Classification::Probably { .. } | Classification::Undecided => (4, 0.0, 0.0),
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

    #[test]
    fn both_questions_have_the_whole_error() {
        // Deviation 1 % over 6 rounds: two-sided 0.05 ± 0.021, one-sided ± 0.019.
        let around = |centre: f64| [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0].map(|z| centre + 0.009 * z);
        let word = |centre: f64| state(&around(centre), 0.05, 0.05).unwrap().word;
        assert!(matches!(word(0.05), Classification::Better { .. }));
        assert!(matches!(word(-0.05), Classification::Worse { .. }));
        assert!(matches!(word(0.0), Classification::NoDifference { .. }));
        // The bounds of "no difference" are narrower than the interval of a difference.
        let none = state(&around(0.0), 0.05, 0.05).unwrap().ratio;
        let wide = state(&around(0.0), 0.05, 0.001).unwrap().ratio;
        assert!(wide.low < none.low && none.high < wide.high);
    }

    #[test]
    fn probably_is_less_than_a_claim_and_more_than_nothing() {
        let rounds = [0.10, -0.02, 0.12, 0.06];
        let word = |values: &[f64]| state(values, 0.05, 0.05).unwrap().word;
        assert_eq!(word(&rounds), Classification::Probably { better: true });
        let turned = rounds.map(|z| -z);
        assert_eq!(word(&turned), Classification::Probably { better: false });
        assert_eq!(word(&[0.1, -0.1, 0.02]), Classification::Undecided);
        assert_eq!(state(&rounds[..2], 0.05, 0.05), None);
    }

    #[test]
    fn a_projection_allows_for_what_is_not_known_yet() {
        let alternate = |n: usize, centre: f64, size: f64| -> Vec<f64> {
            (0..n)
                .map(|i| {
                    if i % 2 == 0 {
                        centre + size
                    } else {
                        centre - size
                    }
                })
                .collect()
        };
        let needed = |values: &[f64]| rounds_to_decide(values, 0.0, 0.05, 0.05);
        // The same noise known from more rounds needs fewer of them.
        let (few, many) = (
            needed(&alternate(6, 0.08, 0.08)),
            needed(&alternate(12, 0.08, 0.08)),
        );
        assert!(few > many && many > Some(12), "{few:?} {many:?}");
        // More noise needs more rounds; nothing to go by, no answer.
        assert!(needed(&alternate(12, 0.08, 0.1)) > many);
        assert_eq!(needed(&[-9.0, 9.0, -9.0]), None);
    }
}
