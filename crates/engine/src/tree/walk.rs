//! Going through a directory tree without ever leaving it.
//!
//! Each directory is opened relative to its parent's descriptor, never through a symbolic link,
//! and compared with the root by device and mount: a directory that was renamed or replaced
//! meanwhile cannot lead elsewhere, and neither can a mount point, bind mounts included.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::outcome::{Op, OpError};
use crate::worker_pool::{fault, refusal};
use stackrace_system::{RawDir, Statx, StatxAttributes, StatxFlags, kind_of, statx, statx_open};

/// Most directories one below the other; each keeps a descriptor open while it is gone through.
pub const DEPTH_MAX: usize = 256;
/// Bytes of directory entries asked for at once, as coreutils do.
const ROOM_BYTES: usize = 32 << 10;
/// Facts that are asked about a directory.
pub(super) const PLACE: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);

/// The result of a step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkStep {
    /// An entry of the directory: see [`Walk::current`].
    Entry(FileType),
    /// The end of a directory below the root: see [`Walk::leave`].
    Leave,
    /// The end of the root.
    Done,
}

/// The result of going down.
pub(super) enum Descent {
    /// The directory was entered and is to be read.
    Entered,
    /// The directory was not entered: it lies on another mount or file system. The error says so.
    Elsewhere(OpError),
}

/// A place in a tree.
pub(super) struct Walk {
    frames: Vec<Frame>,
    /// Path of the directory the innermost frame stands for.
    path: PathBuf,
    room: Vec<MaybeUninit<u8>>,
}

struct Frame {
    fd: OwnedFd,
    about: Statx,
    names: Names,
    /// Entries already given out.
    seen: usize,
}

/// The names in one directory, one after the other, each with its zero byte.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    ends: Vec<(usize, FileType)>,
}

impl Names {
    fn get(&self, index: usize) -> Option<(&CStr, FileType)> {
        let (end, kind) = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some((
            CStr::from_bytes_with_nul(&self.bytes[start..end]).ok()?,
            kind,
        ))
    }
}

fn open(parent: BorrowedFd<'_>, name: &CStr) -> Result<(OwnedFd, Statx), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(parent, name, flags, Mode::empty())?;
    let about = statx_open(&fd, PLACE)?;
    Ok((fd, about))
}

fn is_mount_root(about: &Statx) -> bool {
    about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}

impl Walk {
    /// Opens the root, which must be a directory and not a symbolic link to one.
    pub(super) fn open(root: &Path, op: Op) -> Result<Walk, OpError> {
        let name = rustix::path::Arg::into_c_str(root);
        let opened = name.and_then(|name| open(CWD, &name));
        let (fd, about) = opened.map_err(|errno| fault(op, root, errno))?;
        let frames = vec![Frame {
            fd,
            about,
            names: Names::default(),
            seen: 0,
        }];
        let room = vec![MaybeUninit::uninit(); ROOM_BYTES];
        Ok(Walk {
            frames,
            path: root.to_path_buf(),
            room,
        })
    }

    fn top(&self) -> &Frame {
        self.frames.last().expect("the root's frame is never left")
    }

    /// All that is known of the directory being gone through.
    pub(super) fn about(&self) -> &Statx {
        &self.top().about
    }

    /// Returns true if a file system is mounted at the root.
    pub(super) fn root_is_mount(&self) -> bool {
        is_mount_root(&self.frames[0].about)
    }

    /// Reads all names of the directory being gone through. Returns 0: no data was moved.
    pub(super) fn read(&mut self) -> Result<u64, Errno> {
        let frame = self
            .frames
            .last_mut()
            .expect("the root's frame is never left");
        // All names at once: what is made or removed meanwhile may or may not be listed
        // (readdir(3)).
        let mut entries = RawDir::new(&frame.fd, &mut self.room);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                frame
                    .names
                    .bytes
                    .extend_from_slice(name.to_bytes_with_nul());
                frame
                    .names
                    .ends
                    .push((frame.names.bytes.len(), entry.file_type()));
            }
        }
        Ok(0)
    }

    /// The next entry; its kind is looked up where the file system did not tell it.
    pub(super) fn next(&mut self) -> Result<WalkStep, OpError> {
        let inner = self.frames.len() > 1;
        let frame = self
            .frames
            .last_mut()
            .expect("the root's frame is never left");
        let Some((name, kind)) = frame.names.get(frame.seen) else {
            return Ok(if inner {
                WalkStep::Leave
            } else {
                WalkStep::Done
            });
        };
        // Some file systems do not fill in d_type.
        let kind = match kind {
            FileType::Unknown => {
                statx(&frame.fd, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE)
                    .map(|about| kind_of(u32::from(about.stx_mode)))
            }
            known => Ok(known),
        };
        frame.seen += 1;
        kind.map(WalkStep::Entry)
            .map_err(|errno| fault(Op::Stat, &self.current_path(), errno))
    }

    /// The entry given out last: the directory it is in, and its name there.
    pub(super) fn current(&self) -> (BorrowedFd<'_>, &CStr) {
        let frame = self.top();
        let entry = frame
            .seen
            .checked_sub(1)
            .and_then(|index| frame.names.get(index));
        (frame.fd.as_fd(), entry.map_or(c"", |(name, _)| name))
    }

    /// Path of the entry given out last.
    pub(super) fn current_path(&self) -> PathBuf {
        self.path
            .join(OsStr::from_bytes(self.current().1.to_bytes()))
    }

    /// A failure on the directory being gone through.
    pub(super) fn here(&self, op: Op, errno: Errno) -> OpError {
        fault(op, &self.path, errno)
    }

    /// A failure on the entry given out last.
    pub(super) fn at_current(&self, op: Op, errno: Errno) -> OpError {
        fault(op, &self.current_path(), errno)
    }

    /// Goes into the entry given out last, a directory, unless it lies elsewhere. It has no
    /// entries until [`Walk::read`] is called.
    pub(super) fn descend(&mut self, op: Op) -> Result<Descent, OpError> {
        let path = self.current_path();
        // Each level holds a descriptor open, and their number is limited.
        if self.frames.len() > DEPTH_MAX {
            let detail = format!("lies more than {DEPTH_MAX} directories deep: not entered");
            return Err(refusal(op, &path, Errno::LOOP, detail));
        }
        let (parent, name) = self.current();
        let (fd, about) = open(parent, name).map_err(|errno| fault(op, &path, errno))?;
        let root = &self.frames[0].about;
        // Mount numbers need Linux 5.8; before that the device alone decides.
        let known = root.stx_mask & about.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        if is_mount_root(&about) || (known && root.stx_mnt_id != about.stx_mnt_id) {
            let detail = "is a mount point: not entered";
            return Ok(Descent::Elsewhere(refusal(op, &path, Errno::XDEV, detail)));
        }
        // A subvolume of Btrfs has a device number of its own and is no mount point.
        let device = |about: &Statx| (about.stx_dev_major, about.stx_dev_minor);
        if device(root) != device(&about) {
            let detail = "lies on another file system or subvolume: not entered";
            return Ok(Descent::Elsewhere(refusal(op, &path, Errno::XDEV, detail)));
        }
        self.path = path;
        self.frames.push(Frame {
            fd,
            about,
            names: Names::default(),
            seen: 0,
        });
        Ok(Descent::Entered)
    }

    /// Goes up; the directory left is then the entry given out last. The root is never left.
    pub(super) fn leave(&mut self) {
        if self.frames.len() > 1 {
            self.frames.pop();
            self.path.pop();
        }
    }
}
