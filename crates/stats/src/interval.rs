//! The ratio of two treatments, with the interval that says how sure it is.
//!
//! A ratio is estimated on the natural-log scale, where "B is twice A" and "A is twice B" are
//! equally far from "no difference", and where the noise of throughputs and times is closer to
//! symmetric. The interval is Student's: with few rounds, the spread itself is uncertain, and
//! the t multiplier pays for that (9.9 standard errors at 3 rounds, 3.5 at 8).
//!
//! Pairing is what makes a small number of rounds enough: [`paired_ratio`] takes one difference per
//! round, so a slow afternoon that slowed both treatments is not noise. [`welch_ratio`] is for
//! imported figures that cannot be paired; it cannot tell a treatment from the hour it was tried
//! in, and every report of it must say so.

use std::cell::RefCell;
use std::collections::HashMap;

use libm::{exp, log as ln};
use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, StudentsT};

/// An estimate on the ratio scale with its interval.
///
/// `low <= estimate <= high`, all positive and finite. 1 means "no difference" where this is a
/// ratio of two treatments; a geometric mean has the unit of its values instead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The best single guess.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// Takes a ratio from the log scale. Ends beyond the range of `f64` are moved to its edge, so
    /// that an absurdly wide interval stays a number that can be stored and compared.
    pub(crate) fn from_log(estimate: f64, low: f64, high: f64) -> Option<Ratio> {
        if estimate.is_nan() || low.is_nan() || high.is_nan() {
            return None;
        }
        // Clamped, so that a ratio is always finite and above 0.
        // Each limit is the other one's reciprocal, so that exchanging the treatments keeps the statement.
        let ratio = |log: f64| exp(log).clamp(f64::MIN_POSITIVE, f64::MIN_POSITIVE.recip());
        Some(Ratio {
            estimate: ratio(estimate),
            low: ratio(low),
            high: ratio(high),
        })
    }

    /// Returns true if "no difference" is outside the interval.
    pub fn excludes_one(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// The same with both ends moved out by so much on the log scale.
    #[must_use]
    pub fn widened(&self, log_width: f64) -> Ratio {
        let out = exp(log_width);
        let within = |end: f64| end.clamp(f64::MIN_POSITIVE, f64::MIN_POSITIVE.recip());
        Ratio {
            low: within(self.low / out),
            high: within(self.high * out),
            ..*self
        }
    }

    /// The same statement with the roles of the two treatments exchanged.
    #[must_use]
    pub fn inverse(&self) -> Ratio {
        Ratio {
            estimate: 1.0 / self.estimate,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
        }
    }
}

/// The ratio B over A from one log difference `ln(B) - ln(A)` per round, with the two-sided t
/// interval of level `1 - alpha`: `exp(mean ± t · sd / √n)`.
///
/// Identical differences give an interval of no width. `None` with fewer than two rounds, with
/// a value that is not finite, or with an `alpha` outside (0, 1).
pub fn paired_ratio(log_differences: &[f64], alpha: f64) -> Option<Ratio> {
    Spread::of(log_differences).ratio(1.0, 1.0, alpha)
}

/// What a list says of its mean, whatever level is asked: of one list several are, and of a long run the sums take most
/// of the time of a check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    n: f64,
    finite: bool,
    /// The mean of the values.
    pub(crate) mean: f64,
    variance: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mean = mean(values);
        Self {
            n: values.len() as f64,
            finite: all_finite(values),
            mean,
            variance: variance_around(mean, values),
        }
    }

    /// The interval where the values have lost `estimated` degrees of freedom, and only a share of the rounds counts for
    /// the error of their mean.
    pub(crate) fn ratio(&self, estimated: f64, share: f64, alpha: f64) -> Option<Ratio> {
        let freedom = self.n - estimated;
        if freedom < 1.0 || !is_level(alpha) || !self.finite {
            return None;
        }
        let half_width =
            t_quantile(1.0 - alpha / 2.0, freedom) * self.standard_error(estimated, share);
        Ratio::from_log(self.mean, self.mean - half_width, self.mean + half_width)
    }

    /// The standard error of the mean of such values.
    pub(crate) fn standard_error(&self, estimated: f64, share: f64) -> f64 {
        let variance = self.variance * ((self.n - 1.0) / (self.n - estimated));
        (variance / (self.n * share)).sqrt()
    }
}

