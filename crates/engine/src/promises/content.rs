//! What promised operations write: sectors that name their object, offset and generation.
//!
//! The layout is that of verified phases (`docs/formats/sector.md`), with the mark derived from the
//! object's name, so that a reader who knows the seed and the names knows all marks.

use twox_hash::XxHash3_64;

use crate::content::SECTOR;
use crate::verify::sector::{Label, Sector, Stamp, sectors_mut};
use stackrace_system::draw::derive;

/// The content of a sector of 512 bytes, by what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SectorFound {
    /// Undamaged content of a promised operation.
    Content {
        /// Mark of the object: see [`PromisedContent::mark`].
        mark: u64,
        /// Bytes from the beginning of the object.
        offset: u64,
        /// Generation of the object.
        generation: u32,
    },
    /// Every byte is 0: never written, or discarded.
    Zeros,
    /// Anything else: damaged, or not of a promised operation.
    Damaged,
}

impl SectorFound {
    /// Recognises a sector; one that is cut short by the end of its file is damaged.
    pub fn of(bytes: &[u8]) -> SectorFound {
        let Ok(sector) = <&Sector>::try_from(bytes) else {
            return SectorFound::Damaged;
        };
        match Label::read(sector) {
            Some(label) => SectorFound::Content {
                mark: label.mark,
                offset: label.offset,
                generation: label.generation,
            },
            None if sector.iter().all(|byte| *byte == 0) => SectorFound::Zeros,
            None => SectorFound::Damaged,
        }
    }
}

/// Makes the content of promised operations. Follows from the seed alone.
#[derive(Debug)]
pub struct PromisedContent {
    stamp: Stamp,
    seed: u64,
}

impl PromisedContent {
    /// The content of a seed.
    pub fn new(seed: u64) -> PromisedContent {
        PromisedContent {
            // All of a sector: what compresses away could not be torn.
            stamp: Stamp::new(seed, SECTOR),
            seed,
        }
    }

    /// The mark of the sectors of an object.
    pub fn mark(seed: u64, object: &str) -> u64 {
        derive(seed, XxHash3_64::oneshot(object.as_bytes()))
    }

    /// Fills whole sectors with what lies at `offset` of an object.
    pub fn fill(&self, buffer: &mut [u8], object: &str, offset: u64, generation: u32) {
        let mark = PromisedContent::mark(self.seed, object);
        let offsets = (offset..).step_by(SECTOR);
        for (sector, offset) in sectors_mut(buffer).iter_mut().zip(offsets) {
            let label = Label {
                mark,
                offset,
                generation,
            };
            self.stamp.write(sector, label);
        }
    }
}
