//! The two bonnie++ benchmarks, operation for operation: streams of characters and blocks, rewriting,
//! seeks with updates, and many files in one or a few directories.
//!
//! bonnie++ 1.03 and 2.00 are different benchmarks with one name. They differ in what a close
//! flushes, how characters are written, how many seekers there are and how they get their work,
//! where files are split, and what ends with a `sync`. [`BonnieVersion`] chooses;
//! `docs/workloads/bonnie.md` lists every difference, also from the originals.
//!
//! Names, sizes, orders and seeks follow from the plan's seed, so each phase finds the files of the
//! one before. A phase opens its files before the clock starts and closes them inside, as the
//! originals do. Caches are not dropped in between.
//!
//! Operations are those of the originals: a chunk of characters, a block, a read with its write
//! back, one seek, one file. Fsyncs at the end are separate operations.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::control::Control;
use crate::descriptors::with_own_table;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::spec::Content;
use crate::worker_pool::{Halt, PhaseOptions, Worker, alone, errno_of, fault, refusal};

mod bytes;
mod data_files;
mod entries;
mod names;
mod seeks;

/// Bytes of one data file of version 1.03; version 2.00 does not split.
pub const FILE_BYTES: u64 = 1 << 30;
/// Characters version 2.00 writes and reads one by one, unless told otherwise, bytes.
pub const CHARACTERS: u64 = 3 << 20;
/// Seeks of either version, unless told otherwise.
pub const SEEKS: u32 = 8192;
/// Bytes of a chunk, unless told otherwise.
pub const CHUNK: usize = 8192;
/// One in this many seeks writes its chunk back.
const UPDATE_EVERY: u64 = 10;

/// One of the two benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BonnieVersion {
    /// 1.03e.
    V1_03,
    /// 2.00a; 1.97 differs only in what it prints.
    V2_00,
}

impl BonnieVersion {
    /// Seekers, unless told otherwise.
    pub fn seekers(self) -> u32 {
        match self {
            BonnieVersion::V1_03 => 3,
            BonnieVersion::V2_00 => 5,
        }
    }
}

/// One phase, in the order in which they are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Writes characters: 1.03 all data through a buffer of 4096 bytes, 2.00 a few, a call each.
    WriteCharacters,
    /// Writes all data in chunks.
    WriteBlocks,
    /// Reads each chunk, changes a byte, writes it back.
    Rewrite,
    /// Reads the characters as they were written.
    ReadCharacters,
    /// Reads all data in chunks.
    ReadBlocks,
    /// Several seekers read chunks at random; about one in ten is changed and written back.
    Seeks,
    /// Creates all files, names in ascending order.
    CreateSequential,
    /// Looks up all files in the order of the directory, and reads those that hold something.
    StatSequential,
    /// Removes all files in the order of the directory, and the directories.
    DeleteSequential,
    /// Creates all files, names in random order.
    CreateRandom,
    /// Looks up and reads all files in random order.
    StatRandom,
    /// Removes all files in another random order, and the directories.
    DeleteRandom,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 12] = [
        Phase::WriteCharacters,
        Phase::WriteBlocks,
        Phase::Rewrite,
        Phase::ReadCharacters,
        Phase::ReadBlocks,
        Phase::Seeks,
        Phase::CreateSequential,
        Phase::StatSequential,
        Phase::DeleteSequential,
        Phase::CreateRandom,
        Phase::StatRandom,
        Phase::DeleteRandom,
    ];
}

/// The kind of the files that are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Regular files of so many bytes, uniform between the two.
    Files {
        /// Smallest size, bytes.
        min: u64,
        /// Largest size, bytes; 0: all are empty.
        max: u64,
    },
    /// One empty file, all others being hard links to it.
    HardLinks,
    /// One empty file, all others being symbolic links to it; in one directory only.
    SymbolicLinks,
}

/// The plan of a run of bonnie++.
#[derive(Debug, Clone, PartialEq)]
pub struct BonniePlan {
    /// Directory that the files are made in; it must exist.
    pub directory: PathBuf,
    /// The prefix of all names created there.
    pub name: String,
    /// The benchmark to run.
    pub version: BonnieVersion,
    /// Bytes of data, a multiple of the chunk.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk: usize,
    /// Bytes written and read as characters by version 2.00, rounded up to a chunk, at most all
    /// data; version 1.03 always takes all data.
    pub characters: u64,
    /// Number of seeks, by all threads together.
    pub seeks: u32,
    /// Threads that seek, at least 1.
    pub seekers: u32,
    /// Number of files.
    pub files: u64,
    /// Kind of these files.
    pub made: FileKind,
    /// Directories they are spread over, at least 1.
    pub directories: u32,
    /// Bytes of one read or write of such a file.
    pub file_chunk: usize,
    /// `-b`: fsync each file, each directory after a change, and each seek's update.
    pub fsync: bool,
    /// Opens data files for direct I/O where they are created, and, as in the originals, only there.
    pub direct: bool,
    /// [`Content::Zero`]: as the originals, nearly all zero, with one byte changed in each chunk.
    pub content: Content,
    /// Everything random follows from it.
    pub seed: u64,
}

