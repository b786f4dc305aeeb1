//! The volatile cache of a disk that is served: a power cut takes any part of what was not flushed.
//!
//! What lay there before is kept until a flush, so that the cut can put it back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Smallest part of a write that survives or does not, bytes.
const SECTOR: usize = 512;

/// Effect of a power cut on a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DiskCache {
    /// Nothing: what was answered is on the medium.
    #[default]
    Off,
    /// A cut may take what was not flushed.
    Volatile,
    /// A cut may take anything: a flush is answered, and not done.
    Lying,
}

/// Data that a volatile cache may lose.
pub(super) struct VolatileCache {
    lying: bool,
    /// Old content of each sector that was not flushed, by its number.
    before: HashMap<u64, [u8; SECTOR]>,
}

impl VolatileCache {
    /// The cache of a disk; `None` if it loses nothing.
    pub(super) fn of(cache: DiskCache) -> Option<Self> {
        (cache != DiskCache::Off).then(|| Self {
            lying: cache == DiskCache::Lying,
            before: HashMap::new(),
        })
    }

    /// Bytes of the file are about to change: the numbers of their sectors.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn changing(
        &mut self,
        file: &File,
        bytes: Range<u64>,
    ) -> std::io::Result<Range<u64>> {
        let sector = SECTOR as u64;
        let touched = bytes.start / sector..bytes.end.div_ceil(sector);
        for number in touched.clone() {
            // What was there at the last flush counts, and nothing in between.
            if let Entry::Vacant(entry) = self.before.entry(number) {
                let mut before = [0; SECTOR];
                file.read_exact_at(&mut before, number * sector)?;
                entry.insert(before);
            }
        }
        Ok(touched)
    }

    /// These sectors were written past the cache.
    pub(super) fn on_medium(&mut self, sectors: &Range<u64>) {
        if !self.lying {
            self.before.retain(|number, _| !sectors.contains(number));
        }
    }

    /// A flush was answered: from here on nothing that came before can be lost.
    pub(super) fn flushed(&mut self) {
        if !self.lying {
            self.before.clear();
        }
    }

    /// Each sector that was not flushed is what it was before, or is not, as the seed has it. How many
    /// were put back.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn lose(&mut self, file: &File, seed: u64) -> std::io::Result<usize> {
        let mut lost = 0;
        for (sector, before) in self.before.drain() {
            let mut hash = blake3::Hasher::new();
            hash.update(&seed.to_le_bytes());
            hash.update(&sector.to_le_bytes());
            if hash.finalize().as_bytes()[0] & 1 == 1 {
                file.write_all_at(&before, sector * SECTOR as u64)?;
                lost += 1;
            }
        }
        // The next cut of this machine's own power must not undo this one.
        file.sync_data()?;
        Ok(lost)
    }
}
