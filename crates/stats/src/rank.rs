//! Estimates that a few extreme rounds cannot move far.
//!
//! The t interval of [`crate::interval`] speaks of means, and one stalled round can drag a mean
//! along. The estimate here depends on the values mostly through their order. It is the
//! second opinion: where both disagree, a few rounds carry the verdict and the reader must see
//! that. All probabilities are exact, counted over every sign that "no difference" makes equally
//! likely; hence the limit on sample sizes and the smallest sizes below which no interval exists
//! (6 pairs at 95 %, 8 at 99 %).
//!
//! Sources: Wilcoxon, Biometrics 1, 1945; Hodges and Lehmann, Annals of Mathematical Statistics
//! 34, 1963; intervals as in Hollander and Wolfe, "Nonparametric Statistical Methods".

use std::cell::RefCell;

use crate::interval::{Ratio, all_finite, is_level, median_of_sorted};

/// Most pairs that get an exact statement: counting costs their cube.
pub const EXACT_MAX: usize = 300;

/// The ratio B over A from log differences: the median of all means of two of them (Hodges and
/// Lehmann), with the exact Wilcoxon signed-rank interval of level at least `1 - alpha`.
///
/// With W the M = n(n+1)/2 sorted means and C the largest c with P(V <= c) <= alpha/2, the
/// interval is [W(C+1), W(M−C)]. `None` where no interval of that level exists, beyond
/// [`EXACT_MAX`] rounds, or with a value that is not finite.
pub fn hodges_lehmann(log_differences: &[f64], alpha: f64) -> Option<Ratio> {
    let n = log_differences.len();
    if n > EXACT_MAX || !is_level(alpha) || !all_finite(log_differences) {
        return None;
    }
    let mut walsh = Vec::with_capacity(n * (n + 1) / 2);
    // Each with itself, too: a mean of one round is that round.
    for (i, a) in log_differences.iter().enumerate() {
        walsh.extend(log_differences[i..].iter().map(|b| a.midpoint(*b)));
    }
    // The interval's ends are order statistics of the same averages whose median is the estimate.
    let cut = KNOWN_SUMS.with_borrow_mut(|known| {
        if known.len() != outcomes(n) {
            *known = signed_sums(n);
        }
        allowed_cut(known, alpha / 2.0)
    })?;
    centre_of(walsh, cut)
}

thread_local! {
    // One check asks for the same number of rounds hundreds of times, and the table costs its cube.
    static KNOWN_SUMS: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Number of the sums that ranks up to `n` can have.
fn outcomes(n: usize) -> usize {
    n * (n + 1) / 2 + 1
}

/// The median of `candidates` and the interval that cuts so many of them off either end.
fn centre_of(mut candidates: Vec<f64>, cut: usize) -> Option<Ratio> {
    let (count, middle) = (candidates.len(), candidates.len() / 2);
    if cut > count {
        return None;
    }
    // Four places of the order, and not all of it. Total order: a value that is not finite was refused before.
    let mut place = |at: usize| *candidates.select_nth_unstable_by(at, f64::total_cmp).1;
    let low = place(cut - 1);
    // The distribution is symmetric, so the same number is cut from both ends.
    let high = place(count - cut);
    let upper = place(middle);
    let centre = match count % 2 {
        1 => upper,
        _ => median_of_sorted(&[place(middle - 1), upper]),
    };
    Ratio::from_log(centre, low, high)
}

/// C + 1 with C the largest c such that P(statistic <= c) <= `tail`; `None` if even 0 is
/// likelier than that.
fn allowed_cut(probabilities: &[f64], tail: f64) -> Option<usize> {
    let mut below = 0.0;
    let cut = probabilities
        .iter()
        .take_while(|&&p| {
            below += p;
            below <= tail
        })
        .count();
    // With too few values not even the extreme ones are rare enough: there is no interval.
    (cut > 0).then_some(cut)
}

/// P(sum = s) for s = 0, 1, …, where each rank from 1 to `n` enters the sum or not with probability ½.
fn signed_sums(n: usize) -> Vec<f64> {
    let mut probabilities = vec![0.0; outcomes(n)];
    // Before the first rank the sum is 0 for sure.
    probabilities[0] = 1.0;
    let mut largest = 0;
    for rank in 1..=n {
        largest += rank;
        // From the top down, so that each rank is used once.
        for sum in (0..=largest).rev() {
            let with = if sum >= rank {
                probabilities[sum - rank]
            } else {
                0.0
            };
            probabilities[sum] = (probabilities[sum] + with) / 2.0;
        }
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hollander and Wolfe: depression scale before and after.
    const BEFORE: [f64; 9] = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    #[expect(clippy::approx_constant, reason = "3.14 was measured, it is not π")]
    const AFTER: [f64; 9] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];

    #[track_caller]
    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!(
            (got - expected).abs() <= tolerance,
            "{got} is not {expected}"
        );
    }

    fn depression() -> Vec<f64> {
        BEFORE.iter().zip(AFTER).map(|(x, y)| x - y).collect()
    }

    #[test]
    fn hodges_lehmann_of_the_depression_data_is_as_published() {
        let got = hodges_lehmann(&depression(), 0.05).unwrap();
        close(got.estimate.ln(), 0.46, 1e-12);
        close(got.low.ln(), 0.010, 1e-12);
        close(got.high.ln(), 0.786, 1e-12);
        // The exact level is 96.09 %: the same interval serves any alpha down to that.
        assert_eq!(hodges_lehmann(&depression(), 0.0391), Some(got));
        assert!(hodges_lehmann(&depression(), 0.0390).unwrap().low < got.low);
    }

    #[test]
    fn small_samples_have_no_interval() {
        let rounds = [0.11, 0.12, 0.14, 0.18, 0.26, 0.42, 0.74, 1.38];
        assert_eq!(hodges_lehmann(&[], 0.05), None);
        assert_eq!(hodges_lehmann(&rounds[..5], 0.05), None);
        assert!(hodges_lehmann(&rounds[..6], 0.05).is_some());
        assert_eq!(hodges_lehmann(&rounds[..7], 0.01), None);
        assert!(hodges_lehmann(&rounds, 0.01).is_some());
        assert_eq!(hodges_lehmann(&[f64::NAN; 8], 0.05), None);
        assert_eq!(hodges_lehmann(&[0.0; EXACT_MAX + 1], 0.05), None);
    }

    /// One of 12 rounds stalled: the mean is dragged along, this is not. (The 12 means that the
    /// stalled round takes part in fit into the 13 that are cut off; of 10 rounds, 10 do not
    /// fit into 8.)
    #[test]
    fn an_extreme_round_moves_little() {
        let calm = [
            0.09, 0.11, 0.10, 0.12, 0.08, 0.10, 0.11, 0.09, 0.10, 0.10, 0.13, 0.07,
        ];
        let mut stalled = calm;
        stalled[3] = -9.0;
        let got = hodges_lehmann(&stalled, 0.05).unwrap();
        assert!(got.low > 1.0, "{got:?}");
        assert!(crate::interval::paired_ratio(&stalled, 0.05).unwrap().low < 1.0);
    }
}
