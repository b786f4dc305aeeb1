//! A volume as a file system, through FUSE.

use super::codes;
use super::files::{AfpFiles, FuseResult, attributes, dot, errno, held, kind};
use super::nodes::{inode as inode_of, number};
use super::protocol::CatalogPath;
use super::volume::AfpVolume;
use fuser::{
    Config, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, Session, SessionACL, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Time for which the kernel believes names and attributes before it asks again.
pub(super) const TRUSTED: Duration = Duration::from_secs(1);

/// Requests of the kernel that are answered at once.
const THREADS: usize = 4;

/// Most bytes the kernel writes in one request.
const WRITE_MAX: u32 = 1 << 20;

/// A volume that is mounted.
pub struct AfpMount(Session<AfpFiles>);

impl AfpMount {
    /// Mounts a volume of a server at a directory; needs root.
    ///
    /// # Errors
    /// What the server or the system refused.
    pub fn new(server: SocketAddr, volume: &str, point: &Path) -> Result<Self, String> {
        let opened = AfpVolume::open(server, volume).map_err(|error| error.to_string())?;
        let files = AfpFiles::new(opened);
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(format!("afp://{server}/{volume}"))];
        // Workloads may run as other users than the one that mounted.
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
    pub fn serve(self) -> Result<(), String> {
        self.0.run().map_err(|error| error.to_string())
    }
}

const FIRST: Generation = Generation(0);

impl Filesystem for AfpFiles {
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
        // AFP opens a file for reading, or for reading and writing; there is no third mode.
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
        // The list is fetched by the first readdir, not here.
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
            let at = CatalogPath {
                directory: entries.id,
                name,
            };
            // readdirplus counts as a look-up for every entry: the kernel will forget each of them.
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
                // A server may report 0, which would divide by zero.
                let block = space.block.max(512);
                let [total, free] = [space.total, space.free].map(|b| b / u64::from(block));
                // The protocol has no inode counts.
                reply.statfs(total, free, free, 0, 0, block, codes::NAME_MAX, block);
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

fn empty(done: FuseResult<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}
