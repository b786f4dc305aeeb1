//! What a disk's buffer memory is used for.

use crate::Nanos;

/// A disk's buffer memory and how it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Segments for reading; 0: nothing read is kept.
    pub segments: usize,
    /// Sectors in each.
    pub segment_sectors: u64,
    /// Sectors read ahead of a request.
    pub read_ahead: u64,
    /// Set if only a read that continues the one before it begins to read ahead.
    pub only_sequences: bool,
    /// Sectors of written data the volatile cache may hold; 0: every write goes to the platter
    /// before it completes.
    pub write_sectors: u64,
    /// Idle time of the disk before it destages what it could still merge with later writes.
    pub destage_after: Nanos,
}
