//! What asking many questions costs each answer, as p-values.
//!
//! Verdict words never come from p-values; their intervals already carry the level of the whole
//! family. These are for the export, where a reader with other tools expects them.

use crate::interval::{all_finite, mean, t_upper_tail, variance};

/// The p-values adjusted for being asked together (Holm, Scandinavian Journal of Statistics 6,
/// 1979), in the order given: with `p(1) <= … <= p(m)`, the i-th becomes
/// `max over j <= i of min(1, (m − j + 1) · p(j))`.
///
/// Rejecting what stays at or below alpha is wrong anywhere with probability at most alpha.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        let still_open = (p.len() - rank) as f64;
        largest = largest.max((still_open * p[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

/// The two-sided p-value of Student's paired t test on log differences.
///
/// Identical differences give 0, or 1 if they are all zero. `None` with fewer than two rounds
/// or with a value that is not finite.
pub fn paired_p(log_differences: &[f64]) -> Option<f64> {
    let n = log_differences.len();
    if n < 2 || !all_finite(log_differences) {
        return None;
    }
    let centre = mean(log_differences);
    if centre == 0.0 {
        return Some(1.0);
    }
    let standard_error = (variance(log_differences) / n as f64).sqrt();
    if standard_error == 0.0 {
        return Some(0.0);
    }
    let t = (centre / standard_error).abs();
    Some(2.0 * t_upper_tail(t, (n - 1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::paired_ratio;

    #[test]
    fn four_p_values_are_adjusted_as_by_hand() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - expected).abs() < 1e-15, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.2]), vec![0.2]);
        assert_eq!(holm(&[0.9, 0.8]), vec![1.0, 1.0]);
    }

    /// Student's sleep data: t = −4.0621277 on 9 degrees of freedom.
    #[test]
    fn the_p_value_of_the_sleep_data_is_where_its_interval_ends_at_1() {
        let differences = [-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4];
        let p = paired_p(&differences).unwrap();
        assert!((p - 0.002_832_890_2).abs() < 1e-9, "{p}");
        let edge = paired_ratio(&differences, p).unwrap();
        assert!(
            edge.high.ln().abs() < 1e-9,
            "the interval of level 1 − p ends at 1"
        );
    }

    #[test]
    fn the_ends_of_the_scale() {
        assert_eq!(paired_p(&[0.1]), None);
        assert_eq!(paired_p(&[0.1, f64::NAN]), None);
        assert_eq!(paired_p(&[0.1, 0.1, 0.1]), Some(0.0));
        assert_eq!(paired_p(&[0.0, 0.0, 0.0]), Some(1.0));
        assert_eq!(paired_p(&[-0.1, 0.1]), Some(1.0));
    }
}
