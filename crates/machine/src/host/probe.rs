//! Timed reads of a drive that is opened for reading only, past the caches of the kernel.

use super::error::HostError;
use rustix::fs::{Mode, OFlags};
use stackrace_base::time::{Clock, SystemClock};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Direct reads need memory and places that are multiples of the largest sector, bytes.
const ALIGNED: usize = 4096;

/// A drive that reads are timed on.
#[derive(Debug)]
pub struct ReadProbe {
    file: File,
    path: PathBuf,
    bytes: u64,
    buffer: Vec<u8>,
}

impl ReadProbe {
    /// Opens a drive.
    ///
    /// # Errors
    /// When it cannot be read directly (O_DIRECT), or its size cannot be found.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let failed =
            |error: std::io::Error| HostError::path("read directly (O_DIRECT)", path, error);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = stackrace_system::direct()
            .and_then(|direct| rustix::fs::open(path, flags | direct, Mode::empty()));
        let mut file = File::from(file.map_err(|error| failed(error.into()))?);
        // The end of a device is its size; of a file, too.
        let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            bytes,
            buffer: Vec::new(),
        })
    }

    /// Path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the drive.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads so many bytes at a place; both are multiples of 4 KiB. Returns the instants at which it
    /// began and ended, ns.
    ///
    /// # Errors
    /// When the drive cannot read all of them.
    pub fn read(&mut self, at: u64, bytes: usize) -> Result<[u64; 2], HostError> {
        self.buffer.resize(bytes + ALIGNED, 0);
        let begin = self.buffer.as_ptr().align_offset(ALIGNED);
        let room = &mut self.buffer[begin..begin + bytes];
        let clock = SystemClock;
        let started = clock.now_ns();
        let read = self.file.read_exact_at(room, at);
        let ended = clock.now_ns();
        read.map_err(|error| HostError::path("read", &self.path, error))?;
        Ok([started, ended])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said_by_name() {
        let error = ReadProbe::open(Path::new("/nonexistent/drive")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/drive"), "{error}");
    }
}
