//! Which size an operation has: by operations, not by bytes, exact in the long run.
//!
//! A chain of exact shares: each operation is of the first size or not; of those that are not, an
//! exact share is of the second; and so on. Each size is off its share by at most half an operation
//! for each link of the chain up to its own, however long the phase is.

use std::ops::Range;

use super::mix::{Mix, chosen_of};
use stackrace_system::draw::Draw;

/// One worker's sequence of sizes.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// Bytes; those with a weight.
    sizes: Vec<u32>,
    /// Choice of each size but the last, given that it was none before.
    chain: Vec<Mix>,
}

impl Sizes {
    /// The sizes of operations `range` of the phase (see [`Mix::new`] for an end that is not
    /// known); `draw` yields the random numbers of each link of the chain.
    pub fn new(weighted: &[(u32, u32)], range: Range<u64>, draw: impl Fn(usize) -> Draw) -> Sizes {
        let weighted = weighted.iter().filter(|(_, weight)| *weight > 0);
        let (sizes, weights): (Vec<u32>, Vec<u64>) = weighted
            .map(|(size, weight)| (*size, u64::from(*weight)))
            .unzip();
        let mut rest: u64 = weights.iter().sum();
        let mut range = range;
        let links = weights.len().saturating_sub(1);
        let chain = weights
            .iter()
            .take(links)
            .enumerate()
            .map(|(link, weight)| {
                let share = *weight as f64 / rest as f64;
                let mix = Mix::new(share, range.clone(), draw(link));
                rest -= weight;
                let others = |operations| operations - chosen_of(share, operations);
                range.start = others(range.start);
                if range.end < u64::MAX {
                    range.end = others(range.end);
                }
                mix
            });
        let chain = chain.collect();
        Sizes { sizes, chain }
    }

    /// The sizes that operations may have, bytes, in the order given.
    pub fn all(&self) -> &[u32] {
        &self.sizes
    }

    /// The next operation's size, by its place among [`Sizes::all`].
    #[inline(always)]
    pub fn index(&mut self) -> usize {
        for (index, mix) in self.chain.iter_mut().enumerate() {
            if mix.chooses() {
                return index;
            }
        }
        self.chain.len()
    }
}
