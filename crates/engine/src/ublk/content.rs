//! What a served device holds: memory that is used only where something other than zeros was
//! written.

use super::device::{ContentRoom, PAGE, ServeError};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ops::Range;
use std::ptr::NonNull;

/// A part of a range: its page, its first byte, and its place in the range.
type Part = (u64, u64, Range<usize>);

/// The content of a device.
pub(super) struct StoredContent {
    start: NonNull<u8>,
    bytes: u64,
    /// One bit for each page: whether it is kept. A page that is not kept holds zeros.
    kept: Vec<u64>,
    /// What may still be kept.
    room: ContentRoom,
}

// SAFETY: the mapping belongs to this value alone, and nothing about it is tied to a thread.
unsafe impl Send for StoredContent {}

impl StoredContent {
    /// A device of zeros; what is written to it takes of `room`.
    pub(super) fn new(bytes: u64, room: &ContentRoom) -> Result<Self, ServeError> {
        let length = usize::try_from(bytes.next_multiple_of(PAGE)).unwrap_or(usize::MAX);
        let failed = |errno: rustix::io::Errno| ServeError::new("reserve memory for", errno);
        // SAFETY: a null hint without FIXED makes the kernel choose an unused range, so no memory
        // in use is replaced.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                // Far more than the machine has: only what is written takes memory.
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let start = start.map_err(failed)?;
        // SAFETY: the range was mapped a moment ago, and the advice changes none of its content.
        match unsafe { rustix::mm::madvise(start, length, Advice::LinuxNoHugepage) } {
            // A kernel that has no huge pages, as with PREEMPT_RT, does not know the advice.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let start = NonNull::new(start.cast::<u8>());
        let start = start.ok_or_else(|| failed(rustix::io::Errno::NOMEM))?;
        let pages = bytes.div_ceil(PAGE);
        Ok(Self {
            start,
            bytes,
            kept: vec![0; pages.div_ceil(64) as usize],
            room: room.clone(),
        })
    }

    fn is_kept(&self, page: u64) -> bool {
        self.kept[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// The part of each page that a range touches.
    fn parts(&self, from: u64, length: usize) -> impl Iterator<Item = Part> + use<> {
        let end = (from + length as u64).min(self.bytes);
        let mut at = from;
        std::iter::from_fn(move || {
            let stop = ((at / PAGE + 1) * PAGE).min(end);
            (at < end).then(|| {
                let place = (at - from) as usize..(stop - from) as usize;
                let part = (at / PAGE, at, place);
                at = stop;
                part
            })
        })
    }

    /// Copies what the device holds from byte `from` on.
    pub(super) fn read(&self, from: u64, into: &mut [u8]) {
        into.fill(0);
        for (page, at, place) in self.parts(from, into.len()) {
            if self.is_kept(page) {
                let target = &mut into[place];
                // SAFETY: `parts` stays below `bytes`, all of which is mapped for as long as `self`
                // lives; `&self` keeps others from writing there meanwhile.
                let kept = unsafe {
                    std::slice::from_raw_parts(
                        self.start.as_ptr().wrapping_add(at as usize),
                        target.len(),
                    )
                };
                target.copy_from_slice(kept);
            }
        }
    }

    /// Keeps these bytes from byte `from` on; false: there is no room for them, and what was kept
    /// of them is undefined.
    #[must_use]
    pub(super) fn write(&mut self, from: u64, bytes: &[u8]) -> bool {
        for (page, at, place) in self.parts(from, bytes.len()) {
            let source = &bytes[place];
            if !self.is_kept(page) {
                if source.iter().all(|byte| *byte == 0) {
                    continue;
                }
                if !self.room.take() {
                    return false;
                }
                self.kept[(page / 64) as usize] |= 1 << (page % 64);
            }
            // SAFETY: as in `read`, and `&mut self` makes the access exclusive.
            let target = unsafe {
                std::slice::from_raw_parts_mut(
                    self.start.as_ptr().wrapping_add(at as usize),
                    source.len(),
                )
            };
            target.copy_from_slice(source);
        }
        true
    }

    /// Makes a range zeros again; pages that lie in it whole take no memory any more.
    pub(super) fn clear(&mut self, from: u64, length: u64) {
        let end = (from + length).min(self.bytes);
        let mut page = from / PAGE;
        while page * PAGE < end {
            // A whole word of pages that are not kept is passed over at once: a range may be the
            // whole of a large device.
            if page.is_multiple_of(64) && self.kept[(page / 64) as usize] == 0 {
                page += 64;
                continue;
            }
            if self.is_kept(page) {
                self.clear_page(page, from, end);
            }
            page += 1;
        }
    }

    fn clear_page(&mut self, page: u64, from: u64, end: u64) {
        let (first, last) = (from.max(page * PAGE), end.min((page + 1) * PAGE));
        // SAFETY: the page is kept, so it lies in the mapping, and `&mut self` makes the access
        // exclusive.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                self.start.as_ptr().wrapping_add(first as usize),
                (last - first) as usize,
            )
        };
        bytes.fill(0);
        if last - first == PAGE {
            let start = self.start.as_ptr().wrapping_add(first as usize);
            // SAFETY: the range is one page of our mapping to which no reference is left.
            let given_back =
                unsafe { rustix::mm::madvise(start.cast(), PAGE as usize, Advice::LinuxDontNeed) };
            if given_back.is_ok() {
                self.kept[(page / 64) as usize] &= !(1 << (page % 64));
                self.room.give_back();
            }
        }
    }
}

impl Drop for StoredContent {
    fn drop(&mut self) {
        let length = self.bytes.next_multiple_of(PAGE) as usize;
        // SAFETY: the range was mapped by `new` with this very length, and nothing refers to it
        // any more.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), length) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &StoredContent, from: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![9; length];
        content.read(from, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read_back_and_the_rest_is_zeros() {
        // Far larger than any memory: only what is written may take some.
        let mut content = StoredContent::new(1 << 42, &ContentRoom::new(1 << 20)).unwrap();
        assert!(content.write((1 << 41) + 4000, &[7; 200]));
        assert_eq!(read(&content, (1 << 41) + 4000, 200), [7; 200]);
        assert_eq!(read(&content, (1 << 41) + 3990, 10), [0; 10]);
        assert_eq!(read(&content, 12, 5000), vec![0; 5000]);
    }

    #[test]
    fn zeros_take_no_room_and_a_full_device_says_so() {
        let mut content = StoredContent::new(1 << 30, &ContentRoom::new(2 * 4096)).unwrap();
        assert!(content.write(0, &[0; 65_536]));
        assert!(content.write(0, &[1; 8192]));
        assert!(!content.write(8192, &[1; 4096]));
        // What is kept may change all the same.
        assert!(content.write(0, &[2; 8192]));
        content.clear(0, 4096);
        assert_eq!(read(&content, 0, 8192)[4095..4097], [0, 2]);
        assert!(content.write(8192, &[1; 4096]));
    }

    #[test]
    fn a_part_of_a_page_is_cleared_without_its_neighbours() {
        let mut content = StoredContent::new(1 << 30, &ContentRoom::new(1 << 20)).unwrap();
        assert!(content.write(0, &[3; 12_288]));
        content.clear(4000, 5000);
        let found = read(&content, 0, 12_288);
        assert!(found[..4000].iter().all(|byte| *byte == 3));
        assert!(found[4000..9000].iter().all(|byte| *byte == 0));
        assert!(found[9000..].iter().all(|byte| *byte == 3));
    }
}
