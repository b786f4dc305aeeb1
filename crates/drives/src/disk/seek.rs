//! How long a disk's arm takes to move.

use crate::Nanos;

/// Seek time over distance in cylinders.
///
/// Between given points the time is interpolated over the square root of the distance, because a
/// seek is an acceleration followed by a braking (time ∝ √distance) until the arm reaches its
/// top speed, and straight from there (Ruemmler and Wilkes, *An Introduction to Disk Drive
/// Modeling*, 1994). Where points are many, as in a measured curve, the rule hardly matters.
#[derive(Debug, Clone, PartialEq)]
pub struct SeekCurve {
    /// Distance in cylinders and time; distances rise strictly.
    points: Vec<(u32, Nanos)>,
}

/// The reason for which a seek curve is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekError {
    /// The curve has no point at all.
    Empty,
    /// The distance of this point (counted from 0) is not larger than the one before, or is 0.
    NotRising(usize),
}

impl SeekCurve {
    /// A curve through measured points: distance in cylinders, and nanoseconds.
    ///
    /// # Errors
    /// Without points, and where distances do not rise strictly from at least 1.
    pub fn through(points: Vec<(u32, Nanos)>) -> Result<Self, SeekError> {
        let mut last = 0;
        for (at, (distance, _)) in points.iter().enumerate() {
            if *distance <= last {
                return Err(SeekError::NotRising(at));
            }
            last = *distance;
        }
        if points.is_empty() {
            return Err(SeekError::Empty);
        }
        Ok(Self { points })
    }

    /// The curve of a drive with `cylinders`, from the three figures of its data sheet: to the next
    /// track, average, and full stroke.
    ///
    /// Data sheets state the average over random pairs of cylinders, which is about the time of a
    /// seek over a third of the stroke.
    ///
    /// # Errors
    /// With fewer than four cylinders.
    pub fn from_data_sheet(
        cylinders: u32,
        next_track: Nanos,
        average: Nanos,
        full_stroke: Nanos,
    ) -> Result<Self, SeekError> {
        if cylinders < 4 {
            return Err(SeekError::Empty);
        }
        Self::through(vec![
            (1, next_track),
            (cylinders / 3 + 1, average),
            (cylinders - 1, full_stroke),
        ])
    }

    /// Time of a seek over `distance` cylinders; 0 for none.
    #[must_use]
    pub fn time(&self, distance: u32) -> Nanos {
        if distance == 0 {
            return 0;
        }
        let after = self.points.partition_point(|(at, _)| *at < distance);
        match (after.checked_sub(1), self.points.get(after)) {
            (_, Some((at, time))) if *at == distance => *time,
            (Some(before), Some(next)) => between(self.points[before], *next, distance),
            // Nearer than the first point: no drive seeks faster than to its next track.
            (None, Some((_, time))) => *time,
            // Farther than the last point: the curve is straight there.
            (_, None) => self.beyond(distance),
        }
    }

    /// Mean over seeks between random pairs of `cylinders`: what data sheets call the average.
    #[must_use]
    pub fn average(&self, cylinders: u32) -> Nanos {
        // Of n cylinders, n - d pairs in each direction lie d apart.
        let steps = cylinders.clamp(1, 1000);
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in 0..steps {
            let share = (f64::from(step) + 0.5) / f64::from(steps);
            let distance = (share * f64::from(cylinders)) as u32;
            sum += (1.0 - share) * self.time(distance) as f64;
            weights += 1.0 - share;
        }
        (sum / weights).round() as Nanos
    }

    fn beyond(&self, distance: u32) -> Nanos {
        let (last, time) = self.points[self.points.len() - 1];
        let Some((before, earlier)) = self.points.len().checked_sub(2).map(|at| self.points[at])
        else {
            return time;
        };
        let slope = time.saturating_sub(earlier) as f64 / f64::from(last - before);
        time + (slope * f64::from(distance - last)) as Nanos
    }
}

fn between(low: (u32, Nanos), high: (u32, Nanos), distance: u32) -> Nanos {
    let root = |distance: u32| f64::from(distance).sqrt();
    let share = (root(distance) - root(low.0)) / (root(high.0) - root(low.0));
    let (from, to) = (low.1 as f64, high.1 as f64);
    (from + (to - from) * share).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_seek_of_no_cylinder_takes_no_time() {
        let curve = SeekCurve::from_data_sheet(1000, 1_000_000, 8_000_000, 16_000_000);
        assert_eq!(curve.map(|curve| curve.time(0)), Ok(0));
    }

    #[test]
    fn a_curve_passes_through_its_points_and_goes_on_straight() {
        let curve = SeekCurve::through(vec![(1, 100), (4, 200), (9, 300), (19, 400)]);
        let times = curve.map(|curve| [1, 4, 9, 19, 29].map(|distance| curve.time(distance)));
        assert_eq!(times, Ok([100, 200, 300, 400, 500]));
    }

    #[test]
    fn points_that_do_not_rise_are_refused() {
        assert_eq!(SeekCurve::through(vec![]), Err(SeekError::Empty));
        assert_eq!(
            SeekCurve::through(vec![(0, 1)]),
            Err(SeekError::NotRising(0))
        );
        let twice = vec![(3, 1), (3, 2)];
        assert_eq!(SeekCurve::through(twice), Err(SeekError::NotRising(1)));
        assert_eq!(
            SeekCurve::from_data_sheet(3, 1, 2, 3),
            Err(SeekError::Empty)
        );
    }

    proptest! {
        #[test]
        fn a_longer_seek_never_takes_less_time(
            cylinders in 10_u32..2_000_000,
            next in 100_000_u64..1_000_000,
            average in 1_000_000_u64..12_000_000,
            more in 0_u64..12_000_000,
            pair in (0_u32..2_000_000, 0_u32..2_000_000),
        ) {
            let curve = SeekCurve::from_data_sheet(cylinders, next, average, average + more);
            let curve = curve.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            let (near, far) = (pair.0.min(pair.1), pair.0.max(pair.1));
            prop_assert!(curve.time(near) <= curve.time(far));
        }
    }
}
