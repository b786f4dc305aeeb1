//! Page-aligned memory for I/O, mapped and touched before the clock starts.
//!
//! Direct I/O needs aligned buffers, and a page fault inside the measured loop would be charged to
//! the device. So buffers are anonymous mappings that the kernel populates at once.

use rustix::mm::MapFlags;

use crate::POPULATE;
use crate::limit::words;
use crate::mapping::Mapping;

/// Alignment every buffer has, bytes: the page size, and enough for any logical block size in use.
pub const ALIGNMENT: usize = 4096;

/// A value that one thread writes, alone on its cache lines. Two threads that write to one line
/// take it from each other at every write. 128 bytes, because processors fetch lines of 64 in
/// pairs.
#[derive(Debug, Clone)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

/// `bytes`, rounded up to [`ALIGNMENT`].
pub fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Memory that could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot have {bytes} bytes of buffers: {}", words(*errno))]
pub struct NoMemory {
    /// Amount that was asked for, bytes.
    pub bytes: usize,
    /// Error of the system (raw errno).
    pub errno: i32,
}

/// An owned, zeroed, page-aligned region.
#[derive(Debug)]
pub struct AlignedMemory(Mapping);

impl AlignedMemory {
    /// Maps at least `bytes` bytes of zeros, all of them present.
    ///
    /// # Errors
    /// [`NoMemory`] with what the system said.
    pub fn new(bytes: usize) -> Result<AlignedMemory, NoMemory> {
        let bytes = round_up(bytes.max(1));
        // Miri has no pages to populate.
        let present = if cfg!(miri) {
            MapFlags::empty()
        } else {
            POPULATE
        };
        let mapped = Mapping::anonymous(bytes, MapFlags::PRIVATE | present);
        let mapped = mapped.map_err(|errno| NoMemory {
            bytes,
            errno: errno.raw_os_error(),
        })?;
        let mut memory = AlignedMemory(mapped);
        if POPULATE.is_empty() && !cfg!(miri) {
            memory.touch();
        }
        Ok(memory)
    }

    /// Writes to each page, so that it is there.
    fn touch(&mut self) {
        for page in self.bytes_mut().chunks_mut(ALIGNMENT) {
            // Seen from outside, so that the compiler leaves the writes of zeros in.
            page[0] = std::hint::black_box(0);
        }
    }

    /// The whole region, page-aligned, zeros where nothing was written.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping holds so many initialised (zeroed) bytes for as long as `self` lives;
        // it is private, and `&self` keeps Rust code from writing to it meanwhile.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len()) }
    }

    /// The whole region, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.len()) }
    }

    /// Beginning of the region.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.start().as_ptr()
    }

    /// Bytes of the region, at least those that were asked for.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zeroed_aligned_and_not_shared() {
        let mut region = AlignedMemory::new(5_000).unwrap();
        let other = AlignedMemory::new(1).unwrap();
        assert_eq!((region.bytes().len(), other.bytes().len()), (8_192, 4_096));
        assert!(region.as_ptr().addr().is_multiple_of(ALIGNMENT));
        assert!(region.bytes().iter().all(|byte| *byte == 0));
        region.bytes_mut().fill(7);
        assert!(other.bytes().iter().all(|byte| *byte == 0));
        // Like the buffers of a worker: mapped by one thread, used and unmapped by another.
        let seen = std::thread::spawn(move || region.bytes().to_vec());
        assert_eq!(seen.join().unwrap(), [7; 8_192]);
    }

    #[test]
    fn padded_values_share_no_cache_line() {
        let both = [CachePadded(1u8), CachePadded(2u8)];
        let place = |index: usize| &raw const both[index].0 as usize;
        assert_eq!((place(0) % 128, place(1) % 128), (0, 0));
        assert!(place(1) - place(0) >= 128);
    }
}
