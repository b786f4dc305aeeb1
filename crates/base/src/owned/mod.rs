//! Files that this program obeys: reached through directories it holds open, and only where no other
//! user can have written them.
//!
//! The store has journals that say what to remove, and logs that say what to do again. Whatever is in
//! it is opened here and nowhere else (`tests/tidy` checks that): name by name from a directory that is
//! held, never through a link, and only as a regular file, so that a FIFO cannot block. For root,
//! every directory on the way and the file itself must be root's own and not writable by others: a
//! user who could write one of them could make root do anything. Other users may read what others
//! wrote, but obey only what is their own.

mod error;
pub mod held;

use std::collections::VecDeque;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use stackrace_system::{PLACE_ONLY, mode_of};

pub use error::OwnError;

/// Beginning of the paths of directories that this process holds open (proc_pid_fd(5)).
const DESCRIPTORS: &str = "/proc/self/fd/";

/// Beginning of the names of what this program makes in directories that the user named.
const MADE: &[u8] = b".stackrace-";

/// Most links that are followed on the way to a directory.
const LINKS_MAX: usize = 40;

/// Deepest directory that is walked into when a tree is removed; one handle is open for each.
const DEPTH_MAX: u32 = 256;

/// Bits of a mode that let other users write.
const OTHERS_WRITE: u32 = 0o022;
/// Bit of a directory in which each user can remove only what is the user's own.
const STICKY: u32 = 0o1000;

/// A directory that is held open.
#[derive(Debug)]
pub struct OwnDir {
    handle: OwnedFd,
    /// Path without links.
    path: PathBuf,
}

/// State of a file; it differs whenever the file was written or exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Length, bytes.
    pub bytes: u64,
    /// Time of the last change of its content, ns since 1970.
    pub modified_ns: i64,
    /// Time of the last change of anything about it, ns since 1970. No program can choose it.
    pub changed_ns: i64,
    /// Number in its file system.
    pub inode: u64,
}

/// Rule on the links that are followed, and the directories that are walked through, on the way to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through any directory; for root, links only of its own.
    OwnLinks,
    /// For root, also only through directories in which no other user can put another one.
    OwnDirectories,
}

impl OwnDir {
    /// Opens a directory; links above it are followed where they are root's or the user's own.
    ///
    /// # Errors
    /// It is not there, or for root: another user can write it, or a directory on the way.
    pub fn open(path: &Path) -> Result<Self, OwnError> {
        Self::walk(path, Way::OwnDirectories, false)?.checked(is_strict())
    }

    /// Opens a directory that is made where it is missing, with those above it, for the user alone.
    ///
    /// # Errors
    /// As [`OwnDir::open`]; it cannot be made.
    pub fn open_or_make(path: &Path) -> Result<Self, OwnError> {
        Self::walk(path, Way::OwnDirectories, true)?.checked(is_strict())
    }