/// The ratio B over A from logarithms of values that are not paired (Welch, Biometrika 34, 1947:
/// unequal spreads, degrees of freedom after Satterthwaite).
///
/// For imported figures only: nothing in them separates the treatment from the time of day.
/// `None` with fewer than two values on a side, with a value that is not finite, or with an
/// `alpha` outside (0, 1).
pub fn welch_ratio(log_a: &[f64], log_b: &[f64], alpha: f64) -> Option<Ratio> {
    if log_a.len() < 2 || log_b.len() < 2 || !is_level(alpha) {
        return None;
    }
    if !all_finite(log_a) || !all_finite(log_b) {
        return None;
    }
    let (n_a, n_b) = (log_a.len() as f64, log_b.len() as f64);
    let (part_a, part_b) = (variance(log_a) / n_a, variance(log_b) / n_b);
    let centre = mean(log_b) - mean(log_a);
    let total = part_a + part_b;
    if total == 0.0 {
        return Ratio::from_log(centre, centre, centre);
    }
    // As shares of the total, so that tiny variances do not underflow when squared.
    let (share_a, share_b) = (part_a / total, part_b / total);
    let df = 1.0 / (share_a * share_a / (n_a - 1.0) + share_b * share_b / (n_b - 1.0));
    let half_width = t_quantile(1.0 - alpha / 2.0, df) * total.sqrt();
    Ratio::from_log(centre, centre - half_width, centre + half_width)
}

/// The geometric mean of positive values in their own unit, with the t interval of level
/// `1 - alpha` on the log scale.
///
/// `None` with fewer than two values, with one that is not positive and finite, or with an
/// `alpha` outside (0, 1).
pub fn geometric_mean(values: &[f64], alpha: f64) -> Option<Ratio> {
    if values.iter().any(|&value| value <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| ln(*value)).collect();
    paired_ratio(&logs, alpha)
}

/// The arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let rough = values.iter().sum::<f64>() / n;
    // A second pass takes back the rounding of the first sum (NIST StRD NumAcc4 needs it).
    rough + values.iter().map(|value| value - rough).sum::<f64>() / n
}

/// The sample variance, divisor n − 1; NaN with fewer than two values.
///
/// Two passes with the correction term of Chan, Golub and LeVeque (The American Statistician
/// 37, 1983): the textbook formula loses every digit when the spread is small beside the mean.
pub fn variance(values: &[f64]) -> f64 {
    variance_around(mean(values), values)
}

/// The same of values whose mean is known.
fn variance_around(mean: f64, values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let n = values.len() as f64;
    let (mut squares, mut residue) = (0.0, 0.0);
    for value in values {
        let apart = value - mean;
        squares += apart * apart;
        residue += apart;
    }
    (squares - residue * residue / n).max(0.0) / (n - 1.0)
}

/// The middle value, or the mean of the two middle ones. `None` of nothing or of NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(median_of_sorted(&sorted))
}

/// The median of values in ascending order; there must be at least one.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        // Half of each, because the sum of two large values may overflow.
        sorted[middle - 1] / 2.0 + sorted[middle] / 2.0
    }
}

/// The value that Student's t with `df` degrees of freedom stays below with probability `p`.
///
/// Infinite at `p` = 0 and 1; NaN if `p` is outside [0, 1] or `df` is not positive.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let Ok(student) = StudentsT::new(0.0, 1.0, df) else {
        return f64::NAN;
    };
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    // The distribution is symmetric: one tail is enough, and it keeps its precision near 1.
    let tail = p.min(1.0 - p);
    let distance = if tail == 0.0 {
        f64::INFINITY
    } else if tail == 0.5 {
        0.0
    } else {
        KNOWN_DISTANCES.with_borrow_mut(|known| {
            if known.len() >= DISTANCES_MAX {
                known.clear();
            }
            let asked = (tail.to_bits(), df.to_bits());
            *known
                .entry(asked)
                .or_insert_with(|| distance_of_tail(&student, tail))
        })
    };
    if p < 0.5 { -distance } else { distance }
}

/// Distances that a thread remembers: more than one check of a large run asks for.
const DISTANCES_MAX: usize = 4096;

thread_local! {
    // All comparisons of a check have the same few levels and numbers of rounds, and each distance takes some ten
    // incomplete beta functions.
    static KNOWN_DISTANCES: RefCell<HashMap<(u64, u64), f64>> = RefCell::default();
}

/// Number of equally probable parts that a deviation to come is spread over.
const PARTS: u32 = 16;

