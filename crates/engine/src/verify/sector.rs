//! What a sector written under verification looks like.
//!
//! The layout is described for readers of a disk in `docs/formats/sector.md`:
//!
//! | bytes | content, little endian |
//! |---|---|
//! | 0–7 | checksum: XXH3 (64 bits) of bytes 8–511 |
//! | 8–15 | mark of the file: follows from the ledger's seed and the file's number |
//! | 16–23 | offset of the sector in the file, bytes |
//! | 24–27 | generation: how often its unit was written |
//! | 28–31 | `SRv1` |
//! | 32–511 | random bytes that follow from the mark, the offset and the generation |
//!
//! Every byte follows from what the ledger knows, so that what a wrong sector should have held can
//! be made again and compared bit by bit.

use twox_hash::XxHash3_64;

use crate::content::SECTOR;
use stackrace_system::draw::{Draw, derive, scramble};

/// Bytes of a sector that say what it is; they come in every sector, however compressible.
pub(super) const HEADER_BYTES: usize = 32;
/// The last word of the header: that it is one, and of which version.
const MAGIC: [u8; 4] = *b"SRv1";
/// Random bytes all bodies are made of. A body is a piece of them from a place of its own, changed
/// by a key of its own: two bodies share no word a compressor could find.
const POOL_WORDS: usize = 8192;
/// 64-bit words of a body.
const BODY_WORDS: usize = (SECTOR - HEADER_BYTES) / 8;

const PURPOSE_POOL: u64 = 0x7665_7269_6679_0000;
const PURPOSE_MARK: u64 = 0x6d61_726b_0000_0000;

/// One sector, as it lies in a buffer.
pub(crate) type Sector = [u8; SECTOR];

/// The identity that a sector states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    /// The file, as [`Stamp::mark`] gives it.
    pub(crate) mark: u64,
    /// Bytes from the beginning of the file.
    pub(crate) offset: u64,
    pub(crate) generation: u32,
}

impl Label {
    fn header(self) -> [u8; HEADER_BYTES - 8] {
        let mut header = [0; HEADER_BYTES - 8];
        header[..8].copy_from_slice(&self.mark.to_le_bytes());
        header[8..16].copy_from_slice(&self.offset.to_le_bytes());
        header[16..20].copy_from_slice(&self.generation.to_le_bytes());
        header[20..].copy_from_slice(&MAGIC);
        header
    }

    /// Reads what a sector says it is, believed without its checksum. `None` if it says nothing.
    pub(super) fn claimed(sector: &Sector) -> Option<Label> {
        let word = |at: usize| {
            let bytes = sector[at..at + 8].first_chunk();
            u64::from_le_bytes(*bytes.expect("eight bytes were cut out"))
        };
        let last = word(24).to_le_bytes();
        (last[4..] == MAGIC).then(|| Label {
            mark: word(8),
            offset: word(16),
            generation: word(24) as u32,
        })
    }

    /// Reads what an undamaged sector is. `None` if it is damaged, or none of ours.
    pub(crate) fn read(sector: &Sector) -> Option<Label> {
        Label::claimed(sector).filter(|_| sector[..8] == checksum(sector))
    }
}

/// Writes sectors and knows what each must hold. Follows from the seed alone.
#[derive(Debug)]
pub(crate) struct Stamp {
    pool: Vec<u64>,
    seed: u64,
    /// Bytes at the beginning of each sector that are not zero: at least [`HEADER_BYTES`].
    keep: usize,
}

impl Stamp {
    pub(crate) fn new(seed: u64, keep: usize) -> Stamp {
        let mut draw = Draw::new(seed, PURPOSE_POOL);
        // A body may begin at the last word of the pool.
        let words = (0..POOL_WORDS + BODY_WORDS).map(|_| draw.bits());
        Stamp {
            pool: words.collect(),
            seed,
            keep: keep.clamp(HEADER_BYTES, SECTOR),
        }
    }

    /// The mark of the sectors of this file.
    pub(super) fn mark(&self, file: u32) -> u64 {
        derive(self.seed, PURPOSE_MARK | u64::from(file))
    }

