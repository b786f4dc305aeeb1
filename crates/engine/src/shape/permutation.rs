//! A random order of the numbers below `n`, without a table.
//!
//! A Feistel network over the smallest power of two that holds `n` is a bijection whatever its
//! round function; numbers it maps to `n` or above are mapped again until they fall below
//! ("cycle walking", J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
//! At most half of the power of two is surplus, so fewer than two evaluations are needed on
//! average. Fio's random map costs a bit per block and, late in a pass, picks the next free block
//! in sequence; this costs 40 bytes and is random to the end.

const ROUNDS: usize = 4;

/// A keyed permutation of 0 … n-1.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    count: u64,
    /// Bits of the left and of the right half; they differ by at most one.
    left_bits: u32,
    right_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of the numbers below `count` (> 0).
    pub fn new(count: u64, key: u64) -> Permutation {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let left_bits = bits / 2;
        let keys = std::array::from_fn(|round| stackrace_system::draw::derive(key, round as u64));
        Permutation {
            count,
            left_bits,
            right_bits: bits - left_bits,
            keys,
        }
    }

    /// Returns the place to which `index` (below `count`) goes.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        let mut mapped = self.encrypt(index);
        while mapped >= self.count {
            mapped = self.encrypt(mapped);
        }
        mapped
    }

    #[inline(always)]
    fn encrypt(&self, index: u64) -> u64 {
        let right_mask = low_bits(self.right_bits);
        let (mut left, mut right) = (index >> self.right_bits, index & right_mask);
        // The halves swap places, and with them their widths, so an even number of rounds is
        // needed for the result to have the widths of the input.
        let (mut left_bits, mut right_bits) = (self.left_bits, self.right_bits);
        for key in self.keys {
            let mixed = left ^ (round(right, key) & low_bits(left_bits));
            (left, right) = (right, mixed);
            (left_bits, right_bits) = (right_bits, left_bits);
        }
        (left << right_bits) | right
    }
}

#[inline(always)]
fn low_bits(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The round function: any function will do for a bijection, this one mixes well.
#[inline(always)]
fn round(half: u64, key: u64) -> u64 {
    let mut word = (half ^ key).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 32;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word >> 32
}
