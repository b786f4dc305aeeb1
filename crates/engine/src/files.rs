//! Many small files in a few directories: create, stat, read and unlink them, one call at a time.
//!
//! Everything about a file (name, directory, size, content) follows from its number and the seed,
//! so that nothing is kept per file and a later phase, or a later process, finds the files again.
//! Calls are plain system calls relative to directory descriptors opened before the clock starts:
//! the cheapest way there is (absolute paths cost a quarter more; io_uring hands such calls to
//! kernel workers and costs half as much again).
//!
//! File `i` of `n` lies in directory `i * directories / n`, and each thread works on a contiguous
//! range of the order. In order of creation, threads therefore share a directory only where there
//! are fewer directories than threads.

use std::ffi::{CStr, OsStr};
use std::io::Write as _;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, mkdirat, openat, statx, unlinkat};
use rustix::io::Errno;

use crate::calls::{BUFFER_BYTES, close, flush, source, write_content};
use crate::content::FileContent;
use crate::control::Control;
use crate::crew::{Close, Halt, Hand, Watch, fault, refusal, together};
use crate::draw::{derive, scramble, unit};
use crate::outcome::{Op, OpError, Outcome};
use crate::shape::Permutation;
use crate::spec::Content;

/// Directories up to which each has its own descriptor. Beyond, names are looked up from the
/// root, one component deeper, so that the usual limit of 1,024 open files is never met.
const DESCRIPTORS_MAX: u32 = 512;
/// Most directories a set may have: their names have so many digits.
pub const DIRECTORIES_MAX: u32 = 1_000_000;

/// What follows from the seed besides names and content: sizes, and the random order.
const SIZES: u64 = 0x7369_7a65_0000_0000;
const ORDER: u64 = 0x6f72_6465_7200_0000;

/// Whether the end of a phase is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtEnd {
    /// The phase is over when the last call has returned; nothing is flushed.
    #[default]
    Return,
    /// The file system is flushed (`syncfs`; `fsync` for a single file) inside the phase's time,
    /// recorded as one [`Op::Fsync`].
    Durable,
}

/// In which order files are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were created, directory after directory.
    Creation,
    /// Each once, in a random order that follows from the seed.
    Random,
}

