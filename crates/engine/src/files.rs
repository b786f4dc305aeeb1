//! Many small files in a few directories, and what is done to their names: make, look up, rename,
//! link, list and remove, one call at a time.
//!
//! Everything about a file (names, directory, size, content) follows from its number and the seed,
//! so that nothing is kept per file and a later phase, or a later process, finds the files again.
//! File `i` of `n` lies in directory `i * directories / n`, and each thread works on a contiguous
//! range of the order. In order of creation, threads therefore share a directory only where there
//! are fewer directories than threads.
//!
//! Calls are plain system calls relative to directory descriptors opened before the clock starts,
//! in a descriptor table of the thread's own: the cheapest way there is. `examples/floor_files.rs`
//! measures it. CPU time of one create, stat and unlink over that of a bare loop of the same calls
//! (Linux 6.18 on two busy cores; medians of 7 interleaved rounds; the range is over empty and
//! 4 KiB files in one and in 64 directories; 20,000 files, on XFS 5,000; the phases with all that
//! they set up):
//!
//! | | tmpfs | ext4 | XFS |
//! |---|---|---|---|
//! | whole paths | 1.09 … 1.13 | 1.04 … 1.06 | 1.03 … 1.07 |
//! | io_uring, 32 at once | 1.65 … 1.80 | 1.31 … 1.37 | 1.24 … 1.35 |
//! | these phases | 1.00 … 1.06 | 1.00 … 1.03 | 0.99 … 1.06 |
//!
//! So a ring is not offered here: the kernel passes every such call to a worker thread, which costs
//! more than the system call. For parallel calls, use threads.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::calls::flush;
use crate::control::Control;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::shape::Permutation;
use crate::spec::Content;
use crate::worker_pool::{ClosingWork, Halt, PhaseOptions, Worker, WorkerPool, fault, refusal};
use name::{NameBuffer, NameKind, directory_name};
use stackrace_system::draw::{derive, unit};

mod directories;
mod entries;
mod name;
mod whole;

/// Directories up to which each has its own descriptor. Beyond, names are looked up from the
/// root, one component deeper, so that the usual limit of 1,024 open files is never met.
const DESCRIPTORS_MAX: u32 = 512;
/// Most directories a set may have: their names have so many digits.
pub const DIRECTORIES_MAX: u32 = 1_000_000;

/// Purposes of the seed besides names and content: sizes, and the random order.
const SIZES: u64 = 0x7369_7a65_0000_0000;
const ORDER: u64 = 0x6f72_6465_7200_0000;

/// Durability of the end of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtEnd {
    /// The phase is over when the last call has returned; nothing is flushed.
    #[default]
    Return,
    /// The file system is flushed (`syncfs`; `fsync` for a single file) inside the phase's time,
    /// recorded as one [`Op::Fsync`].
    Durable,
}

impl AtEnd {
    /// Refuses what this system cannot do, before anything is touched at `path`.
    pub(crate) fn check(self, path: &Path) -> Result<(), OpError> {
        if self == AtEnd::Return || stackrace_system::FLUSHES_AND_COPIES {
            return Ok(());
        }
        let what = stackrace_system::lacking("a call that flushes one file system (syncfs)");
        let detail = format!("{what}; end without it (sync-at-end = false)");
        Err(refusal(Op::Fsync, path, Errno::OPNOTSUPP, detail))
    }
}

/// The order in which files are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitOrder {
    /// Order of creation, directory after directory.
    Creation,
    /// Each once, in a random order that follows from the seed.
    Random,
}

/// One pass over a set: how it goes, ends and is watched.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// Order in which files, or directories, are visited.
    pub order: VisitOrder,
    /// Durability of the end.
    pub at_end: AtEnd,
    /// Width of one step of the time series, ns.
    pub slice_ns: u64,
    /// Control for stopping and watching.
    pub control: &'a Control,
}

/// The place to which renaming moves a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RenameTo {
    /// Another name in the same directory.
    #[default]
    SameDirectory,
    /// A name in the next directory, from the last in the first.
    NextDirectory,
}

