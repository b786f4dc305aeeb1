//! Copying a tree the way `cp -r` or `rsync -a` do.
//!
//! Modes, modification times and symbolic links are kept, in the style of rsync and as root owners
//! too; extended attributes, holes and hard links are not. An entry that cannot be copied is an
//! error: leaving it out would make the copy look faster.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chownat,
    fchmod, fchown, futimens, mkdirat, openat, readlinkat, renameat, symlinkat, utimensat,
};
use rustix::io::{Errno, read, write};
use rustix::process::{getegid, geteuid};

use super::copy::{CopyMethod, KERNEL_BYTES, MAKE, READ, about, cut, mode};
use super::walk::{Descent, Walk, WalkStep};
use crate::calls::{close, flush};
use crate::control::Control;
use crate::files::AtEnd;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, PhaseOptions, Worker, alone, fault, refusal};
use stackrace_system::draw::derive;
use stackrace_system::{Statx, StatxFlags, copy_file_range, ioctl_ficlone, statx};

/// Longest name, bytes, of which a temporary name can be made.
const TEMPORARY_OF_BYTES: usize = 255 - 8;

/// The way in which a copied file gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStyle {
    /// The file is created under its name, as `cp` does.
    Direct,
    /// The file is created as `.name.XXXXXX` with mode 0600, gets time, owner (as root, where it is
    /// another) and mode, and is renamed, as `rsync -a` does: two changes of the directory per
    /// file.
    Renamed,
}

/// The modification time alone; the time of last access is left as it is.
fn times(about: &Statx) -> Timestamps {
    let modified = about.stx_mtime;
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.tv_sec,
            tv_nsec: modified.tv_nsec.into(),
        },
    }
}

/// Copies the tree at `from` to `to`, which must not exist.
///
/// Records per directory one [`Op::Readdir`] and [`Op::Mkdir`], per file one [`Op::Copy`] (open,
/// copy, times, mode, close; its bytes), per symbolic link one [`Op::Copy`] of no bytes, and in
/// the style of rsync one [`Op::Rename`] per file. Modes and times of directories are set when
/// their content is complete. Flushing, if asked for, flushes the file system of `to`.
///
/// # Errors
/// Nothing was measured: `from` is not a directory or a symbolic link to one, or the parent of
/// `to` is missing. Whatever fails later, a mount point or a special file within the tree
/// included, is found in [`PhaseOutcome::error`]; what was copied until then stays.
pub fn copy_tree(
    from: &Path,
    to: &Path,
    method: CopyMethod,
    style: CopyStyle,
    at_end: AtEnd,
    slice_ns: u64,
    control: &Control,
) -> Result<PhaseOutcome, OpError> {
    at_end.check(to)?;
    let walk = Walk::open(from, Op::Readdir)?;
    let buffer = method.buffer(to)?;
    // A bare name lies in the working directory.
    let parent = match to.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    statx(CWD, parent, AtFlags::empty(), StatxFlags::TYPE)
        .map_err(|errno| fault(Op::Mkdir, parent, errno))?;
    let mut copier = Copier {
        walk,
        targets: Vec::new(),
        path: to.to_path_buf(),
        root: None,
        method,
        style,
        control,
        buffer,
        temporary: Vec::new(),
        link: Vec::new(),
        files: 0,
    };
    let ops = [Op::Fsync, Op::Mkdir, Op::Rename, Op::Readdir, Op::Copy];
    Ok(alone(
        PhaseOptions {
            slice_ns,
            control,
            ops: &ops,
        },
        method.why(),
        |worker| {
            copier.all(worker)?;
            match at_end {
                AtEnd::Return => Ok(()),
                AtEnd::Durable => flush(worker, &copier.targets[0], to),
            }
        },
    ))
}

