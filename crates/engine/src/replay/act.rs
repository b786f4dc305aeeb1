//! The calls themselves. Each gives what the kernel gave: an error is below 0.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    Access, Advice, AtFlags, FallocateFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags,
    ResolveFlags, SeekFrom, Timespec, Timestamps, UTIME_NOW, Uid, XattrFlags,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::files::{HeldFile, OpenFiles, WarmPart};
use super::step::ReplayCall;
use stackrace_system::mapping::Mapping;
use stackrace_system::memory::AlignedMemory;
use stackrace_system::{permissions, syncfs};

/// Longest piece of a read or write; longer ones are made in pieces.
pub(super) const PIECE: usize = 4 << 20;
/// Longest list of a directory in one call, and longest attribute.
const LIST_MAX: usize = 1 << 20;
const ATTRIBUTE_MAX: u64 = 64 << 10;
/// The attribute in place of those of the application, whose names are not recorded.
const ATTRIBUTE: &CStr = c"user.stackrace";
/// Flags of `open` that are never passed on: only the kernel's own, and what makes a descriptor outlive its use.
const DROPPED: OFlags = OFlags::LARGEFILE;

/// What calls are made on.
pub(super) struct Acts<'a> {
    pub(super) root: OwnedFd,
    pub(super) names: &'a [CString],
    pub(super) files: OpenFiles,
    pub(super) content: AlignedMemory,
}

/// Memory of one thread, for what it reads.
pub(super) struct Memory(pub(super) AlignedMemory);

type Called = Result<i64, Errno>;

fn done<T>(result: Result<T, Errno>) -> Called {
    result.map(|_| 0)
}

fn moved(result: Result<usize, Errno>) -> Called {
    // No call moves more than 2 GiB.
    result.map(|bytes| bytes as i64)
}

