//! Memory that a guest shares with its host: large amounts pass at once, and nothing has to answer.
//!
//! The host sees a file, the guest a part of its memory behind a device of the bus (`ivshmem`). Its
//! first 8 bytes say how many bytes follow.

use crate::mapping::Mapping;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in front of what is shared.
const HEAD: usize = 8;

/// The memory of a device, mapped so that the host sees what is written.
#[derive(Debug)]
pub struct SharedWindow(Mapping);

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
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let mapped = Mapping::of_file(&file, 0, bytes, protection, MapFlags::SHARED)?;
        Ok(Self(mapped))
    }

    /// Bytes that follow the head, as both sides see it: little-endian.
    fn length(&self) -> &AtomicU64 {
        let head = self.0.place(0, HEAD).cast();
        // SAFETY: the head is mapped for as long as `self` lives, and at the beginning of a page, so
        // it is aligned. Nothing here accesses it otherwise, and that the host does is what an
        // atomic is for.
        unsafe { AtomicU64::from_ptr(head) }
    }

    /// Reads what was put there.
    ///
    /// # Errors
    /// It says that it holds more than it can.
    pub fn read(&self) -> Result<Vec<u8>> {
        // With the length, all that was written before it is seen.
        let length = u64::from_le(self.length().load(Ordering::Acquire));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.0.size() - HEAD {
            return Err(Error::other("it says that it holds more than it can"));
        }
        let mut bytes = vec![0; length];
        self.0.read(HEAD, &mut bytes);
        Ok(bytes)
    }

    /// Puts something there.
    ///
    /// # Errors
    /// It does not fit.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let room = self.0.size() - HEAD;
        if bytes.len() > room {
            let why = format!("{} bytes do not fit into {room}", bytes.len());
            return Err(Error::other(why));
        }
        self.0.write(HEAD, bytes);
        // The length comes last, so that a reader never takes a part for the whole.
        let length = (bytes.len() as u64).to_le();
        self.length().store(length, Ordering::Release);
        Ok(())
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

    /// Under Miri this finds a length that is seen before what it counts.
    #[test]
    fn a_reader_sees_nothing_or_the_whole() {
        let window = SharedWindow(Mapping::anonymous(4096, MapFlags::PRIVATE).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| window.write(&[7; 40]).unwrap());
            let seen = std::iter::repeat_with(|| window.read().unwrap());
            let mut seen = seen.inspect(|_| std::thread::yield_now());
            let first = seen.find(|bytes| !bytes.is_empty());
            assert_eq!(first, Some(vec![7; 40]));
        });
    }
}