/// A copy in progress.
struct Copier<'a> {
    walk: Walk,
    /// Descriptors of the directories made, as deep as the walk stands.
    targets: Vec<OwnedFd>,
    /// Path of the innermost of them.
    path: PathBuf,
    /// Device and inode of the outermost of them, which must not be copied into itself.
    root: Option<(u32, u32, u64)>,
    method: CopyMethod,
    style: CopyStyle,
    control: &'a Control,
    buffer: Vec<u8>,
    /// Room for a temporary name.
    temporary: Vec<u8>,
    /// Room for what a symbolic link says.
    link: Vec<u8>,
    files: u64,
}

/// The reason for which the copy of one file ended early.
enum CopyError {
    Source(Errno),
    Target(Errno),
    Cut { copied: u64, size: u64 },
    Stopped,
}

impl Copier<'_> {
    fn all(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let to = rustix::path::Arg::into_c_str(self.path.as_path());
        let to = to
            .map_err(|errno| fault(Op::Mkdir, &self.path, errno))?
            .into_owned();
        self.enter(&to, worker)?;
        loop {
            worker.proceed()?;
            match self.walk.next()? {
                WalkStep::Done => return self.seal(),
                WalkStep::Leave => {
                    self.seal()?;
                    self.walk.leave();
                    self.targets.pop();
                    self.path.pop();
                }
                WalkStep::Entry(FileType::Directory) => {
                    let name = self.walk.current().1.to_owned();
                    match self.walk.descend(Op::Readdir)? {
                        Descent::Elsewhere(error) => return Err(error.into()),
                        Descent::Entered => {
                            self.path.push(OsStr::from_bytes(name.to_bytes()));
                            self.enter(&name, worker)?;
                        }
                    }
                }
                WalkStep::Entry(FileType::RegularFile) => self.file(worker)?,
                WalkStep::Entry(FileType::Symlink) => self.symlink(worker)?,
                WalkStep::Entry(_) => {
                    let detail = "is neither a file, a directory nor a symbolic link: not copied";
                    let path = self.walk.current_path();
                    return Err(refusal(Op::Copy, &path, Errno::INVAL, detail).into());
                }
            }
        }
    }

    fn target(&self) -> BorrowedFd<'_> {
        self.targets.last().map_or(CWD, AsFd::as_fd)
    }

    /// Makes the directory `name` for the one just entered in the walk, and reads the latter.
    fn enter(&mut self, name: &CStr, worker: &mut Worker<'_>) -> Result<(), Halt> {
        // Else a copy into its own source would never end.
        if self.root == Some(place(self.walk.about())) {
            let detail = "would be copied into itself";
            return Err(refusal(Op::Mkdir, &self.path, Errno::INVAL, detail).into());
        }
        let parent = self.target();
        // Writable for us until it is full; its source may be read-only, and `seal` brings its
        // mode.
        let mkdir = || mkdirat(parent, name, Mode::from_raw_mode(0o700)).map(|()| 0);
        let flags = READ.union(OFlags::DIRECTORY);
        let made = worker.time(Op::Mkdir, mkdir).and_then(|_| {
            let made = openat(parent, name, flags, Mode::empty())?;
            Ok((place(&about(&made)?), made))
        });
        let (root, made) = made.map_err(|errno| fault(Op::Mkdir, &self.path, errno))?;
        self.targets.push(made);
        // The first one made is the root.
        self.root.get_or_insert(root);
        let done = worker.time(Op::Readdir, || self.walk.read());
        done.map(drop)
            .map_err(|errno| self.walk.here(Op::Readdir, errno).into())
    }

    /// Gives the directory just filled the time and mode of the one it was copied from.
    fn seal(&mut self) -> Result<(), Halt> {
        let (from, made) = (self.walk.about(), self.target());
        let owned = match self.style {
            CopyStyle::Direct => Ok(()),
            CopyStyle::Renamed => own(made, from),
        };
        let done = owned
            .and_then(|()| futimens(made, &times(from)))
            .and_then(|()| fchmod(made, mode(from)));
        done.map_err(|errno| fault(Op::Mkdir, &self.path, errno).into())
    }

    fn file(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let (parent, name) = self.walk.current();
        let target = self.targets.last().map_or(CWD, AsFd::as_fd);
        let made = match self.style {
            CopyStyle::Direct => name,
            CopyStyle::Renamed => temporary_name(name, self.files, &mut self.temporary),
        };
        let (method, style, control) = (self.method, self.style, self.control);
        let one = FileCopy {
            parent,
            name,
            target,
            made,
            method,
            style,
            control,
        };
        let (buffer, mut short) = (&mut self.buffer, 0);
        let copied = worker.time(Op::Copy, || one.copy(buffer, &mut short));
        // After the clock: counting is no part of the copy.
        (0..short).for_each(|_| worker.count_short());
        self.files += 1;
        let path = || self.path.join(OsStr::from_bytes(name.to_bytes()));
        copied.map_err(|trouble| match trouble {
            CopyError::Source(errno) => self.walk.at_current(Op::Copy, errno).into(),
            CopyError::Target(errno) => fault(Op::Copy, &path(), errno).into(),
            CopyError::Cut { copied, size } => cut(&self.walk.current_path(), copied, size).into(),
            CopyError::Stopped => Halt::Stopped,
        })?;
        if style == CopyStyle::Renamed {
            worker
                .time(Op::Rename, || {
                    renameat(target, made, target, name).map(|()| 0)
                })
                .map_err(|errno| fault(Op::Rename, &path(), errno))?;
        }
        Ok(())
    }

    fn symlink(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let (parent, name) = self.walk.current();
        let target = self.targets.last().map_or(CWD, AsFd::as_fd);
        // Reuses one buffer for all targets, so that links cost no allocation.
        let link = std::mem::take(&mut self.link);
        let mut kept = None;
        let done = worker.time(Op::Copy, || {
            let nofollow = AtFlags::SYMLINK_NOFOLLOW;
            let known = statx(parent, name, nofollow, StatxFlags::BASIC_STATS)
                .map_err(CopyError::Source)?;
            let says = kept.insert(readlinkat(parent, name, link).map_err(CopyError::Source)?);
            symlinkat(&**says, target, name).map_err(CopyError::Target)?;
            if self.style == CopyStyle::Renamed && geteuid().is_root() {
                let owner = Some(Uid::from_raw(known.stx_uid));
                let group = Some(Gid::from_raw(known.stx_gid));
                chownat(target, name, owner, group, nofollow).map_err(CopyError::Target)?;
            }
            // No mode: that of a symbolic link is fixed on Linux.
            utimensat(target, name, &times(&known), nofollow).map_err(CopyError::Target)?;
            Ok(0)
        });
        self.link = kept.map_or_else(Vec::new, CString::into_bytes);
        done.map(drop).map_err(|trouble| match trouble {
            CopyError::Source(errno) => self.walk.at_current(Op::Copy, errno).into(),
            CopyError::Target(errno) => {
                let path = self.path.join(OsStr::from_bytes(name.to_bytes()));
                fault(Op::Copy, &path, errno).into()
            }
            // A link is a single call, which is neither cut nor stopped.
            CopyError::Cut { .. } | CopyError::Stopped => Halt::Stopped,
        })
    }
}