/// The current names of a set's files. After a phase that changes them, the caller updates this
/// before the next phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CurrentNames {
    /// The place of a renamed file.
    pub rename_to: RenameTo,
    /// The files were renamed.
    pub renamed: bool,
    /// The files have a second name each.
    pub linked: bool,
}

/// A set of small files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSet {
    /// The directory that holds the set's directories. It must exist.
    pub root: PathBuf,
    /// Number of directories, 1 … [`DIRECTORIES_MAX`].
    pub directories: u32,
    /// Number of files over all directories, at least 1.
    pub files: u64,
    /// Smallest size, bytes.
    pub size_min: u64,
    /// Largest size, bytes. Sizes are log-uniform between the two; both 0 means empty files.
    pub size_max: u64,
    /// Threads, at least 1.
    pub threads: u32,
    /// Calls fsync on each file before it is closed, as part of its creation.
    pub fsync_each: bool,
    /// Content that is written.
    pub content: Content,
    /// Names that the files have by now.
    pub names: CurrentNames,
    /// Names, sizes, content and random order follow from it.
    pub seed: u64,
}

impl FileSet {
    /// Bytes of file `index`.
    pub fn size(&self, index: u64) -> u64 {
        if self.size_min >= self.size_max {
            return self.size_min;
        }
        // Log-uniform on [min + 1, max + 2), less one: the shift admits empty files.
        let low = (self.size_min as f64 + 1.0).ln();
        let high = (self.size_max as f64 + 2.0).ln();
        let share = unit(derive(derive(self.seed, SIZES), index));
        let size = (low + share * (high - low)).exp() - 1.0;
        (size as u64).clamp(self.size_min, self.size_max)
    }

