//! What the course of one trial says about it: did it begin cold, come to rest, change midway?
//!
//! Everything here is a description of one trial, made from the amounts (bytes, operations) of its
//! equally long steps. It explains a figure and never decides between treatments.

use crate::autocorrelation::{batch_interval, effective_count};
use crate::changepoint::{Segment, segments};
use crate::interval::{all_finite, mean};
use crate::steady::{SteadyWindow, WINDOW, WarmUp, warm_up};
use libm::log as ln;

/// Stretches a trial is cut into before changes are looked for. Wide ones resemble each other
/// less than steps do.
const STRETCHES: usize = 60;
/// Probability of the interval of the mean to miss.
const ALPHA: f64 = 0.05;

/// The course of one trial. Positions are in steps from its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Steps looked at.
    pub steps: usize,
    /// Independent steps that would say as much about the mean ([`effective_count`]).
    pub effective: Option<f64>,
    /// Half-width of the 95 % interval of the mean, a share of it ([`batch_interval`]): how much
    /// another trial as long as this one would differ for being short alone.
    pub uncertainty: Option<f64>,
    /// The beginning that does not resemble the rest; `None` if the trial is too short to tell.
    pub warm_up: Option<WarmUp>,
    /// The rest after the warm-up, in five equal parts, beside the steady-state criterion; `None`
    /// if it is too short to tell.
    pub level: Option<SteadyWindow>,
    /// Stretches of one level. One means that nothing changed midway; empty if the trial is too
    /// short to tell.
    pub segments: Vec<Segment>,
}

impl Course {
    /// The course of a trial from the amounts of its steps, whole ones only.
    ///
    /// `None` where nothing was done, or with an amount that is negative or not finite.
    pub fn of(amounts: &[f64]) -> Option<Course> {
        if !all_finite(amounts) || amounts.iter().any(|amount| *amount < 0.0) {
            return None;
        }
        let centre = mean(amounts);
        // The mean of nothing is no number.
        if centre.is_nan() || centre <= 0.0 {
            return None;
        }
        let begin = warm_up(amounts);
        // A warm-up would make every trial look as if it never came to rest.
        let rest = &amounts[begin.map_or(0, |begin| begin.values)..];
        Some(Course {
            steps: amounts.len(),
            effective: effective_count(amounts),
            uncertainty: batch_interval(amounts, ALPHA).map(|(_, half)| half / centre),
            warm_up: begin,
            level: begin.and_then(|_| five_parts(rest)),
            segments: stretches(amounts),
        })
    }

    /// Returns true if the trial came to rest: the warm-up ended, and what is left is level. `None`
    /// if it was too short to tell.
    pub fn steady(&self) -> Option<bool> {
        Some(self.warm_up?.ended && self.level?.is_steady())
    }

    /// The largest change between neighbouring segments: before and after.
    pub fn change(&self) -> Option<(Segment, Segment)> {
        let size = |pair: &&[Segment]| ln(pair[1].level / pair[0].level).abs();
        let largest = self
            .segments
            .windows(2)
            .max_by(|a, b| size(a).total_cmp(&size(b)));
        largest.map(|pair| (pair[0], pair[1]))
    }
}

/// The level over five equal parts, what is over left out at the front.
fn five_parts(amounts: &[f64]) -> Option<SteadyWindow> {
    let width = amounts.len() / WINDOW;
    if width == 0 {
        return None;
    }
    let parts: Vec<f64> = amounts[amounts.len() - width * WINDOW..]
        .chunks_exact(width)
        .map(mean)
        .collect();
    SteadyWindow::of(&parts)
}

/// Segments of stretches of equal width, in steps; what is over joins the last one.
fn stretches(amounts: &[f64]) -> Vec<Segment> {
    let width = amounts.len().div_ceil(STRETCHES).max(1);
    let means: Vec<f64> = amounts.chunks_exact(width).map(mean).collect();
    let mut found = segments(&means).unwrap_or_default();
    for segment in &mut found {
        segment.start *= width;
        segment.end *= width;
    }
    if let Some(last) = found.last_mut() {
        last.end = amounts.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a little noise that repeats itself, from a level for each.
    fn steps(n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let noise = [0.01, -0.02, 0.015, -0.005, 0.02, -0.01, 0.0];
        (0..n).map(|at| level(at) * (1.0 + noise[at % 7])).collect()
    }

    #[test]
    fn a_level_trial_is_steady_and_unchanged() {
        let course = Course::of(&steps(300, |_| 50.0)).unwrap();
        assert_eq!(course.steady(), Some(true));
        assert_eq!(course.change(), None);
        assert_eq!(course.segments.len(), 1);
        assert_eq!((course.segments[0].start, course.segments[0].end), (0, 300));
        assert!(course.uncertainty.unwrap() < 0.01);
    }

    #[test]
    fn a_full_cache_is_found_where_it_is() {
        let course = Course::of(&steps(300, |at| if at < 120 { 90.0 } else { 30.0 })).unwrap();
        let (before, after) = course.change().unwrap();
        assert_eq!((before.end, after.start), (120, 120));
        assert!((after.level / before.level - 1.0 / 3.0).abs() < 0.01);
        assert_eq!(after.end, 300);
    }

    #[test]
    fn a_warm_up_is_left_out_of_the_level() {
        let course = Course::of(&steps(300, |at| if at < 40 { 10.0 } else { 50.0 })).unwrap();
        assert_eq!(course.warm_up.unwrap().values, 40);
        assert_eq!(course.steady(), Some(true));
        let slide = Course::of(&steps(300, |at| 100.0 - at as f64 / 5.0)).unwrap();
        assert_eq!(slide.steady(), Some(false));
    }

    #[test]
    fn what_is_too_short_says_nothing() {
        assert_eq!(Course::of(&[]), None);
        assert_eq!(Course::of(&[0.0; 100]), None);
        assert_eq!(Course::of(&[1.0, f64::NAN]), None);
        let short = Course::of(&[5.0; 12]).unwrap();
        assert_eq!((short.steady(), short.change()), (None, None));
        assert!(short.segments.is_empty() && short.effective.is_none());
    }
}
