//! Where a trial changed in the middle: a cache that was full, a processor that was throttled, a
//! device that began to collect garbage.
//!
//! The series is cut into segments of constant level so that the squared distances on the log
//! scale plus a penalty for each segment are least (optimal partitioning: Jackson et al., IEEE
//! Signal Processing Letters 12, 2005). The penalty decides what is believed. Neighbouring values
//! of a trial resemble each other, and a penalty made for independent ones takes every slow
//! wandering for a step; so it is made for noise of the correlation that the segments themselves
//! leave behind. Its error rates are in `bench/results/rules.md`, from simulations in
//! `examples/validate`.

use crate::autocorrelation::lag_one;
use crate::interval::{mean, median};
use libm::{exp, log as ln};

/// The penalty of a segment, in variances of the noise times `ln n`. A criterion for independent
/// noise (Schwarz) has 2.
const PENALTY: f64 = 10.0;
/// Smallest part of a series that is a segment (a twelfth): what is shorter is an event, not a level.
const SEGMENTS_MAX: usize = 12;
/// Smallest ratio of the levels on both sides of a change (up or down).
pub const CHANGE_MIN: f64 = 1.10;
/// Fewest and most values that are cut. The work grows with the square of their number.
pub const VALUES_MIN: usize = 20;
/// Most values that are cut: see [`VALUES_MIN`].
pub const VALUES_MAX: usize = 2_000;
/// A value below this share of the mean counts as this share, so that a stall has a logarithm.
const FLOOR: f64 = 0.01;
/// Noise is never taken for less than this, on the log scale.
const NOISE_MIN: f64 = 0.01;

/// A stretch of a series with one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// First value, from 0.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// Geometric mean of its values.
    pub level: f64,
}

/// The segments of a series of values that are not negative, in order; one: nothing changed.
///
/// Neighbouring segments differ by [`CHANGE_MIN`] at least. `None` with fewer than [`VALUES_MIN`]
/// or more than [`VALUES_MAX`] values, with one that is negative or not finite, or where all are 0.
pub fn segments(values: &[f64]) -> Option<Vec<Segment>> {
    let n = values.len();
    let usable = values
        .iter()
        .all(|value| value.is_finite() && *value >= 0.0);
    if !(VALUES_MIN..=VALUES_MAX).contains(&n) || !usable {
        return None;
    }
    let floor = FLOOR * mean(values);
    if floor <= 0.0 {
        return None;
    }
    // A value of 0 has no logarithm: it counts as the floor.
    let logs: Vec<f64> = values.iter().map(|value| ln(value.max(floor))).collect();
    let sums = Sums::of(&logs);
    let mut variance = noise(&logs).powi(2);
    let mut cuts = sums.partition(PENALTY * variance * ln(n as f64));
    // More penalty leaves fewer segments and more to the noise: it ends.
    while cuts.len() > 2 {
        let left = long_run_variance(&logs, &cuts);
        if left <= variance {
            break;
        }
        variance = left;
        cuts = sums.partition(PENALTY * variance * ln(n as f64));
    }
    sums.merge(&mut cuts);
    Some(
        cuts.windows(2)
            .map(|cut| Segment {
                start: cut[0],
                end: cut[1],
                level: exp(sums.mean(cut[0], cut[1])),
            })
            .collect(),
    )
}

/// Deviation of the noise, from the differences of neighbours, to which a step adds one value:
/// `1.4826 · median |difference| / √2`, or by their mean where more than half of them are 0.
fn noise(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .collect();
    let typical = match median(&steps) {
        // The factor makes the median deviation of normal noise its standard deviation.
        Some(middle) if middle > 0.0 => 1.482_6 * middle,
        // The mean of |z| is √(2 / π) of the deviation.
        _ => mean(&steps) * std::f64::consts::FRAC_PI_2.sqrt(),
    };
    (typical / std::f64::consts::SQRT_2).max(NOISE_MIN)
}

/// Variance by which long means of what the segments leave behind go: with a correlation of ρ
/// between neighbours `σ² (1 + ρ) / (1 − ρ)`.
fn long_run_variance(logs: &[f64], cuts: &[usize]) -> f64 {
    /// Beyond this correlation a level and a wandering cannot be told apart.
    const CORRELATION_MAX: f64 = 0.9;
    let mut rest = Vec::with_capacity(logs.len());
    for cut in cuts.windows(2) {
        let part = &logs[cut[0]..cut[1]];
        let level = mean(part);
        // What a level explains is no noise; only what is left of each segment is.
        rest.extend(part.iter().map(|log| log - level));
    }
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    // Each segment's mean costs one degree of freedom; `cuts` holds one entry more than segments.
    let free = (logs.len() + 1 - cuts.len()).max(1) as f64;
    let correlation = lag_one(&rest).unwrap_or(0.0).clamp(0.0, CORRELATION_MAX);
    squares / free * (1.0 + correlation) / (1.0 - correlation)
}

