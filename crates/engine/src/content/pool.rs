//! The pool random content is taken from, and the content of whole files.

use crate::error::StartError;
use crate::spec::Content;
use stackrace_system::draw::{Draw, derive, scramble, unit};
use stackrace_system::memory::{ALIGNMENT, AlignedMemory, round_up};

/// Bytes between two stamps: the smallest block any storage layer compares.
pub const SECTOR: usize = 512;
/// Bytes of a pool: more than the records in which file systems compress (up to 1 MiB; ZFS can be
/// told 16 MiB).
pub const POOL_BYTES: usize = 4 << 20;
/// Compressible data is shaped in units of this many bytes, or of the power of two that fits into
/// the block if that is smaller.
const CHUNK: usize = 4096;
/// The part of a chunk (1/256) that is reserved for the compressor's own markup: lz4 writes up to
/// 20 bytes per 4096, zstd 5 (and 10 per record). Without it a record meant to halve would miss the
/// half by a few bytes, and block-based storage would take one block more.
const MARKUP: usize = 256;
/// Earlier writes of a slot a duplicate may choose from.
const ORIGINALS: usize = 16;
/// Files are drawn, and repeated, in aligned units of this many bytes.
pub(crate) const UNIT: usize = 128 << 10;
/// Different units that the duplicates among the units of files are copies of.
const MODELS: u64 = 4;
/// Bits of a stamp's number that count the sectors of one stream: 2^44 sectors are 8 PiB.
const COUNTER_BITS: u32 = 44;

/// The place of a write's bytes in the pool, and the number of its first stamp.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    position: usize,
    bytes: usize,
    first_stamp: u64,
}

/// The part of a pool that one outstanding write owns: its bytes may be in flight while others
/// are stamped.
#[derive(Debug, Clone)]
struct Slot {
    cursor: usize,
    originals: [Written; ORIGINALS],
    count: usize,
}

/// A source of content for one worker.
#[derive(Debug)]
pub struct ContentPool {
    memory: AlignedMemory,
    slot_bytes: usize,
    slots: Vec<Slot>,
    shape: ContentShape,
    /// Number of the next stamp, the stream's number in its upper bits.
    stamp: u64,
    salt: u64,
    draw: Draw,
}

/// The shape that a [`Content`] asks for, resolved.
#[derive(Debug, Clone, Copy)]
struct ContentShape {
    zero: bool,
    /// Unit of the shape: of each `chunk` bytes the first `keep` are random, the rest zero.
    chunk: usize,
    keep: usize,
    duplicates: f64,
    /// Error of the share of duplicates so far; kept in (-1, 1).
    owed: f64,
}

impl ContentShape {
    fn new(content: Content, block_min: usize) -> ContentShape {
        // A power of two, so that each page of the pool begins with a chunk.
        let chunk = 1 << block_min.clamp(SECTOR, CHUNK).ilog2();
        let random = ContentShape {
            zero: false,
            chunk,
            keep: chunk,
            duplicates: 0.0,
            owed: 0.0,
        };
        match content {
            Content::Zero => ContentShape {
                zero: true,
                keep: 0,
                ..random
            },
            Content::Random => random,
            Content::Shaped { ratio, duplicates } => ContentShape {
                keep: keep(chunk, ratio),
                duplicates: duplicates.clamp(0.0, 1.0),
                ..random
            },
        }
    }
}

/// Number of bytes of `chunk` that must be random for it to compress to `1 / ratio`, a multiple of 8.
fn keep(chunk: usize, ratio: f64) -> usize {
    if ratio <= 1.0 {
        return chunk;
    }
    let words = (chunk as f64 / ratio - (chunk / MARKUP) as f64) / 8.0;
    // At least one stamp, or different blocks would be equal.
    (words.round().max(1.0) as usize * 8).min(chunk)
}

