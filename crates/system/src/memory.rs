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

/// Has all threads allocate from at most so many arenas, where the C library keeps arenas (glibc): by default every
/// thread gets its own, up to eight for each processor, and what it frees there stays with this process. To be called
/// before other threads start.
pub fn share_arenas(most: u8) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt sets a parameter of the allocator; no memory is involved.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, most.into());
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = most;
}

/// Gives freed memory back to the system where the C library keeps it (glibc).
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim takes none of the memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
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

/// Counts that begin at 0, of which only the first ones are in memory from the start: of the rest, a page is there from
/// the first count on that is written in it.
#[derive(Debug)]
pub struct SparseCounts(Mapping);

impl SparseCounts {
    /// Maps `length` counts, the first `present` of them in memory.
    ///
    /// # Errors
    /// [`NoMemory`] with what the system said.
    pub fn new(length: usize, present: usize) -> Result<Self, NoMemory> {
        let bytes = round_up(length.max(1) * size_of::<u64>());
        let mapped = Mapping::anonymous(bytes, MapFlags::PRIVATE);
        let mut counts = Self(mapped.map_err(|errno| NoMemory {
            bytes,
            errno: errno.raw_os_error(),
        })?);
        for page in counts.all_mut()[..present].chunks_mut(ALIGNMENT / size_of::<u64>()) {
            // Seen from outside, so that the compiler leaves the write of a zero in.
            page[0] = std::hint::black_box(0);
        }
        Ok(counts)
    }

    /// All counts, and those that fill the last page.
    #[inline(always)]
    pub fn all(&self) -> &[u64] {
        let length = self.0.size() / size_of::<u64>();
        // SAFETY: the mapping holds so many initialised (zeroed) counts at a page's beginning for as long as `self`
        // lives; it is private, and `&self` keeps Rust code from writing to it meanwhile.
        unsafe { std::slice::from_raw_parts(self.0.start().as_ptr().cast(), length) }
    }

    /// The same, to be written.
    #[inline(always)]
    pub fn all_mut(&mut self) -> &mut [u64] {
        let length = self.0.size() / size_of::<u64>();
        // SAFETY: as in `all`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.start().as_ptr().cast(), length) }
    }

    /// Pages of them that are in memory; `None` where the system does not tell.
    pub fn pages_present(&self) -> Option<usize> {
        use std::os::unix::fs::FileExt;
        let map = std::fs::File::open("/proc/self/pagemap").ok()?;
        let first = self.0.start().as_ptr().addr() / ALIGNMENT;
        let mut pages = vec![0; self.0.size() / ALIGNMENT * size_of::<u64>()];
        map.read_exact_at(&mut pages, (first * size_of::<u64>()) as u64)
            .ok()?;
        // The last byte of an entry has the bits "present" and "swapped" (Documentation/admin-guide/mm/pagemap.rst).
        let last = pages.iter().skip(7).step_by(8);
        Some(last.filter(|bits| **bits & 0xC0 != 0).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Miri has no pages.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn counts_are_in_memory_where_they_are_wanted_or_written() {
        let mut counts = SparseCounts::new(40_000, 1_000).unwrap();
        assert!(counts.all().len() >= 40_000);
        assert_eq!(counts.pages_present(), Some(2));
        counts.all_mut()[39_999] += 3;
        assert_eq!(counts.pages_present(), Some(3));
        assert_eq!(counts.all().iter().sum::<u64>(), 3);
    }

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
