//! The world in which simulated studies take place: its noise and its drift, from one seed.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A source of noise.
pub(crate) struct World(Xoshiro256PlusPlus);

/// How the values of trials scatter around their truth: each kind has mean 0 and variance 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    /// The bell.
    Normal,
    /// Student's t with 3 degrees of freedom: heavy tails.
    Heavy,
    /// Normal, but one value in twenty has five times the deviation.
    Contaminated,
    /// Exponential, to the slow side: most trials are a little fast, some are very slow.
    Skewed,
    /// Two modes: three in ten trials fall into a slow one, four deviations of a mode away.
    Bimodal,
}

/// What happens to a session whatever is tried in it, on the log scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disturbance {
    /// Change from the first trial to the last.
    pub(crate) drift: f64,
    /// Deviation of a slow random wandering...
    pub(crate) wander: f64,
    /// ...whose neighbouring trials correlate this much.
    pub(crate) rho: f64,
}

/// Nothing happens.
pub(crate) const CALM: Disturbance = Disturbance {
    drift: 0.0,
    wander: 0.0,
    rho: 0.0,
};

impl World {
    /// The world of a seed.
    pub(crate) fn new(seed: u64) -> World {
        World(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in (0, 1), never the ends.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// One value of a kind of noise.
    pub(crate) fn draw(&mut self, noise: Noise) -> f64 {
        match noise {
            Noise::Normal => self.normal(),
            Noise::Heavy => {
                let chi: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                self.normal() / chi.sqrt()
            }
            Noise::Contaminated => {
                let size = if self.uniform() < 0.05 { 5.0 } else { 1.0 };
                size * self.normal() / (0.95_f64 + 0.05 * 25.0).sqrt()
            }
            Noise::Skewed => 1.0 + self.uniform().ln(),
            Noise::Bimodal => {
                let slow = if self.uniform() < 0.3 { -4.0 } else { 0.0 };
                // The mean of the modes is −1.2, their variance 16 · 0.3 · 0.7.
                (slow + 1.2 + self.normal()) / (1.0_f64 + 3.36).sqrt()
            }
        }
    }

    /// One session of `trials` disturbances in the order of time.
    pub(crate) fn session(&mut self, trials: usize, disturbance: Disturbance) -> Vec<f64> {
        let Disturbance { drift, wander, rho } = disturbance;
        let wandering = self.wandering(trials, rho);
        let last = (trials - 1) as f64;
        let at = |(trial, state): (usize, f64)| drift * trial as f64 / last + wander * state;
        wandering.into_iter().enumerate().map(at).collect()
    }

    /// A first-order autoregression of variance 1 whose neighbours correlate by `rho`.
    pub(crate) fn wandering(&mut self, length: usize, rho: f64) -> Vec<f64> {
        let innovation = (1.0 - rho * rho).sqrt();
        let mut state = self.normal();
        (0..length)
            .map(|_| {
                let here = state;
                state = rho * state + innovation * self.normal();
                here
            })
            .collect()
    }
}

/// The share of `count` in `of`.
pub(crate) fn share(count: u32, of: u32) -> f64 {
    f64::from(count) / f64::from(of)
}
