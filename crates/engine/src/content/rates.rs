//! How fast this machine's cores make content.

use std::hint::black_box;

use super::{FileContent, POOL_BYTES, Pool};
use crate::clock::Clock;
use crate::error::StartError;
use crate::memory::Memory;
use crate::spec::Content;

/// Sizes of one write that are measured, bytes.
const BLOCKS: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// One figure is the median of so many turns.
const TURNS: usize = 5;
/// Least duration of one turn, ns.
const TURN_NS: u64 = 100_000;

/// How fast one core makes one kind of content.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// Which content, in words.
    pub kind: &'static str,
    /// Bytes of one write.
    pub block_bytes: usize,
    /// Bytes made ready to be written per second (B/s) on one core.
    pub bytes_per_second: f64,
}

impl Rate {
    /// What 4096 bytes cost, ns.
    pub fn ns_per_4_kib(&self) -> f64 {
        4096.0 / self.bytes_per_second * 1e9
    }
}

/// Measures, in about 40 ms, how fast one core makes each kind of content: as block phases take it
/// from a pool and as files are filled with it, in writes of 4 KiB, 64 KiB and 1 MiB. Beside them
/// what it would cost to copy it out of a pool, and how fast a pool itself is made.
///
/// Bytes per second of a pool can exceed what memory can deliver: of a write only the stamps are
/// touched.
///
/// # Errors
/// [`StartError::Memory`].
pub fn rates() -> Result<Vec<Rate>, StartError> {
    let clock = Clock::calibrated();
    let shaped = |ratio, duplicates| Content::Shaped { ratio, duplicates };
    let mut rates = Vec::new();
    let kinds = [
        ("zero", Content::Zero),
        ("random", Content::Random),
        ("ratio 2", shaped(2.0, 0.0)),
        ("ratio 2, half duplicates", shaped(2.0, 0.5)),
    ];
    for (kind, content) in kinds {
        let [least, .., most] = BLOCKS;
        let mut pool = Pool::new(content, 0, 0, 1, least..=most, POOL_BYTES)?;
        measure(&clock, kind, &mut rates, |bytes| {
            black_box(pool.take(bytes));
        });
    }
    let kinds = [
        ("files, random", Content::Random),
        ("files, ratio 2, half duplicates", shaped(2.0, 0.5)),
    ];
    for (kind, content) in kinds {
        let mut source = FileContent::new(content, 0)?;
        let mut file = 0;
        measure(&clock, kind, &mut rates, |bytes| {
            file += 1;
            let mut offset = 0;
            while offset < bytes {
                offset += black_box(source.piece(file, offset as u64, bytes - offset)).len();
            }
        });
    }
    let mut pool = Pool::new(Content::Random, 0, 0, 1, 4096..=1 << 20, POOL_BYTES)?;
    let mut buffer = Memory::new(1 << 20)?;
    measure(&clock, "random, copied out", &mut rates, |bytes| {
        let buffer = &mut buffer.bytes_mut()[..bytes];
        buffer.copy_from_slice(pool.take(bytes));
        black_box(buffer);
    });
    rates.push(making(&clock)?);
    Ok(rates)
}

/// One figure for each size of `make`, which makes that many bytes.
fn measure(clock: &Clock, kind: &'static str, rates: &mut Vec<Rate>, mut make: impl FnMut(usize)) {
    for block_bytes in BLOCKS {
        // Once through the pool: what is measured is its steady state.
        (0..POOL_BYTES / block_bytes).for_each(|_| make(block_bytes));
        let turn = || {
            let (begun_ns, mut made) = (clock.now_ns(), 0);
            loop {
                // Many at once: the clock's own reading must not count.
                (0..64).for_each(|_| make(block_bytes));
                made += 64 * block_bytes;
                let took_ns = clock.now_ns() - begun_ns;
                if took_ns >= TURN_NS {
                    return made as f64 / took_ns as f64 * 1e9;
                }
            }
        };
        rates.push(Rate {
            kind,
            block_bytes,
            bytes_per_second: median(turn),
        });
    }
}

/// A whole pool of random bytes, its memory included.
fn making(clock: &Clock) -> Result<Rate, StartError> {
    let mut failed = None;
    let bytes_per_second = median(|| {
        let begun_ns = clock.now_ns();
        let pool = Pool::new(Content::Random, 0, 0, 1, 4096..=4096, POOL_BYTES);
        failed = black_box(pool).err().or(failed.take());
        POOL_BYTES as f64 / (clock.now_ns() - begun_ns).max(1) as f64 * 1e9
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(Rate {
            kind: "making a pool",
            block_bytes: POOL_BYTES,
            bytes_per_second,
        }),
    }
}

fn median(turn: impl FnMut() -> f64) -> f64 {
    let mut turns: Vec<f64> = std::iter::repeat_with(turn).take(TURNS).collect();
    turns.sort_by(f64::total_cmp);
    turns[TURNS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_rate_for_every_size() {
        let rates = rates().unwrap();
        assert_eq!(rates.len(), 7 * BLOCKS.len() + 1);
        for rate in rates {
            assert!(rate.bytes_per_second.is_finite(), "{rate:?}");
            assert!(rate.bytes_per_second > 0.0, "{rate:?}");
        }
    }
}
