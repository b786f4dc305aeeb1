//! How data gets from one file to another, and the copy of one large file.
//!
//! If the requested method is not available, the copy fails; there is no silent fallback. A copy
//! that shares extents and a copy that moves data are not the same measurement.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fsync, openat};
use rustix::io::{Errno, read, write};

use crate::calls::close;
use crate::control::Control;
use crate::files::AtEnd;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, PhaseOptions, Worker, alone, fault, refusal};
use stackrace_system::{Statx, StatxFlags, kind_of, permissions, statx_open};

/// Bytes of a buffer of the classic method as `cp` had it before it copied in the kernel.
pub const COPY_BUFFER_BYTES: u32 = 128 << 10;
/// Bytes `rsync` reads and writes at once.
pub const RSYNC_BUFFER_BYTES: u32 = 256 << 10;
/// Bytes the kernel is asked to copy at once: few enough to stop soon.
pub(super) const KERNEL_BYTES: usize = 8 << 20;
/// A method of getting data from one file to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyMethod {
    /// `read` into a buffer, `write` from it.
    Classic {
        /// Bytes of the buffer, at least 1; [`COPY_BUFFER_BYTES`] is usual.
        buffer_bytes: u32,
    },
    /// `copy_file_range`, 8 MiB at a time. The file system may share extents instead of moving
    /// data, and does not say which it did.
    InKernel,
    /// `FICLONE`: share the data, copy nothing.
    Reflink,
}

impl CopyMethod {
    pub(super) fn why(self) -> String {
        match self {
            CopyMethod::Classic { buffer_bytes } => {
                format!("copied by read and write with a buffer of {buffer_bytes} bytes")
            }
            CopyMethod::InKernel => "copied by copy_file_range, 8 MiB at a time; the file system \
                may have shared extents instead of moving data"
                .to_owned(),
            CopyMethod::Reflink => "shared by FICLONE; no data was moved".to_owned(),
        }
    }

    pub(super) fn buffer(self, to: &Path) -> Result<Vec<u8>, OpError> {
        match self {
            CopyMethod::Classic { buffer_bytes: 0 } => Err(refusal(
                Op::Copy,
                to,
                Errno::INVAL,
                "the copy buffer is empty",
            )),
            CopyMethod::Classic { buffer_bytes } => Ok(vec![0; buffer_bytes as usize]),
            CopyMethod::InKernel | CopyMethod::Reflink if !stackrace_system::FLUSHES_AND_COPIES => {
                let what =
                    stackrace_system::lacking("a copy by the kernel (copy_file_range, FICLONE)");
                let detail = format!("{what}; use method = \"classic\"");
                Err(refusal(Op::Copy, to, Errno::OPNOTSUPP, detail))
            }
            CopyMethod::InKernel | CopyMethod::Reflink => Ok(Vec::new()),
        }
    }
}

pub(super) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
pub(super) const MAKE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC);

pub(super) fn about(fd: &OwnedFd) -> Result<Statx, Errno> {
    statx_open(fd, StatxFlags::BASIC_STATS)
}

pub(super) fn mode(about: &Statx) -> Mode {
    permissions(u32::from(about.stx_mode))
}