    /// Makes a sector what its label says.
    #[inline]
    pub(crate) fn write(&self, sector: &mut Sector, label: Label) {
        // Twice, so that neighbouring offsets and generations get unlike keys.
        let key = scramble(scramble(label.mark ^ label.offset) ^ u64::from(label.generation));
        let place = key as usize % POOL_WORDS;
        let (body, _) = sector[HEADER_BYTES..].as_chunks_mut();
        for (word, random) in body.iter_mut().zip(&self.pool[place..place + BODY_WORDS]) {
            *word = (random ^ key).to_le_bytes();
        }
        // What compresses away is at the end.
        sector[self.keep..].fill(0);
        sector[8..HEADER_BYTES].copy_from_slice(&label.header());
        // Last: it covers all that follows its own eight bytes.
        let checksum = checksum(sector);
        sector[..8].copy_from_slice(&checksum);
    }

    /// Returns true if a sector is what the label says.
    #[inline]
    pub(super) fn holds(sector: &Sector, label: Label) -> bool {
        sector[8..HEADER_BYTES] == label.header() && sector[..8] == checksum(sector)
    }

    /// All bytes of the sector with this label.
    pub(super) fn sector(&self, label: Label) -> Sector {
        let mut sector = [0; SECTOR];
        self.write(&mut sector, label);
        sector
    }
}

#[inline(always)]
fn checksum(sector: &Sector) -> [u8; 8] {
    XxHash3_64::oneshot(&sector[8..]).to_le_bytes()
}

/// The whole sectors of a buffer.
#[inline(always)]
pub(super) fn sectors(bytes: &[u8]) -> &[Sector] {
    bytes.as_chunks().0
}

/// The whole sectors of a buffer, to write to.
#[inline(always)]
pub(crate) fn sectors_mut(bytes: &mut [u8]) -> &mut [Sector] {
    bytes.as_chunks_mut().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn label() -> impl Strategy<Value = Label> {
        // Neighbours and generations close to each other are what a disk confuses.
        let offset = prop_oneof![0..64u64, any::<u64>().prop_map(|word| word >> 9)];
        let generation = prop_oneof![1..8u32, 1..1u32 << 30];
        (0..4u32, offset, generation).prop_map(|(file, sector, generation)| Label {
            mark: Stamp::new(7, SECTOR).mark(file),
            offset: sector * SECTOR as u64,
            generation,
        })
    }

    proptest! {
        #[test]
        fn a_sector_says_what_it_is(label in label(), keep in 0..600usize) {
            let stamp = Stamp::new(7, keep);
            let sector = stamp.sector(label);
            prop_assert_eq!(Label::read(&sector), Some(label));
            prop_assert!(Stamp::holds(&sector, label));
            prop_assert_eq!(sector, Stamp::new(7, keep).sector(label));
        }

        #[test]
        fn different_labels_are_different_sectors(one in label(), other in label()) {
            prop_assume!(one != other);
            let stamp = Stamp::new(7, SECTOR);
            let (a, b) = (stamp.sector(one), stamp.sector(other));
            prop_assert!(!Stamp::holds(&a, other));
            // Not even one of the aligned words of the bodies is the same: nothing to deduplicate.
            let equal = a[HEADER_BYTES..].chunks(8).zip(b[HEADER_BYTES..].chunks(8));
            prop_assert_eq!(equal.filter(|(a, b)| a == b).count(), 0);
        }

        #[test]
        fn any_flipped_bit_is_seen(label in label(), bit in 0..SECTOR * 8) {
            let mut sector = Stamp::new(7, 64).sector(label);
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!Stamp::holds(&sector, label));
            prop_assert_eq!(Label::read(&sector), None);
        }
    }

    /// The layout is a format: other programs may read it.
    #[test]
    fn the_layout_does_not_change() {
        let label = Label {
            mark: 0x0807_0605_0403_0201,
            offset: 0x1_0000_0200,
            generation: 5,
        };
        let sector = Stamp::new(1, SECTOR).sector(label);
        assert_eq!(sector[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(sector[16..24], [0, 2, 0, 0, 1, 0, 0, 0]);
        assert_eq!(sector[24..32], *b"\x05\0\0\0SRv1");
        let whole = XxHash3_64::oneshot(&sector);
        assert_eq!(
            whole, 0xf1b9_2b4a_2612_ad33,
            "the content of a seed changed"
        );
    }

    #[test]
    fn what_is_kept_random_is_as_much_as_asked() {
        let label = Label {
            mark: 1,
            offset: 0,
            generation: 1,
        };
        for keep in [32, 64, 256] {
            let sector = Stamp::new(1, keep).sector(label);
            assert!(sector[keep..].iter().all(|byte| *byte == 0));
            assert!(sector[keep - 8..keep].iter().any(|byte| *byte != 0));
        }
    }
}
