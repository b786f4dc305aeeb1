//! A printed figure and how finely it is known, in one value: what is computed from it takes both along.
//!
//! A figure that was printed as 1.2 GB/s is known to 0.1 GB/s, not to the byte that the product has. Every figure
//! that an importer hands on is made here, so that none can forget its step.

use std::ops::{Add, Mul};

use crate::unit;

/// A figure as a text states it, in any unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PrintedFigure {
    /// The figure.
    pub value: f64,
    /// Fineness, in the same unit: what the last printed digit counts, or the tick of the clock that it rests on; 0 if
    /// exact.
    pub step: f64,
}

impl PrintedFigure {
    /// A finite number that is not negative, in plain digits; its last digit is its step.
    pub fn read(word: &str) -> Option<Self> {
        // Not by `parse` alone: it takes "inf", "nan" and "1e9", which are no figures.
        let (whole, part) = word.split_once('.').unwrap_or((word, "0"));
        if !plain_digits(whole) || !plain_digits(part) {
            return None;
        }
        let value = word.parse().ok()?;
        let step = unit::written_step(word)?;
        Some(Self { value, step })
    }

    /// A number that a program wrote with all the digits it had.
    pub fn in_full(value: f64) -> Self {
        // JSON leaves out zeros at the end: a figure may be known better than this, and never worse.
        let step = unit::step_of(value);
        Self { value, step }
    }

    /// A whole number, as of operations or of ticks that were counted.
    pub fn whole(count: u64) -> Self {
        let value = count as f64;
        // Whatever began or ended in between may count or not.
        Self { value, step: 1.0 }
    }

    /// A number without doubt: a count that stands in the text with all its digits and rests on no clock.
    pub fn exact(value: f64) -> Self {
        Self { value, step: 0.0 }
    }

    /// The quotient; `None` if the divisor is 0.
    pub fn per(self, divisor: Self) -> Option<Self> {
        (divisor.value > 0.0).then(|| {
            let value = self.value / divisor.value;
            // The first term is the step of a figure of 0 too.
            let step = self.step / divisor.value + value * divisor.step / divisor.value;
            Self { value, step }
        })
    }

    /// The product of two figures.
    pub fn times(self, other: Self) -> Self {
        // The product of both steps is left out: it is smaller than either by as much as they are.
        Self {
            value: self.value * other.value,
            step: self.value * other.step + other.value * self.step,
        }
    }

    /// The same, known no better than to such a step.
    pub fn no_finer_than(self, step: f64) -> Self {
        let step = self.step.max(step);
        Self { step, ..self }
    }

    /// The same, printed with so many digits, of which zeros at the end were left out: "10" of five digits is
    /// known to 0.001.
    pub fn of_digits(self, digits: i32) -> Self {
        // 0 has no first digit.
        if self.value <= 0.0 {
            return self;
        }
        let mut last = 10f64.powi(1 - digits);
        let unit = 10f64.powi(digits - 1);
        // Not by a logarithm, which may be off by one at a power of ten.
        while self.value >= last * unit * 10.0 {
            last *= 10.0;
        }
        while self.value < last * unit {
            last /= 10.0;
        }
        let step = self.step.min(last);
        Self { step, ..self }
    }

    /// The figure where it is above 0: what was printed as 0 has no ratio to another.
    pub fn above_zero(self) -> Option<Self> {
        (self.value > 0.0).then_some(self)
    }

    /// The step relative to the figure.
    fn coarse(self) -> f64 {
        match self.value > 0.0 {
            // Of a figure of 0 nothing is known that a ratio could use.
            true => self.step / self.value,
            false => f64::INFINITY,
        }
    }

    /// The one with more digits of two statements of one figure.
    pub fn finer(self, other: Self) -> Self {
        match other.coarse() < self.coarse() {
            true => other,
            false => self,
        }
    }

    /// Returns true if both can be of one figure: as far as the steps of both leave it open.
    pub fn agrees(self, other: Self) -> bool {
        (self.value - other.value).abs() <= self.step + other.step
    }
}

/// Conversion to another unit.
impl Mul<f64> for PrintedFigure {
    type Output = Self;

    fn mul(self, unit: f64) -> Self {
        Self {
            value: self.value * unit,
            step: self.step * unit,
        }
    }
}

impl Add for PrintedFigure {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // Both may be off in the same direction.
        Self {
            value: self.value + other.value,
            step: self.step + other.step,
        }
    }
}

/// Returns true if a word is digits and nothing else, and not more of them than any real figure has.
pub(super) fn plain_digits(word: &str) -> bool {
    // Of more digits a float would be infinite or wrong.
    (1..=19).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::PrintedFigure;

    fn read(word: &str) -> PrintedFigure {
        PrintedFigure::read(word).unwrap()
    }

    #[test]
    fn a_unit_multiplies_the_step_as_well() {
        let rate = read("1.2") * 1e9;
        assert_eq!((rate.value, rate.step), (1.2e9, 0.1e9));
        assert_eq!(read("120").step, 1.0);
        assert_eq!(read("0.50").step, 0.01);
    }

    #[test]
    fn a_quotient_is_no_better_than_either_of_its_parts() {
        let rate = PrintedFigure::exact(1e6).per(read("2.0")).unwrap();
        assert_eq!((rate.value, rate.step), (5e5, 2.5e4));
        let both = read("100").per(read("2.0")).unwrap();
        assert_eq!(both.step, 3.0);
        // Wherever both may truly lie, the quotient does not move further than its step.
        for (over, under) in [(100.5, 1.95), (99.5, 2.05)] {
            assert!((over / under - both.value).abs() <= both.step, "{over}");
        }
        assert_eq!(read("5").per(read("0.0")), None);
        let product = read("100").times(read("2.0"));
        assert!((100.5 * 2.05 - product.value).abs() <= product.step);
    }

    #[test]
    fn zeros_that_are_left_out_are_digits_too() {
        for (word, digits, step) in [("10", 6, 1e-4), ("65.379", 5, 1e-3), ("0.5", 6, 1e-6)] {
            let found = read(word).of_digits(digits).step;
            assert!((found / step - 1.0).abs() < 1e-9, "{word}: {found}");
        }
        assert_eq!(read("0").of_digits(6).step, 1.0);
        assert_eq!(read("123456789").of_digits(6).step, 1.0);
    }

    #[test]
    fn what_is_no_plain_number_is_no_figure() {
        for word in [
            "", "inf", "nan", "1e9", "-1", "+1", "1,5", ".5", "1.", "1.2.3",
        ] {
            assert_eq!(PrintedFigure::read(word), None, "{word}");
        }
    }
}