    /// Opens the directory that a path lies in, whichever user's it is; the name of the path in it.
    ///
    /// # Errors
    /// It is not there, or for root: it is reached through a link of another user's.
    pub fn around(path: &Path) -> Result<(Self, OsString), OwnError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(OwnError::system("find", path, Errno::INVAL));
        };
        Ok((Self::walk(parent, Way::OwnLinks, false)?, name.to_owned()))
    }

    /// Path of a directory, without links.
    ///
    /// # Errors
    /// As [`OwnDir::around`].
    pub fn way_to(path: &Path) -> Result<PathBuf, OwnError> {
        Ok(Self::walk(path, Way::OwnLinks, false)?.path)
    }

    /// Goes from the root to a directory, name by name.
    fn walk(path: &Path, way: Way, make: bool) -> Result<Self, OwnError> {
        let whole = std::path::absolute(path).map_err(|e| OwnError::system("find", path, e))?;
        let (mut here, mut names) = Self::start(&whole)?;
        let mut links = 0;
        // Below what this program made nothing is a link, also where it is of root: the owner of a directory can rename
        // any link in it, root's too, to the name of what lay there.
        let mut made = whole.starts_with(DESCRIPTORS);
        while let Some(name) = names.pop_front() {
            let at = here.path.join(&name);
            let found = match here.handle_of(&name) {
                // A link that leads nowhere was opened above: only a name that is free is made.
                Err(error) if make && error.is_missing() => {
                    here.make_or_find(&name)?;
                    here.handle_of(&name)?
                }
                other => other?,
            };
            let about = stat(&found, &at)?;
            made |= name.as_bytes().starts_with(MADE);
            match FileType::from_raw_mode(about.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    if made || links > LINKS_MAX || (is_strict() && !is_mine_or_roots(&about)) {
                        return Err(OwnError::Link { path: at });
                    }
                    let target = rustix::fs::readlinkat(&found, "", Vec::new())
                        .map_err(|error| OwnError::system("read the link", &at, error))?;
                    let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
                    // Each name of the target is looked at like those of the path itself.
                    if target.is_absolute() {
                        here = Self::root()?;
                    }
                    let rest = std::mem::replace(&mut names, parts(&target));
                    names.extend(rest);
                }
                FileType::Directory => {
                    let last = names.is_empty();
                    // The last one is checked by who asked: it may only have to be readable.
                    if way == Way::OwnDirectories && is_strict() && !last {
                        check_above(&about, &at)?;
                    }
                    here = match name == ".." {
                        true => Self {
                            path: here.path.parent().unwrap_or(&here.path).to_path_buf(),
                            handle: found,
                        },
                        false => Self {
                            path: at,
                            handle: found,
                        },
                    };
                }
                _ => return Err(OwnError::system("open", &at, Errno::NOTDIR)),
            }
        }
        here.readable()
    }

    /// Beginning of the way of a path, and the names that follow: at a directory that this process
    /// holds, or at the root.
    fn start(path: &Path) -> Result<(Self, VecDeque<OsString>), OwnError> {
        let Ok(inside) = path.strip_prefix(DESCRIPTORS) else {
            return Ok((Self::root()?, parts(path)));
        };
        let mut names = parts(inside);
        let number = names.pop_front().unwrap_or_default();
        let path = Path::new(DESCRIPTORS).join(number);
        // The kernel follows it to what is held. Its text names where that lies, which another user
        // may have changed.
        let flags = PLACE_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|error| OwnError::system("open", &path, error))?;
        Ok((Self { handle, path }, names))
    }

    fn root() -> Result<Self, OwnError> {
        let path = PathBuf::from("/");
        let flags = PLACE_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|error| OwnError::system("open", &path, error))?;
        Ok(Self { handle, path })
    }

    /// A handle of what has a name, of whatever kind; nothing can be read through it.
    fn handle_of(&self, name: &OsStr) -> Result<OwnedFd, OwnError> {
        let flags = PLACE_ONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, name, flags, Mode::empty())
            .map_err(|error| OwnError::system("open", &self.path.join(name), error))
    }

    /// The same directory with a handle that lists and syncs.
    fn readable(self) -> Result<Self, OwnError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Not by its path, which may lead elsewhere by now.
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())
            .map_err(|error| OwnError::system("open", &self.path, error))?;
        Ok(Self { handle, ..self })
    }

    fn checked(self, strictly: bool) -> Result<Self, OwnError> {
        if strictly {
            check_own(&stat(&self.handle, &self.path)?, &self.path)?;
        }
        Ok(self)
    }

    /// Says that what is in this directory will be obeyed.
    ///
    /// # Errors
    /// It is another user's, or others may write it.
    pub fn obeyed(self) -> Result<Self, OwnError> {
        self.checked(true)
    }

    /// Path of the directory, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in this one.
    ///
    /// # Errors
    /// It is not there, is a link, or for root: another user can write it.
    pub fn dir(&self, name: impl AsRef<OsStr>) -> Result<Self, OwnError> {
        self.dir_of_any(name.as_ref())?.checked(is_strict())
    }

    /// A directory in this one, whichever user's it is.
    ///
    /// # Errors
    /// It is not there, or is a link.
    fn dir_of_any(&self, name: &OsStr) -> Result<Self, OwnError> {
        let path = self.path_of(name)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())
            .map_err(|error| self.not_opened(name, &path, error))?;
        Ok(Self { handle, path })
    }

    /// Makes a directory in this one, for the user alone, and opens it.
    ///
    /// # Errors
    /// Something of that name is there, or the system refuses.
    pub fn make_dir(&self, name: impl AsRef<OsStr>) -> Result<Self, OwnError> {
        self.make(name.as_ref())?;
        self.dir(name)
    }

    /// A directory in this one, made where it is missing. Errors: as [`OwnDir::dir`] and [`OwnDir::make_dir`].
    pub fn dir_or_make(&self, name: impl AsRef<OsStr>) -> Result<Self, OwnError> {
        let found = self.dir(name.as_ref());
        if !found.as_ref().is_err_and(OwnError::is_missing) {
            return found;
        }
        self.make_or_find(name.as_ref())?;
        self.dir(name)
    }

    /// Makes a directory unless another process was faster.
    fn make_or_find(&self, name: &OsStr) -> Result<(), OwnError> {
        let there = io::ErrorKind::AlreadyExists;
        self.make(name).or_else(|error| match &error {
            OwnError::System { source, .. } if source.kind() == there => Ok(()),
            _ => Err(error),
        })
    }

    /// Makes a directory in this one, for the user alone.
    ///
    /// # Errors
    /// As [`OwnDir::make_dir`].
    pub fn make(&self, name: &OsStr) -> Result<(), OwnError> {
        let path = self.path_of(name)?;
        rustix::fs::mkdirat(&self.handle, name, Mode::RWXU)
            .map_err(|error| OwnError::system("create", &path, error))
    }

    /// The path of a name in it; a name that leads elsewhere is refused.
    fn path_of(&self, name: &OsStr) -> Result<PathBuf, OwnError> {
        let path = self.path.join(name);
        match Path::new(name).components().collect::<Vec<_>>()[..] {
            // `a/.` has one component too, and is another text.
            [Component::Normal(one)] if one == name => Ok(path),
            _ => Err(OwnError::system("open", &path, Errno::INVAL)),
        }
    }

    /// Reason a name could not be opened; the system has one error for several reasons.
    fn not_opened(&self, name: &OsStr, path: &Path, error: Errno) -> OwnError {
        let found = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW);
        let path = path.to_path_buf();
        match found.map(|about| FileType::from_raw_mode(about.st_mode)) {
            Ok(FileType::Symlink) => OwnError::Link { path },
            // A socket, and a FIFO without a reader, cannot be opened at all.
            Ok(FileType::Fifo | FileType::Socket) => OwnError::NoFile { path },
            _ => OwnError::system("open", &path, error),
        }
    }

    fn file(&self, name: &OsStr, flags: OFlags, obeyed: bool) -> Result<File, OwnError> {
        let path = self.path_of(name)?;
        // NONBLOCK: the open of a FIFO would wait for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| self.not_opened(name, &path, error))?;
        // Of what is open, not of the name: between the two, another file could take its place.
        let about = stat(&handle, &path)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(OwnError::NoFile { path });
        }
        // A file that was just made is this user's, whatever owner the file system says it has: NFS may map
        // root to another user.
        if !flags.contains(OFlags::EXCL) && (obeyed || is_strict()) {
            check_own(&about, &path)?;
        }
        Ok(File::from(handle))
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    /// It is not there, is no regular file, or for root: another user can write it.
    pub fn read(&self, name: &str) -> Result<File, OwnError> {
        self.file(name.as_ref(), OFlags::RDONLY, false)
    }

    /// Opens a file to read what is then obeyed.
    ///
    /// # Errors
    /// As [`OwnDir::read`]; it is another user's, or others may write it.
    pub fn read_to_obey(&self, name: &str) -> Result<File, OwnError> {
        self.file(name.as_ref(), OFlags::RDONLY, true)
    }

    /// All bytes of a file.
    ///
    /// # Errors
    /// As [`OwnDir::read`].
    pub fn read_all(&self, name: &str) -> Result<Vec<u8>, OwnError> {
        let mut bytes = Vec::new();
        self.read(name)?
            .read_to_end(&mut bytes)
            .map_err(|error| OwnError::system("read", &self.path.join(name), error))?;
        Ok(bytes)
    }

    /// Makes a file for the user alone, to read it and to write at its end.
    ///
    /// # Errors
    /// Something of that name is there, or the system refuses.
    pub fn create(&self, name: &str) -> Result<File, OwnError> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        self.file(name.as_ref(), flags, true)
    }

    /// Makes a file for the user alone, to be written over.
    ///
    /// # Errors
    /// As [`OwnDir::create`].
    pub fn create_to_overwrite(&self, name: impl AsRef<OsStr>) -> Result<File, OwnError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.file(name.as_ref(), flags, true)
    }

    /// Puts a file for the user alone where one may be already. At any instant, also after a power
    /// failure, the name is that of the old file or of the new one, and either is whole.
    ///
    /// # Errors
    /// The system refuses; the old file is still there then.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), OwnError> {
        let part = format!(".{name}.{}", std::process::id());
        // Left by a process that was killed and had the same number.
        self.remove_file(&part)?;
        let mut file = self.create(&part)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| {
            let here = &self.handle;
            Ok(rustix::fs::renameat(here, &part, here, name)?)
        });
        if let Err(error) = renamed {
            // Of the two errors the first says more.
            let _ = self.remove_file(&part);
            return Err(OwnError::system(
                "write",
                &self.path_of(name.as_ref())?,
                error,
            ));
        }
        self.sync()
    }

    /// Opens a file to read it and to write at its end; `make`: where it is missing, it is made.
    ///
    /// # Errors
    /// It is another user's, others may write it, it is no regular file, or the system refuses.
    pub fn append(&self, name: &str, make: bool) -> Result<File, OwnError> {
        let create = if make {
            OFlags::CREATE
        } else {
            OFlags::empty()
        };
        let file = self.file(name.as_ref(), OFlags::RDWR | OFlags::APPEND | create, true)?;
        // Who can open a file can lock it, and a lock would stop its owner.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(|error| {
            OwnError::system("keep others out of", &self.path.join(name), error)
        })?;
        Ok(file)
    }

    /// Returns true if something of a name is there, of whatever kind.
    pub fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// State of a regular file, which is not opened. Returns `None` if there is none of that name.
    pub fn state(&self, name: &str) -> Option<FileState> {
        let about = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let ns = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
        let state = FileState {
            bytes: about.st_size as u64,
            modified_ns: ns(about.st_mtime as i64, about.st_mtime_nsec as i64),
            changed_ns: ns(about.st_ctime as i64, about.st_ctime_nsec as i64),
            inode: about.st_ino as u64,
        };
        (FileType::from_raw_mode(about.st_mode) == FileType::RegularFile).then_some(state)
    }

    /// Names in it, sorted.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>, OwnError> {
        let failed = |error: Errno| OwnError::system("list", &self.path, error);
        let names = names(self.handle.as_fd()).map_err(failed)?.into_iter();
        let names = names.map(|name| OsStr::from_bytes(name.as_bytes()).to_owned());
        let mut names: Vec<OsString> = names.collect();
        names.sort();
        Ok(names)
    }

    /// Removes a file, or a link itself; one that is not there is fine.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<(), OwnError> {
        self.remove(name.as_ref(), AtFlags::empty())
    }

    /// Removes an empty directory; one that is not there is fine.
    ///
    /// # Errors
    /// The system refuses, or it is not empty.
    pub fn remove_dir(&self, name: impl AsRef<OsStr>) -> Result<(), OwnError> {
        self.remove(name.as_ref(), AtFlags::REMOVEDIR)
    }

    fn remove(&self, name: &OsStr, flags: AtFlags) -> Result<(), OwnError> {
        let path = self.path_of(name)?;
        match rustix::fs::unlinkat(&self.handle, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(OwnError::system("remove", &path, error)),
        }
    }

    /// Removes a directory and all it holds; one that is not there is fine. A link is removed, never
    /// followed; another file system is never entered.
    ///
    /// # Errors
    /// It is a link itself, reaches another file system, or the system refuses.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> Result<(), OwnError> {
        let name = name.as_ref();
        let path = self.path_of(name)?;
        let failed = |error: io::Error| OwnError::system("remove", &path, error);
        let root = match open_below(self.handle.as_fd(), name) {
            Ok(root) => root,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(self.not_opened(name, &path, error)),
        };
        let device = stackrace_system::device_of(&stat(&root, &path)?);
        // The name may be another directory's when it is removed: that one has to be empty, too.
        empty(root.as_fd(), device, DEPTH_MAX).map_err(failed)?;
        self.remove_dir(name)
    }

    /// Makes the names in it durable.
    ///
    /// # Errors
    /// The system refuses.
    pub fn sync(&self) -> Result<(), OwnError> {
        rustix::fs::fsync(&self.handle).map_err(|error| OwnError::system("sync", &self.path, error))
    }
}

