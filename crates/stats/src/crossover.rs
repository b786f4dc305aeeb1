//! What the order within a round does, and the comparison without it.
//!
//! In each round one of two treatments comes first, and in the next round the other one does. The first
//! one may find something that the second does not: memory that was not used for a while, a cold
//! cache, a drive that has to wake up. On average this hits both alike, but it makes the differences of
//! the rounds jump to and fro, which looks like noise and costs rounds. The order is known, so its
//! effect can be estimated and taken out: the analysis of an AB/BA crossover with effects of the period
//! (Hills and Armitage, British Journal of Clinical Pharmacology 8, 1979). It costs one degree of
//! freedom.

use crate::interval::{all_finite, mean};

/// Log differences of rounds without the effect of the order.
#[derive(Debug, Clone, PartialEq)]
pub struct WithoutOrder {
    /// Differences, one for each round.
    pub differences: Vec<f64>,
    /// The logarithm of how many times as good a treatment is when it comes second as when it comes first.
    pub effect: f64,
    /// The share of the rounds that counts: 1 if each treatment came first equally often.
    pub balance: f64,
}

impl WithoutOrder {
    /// Makes them from the log differences `ln(B) - ln(A)` of rounds, and whether A came first in each.
    ///
    /// `None` with fewer than two rounds of either order, as one of them alone shows no noise; with
    /// lists of different lengths; with a value that is not finite.
    pub fn of(log_differences: &[f64], a_first: &[bool]) -> Option<Self> {
        if log_differences.len() != a_first.len() || !all_finite(log_differences) {
            return None;
        }
        let most = log_differences.len();
        let (mut ab, mut ba) = (Vec::with_capacity(most), Vec::with_capacity(most));
        for (difference, first) in log_differences.iter().zip(a_first) {
            match first {
                true => ab.push(*difference),
                false => ba.push(*difference),
            }
        }
        if ab.len().min(ba.len()) < 2 {
            return None;
        }
        let effect = (mean(&ab) - mean(&ba)) / 2.0;
        let rounds = log_differences.iter().zip(a_first);
        let without = |(difference, first): (&f64, &bool)| match first {
            true => difference - effect,
            false => difference + effect,
        };
        let n = log_differences.len() as f64;
        Some(Self {
            differences: rounds.map(without).collect(),
            effect,
            balance: 4.0 * (ab.len() as f64 / n) * (ba.len() as f64 / n),
        })
    }

    /// Keeps differences that have no order as they are.
    pub fn none(log_differences: Vec<f64>) -> Self {
        Self {
            differences: log_differences,
            effect: 0.0,
            balance: 1.0,
        }
    }

    /// The weighted mean of several figures of the same rounds, each without the effect of its own order.
    ///
    /// `None` of nothing, of different numbers of rounds, or where no weight is above 0.
    pub fn mean(parts: &[(f64, Self)]) -> Option<Self> {
        let rounds = parts.first()?.1.differences.len();
        let weights: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let same = |(_, part): &(f64, Self)| part.differences.len() == rounds;
        if !parts.iter().all(same) || weights <= 0.0 {
            return None;
        }
        let of_all = |value: &dyn Fn(&Self) -> f64| {
            let parts = parts.iter();
            parts
                .map(|(weight, part)| weight * value(part))
                .sum::<f64>()
                / weights
        };
        Some(Self {
            differences: (0..rounds)
                .map(|round| of_all(&|part| part.differences[round]))
                .collect(),
            effect: of_all(&|part| part.effect),
            // The least balanced one says how much there is at least.
            balance: parts
                .iter()
                .map(|(_, part)| part.balance)
                .fold(1.0, f64::min),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [bool; 5] = [true, false, true, false, true];

    /// Least squares by hand: of AB 0.5, 0.7, 0.6 the mean is 0.6, of BA 0.1, 0.3 it is 0.2.
    #[test]
    fn the_effect_of_the_order_is_half_the_difference_of_both_means() {
        let found = WithoutOrder::of(&[0.5, 0.1, 0.7, 0.3, 0.6], &FIRST).unwrap();
        assert!((found.effect - 0.2).abs() < 1e-12);
        let expected = [0.3, 0.3, 0.5, 0.5, 0.4];
        for (got, expected) in found.differences.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12);
        }
        assert!((mean(&found.differences) - 0.4).abs() < 1e-12);
        // 5 (1 - 1/25) rounds count.
        assert!((found.balance - 24.0 / 25.0).abs() < 1e-12);
    }

    #[test]
    fn one_round_of_an_order_is_too_few_to_know_its_effect() {
        assert_eq!(WithoutOrder::of(&[0.1; 3], &FIRST[..3]), None);
        assert_eq!(WithoutOrder::of(&[0.1; 4], &[true; 4]), None);
        assert_eq!(WithoutOrder::of(&[0.1; 4], &FIRST), None);
        assert_eq!(
            WithoutOrder::of(&[0.1, f64::NAN, 0.1, 0.1, 0.1], &FIRST),
            None
        );
    }

    #[test]
    fn workloads_lose_the_effect_of_their_own_order() {
        let part = |sign: f64, first: [bool; 5]| {
            let differences = first.map(|first| 0.1 + if first { sign } else { -sign });
            (1.0, WithoutOrder::of(&differences, &first).unwrap())
        };
        let opposite = FIRST.map(|first| !first);
        let both = WithoutOrder::mean(&[part(0.3, FIRST), part(0.3, opposite)]).unwrap();
        assert!(both.differences.iter().all(|d| (d - 0.1).abs() < 1e-12));
        assert!((both.effect - 0.3).abs() < 1e-12);
        assert_eq!(WithoutOrder::mean(&[]), None);
        let short = (1.0, WithoutOrder::none(vec![0.1; 4]));
        assert_eq!(WithoutOrder::mean(&[part(0.3, FIRST), short]), None);
    }
}
