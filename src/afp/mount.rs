//! A volume as a file system, through FUSE.

use super::nodes::{Nodes, inode as inode_of, number};
use super::protocol::{self, At, Change, Parameters, Unix};
use super::volume::{Fork, Volume};
use super::{AfpError, nodes::Node};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, SessionACL, TimeOrNow, WriteFlags,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel believes names and attributes before it asks again.
pub(super) const TRUSTED: Duration = Duration::from_secs(1);

/// Requests of the kernel that are answered at once.
const THREADS: usize = 4;

/// Most bytes the kernel writes in one request.
const WRITE_MAX: u32 = 1 << 20;

/// The bits of a mode that can be set.
const PERMISSIONS: u32 = 0o7777;

/// The bits that say what kind of file it is, and the kind that is a symbolic link.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Longest target of a symbolic link, bytes.
const TARGET_MAX: usize = 4096;

/// A volume that is mounted.
pub(crate) struct Mount(Session<Files>);

impl Mount {
    /// Mounts a volume of a server at a directory; needs root.
    ///
    /// # Errors
    /// What the server or the system refused.
    pub(crate) fn new(server: SocketAddr, volume: &str, point: &Path) -> Result<Self, String> {
        let opened = Volume::open(server, volume).map_err(|error| error.to_string())?;
        let files = Files {
            volume: opened,
            nodes: Mutex::default(),
            open: Mutex::default(),
        };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(format!("afp://{server}/{volume}"))];
        config.acl = SessionACL::All;
        config.n_threads = Some(THREADS);
        let session = Session::new(files, point, &config)
            .map_err(|error| format!("cannot mount at {}: {error}", point.display()))?;
        Ok(Self(session))
    }

    /// Serves until it is unmounted.
    ///
    /// # Errors
    /// When the kernel ends the conversation otherwise.
    pub(crate) fn serve(self) -> Result<(), String> {
        self.0.run().map_err(|error| error.to_string())
    }
}

/// What is open, by the number the kernel was given.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    forks: HashMap<u64, Fork>,
    /// Directories, as they were when the reading began: what is removed meanwhile moves nothing.
    lists: HashMap<u64, Arc<Vec<Parameters>>>,
}

