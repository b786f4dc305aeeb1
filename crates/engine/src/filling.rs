//! What whole files are filled with, deterministic from the seed and nearly free to make.
//!
//! A pool of bytes of the wanted compressibility is made once, before the clock starts. While the
//! clock runs, each block taken from it only gets a stamp of eight bytes, different for each block
//! of each file, in each of its 512-byte sectors: no two sectors are equal, so that nothing is
//! deduplicated that was not meant to be.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::spec::Content;

/// Bytes of the pool. A file repeats itself, but for the stamps, at this distance, which is more
/// than file systems compress at once.
const POOL_BYTES: usize = 4 << 20;
/// Bytes of the unit that is a copy of another or is not, and that is compressible by itself.
const BLOCK_BYTES: usize = 4096;
/// Bytes between two stamps.
const SECTOR_BYTES: usize = 512;
const BLOCKS: usize = POOL_BYTES / BLOCK_BYTES;

/// A bijection on 64 bits that looks random: the output step of SplitMix64 (Steele, Lea, Flood,
/// "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number in [0, 1) from 64 random bits.
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Where the content of files comes from; one per thread.
pub(crate) struct Filling {
    pool: Vec<u8>,
    seed: u64,
    /// Bytes of each block that are random, from its beginning.
    random_bytes: usize,
    duplicates: f64,
}

impl Filling {
    /// Makes the pool.
    pub(crate) fn new(content: Content, seed: u64) -> Filling {
        let (ratio, duplicates) = match content {
            Content::Zero => (f64::INFINITY, 1.0),
            Content::Random => (1.0, 0.0),
            Content::Shaped { ratio, duplicates } => (ratio.max(1.0), duplicates),
        };
        let random_bytes = (BLOCK_BYTES as f64 / ratio).round() as usize;
        let mut pool = vec![0; POOL_BYTES];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(mix(seed));
        for block in pool.chunks_exact_mut(BLOCK_BYTES) {
            random.fill_bytes(&mut block[..random_bytes]);
        }
        Filling {
            pool,
            seed,
            random_bytes,
            duplicates,
        }
    }

    /// The content of file number `file` from `offset`, a multiple of 4096: at most `length`
    /// bytes, and fewer where the pool ends.
    pub(crate) fn take(&mut self, file: u64, offset: u64, length: usize) -> &[u8] {
        let key = mix(self.seed ^ mix(file));
        let first = offset / BLOCK_BYTES as u64;
        let place = (key.wrapping_add(first) % BLOCKS as u64) as usize * BLOCK_BYTES;
        let end = POOL_BYTES.min(place.saturating_add(length));
        let last = POOL_BYTES.min(end.next_multiple_of(BLOCK_BYTES));
        if self.random_bytes > 0 {
            for (index, block) in
                (first..).zip(self.pool[place..last].chunks_exact_mut(BLOCK_BYTES))
            {
                let mut stamp = mix(key ^ mix(index));
                if unit(mix(stamp)) < self.duplicates {
                    // Equal to every other such block taken from the same place in the pool.
                    stamp = self.seed;
                }
                for sector in block[..self.random_bytes].chunks_mut(SECTOR_BYTES) {
                    let stamped = sector.len().min(8);
                    sector[..stamped].copy_from_slice(&stamp.to_le_bytes()[..stamped]);
                }
            }
        }
        &self.pool[place..end]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn file(filling: &mut Filling, file: u64, bytes: usize) -> Vec<u8> {
        let mut whole = Vec::new();
        while whole.len() < bytes {
            let part = filling.take(
                file,
                whole.len() as u64,
                (bytes - whole.len()).min(128 << 10),
            );
            whole.extend_from_slice(part);
        }
        whole
    }

    fn distinct(bytes: &[u8], size: usize) -> usize {
        bytes.chunks(size).collect::<HashSet<_>>().len()
    }

    #[test]
    fn random_content_repeats_no_sector_within_a_file_or_between_files() {
        let mut filling = Filling::new(Content::Random, 7);
        let mut all = file(&mut filling, 0, 9 << 20);
        all.extend(file(&mut filling, 1, 1 << 20));
        // All sectors of one block carry one stamp, but their other bytes differ.
        assert_eq!(distinct(&all, SECTOR_BYTES), all.len() / SECTOR_BYTES);
    }

    #[test]
    fn the_same_seed_gives_the_same_content_in_whatever_order_it_is_taken() {
        let whole = file(&mut Filling::new(Content::Random, 7), 3, 300_000);
        let mut other = Filling::new(Content::Random, 7);
        file(&mut other, 9, 100_000);
        assert_eq!(file(&mut other, 3, 300_000), whole);
        assert_ne!(
            file(&mut Filling::new(Content::Random, 8), 3, 300_000),
            whole
        );
    }

    #[test]
    fn shaped_content_has_the_zeros_and_the_copies_it_was_asked_for() {
        let content = Content::Shaped {
            ratio: 2.0,
            duplicates: 0.5,
        };
        let all = file(&mut Filling::new(content, 7), 0, 64 << 20);
        let zeros = all.iter().filter(|&&byte| byte == 0).count() as f64 / all.len() as f64;
        assert!((0.49..0.52).contains(&zeros), "{zeros}");
        let copies = 1.0 - distinct(&all, BLOCK_BYTES) as f64 / (all.len() / BLOCK_BYTES) as f64;
        assert!((0.40..0.52).contains(&copies), "{copies}");
        let zero = file(&mut Filling::new(Content::Zero, 7), 0, 1 << 20);
        assert!(zero.iter().all(|&byte| byte == 0));
    }
}
