//! Whether a trial, or a device over several passes, has reached a steady state.
//!
//! Two questions with published answers. *When does the warm-up end?* is answered by MSER-5 (White,
//! Simulation 69, 1997; White, Cobb and Spratt, Winter Simulation Conference 2000): drop the
//! leading batches of five that minimise the standard error of the rest. *Is it level?* is the
//! steady state of the SNIA Solid State Storage Performance Test Specification: over a window of
//! five values, the largest and the smallest differ by no more than 20 % of the mean, and the
//! fitted line rises or falls by no more than 10 % of it.
//!
//! The second is a filter, not a proof: a slide of 2 % from value to value mostly passes, and
//! values that scatter by 10 % fail in seven of ten cases. Reports therefore show range and slope
//! with it.

use crate::interval::{all_finite, mean};

/// Values in a steady-state window.
pub const WINDOW: usize = 5;
/// Passes over a device within which the window must have been found.
pub const PASSES_MAX: usize = 25;
/// Most of the mean that lies between the largest and the smallest value, inclusive.
pub const RANGE_MAX: f64 = 0.20;
/// Most of the mean that the fitted line covers over the window, inclusive.
pub const SLOPE_MAX: f64 = 0.10;
/// Values in a batch of MSER-5.
const BATCH: usize = 5;

/// Range and slope of a window, as shares of its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyWindow {
    /// Mean of the window's values, in their unit.
    pub mean: f64,
    /// Largest less smallest value.
    pub range: f64,
    /// Rise of the least-squares line over the window; negative if it falls.
    pub slope: f64,
}

impl SteadyWindow {
    /// The level of a window of at least two values: positive ones, equally far apart in time.
    ///
    /// `None` of fewer, of one that is not finite, or of a mean that is not positive.
    pub fn of(window: &[f64]) -> Option<SteadyWindow> {
        if window.len() < 2 || !all_finite(window) {
            return None;
        }
        let centre = mean(window);
        if centre <= 0.0 {
            return None;
        }
        let largest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let smallest = window.iter().copied().fold(f64::INFINITY, f64::min);
        let last = (window.len() - 1) as f64;
        Some(SteadyWindow {
            mean: centre,
            range: (largest - smallest) / centre,
            slope: slope(window) * last / centre,
        })
    }

    /// Returns true if the criterion holds. Its limits belong to it: "no more than 20 %", "within 10 %".
    pub fn is_steady(&self) -> bool {
        // A value exactly at the decimal limit must not fail because of binary rounding.
        const GRACE: f64 = 1e-12;
        self.range <= RANGE_MAX + GRACE && self.slope.abs() <= SLOPE_MAX + GRACE
    }
}

/// Slope of the least-squares line through values at 0, 1, 2 …
fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() - 1) as f64 / 2.0;
    let centre = mean(values);
    let (mut products, mut squares) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let x = at as f64 - middle;
        products += x * (value - centre);
        squares += x * x;
    }
    products / squares
}

/// The first window of [`WINDOW`] values that is steady: where it ends, exclusive, and its level.
///
/// All that is measured afterwards is measured in the steady state; the window itself was chosen
/// for being level and is no measurement.
pub fn steady_after(passes: &[f64]) -> Option<(usize, SteadyWindow)> {
    passes
        .windows(WINDOW)
        .enumerate()
        .filter_map(|(at, window)| Some((at + WINDOW, SteadyWindow::of(window)?)))
        .find(|(_, level)| level.is_steady())
}

/// The warm-up of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    /// Number of values from the start that are warm-up.
    pub values: usize,
    /// Set if its end was found. If not, half of the trial is dropped, which may be too little.
    pub ended: bool,
}

