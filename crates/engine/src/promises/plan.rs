//! What a phase of promised operations is to do.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::content::SECTOR;
use crate::outcome::{Op, OpError};
use crate::worker_pool::{fault, refusal};

/// Largest operation, bytes: content is made before the clock starts, in one buffer.
pub const OPERATION_BYTES_MAX: u32 = 1 << 20;
/// Most operations of a phase: each leaves a line in a ledger that is held in memory.
pub const OPERATIONS_MAX: u64 = 1_000_000;

/// Purpose of the draws of operations, besides the seed and the thread.
pub(super) const DRAWS: u64 = 0x7072_6f6d_0000_0000;

/// A pattern of calls by which programs ask for durability, step by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idiom {
    /// Writes over a part of a file, `fsync`.
    OverwriteFsync,
    /// The same in a file opened with `O_DSYNC`, without a call to sync.
    OverwriteDsync,
    /// Appends to a file, `fdatasync`.
    AppendFdatasync,
    /// Appends to a file, and does nothing else.
    AppendPlain,
    /// Makes a new file, calls `fsync` on it, `rename` to put it over the old one, `fsync` on the
    /// directory.
    Replace,
    /// The same without the `fsync` of the directory.
    ReplaceNoDirectorySync,
    /// Makes a new file, calls `fsync` on it and on its directory.
    Create,
    /// The same without the `fsync` of the directory.
    CreateNoDirectorySync,
    /// A mail queue: make a file in one directory, `fsync` it, `rename` it to another, `fsync` both
    /// directories; deliver the oldest message (remove it) when the queue is full.
    MailQueue,
    /// A transaction of a database: see [`PromisesPlan::run_transactions`].
    Database,
}

impl Idiom {
    /// The operation that is acknowledged with a promise; removals of a mail queue come beside it.
    pub fn op(self) -> Op {
        match self {
            Idiom::OverwriteFsync | Idiom::OverwriteDsync | Idiom::Database => Op::Write,
            Idiom::AppendFdatasync | Idiom::AppendPlain => Op::Append,
            Idiom::Replace | Idiom::ReplaceNoDirectorySync => Op::Rename,
            Idiom::Create | Idiom::CreateNoDirectorySync | Idiom::MailQueue => Op::Create,
        }
    }
}

/// A phase of promised operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromisesPlan {
    /// The directory that everything is made in; it must exist.
    pub root: PathBuf,
    /// Pattern of calls that asks for durability.
    pub idiom: Idiom,
    /// Operations over all threads, 1 … [`OPERATIONS_MAX`]; removals are not counted.
    pub operations: u64,
    /// Threads, at least 1.
    pub threads: u32,
    /// Bytes of one operation: whole sectors of 512, at most [`OPERATION_BYTES_MAX`].
    pub bytes: u32,
    /// Blocks or files that each thread works on; messages in its mail queue.
    pub objects: u32,
    /// Files laid out beside them that nothing touches.
    pub at_rest: u32,
    /// Pause of a thread before each operation, ns.
    pub think_time_ns: u64,
    /// Everything random follows from it.
    pub seed: u64,
}

impl PromisesPlan {
    /// Operations of one thread.
    pub(super) fn share(&self, thread: u32) -> u64 {
        let threads = u64::from(self.threads);
        self.operations / threads + u64::from(u64::from(thread) < self.operations % threads)
    }

    pub(super) fn refused(&self, detail: impl Into<String>) -> OpError {
        refusal(self.idiom.op(), &self.root, Errno::INVAL, detail)
    }

    pub(super) fn check(&self) -> Result<(), OpError> {
        let sectors = (self.bytes as usize).is_multiple_of(SECTOR);
        if self.bytes == 0 || !sectors || self.bytes > OPERATION_BYTES_MAX {
            return Err(self.refused(format!(
                "operations of {} bytes: give whole sectors of 512, at most 1 MiB",
                self.bytes
            )));
        }
        if self.operations == 0 || self.operations > OPERATIONS_MAX {
            return Err(self.refused(format!(
                "{} operations: must be 1 to {OPERATIONS_MAX}",
                self.operations
            )));
        }
        if self.threads == 0 || self.objects == 0 {
            return Err(self.refused("threads and objects must be at least 1"));
        }
        Ok(())
    }

    /// A directory below the root.
    pub(super) fn directory(&self, name: &str) -> Result<OwnedFd, OpError> {
        let path = self.root.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, &path, flags, Mode::empty())
            .map_err(|errno| fault(self.idiom.op(), &path, errno))
    }
}