/// The middles of these parts of chi squared with `values - 1` degrees of freedom, ascending.
pub(crate) fn chi_parts(values: usize) -> Vec<f64> {
    KNOWN_PARTS.with_borrow_mut(|(known, parts)| {
        if *known != values {
            let freedom = values as f64 - 1.0;
            let spread = ChiSquared::new(freedom).ok();
            let at = |part: u32| {
                let share = (f64::from(part) + 0.5) / f64::from(PARTS);
                spread.map_or(freedom, |spread| spread.inverse_cdf(share))
            };
            (*known, *parts) = (values, (0..PARTS).map(at).collect());
        }
        parts.clone()
    })
}

thread_local! {
    // All comparisons of a check have the same number of rounds, and each part takes many incomplete gamma functions.
    static KNOWN_PARTS: RefCell<(usize, Vec<f64>)> = RefCell::default();
}

/// The `t > 0` beyond which `student` has probability `tail`, 0 < tail < 0.5.
///
/// `ln sf(t)` is concave and falling in `ln t`, nearly a straight line far out (slope −df), so
/// Newton's method on these two logarithms needs about five steps; the bracket only guards it
/// where `sf` underflows. (The `inverse_cdf` of statrs 0.19 is off by 1e-3 at a million degrees
/// of freedom and by orders of magnitude far out at one; its `sf` is good throughout.)
fn distance_of_tail(student: &StudentsT, tail: f64) -> f64 {
    /// Bisection alone needs about 60 steps for all digits.
    const STEPS_MAX: u32 = 100;
    // Newton's method can overshoot far in the tail, so the root is bracketed first.
    let (mut below, mut above) = (0.0, 1.0);
    while student.sf(above) > tail {
        below = above;
        above *= 2.0;
    }
    let mut t = above;
    for _ in 0..STEPS_MAX {
        let beyond = student.sf(t);
        if beyond > tail {
            below = t;
        } else {
            above = t;
        }
        let slope = t * student.pdf(t) / beyond;
        let newton = t * exp(ln(beyond / tail) / slope);
        if (newton - t).abs() <= 4.0 * f64::EPSILON * t {
            break;
        }
        t = if newton > below && newton < above {
            newton
        } else {
            below.midpoint(above)
        };
    }
    t
}

/// Returns true if `alpha` is a probability of error that an interval can have.
pub(crate) fn is_level(alpha: f64) -> bool {
    alpha > 0.0 && alpha < 1.0
}

