//! Buffered files as in the C library, for the same sequence of system calls.
//!
//! A new file has no buffer. The first transfer asks for the preferred block size (`fstat`), at
//! most 8 KiB, and makes a buffer of that size. A write fills the buffer, which is flushed when
//! more follows; whole blocks bypass it. A read fills the whole buffer; whole blocks bypass it too.
//! Observed with glibc 2.36.

use std::ffi::{CStr, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

/// Largest buffer the C library chooses (`BUFSIZ`), bytes.
pub(super) const BUFFER_BYTES_MAX: usize = 8192;

/// The buffer of the one file that is open.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
}

impl Buffer {
    pub(super) fn new() -> Buffer {
        let bytes = vec![0; BUFFER_BYTES_MAX].into();
        Buffer { bytes }
    }

    /// A stream on a file just opened. What an earlier file left in the buffer is forgotten.
    pub(super) fn on<'a>(&'a mut self, fd: BorrowedFd<'a>) -> BufferedFile<'a> {
        BufferedFile {
            fd,
            bytes: &mut self.bytes,
            size: 0,
            begin: 0,
            end: 0,
            short: 0,
        }
    }
}

/// One open file, either written or read.
#[derive(Debug)]
pub(super) struct BufferedFile<'a> {
    fd: BorrowedFd<'a>,
    bytes: &'a mut [u8],
    /// Bytes of the buffer in use; 0 before the first transfer.
    size: usize,
    /// Bytes of it that were given out (reading).
    begin: usize,
    /// Bytes of it that hold something.
    end: usize,
    /// Writes that took less than they were given.
    pub(super) short: u64,
}

impl BufferedFile<'_> {
    fn size(&mut self) -> Result<usize, Errno> {
        if self.size == 0 {
            // As glibc does at the first transfer: the file's preferred size, if it is below
            // `BUFSIZ`.
            let preferred = usize::try_from(rustix::fs::fstat(self.fd)?.st_blksize);
            self.size = match preferred {
                Ok(bytes) if (1..BUFFER_BYTES_MAX).contains(&bytes) => bytes,
                _ => BUFFER_BYTES_MAX,
            };
        }
        Ok(self.size)
    }

    /// Writes as `fwrite` does: into the buffer, and to the file once that is full.
    pub(super) fn write(&mut self, data: &[u8]) -> Result<(), Errno> {
        let data = self.put(data);
        if data.is_empty() {
            return Ok(());
        }
        let size = self.size()?;
        self.flush()?;
        // Whole buffers go past the buffer, as in glibc's `fwrite`.
        let (whole, rest) = data.split_at(data.len() - data.len() % size);
        if !whole.is_empty() {
            write_all(self.fd, whole, &mut self.short)?;
        }
        self.put(rest);
        Ok(())
    }

    /// Puts as much into the buffer as it takes; the rest comes back.
    fn put<'d>(&mut self, data: &'d [u8]) -> &'d [u8] {
        let (now, rest) = data.split_at(data.len().min(self.size - self.end));
        self.bytes[self.end..self.end + now.len()].copy_from_slice(now);
        self.end += now.len();
        rest
    }

    /// Writes what the buffer holds: what `fclose` does before it closes.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        let held = std::mem::take(&mut self.end);
        if held > 0 {
            write_all(self.fd, &self.bytes[..held], &mut self.short)?;
        }
        Ok(())
    }

    /// `fread`: how many bytes there were, fewer only at the end of the file.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let wanted = into.len();
        let mut done = 0;
        while done < wanted {
            let size = self.size()?;
            let left = wanted - done;
            if self.begin < self.end {
                let taken = left.min(self.end - self.begin);
                into[done..done + taken]
                    .copy_from_slice(&self.bytes[self.begin..self.begin + taken]);
                self.begin += taken;
                done += taken;
                continue;
            }
            // What is at least a buffer long is read past it, as in glibc's `fread`.
            let got = if left < size {
                let got = rustix::io::read(self.fd, &mut self.bytes[..size])?;
                (self.begin, self.end) = (0, got);
                got
            } else {
                let got = rustix::io::read(self.fd, &mut into[done..wanted - left % size])?;
                done += got;
                got
            };
            if got == 0 {
                break;
            }
        }
        Ok(done)
    }
}

/// Writes everything. Zero bytes still make one call, as in the original.
pub(super) fn write_all(fd: BorrowedFd<'_>, mut data: &[u8], short: &mut u64) -> Result<(), Errno> {
    loop {
        let written = rustix::io::write(fd, data)?;
        data = &data[written..];
        if data.is_empty() {
            return Ok(());
        }
        *short += 1;
    }
}

/// A name of a file, for an error.
pub(super) fn shown(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsFd;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the blocks, what is read is what was written.
        #[test]
        fn blocks_of_any_size_come_back(
            writes in prop::collection::vec(0usize..20_000, 0..12),
            reads in prop::collection::vec(1usize..20_000, 1..12),
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut buffer = Buffer::new();
            let total: usize = writes.iter().sum();
            let data: Vec<u8> = (0..total).map(|at| (at % 251) as u8).collect();
            let mut stream = buffer.on(file.as_fd());
            let mut at = 0;
            for bytes in writes {
                stream.write(&data[at..at + bytes]).unwrap();
                at += bytes;
            }
            stream.flush().unwrap();
            file.seek(SeekFrom::Start(0)).unwrap();
            let mut stream = buffer.on(file.as_fd());
            let mut back = Vec::new();
            for bytes in reads.iter().cycle() {
                let mut block = vec![0; *bytes];
                let got = stream.read(&mut block).unwrap();
                back.extend_from_slice(&block[..got]);
                if got < *bytes {
                    break;
                }
            }
            prop_assert_eq!(back, data);
        }
    }
}
