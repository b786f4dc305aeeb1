//! A sequential stream through a range of one or more files, starting again at its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::BlockMap;
use super::share::WorkerShare;
use crate::error::StartError;
use crate::spec::Spec;

/// One thread's stream. Positions count units of the greatest common divisor of the block sizes.
#[derive(Debug, Clone)]
pub struct SequentialStream {
    blocks: BlockMap,
    unit: u32,
    begin: u64,
    end: u64,
    /// The file `at` lies in.
    target: usize,
    at: u64,
    /// Some: the position is shared and `at` is not used.
    shared: Option<Arc<AtomicU64>>,
}

impl SequentialStream {
    /// The range of `share.stream`: all blocks cut into as many contiguous ranges as there are
    /// streams. A shared cursor is used for a single block size only.
    ///
    /// # Errors
    /// [`StartError::Spec`] if no place in the range holds the largest block.
    pub fn new(
        spec: &Spec,
        sizes: &[u32],
        share: &WorkerShare,
    ) -> Result<SequentialStream, StartError> {
        let unit = sizes.iter().copied().reduce(divisor).unwrap_or(1);
        let blocks = BlockMap::new(&spec.targets, u64::from(unit));
        let count = u128::from(blocks.count());
        let shared = share.cursor.clone().filter(|_| sizes.len() == 1);
        // Without a shared cursor every worker streams through a range of its own.
        let (index, of) = match shared {
            Some(_) => share.stream,
            None => (share.worker, share.workers),
        };
        let cut = |index: u32| (count * u128::from(index) / u128::from(of)) as u64;
        let (begin, end) = (cut(index), cut(index + 1));
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let needed = u64::from(largest / unit);
        let holds = |target: usize| {
            let first = if target == 0 {
                0
            } else {
                blocks.end_of(target - 1)
            };
            let (from, to) = (begin.max(first), end.min(blocks.end_of(target)));
            to.saturating_sub(from) >= needed
        };
        if !(0..spec.targets.len()).any(holds) {
            return Err(StartError::Spec {
                what: format!(
                    "a block of {largest} bytes does not fit into stream {} of {of}",
                    index + 1
                ),
                next: "use fewer threads or a smaller block size, or make the files larger",
            });
        }
        let target = blocks.target_of(begin);
        Ok(SequentialStream {
            blocks,
            unit,
            begin,
            end,
            target,
            at: begin,
            shared,
        })
    }

    /// The next `size` bytes: file and offset.
    #[inline]
    pub fn advance(&mut self, size: u32) -> (u32, u64) {
        if let Some(shared) = &self.shared {
            let number = shared.fetch_add(1, Ordering::Relaxed);
            return self
                .blocks
                .locate(self.begin + number % (self.end - self.begin));
        }
        // Exact: the unit divides every size.
        let units = u64::from(size / self.unit);
        loop {
            let limit = self.blocks.end_of(self.target).min(self.end);
            if self.at + units <= limit {
                let offset = self.blocks.offset_in(self.target, self.at);
                self.at += units;
                return (self.target as u32, offset);
            }
            // What is left of this file, or of the range, is smaller than the block.
            self.at = limit;
            if self.at >= self.end {
                self.at = self.begin;
            }
            self.target = self.blocks.target_of(self.at);
        }
    }
}

/// Greatest common divisor (Euclid).
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}