impl Open {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[derive(Debug)]
struct Files {
    volume: Volume,
    nodes: Mutex<Nodes>,
    open: Mutex<Open>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a program here is told of a failure.
fn errno(error: &AfpError) -> Errno {
    let AfpError::Refused(_, code) = error else {
        return Errno::EIO;
    };
    match *code {
        protocol::ACCESS_DENIED | protocol::OBJECT_LOCKED => Errno::EACCES,
        protocol::DENY_CONFLICT | protocol::FILE_BUSY => Errno::EBUSY,
        protocol::DIRECTORY_NOT_EMPTY => Errno::ENOTEMPTY,
        protocol::DISK_FULL => Errno::ENOSPC,
        protocol::OBJECT_EXISTS => Errno::EEXIST,
        protocol::OBJECT_NOT_FOUND | protocol::DIRECTORY_NOT_FOUND => Errno::ENOENT,
        protocol::CALL_NOT_SUPPORTED => Errno::EOPNOTSUPP,
        protocol::OBJECT_TYPE => Errno::EISDIR,
        protocol::TOO_MANY_FILES => Errno::ENFILE,
        protocol::VOLUME_LOCKED => Errno::EROFS,
        _ => Errno::EIO,
    }
}

type Done<T> = Result<T, Errno>;

/// A name as the server takes it.
fn text(name: &OsStr) -> Done<&str> {
    if name.len() > protocol::NAME_MAX as usize {
        return Err(Errno::ENAMETOOLONG);
    }
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
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => {
            // A part of a second before 1970 belongs to the second that began earlier.
            let before = before.duration();
            let whole = before.as_secs() + u64::from(before.subsec_nanos() > 0);
            -i64::try_from(whole).unwrap_or(i64::MAX)
        }
    }
}

/// What the kernel is told of a file. The protocol knows no count of links and no blocks.
fn attributes(about: &Parameters) -> FileAttr {
    let modified = time(about.modified);
    FileAttr {
        ino: inode_of(about.id),
        size: about.length,
        blocks: about.length.div_ceil(512),
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: modified,
        kind: kind(about),
        perm: u16::try_from(about.unix.mode & PERMISSIONS).unwrap_or(0),
        nlink: 1,
        uid: about.unix.uid,
        gid: about.unix.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn kind(about: &Parameters) -> FileType {
    if about.is_directory {
        FileType::Directory
    } else if about.unix.mode & KIND == LINK {
        FileType::Symlink
    } else {
        FileType::RegularFile
    }
}

impl Files {
    fn node(&self, inode: INodeNo) -> Done<(u32, Node)> {
        let id = number(inode);
        let node = held(&self.nodes).get(id).ok_or(Errno::ESTALE)?;
        Ok((id, node))
    }

    fn fork(&self, handle: FileHandle) -> Done<Fork> {
        let open = held(&self.open);
        open.forks.get(&handle.0).copied().ok_or(Errno::EBADF)
    }

    fn keep(&self, fork: Fork) -> FileHandle {
        let mut open = held(&self.open);
        let number = open.number();
        open.forks.insert(number, fork);
        FileHandle(number)
    }

    /// Tells the kernel of something it may ask for by its number from now on.
    fn tell(&self, at: At<'_>, about: &Parameters) -> FileAttr {
        held(&self.nodes).tell(at, about);
        attributes(about)
    }

    fn found(&self, parent: INodeNo, name: &OsStr) -> Done<FileAttr> {
        let at = At {
            directory: number(parent),
            name: text(name)?,
        };
        let about = self.volume.parameters(at).map_err(|e| errno(&e))?;
        Ok(self.tell(at, &about))
    }

    fn described(&self, inode: INodeNo) -> Done<FileAttr> {
        let (id, node) = self.node(inode)?;
        let about = self.volume.parameters(node.at(id)).map_err(|e| errno(&e))?;
        let mut attributes = attributes(&about);
        // The kernel asked for this number, whatever the server's database has made of it since.
        attributes.ino = inode;
        Ok(attributes)
    }

    /// Sets a mode where the server chose another one; the attributes then.
    fn with_mode(&self, at: At<'_>, mut about: Parameters, mode: u32) -> Done<Parameters> {
        let mode = mode & PERMISSIONS;
        if about.unix.mode & PERMISSIONS != mode {
            let unix = Unix {
                mode: about.unix.mode & !PERMISSIONS | mode,
                ..about.unix
            };
            let change = Change {
                unix: Some(unix),
                ..Change::default()
            };
            self.volume.set(at, change).map_err(|e| errno(&e))?;
            about.unix = unix;
        }
        Ok(about)
    }

    fn created(&self, parent: INodeNo, name: &OsStr, mode: u32) -> Done<(FileAttr, FileHandle)> {
        let at = At {
            directory: number(parent),
            name: text(name)?,
        };
        self.volume.create_file(at).map_err(|e| errno(&e))?;
        let (fork, about) = self.volume.open_fork(at, true).map_err(|e| errno(&e))?;
        let handle = self.keep(fork);
        let about = self.with_mode(at, about, mode)?;
        Ok((self.tell(at, &about), handle))
    }

    fn made(&self, parent: INodeNo, name: &OsStr, mode: u32) -> Done<FileAttr> {
        let at = At {
            directory: number(parent),
            name: text(name)?,
        };
        self.volume.create_directory(at).map_err(|e| errno(&e))?;
        let about = self.volume.parameters(at).map_err(|e| errno(&e))?;
        let about = self.with_mode(at, about, mode)?;
        Ok(self.tell(at, &about))
    }

    /// A file with the target in it becomes the link.
    fn linked(&self, parent: INodeNo, name: &OsStr, target: &Path) -> Done<FileAttr> {
        let at = At {
            directory: number(parent),
            name: text(name)?,
        };
        let change = Change {
            link: true,
            ..Change::default()
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

    fn target(&self, inode: INodeNo) -> Done<Vec<u8>> {
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

    fn removed(&self, parent: INodeNo, name: &OsStr) -> Done<()> {
        let at = At {
            directory: number(parent),
            name: text(name)?,
        };
        self.volume.delete(at).map_err(|e| errno(&e))
    }

    fn renamed(
        &self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Done<()> {
        if flags.intersects(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_WHITEOUT) {
            return Err(Errno::EINVAL);
        }
        let from = At {
            directory: number(from.0),
            name: text(from.1)?,
        };
        let to = At {
            directory: number(to.0),
            name: text(to.1)?,
        };
        let mut renamed = self.volume.rename(from, to);
        if let Err(AfpError::Refused(_, protocol::OBJECT_EXISTS)) = renamed
            && !flags.contains(RenameFlags::RENAME_NOREPLACE)
        {
            self.volume.delete(to).map_err(|e| errno(&e))?;
            renamed = self.volume.rename(from, to);
        }
        renamed.map_err(|e| errno(&e))?;
        held(&self.nodes).moved(from, to);
        Ok(())
    }

    fn truncated(&self, inode: INodeNo, handle: Option<FileHandle>, length: u64) -> Done<()> {
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

    fn changed(
        &self,
        inode: INodeNo,
        owner: [Option<u32>; 2],
        mode: Option<u32>,
        modified: Option<TimeOrNow>,
    ) -> Done<()> {
        let [uid, gid] = owner;
        let (id, node) = self.node(inode)?;
        let at = node.at(id);
        let mut change = Change::default();
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
        change.modified = modified.map(|time| match time {
            TimeOrNow::SpecificTime(time) => seconds(time),
            TimeOrNow::Now => now(),
        });
        if change == Change::default() {
            return Ok(());
        }
        self.volume.set(at, change).map_err(|e| errno(&e))?;
        if (uid.is_some() || gid.is_some()) && !self.is_owned(at, change.unix) {
            // The server says yes to a change of owner that it has no right to make.
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    fn is_owned(&self, at: At<'_>, asked: Option<Unix>) -> bool {
        let about = self.volume.parameters(at);
        about.is_ok_and(|about| {
            asked.is_some_and(|asked| (about.unix.uid, about.unix.gid) == (asked.uid, asked.gid))
        })
    }

    /// The directory and what it is in, then what it holds.
    fn entries(&self, inode: INodeNo, handle: FileHandle, offset: u64) -> Done<Entries> {
        let (id, node) = self.node(inode)?;
        let kept = held(&self.open).lists.get(&handle.0).cloned();
        let list = match kept {
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

/// Seconds since 1970.
fn now() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec
}

/// What is read from a directory.
struct Entries {
    id: u32,
    parent: u32,
    list: Arc<Vec<Parameters>>,
}

/// What stands first in every directory: itself, and the one it is in.
const DOTS: [&str; 2] = [".", ".."];

impl Entries {
    /// From an offset on, each with the offset after it.
    fn from(&self, offset: u64) -> impl Iterator<Item = (u64, &Parameters)> {
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let entries = self.list.iter().zip(DOTS.len() as u64 + 1..);
        entries
            .map(|(entry, next)| (next, entry))
            .skip(skipped.saturating_sub(DOTS.len()))
    }

    /// Those of the first two that an offset leaves: name, number, the offset after it.
    fn dots(&self, offset: u64) -> impl Iterator<Item = (&'static str, u32, u64)> {
        let ids = [self.id, self.parent];
        let dots = DOTS.into_iter().zip(ids).zip(1..);
        dots.map(|((name, id), next)| (name, id, next))
            .filter(move |(_, _, next)| *next > offset)
    }
}

/// What stands for the attributes of `.` and `..`, which the kernel does not keep.
fn dot(id: u32) -> Parameters {
    Parameters {
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

const FIRST: Generation = Generation(0);

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // A kernel that cannot do one of these does without.
        let _ = config.set_max_write(WRITE_MAX);
        let _ = config.add_capabilities(InitFlags::FUSE_DO_READDIRPLUS);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        Ok(())
    }

    fn destroy(&mut self) {
        self.volume.close();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.found(parent, name) {
            Ok(attributes) => reply.entry(&TRUSTED, &attributes, FIRST),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _: &Request, inode: INodeNo, times: u64) {
        held(&self.nodes).forget(number(inode), times);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.described(inode) {
            Ok(attributes) => reply.attr(&TRUSTED, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let done = size
            .map_or(Ok(()), |length| self.truncated(inode, handle, length))
            .and_then(|()| self.changed(inode, [uid, gid], mode, modified))
            .and_then(|()| self.described(inode));
        match done {
            Ok(attributes) => reply.attr(&TRUSTED, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.target(inode) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        match self.made(parent, name, mode & !umask) {
            Ok(attributes) => reply.entry(&TRUSTED, &attributes, FIRST),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.removed(parent, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.removed(parent, name), reply);
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        match self.linked(parent, name, target) {
            Ok(attributes) => reply.entry(&TRUSTED, &attributes, FIRST),
            Err(errno) => reply.error(errno),
        }
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let done = self.renamed((parent, name), (new_parent, new_name), flags);
        empty(done, reply);
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let write = flags.acc_mode() != OpenAccMode::O_RDONLY;
        let opened = self.node(inode).and_then(|(id, node)| {
            let opened = self.volume.open_fork(node.at(id), write);
            opened.map_err(|e| errno(&e))
        });
        match opened {
            Ok((fork, _)) => reply.opened(self.keep(fork), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.fork(handle).and_then(|fork| {
            let read = self.volume.read(fork, offset, size as usize);
            read.map_err(|e| errno(&e))
        });
        match read {
            Ok(data) => reply.data(&data),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.fork(handle).and_then(|fork| {
            let written = self.volume.write(fork, offset, data);
            written.map_err(|e| errno(&e))
        });
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Nothing is held back.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let fork = held(&self.open).forks.remove(&handle.0);
        let closed = fork.ok_or(Errno::EBADF).and_then(|fork| {
            let closed = self.volume.close_fork(fork);
            closed.map_err(|e| errno(&e))
        });
        empty(closed, reply);
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self
            .fork(handle)
            .and_then(|fork| self.volume.sync(fork).map_err(|e| errno(&e)));
        empty(synced, reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(held(&self.open).number()), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.entries(inode, handle, offset) {
            Ok(entries) => entries,
            Err(errno) => return reply.error(errno),
        };
        for (name, id, next) in entries.dots(offset) {
            if reply.add(inode_of(id), next, FileType::Directory, name) {
                return reply.ok();
            }
        }
        for (next, entry) in entries.from(offset) {
            if reply.add(inode_of(entry.id), next, kind(entry), &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let entries = match self.entries(inode, handle, offset) {
            Ok(entries) => entries,
            Err(errno) => return reply.error(errno),
        };
        for (name, id, next) in entries.dots(offset) {
            let attributes = attributes(&dot(id));
            if reply.add(attributes.ino, next, name, &TRUSTED, &attributes, FIRST) {
                return reply.ok();
            }
        }
        for (next, entry) in entries.from(offset) {
            let attributes = attributes(entry);
            let name = &entry.name;
            if reply.add(attributes.ino, next, name, &TRUSTED, &attributes, FIRST) {
                break;
            }
            let at = At {
                directory: entries.id,
                name,
            };
            held(&self.nodes).tell(at, entry);
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        held(&self.open).lists.remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // The kernel hands no syncfs on: this is how all that was done is made to last.
        empty(self.volume.sync_all().map_err(|e| errno(&e)), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.volume.space() {
            Ok(space) => {
                let block = space.block.max(512);
                let [total, free] = [space.total, space.free].map(|b| b / u64::from(block));
                reply.statfs(total, free, free, 0, 0, block, protocol::NAME_MAX, block);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.created(parent, name, mode & !umask) {
            Ok((attributes, handle)) => {
                reply.created(&TRUSTED, &attributes, FIRST, handle, FopenFlags::empty());
            }
            Err(errno) => reply.error(errno),
        }
    }
}

fn empty(done: Done<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::ROOT;
    use super::*;

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
        let entry = |id: u32| Parameters {
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