/// A set of small files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSet {
    /// The directory that holds the set's directories. It must exist.
    pub root: PathBuf,
    /// How many directories, 1 … [`DIRECTORIES_MAX`].
    pub directories: u32,
    /// How many files over all directories, at least 1.
    pub files: u64,
    /// Smallest size, bytes.
    pub size_min: u64,
    /// Largest size, bytes. Sizes are log-uniform between the two; both 0 means empty files.
    pub size_max: u64,
    /// Threads, at least 1.
    pub threads: u32,
    /// Call fsync on each file before it is closed, as part of its creation.
    pub fsync_each: bool,
    /// What is written.
    pub content: Content,
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

    /// Every file's path, in order of creation.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.files).map(|index| self.path(index))
    }

    /// Every directory's path below the root.
    pub fn directory_paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.directories).map(|directory| self.root.join(directory_name(directory)))
    }

    fn path(&self, index: u64) -> PathBuf {
        let mut name = Name::new();
        let name = name.write(self, index, true);
        self.root.join(OsStr::from_bytes(name.to_bytes()))
    }

    fn directory(&self, index: u64) -> u32 {
        (u128::from(index) * u128::from(self.directories) / u128::from(self.files)) as u32
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
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(fault(Op::Mkdir, &self.root.join(name), errno)),
            }
        }
        Ok(())
    }

    /// Removes the directories below the root, which must be empty. Not measured.
    ///
    /// # Errors
    /// A directory is not there or not empty.
    pub fn retire(&self) -> Result<(), OpError> {
        let root = self.open_root(Op::Rmdir)?;
        for directory in 0..self.directories {
            let name = directory_name(directory);
            unlinkat(&root, &name, AtFlags::REMOVEDIR)
                .map_err(|errno| fault(Op::Rmdir, &self.root.join(name), errno))?;
        }
        Ok(())
    }

    /// Creates every file: open (it must not exist), write, fsync if asked for, close. One
    /// [`Op::Create`] each, bytes being its size.
    ///
    /// # Errors
    /// Nothing was measured: the set makes no sense, a directory is missing, no thread could be
    /// started. A failing operation is found in [`Outcome::error`] instead.
    pub fn create(
        &self,
        at_end: AtEnd,
        slice_ns: u64,
        control: &Control,
    ) -> Result<Outcome, OpError> {
        let ops = [Op::Create, Op::Fsync];
        let watch = Watch {
            slice_ns,
            control,
            ops: &ops,
        };
        let make = || source(self.content, self.seed, &self.root);
        self.phase(
            watch,
            Order::Creation,
            at_end,
            make,
            |file, content, hand| {
                let (set, index) = (self, file.index);
                let size = set.size(index);
                let mut short = 0;
                let done = hand.time(Op::Create, || {
                    set.create_one(file, size, content, &mut short)
                });
                (0..short).for_each(|_| hand.count_short());
                done.map(drop)
                    .map_err(|errno| fault(Op::Create, &set.path(index), errno).into())
            },
        )
    }

    fn create_one(
        &self,
        file: &File<'_>,
        size: u64,
        content: &mut FileContent,
        short: &mut u64,
    ) -> Result<u64, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = openat(file.directory, file.name, flags, Mode::from_raw_mode(0o644))?;
        let write = |part: &[u8]| rustix::io::write(&fd, part);
        write_content(write, file.index, size, content, short)?;
        if self.fsync_each {
            rustix::fs::fsync(&fd)?;
        }
        close(fd)?;
        Ok(size)
    }

    /// Asks for the attributes of every file, one [`Op::Stat`] each.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn stat(&self, order: Order, slice_ns: u64, control: &Control) -> Result<Outcome, OpError> {
        let ops = [Op::Stat];
        let watch = Watch {
            slice_ns,
            control,
            ops: &ops,
        };
        self.phase(
            watch,
            order,
            AtEnd::Return,
            || Ok(()),
            |file, (), hand| {
                let size = hand.time(Op::Stat, || {
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    let found = statx(file.directory, file.name, flags, StatxFlags::BASIC_STATS)?;
                    std::hint::black_box(found.stx_size);
                    Ok(0)
                });
                size.map(drop)
                    .map_err(|errno| fault(Op::Stat, &self.path(file.index), errno).into())
            },
        )
    }

    /// Opens every file, reads it whole and closes it: one [`Op::Open`] each, bytes being what was
    /// read. A file that is not as long as it was made is a failure.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn read(&self, order: Order, slice_ns: u64, control: &Control) -> Result<Outcome, OpError> {
        let ops = [Op::Open];
        let watch = Watch {
            slice_ns,
            control,
            ops: &ops,
        };
        let make = || Ok(vec![0u8; BUFFER_BYTES]);
        self.phase(watch, order, AtEnd::Return, make, |file, buffer, hand| {
            let found = hand.time(Op::Open, || read_whole(file, buffer));
            let found = found.map_err(|errno| fault(Op::Open, &self.path(file.index), errno))?;
            let made = self.size(file.index);
            if found != made {
                let detail = format!("holds {found} bytes where {made} were written");
                return Err(refusal(Op::Open, &self.path(file.index), Errno::IO, detail).into());
            }
            Ok(())
        })
    }

    /// Removes every file, one [`Op::Unlink`] each. The directories stay: see
    /// [`FileSet::retire`].
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn unlink(
        &self,
        order: Order,
        at_end: AtEnd,
        slice_ns: u64,
        control: &Control,
    ) -> Result<Outcome, OpError> {
        let ops = [Op::Unlink, Op::Fsync];
        let watch = Watch {
            slice_ns,
            control,
            ops: &ops,
        };
        self.phase(
            watch,
            order,
            at_end,
            || Ok(()),
            |file, (), hand| {
                let done = hand.time(Op::Unlink, || {
                    unlinkat(file.directory, file.name, AtFlags::empty()).map(|()| 0)
                });
                done.map(drop)
                    .map_err(|errno| fault(Op::Unlink, &self.path(file.index), errno).into())
            },
        )
    }

    /// Visits every file with `visit`, on as many threads as the set has. `make` makes what each
    /// thread needs for itself, before the clock starts.
    fn phase<T: Send>(
        &self,
        watch: Watch<'_>,
        order: Order,
        at_end: AtEnd,
        make: impl Fn() -> Result<T, OpError>,
        visit: impl Fn(&File<'_>, &mut T, &mut Hand<'_>) -> Result<(), Halt> + Sync,
    ) -> Result<Outcome, OpError> {
        let handles = self.open(watch.ops[0])?;
        let order = match order {
            Order::Creation => None,
            Order::Random => Some(Permutation::new(self.files, derive(self.seed, ORDER))),
        };
        let share = |thread: u32| {
            (u128::from(self.files) * u128::from(thread) / u128::from(self.threads)) as u64
        };
        let part = |thread| Ok((share(thread)..share(thread + 1), make()?));
        let parts = (0..self.threads).map(part).collect::<Result<_, _>>()?;
        let work = |(range, mut own): (std::ops::Range<u64>, T), hand: &mut Hand<'_>| {
            let mut name = Name::new();
            for position in range {
                hand.proceed()?;
                let index = order
                    .as_ref()
                    .map_or(position, |order| order.apply(position));
                let (directory, within) = handles.directory(self.directory(index));
                let name = name.write(self, index, within);
                visit(
                    &File {
                        index,
                        directory,
                        name,
                    },
                    &mut own,
                    hand,
                )?;
            }
            Ok(())
        };
        let sync = |hand: &mut Hand<'_>| flush(hand, &handles.root, &self.root);
        let close: Option<Close<'_>> = match at_end {
            AtEnd::Return => None,
            AtEnd::Durable => Some(&sync),
        };
        together(watch, handles.why(), &self.root, parts, work, close)
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

    fn open(&self, op: Op) -> Result<Handles, OpError> {
        let root = self.open_root(op)?;
        let mut each = Vec::new();
        if self.directories <= DESCRIPTORS_MAX {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            for directory in 0..self.directories {
                let name = directory_name(directory);
                let fd = openat(&root, &name, flags, Mode::empty())
                    .map_err(|errno| fault(op, &self.root.join(name), errno))?;
                each.push(fd);
            }
        }
        Ok(Handles { root, each })
    }
}