impl Acts<'_> {
    /// Opens what was open before.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn hold(&self, held: &HeldFile) -> Result<(), Errno> {
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC;
        let flags = OFlags::from_bits_retain(held.flags) - made;
        let file = self.open_name(held.name, flags, Mode::empty())?;
        if held.position > 0 {
            rustix::fs::seek(&file, SeekFrom::Start(held.position))?;
        }
        self.files.put(held.file, file.into_raw_fd());
        Ok(())
    }

    /// Reads a part of a file, so that it is in memory, until it is stopped.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn warm(
        &self,
        part: &WarmPart,
        memory: &mut Memory,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Errno> {
        let file = self.open_name(part.name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        // Nothing but the part: what else the kernel would read ahead was not in memory.
        rustix::fs::fadvise(&file, 0, None, Advice::Random)?;
        let longest = memory.0.len();
        let buffer = memory.0.bytes_mut();
        in_pieces(part.length, longest, |done, piece| {
            // A part may be as long as a disk.
            if stopped() {
                return Ok(0);
            }
            let at = part.offset.saturating_add(done as u64);
            rustix::io::pread(&file, &mut buffer[..piece], at)
        })?;
        Ok(())
    }

    fn name(&self, name: u32) -> &CStr {
        &self.names[name as usize]
    }

    /// Opens a name below the directory: neither a link nor `..` leads out of it.
    fn open_name(&self, name: u32, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = (flags - DROPPED) | OFlags::CLOEXEC;
        let makes = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
        let mode = if makes { mode } else { Mode::empty() };
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.root, self.name(name), flags, mode, within)
    }

    /// Makes a call; `number` chooses what is written.
    pub(super) fn act(&self, call: &ReplayCall, memory: &mut Memory, number: u64) -> i64 {
        match self.called(call, memory, number) {
            Ok(result) => result,
            Err(errno) => -i64::from(errno.raw_os_error()),
        }
    }

    fn called(&self, call: &ReplayCall, memory: &mut Memory, number: u64) -> Called {
        if let ReplayCall::Open {
            name,
            flags,
            mode,
            file,
        } = *call
        {
            return self.open(name, OFlags::from_bits_retain(flags), mode, file);
        }
        match call.file() {
            Some(file) => {
                let descriptor = self.files.get(file).ok_or(Errno::BADF)?;
                // SAFETY: the descriptor is open until its last user closes it, and the step that asks is one of them
                // (`OpenFiles::used` counts it afterwards).
                let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
                self.on_file(call, file, descriptor, memory, number)
            }
            None => self.on_name(call, memory),
        }
    }

    fn open(&self, name: u32, flags: OFlags, mode: u32, file: u32) -> Called {
        // Neither set-user-ID nor a sticky bit: anyone may have made the trace.
        let mode = permissions(mode & 0o777);
        let opened = self.open_name(name, flags, mode)?;
        // One that could not be opened when recorded has no user: it is closed at once.
        if file > 0 {
            self.files.put(file, opened.into_raw_fd());
        }
        Ok(0)
    }

    fn on_file(
        &self,
        call: &ReplayCall,
        file: u32,
        at: BorrowedFd<'_>,
        memory: &mut Memory,
        number: u64,
    ) -> Called {
        match *call {
            ReplayCall::Close { .. } => self.close(file),
            ReplayCall::Read { .. }
            | ReplayCall::ReadAt { .. }
            | ReplayCall::Write { .. }
            | ReplayCall::WriteAt { .. } => self.transfer(call, at, memory, number),
            ReplayCall::Fsync { .. } => done(rustix::fs::fsync(at)),
            ReplayCall::Fdatasync { .. } => done(rustix::fs::fdatasync(at)),
            ReplayCall::SyncRange {
                offset,
                length,
                flags,
                ..
            } => sync_range(at, offset, length, flags),
            ReplayCall::Seek { offset, whence, .. } => seek(at, offset, whence),
            ReplayCall::List { length, .. } => list(at, memory, length),
            ReplayCall::Advise {
                offset,
                length,
                advice,
                ..
            } => {
                let length = std::num::NonZeroU64::new(length);
                done(rustix::fs::fadvise(at, offset, length, advised(advice)))
            }
            ReplayCall::Allocate {
                mode,
                offset,
                length,
                ..
            } => {
                let mode = FallocateFlags::from_bits_retain(mode);
                done(rustix::fs::fallocate(at, mode, offset, length))
            }
            ReplayCall::Map { offset, length, .. } => map(at, offset, length),
            ReplayCall::LockWhole { operation, .. } => {
                // A bit that the kernel does not know is refused as it would: the recorded call failed, too.
                let locked = lock(operation).ok_or(Errno::INVAL)?;
                done(rustix::fs::flock(at, locked))
            }
            ReplayCall::Stat { .. } => done(rustix::fs::fstat(at)),
            ReplayCall::Mode { mode, .. } => {
                done(rustix::fs::fchmod(at, permissions(mode & 0o777)))
            }
            ReplayCall::Owner { .. } => done(rustix::fs::fchown(at, None, None)),
            ReplayCall::Times { .. } => done(rustix::fs::futimens(at, &NOW)),
            ReplayCall::Truncate { length, .. } => done(rustix::fs::ftruncate(at, length)),
            ReplayCall::GetExtended { .. } => {
                moved(rustix::fs::fgetxattr(at, ATTRIBUTE, memory.0.bytes_mut()))
            }
            ReplayCall::SetExtended { length, .. } => {
                let value = self.content(number, length.min(ATTRIBUTE_MAX) as usize);
                done(rustix::fs::fsetxattr(
                    at,
                    ATTRIBUTE,
                    value,
                    XattrFlags::empty(),
                ))
            }
            _ => Err(Errno::NOSYS),
        }
    }

    fn transfer(
        &self,
        call: &ReplayCall,
        at: BorrowedFd<'_>,
        memory: &mut Memory,
        number: u64,
    ) -> Called {
        let from = |offset: u64| move |done: usize| offset.saturating_add(done as u64);
        let longest = memory.0.len();
        let buffer = memory.0.bytes_mut();
        match *call {
            ReplayCall::Read { length, .. } => in_pieces(length, longest, |_, piece| {
                rustix::io::read(at, &mut buffer[..piece])
            }),
            ReplayCall::ReadAt { offset, length, .. } => {
                let from = from(offset);
                in_pieces(length, longest, |done, piece| {
                    rustix::io::pread(at, &mut buffer[..piece], from(done))
                })
            }
            ReplayCall::Write { length, .. } => in_pieces(length, PIECE, |_, piece| {
                rustix::io::write(at, self.content(number, piece))
            }),
            ReplayCall::WriteAt { offset, length, .. } => {
                let from = from(offset);
                in_pieces(length, PIECE, |done, piece| {
                    rustix::io::pwrite(at, self.content(number, piece), from(done))
                })
            }
            _ => Err(Errno::NOSYS),
        }
    }

    fn on_name(&self, call: &ReplayCall, memory: &mut Memory) -> Called {
        let root = self.root.as_fd();
        // No link leads out: what it leads to lies below the directory that it stands in (`ReplayPlan::names`).
        let follows = match call.is_still() {
            true => AtFlags::SYMLINK_NOFOLLOW,
            false => AtFlags::empty(),
        };
        let name = match call.name() {
            Some(name) => self.name(name),
            None => return self.on_all(call),
        };
        match *call {
            ReplayCall::Stat { .. } => done(rustix::fs::statat(root, name, follows)),
            ReplayCall::Access { mode, .. } => {
                let asked = Access::from_bits_truncate(mode as _);
                done(rustix::fs::accessat(root, name, asked, AtFlags::empty()))
            }
            ReplayCall::ReadLink { .. } => {
                done(rustix::fs::readlinkat_raw(root, name, memory.0.bytes_mut()))
            }
            ReplayCall::Mode { mode, .. } => {
                let mode = permissions(mode & 0o777);
                done(rustix::fs::chmodat(root, name, mode, follows))
            }
            ReplayCall::Owner { .. } => done(rustix::fs::chownat(
                root,
                name,
                None::<Uid>,
                None::<Gid>,
                follows,
            )),
            ReplayCall::Times { .. } => done(rustix::fs::utimensat(root, name, &NOW, follows)),
            ReplayCall::Truncate { length, .. } => {
                let number = call.name().unwrap_or(0);
                let file = self.open_name(number, OFlags::WRONLY, Mode::empty())?;
                done(rustix::fs::ftruncate(file, length))
            }
            // There is no call for attributes of a name below a directory: through the file.
            ReplayCall::GetExtended { .. } | ReplayCall::SetExtended { .. } => {
                self.attribute(call, memory)
            }
            _ => self.change_name(call, name),
        }
    }

    fn on_all(&self, call: &ReplayCall) -> Called {
        match call {
            ReplayCall::SyncAll => done(syncfs(self.root.as_fd())),
            ReplayCall::StatFs => done(rustix::fs::fstatfs(self.root.as_fd())),
            _ => Err(Errno::NOSYS),
        }
    }

    fn change_name(&self, call: &ReplayCall, name: &CStr) -> Called {
        let root = self.root.as_fd();
        let none = AtFlags::empty();
        match *call {
            ReplayCall::MakeDir { mode, .. } => {
                done(rustix::fs::mkdirat(root, name, permissions(mode & 0o777)))
            }
            ReplayCall::RemoveDir { .. } => {
                done(rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR))
            }
            ReplayCall::Unlink { .. } => done(rustix::fs::unlinkat(root, name, none)),
            ReplayCall::Rename { second, flags, .. } => {
                let (to, flags) = (self.name(second), RenameFlags::from_bits_truncate(flags));
                done(rustix::fs::renameat_with(root, name, root, to, flags))
            }
            ReplayCall::Link { second, .. } => {
                let to = self.name(second);
                done(rustix::fs::linkat(root, name, root, to, none))
            }
            ReplayCall::SymLink { target, .. } => {
                // It need not be there: a link may lead to what is made later.
                done(rustix::fs::symlinkat(self.name(target), root, name))
            }
            _ => Err(Errno::NOSYS),
        }
    }

    fn attribute(&self, call: &ReplayCall, memory: &mut Memory) -> Called {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = self.open_name(call.name().unwrap_or(0), flags, Mode::empty())?;
        self.on_file(call, 0, file.as_fd(), memory, 0)
    }

    /// Closes a file as its last user; before that it is open in another process, too.
    fn close(&self, file: u32) -> Called {
        match self.files.is_last(file).then(|| self.files.take(file)) {
            Some(Some(descriptor)) => done(close(descriptor)),
            _ => Ok(0),
        }
    }

    /// A step has used a file: the last one closes it.
    pub(super) fn used(&self, file: u32) {
        if let Some(descriptor) = self.files.used(file) {
            // What it wrote was compared before; an end of a process hides this error, too.
            let _ = close(descriptor);
        }
    }

    /// Random bytes, another place of them for each call.
    fn content(&self, number: u64, bytes: usize) -> &[u8] {
        let from = (number as usize).wrapping_mul(4096) % PIECE;
        &self.content.bytes()[from..from + bytes.min(PIECE)]
    }
}

