//! Memory that the kernel maps: the one place where it is asked for and given back.
//!
//! Others may change what is mapped at any moment: another process through the same file, the host
//! of a guest, the kernel. A Rust reference to such bytes would be undefined behaviour, so a mapping
//! gives out addresses and copies only.

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};

/// A range of memory of its own, unmapped when it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and this type never makes a reference
// to what is mapped: its copies allow concurrent changes by others.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeros, for reading and writing.
    ///
    /// # Errors
    /// The system has no memory, or refuses the flags.
    pub fn anonymous(bytes: usize, flags: MapFlags) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint without FIXED makes the kernel choose an unused range, so no memory
        // in use is replaced.
        let start = unsafe { rustix::mm::mmap_anonymous(null_mut(), bytes, protection, flags) }?;
        Self::of(start, bytes)
    }

    /// Maps part of a file, from byte `from` on. Behind the last page of the file there is nothing:
    /// to touch it ends the process.
    ///
    /// # Errors
    /// The file cannot be mapped so, or the system has no memory.
    pub fn of_file(
        file: impl AsFd,
        from: u64,
        bytes: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        // SAFETY: as in `anonymous`.
        let start = unsafe { rustix::mm::mmap(null_mut(), bytes, protection, flags, file, from) }?;
        Self::of(start, bytes)
    }

    fn of(start: *mut std::ffi::c_void, bytes: usize) -> Result<Self, Errno> {
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, bytes })
    }

    /// Bytes that are mapped.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// The first byte, at the beginning of a page.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Address of `length` bytes from byte `at` on.
    ///
    /// # Panics
    /// They do not all lie in it.
    #[inline]
    pub fn place(&self, at: usize, length: usize) -> *mut u8 {
        let end = at.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "outside the mapping"
        );
        self.start.as_ptr().wrapping_add(at)
    }

    /// Copies what is there from byte `at` on.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) {
        let from = self.place(at, into.len());
        // SAFETY: `place` made sure that `into.len()` mapped bytes begin at `from`.
        unsafe { fetch(from, into) }
    }

    /// Puts bytes there, from byte `at` on.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) {
        let into = self.place(at, bytes.len());
        // SAFETY: `place` made sure that `bytes.len()` mapped bytes begin at `into`. Where they
        // cannot be written, the processor refuses.
        unsafe { store(bytes, into) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by a constructor with this very length and, by ownership,
        // nothing refers to it any more. Unmapping a valid range cannot fail.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Copies bytes that other threads or processes may change meanwhile. In Rust that would be a data
/// race, so an instruction of the processor copies, which the compiler does not see. The program
/// accepts any bytes.
///
/// # Safety
/// As many bytes at `from` can be read.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn fetch(from: *mut u8, into: &mut [u8]) {
    // SAFETY: by this function's contract, and `into` is exclusively ours.
    unsafe { copy(from, into.as_mut_ptr(), into.len()) }
}

/// Copies bytes to where others may see or change them meanwhile, as above.
///
/// # Safety
/// As many bytes at `to` can be written.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn store(bytes: &[u8], to: *mut u8) {
    // SAFETY: by this function's contract, and `bytes` can be read.
    unsafe { copy(bytes.as_ptr(), to, bytes.len()) }
}

/// Copies bytes by an instruction of the processor.
///
/// # Safety
/// `bytes` bytes at `from` can be read and as many at `to` written, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::asm;
    // In a guest whose clock counts instructions, each step of the copy is one.
    if bytes.is_multiple_of(8) {
        // SAFETY: by this function's contract; the direction flag is clear by that of `asm!`.
        unsafe {
            asm!("rep movsq", inout("rcx") bytes / 8 => _, inout("rsi") from => _,
                inout("rdi") to => _, options(nostack, preserves_flags));
        }
    } else {
        // SAFETY: as above.
        unsafe {
            asm!("rep movsb", inout("rcx") bytes => _, inout("rsi") from => _,
                inout("rdi") to => _, options(nostack, preserves_flags));
        }
    }
}

/// Copies as above, for other processors and for Miri: byte by byte with atomic accesses to the side
/// that is shared.
///
/// # Safety
/// As above.
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn fetch(from: *mut u8, into: &mut [u8]) {
    use std::sync::atomic::{AtomicU8, Ordering};
    for (index, byte) in into.iter_mut().enumerate() {
        // SAFETY: by this function's contract; a byte is always aligned.
        let shared = unsafe { AtomicU8::from_ptr(from.add(index)) };
        *byte = shared.load(Ordering::Relaxed);
    }
}

/// Copies as above.
///
/// # Safety
/// As above.
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn store(bytes: &[u8], to: *mut u8) {
    use std::sync::atomic::{AtomicU8, Ordering};
    for (index, byte) in bytes.iter().enumerate() {
        // SAFETY: by this function's contract; a byte is always aligned.
        let shared = unsafe { AtomicU8::from_ptr(to.add(index)) };
        shared.store(*byte, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under Miri this finds a copy that is a data race.
    #[test]
    fn two_threads_may_copy_into_one_mapping_at_a_time() {
        let shared = Mapping::anonymous(4096, MapFlags::PRIVATE).unwrap();
        std::thread::scope(|scope| {
            for value in [1, 2] {
                let shared = &shared;
                scope.spawn(move || shared.write(40, &[value; 13]));
            }
            let mut seen = [9; 13];
            shared.read(40, &mut seen);
            assert!(seen.iter().all(|byte| *byte <= 2));
        });
        let mut all = [9; 56];
        shared.read(0, &mut all);
        assert_eq!((all[39], all[53]), (0, 0));
        assert!(all[40..53].iter().all(|byte| [1, 2].contains(byte)));
    }

    #[test]
    #[should_panic(expected = "outside the mapping")]
    fn nothing_outside_of_a_mapping_is_read() {
        let mapping = Mapping::anonymous(4096, MapFlags::PRIVATE).unwrap();
        mapping.read(4090, &mut [0; 7]);
    }
}
