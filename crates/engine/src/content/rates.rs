//! How fast this machine's cores make content.

use std::hint::black_box;

use super::pool::{ContentPool, FileContent, POOL_BYTES};
use crate::error::StartError;
use crate::spec::Content;
use stackrace_system::memory::AlignedMemory;
use stackrace_system::thread_cpu_ns;

/// Sizes of one write that are measured, bytes.
const BLOCKS: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// One figure is the median of so many turns.
const TURNS: usize = 5;
/// Least duration of one turn, ns.
const TURN_NS: u64 = 100_000;

/// The rate at which one core makes one kind of content.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentRate {
    /// The content, in words.
    pub kind: &'static str,
    /// Bytes of one write.
    pub block_bytes: usize,
    /// Bytes made ready to be written per second of processor time (B/s), on one core.
    pub bytes_per_second: f64,
}

impl ContentRate {
    /// Cost of 4096 bytes, ns.
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
pub fn rates() -> Result<Vec<ContentRate>, StartError> {
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
        let mut pool = ContentPool::new(content, 0, 0, 1, least..=most, POOL_BYTES)?;
        measure(kind, &mut rates, |bytes| {
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
        measure(kind, &mut rates, |bytes| {
            file += 1;
            let mut offset = 0;
            while offset < bytes {
                offset += black_box(source.piece(file, offset as u64, bytes - offset)).len();
            }
        });
    }
    let mut pool = ContentPool::new(Content::Random, 0, 0, 1, 4096..=1 << 20, POOL_BYTES)?;
    let mut buffer = AlignedMemory::new(1 << 20)?;
    measure("random, copied out", &mut rates, |bytes| {
        let buffer = &mut buffer.bytes_mut()[..bytes];
        buffer.copy_from_slice(pool.take(bytes));
        black_box(buffer);
    });
    rates.push(making()?);
    Ok(rates)
}

/// One figure for each size of `make`, which makes that many bytes.
fn measure(kind: &'static str, rates: &mut Vec<ContentRate>, mut make: impl FnMut(usize)) {
    for block_bytes in BLOCKS {
        let mut once_through = || (0..POOL_BYTES / block_bytes).for_each(|_| make(block_bytes));
        // What is measured is the steady state.
        once_through();
        let turn = || {
            let (begun_ns, mut made) = (thread_cpu_ns(), 0);
            loop {
                once_through();
                made += POOL_BYTES;
                let took_ns = thread_cpu_ns() - begun_ns;
                if took_ns >= TURN_NS {
                    return made as f64 / took_ns as f64 * 1e9;
                }
            }
        };
        rates.push(ContentRate {
            kind,
            block_bytes,
            bytes_per_second: median(turn),
        });
    }
}

/// A whole pool of random bytes, its memory included.
fn making() -> Result<ContentRate, StartError> {
    let mut failed = None;
    let bytes_per_second = median(|| {
        let begun_ns = thread_cpu_ns();
        // Its making is what is timed: the memory is part of it.
        let pool = ContentPool::new(Content::Random, 0, 0, 1, 4096..=4096, POOL_BYTES);
        // Only how long it took is wanted; a failure is told after the turns.
        failed = black_box(pool).err().or(failed.take());
        POOL_BYTES as f64 / (thread_cpu_ns() - begun_ns).max(1) as f64 * 1e9
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(ContentRate {
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
