//! PostMark 1.51: the small files of a mail or news server, one operation after the other.
//!
//! PostMark creates files of random sizes. Then each transaction reads a whole file or appends to
//! one, and creates or deletes a file. At the end it deletes all files. Random numbers come from
//! the same generator in the same order as in the original, so the same seed gives the same files,
//! sizes and system calls. Source: the behaviour of PostMark 1.51 and 1.53 (J. Katcher, "PostMark:
//! A New File System Benchmark", Network Appliance TR3022, 1997), found by tracing.
//!
//! Two things differ. Files are created with `O_EXCL`, so that no existing file is overwritten. A
//! failed operation ends the run, where PostMark prints a line and goes on.

mod asked;
mod counts;
mod stream;
mod table;
mod twister;

use std::ffi::CStr;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::calls::{close, flush};
use crate::control::Control;
use crate::files::AtEnd;
use crate::outcome::{Op, OpError, PhaseEnd, PhaseOutcome, Stretch};
use crate::worker_pool::{Halt, PhaseOptions, Worker, alone, fault, refusal};
use counts::Counts;
use stream::{Buffer, shown, write_all};
use table::{FileTable, PostMarkFile};
use twister::Twister;

/// Most files at the start: PostMark must be able to draw twice as many slot numbers.
pub const FILES_MAX: u32 = i32::MAX as u32 / 2;
/// Largest file, bytes: the buffer of source data is twice as large.
pub const SIZE_MAX: u32 = i32::MAX as u32 / 2;
/// The three stretches of a run, in order: [`PhaseOutcome::stretches`].
pub const STRETCHES: [&str; 3] = ["creation", "transactions", "deletion"];

/// A directory, and how often it is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostMarkLocation {
    /// The directory, which must exist.
    pub path: PathBuf,
    /// Its share is this over the sum of all weights; at least 1.
    pub weight: u32,
}

/// All that sets what one PostMark run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostMarkPlan {
    /// Places in which files are made; at least one.
    pub locations: Vec<PostMarkLocation>,
    /// Directories `s0`, `s1` … made in each location; 0 and 1: files lie in the location itself.
    pub subdirectories: u32,
    /// Files at the start, 1 … [`FILES_MAX`]. At most twice as many exist at once; beyond that
    /// PostMark silently creates none.
    pub files: u32,
    /// Number of transactions.
    pub transactions: u32,
    /// Smallest file, bytes, at least 1.
    pub size_low: u32,
    /// Files are made smaller than this, unless it equals the smallest, and appended to up to it;
    /// bytes, at most [`SIZE_MAX`].
    pub size_high: u32,
    /// Bytes of one read.
    pub read_block: u32,
    /// Bytes of one write.
    pub write_block: u32,
    /// Goes through a buffer as the C library keeps one, instead of one system call per block.
    pub buffered: bool,
    /// Transactions of ten that read, the others append; `None` means neither.
    pub bias_read: Option<u32>,
    /// Transactions of ten that create a file, the others delete one; `None` means neither.
    pub bias_create: Option<u32>,
    /// Everything random follows from it.
    pub seed: u32,
    /// Flush the file systems at the end of each stretch, inside its time, as one [`Op::Fsync`]
    /// per location. PostMark never does.
    pub at_end: AtEnd,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostMarkProgress {
    /// Subdirectories are being made; said only where there are any.
    MakingDirectories,
    /// The first files are being made.
    Creating,
    /// Transactions begin.
    Transacting,
    /// The first transaction, or another tenth of them, is done.
    Tenth,
    /// The files are used up, so transactions end here.
    OutOfFiles,
    /// The last of them is done.
    TransactionsDone,
    /// The remaining files are being deleted.
    Deleting,
    /// Subdirectories are being removed.
    RemovingDirectories,
    /// The run is over.
    Done,
}

/// The results of a run.
#[derive(Debug, Clone)]
pub struct PostMarkOutcome {
    /// Files made are [`Op::Create`], read [`Op::Open`], appended to [`Op::Append`], deleted
    /// [`Op::Unlink`]; [`PhaseOutcome::stretches`] are [`STRETCHES`].
    pub outcome: PhaseOutcome,
    /// Set if no file was left before the last transaction.
    pub out_of_files: bool,
    /// Bytes read, added up in single precision as PostMark does: large sums lose small addends.
    pub read_as_float: f32,
    /// Bytes written, likewise.
    pub written_as_float: f32,
}

