//! The phases that create, look up and remove many files.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, openat, statat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::names::{self, FileName, NameStyle};
use super::{BonniePlan, BonnieRun, BonnieVersion, FileKind, open};
use crate::calls::close;
use crate::content::{ContentPool, POOL_BYTES};
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, Worker, errno_of, fault, no_memory, refusal};
use stackrace_system::RawDir;

/// Bytes of directory entries fetched at once, as the C library does.
const ENTRIES_BYTES: usize = 32 << 10;
/// Stream of the content of files.
const FILES: u32 = 2;

const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The directories of the files, open.
struct OpenDirectories {
    path: PathBuf,
    top: OwnedFd,
    /// Each directory that holds files, to be flushed after a change; empty unless that is asked for.
    flushed: Vec<OwnedFd>,
}

impl OpenDirectories {
    fn open(plan: &BonniePlan, op: Op) -> Result<OpenDirectories, OpError> {
        let path = plan.file_directory();
        let top = open(&path, LIST, op)?;
        let mut flushed = Vec::new();
        // Once, and before the clock: opening them is no part of a flush.
        if plan.fsync && plan.directories > 1 {
            for number in 0..plan.directories {
                flushed.push(open(&path.join(names::directory(number)), LIST, op)?);
            }
        }
        Ok(OpenDirectories { path, top, flushed })
    }

    /// The error that the system gave for an operation on one of the files.
    fn fault(&self, op: Op, name: &CStr, errno: Errno) -> Halt {
        Halt::from(fault(op, &self.path.join(&*name.to_string_lossy()), errno))
    }

    /// Flushes the directory that was changed.
    fn flush(&self, directory: u32) -> Result<(), Errno> {
        let changed = self.flushed.get(directory as usize);
        // A single directory is the top one itself.
        rustix::fs::fsync(changed.unwrap_or(&self.top))
    }
}

/// One directory being read.
struct OpenDirectory<'a> {
    home: &'a OpenDirectories,
    /// Its number among the open directories.
    number: u32,
    fd: OwnedFd,
}

/// The reason for which reading a directory ended.
enum ReadEnd {
    /// The entries are all read.
    End,
    /// A call failed, or the work was told to stop.
    Failed(Halt),
}

impl OpenDirectory<'_> {
    /// Takes the next entry that is a file of ours, and does `work` with its name; together they are
    /// one operation.
    fn next(
        &self,
        entries: &mut RawDir<'_, &OwnedFd>,
        op: Op,
        worker: &mut Worker<'_>,
        mut work: impl FnMut(&OwnedFd, &CStr) -> Result<u64, Errno>,
    ) -> Result<(), ReadEnd> {
        // The entries are fetched within the operation that needs them, as `readdir` does it.
        worker
            .time(op, || {
                loop {
                    let entry = match entries.next() {
                        None => return Err(ReadEnd::End),
                        Some(Err(errno)) => {
                            return Err(ReadEnd::Failed(self.home.fault(Op::Readdir, c".", errno)));
                        }
                        Some(Ok(entry)) => entry,
                    };
                    let name = entry.file_name();
                    // As the originals do: their own names never begin with a dot.
                    if name.to_bytes().starts_with(b".") {
                        continue;
                    }
                    return work(&self.fd, name)
                        .map_err(|errno| ReadEnd::Failed(self.home.fault(op, name, errno)));
                }
            })
            .map(drop)
    }
}