/// Copies one file to a name that is not taken.
///
/// The classic method records each [`Op::Read`] and [`Op::Write`], the others each request to the
/// kernel as one [`Op::Copy`]. The elapsed time covers copying, `fsync` if asked for, and close;
/// both files are opened before. A copy that failed or was stopped stays in place.
///
/// # Errors
/// Nothing was measured: `from` cannot be opened, is a symbolic link or not a regular file, or
/// `to` exists or cannot be made. A method the file system refuses is a failing operation, found
/// in [`PhaseOutcome::error`].
pub fn copy_file(
    from: &Path,
    to: &Path,
    method: CopyMethod,
    at_end: AtEnd,
    slice_ns: u64,
    control: &Control,
) -> Result<PhaseOutcome, OpError> {
    let source = openat(CWD, from, READ, Mode::empty()).map_err(|e| fault(Op::Open, from, e))?;
    let known = about(&source).map_err(|errno| fault(Op::Stat, from, errno))?;
    if kind_of(u32::from(known.stx_mode)) != FileType::RegularFile {
        return Err(refusal(
            Op::Open,
            from,
            Errno::INVAL,
            "is not a regular file",
        ));
    }
    let mut buffer = method.buffer(to)?;
    // Before the clock: creating the file is not part of the copy.
    let target = openat(CWD, to, MAKE, mode(&known)).map_err(|e| fault(Op::Create, to, e))?;
    let ops: &[Op] = match method {
        CopyMethod::Classic { .. } => &[Op::Read, Op::Write, Op::Fsync],
        CopyMethod::InKernel | CopyMethod::Reflink => &[Op::Copy, Op::Fsync],
    };
    Ok(alone(
        PhaseOptions {
            slice_ns,
            control,
            ops,
        },
        method.why(),
        |worker| {
            let ends = FilePair {
                source: (&source, from),
                target: (&target, to),
            };
            match method {
                CopyMethod::Classic { .. } => ends.classic(&mut buffer, worker)?,
                CopyMethod::InKernel => ends.in_kernel(known.stx_size, worker)?,
                CopyMethod::Reflink => {
                    worker
                        .time(Op::Copy, || {
                            stackrace_system::ioctl_ficlone(&target, &source)
                                .map(|()| known.stx_size)
                        })
                        .map_err(|errno| fault(Op::Copy, to, errno))?;
                }
            }
            if at_end == AtEnd::Durable {
                worker
                    .time(Op::Fsync, || fsync(&target).map(|()| 0))
                    .map_err(|errno| fault(Op::Fsync, to, errno))?;
            }
            // Part of the copy: some file systems write back only here (NFS).
            close(target).map_err(|errno| fault(Op::Write, to, errno).into())
        },
    ))
}

/// The two files of a copy that records each of its calls.
struct FilePair<'a> {
    source: (&'a OwnedFd, &'a Path),
    target: (&'a OwnedFd, &'a Path),
}

impl FilePair<'_> {
    fn classic(&self, buffer: &mut [u8], worker: &mut Worker<'_>) -> Result<(), Halt> {
        let mut offset = 0;
        loop {
            worker.proceed()?;
            let got = worker.time(Op::Read, || {
                read(self.source.0, &mut *buffer).map(|n| n as u64)
            });
            let got = got.map_err(|errno| at(Op::Read, self.source.1, offset, errno))? as usize;
            if got == 0 {
                return Ok(());
            }
            let mut done = 0;
            while done < got {
                let rest = &buffer[done..got];
                let put = worker.time(Op::Write, || write(self.target.0, rest).map(|n| n as u64));
                let put = put.map_err(|errno| at(Op::Write, self.target.1, offset, errno))?;
                if (put as usize) < rest.len() {
                    worker.count_short();
                }
                done += put as usize;
                offset += put;
            }
        }
    }

    fn in_kernel(&self, size: u64, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let mut offset = 0;
        while offset < size {
            worker.proceed()?;
            let copied = worker.time(Op::Copy, || {
                // Without offsets, the positions of both files move on by themselves.
                let copied = stackrace_system::copy_file_range(
                    self.source.0,
                    None,
                    self.target.0,
                    None,
                    KERNEL_BYTES,
                );
                copied.map(|bytes| bytes as u64)
            });
            match copied.map_err(|errno| at(Op::Copy, self.target.1, offset, errno))? {
                0 => return Err(cut(self.source.1, offset, size).into()),
                copied => offset += copied,
            }
        }
        Ok(())
    }
}

pub(super) fn at(op: Op, path: &Path, offset: u64, errno: Errno) -> OpError {
    OpError {
        offset: Some(offset),
        ..fault(op, path, errno)
    }
}

pub(super) fn cut(path: &Path, copied: u64, size: u64) -> OpError {
    let detail = format!("the kernel copied {copied} of {size} bytes and found no more");
    refusal(Op::Copy, path, Errno::IO, detail)
}
