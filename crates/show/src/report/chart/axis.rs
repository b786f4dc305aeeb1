//! Where a value lies on an axis, and which values are written beside it.

use libm::{exp, log as ln, log10, pow};

/// No figure of a storage is larger; an axis to here can still be widened without overflow.
const MOST: f64 = 1e200;

/// Spacing of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Scale {
    /// Equal differences, equal lengths.
    Linear,
    /// Equal ratios, equal lengths; ticks at 1, 2, 5.
    Log10,
    /// Equal ratios, equal lengths; ticks at powers of two.
    Log2,
}

/// An axis: scale and ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that holds all values; those that cannot lie on it (beyond [`MOST`], or below its
    /// inverse on a logarithmic one) do not count. Without any it is the one from 1 to 2.
    pub(in crate::report) fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let mut ends: Option<(f64, f64)> = None;
        // Products of the ends must stay finite, and a logarithm needs a positive value.
        for value in values {
            if value.abs() <= MOST && (scale == Scale::Linear || value >= 1.0 / MOST) {
                let (low, high) = ends.unwrap_or((value, value));
                ends = Some((low.min(value), high.max(value)));
            }
        }
        // Without values any axis does: nothing is drawn on it.
        let (mut low, mut high) = ends.unwrap_or((1.0, 2.0));
        // Between equal ends every place would be 0/0.
        if low == high {
            (low, high) = match scale {
                Scale::Linear if low == 0.0 => (0.0, 1.0),
                Scale::Linear => (low - low.abs() * 0.1, high + high.abs() * 0.1),
                Scale::Log10 | Scale::Log2 => (low / 1.5, high * 1.5),
            };
        }
        Self { scale, low, high }
    }

    /// Linear or logarithmic, as the values ask for: logarithmic where they span more than a
    /// factor of 15; a linear one begins at 0.
    pub(in crate::report) fn from_zero(values: impl Iterator<Item = f64> + Clone) -> Self {
        Self::from_zero_but(values, 0.0)
    }

    /// The same, where values below `typical` are exceptions: one moment without work does not make
    /// an axis logarithmic, which would press everything else together.
    pub(in crate::report) fn from_zero_but(
        values: impl Iterator<Item = f64> + Clone,
        typical: f64,
    ) -> Self {
        let log = Self::over(Scale::Log10, values.clone());
        if log.high / log.low.max(typical) > 15.0 {
            return log.widened(0.03);
        }
        Self {
            scale: Scale::Linear,
            low: 0.0,
            high: log.high * 1.06,
        }
    }

    /// A linear axis from 0 to the largest value.
    pub(in crate::report) fn up_to(values: impl Iterator<Item = f64>) -> Self {
        let positive = values.filter(|value| *value > 0.0);
        let all = Self::over(Scale::Linear, positive);
        Self { low: 0.0, ..all }
    }

    /// An axis over values that may lie anywhere: linear, logarithmic where they span more than a
    /// factor of 15.
    pub(in crate::report) fn over_positive(values: impl Iterator<Item = f64> + Clone) -> Self {
        let log = Self::over(Scale::Log10, values.clone());
        if log.high / log.low > 15.0 {
            return log;
        }
        Self::over(Scale::Linear, values)
    }

    /// With so much more of its length at either end.
    pub(in crate::report) fn widened(self, share: f64) -> Self {
        // On the scale's own terms, so that the same share of the drawing is gained everywhere.
        let (low, high) = (self.forward(self.low), self.forward(self.high));
        let more = (high - low) * share;
        Self {
            low: self.backward(low - more),
            high: self.backward(high + more),
            ..self
        }
    }

    fn forward(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log10 | Scale::Log2 => ln(value),
        }
    }

    fn backward(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log10 | Scale::Log2 => exp(value),
        }
    }

    /// Returns true if a value lies on the axis.
    pub(in crate::report) fn holds(self, value: f64) -> bool {
        // A hair of room: the ends themselves must count in spite of rounding.
        value.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&self.share(value))
    }

    /// Position along the axis, 0 to 1; beyond that, outside.
    fn share(self, value: f64) -> f64 {
        let (low, high) = (self.forward(self.low), self.forward(self.high));
        (self.forward(value) - low) / (high - low)
    }

    /// The coordinate of a value on an axis from one coordinate to another; values outside lie at
    /// its ends.
    pub(in crate::report) fn place(self, value: f64, from: f64, to: f64) -> f64 {
        let share = self.share(value);
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        from + share * (to - from)
    }

    /// Values to write beside an axis of that length, so that labels (made by `label`, measured by
    /// `room`) do not touch.
    pub(in crate::report) fn ticks(
        self,
        length: f64,
        label: &dyn Fn(f64) -> String,
        room: &dyn Fn(&str) -> f64,
    ) -> Vec<(f64, String)> {
        let mut best: Vec<(f64, String)> = Vec::new();
        // From the finest spacing to the coarsest: the first whose labels have room.
        for values in self.candidates() {
            let ticks: Vec<(f64, String)> = values
                .into_iter()
                .filter(|&value| self.holds(value))
                .map(|value| (value, label(value)))
                .collect();
            // Rounded labels may come out alike: those ticks are too dense, whatever room there is.
            let fits = ticks.len() <= 9
                && ticks.windows(2).all(|pair| {
                    let distance = (self.share(pair[1].0) - self.share(pair[0].0)) * length;
                    distance >= (room(&pair[0].1) + room(&pair[1].1)) / 2.0
                        && pair[0].1 != pair[1].1
                });
            // One tick gives no scale, so it is the last resort.
            if fits && ticks.len() >= 2 {
                return ticks;
            }
            if fits && ticks.len() > best.len() {
                best = ticks;
            }
        }
        best
    }

    fn candidates(self) -> Vec<Vec<f64>> {
        match self.scale {
            Scale::Linear => self.steps(),
            // Block sizes are powers of two: no steps within a power.
            Scale::Log2 => (1..8).map(|step| self.powers(2.0, step, &[1.0])).collect(),
            Scale::Log10 if self.high / self.low < 12.0 => {
                // Within one decade 1, 2 and 5 would give two or three labels only.
                let mut sets = vec![self.powers(10.0, 1, &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0])];
                if self.high / self.low < 3.0 {
                    sets = self.steps();
                }
                sets.push(self.powers(10.0, 1, &[1.0, 2.0, 5.0]));
                sets.push(self.steps().pop().unwrap_or_default());
                sets
            }
            Scale::Log10 => {
                let mut sets = vec![
                    self.powers(10.0, 1, &[1.0, 2.0, 5.0]),
                    self.powers(10.0, 1, &[1.0, 3.0]),
                ];
                sets.extend((1..8).map(|step| self.powers(10.0, step, &[1.0])));
                sets
            }
        }
    }

    /// Multiples of 1, 2 and 5 times a power of ten, finest first.
    fn steps(self) -> Vec<Vec<f64>> {
        let range = self.high - self.low;
        let power = pow(10.0, log10(range / 10.0).floor());
        [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
            .into_iter()
            .map(|step| {
                let step = step * power;
                let first = (self.low / step).ceil();
                let count = (range / step).floor() as usize + 1;
                // A bound on the work; far more than ever fit.
                (0..count.min(200))
                    .map(|at| {
                        let value = (first + at as f64) * step;
                        // 0.30000000000000004 would be labelled as it is.
                        (value / power * 1e6).round() * power / 1e6
                    })
                    .collect()
            })
            .collect()
    }

    fn powers(self, base: f64, step: i32, within: &[f64]) -> Vec<f64> {
        // The cast cuts towards 0, so one power more at either end. `ticks` drops what lies
        // outside.
        let exponent = |value: f64| (ln(value) / ln(base)) as i32;
        let first = exponent(self.low) - 1;
        let last = exponent(self.high) + 1;
        (first..=last)
            .filter(|at| at.rem_euclid(step) == 0)
            .flat_map(|at| within.iter().map(move |&part| part * base.powi(at)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, length: f64) -> Vec<String> {
        axis.ticks(
            length,
            &|value| {
                let text = format!("{value:.4}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            },
            &|label| label.len() as f64 * 8.0 + 10.0,
        )
        .into_iter()
        .map(|(_, label)| label)
        .collect()
    }

    #[test]
    fn one_stall_does_not_make_an_axis_logarithmic() {
        let stalled = [100.0, 120.0, 0.1, 90.0];
        assert_eq!(Axis::from_zero(stalled.into_iter()).scale, Scale::Log10);
        let axis = Axis::from_zero_but(stalled.into_iter(), 95.0);
        assert_eq!((axis.scale, axis.low), (Scale::Linear, 0.0));
        let burst = [5000.0, 100.0, 100.0];
        let axis = Axis::from_zero_but(burst.into_iter(), 100.0);
        assert_eq!(axis.scale, Scale::Log10);
    }

    #[test]
    fn ticks_are_round_and_have_room() {
        let linear = Axis::over(Scale::Linear, [0.0, 10.0].into_iter());
        assert_eq!(labels(linear, 300.0), ["0", "2", "4", "6", "8", "10"]);
        let ratio = Axis::over(Scale::Log10, [0.87, 1.22].into_iter());
        assert_eq!(labels(ratio, 300.0), ["0.9", "1", "1.1", "1.2"]);
        let decades = Axis::over(Scale::Log10, [3.0, 3e4].into_iter());
        assert_eq!(labels(decades, 260.0), ["10", "100", "1000", "10000"]);
        let sizes = Axis::over(Scale::Log2, [512.0, 1_048_576.0].into_iter());
        assert_eq!(labels(sizes, 300.0), ["512", "4096", "32768", "262144"]);
    }

    #[test]
    fn ticks_never_touch_whatever_the_values() {
        for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
            for low in [1e-6, 0.03, 0.999, 7.0, 3e8] {
                for factor in [1.0, 1.0001, 1.3, 4.0, 90.0, 1e9] {
                    let axis = Axis::over(scale, [low, low * factor].into_iter());
                    let room = |label: &str| label.len() as f64 * 8.0;
                    let ticks = axis.ticks(280.0, &|value| format!("{value:e}"), &room);
                    for pair in ticks.windows(2) {
                        let distance =
                            axis.place(pair[1].0, 0.0, 280.0) - axis.place(pair[0].0, 0.0, 280.0);
                        let needed = (room(&pair[0].1) + room(&pair[1].1)) / 2.0;
                        assert!(distance >= needed - 1e-6, "{scale:?} {low} {factor}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_value_has_its_place_and_nonsense_has_none() {
        for scale in [Scale::Linear, Scale::Log10, Scale::Log2] {
            let all = [f64::MAX, f64::MIN_POSITIVE, 5e-324, -f64::MAX];
            labels(Axis::over(scale, all.into_iter()).widened(0.06), 300.0);
        }
        let axis = Axis::over(Scale::Log10, [1.0, f64::NAN, -3.0, 100.0].into_iter());
        assert_eq!(axis.place(10.0, 0.0, 200.0).round(), 100.0);
        assert_eq!(axis.place(1e9, 0.0, 200.0), 200.0);
        assert!(axis.holds(1.0) && axis.holds(100.0));
        assert!(!axis.holds(f64::INFINITY) && !axis.holds(101.0) && !axis.holds(0.0));
        let empty = Axis::over(Scale::Linear, std::iter::empty());
        assert!(empty.holds(1.5));
    }
}