impl ContentPool {
    /// A pool for writes of `block_min` to `block_max` bytes, `slots` of them outstanding at once,
    /// of at least `pool_bytes` ([`POOL_BYTES`], unless there are very many workers).
    ///
    /// Of [`Content::Shaped`] a share of writes, exact in the long run, repeats one of the last
    /// 16 others of that slot and size.
    ///
    /// Streams (below 2^20) of one seed never share a sector's content.
    ///
    /// # Errors
    /// [`StartError::Memory`].
    pub fn new(
        content: Content,
        seed: u64,
        stream: u32,
        slots: usize,
        blocks: std::ops::RangeInclusive<usize>,
        pool_bytes: usize,
    ) -> Result<ContentPool, StartError> {
        let (block_min, block_max) = blocks.into_inner();
        let shape = ContentShape::new(content, block_min);
        let slots = slots.max(1);
        let least = round_up(block_max.max(1));
        let slot_bytes = if shape.zero {
            least
        } else {
            least.max(round_up(pool_bytes / slots))
        };
        let mut draw = Draw::new(seed, 0x706f_6f6c_0000_0000 | u64::from(stream));
        let mut memory = AlignedMemory::new(slot_bytes * slots)?;
        for chunk in memory.bytes_mut().chunks_mut(shape.chunk) {
            let keep = shape.keep.min(chunk.len());
            for word in chunk[..keep].chunks_exact_mut(8) {
                word.copy_from_slice(&draw.bits().to_le_bytes());
            }
        }
        let slot = Slot {
            cursor: 0,
            originals: [Written::default(); ORIGINALS],
            count: 0,
        };
        Ok(ContentPool {
            memory,
            slot_bytes,
            slots: vec![slot; slots],
            shape,
            stamp: u64::from(stream) << COUNTER_BITS,
            salt: derive(seed, 0x7374_616d_7000_0000),
            draw,
        })
    }

    /// Prepares the next write of `bytes` bytes for `slot`, whose previous write is complete.
    /// Returns where it begins in the pool (aligned to a page). `bytes` is at most `block_max`.
    #[inline]
    pub fn place(&mut self, slot: usize, bytes: usize) -> usize {
        if self.shape.zero {
            return slot * self.slot_bytes;
        }
        let written = match self.duplicate(slot, bytes) {
            Some(earlier) => earlier,
            None => self.original(slot, bytes),
        };
        self.put_stamps(written);
        written.position
    }

    /// An earlier write of the same size to repeat, if one is due.
    #[inline]
    fn duplicate(&mut self, slot: usize, bytes: usize) -> Option<Written> {
        if self.shape.duplicates == 0.0 {
            return None;
        }
        // Capped, so that a long time without a possible original is not repaid in one burst.
        self.shape.owed = (self.shape.owed + self.shape.duplicates).min(1.0 + ORIGINALS as f64);
        let slot = &self.slots[slot];
        let known = slot.count.min(ORIGINALS);
        if self.shape.owed < 1.0 || known == 0 {
            return None;
        }
        let first = self.draw.below(known as u64) as usize;
        let mut choices = (0..known).map(|step| slot.originals[(first + step) % known]);
        let earlier = choices.find(|written| written.bytes == bytes)?;
        self.shape.owed -= 1.0;
        Some(earlier)
    }

    /// The place after the previous write, with fresh stamps.
    #[inline]
    fn original(&mut self, slot: usize, bytes: usize) -> Written {
        let base = slot * self.slot_bytes;
        let slot = &mut self.slots[slot];
        if slot.cursor + bytes > self.slot_bytes {
            slot.cursor = 0;
        }
        let written = Written {
            position: base + slot.cursor,
            bytes,
            first_stamp: self.stamp,
        };
        // Direct I/O needs aligned buffers, so the next write starts at a page.
        slot.cursor += bytes.next_multiple_of(ALIGNMENT);
        self.stamp += bytes.div_ceil(SECTOR) as u64;
        if self.shape.duplicates > 0.0 {
            slot.originals[slot.count % ORIGINALS] = written;
            slot.count += 1;
        }
        written
    }

