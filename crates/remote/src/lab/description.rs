//! What a machine of the lab is to be like.

use super::disk_cache::DiskCache;
use stackrace_machine::host::LabDisk;

/// Description of a machine; all its guests are alike.
#[derive(Debug, Clone)]
pub struct Description {
    /// Number of guests.
    pub nodes: usize,
    /// Processors of each.
    pub processors: usize,
    /// Memory of each, bytes.
    pub memory_bytes: u64,
    /// Disks of each.
    pub disks: Vec<LabDisk>,
    /// Effect of a power cut on the disks. The one for what a guest keeps never lies.
    pub disk_cache: DiskCache,
    /// A disk for what a guest keeps while it lives; `None` for memory alone.
    pub scratch_bytes: Option<u64>,
    /// The guest, from 1, whose console is this terminal.
    pub shell_on: Option<usize>,
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