/// As root, sets the owner of the source on the copy, if it differs.
fn own(made: impl AsFd, source: &Statx) -> Result<(), Errno> {
    let (user, group) = (geteuid(), getegid());
    let ours = (user.as_raw(), group.as_raw()) == (source.stx_uid, source.stx_gid);
    if ours || !user.is_root() {
        return Ok(());
    }
    let owner = Uid::from_raw(source.stx_uid);
    fchown(made, Some(owner), Some(Gid::from_raw(source.stx_gid)))
}

fn place(about: &Statx) -> (u32, u32, u64) {
    (about.stx_dev_major, about.stx_dev_minor, about.stx_ino)
}

/// `.name.XXXXXX`, the name cut so that the whole fits into 255 bytes.
fn temporary_name<'a>(name: &CStr, number: u64, room: &'a mut Vec<u8>) -> &'a CStr {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let name = name.to_bytes();
    room.clear();
    room.push(b'.');
    room.extend_from_slice(&name[..name.len().min(TEMPORARY_OF_BYTES)]);
    room.push(b'.');
    // Not secret, only unlike all others of the run.
    let random = derive(0, number);
    room.extend((0..6).map(|place| LETTERS[(random >> (place * 5)) as usize & 31]));
    room.push(0);
    CStr::from_bytes_until_nul(room).unwrap_or_default()
}

