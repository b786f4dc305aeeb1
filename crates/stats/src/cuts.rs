//! How often a promise is broken, from so many power cuts: exact bounds, exact comparison, looks.
//!
//! The unit is the cut: it broke a promise, or it did not. Losses of one cut say nothing about each
//! other, so they are never counted as several. No loss in all cuts is not "safe": it is an upper
//! bound.
//!
//! A study of cuts looks after 10, 20, 40, 80, 160 and 320 of them, and may stop at any of these.
//! All looks share the error: each has a sixth of it. By Bonferroni's inequality all statements of
//! all looks then hold together. A study that ends between two looks uses the share of the next one.
//!
//! Sources: Clopper and Pearson, Biometrika 26, 1934; Fisher, "The Logic of Inductive Inference",
//! Journal of the Royal Statistical Society 98, 1935.

use libm::{exp, expm1 as exp_m1, log as ln};
use statrs::distribution::{Beta, ContinuousCDF};
use statrs::function::factorial::ln_binomial;

use crate::interval::is_level;

/// Numbers of cuts of a configuration after which a study looks.
pub const CUT_LOOKS: [u32; 6] = [10, 20, 40, 80, 160, 320];

/// Tables that are as likely as the one found, but for rounding.
const ROUNDING: f64 = 1.0 + 1e-7;

/// The level of each look, such that the statements of all of them are wrong with a probability of at
/// most `alpha`.
pub fn cut_look_level(alpha: f64) -> f64 {
    alpha / CUT_LOOKS.len() as f64
}

/// Cuts that broke a promise, of all cuts of one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenCuts {
    /// Cuts after which a promise was broken.
    pub broken: u32,
    /// Cuts made, whatever they broke.
    pub cuts: u32,
}

impl BrokenCuts {
    /// The share that was seen; `None` without cuts.
    pub fn share(self) -> Option<f64> {
        (self.cuts > 0).then(|| f64::from(self.broken) / f64::from(self.cuts))
    }

    fn is_sound(self) -> bool {
        self.cuts > 0 && self.broken <= self.cuts
    }

    /// The largest share of cuts that break a promise for which so few broken ones would still be
    /// seen with a probability of `alpha` (Clopper and Pearson, to one side). With no broken cut it
    /// is `1 - alpha^(1/cuts)`. `None` if there are no cuts, or no level.
    pub fn upper_bound(self, alpha: f64) -> Option<f64> {
        if !self.is_sound() || !is_level(alpha) {
            return None;
        }
        let (broken, kept) = (f64::from(self.broken), f64::from(self.cuts - self.broken));
        match self.broken {
            0 => Some(-exp_m1(ln(alpha) / kept)),
            // All were broken: nothing is said against "every cut".
            _ if kept == 0.0 => Some(1.0),
            _ => Some(Beta::new(broken + 1.0, kept).ok()?.inverse_cdf(1.0 - alpha)),
        }
    }

    /// The smallest such share: the mirror image of [`BrokenCuts::upper_bound`].
    pub fn lower_bound(self, alpha: f64) -> Option<f64> {
        let kept = Self {
            broken: self.cuts.checked_sub(self.broken)?,
            cuts: self.cuts,
        };
        Some(1.0 - kept.upper_bound(alpha)?)
    }
}

/// The probability of a difference as large as the one between two configurations, or larger, if both
/// break promises equally often (Fisher's exact test, two-sided, by the probabilities of the tables).
/// `None` where one has no cuts.
pub fn cut_difference_p(one: BrokenCuts, other: BrokenCuts) -> Option<f64> {
    if !one.is_sound() || !other.is_sound() {
        return None;
    }
    let [m, n] = [one.cuts, other.cuts].map(u64::from);
    let broken = u64::from(one.broken) + u64::from(other.broken);
    let all = ln_binomial(m + n, broken);
    // Given how many were broken in all, every choice of them is equally likely.
    let probability =
        |first: u64| exp(ln_binomial(m, first) + ln_binomial(n, broken - first) - all);
    let seen = probability(u64::from(one.broken)) * ROUNDING;
    let tables = broken.saturating_sub(n)..=broken.min(m);
    let p: f64 = tables.map(probability).filter(|each| *each <= seen).sum();
    Some(p.min(1.0))
}

