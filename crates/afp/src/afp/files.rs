//! Implements the kernel's requests: inode numbers, attributes, errnos.

use super::codes;
use super::error::AfpError;
use super::nodes::{Catalog, CatalogNode, inode as inode_of, number};
use super::protocol::{CatalogPath, FileParameters, ParameterChange, Unix};
use super::volume::{AfpVolume, Fork};
use fuser::{Errno, FileAttr, FileHandle, FileType, INodeNo, RenameFlags, TimeOrNow};
use stackrace_base::time::{Clock, SystemClock};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The bits of a mode that can be set.
const PERMISSIONS: u32 = 0o7777;

/// The bits that say what kind of file it is, and the kind that is a symbolic link.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Longest target of a symbolic link, bytes.
const TARGET_MAX: usize = 4096;

/// Open files and directories, by the handle the kernel was given.
#[derive(Debug, Default)]
pub(super) struct OpenHandles {
    next: u64,
    pub(super) forks: HashMap<u64, Fork>,
    /// Directories, as they were when the reading began: what is removed meanwhile moves nothing.
    pub(super) lists: HashMap<u64, Arc<Vec<FileParameters>>>,
}

impl OpenHandles {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[derive(Debug)]
pub(super) struct AfpFiles {
    pub(super) volume: AfpVolume,
    pub(super) nodes: Mutex<Catalog>,
    pub(super) open: Mutex<OpenHandles>,
}

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The errno of a failure.
pub(super) fn errno(error: &AfpError) -> Errno {
    let AfpError::Refused(_, code) = error else {
        return Errno::EIO;
    };
    match *code {
        codes::ACCESS_DENIED | codes::OBJECT_LOCKED => Errno::EACCES,
        codes::DENY_CONFLICT | codes::FILE_BUSY => Errno::EBUSY,
        codes::DIRECTORY_NOT_EMPTY => Errno::ENOTEMPTY,
        codes::DISK_FULL => Errno::ENOSPC,
        codes::OBJECT_EXISTS => Errno::EEXIST,
        codes::OBJECT_NOT_FOUND | codes::DIRECTORY_NOT_FOUND => Errno::ENOENT,
        codes::CALL_NOT_SUPPORTED => Errno::EOPNOTSUPP,
        codes::OBJECT_TYPE => Errno::EISDIR,
        codes::TOO_MANY_FILES => Errno::ENFILE,
        codes::VOLUME_LOCKED => Errno::EROFS,
        _ => Errno::EIO,
    }
}

pub(super) type FuseResult<T> = Result<T, Errno>;

/// A name as the server takes it.
fn text(name: &OsStr) -> FuseResult<&str> {
    if name.len() > codes::NAME_MAX as usize {
        return Err(Errno::ENAMETOOLONG);
    }
    // AFP names are UTF-8; Linux names may be any bytes.
    name.to_str().ok_or(Errno::EILSEQ)
}

fn time(seconds: i64) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        UNIX_EPOCH - distance
    } else {
        UNIX_EPOCH + distance
    }
}

/// Whole seconds since 1970.
fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        // The protocol has whole seconds only: fractions are dropped.
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => {
            // A part of a second before 1970 belongs to the second that began earlier.
            let before = before.duration();
            let whole = before.as_secs() + u64::from(before.subsec_nanos() > 0);
            -i64::try_from(whole).unwrap_or(i64::MAX)
        }
    }
}

