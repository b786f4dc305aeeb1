//! Zipf-distributed ranks by rejection-inversion: constant time and memory for any number of
//! ranks.
//!
//! W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6 (1996). H is the integral of h(x) = x^-s; names follow the paper.

use stackrace_system::draw::Draw;

/// Ranks 0 … n-1, rank k having a probability proportional to 1 / (k+1)^s.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    /// Within this distance of the upper end of a rank's bar no rejection can occur.
    squeeze: f64,
}

impl Zipf {
    /// `count` ranks (> 0), exponent > 0.
    pub fn new(count: u64, exponent: f64) -> Zipf {
        let count = count as f64;
        let squeeze = 2.0 - inverse(integral(2.5, exponent) - 2f64.powf(-exponent), exponent);
        Zipf {
            count,
            exponent,
            integral_first: integral(1.5, exponent) - 1.0,
            integral_last: integral(count + 0.5, exponent),
            squeeze,
        }
    }

    /// Draws a rank, from 0: the most frequent one.
    #[inline]
    pub fn rank(&self, draw: &mut Draw) -> u64 {
        loop {
            let width = self.integral_first - self.integral_last;
            let u = self.integral_last + draw.unit() * width;
            let x = inverse(u, self.exponent);
            // Rounding may carry the draw beyond either end of the ranks.
            let k = (x + 0.5).floor().clamp(1.0, self.count);
            let bar = integral(k + 0.5, self.exponent) - k.powf(-self.exponent);
            // The first test spares nearly all draws the two powers of the second.
            if k - x <= self.squeeze || u >= bar {
                return k as u64 - 1;
            }
        }
    }
}

/// H(x) = (x^(1-s) - 1) / (1-s), or ln x for s = 1; written so that s near 1 keeps its digits.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    let power = (1.0 - s) * log;
    if power.abs() > 1e-8 {
        power.exp_m1() / power * log
    } else {
        // Taylor's series: 0/0 is near.
        log * (1.0 + power / 2.0)
    }
}

/// The inverse of `integral`.
fn inverse(y: f64, s: f64) -> f64 {
    // Rounding may go below -1, of which `ln_1p` knows no value.
    let power = (y * (1.0 - s)).max(-1.0);
    if power.abs() > 1e-8 {
        (power.ln_1p() / power * y).exp()
    } else {
        (y * (1.0 - power / 2.0)).exp()
    }
}
