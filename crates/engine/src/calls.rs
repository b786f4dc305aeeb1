//! Calls on files that more than one kind of phase makes.

use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use crate::content::{FileContent, UNIT};
use crate::outcome::{Op, OpError};
use crate::spec::Content;
use crate::worker_pool::{Halt, Worker, fault, refusal};

/// Bytes of one read or write of a small file's content; smaller files take one call.
pub(crate) const BUFFER_BYTES: usize = UNIT;

/// A source of what files below `root` are filled with.
///
/// # Errors
/// There is no memory for it; `root` is named.
pub(crate) fn source(content: Content, seed: u64, root: &Path) -> Result<FileContent, OpError> {
    FileContent::new(content, seed)
        .map_err(|error| refusal(Op::Create, root, Errno::NOMEM, error.to_string()))
}

/// Writes the content of file number `file` by `write`, which returns how many bytes it took,
/// counting the calls that took fewer than they were given.
pub(crate) fn write_content(
    mut write: impl FnMut(&[u8]) -> Result<usize, Errno>,
    file: u64,
    size: u64,
    content: &mut FileContent,
    short: &mut u64,
) -> Result<(), Errno> {
    let mut offset = 0;
    while offset < size {
        // After a short write the content goes on from the beginning of the block it ended in.
        let within = (offset % 4096) as usize;
        let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
        let part = content.piece(file, offset - within as u64, left.saturating_add(within));
        let part = &part[within..];
        let written = write(part)?;
        *short += u64::from(written < part.len());
        offset += written as u64;
    }
    Ok(())
}

/// Closes a file and says whether that went well: network file systems report a full disk here.
pub(crate) fn close(fd: OwnedFd) -> Result<(), Errno> {
    let raw = fd.into_raw_fd();
    // SAFETY: `raw` came out of an `OwnedFd` on the line above, so that this function alone owns
    // it; it is open, and nobody uses or closes it afterwards.
    unsafe { rustix::io::try_close(raw) }
}

/// What `fstatfs` calls a file system in user space.
const FUSE: u32 = 0x6573_5546;

/// Flushes the file system that holds `fd`, a directory at `path`, as one [`Op::Fsync`].
pub(crate) fn flush(worker: &mut Worker<'_>, fd: &OwnedFd, path: &Path) -> Result<(), Halt> {
    let done = worker.time(Op::Fsync, || {
        rustix::fs::syncfs(fd)?;
        // The program behind such a file system never hears of a syncfs, but of an fsync.
        if rustix::fs::fstatfs(fd)?.f_type == FUSE.into() {
            rustix::fs::fsync(fd)?;
        }
        Ok(0)
    });
    done.map(drop)
        .map_err(|errno| fault(Op::Fsync, path, errno).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_the_same_however_short_the_writes_are() {
        let mut content = FileContent::new(Content::Random, 3).unwrap();
        let mut written = |limit: usize| {
            let (mut all, mut calls, mut short) = (Vec::new(), 0, 0);
            let write = |part: &[u8]| {
                let taken = part.len().min(limit);
                all.extend_from_slice(&part[..taken]);
                calls += 1;
                Ok(taken)
            };
            write_content(write, 9, 500_001, &mut content, &mut short).unwrap();
            (all, calls, short)
        };
        let (whole, calls, short) = written(usize::MAX);
        assert_eq!((whole.len(), calls, short), (500_001, 4, 0));
        for limit in [777, 4096, 100_000] {
            let (same, calls, short) = written(limit);
            assert!(same == whole, "{limit}");
            assert!(short > 0 && short < calls, "{limit}: {short} of {calls}");
        }
    }
}
