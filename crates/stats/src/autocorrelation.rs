//! How much the values of one trial say, given that neighbours resemble each other.
//!
//! A hundred steps of one trial are not a hundred measurements: a device that is busy with its
//! own housekeeping now is so in the next step too. The plain standard error of their mean is
//! then too small, by a lot: at a correlation of 0.8 between neighbours an interval that calls
//! itself 95 % holds the truth in 49 % of all cases. What is computed here describes a trial; it
//! is never evidence for a difference between treatments, for which trials are replicated.

use crate::interval::{all_finite, mean, t_quantile, variance};

/// Batches from which the standard error of a mean is estimated.
const BATCHES: usize = 10;

/// The correlation between neighbours:
/// `Σ (x(i) − x̄)(x(i+1) − x̄) / Σ (x(i) − x̄)²`, as NIST StRD certifies it.
///
/// `None` with fewer than two values, with one that is not finite, or where all are the same.
pub fn lag_one(values: &[f64]) -> Option<f64> {
    if values.len() < 2 || !all_finite(values) {
        return None;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let products: f64 = values
        .windows(2)
        .map(|pair| (pair[0] - centre) * (pair[1] - centre))
        .sum();
    (squares > 0.0).then(|| products / squares)
}

/// Number of independent values that would say as much about the mean: `n (1 − ρ) / (1 + ρ)` with ρ
/// the correlation between neighbours, between 1 and n.
///
/// The formula is that of a first-order autoregression (Bayley and Hammersley, Supplement to the
/// Journal of the Royal Statistical Society 8, 1946). Negative correlation is not credited: it is
/// more often an artefact of the slicing than a gift. `None` where [`lag_one`] has none.
pub fn effective_count(values: &[f64]) -> Option<f64> {
    let correlation = lag_one(values)?.clamp(0.0, 1.0);
    let n = values.len() as f64;
    // The mean itself is one value, however alike its parts are.
    Some((n * (1.0 - correlation) / (1.0 + correlation)).max(1.0))
}

/// The mean of a series and the half-width of its interval of level `1 - alpha`, from the means
/// of ten batches (Conway, Management Science 10, 1963), whose correlation is far smaller than
/// that of neighbours.
///
/// Values that do not fill the last batch are left out at the front, where a trial is least itself.
/// `None` with fewer than twenty values, with one that is not finite, or with an `alpha` outside
/// (0, 1).
pub fn batch_interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let width = values.len() / BATCHES;
    if width < 2 || !all_finite(values) || !crate::interval::is_level(alpha) {
        return None;
    }
    // From the end on: what fills no batch is the beginning, which may still be a warm-up.
    let means: Vec<f64> = values[values.len() - width * BATCHES..]
        .chunks_exact(width)
        .map(mean)
        .collect();
    let standard_error = (variance(&means) / BATCHES as f64).sqrt();
    let multiplier = t_quantile(1.0 - alpha / 2.0, BATCHES as f64 - 1.0);
    Some((mean(&means), multiplier * standard_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_values_repel_and_equal_ones_have_no_correlation() {
        // By hand: centre 0, products −1 five times, squares 6.
        let alternating = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        assert!((lag_one(&alternating).unwrap() + 5.0 / 6.0).abs() < 1e-15);
        assert_eq!(effective_count(&alternating), Some(6.0));
        assert_eq!(lag_one(&[2.0, 2.0, 2.0]), None);
        assert_eq!(lag_one(&[1.0]), None);
        assert_eq!(lag_one(&[1.0, f64::NAN, 2.0]), None);
    }

    /// By hand: 1 … 5 has products 2 + 0 + 0 + 2 = 4 and squares 10: 0.4, and 5 · 0.6 / 1.4.
    #[test]
    fn a_ramp_is_worth_less_than_its_length() {
        let ramp = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((lag_one(&ramp).unwrap() - 0.4).abs() < 1e-15);
        assert!((effective_count(&ramp).unwrap() - 3.0 / 1.4).abs() < 1e-12);
    }

    #[test]
    fn batches_leave_the_beginning_out() {
        let mut values = vec![1e9; 5];
        values.extend((0..20).map(|at| f64::from(at / 2 % 2)));
        // Ten batches of two: 0, 1, 0, 1 …; deviation √(10/36), t(9, 0.975) = 2.262157.
        let (centre, half) = batch_interval(&values, 0.05).unwrap();
        assert_eq!(centre, 0.5);
        let expected = 2.262_157_162_8 * (10.0_f64 / 36.0 / 10.0).sqrt();
        assert!((half - expected).abs() < 1e-9, "{half} is not {expected}");
        assert_eq!(batch_interval(&[1.0; 19], 0.05), None);
        assert_eq!(batch_interval(&[1.0; 20], 0.0), None);
    }
}