    /// Bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        (0..self.files).map(|index| self.size(index)).sum()
    }

    /// Every file's path as [`FileSet::names`] has it, second names left out, in order of creation.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.files).map(|index| self.path(index, self.present()))
    }

    /// Every directory's path below the root.
    pub fn directory_paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.directories).map(|directory| self.root.join(directory_name(directory)))
    }

    /// The name the files go by.
    fn present(&self) -> NameKind {
        if self.names.renamed {
            NameKind::Renamed
        } else {
            NameKind::Made
        }
    }

    fn path(&self, index: u64, which: NameKind) -> PathBuf {
        let mut name = NameBuffer::new();
        let directory = self.directory(index, which);
        let name = name.write(self.seed ^ index, which, Some(directory));
        self.root.join(OsStr::from_bytes(name.to_bytes()))
    }

    /// The directory one name of a file lies in.
    fn directory(&self, index: u64, which: NameKind) -> u32 {
        let made = u128::from(index) * u128::from(self.directories) / u128::from(self.files);
        match (which, self.names.rename_to) {
            (NameKind::Renamed, RenameTo::NextDirectory) => (made as u32 + 1) % self.directories,
            _ => made as u32,
        }
    }

    /// Makes the directories below the root; those that exist already stay. Not measured.
    ///
    /// # Errors
    /// The set makes no sense, the root does not exist, or a directory cannot be made.
    pub fn prepare(&self) -> Result<(), OpError> {
        let root = self.open_root(Op::Mkdir)?;
        for directory in 0..self.directories {
            let name = directory_name(directory);
            match mkdirat(&root, &name, Mode::from_raw_mode(0o755)) {
                // A set may be prepared again.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(fault(Op::Mkdir, &self.root.join(name), errno)),
            }
        }
        Ok(())
    }

    /// Visits the numbers below `count` with `visit`, each once, on as many threads as the set has.
    /// `make` makes what each thread needs for itself, before the clock starts.
    fn pass<T: Send>(
        &self,
        (op, count): (Op, u64),
        handles: &Handles,
        pass: Pass<'_>,
        make: impl Fn() -> Result<T, OpError>,
        visit: impl Fn(u64, &mut T, &mut Worker<'_>) -> Result<(), Halt> + Sync,
    ) -> Result<PhaseOutcome, OpError> {
        pass.at_end.check(&self.root)?;
        let order = match pass.order {
            VisitOrder::Creation => None,
            VisitOrder::Random => Some(Permutation::new(count, derive(self.seed, ORDER))),
        };
        let share = |thread: u32| {
            (u128::from(count) * u128::from(thread) / u128::from(self.threads)) as u64
        };
        let part = |thread| Ok((share(thread)..share(thread + 1), make()?));
        let parts = (0..self.threads).map(part).collect::<Result<_, _>>()?;
        let work = |(range, mut own): (std::ops::Range<u64>, T), worker: &mut Worker<'_>| {
            for position in range {
                worker.proceed()?;
                let index = match &order {
                    // No table of the order: memory must not grow with the number of files.
                    None => position,
                    Some(order) => order.apply(position),
                };
                visit(index, &mut own, worker)?;
            }
            Ok(())
        };
        let sync = |worker: &mut Worker<'_>| flush(worker, handles.root(), &self.root);
        let workers = WorkerPool {
            watch: PhaseOptions {
                slice_ns: pass.slice_ns,
                control: pass.control,
                ops: &[op],
            },
            why: handles.why(),
            root: &self.root,
            keep: Some(&handles.0),
        };
        let close: Option<ClosingWork<'_>> = match pass.at_end {
            AtEnd::Return => None,
            AtEnd::Durable => Some(&sync),
        };
        // SAFETY: a part of the pass uses the handles, the descriptors of `keep`, and what it opens.
        unsafe { workers.together(parts, work, close) }
    }

    fn open_root(&self, op: Op) -> Result<OwnedFd, OpError> {
        let wrong = if self.directories == 0 || self.directories > DIRECTORIES_MAX {
            format!(
                "{} directories: must be 1 to {DIRECTORIES_MAX}",
                self.directories
            )
        } else if self.files == 0 || self.threads == 0 {
            "files and threads must be at least 1".to_owned()
        } else if self.size_min > self.size_max {
            format!(
                "smallest size {} is above the largest, {}",
                self.size_min, self.size_max
            )
        } else {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return openat(CWD, &self.root, flags, Mode::empty())
                .map_err(|errno| fault(op, &self.root, errno));
        };
        Err(refusal(op, &self.root, Errno::INVAL, wrong))
    }

    /// The root's descriptor alone.
    fn open(&self, op: Op) -> Result<Handles, OpError> {
        Ok(Handles(vec![self.open_root(op)?]))
    }

    /// The root's descriptor and, unless there are too many, one of each directory.
    fn open_each(&self, op: Op) -> Result<Handles, OpError> {
        let mut all = self.open(op)?.0;
        if self.directories <= DESCRIPTORS_MAX {
            // A place is enough to look names up from, and needs no right to read the directory.
            let flags = stackrace_system::PLACE_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            for path in self.directory_paths() {
                let name = path.file_name().unwrap_or_default();
                let fd = openat(&all[0], name, flags, Mode::empty());
                all.push(fd.map_err(|errno| fault(op, &path, errno))?);
            }
        }
        Ok(Handles(all))
    }
}

/// Descriptors to look names up from: the root's, then each directory's or none.
struct Handles(Vec<OwnedFd>);

impl Handles {
    fn root(&self) -> &OwnedFd {
        &self.0[0]
    }

    /// Directory to begin a look-up in this directory at. `None` means the root, with the directory's name.
    fn directory(&self, directory: u32) -> Option<BorrowedFd<'_>> {
        self.0.get(directory as usize + 1).map(AsFd::as_fd)
    }

    /// One name of a file, spelled out in `room`.
    fn entry<'a>(
        &'a self,
        set: &FileSet,
        index: u64,
        which: NameKind,
        room: &'a mut NameBuffer,
    ) -> EntryPath<'a> {
        let number = set.directory(index, which);
        let directory = self.directory(number);
        EntryPath {
            name: room.write(
                set.seed ^ index,
                which,
                directory.is_none().then_some(number),
            ),
            directory: directory.unwrap_or(self.root().as_fd()),
        }
    }

    fn why(&self) -> String {
        let from = if self.0.len() == 1 {
            "the root's"
        } else {
            "each directory's own"
        };
        format!("file operations are plain calls relative to {from} descriptor")
    }
}

/// The place in which a name of a file is looked up.
struct EntryPath<'a> {
    directory: BorrowedFd<'a>,
    /// Name, relative to `directory`.
    name: &'a CStr,
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
