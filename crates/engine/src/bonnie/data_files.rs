//! The data of a run: one file, or several of a fixed size that are read and written as one.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::{BonniePlan, BonnieVersion, FILE_BYTES, open};
use crate::calls::close;
use crate::outcome::{Op, OpError};
use crate::worker_pool::{Halt, Worker, fault, refusal};
use stackrace_system::direct;

/// Open data files with one position over all of them.
pub(super) struct DataFiles {
    files: Vec<OwnedFd>,
    paths: Vec<PathBuf>,
    /// Chunks in each file but the last, which may hold fewer.
    per_file: u64,
    chunk: u64,
    /// Chunks before the position.
    at: u64,
}

/// Chunks in each file but the last.
fn whole_files(plan: &BonniePlan) -> u64 {
    match plan.version {
        BonnieVersion::V1_03 => FILE_BYTES / plan.chunk as u64,
        BonnieVersion::V2_00 => u64::MAX,
    }
}

impl DataFiles {
    /// Removes what is there and makes the files anew, empty; for direct I/O if the plan asks for it.
    pub(super) fn create(plan: &BonniePlan) -> Result<DataFiles, OpError> {
        let mut flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        if plan.direct {
            flags |= direct().map_err(|errno| fault(Op::Create, &plan.directory, errno))?;
        }
        // The originals start with new files: an old one would already have its blocks.
        plan.remove_data()?;
        DataFiles::with(plan, flags, Op::Create, whole_files(plan))
    }

    /// Opens the files that are there, never for direct I/O: the originals do not either.
    pub(super) fn reopen(plan: &BonniePlan) -> Result<DataFiles, OpError> {
        DataFiles::with(plan, OFlags::RDWR, Op::Open, whole_files(plan))
    }

    /// Opens the files of a plan; each is full after so many chunks.
    pub(super) fn with(
        plan: &BonniePlan,
        flags: OFlags,
        op: Op,
        per_file: u64,
    ) -> Result<DataFiles, OpError> {
        let paths = plan.data_files();
        let files = paths.iter().map(|path| open(path, flags, op));
        Ok(DataFiles {
            files: files.collect::<Result<_, _>>()?,
            paths,
            per_file,
            chunk: plan.chunk as u64,
            at: 0,
        })
    }

    /// The descriptors, for threads to keep.
    pub(super) fn into_files(self) -> Vec<OwnedFd> {
        self.files
    }

    fn current(&self) -> usize {
        ((self.at / self.per_file) as usize).min(self.files.len() - 1)
    }

    /// The file that holds the position.
    pub(super) fn file(&self) -> &OwnedFd {
        &self.files[self.current()]
    }

    /// Returns true if a file begins at the position.
    pub(super) fn begins_file(&self) -> bool {
        self.at.is_multiple_of(self.per_file)
    }

    /// The error of an operation at the position.
    pub(super) fn fault(&self, op: Op, errno: Errno) -> Halt {
        let mut error = fault(op, &self.paths[self.current()], errno);
        error.offset = Some(self.at % self.per_file * self.chunk);
        Halt::from(error)
    }

    /// A short write: the originals treat it as a full disk.
    pub(super) fn cut_short(&self, wrote: usize, of: usize) -> Halt {
        let detail = format!("{wrote} of {of} bytes were written");
        let path = &self.paths[self.current()];
        Halt::from(refusal(Op::Write, path, Errno::NOSPC, detail))
    }

    /// Moves the position over a chunk that was just read or written. Where a file ends, the next
    /// one begins at its beginning.
    pub(super) fn advance(&mut self) -> Result<(), Errno> {
        self.at += 1;
        if self.begins_file() && ((self.at / self.per_file) as usize) < self.files.len() {
            rustix::fs::seek(self.file(), SeekFrom::Start(0))?;
        }
        Ok(())
    }

    /// Reads the chunk at the position. Returns how much of it there was.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::io::read(self.file(), buffer)
    }

    /// Writes the chunk at the position.
    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), Halt> {
        let wrote =
            rustix::io::write(self.file(), chunk).map_err(|errno| self.fault(Op::Write, errno))?;
        if wrote < chunk.len() {
            return Err(self.cut_short(wrote, chunk.len()));
        }
        Ok(())
    }

    /// Takes the file's offset back by so many bytes.
    pub(super) fn step_back(&self, bytes: usize) -> Result<(), Errno> {
        rustix::fs::seek(self.file(), SeekFrom::Current(-(bytes as i64))).map(drop)
    }

    /// Closes all files, flushing each before if the plan says so.
    pub(super) fn close(self, flush: bool, worker: &mut Worker<'_>) -> Result<(), Halt> {
        for (file, path) in self.files.into_iter().zip(&self.paths) {
            if flush {
                worker
                    .time(Op::Fsync, || rustix::fs::fsync(&file).map(|()| 0))
                    .map_err(|errno| fault(Op::Fsync, path, errno))?;
            }
            close(file).map_err(|errno| fault(Op::Write, path, errno))?;
        }
        Ok(())
    }
}