    #[inline]
    fn put_stamps(&mut self, written: Written) {
        let Written {
            position,
            bytes,
            first_stamp,
        } = written;
        let ContentShape { chunk, keep, .. } = self.shape;
        let salt = self.salt;
        let sectors = self.memory.bytes_mut()[position..position + bytes].chunks_mut(SECTOR);
        for (index, sector) in sectors.enumerate() {
            // Stamps stay out of what must be zero.
            if (index * SECTOR) & (chunk - 1) >= keep {
                continue;
            }
            let stamp = scramble(first_stamp.wrapping_add(index as u64) ^ salt).to_le_bytes();
            // A last piece shorter than a stamp keeps as much of it as fits.
            let fits = sector.len().min(stamp.len());
            sector[..fits].copy_from_slice(&stamp[..fits]);
        }
    }

    /// The bytes of a write prepared by [`ContentPool::place`].
    #[inline]
    pub fn bytes(&self, position: usize, bytes: usize) -> &[u8] {
        &self.memory.bytes()[position..position + bytes]
    }

    /// The next `bytes` bytes (at most `block_max`), for a worker with one write at a time.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> &[u8] {
        let position = self.place(0, bytes);
        self.bytes(position, bytes)
    }

    /// Largest write this pool can serve, bytes.
    pub fn block_max(&self) -> usize {
        self.slot_bytes
    }

    /// Fills a buffer of any size, by copying.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for piece in buffer.chunks_mut(self.slot_bytes) {
            piece.copy_from_slice(self.take(piece.len()));
        }
    }

    /// The pool's memory, for registering it with a ring.
    #[cfg(target_os = "linux")]
    pub(crate) fn memory(&self) -> &AlignedMemory {
        &self.memory
    }
}

/// A source of the content of whole files, of any number and size; one per thread.
///
/// A file repeats itself, but for the stamps, at a distance of [`POOL_BYTES`]. Of
/// [`Content::Shaped`] a share of [`UNIT`]s repeats one of [`MODELS`] others; a last unit, or a
/// small file, repeats as much of it as it is long.
#[derive(Debug)]
pub(crate) struct FileContent {
    /// Its last unit repeats its first: no piece ends early.
    pool: ContentPool,
}

impl FileContent {
    /// A source of the content of files. All sources of one seed are alike.
    ///
    /// # Errors
    /// [`StartError::Memory`].
    pub(crate) fn new(content: Content, seed: u64) -> Result<FileContent, StartError> {
        let mut pool = ContentPool::new(content, seed, 0, 1, CHUNK..=UNIT, POOL_BYTES + UNIT)?;
        if !pool.shape.zero {
            // A unit may begin near the end of the pool: the copy behind it saves a second piece.
            pool.memory.bytes_mut().copy_within(..UNIT, POOL_BYTES);
        }
        Ok(FileContent { pool })
    }

    /// `bytes` bytes of file number `file` from `offset`, a multiple of 4096, or as many as there
    /// are up to the next multiple of [`UNIT`].
    #[inline]
    pub(crate) fn piece(&mut self, file: u64, offset: u64, bytes: usize) -> &[u8] {
        debug_assert_eq!(offset % CHUNK as u64, 0);
        let within = offset % UNIT as u64;
        let bytes = bytes.min(UNIT - within as usize);
        if self.pool.shape.zero {
            return self.pool.bytes(0, bytes);
        }
        let own = derive(self.pool.salt, file);
        // A duplicate is the first unit of a file number that is never written itself.
        let (key, from) = match self.model(own, file, offset / UNIT as u64) {
            Some(model) => (model, within),
            None => (own, offset),
        };
        let chunks = (POOL_BYTES / CHUNK) as u64;
        let place = (key % chunks + from / CHUNK as u64) % chunks;
        let written = Written {
            position: place as usize * CHUNK,
            bytes,
            first_stamp: key.wrapping_add(from / SECTOR as u64),
        };
        self.pool.put_stamps(written);
        self.pool.bytes(written.position, bytes)
    }

