//! Timed reads, and writes where a drive may be written over, past the caches of the kernel.

use super::device::{self, FixedDevice};
use super::error::HostError;
use rustix::fs::{Mode, OFlags};
use stackrace_base::time::{Clock, SystemClock};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Direct reads and writes need memory and places that are multiples of the largest sector, bytes.
const ALIGNED: usize = 4096;

/// Numbers that each device of a thread has for its writes: more than it ever makes.
const WRITES_EACH: u64 = 1 << 40;

/// A drive on which reads and writes are timed.
#[derive(Debug)]
pub struct TimedDevice {
    file: File,
    path: PathBuf,
    bytes: u64,
    buffer: Vec<u8>,
    /// Number of the next write: no two write the same.
    written: u64,
}

impl TimedDevice {
    /// Opens a drive for reading only.
    ///
    /// # Errors
    /// When it cannot be read directly (O_DIRECT), or its size cannot be found.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let failed =
            |error: std::io::Error| HostError::path("read directly (O_DIRECT)", path, error);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = stackrace_system::direct()
            .and_then(|direct| rustix::fs::open(path, flags | direct, Mode::empty()));
        let file = File::from(file.map_err(|error| failed(error.into()))?);
        Self::of(file, path).map_err(failed)
    }

    /// Opens a device that is to be written over, with the kernel's exclusive right: nothing else can be put on it
    /// meanwhile.
    ///
    /// # Errors
    /// When it is in use, is another device now, or cannot be written directly (O_DIRECT).
    pub fn open_to_wipe(device: &FixedDevice) -> Result<Self, HostError> {
        let path = &device.node;
        let failed =
            |error: std::io::Error| HostError::path("write directly (O_DIRECT) to", path, error);
        let direct = stackrace_system::direct().map_err(|error| failed(error.into()))?;
        let file = device::exclusively(path, OFlags::RDWR | direct)?;
        if device.number != Some(device::number(&file).map_err(failed)?) {
            return Err(failed(std::io::Error::other("it is another device now")));
        }
        Self::of(file, path).map_err(failed)
    }

    fn of(mut file: File, path: &Path) -> std::io::Result<Self> {
        // The end of a device is its size; of a file, too.
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            bytes,
            buffer: Vec::new(),
            written: 0,
        })
    }

    /// The same open device with memory of its own, for another thread; no other one, before or later, writes the same.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn again(&mut self) -> Result<Self, HostError> {
        let file = self.file.try_clone();
        let file = file.map_err(|error| HostError::path("open again", &self.path, error))?;
        self.written += WRITES_EACH;
        Ok(Self {
            file,
            path: self.path.clone(),
            bytes: self.bytes,
            buffer: Vec::new(),
            written: self.written,
        })
    }

    /// Bytes of the drive.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the aligned part of the buffer begins, with room for so many bytes.
    fn room(&mut self, bytes: usize) -> usize {
        if self.buffer.len() < bytes + ALIGNED {
            self.buffer.resize(bytes + ALIGNED, 0);
            // Nothing that a drive could compress.
            let mut noise = blake3::Hasher::new();
            noise.update(&self.written.to_le_bytes());
            noise.finalize_xof().fill(&mut self.buffer);
        }
        self.buffer.as_ptr().align_offset(ALIGNED)
    }

    /// Reads so many bytes at a place; both are multiples of 4 KiB. Returns the instants at which it
    /// began and ended, ns.
    ///
    /// # Errors
    /// When the drive cannot read all of them.
    pub fn read(&mut self, at: u64, bytes: usize) -> Result<[u64; 2], HostError> {
        let begin = self.room(bytes);
        let room = &mut self.buffer[begin..begin + bytes];
        let clock = SystemClock;
        let started = clock.now_ns();
        let read = self.file.read_exact_at(room, at);
        let ended = clock.now_ns();
        read.map_err(|error| HostError::path("read", &self.path, error))?;
        Ok([started, ended])
    }

    /// Writes so many bytes at a place; both are multiples of 4 KiB. Each block differs from all others. Returns the
    /// instants at which it began and ended, ns.
    ///
    /// # Errors
    /// When the drive cannot write all of them.
    pub fn write(&mut self, at: u64, bytes: usize) -> Result<[u64; 2], HostError> {
        let begin = self.room(bytes);
        let data = &mut self.buffer[begin..begin + bytes];
        for block in data.chunks_exact_mut(ALIGNED) {
            self.written += 1;
            block[..8].copy_from_slice(&self.written.to_le_bytes());
        }
        let clock = SystemClock;
        let started = clock.now_ns();
        let written = self.file.write_all_at(data, at);
        let ended = clock.now_ns();
        written.map_err(|error| HostError::path("write", &self.path, error))?;
        Ok([started, ended])
    }

    /// Has the drive keep what was written. Returns the instants at which that began and ended, ns.
    ///
    /// # Errors
    /// When the drive cannot.
    pub fn flush(&self) -> Result<[u64; 2], HostError> {
        let clock = SystemClock;
        let started = clock.now_ns();
        let flushed = self.file.sync_data();
        let ended = clock.now_ns();
        flushed.map_err(|error| HostError::path("flush", &self.path, error))?;
        Ok([started, ended])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said_by_name() {
        let error = TimedDevice::open(Path::new("/nonexistent/drive")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/drive"), "{error}");
    }

    #[test]
    fn a_device_that_is_known_by_its_path_alone_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, [7; 8192]).unwrap();
        let device = FixedDevice::by_path(file.clone());
        TimedDevice::open_to_wipe(&device).unwrap_err();
        assert_eq!(std::fs::read(&file).unwrap(), [7; 8192]);
    }
}
