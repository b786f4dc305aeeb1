//! How finely a figure is known: the last digit printed, the tick of a clock, whole operations.
//!
//! A figure that is printed as 12 may be 11.5 to 12.5 (rounded) or 12 to 13 (cut off). Which of both is
//! rarely known. Equal figures are changed by it in the same way in every round, so the mean of many
//! rounds is off as far as one of them, and no number of rounds shows it. So this is no noise: an
//! interval is moved out at both ends by as much as the ratio may be off at worst.
//!
//! For two figures that is one step of the coarser one, relative to the figure: rounding moves each by
//! half a step either way, cutting off moves one alone by a whole step. On the log scale a step is
//! `ln((v + s/2) / (v - s/2))`, which is as wide as the one and at least as wide as the other.

use libm::{exp, log as ln};

/// A figure of less than its own step says nothing: as much as this, on the log scale.
const NOTHING: f64 = 20.0;

/// The width of one step at a figure, on the log scale: 0.083 for 12 in steps of 1. 0 where there is no
/// step; a width that excludes nothing where the figure is not above half a step.
pub fn log_step(value: f64, step: f64) -> f64 {
    let half = step / (2.0 * value);
    match half {
        half if half.is_nan() || half <= 0.0 => 0.0,
        half if half >= 1.0 => NOTHING,
        half => (ln(1.0 + half) - ln(1.0 - half)).min(NOTHING),
    }
}

/// Share by which a ratio may be off, of its width on the log scale: 0.087 is 8.7 %.
pub fn share(log_width: f64) -> f64 {
    exp(log_width) - 1.0
}

/// Returns true if no number of rounds would decide: the mean difference and its error lie within
/// the resolution of 0, and with the resolution they reach beyond the margin. All on the log scale.
pub(crate) fn hides(centre: f64, error: f64, resolution: f64, margin: f64) -> bool {
    // Wherever in its interval the mean comes to lie, it is too near for a difference...
    let no_difference_to_find = centre.abs() + error <= resolution;
    // ...and the figures are too coarse for "none".
    no_difference_to_find && (centre.abs() - error).max(0.0) + resolution > margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equivalence::{Classification, rounds_to_decide, state_in_order};

    #[test]
    fn one_step_covers_what_rounding_and_cutting_off_do_to_a_ratio() {
        for (a, b) in [(1.0, 1.0), (2.0, 3.0), (9.0, 10.0), (12.0, 95.0)] {
            let widest = log_step(a, 1.0).max(log_step(b, 1.0));
            let ratio = ln(b / a);
            let cut = [ln(b / (a + 1.0)), ln((b + 1.0) / a)];
            let rounded = [ln((b - 0.5) / (a + 0.5)), ln((b + 0.5) / (a - 0.5))];
            for end in cut.into_iter().chain(rounded) {
                assert!((end - ratio).abs() <= widest + 1e-12, "{a} {b}: {end}");
            }
        }
    }

    #[test]
    fn a_figure_without_a_step_is_exact_and_one_below_its_step_is_nothing() {
        assert_eq!(log_step(5.0, 0.0), 0.0);
        assert_eq!(log_step(f64::NAN, 1.0), 0.0);
        assert_eq!(log_step(0.4, 1.0), NOTHING);
        assert!((share(log_step(12.0, 1.0)) - 0.087).abs() < 0.001);
    }

    /// Figures of 12 in steps of 1, the same in every round: without their resolution this would be
    /// "no difference larger than 0.00 %".
    #[test]
    fn figures_in_steps_are_never_known_better_than_their_steps() {
        let same = [0.0; 5];
        let step = log_step(12.0, 1.0);
        let said = |differences: &[f64], resolution| {
            state_in_order(differences, None, resolution, 0.05, 0.05).unwrap()
        };
        let coarse = said(&same, step);
        assert_eq!(coarse.word, Classification::Undecided);
        assert!(coarse.too_coarse, "no number of rounds would tell");
        assert!(coarse.ratio.low < 0.93 && coarse.ratio.high > 1.08);
        assert_eq!(rounds_to_decide(&same, step, 0.05, 0.05), None);
        // Fine enough for the margin: the bound is the step.
        let Classification::NoDifference { larger_than } = said(&same, 0.01).word else {
            panic!("within the margin");
        };
        assert!(larger_than >= 0.01, "{larger_than}");
        // A difference larger than the steps is found.
        assert!(
            matches!(said(&[0.3; 3], step).word, Classification::Better { at_least, .. } if at_least < 0.3)
        );
        // One that more rounds may yet show is not given up.
        let noisy = [0.02, 0.3, -0.1, 0.2];
        assert!(!said(&noisy, step).too_coarse);
    }
}
