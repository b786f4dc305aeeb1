//! Page-aligned memory for I/O, mapped and touched before the clock starts.
//!
//! Direct I/O demands aligned buffers; a first-touch page fault inside the measured loop would be
//! charged to the device. So buffers are anonymous mappings, populated by the kernel at once.

use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

use crate::error::StartError;

/// Alignment every buffer has, bytes: the page size, and enough for any logical block size in use.
pub const ALIGNMENT: usize = 4096;

/// `bytes`, rounded up to [`ALIGNMENT`].
pub fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// An owned, zeroed, page-aligned region.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: `Memory` owns its mapping alone, like a `Box<[u8]>`; nothing about it is tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps at least `bytes` bytes of zeros, all of them present.
    ///
    /// # Errors
    /// [`StartError::Memory`] with what the system said.
    pub fn new(bytes: usize) -> Result<Memory, StartError> {
        let bytes = round_up(bytes.max(1));
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // The interpreter that checks the unsafe code has no pages to make present.
        let present = if cfg!(miri) {
            MapFlags::empty()
        } else {
            MapFlags::POPULATE
        };
        let flags = MapFlags::PRIVATE | present;
        // SAFETY: a null hint without FIXED makes the kernel choose an unused range, so no memory
        // anyone else refers to is replaced.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        match start {
            Ok(start) => match NonNull::new(start.cast::<u8>()) {
                Some(start) => Ok(Memory { start, bytes }),
                None => Err(StartError::Memory { bytes, errno: 0 }),
            },
            Err(errno) => Err(StartError::Memory {
                bytes,
                errno: errno.raw_os_error(),
            }),
        }
    }

    /// The whole region.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to `bytes` mapped, initialised (zeroed) bytes for as long as
        // `self` lives; `&self` keeps Rust code from writing to them meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The whole region, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Where the region begins.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` with this very length and, by ownership, nothing
        // refers to it any more. Unmapping a valid range cannot fail.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}