/// Number of looks that are over after so many cuts of a configuration. Cuts are made in groups
/// that need not end at a look: a look that is passed is made at the end of its group.
pub fn cut_looks(cuts: u32) -> usize {
    CUT_LOOKS.iter().filter(|look| **look <= cuts).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(broken: u32, cuts: u32) -> BrokenCuts {
        BrokenCuts { broken, cuts }
    }

    /// The probability of at most so many broken cuts of `cuts`.
    fn at_most(broken: u32, cuts: u32, share: f64) -> f64 {
        let one = |k: u32| {
            let ways = ln_binomial(u64::from(cuts), u64::from(k));
            let logs = ways + f64::from(k) * share.ln() + f64::from(cuts - k) * (1.0 - share).ln();
            logs.exp()
        };
        (0..=broken).map(one).sum()
    }

    #[test]
    fn no_loss_is_a_bound_and_never_nothing() {
        let bound = |cuts, alpha| of(0, cuts).upper_bound(alpha).unwrap();
        // The rule of three, exactly.
        assert!((bound(60, 0.05) - 0.04870).abs() < 1e-5);
        let level = cut_look_level(0.05);
        assert!((bound(60, level) - 0.0767).abs() < 1e-4);
        assert!((bound(320, level) - 0.0148).abs() < 1e-4);
        assert_eq!(of(0, 0).upper_bound(0.05), None);
        assert_eq!(of(7, 7).upper_bound(0.05), Some(1.0));
        assert_eq!(of(0, 7).lower_bound(0.05), Some(0.0));
        assert_eq!(of(8, 7).lower_bound(0.05), None);
    }

    /// Table in Fisher, "The Design of Experiments" (1935): the lady tasting tea, 3 of 4 right:
    /// 0.486; all four right: 1 of 70 to each side.
    #[test]
    fn the_exact_test_is_fishers() {
        let p = |a, b, c, d| cut_difference_p(of(a, b), of(c, d)).unwrap();
        assert!((p(3, 4, 1, 4) - 34.0 / 70.0).abs() < 1e-9);
        assert!((p(4, 4, 0, 4) - 2.0 / 70.0).abs() < 1e-9);
        assert!((p(5, 10, 5, 10) - 1.0).abs() < 1e-9);
        assert!(p(10, 10, 0, 10) < 1.1e-5);
        assert_eq!(cut_difference_p(of(0, 0), of(1, 2)), None);
    }

    #[test]
    fn a_look_is_made_once_however_cuts_are_grouped() {
        assert_eq!(
            [0, 9, 10, 39, 40, 320, 999].map(cut_looks),
            [0, 0, 1, 2, 3, 6, 6]
        );
        // Groups of 15: looks after 15, 30, 45, 90 ...
        let new = |group: u32| cut_looks(15 * group) > cut_looks(15 * (group - 1));
        assert_eq!(
            (1..=6).map(new).collect::<Vec<_>>(),
            [true, true, true, false, false, true]
        );
    }

    proptest! {
        /// The definition: at the bound, so few broken cuts have just the probability of the level.
        #[test]
        fn a_bound_is_where_so_few_losses_get_unlikely(
            cuts in 1..320u32, part in 0.0..1.0f64, alpha in 0.001..0.3f64,
        ) {
            let broken = (part * f64::from(cuts)) as u32;
            let bound = of(broken, cuts).upper_bound(alpha).unwrap();
            if broken < cuts {
                prop_assert!((at_most(broken, cuts, bound) / alpha - 1.0).abs() < 1e-6);
            }
            let low = of(broken, cuts).lower_bound(alpha).unwrap();
            prop_assert!(low <= f64::from(broken) / f64::from(cuts) && bound >= low);
        }

        #[test]
        fn a_difference_is_the_same_from_both_sides(
            a in 0..40u32, b in 0..40u32, c in 0..40u32, d in 0..40u32,
        ) {
            let (one, other) = (of(a, a + b + 1), of(c, c + d + 1));
            let (p, q) = (cut_difference_p(one, other).unwrap(), cut_difference_p(other, one).unwrap());
            prop_assert!((p - q).abs() < 1e-9);
            prop_assert!(p > 0.0 && p <= 1.0);
        }
    }
}