/// A file's attributes for the kernel. The protocol has no link counts and no blocks.
pub(super) fn attributes(about: &FileParameters) -> FileAttr {
    let modified = time(about.modified);
    FileAttr {
        ino: inode_of(about.id),
        size: about.length,
        // st_blocks counts in 512 bytes, whatever the block size.
        blocks: about.length.div_ceil(512),
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind: kind(about),
        perm: u16::try_from(about.unix.mode & PERMISSIONS).unwrap_or(0),
        // Some programs take 0 for a deleted file.
        nlink: 1,
        uid: about.unix.uid,
        gid: about.unix.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

pub(super) fn kind(about: &FileParameters) -> FileType {
    if about.is_directory {
        FileType::Directory
    } else if about.unix.mode & KIND == LINK {
        FileType::Symlink
    } else {
        FileType::RegularFile
    }
}

impl AfpFiles {
    pub(super) fn new(volume: AfpVolume) -> Self {
        Self {
            volume,
            nodes: Mutex::default(),
            open: Mutex::default(),
        }
    }

    pub(super) fn node(&self, inode: INodeNo) -> FuseResult<(u32, CatalogNode)> {
        let id = number(inode);
        let node = held(&self.nodes).get(id).ok_or(Errno::ESTALE)?;
        Ok((id, node))
    }

    pub(super) fn fork(&self, handle: FileHandle) -> FuseResult<Fork> {
        let open = held(&self.open);
        open.forks.get(&handle.0).copied().ok_or(Errno::EBADF)
    }

    pub(super) fn keep(&self, fork: Fork) -> FileHandle {
        let mut open = held(&self.open);
        let number = open.number();
        open.forks.insert(number, fork);
        FileHandle(number)
    }

    /// Registers an entry that the kernel may now ask for by its number.
    fn tell(&self, at: CatalogPath<'_>, about: &FileParameters) -> FileAttr {
        held(&self.nodes).tell(at, about);
        attributes(about)
    }

    pub(super) fn found(&self, parent: INodeNo, name: &OsStr) -> FuseResult<FileAttr> {
        let at = CatalogPath {
            directory: number(parent),
            name: text(name)?,
        };
        let about = self.volume.parameters(at).map_err(|e| errno(&e))?;
        Ok(self.tell(at, &about))
    }

    pub(super) fn described(&self, inode: INodeNo) -> FuseResult<FileAttr> {
        let (id, node) = self.node(inode)?;
        let about = self.volume.parameters(node.at(id)).map_err(|e| errno(&e))?;
        let mut attributes = attributes(&about);
        // The kernel asked for this number, whatever the server's database has made of it since.
        attributes.ino = inode;
        Ok(attributes)
    }

    /// Sets the mode if the server chose another one. Returns the new attributes.
    fn with_mode(
        &self,
        at: CatalogPath<'_>,
        mut about: FileParameters,
        mode: u32,
    ) -> FuseResult<FileParameters> {
        let mode = mode & PERMISSIONS;
        if about.unix.mode & PERMISSIONS != mode {
            let unix = Unix {
                mode: about.unix.mode & !PERMISSIONS | mode,
                ..about.unix
            };
            let change = ParameterChange {
                unix: Some(unix),
                ..ParameterChange::default()
            };
            self.volume.set(at, change).map_err(|e| errno(&e))?;
            about.unix = unix;
        }
        Ok(about)
    }

    pub(super) fn created(
        &self,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> FuseResult<(FileAttr, FileHandle)> {
        let at = CatalogPath {
            directory: number(parent),
            name: text(name)?,
        };
        self.volume.create_file(at).map_err(|e| errno(&e))?;
        // The open reply also describes the file, which saves a request.
        let (fork, about) = self.volume.open_fork(at, true).map_err(|e| errno(&e))?;
        let handle = self.keep(fork);
        let about = self.with_mode(at, about, mode)?;
        Ok((self.tell(at, &about), handle))
    }

    pub(super) fn made(&self, parent: INodeNo, name: &OsStr, mode: u32) -> FuseResult<FileAttr> {
        let at = CatalogPath {
            directory: number(parent),
            name: text(name)?,
        };
        self.volume.create_directory(at).map_err(|e| errno(&e))?;
        let about = self.volume.parameters(at).map_err(|e| errno(&e))?;
        let about = self.with_mode(at, about, mode)?;
        Ok(self.tell(at, &about))
    }

    /// Creates a file with the target as content and turns it into a link.
    pub(super) fn linked(
        &self,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
    ) -> FuseResult<FileAttr> {
        let at = CatalogPath {
            directory: number(parent),
            name: text(name)?,
        };
        let change = ParameterChange {
            link: true,
            ..ParameterChange::default()
        };
        let written = self.volume.create_file(at).and_then(|()| {
            let (fork, _) = self.volume.open_fork(at, true)?;
            let written = self.volume.write(fork, 0, target.as_os_str().as_bytes());
            self.volume.close_fork(fork)?;
            written?;
            self.volume.set(at, change)?;
            self.volume.parameters(at)
        });
        Ok(self.tell(at, &written.map_err(|e| errno(&e))?))
    }

    pub(super) fn target(&self, inode: INodeNo) -> FuseResult<Vec<u8>> {
        let (id, node) = self.node(inode)?;
        let read = self
            .volume
            .open_fork(node.at(id), false)
            .and_then(|(fork, _)| {
                let read = self.volume.read(fork, 0, TARGET_MAX);
                self.volume.close_fork(fork)?;
                read
            });
        read.map_err(|e| errno(&e))
    }

    pub(super) fn removed(&self, parent: INodeNo, name: &OsStr) -> FuseResult<()> {
        let at = CatalogPath {
            directory: number(parent),
            name: text(name)?,
        };
        self.deleted(at)
    }

    fn deleted(&self, at: CatalogPath<'_>) -> FuseResult<()> {
        once_closed(|| self.volume.delete(at)).map_err(|e| errno(&e))
    }

    pub(super) fn renamed(
        &self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> FuseResult<()> {
        // The protocol cannot swap two names in one step.
        if flags.intersects(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_WHITEOUT) {
            return Err(Errno::EINVAL);
        }
        let from = CatalogPath {
            directory: number(from.0),
            name: text(from.1)?,
        };
        let to = CatalogPath {
            directory: number(to.0),
            name: text(to.1)?,
        };
        let mut renamed = self.volume.rename(from, to);
        if let Err(AfpError::Refused(_, codes::OBJECT_EXISTS)) = renamed
            && !flags.contains(RenameFlags::RENAME_NOREPLACE)
        {
            // Not atomic, unlike rename(2), but the protocol refuses to replace a file.
            self.deleted(to)?;
            renamed = self.volume.rename(from, to);
        }
        renamed.map_err(|e| errno(&e))?;
        held(&self.nodes).moved(from, to);
        Ok(())
    }

    pub(super) fn truncated(
        &self,
        inode: INodeNo,
        handle: Option<FileHandle>,
        length: u64,
    ) -> FuseResult<()> {
        if let Some(handle) = handle {
            let truncated = self.volume.truncate(self.fork(handle)?, length);
            return truncated.map_err(|e| errno(&e));
        }
        let (id, node) = self.node(inode)?;
        let truncated = self
            .volume
            .open_fork(node.at(id), true)
            .and_then(|(fork, _)| {
                let truncated = self.volume.truncate(fork, length);
                self.volume.close_fork(fork)?;
                truncated
            });
        truncated.map_err(|e| errno(&e))
    }

    pub(super) fn changed(
        &self,
        inode: INodeNo,
        owner: [Option<u32>; 2],
        mode: Option<u32>,
        modified: Option<TimeOrNow>,
    ) -> FuseResult<()> {
        let [uid, gid] = owner;
        let (id, node) = self.node(inode)?;
        let at = node.at(id);
        let mut change = ParameterChange::default();
        if uid.is_some() || gid.is_some() || mode.is_some() {
            let now = self.volume.parameters(at).map_err(|e| errno(&e))?.unix;
            let mode = mode.map_or(now.mode, |mode| {
                now.mode & !PERMISSIONS | mode & PERMISSIONS
            });
            change.unix = Some(Unix {
                uid: uid.unwrap_or(now.uid),
                gid: gid.unwrap_or(now.gid),
                mode,
            });
        }
        // The protocol has no access time, so only the modification time is set.
        change.modified = modified.map(|time| match time {
            TimeOrNow::SpecificTime(time) => seconds(time),
            TimeOrNow::Now => now(),
        });
        // A request without changes would be an error of the protocol.
        if change == ParameterChange::default() {
            return Ok(());
        }
        self.volume.set(at, change).map_err(|e| errno(&e))?;
        if (uid.is_some() || gid.is_some()) && !self.is_owned(at, change.unix) {
            // The server reports success for a change of owner that it did not make.
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    fn is_owned(&self, at: CatalogPath<'_>, asked: Option<Unix>) -> bool {
        let about = self.volume.parameters(at);
        about.is_ok_and(|about| {
            asked.is_some_and(|asked| (about.unix.uid, about.unix.gid) == (asked.uid, asked.gid))
        })
    }

    /// The entries of a directory, with itself and its parent.
    pub(super) fn entries(
        &self,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
    ) -> FuseResult<Entries> {
        let (id, node) = self.node(inode)?;
        let kept = held(&self.open).lists.get(&handle.0).cloned();
        let list = match kept {
            // At offset 0 a program reads the directory anew (rewinddir), so the list is fetched
            // again.
            Some(list) if offset > 0 => list,
            _ => {
                let list = Arc::new(self.volume.list(id).map_err(|e| errno(&e))?);
                held(&self.open).lists.insert(handle.0, Arc::clone(&list));
                list
            }
        };
        Ok(Entries {
            id,
            parent: node.parent,
            list,
        })
    }
}

/// Number of attempts at what the server says is open, and the pause between them.
const CLOSING_TRIES: usize = 100;
const CLOSING_PAUSE: Duration = Duration::from_millis(5);

/// Retries for a moment what the server refuses because the file is open: the kernel does not wait
/// until a file closed by a program is closed at the server.
fn once_closed(ask: impl Fn() -> Result<(), AfpError>) -> Result<(), AfpError> {
    for _ in 1..CLOSING_TRIES {
        match ask() {
            Err(AfpError::Refused(_, codes::FILE_BUSY | codes::DENY_CONFLICT)) => {
                SystemClock.sleep(CLOSING_PAUSE);
            }
            done => return done,
        }
    }
    ask()
}

/// Seconds since 1970.
fn now() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec
}

/// The entries that are read from a directory.
pub(super) struct Entries {
    pub(super) id: u32,
    parent: u32,
    list: Arc<Vec<FileParameters>>,
}

/// Names of the first entries of every directory: itself, and the one it is in.
const DOTS: [&str; 2] = [".", ".."];

impl Entries {
    /// The entries from an offset on, each with the offset after it.
    pub(super) fn from(&self, offset: u64) -> impl Iterator<Item = (u64, &FileParameters)> {
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let entries = self.list.iter().zip(DOTS.len() as u64 + 1..);
        entries
            .map(|(entry, next)| (next, entry))
            .skip(skipped.saturating_sub(DOTS.len()))
    }

    /// The ones of the first two that an offset leaves: name, number, the offset after it.
    pub(super) fn dots(&self, offset: u64) -> impl Iterator<Item = (&'static str, u32, u64)> {
        let ids = [self.id, self.parent];
        let dots = DOTS.into_iter().zip(ids).zip(1..);
        dots.map(|((name, id), next)| (name, id, next))
            .filter(move |(_, _, next)| *next > offset)
    }
}

/// The attributes given for `.` and `..`, as the kernel does not keep theirs.
pub(super) fn dot(id: u32) -> FileParameters {
    FileParameters {
        id,
        is_directory: true,
        modified: 0,
        length: 0,
        unix: Unix {
            uid: 0,
            gid: 0,
            mode: 0o755,
        },
        name: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes::ROOT;
    use super::*;

    #[test]
    fn what_is_just_being_closed_is_tried_again_and_nothing_else() {
        let tries = std::cell::Cell::new(0);
        let refused_until = |code, until| {
            tries.set(0);
            once_closed(|| {
                tries.set(tries.get() + 1);
                match tries.get() < until {
                    true => Err(AfpError::Refused(codes::AfpCommand::Delete, code)),
                    false => Ok(()),
                }
            })
        };
        assert_eq!(refused_until(codes::FILE_BUSY, 3), Ok(()));
        assert_eq!(tries.get(), 3);
        let missing = refused_until(codes::OBJECT_NOT_FOUND, 3);
        assert!(missing.is_err() && tries.get() == 1);
        let open = refused_until(codes::DENY_CONFLICT, usize::MAX);
        assert!(open.is_err() && tries.get() == CLOSING_TRIES);
    }

    #[test]
    fn times_are_whole_seconds_on_both_sides_of_1970() {
        for seconds_since in [-5, 0, 1_400_000_000] {
            assert_eq!(seconds(time(seconds_since)), seconds_since);
        }
        assert_eq!(seconds(UNIX_EPOCH - Duration::from_millis(1)), -1);
        assert_eq!(seconds(UNIX_EPOCH + Duration::from_millis(1999)), 1);
    }

    #[test]
    fn a_directory_is_read_from_any_offset() {
        let entry = |id: u32| FileParameters {
            name: id.to_string(),
            ..dot(id)
        };
        let entries = Entries {
            id: 17,
            parent: ROOT,
            list: Arc::new(vec![entry(20), entry(21)]),
        };
        let read = |offset| {
            let dots = entries.dots(offset).map(|(name, _, next)| (name, next));
            let dots: Vec<(&str, u64)> = dots.collect();
            let rest = entries
                .from(offset)
                .map(|(next, e)| (e.name.as_str(), next));
            [dots, rest.collect()].concat()
        };
        let all = [(".", 1), ("..", 2), ("20", 3), ("21", 4)];
        for offset in 0..=4 {
            assert_eq!(read(offset), all[usize::try_from(offset).unwrap()..]);
        }
    }
}