impl BonniePlan {
    /// Runs one phase. The phases before it must have been run with the same plan.
    ///
    /// # Errors
    /// Nothing was measured: a file could not be opened or made, or there is no memory. A failing
    /// operation is found in [`PhaseOutcome::error`] instead.
    pub fn run(
        &self,
        phase: Phase,
        slice_ns: u64,
        control: &Control,
    ) -> Result<PhaseOutcome, OpError> {
        let run = BonnieRun {
            plan: self,
            slice_ns,
            control,
        };
        let work = match phase {
            // Has threads of its own.
            Phase::Seeks => return run.seeks(),
            Phase::WriteCharacters => BonnieRun::write_characters,
            Phase::WriteBlocks => BonnieRun::write_blocks,
            Phase::Rewrite => BonnieRun::rewrite,
            Phase::ReadCharacters => BonnieRun::read_characters,
            Phase::ReadBlocks => BonnieRun::read_blocks,
            Phase::CreateSequential => BonnieRun::create_in_order,
            Phase::StatSequential => BonnieRun::stat_in_order,
            Phase::DeleteSequential => BonnieRun::delete_in_order,
            Phase::CreateRandom => BonnieRun::create_at_random,
            Phase::StatRandom => BonnieRun::stat_at_random,
            Phase::DeleteRandom => BonnieRun::delete_at_random,
        };
        // The original is a process of one thread, so its calls must cost here what they cost there.
        // SAFETY: the work opens its own files by their paths, closes them before it ends, and
        // returns counts and times.
        unsafe { with_own_table(|| work(run)) }.map_err(|error| {
            let detail = "no thread could be started for this phase";
            refusal(Op::Open, &self.directory, errno_of(&error), detail)
        })?
    }

    /// The data files, in order.
    pub fn data_files(&self) -> Vec<PathBuf> {
        match self.version {
            BonnieVersion::V2_00 => vec![self.directory.join(format!("{}.data", self.name))],
            BonnieVersion::V1_03 => (0..self.bytes.div_ceil(FILE_BYTES))
                .map(|number| self.directory.join(format!("{}.{number:03}", self.name)))
                .collect(),
        }
    }

    /// The directory that holds the created files.
    pub fn file_directory(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Removes the data files before files are created, unmeasured, as the originals do. Missing
    /// files are fine.
    ///
    /// # Errors
    /// One could not be removed.
    pub fn remove_data(&self) -> Result<(), OpError> {
        for path in self.data_files() {
            unlink(&path)?;
        }
        Ok(())
    }

    /// Bytes that are written and read as characters: version 1.03 all data, 2.00 whole chunks.
    pub fn character_bytes(&self) -> u64 {
        match self.version {
            BonnieVersion::V1_03 => self.bytes,
            BonnieVersion::V2_00 => {
                let chunk = self.chunk as u64;
                (self.characters.div_ceil(chunk) * chunk).min(self.bytes)
            }
        }
    }

    fn chunks(&self) -> u64 {
        self.bytes / self.chunk as u64
    }

    /// Returns true if closing a data file flushes it.
    fn close_flushes(&self) -> bool {
        self.fsync || self.version == BonnieVersion::V2_00
    }
}

/// One phase of a plan under way.
#[derive(Clone, Copy)]
struct BonnieRun<'a> {
    plan: &'a BonniePlan,
    slice_ns: u64,
    control: &'a Control,
}

impl<'a> BonnieRun<'a> {
    fn watch(self, ops: &'a [Op]) -> PhaseOptions<'a> {
        PhaseOptions {
            slice_ns: self.slice_ns,
            control: self.control,
            ops,
        }
    }

    /// Runs work of one thread; fsyncs may always be among it.
    fn alone(
        self,
        ops: &'a [Op],
        why: &str,
        work: impl FnOnce(&mut Worker<'_>) -> Result<(), Halt>,
    ) -> PhaseOutcome {
        alone(self.watch(ops), why.to_owned(), work)
    }
}

/// Removes a file, if it exists.
fn unlink(path: &Path) -> Result<(), OpError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(fault(Op::Unlink, path, errno_of(&error)))
        }
        _ => Ok(()),
    }
}

fn open(path: &Path, flags: OFlags, op: Op) -> Result<OwnedFd, OpError> {
    // Of use only where the flags create the file.
    let mode = Mode::from_raw_mode(0o600);
    openat(CWD, path, flags | OFlags::CLOEXEC, mode).map_err(|errno| fault(op, path, errno))
}

#[cfg(test)]
#[path = "bonnie/tests.rs"]
mod tests;