/// Returns true if this process has to distrust what other users own, also where it only reads.
fn is_strict() -> bool {
    rustix::process::geteuid().is_root()
}

fn is_mine_or_roots(about: &Stat) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&about.st_uid)
}

/// A directory on the way: its owner could put another one in the place of the next.
fn check_above(about: &Stat, path: &Path) -> Result<(), OwnError> {
    if mode_of(about) & STICKY != 0 && is_mine_or_roots(about) {
        return Ok(());
    }
    check_own(about, path)
}

/// Checks the owner and the mode of what is obeyed.
fn check_own(about: &Stat, path: &Path) -> Result<(), OwnError> {
    let path = path.to_path_buf();
    if !is_mine_or_roots(about) {
        let owner = about.st_uid;
        return Err(OwnError::Foreign { path, owner });
    }
    let mode = mode_of(about) & 0o7777;
    if mode & OTHERS_WRITE != 0 {
        return Err(OwnError::Writable { path, mode });
    }
    Ok(())
}

fn stat(handle: &OwnedFd, path: &Path) -> Result<Stat, OwnError> {
    rustix::fs::fstat(handle).map_err(|error| OwnError::system("look at", path, error))
}

/// The names of a path, without its root; `..` stays, for what is before it may be a link.
fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

fn names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

fn open_below(directory: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

fn empty(directory: BorrowedFd<'_>, device: u64, depth_left: u32) -> io::Result<()> {
    if depth_left == 0 {
        return Err(io::Error::other(format!(
            "it is deeper than {DEPTH_MAX} directories"
        )));
    }
    for name in names(directory)? {
        let found = match rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        // The name of a file goes from this directory, whatever device the file says it is on: an
        // overlay says that of the layer below. A file that is a mount point is busy.
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            rustix::fs::unlinkat(directory, &name, AtFlags::empty())?;
            continue;
        }
        // A mount, which is not the program's own to empty.
        if stackrace_system::device_of(&found) != device {
            return Err(io::Error::other(format!(
                "{} lies on another file system",
                name.to_string_lossy()
            )));
        }
        let below = open_below(directory, &name)?;
        if stackrace_system::device_of(&rustix::fs::fstat(&below)?) != device {
            return Err(io::Error::other("a directory was swapped on the way"));
        }
        empty(below.as_fd(), device, depth_left - 1)?;
        rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
