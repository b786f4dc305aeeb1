//! The blocks of one size in a list of files, numbered through.

use crate::spec::IoTarget;

/// Maps a block's number to its file and offset.
#[derive(Debug, Clone)]
pub struct BlockMap {
    /// Bytes from the beginning of one block to the beginning of the next.
    stride: u64,
    /// Number of the first block of each file, then the number of all blocks.
    starts: Vec<u64>,
}

impl BlockMap {
    /// The whole blocks of `size` bytes these files hold, one after the other.
    pub fn new(targets: &[IoTarget], size: u64) -> BlockMap {
        BlockMap::every(targets, size, size)
    }

    /// The whole blocks of `size` bytes these files hold, one at each multiple of `stride` bytes.
    pub fn every(targets: &[IoTarget], size: u64, stride: u64) -> BlockMap {
        let mut starts = Vec::with_capacity(targets.len() + 1);
        let mut sum = 0;
        starts.push(sum);
        for target in targets {
            sum += match target.bytes.checked_sub(size) {
                Some(beyond_first) => beyond_first / stride + 1,
                None => 0,
            };
            starts.push(sum);
        }
        BlockMap { stride, starts }
    }

    /// Number of blocks in all files.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Returns the file that holds block `index` (below `count`), and the place in it, bytes.
    #[inline(always)]
    pub fn locate(&self, index: u64) -> (u32, u64) {
        if self.starts.len() == 2 {
            return (0, index * self.stride);
        }
        let target = self.target_of(index);
        (target as u32, (index - self.starts[target]) * self.stride)
    }

    /// Returns the file that holds block `index`. Files without blocks are never named.
    pub fn target_of(&self, index: u64) -> usize {
        self.starts.partition_point(|start| *start <= index) - 1
    }

    /// Number of the first block after this file's last.
    pub fn end_of(&self, target: usize) -> u64 {
        self.starts[target + 1]
    }

    /// The offset of a block known to be in this file, bytes.
    pub fn offset_in(&self, target: usize, index: u64) -> u64 {
        (index - self.starts[target]) * self.stride
    }
}