impl PostMarkPlan {
    /// Runs the benchmark. `notice` is called about a dozen times, inside the measured time.
    ///
    /// Creating and removing subdirectories is not measured. A run that is stopped or fails leaves
    /// its files behind.
    ///
    /// # Errors
    /// The plan is invalid, memory is short, or a directory cannot be created or removed. A failed
    /// operation is in [`PhaseOutcome::error`] instead.
    pub fn run(
        &self,
        slice_ns: u64,
        control: &Control,
        notice: &mut dyn FnMut(PostMarkProgress),
    ) -> Result<PostMarkOutcome, OpError> {
        self.check()?;
        let mut run = PostMarkRun::new(self, notice)?;
        run.make_directories()?;
        let ops = [Op::Fsync, Op::Create, Op::Open, Op::Append, Op::Unlink];
        let watch = PhaseOptions {
            slice_ns,
            control,
            ops: &ops,
        };
        let why = "plain calls by path, as PostMark makes them".to_owned();
        let mut outcome = alone(watch, why, |worker| run.measured(worker));
        if outcome.ended == PhaseEnd::Complete {
            run.remove_directories()?;
            (run.notice)(PostMarkProgress::Done);
        }
        outcome.stretches = run.stretches;
        Ok(PostMarkOutcome {
            outcome,
            out_of_files: run.out_of_files,
            read_as_float: run.read_as_float,
            written_as_float: run.written_as_float,
        })
    }
}

/// The state of a run.
struct PostMarkRun<'a> {
    plan: &'a PostMarkPlan,
    notice: &'a mut dyn FnMut(PostMarkProgress),
    random: Twister,
    /// The data of all files; each file starts at its beginning.
    source: Vec<u8>,
    /// Buffer for all that is read.
    sink: Vec<u8>,
    buffer: Buffer,
    table: FileTable,
    /// Each location as the beginning of a path.
    prefixes: Vec<Vec<u8>>,
    total_weight: u32,
    path: Vec<u8>,
    /// Descriptors for flushing; empty where nothing is flushed.
    handles: Vec<OwnedFd>,
    files_made: u32,
    out_of_files: bool,
    read_as_float: f32,
    written_as_float: f32,
    stretches: Vec<Stretch>,
}

