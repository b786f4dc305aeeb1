//! Calls on files that several kinds of phase share.

use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;

use crate::content::{FileContent, UNIT};
use crate::outcome::{Op, OpError};
use crate::spec::Content;
use crate::worker_pool::{Halt, Worker, fault, refusal};
use stackrace_system::{file_system_kind, syncfs};

/// Bytes of one read or write of a small file's content; smaller files take one call.
pub(crate) const BUFFER_BYTES: usize = UNIT;

/// The content of the files below `root`.
///
/// # Errors
/// There is no memory; the error names `root`.
pub(crate) fn source(content: Content, seed: u64, root: &Path) -> Result<FileContent, OpError> {
    FileContent::new(content, seed)
        .map_err(|error| refusal(Op::Create, root, Errno::NOMEM, error.to_string()))
}

/// Writes the content of file number `file` with `write`, which returns the bytes it took. `short`
/// counts the calls that took fewer than given.
pub(crate) fn write_content(
    mut write: impl FnMut(&[u8]) -> Result<usize, Errno>,
    file: u64,
    size: u64,
    content: &mut FileContent,
    short: &mut u64,
) -> Result<(), Errno> {
    let mut offset = 0;
    while offset < size {
        // Content starts at multiples of 4096, so after a short write the piece begins before
        // `offset`.
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

/// Closes a file and returns the error: network file systems report a full disk only here.
pub(crate) fn close(fd: OwnedFd) -> Result<(), Errno> {
    let raw = fd.into_raw_fd();
    // SAFETY: `raw` came out of an `OwnedFd` on the line above, so that this function alone owns
    // it; it is open, and is not used or closed afterwards.
    unsafe { rustix::io::try_close(raw) }
}

/// The type `fstatfs` returns for FUSE (`FUSE_SUPER_MAGIC`).
pub(crate) const FUSE: u32 = 0x6573_5546;

/// Flushes the file system that holds `fd`, a directory at `path`, as one [`Op::Fsync`].
pub(crate) fn flush(worker: &mut Worker<'_>, fd: &OwnedFd, path: &Path) -> Result<(), Halt> {
    let done = worker.time(Op::Fsync, || {
        syncfs(fd)?;
        // FUSE does not pass syncfs on to its server, but it passes fsync on.
        if file_system_kind(fd)? == FUSE {
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
    fn short_writes_do_not_change_the_content() {
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
