//! Memory that a guest shares with its host: large amounts pass at once, and nothing has to answer.
//!
//! The host sees a file, the guest a part of its memory behind a device of the bus (`ivshmem`). Its
//! first 8 bytes say how many bytes follow.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;
use std::ptr::NonNull;

/// Bytes in front of what is shared.
const HEAD: usize = 8;

/// The memory of a device, mapped so that the host sees what is written.
#[derive(Debug)]
pub struct SharedWindow {
    start: NonNull<u8>,
    bytes: usize,
}

impl SharedWindow {
    /// Maps a file: the memory of a device below `/sys/bus/pci/devices`.
    ///
    /// # Errors
    /// The system's; it is too short to hold anything.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if bytes <= HEAD {
            return Err(Error::other("there is nothing behind it"));
        }
        // SAFETY: a null hint without FIXED makes the kernel choose an unused range, so no memory
        // in use is replaced.
        let start = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            mmap(
                std::ptr::null_mut(),
                bytes,
                flags,
                MapFlags::SHARED,
                &file,
                0,
            )
        }?;
        let start = NonNull::new(start.cast::<u8>());
        let start = start.ok_or_else(|| Error::other("it was mapped at 0"))?;
        Ok(Self { start, bytes })
    }

    /// Reads what was put there.
    ///
    /// # Errors
    /// It says that it holds more than it can.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut head = [0; HEAD];
        // SAFETY: the window is longer than its head, and mapped for as long as `self` lives. The
        // copy is by value: no reference to shared memory is made.
        unsafe { std::ptr::copy_nonoverlapping(self.start.as_ptr(), head.as_mut_ptr(), HEAD) };
        let length = usize::try_from(u64::from_le_bytes(head)).unwrap_or(usize::MAX);
        if length > self.bytes - HEAD {
            return Err(Error::other("it says that it holds more than it can"));
        }
        let mut bytes = vec![0; length];
        let from = self.start.as_ptr().wrapping_add(HEAD);
        // SAFETY: `length` bytes behind the head lie in the mapping, as was just checked.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), length) };
        Ok(bytes)
    }

    /// Puts something there.
    ///
    /// # Errors
    /// It does not fit.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > self.bytes - HEAD {
            return Err(Error::other(format!(
                "{} bytes do not fit into {}",
                bytes.len(),
                self.bytes - HEAD
            )));
        }
        let into = self.start.as_ptr().wrapping_add(HEAD);
        let head = (bytes.len() as u64).to_le_bytes();
        // SAFETY: the range behind the head lies in the mapping, as was just checked.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, bytes.len()) };
        // The length comes last, so that a reader never takes a part for the whole.
        // SAFETY: the window is longer than its head.
        unsafe { std::ptr::copy_nonoverlapping(head.as_ptr(), self.start.as_ptr(), HEAD) };
        Ok(())
    }
}

impl Drop for SharedWindow {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `open` with this very length, and nothing refers to it
        // any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_window_is_found_there_and_no_more_than_fits() {
        let path = std::env::temp_dir().join(format!("stackrace-window-{}", std::process::id()));
        std::fs::write(&path, [0; 64]).unwrap();
        let window = SharedWindow::open(&path).unwrap();
        assert!(window.read().unwrap().is_empty());
        window.write(b"what was written").unwrap();
        assert_eq!(
            SharedWindow::open(&path).unwrap().read().unwrap(),
            b"what was written"
        );
        assert!(window.write(&[1; 57]).is_err());
        std::fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
        assert!(SharedWindow::open(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