/// One file of a tree to copy.
struct FileCopy<'a> {
    parent: BorrowedFd<'a>,
    name: &'a CStr,
    target: BorrowedFd<'a>,
    /// Its name until it is complete.
    made: &'a CStr,
    method: CopyMethod,
    style: CopyStyle,
    control: &'a Control,
}

impl FileCopy<'_> {
    fn copy(&self, buffer: &mut [u8], short: &mut u64) -> Result<u64, CopyError> {
        let source =
            openat(self.parent, self.name, READ, Mode::empty()).map_err(CopyError::Source)?;
        let known = about(&source).map_err(CopyError::Source)?;
        let made = match self.style {
            CopyStyle::Direct => openat(self.target, self.made, MAKE, mode(&known)),
            CopyStyle::Renamed => self.temporary(),
        };
        let made = made.map_err(CopyError::Target)?;
        let bytes = match self.method {
            CopyMethod::Classic { .. } => self.classic(&source, &made, buffer, short)?,
            CopyMethod::InKernel => self.in_kernel(&source, &made, known.stx_size)?,
            CopyMethod::Reflink => {
                ioctl_ficlone(&made, &source).map_err(CopyError::Target)?;
                known.stx_size
            }
        };
        futimens(&made, &times(&known)).map_err(CopyError::Target)?;
        if self.style == CopyStyle::Renamed {
            own(&made, &known).map_err(CopyError::Target)?;
        }
        // After the owner: chown(2) clears the set-user-ID bits.
        fchmod(&made, mode(&known)).map_err(CopyError::Target)?;
        close(made).map_err(CopyError::Target)?;
        Ok(bytes)
    }

    /// Creates a file under its temporary name. rsync sets the mode a second time, so this does
    /// too.
    fn temporary(&self) -> Result<OwnedFd, Errno> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let private = Mode::from_raw_mode(0o600);
        let made = openat(self.target, self.made, flags, private)?;
        fchmod(&made, private)?;
        Ok(made)
    }

    fn classic(
        &self,
        source: &OwnedFd,
        made: &OwnedFd,
        buffer: &mut [u8],
        short: &mut u64,
    ) -> Result<u64, CopyError> {
        let mut total = 0;
        loop {
            let got = read(source, &mut *buffer).map_err(CopyError::Source)?;
            if got == 0 {
                return Ok(total);
            }
            let mut rest = &buffer[..got];
            while !rest.is_empty() {
                let put = write(made, rest).map_err(CopyError::Target)?;
                *short += u64::from(put < rest.len());
                rest = &rest[put..];
            }
            total += got as u64;
            // A large file must not delay the stop.
            self.proceed()?;
        }
    }

    fn in_kernel(&self, source: &OwnedFd, made: &OwnedFd, size: u64) -> Result<u64, CopyError> {
        let mut copied = 0;
        while copied < size {
            match copy_file_range(source, None, made, None, KERNEL_BYTES) {
                // 0 before the end: the file has shrunk, or its file system (as procfs) does not
                // say its size.
                Ok(0) => return Err(CopyError::Cut { copied, size }),
                Ok(bytes) => copied += bytes as u64,
                Err(errno) => return Err(CopyError::Target(errno)),
            }
            self.proceed()?;
        }
        Ok(copied)
    }

    fn proceed(&self) -> Result<(), CopyError> {
        if self.control.stopped() {
            Err(CopyError::Stopped)
        } else {
            Ok(())
        }
    }
}