impl<'a> PostMarkRun<'a> {
    fn new(
        plan: &'a PostMarkPlan,
        notice: &'a mut dyn FnMut(PostMarkProgress),
    ) -> Result<PostMarkRun<'a>, OpError> {
        plan.at_end.check(&plan.root())?;
        let no_memory = |what: &str| {
            let detail = format!("no memory for {what}");
            refusal(Op::Create, &plan.root(), Errno::NOMEM, detail)
        };
        let (mut random, length) = (Twister::new(plan.seed), 2 * plan.size_high as usize);
        let mut source = Vec::new();
        source
            .try_reserve_exact(length)
            .map_err(|_| no_memory("the data of the files"))?;
        // Printable characters, drawn first: every later draw depends on this order.
        source.extend((0..length).map(|_| 32 + random.below(95) as u8));
        let mut handles = Vec::new();
        for location in &plan.locations {
            if plan.at_end == AtEnd::Durable {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let handle = openat(CWD, &location.path, flags, Mode::empty())
                    .map_err(|errno| fault(Op::Fsync, &location.path, errno))?;
                handles.push(handle);
            }
        }
        let prefix =
            |location: &PostMarkLocation| [location.path.as_os_str().as_bytes(), b"/"].concat();
        Ok(PostMarkRun {
            plan,
            notice,
            random,
            source,
            sink: vec![0; plan.read_block.min(plan.size_high) as usize],
            buffer: Buffer::new(),
            table: FileTable::new(2 * plan.files as usize),
            prefixes: plan.locations.iter().map(prefix).collect(),
            total_weight: plan.total_weight().unwrap_or(0),
            path: Vec::new(),
            handles,
            files_made: 0,
            out_of_files: false,
            read_as_float: 0.0,
            written_as_float: 0.0,
            stretches: Vec::with_capacity(STRETCHES.len()),
        })
    }

    fn make_directories(&mut self) -> Result<(), OpError> {
        // PostMark says so only where there is a directory to make.
        for (number, path) in self.plan.directories().enumerate() {
            if number == 0 {
                (self.notice)(PostMarkProgress::MakingDirectories);
            }
            mkdirat(CWD, &path, Mode::from_raw_mode(0o700))
                .map_err(|errno| fault(Op::Mkdir, &path, errno))?;
        }
        Ok(())
    }

    fn remove_directories(&mut self) -> Result<(), OpError> {
        for (number, path) in self.plan.directories().enumerate() {
            if number == 0 {
                (self.notice)(PostMarkProgress::RemovingDirectories);
            }
            unlinkat(CWD, &path, AtFlags::REMOVEDIR)
                .map_err(|errno| fault(Op::Rmdir, &path, errno))?;
        }
        Ok(())
    }

    fn measured(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let mut begun_ns = 0;
        for (name, part) in STRETCHES.into_iter().zip([
            PostMarkRun::create_all as fn(&mut Self, &mut Worker<'_>) -> Result<Counts, Halt>,
            PostMarkRun::transact_all,
            PostMarkRun::delete_all,
        ]) {
            let counts = part(self, worker)?;
            // Inside the part it belongs to: what is written late is part of its time.
            for (handle, location) in self.handles.iter().zip(&self.plan.locations) {
                flush(worker, handle, &location.path)?;
            }
            let ended_ns = worker.now_ns();
            self.stretches.push(Stretch {
                name,
                elapsed_ns: ended_ns.saturating_sub(begun_ns),
                counts: counts.into(),
            });
            begun_ns = ended_ns;
        }
        Ok(())
    }

    fn create_all(&mut self, worker: &mut Worker<'_>) -> Result<Counts, Halt> {
        (self.notice)(PostMarkProgress::Creating);
        let mut counts = Counts::default();
        for _ in 0..self.plan.files {
            worker.proceed()?;
            self.create(worker, &mut counts)?;
        }
        Ok(counts)
    }

    fn transact_all(&mut self, worker: &mut Worker<'_>) -> Result<Counts, Halt> {
        (self.notice)(PostMarkProgress::Transacting);
        let mut counts = Counts::default();
        // PostMark divides by this and crashes with fewer than ten transactions.
        let tenth = (self.plan.transactions / 10).max(1);
        for number in 0..self.plan.transactions {
            worker.proceed()?;
            if self.table.is_empty() {
                self.out_of_files = true;
                // PostMark ends its transactions here, and reports those it did.
                (self.notice)(PostMarkProgress::OutOfFiles);
                return Ok(counts);
            }
            self.transact(worker, &mut counts)?;
            if number % tenth == 0 {
                (self.notice)(PostMarkProgress::Tenth);
            }
        }
        (self.notice)(PostMarkProgress::TransactionsDone);
        Ok(counts)
    }

    #[inline]
    fn transact(&mut self, worker: &mut Worker<'_>, counts: &mut Counts) -> Result<(), Halt> {
        if let Some(bias) = self.plan.bias_read {
            let reads = self.random.below(10) < bias;
            // Drawn after the choice, as PostMark does: the order of draws decides all that follow.
            let slot = self.table.draw(&mut self.random);
            if reads {
                self.read(slot, worker, counts)?;
            } else {
                self.append(slot, worker, counts)?;
            }
        }
        if let Some(bias) = self.plan.bias_create {
            if self.random.below(10) < bias {
                self.create(worker, counts)?;
            } else {
                let slot = self.table.draw(&mut self.random);
                self.delete(slot, worker, counts)?;
            }
        }
        Ok(())
    }

    fn delete_all(&mut self, worker: &mut Worker<'_>) -> Result<Counts, Halt> {
        (self.notice)(PostMarkProgress::Deleting);
        let mut counts = Counts::default();
        for slot in 0..self.table.slots() {
            worker.proceed()?;
            self.delete(slot, worker, &mut counts)?;
        }
        Ok(counts)
    }

    /// Draws a file and creates it; draws nothing if no slot is free.
    fn create(&mut self, worker: &mut Worker<'_>, counts: &mut Counts) -> Result<(), Halt> {
        if self.table.is_full() {
            return Ok(());
        }
        let plan = self.plan;
        // PostMark draws nothing where there is only one choice; one draw more would change all
        // later ones.
        let location = match self.prefixes.len() {
            1 => 0,
            _ => self.draw_location(),
        };
        let subdirectory = match plan.subdirectories {
            0 | 1 => 0,
            count => self.random.below(count),
        };
        self.files_made += 1;
        let file = PostMarkFile {
            number: self.files_made,
            location,
            subdirectory,
            size: plan.size_low + self.random.below(plan.size_high - plan.size_low),
        };
        // In the table before it is written: a create that fails leaves a file to delete.
        self.table.insert(file);
        let (access, mode) = match plan.buffered {
            true => (OFlags::WRONLY, 0o666),
            // The flags and modes that PostMark's `open` and `fopen` use, as traced.
            false => (OFlags::RDWR, 0o644),
        };
        let flags = access | OFlags::CREATE | OFlags::EXCL;
        self.write(Op::Create, file, file.size, (flags, mode), worker)?;
        counts.created += 1;
        Ok(())
    }

    /// A location by weight.
    fn draw_location(&mut self) -> u32 {
        let mut drawn = self.random.below(self.total_weight);
        for (location, number) in self.plan.locations.iter().zip(0..) {
            if drawn < location.weight {
                return number;
            }
            drawn -= location.weight;
        }
        unreachable!("a number below the sum of all weights lies in one of them")
    }

    /// Appends to a file, unless it is as large as files may be.
    fn append(
        &mut self,
        slot: usize,
        worker: &mut Worker<'_>,
        counts: &mut Counts,
    ) -> Result<(), Halt> {
        let file = *self.table.file(slot);
        let room = self.plan.size_high - file.size;
        if room == 0 {
            return Ok(());
        }
        let bytes = self.random.below(room) + 1;
        let access = match self.plan.buffered {
            true => OFlags::WRONLY,
            false => OFlags::RDWR,
        };
        self.write(
            Op::Append,
            file,
            bytes,
            (access | OFlags::APPEND, 0),
            worker,
        )?;
        self.table.file(slot).size += bytes;
        counts.appended += 1;
        Ok(())
    }

    fn write(
        &mut self,
        op: Op,
        file: PostMarkFile,
        bytes: u32,
        (flags, mode): (OFlags, u32),
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let PostMarkRun {
            plan,
            source,
            buffer,
            path,
            prefixes,
            ..
        } = self;
        let name = name(plan, prefixes, file, path);
        let data = &source[..bytes as usize];
        let mut short = 0;
        let done = worker.time(op, || {
            let flags = flags | OFlags::CLOEXEC;
            let fd = openat(CWD, name, flags, stackrace_system::permissions(mode))?;
            if plan.buffered {
                if op == Op::Append {
                    rustix::fs::seek(&fd, SeekFrom::End(0))?;
                }
                let mut stream = buffer.on(fd.as_fd());
                for block in data.chunks(plan.write_block as usize) {
                    stream.write(block)?;
                }
                stream.flush()?;
                short = stream.short;
            } else {
                let blocks = data.chunks_exact(plan.write_block as usize);
                let rest = blocks.remainder();
                for block in blocks {
                    write_all(fd.as_fd(), block, &mut short)?;
                }
                write_all(fd.as_fd(), rest, &mut short)?;
            }
            close(fd)?;
            Ok(u64::from(bytes))
        });
        // After the clock: counting is not part of the latency.
        (0..short).for_each(|_| worker.count_short());
        done.map_err(|errno| fault(op, shown(name), errno))?;
        self.written_as_float += bytes as f32;
        Ok(())
    }

    /// Reads a file whole.
    fn read(
        &mut self,
        slot: usize,
        worker: &mut Worker<'_>,
        counts: &mut Counts,
    ) -> Result<(), Halt> {
        let file = *self.table.file(slot);
        let PostMarkRun {
            plan,
            sink,
            buffer,
            path,
            prefixes,
            ..
        } = self;
        let name = name(plan, prefixes, file, path);
        let block = plan.read_block as usize;
        let (whole, rest) = (file.size as usize / block, file.size as usize % block);
        let found = worker.time(Op::Open, || {
            let fd = openat(CWD, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            let mut found = 0;
            if plan.buffered {
                let mut stream = buffer.on(fd.as_fd());
                for _ in 0..whole {
                    found += stream.read(&mut sink[..block])?;
                }
                found += stream.read(&mut sink[..rest])?;
            } else {
                for _ in 0..whole {
                    found += rustix::io::read(&fd, &mut sink[..block])?;
                }
                found += rustix::io::read(&fd, &mut sink[..rest])?;
            }
            close(fd)?;
            Ok(found as u64)
        });
        let found = found.map_err(|errno| fault(Op::Open, shown(name), errno))?;
        // PostMark does not check this, but a short file would make the run look fast.
        if found != u64::from(file.size) {
            let detail = format!("holds {found} bytes where {} were written", file.size);
            return Err(refusal(Op::Open, shown(name), Errno::IO, detail).into());
        }
        self.read_as_float += file.size as f32;
        counts.read += 1;
        Ok(())
    }

    /// Deletes the file in a slot, if there is one.
    fn delete(
        &mut self,
        slot: usize,
        worker: &mut Worker<'_>,
        counts: &mut Counts,
    ) -> Result<(), Halt> {
        let Some(file) = self.table.remove(slot) else {
            return Ok(());
        };
        let name = name(self.plan, &self.prefixes, file, &mut self.path);
        worker
            .time(Op::Unlink, || {
                unlinkat(CWD, name, AtFlags::empty()).map(|()| 0)
            })
            .map_err(|errno| fault(Op::Unlink, shown(name), errno))?;
        counts.deleted += 1;
        Ok(())
    }
}

/// The path of a file, written into `path`.
fn name<'p>(
    plan: &PostMarkPlan,
    prefixes: &[Vec<u8>],
    file: PostMarkFile,
    path: &'p mut Vec<u8>,
) -> &'p CStr {
    path.clear();
    path.extend_from_slice(&prefixes[file.location as usize]);
    // Writing to a `Vec` cannot fail.
    let _ = if plan.subdirectories > 1 {
        write!(path, "s{}/{}\0", file.subdirectory, file.number)
    } else {
        write!(path, "{}\0", file.number)
    };
    CStr::from_bytes_with_nul(path).unwrap_or_default()
}

#[cfg(test)]
#[path = "postmark_tests.rs"]
mod tests;
