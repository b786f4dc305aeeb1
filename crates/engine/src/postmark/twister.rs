//! The generator PostMark draws from: MT19937 as first published, with the seeding of 1998.
//!
//! M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
//! pseudorandom number generator", ACM Transactions on Modeling and Computer Simulation 8:1 (1998).
//! Crates with MT19937 use the seeding of 2002, which gives another sequence, so these forty lines
//! are needed.

/// Words of state.
const WORDS: usize = 624;
/// Distance of the word a new one is mixed with.
const DISTANCE: usize = 397;
const TWIST: u32 = 0x9908_b0df;
const UPPER: u32 = 0x8000_0000;

/// The state, and the next word of it to be given out.
#[derive(Debug, Clone)]
pub(super) struct Twister {
    words: [u32; WORDS],
    next: usize,
}

impl Twister {
    /// Makes a generator from a seed, by a linear congruential generator that fills the two halves
    /// of each word (`sgenrand` of October 1998).
    pub(super) fn new(seed: u32) -> Twister {
        let mut seed = seed;
        let mut half = || {
            let upper = seed & 0xffff_0000;
            seed = seed.wrapping_mul(69069).wrapping_add(1);
            upper
        };
        let words = std::array::from_fn(|_| half() | half() >> 16);
        // Behind the last word: the first draw renews the state.
        Twister { words, next: WORDS }
    }

    /// The next number.
    fn draw(&mut self) -> u32 {
        if self.next == WORDS {
            self.renew();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        // Tempering, as published.
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn renew(&mut self) {
        for at in 0..WORDS {
            let next = self.words[(at + 1) % WORDS];
            let joined = (self.words[at] & UPPER) | (next & !UPPER);
            let twist = if joined & 1 == 0 { 0 } else { TWIST };
            self.words[at] = self.words[(at + DISTANCE) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// A number below `bound`: the remainder of a draw, slightly biased as in PostMark. A bound of
    /// 0 draws nothing.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As another implementation (CPython's `random`, given the state the seeding makes) has it.
    #[test]
    fn the_sequence_is_the_one_published() {
        let mut twister = Twister::new(4357);
        let first: Vec<u32> = (0..5).map(|_| twister.draw()).collect();
        assert_eq!(
            first,
            [
                2_867_219_139,
                1_585_203_162,
                3_113_124_129,
                2_953_900_839,
                2_463_794_868
            ]
        );
    }

    /// PostMark 1.53 writes this into every file with its default seed.
    #[test]
    fn the_text_is_that_of_postmark() {
        let mut twister = Twister::new(42);
        let text: Vec<u8> = (0..32).map(|_| 32 + twister.below(95) as u8).collect();
        assert_eq!(text, b"LeZebJ6S5~qPv$C$py}hmKd H58nM4~.");
    }

    #[test]
    fn a_bound_of_zero_draws_nothing() {
        let (mut one, mut other) = (Twister::new(42), Twister::new(42));
        assert_eq!(one.below(0), 0);
        assert_eq!(one.below(1000), other.below(1000));
    }
}