/// The descriptors of a set's directories.
struct Handles {
    root: OwnedFd,
    /// One per directory, or none where there are too many.
    each: Vec<OwnedFd>,
}

impl Handles {
    /// Where to begin a look-up in this directory, and whether its name is part of the path.
    fn directory(&self, directory: u32) -> (BorrowedFd<'_>, bool) {
        use std::os::fd::AsFd;
        match self.each.get(directory as usize) {
            Some(fd) => (fd.as_fd(), false),
            None => (self.root.as_fd(), true),
        }
    }

    fn why(&self) -> String {
        let from = if self.each.is_empty() {
            "the root's"
        } else {
            "each directory's own"
        };
        format!("file operations are plain calls relative to {from} descriptor")
    }
}

/// One file to visit.
struct File<'a> {
    index: u64,
    directory: BorrowedFd<'a>,
    /// Relative to `directory`.
    name: &'a CStr,
}

/// Room for one file's name: `d000000/` if wanted, `f`, 16 hexadecimal digits, a zero byte.
struct Name([u8; 32]);

impl Name {
    fn new() -> Name {
        Name([0; 32])
    }

    /// The name of file `index`, behind that of its directory if `within` says so.
    fn write(&mut self, set: &FileSet, index: u64, within: bool) -> &CStr {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.0 = [0; 32];
        let mut end = 0;
        if within {
            // Cannot fail: the room is larger than the directory's name.
            let _ = write!(&mut self.0[..], "d{:06}/", set.directory(index));
            end = 8;
        }
        self.0[end] = b'f';
        // A bijection: no two files share a name.
        let number = scramble(set.seed ^ index);
        for (digit, place) in (0..16).rev().zip(end + 1..) {
            self.0[place] = DIGITS[(number >> (digit * 4)) as usize & 15];
        }
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

fn directory_name(directory: u32) -> String {
    format!("d{directory:06}")
}

fn read_whole(file: &File<'_>, buffer: &mut [u8]) -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(file.directory, file.name, flags, Mode::empty())?;
    let mut total = 0;
    loop {
        match rustix::io::read(&fd, &mut *buffer)? {
            0 => break,
            got => total += got as u64,
        }
    }
    close(fd)?;
    Ok(total)
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
