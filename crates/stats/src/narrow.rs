//! The size of a difference: how narrow its interval must be to be worth quoting, and how many rounds that takes.
//!
//! Intervals hold at all looks, so a rule that waits for a narrow one adds no error.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::equivalence::{AHEAD_MAX, SURE};
use crate::interval::{t_quantile, variance};
use crate::looks::{FIRST_LOOK, two_sided_level};
use libm::log as ln;

/// The upper end of an interval near 1 is at most so many times the lower one.
pub const NEAR_ONE: f64 = 1.25;

/// Upper end over lower end of an interval that says how large a ratio is, at most: 1.25 near 1, the root of a larger
/// ratio (17 x: 4.1), because 17 x need not be known to within 25 %.
pub fn widest(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio).sqrt().max(NEAR_ONE)
}

/// Number of rounds in total after which the interval is no wider than `widest` (upper end over lower end), with a
/// probability of [`SURE`]; `resolution` and `alpha` as in [`crate::equivalence::state_in_order`].
///
/// `None` where it cannot be told yet, or the figures are too coarse for it.
pub fn rounds_to_narrow(
    log_differences: &[f64],
    resolution: f64,
    alpha: f64,
    widest: f64,
) -> Option<u32> {
    let n = u32::try_from(log_differences.len()).ok()?;
    let half = ln(widest) / 2.0 - resolution;
    if n < FIRST_LOOK || half <= 0.0 {
        return None;
    }
    // The noise itself is an estimate: with this probability it is no larger.
    let freedom = f64::from(n) - 1.0;
    let least = ChiSquared::new(freedom).ok()?.inverse_cdf(1.0 - SURE);
    let deviation = (variance(log_differences) * freedom / least).sqrt();
    let enough = |total: &u32| {
        let level = two_sided_level(alpha, *total);
        let times = -t_quantile(level / 2.0, f64::from(*total) - 1.0);
        times * deviation / f64::from(*total).sqrt() <= half
    };
    (n + 1..=n.saturating_mul(AHEAD_MAX)).find(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_ratio_may_be_known_less_well() {
        let near = [1.0, 1.1, 1.5, 1.0 / 1.5].map(widest);
        assert_eq!(near, [NEAR_ONE; 4]);
        assert!((widest(17.0) - 4.123).abs() < 1e-3);
        assert!((widest(1.0 / 17.0) - widest(17.0)).abs() < 1e-9);
    }

    #[test]
    fn more_noise_and_a_narrower_interval_take_more_rounds() {
        let quiet = [0.10, 0.14, 0.12, 0.11];
        let loud = quiet.map(|log| 0.1 + 4.0 * (log - 0.1));
        let rounds = |logs: &[f64], widest| rounds_to_narrow(logs, 0.0, 0.05, widest).unwrap();
        assert!(rounds(&quiet, 1.25) < rounds(&loud, 1.25));
        assert!(rounds(&quiet, 1.05) > rounds(&quiet, 1.25));
        assert_eq!(rounds_to_narrow(&quiet, 0.2, 0.05, 1.25), None);
    }
}
