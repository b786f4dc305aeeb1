//! What a machine of the lab is to be like.

use super::disk_cache::DiskCache;
use crate::host::LabDisk;

/// What a machine is to be like; all its guests are alike.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    /// How many guests.
    pub(crate) nodes: usize,
    /// Processors of each.
    pub(crate) processors: usize,
    /// Memory of each, bytes.
    pub(crate) memory_bytes: u64,
    /// Disks of each.
    pub(crate) disks: Vec<LabDisk>,
    /// What a power cut does to the disks. The one for what a guest keeps never lies.
    pub(crate) disk_cache: DiskCache,
    /// A disk for what a guest keeps while it lives; none: memory alone.
    pub(crate) scratch_bytes: Option<u64>,
    /// The guest, from 1, whose console is this terminal.
    pub(crate) shell_on: Option<usize>,
}

impl Default for Description {
    fn default() -> Self {
        Self {
            nodes: 1,
            processors: 1,
            memory_bytes: 1 << 30,
            disks: Vec::new(),
            disk_cache: DiskCache::Off,
            scratch_bytes: None,
            shell_on: None,
        }
    }
}