/// Returns true if every value is a number that can be computed with.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data (Biometrika 6, 1908): extra hours of sleep with two drugs.
    const SLEEP_1: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const SLEEP_2: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    #[track_caller]
    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!(
            (got - expected).abs() <= tolerance,
            "{got} is not {expected}"
        );
    }

    /// methodology, number of rounds: two-sided 95 % multipliers, alone and shared by looks.
    #[test]
    fn t_multipliers_of_the_stopping_rule() {
        let table = [
            (3, 4.30, 9.92, 8.81),
            (5, 2.78, 4.60, 4.30),
            (8, 2.36, 3.50, 3.33),
            (12, 2.20, 3.11, 2.97),
            (20, 2.09, 2.86, 2.75),
        ];
        for (n, plain, fifth, calibrated) in table {
            let df = f64::from(n - 1);
            close(t_quantile(0.975, df), plain, 0.005);
            close(t_quantile(1.0 - 0.05 / 5.0 / 2.0, df), fifth, 0.005);
            close(t_quantile(1.0 - 0.01264 / 2.0, df), calibrated, 0.0051);
        }
    }

    /// One and two degrees of freedom have closed forms; from the centre to the far tail.
    #[test]
    fn t_quantile_agrees_with_the_closed_forms() {
        for p in [1e-12, 1e-4, 0.01, 0.3, 0.499_999, 0.6, 0.975, 0.999_9] {
            let q: f64 = p - 0.5;
            let cauchy = -1.0 / (std::f64::consts::PI * p).tan();
            close(t_quantile(p, 1.0), cauchy, 1e-10 * cauchy.abs().max(1.0));
            let two = 2.0 * q / (2.0 * p * (1.0 - p)).sqrt();
            close(t_quantile(p, 2.0), two, 1e-10 * two.abs().max(1.0));
        }
        assert_eq!(t_quantile(0.5, 7.0), 0.0);
        assert_eq!(t_quantile(0.0, 7.0), f64::NEG_INFINITY);
        assert_eq!(t_quantile(1.0, 7.0), f64::INFINITY);
        assert!(t_quantile(1.5, 7.0).is_nan());
        assert!(t_quantile(0.9, 0.0).is_nan());
    }

    /// With many degrees of freedom t becomes normal: t ≈ z + (z³ + z) / (4 df).
    #[test]
    fn t_quantile_becomes_normal() {
        let z: f64 = 1.959_963_984_540_054;
        for df in [1e3, 1e4, 1e5, 1e6, f64::INFINITY] {
            close(
                t_quantile(0.975, df),
                z + (z.powi(3) + z) / (4.0 * df),
                5.0 / (df * df) + 1e-9,
            );
        }
    }

    #[test]
    fn the_quantile_and_the_tail_are_inverse() {
        for df in [1.0, 2.0, 2.5, 4.0, 19.0, 200.0, 9_999.0] {
            for tail in [1e-100, 1e-30, 1e-9, 0.001, 0.025, 0.2, 0.45] {
                let student = StudentsT::new(0.0, 1.0, df).unwrap();
                let back = student.sf(-t_quantile(tail, df));
                close(back / tail, 1.0, 1e-8);
            }
        }
    }

    #[test]
    fn the_paired_interval_of_the_sleep_data_is_as_published() {
        let differences: Vec<f64> = SLEEP_1.iter().zip(SLEEP_2).map(|(a, b)| a - b).collect();
        let ratio = paired_ratio(&differences, 0.05).unwrap();
        close(ratio.estimate.ln(), -1.58, 1e-12);
        close(ratio.low.ln(), -2.459_885_8, 1e-7);
        close(ratio.high.ln(), -0.700_114_2, 1e-7);
    }

    #[test]
    fn the_welch_interval_of_the_sleep_data_is_as_published() {
        let ratio = welch_ratio(&SLEEP_2, &SLEEP_1, 0.05).unwrap();
        close(ratio.low.ln(), -3.365_483_2, 1e-7);
        close(ratio.high.ln(), 0.205_483_2, 1e-7);
        // p = 0.0793941: the interval of exactly that level ends at "no difference".
        let edge = welch_ratio(&SLEEP_2, &SLEEP_1, 0.079_394_14).unwrap();
        close(edge.high.ln(), 0.0, 1e-6);
    }

    #[test]
    fn a_geometric_mean_has_the_unit_of_its_values() {
        let got = geometric_mean(&[100.0, 400.0], 0.05).unwrap();
        close(got.estimate, 200.0, 1e-9);
        // By hand: ln 4 / 2 = 0.6931 either side, sd 0.9803, t(.975, 1) = 12.706.
        close(
            got.high.ln() - got.estimate.ln(),
            12.706_204_736 * 4.0_f64.ln() / 2.0,
            1e-6,
        );
        assert_eq!(geometric_mean(&[100.0], 0.05), None);
        assert_eq!(geometric_mean(&[100.0, 0.0], 0.05), None);
        assert_eq!(geometric_mean(&[100.0, f64::INFINITY], 0.05), None);
    }

    #[test]
    fn nothing_is_said_without_evidence() {
        assert_eq!(paired_ratio(&[], 0.05), None);
        assert_eq!(paired_ratio(&[0.1], 0.05), None);
        assert_eq!(paired_ratio(&[0.1, f64::NAN], 0.05), None);
        assert_eq!(paired_ratio(&[0.1, 0.2], 0.0), None);
        assert_eq!(paired_ratio(&[0.1, 0.2], 1.0), None);
        assert_eq!(welch_ratio(&[0.1], &[0.1, 0.2], 0.05), None);
        assert_eq!(welch_ratio(&[0.1, 0.3], &[0.1, f64::INFINITY], 0.05), None);
    }

    #[test]
    fn identical_differences_have_no_width() {
        let ratio = paired_ratio(&[0.25; 4], 0.01).unwrap();
        assert_eq!((ratio.low, ratio.high), (ratio.estimate, ratio.estimate));
        let ratio = welch_ratio(&[1.0; 3], &[1.5; 2], 0.05).unwrap();
        assert_eq!((ratio.low, ratio.high), (0.5_f64.exp(), 0.5_f64.exp()));
    }

    /// Two rounds that disagree by e^1000: the interval is useless, but it is still numbers.
    #[test]
    fn an_absurd_interval_stays_finite_and_positive() {
        let ratio = paired_ratio(&[-500.0, 500.0], 0.01).unwrap();
        assert!(ratio.low > 0.0 && ratio.high.is_finite());
        assert!(ratio.low <= ratio.estimate && ratio.estimate <= ratio.high);
    }

    #[test]
    fn a_median_needs_numbers_and_averages_the_middle_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }
}
