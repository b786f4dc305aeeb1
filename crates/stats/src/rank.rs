//! Estimates and tests that a few extreme rounds cannot move far.
//!
//! The t interval of [`crate::interval`] speaks of means, and one stalled round can drag a mean
//! along. The statements here depend on the values mostly through their order. They are the
//! second opinion: where both disagree, a few rounds carry the verdict and the reader must see
//! that. All probabilities are exact, counted over every sign or arrangement that "no
//! difference" makes equally likely; hence the limit on sample sizes and the smallest sizes
//! below which no interval exists (6 pairs at 95 %, 8 at 99 %).
//!
//! Sources: Wilcoxon, Biometrics 1, 1945; Mann and Whitney, Annals of Mathematical Statistics
//! 18, 1947; Hodges and Lehmann, ibid. 34, 1963; intervals as in Hollander and Wolfe,
//! "Nonparametric Statistical Methods".

use crate::elementary::{exp, ln};
use crate::interval::{Ratio, all_finite, is_level, median_of_sorted};

/// Most pairs that get an exact statement: counting costs their cube.
pub const EXACT_MAX: usize = 300;

/// Most values that get one in two unpaired samples together: counting costs their fourth power.
pub const EXACT_UNPAIRED_MAX: usize = 100;

/// A rank test of "no difference".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// V, the sum of ranks of positive differences; or W, the number of pairs in which the
    /// first sample is larger (a tie counts half).
    pub statistic: f64,
    /// The probability of a statistic at least this large.
    pub p_greater: f64,
    /// The probability of one at least this far out on either side.
    pub p_two_sided: f64,
}

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
    for (i, a) in log_differences.iter().enumerate() {
        walsh.extend(log_differences[i..].iter().map(|b| a.midpoint(*b)));
    }
    let ranks: Vec<usize> = (1..=n).collect();
    // The interval's ends are order statistics of the same averages whose median is the estimate.
    centre_of(walsh, &signed_sums(&ranks), alpha)
}

/// The ratio B over A from unpaired logarithms: the median of all differences b − a, with the
/// exact Mann–Whitney interval of level at least `1 - alpha`.
///
/// Like every unpaired statement it cannot tell a treatment from the hour it was tried in.
/// `None` where no interval of that level exists, beyond [`EXACT_UNPAIRED_MAX`] values, or with a value
/// that is not finite.
pub fn hodges_lehmann_unpaired(log_a: &[f64], log_b: &[f64], alpha: f64) -> Option<Ratio> {
    let n = log_a.len() + log_b.len();
    if n > EXACT_UNPAIRED_MAX || !is_level(alpha) || !all_finite(log_a) || !all_finite(log_b) {
        return None;
    }
    let differences = log_b.iter().flat_map(|b| log_a.iter().map(move |a| b - a));
    let ranks: Vec<usize> = (1..=n).collect();
    // The rank sum starts at its least value; W starts at 0.
    let least = log_a.len() * (log_a.len() + 1) / 2;
    let sums = chosen_sums(&ranks, log_a.len());
    centre_of(differences.collect(), &sums[least..], alpha)
}

/// The median of `candidates` and the interval that cuts as many of them off either end as the
/// distribution of the rank statistic allows at `alpha / 2`.
fn centre_of(mut candidates: Vec<f64>, probabilities: &[f64], alpha: f64) -> Option<Ratio> {
    let cut = allowed_cut(probabilities, alpha / 2.0)?;
    candidates.sort_by(f64::total_cmp);
    let low = candidates.get(cut - 1)?;
    // The distribution is symmetric, so the same number is cut from both ends.
    let high = candidates.get(candidates.len() - cut)?;
    Ratio::from_log(median_of_sorted(&candidates), *low, *high)
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

/// Wilcoxon's signed-rank test on log differences, exact, ties included: zeros are left out,
/// equal sizes share their mean rank, and the distribution is that of these very ranks.
///
/// `None` if no difference is other than zero, beyond [`EXACT_MAX`], or with a value that is
/// not finite.
pub fn signed_rank(log_differences: &[f64]) -> Option<RankTest> {
    let used: Vec<f64> = log_differences
        .iter()
        .copied()
        // Wilcoxon's rule: a difference of zero has no sign.
        .filter(|&d| d != 0.0)
        .collect();
    if used.is_empty() || used.len() > EXACT_MAX || !all_finite(&used) {
        return None;
    }
    let sizes: Vec<f64> = used.iter().map(|d| d.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let positive = used.iter().zip(&ranks).filter(|(d, _)| **d > 0.0);
    let doubled: usize = positive.map(|(_, rank)| rank).sum();
    Some(test(doubled, 0, &signed_sums(&ranks)))
}

/// The Mann–Whitney test of whether `first` tends to be larger than `second`, exact, ties
/// included.
///
/// `None` if a sample is empty, beyond [`EXACT_UNPAIRED_MAX`] values, or with a value that is not finite.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    let pooled = [first, second].concat();
    let valid = !first.is_empty() && !second.is_empty() && all_finite(&pooled);
    if !valid || pooled.len() > EXACT_UNPAIRED_MAX {
        return None;
    }
    let ranks = doubled_ranks(&pooled);
    let doubled: usize = ranks[..first.len()].iter().sum();
    let least = first.len() * (first.len() + 1);
    Some(test(doubled, least, &chosen_sums(&ranks, first.len())))
}

/// The test of a doubled rank sum against its distribution; `offset` makes the statistic start
/// at 0.
fn test(doubled: usize, offset: usize, probabilities: &[f64]) -> RankTest {
    let p_greater: f64 = probabilities[doubled..].iter().sum();
    let p_less: f64 = probabilities[..=doubled].iter().sum();
    RankTest {
        statistic: (doubled - offset) as f64 / 2.0,
        p_greater: p_greater.min(1.0),
        // Both tails contain the observed value, so twice the smaller one can exceed 1.
        p_two_sided: (2.0 * p_greater.min(p_less)).min(1.0),
    }
}

/// Twice the rank of each value from 1 up, equal values sharing the mean of their ranks; twice,
/// because a mean of two ranks may end in ½.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let rank = |value: f64| {
        let below = values.iter().filter(|&&other| other < value).count();
        let equal = values.iter().filter(|&&other| other == value).count();
        // Ties share the mean of their ranks; doubled, it is a whole number.
        2 * below + equal + 1
    };
    values.iter().map(|&value| rank(value)).collect()
}