impl BonnieRun<'_> {
    /// Does `work` with every file, in the order in which the directories list them, and `leave`
    /// when a directory is through.
    fn in_order(
        self,
        home: &OpenDirectories,
        op: Op,
        worker: &mut Worker<'_>,
        mut work: impl FnMut(&OwnedFd, u32, &CStr) -> Result<u64, Errno>,
        mut leave: impl FnMut(u32, &mut Worker<'_>) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let mut room = vec![MaybeUninit::uninit(); ENTRIES_BYTES];
        for number in 0..self.plan.directories {
            let name = match self.plan.directories {
                1 => ".".to_owned(),
                _ => names::directory(number),
            };
            let fd = openat(&home.top, name.as_str(), LIST, Mode::empty())
                .map_err(|errno| fault(Op::Readdir, &home.path.join(&name), errno))?;
            let reading = OpenDirectory { home, number, fd };
            let mut entries = RawDir::new(&reading.fd, &mut room);
            loop {
                worker.proceed()?;
                let with = |fd: &OwnedFd, name: &CStr| work(fd, reading.number, name);
                match reading.next(&mut entries, op, worker, with) {
                    Ok(()) => {}
                    Err(ReadEnd::End) => break,
                    Err(ReadEnd::Failed(halt)) => return Err(halt),
                }
            }
            // Its descriptor goes first: `leave` may remove the directory.
            drop(reading);
            leave(number, worker)?;
        }
        Ok(())
    }

    pub(super) fn create_in_order(self) -> Result<PhaseOutcome, OpError> {
        self.create(NameStyle::Sequential)
    }

    pub(super) fn create_at_random(self) -> Result<PhaseOutcome, OpError> {
        self.create(NameStyle::Random)
    }

    /// Creates all files. The directories are made before the clock starts.
    fn create(self, style: NameStyle) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        if plan.made == FileKind::SymbolicLinks && plan.directories > 1 {
            let detail = "symbolic links into other directories would lead nowhere";
            let path = plan.file_directory();
            return Err(refusal(Op::Create, &path, Errno::INVAL, detail));
        }
        let names = names::names(plan, style);
        let (min, max) = match plan.made {
            FileKind::Files { min, max } => (min, max),
            FileKind::HardLinks | FileKind::SymbolicLinks => (0, 0),
        };
        let mut sizes = names::sizes(plan, style, min, max);
        let mut maker = FileCreator {
            pool: match max {
                0 => None,
                _ => Some(self.pool(style)?),
            },
            home: self.make_directories()?,
            plan,
        };
        let first = names.first().copied();
        let why = "files are created by plain calls relative to one directory";
        let ops = [Op::Create, Op::Fsync];
        Ok(self.alone(&ops, why, |worker| {
            for (index, name) in names.iter().enumerate() {
                worker.proceed()?;
                // The first file is what all links lead to.
                let link =
                    first.filter(|_| index > 0 && !matches!(plan.made, FileKind::Files { .. }));
                let done = worker.time(Op::Create, || match link {
                    Some(first) => maker.link(&first, name).map(|()| 0),
                    None => maker.make(name, sizes.next().unwrap_or(0)),
                });
                done.map_err(|errno| maker.home.fault(Op::Create, name.text(), errno))?;
            }
            self.sync(worker)
        }))
    }

    /// The content that files are filled with.
    fn pool(self, style: NameStyle) -> Result<ContentPool, OpError> {
        let (plan, blocks) = (self.plan, 1..=self.plan.file_chunk);
        let stream = FILES + style as u32;
        ContentPool::new(plan.content, plan.seed, stream, 1, blocks, POOL_BYTES)
            .map_err(|error| no_memory(Op::Create, &plan.directory, error))
    }

    /// Removes the data files, which are no longer needed, and makes the directories.
    fn make_directories(self) -> Result<OpenDirectories, OpError> {
        let plan = self.plan;
        plan.remove_data()?;
        let path = plan.file_directory();
        let mode = Mode::from_raw_mode(0o700);
        mkdirat(rustix::fs::CWD, &path, mode).map_err(|errno| fault(Op::Mkdir, &path, errno))?;
        if plan.directories > 1 {
            for number in 0..plan.directories {
                let path = path.join(names::directory(number));
                mkdirat(rustix::fs::CWD, &path, mode)
                    .map_err(|errno| fault(Op::Mkdir, &path, errno))?;
            }
        }
        OpenDirectories::open(plan, Op::Create)
    }

    /// `sync` at the end of what changes directories, in 2.00: of all file systems.
    fn sync(self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        if self.plan.version == BonnieVersion::V1_03 {
            return Ok(());
        }
        worker
            .time(Op::Fsync, || {
                rustix::fs::sync();
                Ok::<u64, Halt>(0)
            })
            .map(drop)
    }

    pub(super) fn stat_in_order(self) -> Result<PhaseOutcome, OpError> {
        let home = OpenDirectories::open(self.plan, Op::Stat)?;
        let mut room = vec![0u8; self.plan.file_chunk];
        let why = "entries are listed, looked up and read by plain calls";
        Ok(self.alone(&[Op::Stat], why, |worker| {
            let look = |fd: &OwnedFd, _, name: &CStr| look(fd, name, &mut room);
            self.in_order(&home, Op::Stat, worker, look, |_, _| Ok(()))
        }))
    }

    pub(super) fn stat_at_random(self) -> Result<PhaseOutcome, OpError> {
        let names = names::for_stat(self.plan);
        let home = OpenDirectories::open(self.plan, Op::Stat)?;
        let mut room = vec![0u8; self.plan.file_chunk];
        let why = "names are looked up and read by plain calls";
        Ok(self.alone(&[Op::Stat], why, |worker| {
            for name in &names {
                worker.proceed()?;
                worker
                    .time(Op::Stat, || look(&home.top, name.text(), &mut room))
                    .map_err(|errno| home.fault(Op::Stat, name.text(), errno))?;
            }
            Ok(())
        }))
    }

    pub(super) fn delete_in_order(self) -> Result<PhaseOutcome, OpError> {
        let home = OpenDirectories::open(self.plan, Op::Unlink)?;
        let why = "entries are listed and removed by plain calls";
        let ops = [Op::Unlink, Op::Rmdir, Op::Fsync];
        Ok(self.alone(&ops, why, |worker| {
            let remove = |fd: &OwnedFd, number, name: &CStr| {
                unlinkat(fd, name, AtFlags::empty())?;
                self.after_removal(&home, number)
            };
            let several = self.plan.directories > 1;
            self.in_order(
                &home,
                Op::Unlink,
                worker,
                remove,
                |number, worker| match several {
                    true => self.leave(&home, number, worker),
                    false => Ok(()),
                },
            )?;
            self.leave_top(&home, worker)
        }))
    }

    pub(super) fn delete_at_random(self) -> Result<PhaseOutcome, OpError> {
        let names = names::for_delete(self.plan);
        let home = OpenDirectories::open(self.plan, Op::Unlink)?;
        let why = "names are removed by plain calls";
        let ops = [Op::Unlink, Op::Rmdir, Op::Fsync];
        Ok(self.alone(&ops, why, |worker| {
            for name in &names {
                worker.proceed()?;
                let remove = || {
                    unlinkat(&home.top, name.text(), AtFlags::empty())?;
                    self.after_removal(&home, name.directory)
                };
                worker
                    .time(Op::Unlink, remove)
                    .map_err(|errno| home.fault(Op::Unlink, name.text(), errno))?;
            }
            if self.plan.directories > 1 {
                for number in 0..self.plan.directories {
                    self.leave(&home, number, worker)?;
                }
            }
            self.leave_top(&home, worker)
        }))
    }

    /// Does what follows the removal of a file, as part of it.
    fn after_removal(self, home: &OpenDirectories, directory: u32) -> Result<u64, Errno> {
        if self.plan.fsync {
            home.flush(directory)?;
        }
        Ok(0)
    }

    /// Removes one of several directories.
    fn leave(
        self,
        home: &OpenDirectories,
        number: u32,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let name = names::directory(number);
        worker
            .time(Op::Rmdir, || {
                unlinkat(&home.top, name.as_str(), AtFlags::REMOVEDIR).map(|()| 0)
            })
            .map_err(|errno| fault(Op::Rmdir, &home.path.join(&name), errno))?;
        Ok(())
    }

    /// Removes the directory of all files, the end of a phase.
    fn leave_top(self, home: &OpenDirectories, worker: &mut Worker<'_>) -> Result<(), Halt> {
        worker
            .time(Op::Rmdir, || std::fs::remove_dir(&home.path).map(|()| 0))
            .map_err(|error| fault(Op::Rmdir, &home.path, errno_of(&error)))?;
        self.sync(worker)
    }
}

