//! The parameters of an SSD, and why some make no drive.

use crate::Nanos;

/// Bytes that are mapped as one: what SSDs of today map by.
pub const MAPPING_UNIT: u64 = 4096;

/// Every parameter of an SSD, public and plain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SsdParameters {
    /// Sectors of [`crate::SECTOR`] bytes the host sees.
    pub sectors: u64,
    /// Channels between controller and flash.
    pub channels: u32,
    /// Dies on each channel; planes that program together count as one die.
    pub dies_per_channel: u32,
    /// Bytes programmed at once on a die.
    pub page: u64,
    /// Pages erased at once.
    pub pages_per_block: u32,
    /// Share of flash beyond what the host sees: 0.07 for 7 %.
    pub over_provisioning: f64,
    /// Time of a die to read a page.
    pub read: Nanos,
    /// Time to program one, in the drive's ordinary mode.
    pub program: Nanos,
    /// Time to program one in SLC mode, while the SLC cache has room.
    pub program_slc: Nanos,
    /// Bytes of SLC cache; 0 means no cache.
    pub slc_bytes: u64,
    /// Time to erase a block.
    pub erase: Nanos,
    /// Longest wait of a read for a program or an erase that is suspended for it.
    pub suspend: Nanos,
    /// Time to move one mapping unit over a channel.
    pub channel_unit: Nanos,
    /// Time of the controller for a command.
    pub overhead: Nanos,
    /// Time of the host interface for one sector.
    pub bus_sector: Nanos,
    /// Time of the host interface for a command, beside its sectors.
    pub bus_command: Nanos,
    /// Bytes of written data held before they are programmed.
    pub buffer: u64,
    /// Set if capacitors keep the buffer over a power cut: a flush then costs nothing.
    pub protected: bool,
}

/// The reason for which parameters make no drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SsdError {
    /// The drive has no die, no page, or no sector.
    #[error("there is no capacity, no die, or a page smaller than {MAPPING_UNIT} bytes")]
    Empty,
    /// Garbage collection needs spare blocks on every die.
    #[error(
        "over-provisioning leaves fewer than {needed} spare blocks for each die; enlarge it, or make blocks smaller"
    )]
    NoSpare {
        /// Spare blocks each die needs.
        needed: u32,
    },
}
