//! One step of a replay: a call with its arguments, and the time around it.

use crate::outcome::Op;

/// What a call works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// What a name leads to, by its place in the list of names.
    Name(u32),
    /// The same name itself, where it is a link.
    Link(u32),
    /// An open file, by its number.
    File(u32),
}

/// A call of the system, with the arguments that it had. Offsets and lengths are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the arguments are those of the calls' manual pages"
)]
pub enum ReplayCall {
    /// No call: processor time, waits and order alone.
    Nothing,
    /// `openat`; number 0 of the file: it was not opened when recorded.
    Open {
        name: u32,
        flags: u32,
        mode: u32,
        file: u32,
    },
    /// `close`. It closes only as the last use of a file: others were shared between processes.
    Close { file: u32 },
    /// `read`, at the position of the file
    Read { file: u32, length: u64 },
    /// `pread`
    ReadAt { file: u32, offset: u64, length: u64 },
    /// `write`, at the position of the file or at its end
    Write { file: u32, length: u64 },
    /// `pwrite`
    WriteAt { file: u32, offset: u64, length: u64 },
    /// `fsync` of data and attributes
    Fsync { file: u32 },
    /// `fdatasync` of data alone
    Fdatasync { file: u32 },
    /// `sync_file_range`
    SyncRange {
        file: u32,
        offset: u64,
        length: u64,
        flags: u32,
    },
    /// `syncfs`, also for `sync`: other file systems are not those that are compared.
    SyncAll,
    /// `lseek`
    Seek { file: u32, offset: i64, whence: u32 },
    /// `fstatat`, which follows no link
    Stat { on: On },
    /// `faccessat`
    Access { name: u32, mode: u32 },
    /// `readlinkat`
    ReadLink { name: u32 },
    /// `getdents64`
    List { file: u32, length: u64 },
    /// `getxattr` of an attribute of ours
    GetExtended { on: On },
    /// `statfs`
    StatFs,
    /// `posix_fadvise`
    Advise {
        file: u32,
        offset: u64,
        length: u64,
        advice: u32,
    },
    /// `mkdirat`
    MakeDir { name: u32, mode: u32 },
    /// `unlinkat` of a directory
    RemoveDir { name: u32 },
    /// `unlinkat`
    Unlink { name: u32 },
    /// `renameat2`
    Rename { name: u32, second: u32, flags: u32 },
    /// `linkat`
    Link { name: u32, second: u32 },
    /// `symlinkat`; `target` is a place in the list of names, too.
    SymLink { name: u32, target: u32 },
    /// `flock`, which never waits here: those that it waited for come before it.
    LockWhole { file: u32, operation: u32 },
    /// `fchmodat`
    Mode { on: On, mode: u32 },
    /// `fchownat`, to the owner that it has
    Owner { on: On },
    /// `utimensat`, to now
    Times { on: On },
    /// `setxattr` of an attribute of ours
    SetExtended { on: On, length: u64 },
    /// `ftruncate`
    Truncate { on: On, length: u64 },
    /// `fallocate`
    Allocate {
        file: u32,
        mode: u32,
        offset: u64,
        length: u64,
    },
    /// `mmap`; the pages are read at once, and the mapping ends.
    Map { file: u32, offset: u64, length: u64 },
}

impl ReplayCall {
    /// The kind that its time is counted as; `None` if no call is made.
    pub fn op(&self) -> Option<Op> {
        Some(match self {
            Self::Nothing => return None,
            Self::Open { .. } => Op::Open,
            Self::Close { .. } => Op::Close,
            Self::Read { .. } | Self::ReadAt { .. } => Op::Read,
            Self::Write { .. } | Self::WriteAt { .. } => Op::Write,
            Self::Fsync { .. } | Self::Fdatasync { .. } | Self::SyncRange { .. } => Op::Fsync,
            Self::SyncAll => Op::Fsync,
            Self::Seek { .. } | Self::Stat { .. } | Self::Access { .. } => Op::Stat,
            Self::ReadLink { .. } | Self::GetExtended { .. } => Op::Stat,
            Self::StatFs | Self::Advise { .. } | Self::LockWhole { .. } => Op::Stat,
            Self::List { .. } => Op::Readdir,
            Self::MakeDir { .. } => Op::Mkdir,
            Self::RemoveDir { .. } => Op::Rmdir,
            Self::Unlink { .. } => Op::Unlink,
            Self::Rename { .. } => Op::Rename,
            Self::Link { .. } | Self::SymLink { .. } => Op::Link,
            Self::Mode { .. } | Self::Owner { .. } | Self::Times { .. } => Op::Attribute,
            Self::SetExtended { .. } => Op::Attribute,
            Self::Truncate { .. } | Self::Allocate { .. } => Op::Resize,
            Self::Map { .. } => Op::Map,
        })
    }