/// P(sum = s) for s = 0, 1, …, where each rank enters the sum or not with probability ½.
fn signed_sums(ranks: &[usize]) -> Vec<f64> {
    let mut probabilities = vec![0.0; ranks.iter().sum::<usize>() + 1];
    probabilities[0] = 1.0;
    let mut largest = 0;
    for &rank in ranks {
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

/// P(sum = s) for s = 0, 1, …, where `chosen` of the ranks enter the sum, each choice equally
/// likely.
fn chosen_sums(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let width = ranks.iter().sum::<usize>() + 1;
    // Row j: the probability that the ranks seen so far put j into the choice, with that sum.
    let mut rows = vec![vec![0.0; width]; chosen + 1];
    rows[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - seen) as f64;
        for taken in (0..=chosen.min(seen + 1)).rev() {
            // Of the `left` ranks still to come, `chosen - taken` will be taken.
            let skip = 1.0 - ((chosen - taken) as f64 / left).min(1.0);
            let take = (chosen - taken + 1) as f64 / left;
            for sum in (0..width).rev() {
                let with = if taken > 0 && sum >= rank {
                    rows[taken - 1][sum - rank] * take
                } else {
                    0.0
                };
                rows[taken][sum] = rows[taken][sum] * skip + with;
            }
        }
    }
    rows.swap_remove(chosen)
}

/// The ranks of the sorted values between which the true median lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRanks {
    /// Rank of the lower end, from 1.
    pub lower: usize,
    /// Rank of the upper end.
    pub upper: usize,
    /// The exact level, at least the one asked for.
    pub level: f64,
}

/// The narrowest symmetric pair of ranks of `n` sorted values that encloses the true median
/// with probability at least `1 - alpha`, whatever the distribution: each value is below the
/// median with probability ½, so the count below is binomial.
///
/// `None` where even the extremes do not suffice (fewer than 6 values at 95 %).
pub fn median_ranks(n: usize, alpha: f64) -> Option<MedianRanks> {
    if !is_level(alpha) {
        return None;
    }
    // On the log scale: 2^−n itself underflows beyond a thousand values.
    let mut log_p = -(n as f64) * std::f64::consts::LN_2;
    let mut outside = 0.0;
    let mut lower = 0;
    while outside + exp(log_p) <= alpha / 2.0 {
        outside += exp(log_p);
        log_p += ln((n - lower) as f64 / (lower + 1) as f64);
        lower += 1;
    }
    (lower > 0).then(|| MedianRanks {
        lower,
        upper: n + 1 - lower,
        level: 1.0 - 2.0 * outside,
    })
}

