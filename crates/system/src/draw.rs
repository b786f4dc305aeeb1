//! Random numbers for the generators: xoshiro256++, one independent stream per worker.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A bijection of 64-bit words that looks random (the finaliser of SplitMix64, Steele, Lea and
/// Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[inline(always)]
pub fn scramble(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A seed for one of many purposes, from the phase's seed.
pub fn derive(seed: u64, purpose: u64) -> u64 {
    // The golden ratio as in SplitMix64: neighbouring purposes end far apart.
    scramble(seed ^ scramble(purpose.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A number in [0, 1) from 64 random bits.
#[inline(always)]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The stream of this purpose under this seed.
    pub fn new(seed: u64, purpose: u64) -> Draw {
        Draw(Xoshiro256PlusPlus::seed_from_u64(derive(seed, purpose)))
    }

    /// The next 64 bits, each 0 or 1 alike.
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform below `bound` (> 0), by one multiplication (D. Lemire, "Fast Random Integer
    /// Generation in an Interval", 2019). Without the rejection step: the bias is below
    /// bound / 2^64, which no number of operations a phase can issue makes visible.
    #[inline(always)]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline(always)]
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }
}