/// Creates files.
struct FileCreator<'a> {
    plan: &'a BonniePlan,
    home: OpenDirectories,
    /// The content they are filled with; `None` if they are empty.
    pool: Option<ContentPool>,
}

impl FileCreator<'_> {
    /// Creates one file and writes its content, chunk by chunk.
    fn make(&mut self, name: &FileName, size: u64) -> Result<u64, Errno> {
        let how = match self.plan.version {
            BonnieVersion::V1_03 => OFlags::TRUNC,
            BonnieVersion::V2_00 => OFlags::EXCL,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | how;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat(&self.home.top, name.text(), flags, mode)?;
        let mut left = size;
        while let Some(pool) = self.pool.as_mut().filter(|_| left > 0) {
            let bytes = left.min(self.plan.file_chunk as u64) as usize;
            let position = pool.place(0, bytes);
            // write(2) writes less than asked where the disk gets full.
            if rustix::io::write(&file, pool.bytes(position, bytes))? < bytes {
                return Err(Errno::NOSPC);
            }
            left -= bytes as u64;
        }
        if self.plan.fsync {
            rustix::fs::fsync(&file)?;
            self.home.flush(name.directory)?;
        }
        // Some file systems say only here that a write failed (NFS, quotas).
        close(file)?;
        Ok(size)
    }

    /// Makes a link to the first file. No fsync: there is no file to call it on.
    fn link(&self, first: &FileName, name: &FileName) -> Result<(), Errno> {
        let top = &self.home.top;
        match self.plan.made {
            FileKind::SymbolicLinks => symlinkat(first.text(), top, name.text()),
            FileKind::HardLinks | FileKind::Files { .. } => {
                linkat(top, first.text(), top, name.text(), AtFlags::empty())
            }
        }
    }
}

/// Looks up a file and reads it if it holds anything. Returns how much that was.
fn look(directory: &OwnedFd, name: &CStr, room: &mut [u8]) -> Result<u64, Errno> {
    let size = u64::try_from(statat(directory, name, AtFlags::empty())?.st_size).unwrap_or(0);
    if size == 0 {
        return Ok(0);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    let mut left = size;
    while left > 0 {
        let bytes = left.min(room.len() as u64) as usize;
        match rustix::io::read(&file, &mut room[..bytes])? {
            // It ends before the size that it had a moment ago.
            0 => return Err(Errno::IO),
            got => left -= got as u64,
        }
    }
    close(file)?;
    Ok(size)
}