/// The interval of level at least `1 - alpha` for the median, from order statistics: lower and
/// upper end. `None` where [`median_ranks`] has none, or with NaN among the values.
pub fn median_interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let ranks = median_ranks(values.len(), alpha)?;
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((sorted[ranks.lower - 1], sorted[ranks.upper - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hollander and Wolfe: depression scale before and after, permeability at term and before.
    const BEFORE: [f64; 9] = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    #[expect(clippy::approx_constant, reason = "3.14 was measured, it is not π")]
    const AFTER: [f64; 9] = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    const TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    const EARLY: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

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
    fn the_signed_rank_test_of_the_depression_data_is_as_published() {
        let got = signed_rank(&depression()).unwrap();
        assert_eq!(got.statistic, 40.0);
        close(got.p_greater, 0.019_531_25, 1e-15);
        close(got.p_two_sided, 0.039_062_5, 1e-15);
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
    fn mann_whitney_of_the_permeability_data_is_as_published() {
        let got = mann_whitney(&TERM, &EARLY).unwrap();
        assert_eq!(got.statistic, 35.0);
        close(got.p_greater, 0.127_206_1, 1e-7);
    }

    #[test]
    fn hodges_lehmann_of_the_permeability_data_is_as_published() {
        let got = hodges_lehmann_unpaired(&EARLY, &TERM, 0.05).unwrap();
        close(got.estimate.ln(), 0.305, 1e-12);
        close(got.low.ln(), -0.15, 1e-12);
        close(got.high.ln(), 0.76, 1e-12);
        // The exact level is 96.004 %.
        assert_eq!(hodges_lehmann_unpaired(&EARLY, &TERM, 0.039_97), Some(got));
        assert_ne!(hodges_lehmann_unpaired(&EARLY, &TERM, 0.039_95), Some(got));
    }

    /// Complete separation gives the smallest p that n against n values can reach.
    #[test]
    fn complete_separation_has_the_smallest_possible_p() {
        let table = [
            (3, 0.1),
            (4, 0.028_571_4),
            (5, 0.007_936_5),
            (6, 0.002_164_5),
            (7, 0.000_582_75),
            (8, 0.000_155_40),
            (9, 4.1135e-5),
        ];
        for (n, smallest) in table {
            let low: Vec<f64> = (0..n).map(f64::from).collect();
            let high: Vec<f64> = (0..n).map(|i| f64::from(100 + i)).collect();
            let got = mann_whitney(&high, &low).unwrap();
            assert_eq!(got.statistic, f64::from(n * n));
            close(got.p_two_sided / smallest, 1.0, 2e-5);
            assert_eq!(mann_whitney(&low, &high).unwrap().statistic, 0.0);
        }
    }

    /// By hand: |d| = 1, 1, 2 have ranks 1.5, 1.5, 3; of 8 sign patterns 2 reach V >= 4.5.
    #[test]
    fn ties_share_ranks_and_zeros_are_left_out() {
        let got = signed_rank(&[1.0, -1.0, 2.0, 0.0]).unwrap();
        assert_eq!(got.statistic, 4.5);
        assert_eq!(got.p_greater, 3.0 / 8.0);
        // Ranks 1, 2.5, 2.5, 4; of 6 choices of two, {2.5, 4} twice reach 6.5.
        let got = mann_whitney(&[2.0, 3.0], &[1.0, 2.0]).unwrap();
        assert_eq!(got.statistic, 3.5);
        close(got.p_greater, 2.0 / 6.0, 1e-15);
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
        assert_eq!(hodges_lehmann_unpaired(&[], &rounds, 0.05), None);
        assert_eq!(
            hodges_lehmann_unpaired(&rounds[..3], &rounds[..3], 0.05),
            None
        );
        assert_eq!(signed_rank(&[0.0, 0.0]), None);
        assert_eq!(mann_whitney(&[], &rounds), None);
        assert!(mann_whitney(&[1.0; 50], &[2.0; 50]).is_some());
        assert_eq!(mann_whitney(&[1.0; 50], &[2.0; 51]), None);
        assert_eq!(hodges_lehmann_unpaired(&[1.0; 50], &[2.0; 51], 0.05), None);
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

    #[test]
    fn the_ranks_around_the_median() {
        let table = [
            (6, 1, 6, 0.9688),
            (7, 1, 7, 0.9844),
            (8, 1, 8, 0.9922),
            (9, 2, 8, 0.9609),
            (10, 2, 9, 0.9785),
            (11, 2, 10, 0.9883),
            (12, 3, 10, 0.9614),
            (15, 4, 12, 0.9648),
            (20, 6, 15, 0.9586),
            (25, 8, 18, 0.9567),
            (30, 10, 21, 0.9572),
            (50, 18, 33, 0.9672),
        ];
        assert_eq!(median_ranks(0, 0.05), None);
        assert_eq!(median_ranks(5, 0.05), None);
        for (n, lower, upper, level) in table {
            let got = median_ranks(n, 0.05).unwrap();
            assert_eq!((got.lower, got.upper), (lower, upper), "{n} values");
            close(got.level, level, 0.000_05);
        }
        // Normal approximation: 5,000 − 1.96 · 50 = 4,902.
        assert_eq!(median_ranks(10_000, 0.05).unwrap().lower, 4902);
    }

    #[test]
    fn the_median_lies_between_order_statistics() {
        let values = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0];
        assert_eq!(median_interval(&values, 0.05), Some((2.0, 8.0)));
        assert_eq!(median_interval(&values[..5], 0.05), None);
        assert_eq!(median_interval(&[f64::NAN; 9], 0.05), None);
    }
}