impl Drop for Acts<'_> {
    /// Closes what is still open, also where a replay could not begin: else its file system stays busy.
    fn drop(&mut self) {
        for descriptor in self.files.rest() {
            let _ = close(descriptor);
        }
    }
}

const NOW: Timestamps = Timestamps {
    last_access: NOW_TIME,
    last_modification: NOW_TIME,
};
const NOW_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW,
};

fn close(descriptor: i32) -> Result<(), Errno> {
    // SAFETY: `OpenFiles` gave the descriptor away, so that no other thread uses or closes it.
    unsafe { rustix::io::try_close(descriptor) }
}

/// Moves so many bytes; `moved` gets how many are done, and how many are next.
fn in_pieces(
    length: u64,
    most: usize,
    mut moved: impl FnMut(usize, usize) -> Result<usize, Errno>,
) -> Called {
    let mut done = 0;
    loop {
        let left = length.saturating_sub(done as u64);
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(most);
        match moved(done, piece) {
            Ok(bytes) => {
                done += bytes;
                if bytes < piece || done as u64 >= length {
                    return Ok(done as i64);
                }
            }
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => return Ok(done as i64),
        }
    }
}

fn seek(at: BorrowedFd<'_>, offset: i64, whence: u32) -> Called {
    let to = match whence {
        0 => SeekFrom::Start(offset.try_into().map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(offset),
        2 => SeekFrom::End(offset),
        3 => SeekFrom::Data(offset.try_into().map_err(|_| Errno::NXIO)?),
        4 => SeekFrom::Hole(offset.try_into().map_err(|_| Errno::NXIO)?),
        _ => return Err(Errno::INVAL),
    };
    rustix::fs::seek(at, to).map(|at| at as i64)
}

fn sync_range(at: BorrowedFd<'_>, offset: u64, length: u64, flags: u32) -> Called {
    let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else {
        return Err(Errno::INVAL);
    };
    // SAFETY: the call reads no memory of ours, and the descriptor is open.
    let result = unsafe { libc::sync_file_range(at.as_raw_fd(), offset, length, flags) };
    called_by_libc(i64::from(result))
}

fn list(at: BorrowedFd<'_>, memory: &mut Memory, length: u64) -> Called {
    let bytes = memory.0.bytes_mut();
    let length = bytes
        .len()
        .min(LIST_MAX)
        .min(usize::try_from(length).unwrap_or(usize::MAX));
    // SAFETY: the kernel writes at most `length` bytes into `bytes`, which has as many and is borrowed for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            at.as_raw_fd(),
            bytes.as_mut_ptr(),
            length,
        )
    };
    called_by_libc(result)
}

fn called_by_libc(result: i64) -> Called {
    match result {
        0.. => Ok(result),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

fn advised(advice: u32) -> Advice {
    match advice {
        1 => Advice::Random,
        2 => Advice::Sequential,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => Advice::Normal,
    }
}

/// What `flock` is asked for (flock(2)): never to wait, which nothing could end.
fn lock(operation: u32) -> Option<FlockOperation> {
    const NOW: u32 = 4;
    // Whether it was to wait does not matter: the order has made it free, or it was refused when recorded.
    match operation & !NOW {
        1 => Some(FlockOperation::NonBlockingLockShared),
        2 => Some(FlockOperation::NonBlockingLockExclusive),
        8 => Some(FlockOperation::NonBlockingUnlock),
        _ => None,
    }
}

fn map(at: BorrowedFd<'_>, offset: u64, length: u64) -> Called {
    let bytes = usize::try_from(length.max(1)).map_err(|_| Errno::NOMEM)?;
    let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
    Mapping::of_file(at, offset, bytes, ProtFlags::READ, flags).map(|_| 0)
}