/// The warm-up of a series by MSER-5: of the means of batches of five, leave out the first d that
/// minimise `Σ (x(i) − x̄)² / (m − d)²` over what is left, d at most half of the m batches.
///
/// `None` with fewer than ten batches (fifty values) or with a value that is not finite.
pub fn warm_up(values: &[f64]) -> Option<WarmUp> {
    const BATCHES_MIN: usize = 10;
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < BATCHES_MIN || !all_finite(values) {
        return None;
    }
    let cut_max = batches.len() / 2;
    // From the end, mean and sum of squares are updated by one value at a time (Welford).
    let (mut n, mut centre, mut squares) = (0.0, 0.0, 0.0);
    let (mut best, mut least) = (0, f64::INFINITY);
    for (at, value) in batches.iter().enumerate().rev() {
        n += 1.0;
        let before = value - centre;
        centre += before / n;
        squares += before * (value - centre);
        let score = squares / (n * n);
        // Of equal cuts the earlier one keeps more values.
        if at <= cut_max && score <= least {
            (best, least) = (at, score);
        }
    }
    Some(WarmUp {
        values: best * BATCH,
        ended: best < cut_max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(window: [f64; 5]) -> SteadyWindow {
        SteadyWindow::of(&window).unwrap()
    }

    /// Worked by hand after the wording of the specification.
    #[test]
    fn steady_is_what_the_wording_of_the_specification_says() {
        assert!(level([100.0; 5]).is_steady());
        let spike = level([100.0, 100.0, 120.0, 100.0, 100.0]);
        assert!(spike.is_steady() && spike.slope == 0.0 && spike.mean == 104.0);
        assert!(!level([100.0, 100.0, 122.0, 100.0, 100.0]).is_steady());
        // The range is 20 of 20.8 allowed, but the line rises by 4 a value: 16 of 10.4 allowed.
        let late = level([100.0, 100.0, 100.0, 100.0, 120.0]);
        assert!(late.range <= RANGE_MAX && !late.is_steady());
        assert!((late.slope - 16.0 / 104.0).abs() < 1e-15);
        // Exactly 10 %: "no more than" includes it, in either direction.
        assert!(level([95.0, 97.5, 100.0, 102.5, 105.0]).is_steady());
        assert!(level([105.0, 102.5, 100.0, 97.5, 95.0]).is_steady());
        assert!(!level([94.9, 97.5, 100.0, 102.5, 105.1]).is_steady());
    }

    #[test]
    fn too_few_or_invalid_values_have_no_window() {
        assert_eq!(SteadyWindow::of(&[100.0]), None);
        assert_eq!(SteadyWindow::of(&[0.0; 5]), None);
        assert_eq!(SteadyWindow::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn a_device_that_falls_and_comes_to_rest() {
        let passes = [
            900.0, 700.0, 500.0, 380.0, 320.0, 300.0, 290.0, 295.0, 300.0, 298.0,
        ];
        let (after, level) = steady_after(&passes).unwrap();
        assert_eq!(after, 9, "the window of 320 to 300 is the first");
        assert!(level.is_steady() && (level.mean - 301.0).abs() < 1e-12);
        assert_eq!(steady_after(&passes[..8]), None);
        assert_eq!(steady_after(&[]), None);
    }

    #[test]
    fn the_reference_cases_of_the_warm_up() {
        let step: Vec<f64> = (0..500).map(|at| if at < 25 { 0.0 } else { 1.0 }).collect();
        let found = warm_up(&step).unwrap();
        assert_eq!(
            found,
            WarmUp {
                values: 25,
                ended: true
            }
        );
        let ramp: Vec<f64> = (0..500).map(f64::from).collect();
        let found = warm_up(&ramp).unwrap();
        assert_eq!(
            found,
            WarmUp {
                values: 250,
                ended: false
            }
        );
        assert_eq!(
            warm_up(&[1.0; 50]),
            Some(WarmUp {
                values: 0,
                ended: true
            })
        );
        assert_eq!(warm_up(&[1.0; 49]), None);
    }

    /// By hand: x around their middle are −1.5, −0.5, 0.5, 1.5; products 5.5, squares 5.
    #[test]
    fn the_line_is_that_of_least_squares() {
        assert!((slope(&[1.0, 3.0, 2.0, 5.0]) - 1.1).abs() < 1e-15);
    }
}