    /// What a call is made on that takes an open file or a name.
    fn on(&self) -> Option<On> {
        match *self {
            Self::Stat { on }
            | Self::GetExtended { on }
            | Self::Mode { on, .. }
            | Self::Owner { on }
            | Self::Times { on }
            | Self::SetExtended { on, .. }
            | Self::Truncate { on, .. } => Some(on),
            _ => None,
        }
    }

    /// The open file that it uses or makes.
    pub(super) fn file(&self) -> Option<u32> {
        match *self {
            Self::Open { file, .. } => (file > 0).then_some(file),
            Self::Close { file }
            | Self::Read { file, .. }
            | Self::ReadAt { file, .. }
            | Self::Write { file, .. }
            | Self::WriteAt { file, .. }
            | Self::Fsync { file }
            | Self::Fdatasync { file }
            | Self::SyncRange { file, .. }
            | Self::Seek { file, .. }
            | Self::List { file, .. }
            | Self::Advise { file, .. }
            | Self::LockWhole { file, .. }
            | Self::Allocate { file, .. }
            | Self::Map { file, .. } => Some(file),
            _ => match self.on()? {
                On::File(file) => Some(file),
                On::Name(_) | On::Link(_) => None,
            },
        }
    }

    /// The name that it uses, the first of two.
    pub(super) fn name(&self) -> Option<u32> {
        match *self {
            Self::Open { name, .. }
            | Self::Access { name, .. }
            | Self::ReadLink { name }
            | Self::MakeDir { name, .. }
            | Self::RemoveDir { name }
            | Self::Unlink { name }
            | Self::Rename { name, .. }
            | Self::Link { name, .. }
            | Self::SymLink { name, .. } => Some(name),
            _ => match self.on()? {
                On::Name(name) | On::Link(name) => Some(name),
                On::File(_) => None,
            },
        }
    }

    /// Returns true if its name means a link itself, and not what it leads to.
    pub(super) fn is_still(&self) -> bool {
        matches!(self.on(), Some(On::Link(_)))
    }

    /// A result as it is compared: an error by its number; a success by its amount only where that is of the
    /// application's making, and not of the file system's.
    pub(super) fn agree(&self, recorded: i64, replayed: i64) -> bool {
        let amount = matches!(
            self,
            Self::Read { .. }
                | Self::ReadAt { .. }
                | Self::Write { .. }
                | Self::WriteAt { .. }
                | Self::Seek { .. }
        );
        match self {
            // The attribute is another one, so whether it is there says nothing.
            Self::GetExtended { .. } | Self::SetExtended { .. } => true,
            _ if amount || recorded < 0 || replayed < 0 => recorded == replayed,
            _ => true,
        }
    }
}

/// A step of a thread. Times are ns.
#[derive(Debug, Clone, Copy)]
pub struct ReplayStep {
    /// What it does.
    pub call: ReplayCall,
    /// Processor time before it.
    pub compute_ns: u64,
    /// Time that it sleeps then, for what was not recorded.
    pub sleep_ns: u64,
    /// When what it sleeps for arrives, counted from the start, in place of `sleep_ns`. Calls that follow are counted
    /// from then: a late one is not the storage's merit.
    pub arrives_ns: Option<u64>,
    /// Processor time after it has waited for others.
    pub after_ns: u64,
    /// Its recorded result: an error is below 0.
    pub result: i64,
}

impl ReplayStep {
    /// A call at once, with this result.
    pub fn of(call: ReplayCall, result: i64) -> Self {
        Self {
            call,
            compute_ns: 0,
            sleep_ns: 0,
            arrives_ns: None,
            after_ns: 0,
            result,
        }
    }
}