    /// The unit that this unit of a file is a copy of, if it is one.
    #[inline]
    fn model(&self, own: u64, file: u64, number: u64) -> Option<u64> {
        /// 2^64 over the golden ratio: of its multiples, any run is spread evenly (H. Weyl), so
        /// that the share holds among few files, and within one large one, as well as among many.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let turn = file.wrapping_add(number).wrapping_mul(STEP);
        let salt = self.pool.salt;
        let copy = unit(turn.wrapping_add(salt)) < self.pool.shape.duplicates;
        copy.then(|| derive(!salt, scramble(own ^ number) % MODELS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    /// Small where every access is interpreted.
    const SMALL: usize = if cfg!(miri) { 64 << 10 } else { 1 << 20 };

    fn pool(content: Content, stream: u32, slots: usize) -> ContentPool {
        ContentPool::new(content, 42, stream, slots, 4096..=16384, SMALL).unwrap()
    }

    #[test]
    fn no_sector_of_random_content_occurs_twice() {
        let mut seen = HashSet::new();
        for stream in 0..3 {
            let mut pool = pool(Content::Random, stream, 4);
            for number in 0..2_000 {
                let position = pool.place(number % 4, 16384);
                for sector in pool.bytes(position, 16384).chunks(SECTOR) {
                    let stamp = u64::from_le_bytes(sector[..8].try_into().unwrap());
                    assert!(
                        seen.insert(stamp),
                        "stream {stream}, write {number}: repeated"
                    );
                }
            }
        }
    }

    #[test]
    fn a_write_leaves_the_other_slots_alone() {
        let mut pool = pool(Content::Random, 0, 2);
        let first = pool.place(0, 8192);
        let before = pool.bytes(first, 8192).to_vec();
        // Several times through the slot, which is all an interpreter has the time for.
        for _ in 0..if cfg!(miri) { 12 } else { 1_000 } {
            pool.place(1, 16384);
        }
        assert_eq!(pool.bytes(first, 8192), before);
    }

    #[test]
    fn zero_is_zero() {
        let mut buffer = vec![1; 50_000];
        pool(Content::Zero, 0, 1).fill(&mut buffer);
        assert!(buffer.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_asked_share_of_each_page_is_zero() {
        for ratio in [1.0, 2.0, 4.0, 10.0, 1000.0] {
            let content = Content::Shaped {
                ratio,
                duplicates: 0.0,
            };
            let mut pool = pool(content, 0, 1);
            for _ in 0..100 {
                for page in pool.take(16384).chunks(4096) {
                    let random = page
                        .iter()
                        .rposition(|byte| *byte != 0)
                        .map_or(0, |last| last + 1);
                    let markup = if ratio > 1.0 { 16.0 } else { 0.0 };
                    let expected = (4096.0 / ratio - markup).max(8.0);
                    assert!(
                        (random as f64 - expected).abs() <= 8.0,
                        "ratio {ratio}: {random}"
                    );
                }
            }
        }
    }

    #[test]
    fn blocks_smaller_than_a_page_compress_too() {
        let content = Content::Shaped {
            ratio: 2.0,
            duplicates: 0.0,
        };
        let mut pool = ContentPool::new(content, 1, 0, 1, 512..=512, SMALL).unwrap();
        let block = pool.take(512);
        assert!(block[..248].iter().any(|byte| *byte != 0));
        assert!(block[256..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_asked_share_of_blocks_are_copies() {
        for share in [0.0, 0.25, 0.5, 0.9] {
            let content = Content::Shaped {
                ratio: 2.0,
                duplicates: share,
            };
            let mut pool = pool(content, 0, 8);
            let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
            let count = 4_000;
            for number in 0..count {
                let bytes = if number % 3 == 0 { 4096 } else { 8192 };
                let position = pool.place(number % 8, bytes);
                *seen
                    .entry(pool.bytes(position, bytes).to_vec())
                    .or_default() += 1;
            }
            let copies = (count - seen.len()) as f64 / count as f64;
            assert!(
                (copies - share).abs() < 0.02,
                "asked {share}, found {copies}"
            );
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        let filled = |seed| {
            let mut buffer = vec![0; 30_001];
            ContentPool::new(Content::Random, seed, 0, 1, 4096..=4096, 1 << 20)
                .unwrap()
                .fill(&mut buffer);
            buffer
        };
        assert_eq!(filled(1), filled(1));
        assert_ne!(filled(1), filled(2));
    }

    fn source(content: Content, seed: u64) -> FileContent {
        FileContent::new(content, seed).unwrap()
    }

    fn file(source: &mut FileContent, file: u64, bytes: usize) -> Vec<u8> {
        let mut whole = Vec::new();
        while whole.len() < bytes {
            let part = source.piece(file, whole.len() as u64, bytes - whole.len());
            whole.extend_from_slice(part);
        }
        whole
    }

    fn distinct(bytes: &[u8], size: usize) -> usize {
        bytes.chunks(size).collect::<HashSet<_>>().len()
    }

    #[test]
    fn random_content_repeats_no_sector_within_a_file_or_between_files() {
        let mut source = source(Content::Random, 7);
        let mut all = file(&mut source, 0, 9 << 20);
        all.extend(file(&mut source, 1, 1 << 20));
        for bytes in 500..600 {
            // Shorter than a sector, but with a whole stamp.
            let mut small = file(&mut source, bytes, 8.max(bytes as usize % 512));
            small.resize(SECTOR, 0);
            all.extend(small);
        }
        assert_eq!(distinct(&all, SECTOR), all.len() / SECTOR);
    }

    #[test]
    fn the_same_seed_gives_the_same_content_in_whatever_order_it_is_taken() {
        let whole = file(&mut source(Content::Random, 7), 3, 300_000);
        let mut other = source(Content::Random, 7);
        file(&mut other, 9, 100_000);
        assert_eq!(file(&mut other, 3, 300_000), whole);
        assert_ne!(file(&mut source(Content::Random, 8), 3, 300_000), whole);
    }

    /// The end of a piece must not show in the content: not at the pool's end either.
    #[test]
    fn a_file_is_the_same_in_pieces_of_any_size() {
        for content in [
            Content::Random,
            Content::Shaped {
                ratio: 3.0,
                duplicates: 0.4,
            },
        ] {
            let mut source = source(content, 7);
            let whole = file(&mut source, 3, 9 << 20);
            for (index, expected) in whole.chunks(CHUNK).enumerate() {
                let found = source.piece(3, (index * CHUNK) as u64, CHUNK);
                assert!(found == expected, "chunk {index}");
            }
            for bytes in [1, 7, 8, 511, 512, 513, 4095, 4097, 70_000, UNIT] {
                assert!(source.piece(3, 0, bytes) == &whole[..bytes], "{bytes}");
            }
        }
    }

    #[test]
    fn shaped_files_have_the_zeros_and_the_copies_they_were_asked_for() {
        let content = Content::Shaped {
            ratio: 2.0,
            duplicates: 0.5,
        };
        let all = file(&mut source(content, 7), 0, 64 << 20);
        let zeros = all.iter().filter(|&&byte| byte == 0).count() as f64 / all.len() as f64;
        assert!((0.49..0.52).contains(&zeros), "{zeros}");
        let copies = 1.0 - distinct(&all, CHUNK) as f64 / (all.len() / CHUNK) as f64;
        assert!((0.49..0.501).contains(&copies), "{copies}");
        let zero = file(&mut source(Content::Zero, 7), 0, 1 << 20);
        assert!(zero.iter().all(|&byte| byte == 0));
    }
}