/// Running sums of a series and of its squares: the mean and the spread of any stretch at once.
struct Sums {
    /// Amount that was taken off every value, so that differences of the sums lose no digits.
    centre: f64,
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(logs: &[f64]) -> Sums {
        let centre = mean(logs);
        let (mut values, mut squares) = (vec![0.0], vec![0.0]);
        for (at, log) in logs.iter().enumerate() {
            let value = log - centre;
            values.push(values[at] + value);
            squares.push(squares[at] + value * value);
        }
        Sums {
            centre,
            values,
            squares,
        }
    }

    fn mean(&self, start: usize, end: usize) -> f64 {
        self.centre + (self.values[end] - self.values[start]) / (end - start) as f64
    }

    /// Sum of squared distances from the mean.
    fn spread(&self, start: usize, end: usize) -> f64 {
        let sum = self.values[end] - self.values[start];
        let squares = self.squares[end] - self.squares[start];
        (squares - sum * sum / (end - start) as f64).max(0.0)
    }

    /// The borders (0 and the length among them) with the least sum of spreads and penalties.
    fn partition(&self, penalty: f64) -> Vec<usize> {
        let n = self.values.len() - 1;
        // The best of each beginning: its cost, and where its last segment starts.
        // Limits the number of segments, and with it the work.
        let shortest = n.div_ceil(SEGMENTS_MAX);
        let mut best = vec![(f64::INFINITY, 0); n + 1];
        best[0] = (0.0, 0);
        for end in shortest..=n {
            for start in 0..=end - shortest {
                let cost = best[start].0 + self.spread(start, end) + penalty;
                if cost < best[end].0 {
                    best[end] = (cost, start);
                }
            }
        }
        let mut cuts = vec![n];
        let mut at = n;
        while at > 0 {
            at = best[at].1;
            cuts.push(at);
        }
        cuts.reverse();
        cuts
    }

    /// Takes borders away, the smallest change first, until every one left is large enough.
    fn merge(&self, cuts: &mut Vec<usize>) {
        loop {
            let change = |at: &usize| {
                let before = self.mean(cuts[at - 1], cuts[*at]);
                let after = self.mean(cuts[*at], cuts[at + 1]);
                (after - before).abs()
            };
            let inner = 1..cuts.len() - 1;
            let smallest = inner.min_by(|a, b| change(a).total_cmp(&change(b)));
            match smallest {
                Some(at) if change(&at) < ln(CHANGE_MIN) => {
                    cuts.remove(at);
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(values: &[f64]) -> Vec<usize> {
        let found = segments(values).unwrap();
        found.iter().map(|segment| segment.start).collect()
    }

    /// A reference case of otava (Apache-2.0, `tests/analysis_test.py`): the change is at 10.
    #[test]
    fn the_change_in_the_reference_case_of_otava_is_at_10() {
        let series = [
            1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48,
            0.55, 0.50, 0.49, 0.51, 0.50, 0.49,
        ];
        let found = segments(&series).unwrap();
        assert_eq!(starts(&series), vec![0, 10]);
        assert!((found[0].level - 1.003).abs() < 0.001 && (found[1].level - 0.501).abs() < 0.001);
        assert_eq!((found[0].end, found[1].end), (10, 20));
    }

    #[test]
    fn a_constant_series_has_one_level() {
        assert_eq!(starts(&[7.0; 60]), vec![0]);
        assert!((segments(&[7.0; 60]).unwrap()[0].level - 7.0).abs() < 1e-12);
    }

    /// Waves of a period of 20 whose levels differ by 5 %: below what counts as a change.
    #[test]
    fn what_is_small_is_no_change() {
        let wave: Vec<f64> = (0..60)
            .map(|at| if at / 20 % 2 == 0 { 1.0 } else { 1.05 })
            .collect();
        assert_eq!(starts(&wave), vec![0]);
        let wave: Vec<f64> = (0..60)
            .map(|at| if at / 20 % 2 == 0 { 1.0 } else { 1.2 })
            .collect();
        assert_eq!(starts(&wave), vec![0, 20, 40]);
    }

    #[test]
    fn a_stall_has_a_level() {
        let mut series = vec![100.0; 40];
        series[20..30].fill(0.0);
        assert_eq!(starts(&series), vec![0, 20, 30]);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        assert_eq!(segments(&[1.0; VALUES_MIN - 1]), None);
        assert_eq!(segments(&vec![1.0; VALUES_MAX + 1]), None);
        assert_eq!(segments(&[0.0; 30]), None);
        assert_eq!(segments(&[-1.0; 30]), None);
        assert_eq!(segments(&[f64::NAN; 30]), None);
    }
}
