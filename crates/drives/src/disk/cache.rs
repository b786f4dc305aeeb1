//! What a disk's buffer memory is used for.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// A disk's buffer memory and how it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Segments for reading; 0: nothing read is kept.
    pub segments: usize,
    /// Sectors in each.
    pub segment_sectors: u64,
    /// Sectors read ahead of a request.
    pub read_ahead: u64,
    /// What is read ahead, kept and given up.
    pub rules: BufferRules,
    /// Sectors of written data the volatile cache may hold; 0: every write goes to the platter
    /// before it completes.
    pub write_sectors: u64,
    /// Idle time of the disk before it destages what it could still merge with later writes.
    pub destage_after: Nanos,
}

/// What a disk's firmware reads ahead, keeps and gives up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BufferRules {
    /// The reads that make it read on behind them.
    pub after: ReadAheadAfter,
    /// Where reading ahead ends, besides its number of sectors.
    pub until: ReadAheadUntil,
    /// What becomes of the sectors that the host has fetched.
    pub fetched: Fetched,
    /// Set if the sectors of a track that pass the head before those asked for are kept, too.
    pub passing: bool,
    /// What becomes of written data that are on the platter.
    pub written: Written,
}

/// The reads that make the drive read on behind them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadAfter {
    /// Every one.
    #[default]
    Any,
    /// One that continues the read before it.
    Sequence,
}

/// Where reading ahead ends, besides its number of sectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadUntil {
    /// Nowhere else.
    #[default]
    Full,
    /// At the end of the track.
    Track,
    /// At the end of the cylinder.
    Cylinder,
}

/// What becomes of the sectors that the host has fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fetched {
    /// They stay until what is read ahead takes their room.
    #[default]
    Overwritten,
    /// They stay: what is read ahead gets the rest of the segment.
    Kept,
    /// They are given up at once.
    Dropped,
}

/// What becomes of written data that are on the platter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Written {
    /// Reads are answered from them until they are on the platter.
    #[default]
    UntilDestaged,
    /// Reads are answered from them afterwards, too.
    Kept,
    /// Reads are never answered from them.
    NotRead,
}
