//! The plan of a run of sysbench fileio.

use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::StartError;
use crate::io::uring;
use crate::outcome::{Op, OpError};
use crate::spec::Content;
use crate::target::durable_on_return;
use crate::worker_pool::{fault, refusal};
use stackrace_system::direct;

/// Bytes of the checksum and the offset at the end of a validated block.
pub(super) const SEAL_BYTES: usize = 12;

/// The version of sysbench: each measures different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysbenchVersion {
    /// 0.4.12: one pass in the sequential modes, without a cadence; one fsync of each file at the
    /// end of the work, as requests; whole blocks always; the generator of the C library.
    V0_4,
    /// 1.0.20: endless in every mode; each thread syncs every file at the end.
    V1_0,
}

/// The test mode, as `--file-test-mode` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysbenchMode {
    /// `seqwr`: new files, from beginning to end.
    SeqWrite,
    /// `seqrewr`: the same over files that exist. Nothing is read.
    SeqRewrite,
    /// `seqrd`.
    SeqRead,
    /// `rndrd`.
    RandomRead,
    /// `rndwr`.
    RandomWrite,
    /// `rndrw`.
    RandomBoth,
}

impl SysbenchMode {
    /// Returns true if one cursor goes over the files.
    pub fn sequential(self) -> bool {
        matches!(self, Self::SeqWrite | Self::SeqRewrite | Self::SeqRead)
    }

    /// Returns true if anything is written.
    pub fn writes(self) -> bool {
        !matches!(self, Self::SeqRead | Self::RandomRead)
    }

    /// The kinds of operation it issues besides fsync.
    pub fn ops(self) -> &'static [Op] {
        match self {
            Self::SeqRead | Self::RandomRead => &[Op::Read],
            Self::RandomBoth => &[Op::Read, Op::Write],
            _ => &[Op::Write],
        }
    }
}

/// A method of moving bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// `pread` and `pwrite`.
    Sync,
    /// Each thread keeps up to `backlog` requests outstanding and submits them one by one through
    /// io_uring (the original uses Linux native AIO). A thread waits only when the backlog is full.
    /// A latency ends when the completion is seen. fsync is a plain call.
    Async {
        /// Most requests outstanding, at least 1.
        backlog: u32,
    },
    /// The files are mapped, shared; fsync is `msync` of a whole file.
    Mmap,
}

/// All that sets what one sysbench run does.
#[derive(Debug, Clone, PartialEq)]
pub struct SysbenchPlan {
    /// Directory of the files: `test_file.0`, `test_file.1`, …
    pub directory: PathBuf,
    /// Version of sysbench.
    pub version: SysbenchVersion,
    /// The test mode.
    pub mode: SysbenchMode,
    /// System calls that move the data.
    pub transfer: Transfer,
    /// Number of files, at least 1.
    pub files: u32,
    /// Bytes of all files; one has this over their number, rounded down.
    pub total_bytes: u64,
    /// Bytes of one request.
    pub block_size: u32,
    /// Sequential modes: blocks per request; 0 and 1: one.
    pub merged: u32,
    /// Opens with `O_SYNC`.
    pub open_sync: bool,
    /// Opens with `O_DSYNC`.
    pub open_dsync: bool,
    /// Opens with `O_DIRECT`.
    pub direct: bool,
    /// Syncs every file after this many requests, if anything was written; 0: never.
    pub fsync_every: u32,
    /// Syncs after each write, inside its latency; the other two are off then.
    pub fsync_each: bool,
    /// Syncs every file at the end.
    pub fsync_at_end: bool,
    /// `fdatasync` instead of `fsync`.
    pub data_only: bool,
    /// Reads for each write where both are done.
    pub ratio: f64,
    /// Blocks carry a checksum (CRC-32 of zlib) and their offset in their last 12 bytes, and are
    /// checked when read.
    pub validate: bool,
    /// Content that is written, if it is not validated.
    pub content: Content,
    /// Number of threads, at least 1.
    pub threads: u32,
    /// Number of events after which it stops; 0: never. Version 0.4 uses it in random modes only.
    pub events: u64,
    /// Time after which it stops, ns.
    pub time_ns: Option<u64>,
    /// Events per second, as Poisson arrivals in one queue for all threads; latency counts from
    /// the arrival.
    pub rate: Option<f64>,
    /// Everything random follows from it. 0 means for version 0.4 what it means without
    /// `--init-rng`: the generator as the C library starts it.
    pub seed: u64,
    /// Width of one slice of the time series, ns.
    pub slice_ns: u64,
}

impl SysbenchPlan {
    /// The defaults of a version: random reads in the working directory.
    pub fn of(version: SysbenchVersion) -> SysbenchPlan {
        let (events, time_ns) = match version {
            SysbenchVersion::V0_4 => (10_000, None),
            SysbenchVersion::V1_0 => (0, Some(10_000_000_000)),
        };
        SysbenchPlan {
            directory: ".".into(),
            version,
            mode: SysbenchMode::RandomRead,
            transfer: Transfer::Sync,
            files: 128,
            total_bytes: 2 << 30,
            block_size: 16_384,
            merged: 0,
            open_sync: false,
            open_dsync: false,
            direct: false,
            fsync_every: 100,
            fsync_each: false,
            fsync_at_end: true,
            data_only: false,
            ratio: 1.5,
            validate: false,
            content: Content::Zero,
            threads: 1,
            events,
            time_ns,
            rate: None,
            seed: 0,
            slice_ns: 1_000_000_000,
        }
    }

    /// Bytes of one file.
    pub fn file_bytes(&self) -> u64 {
        self.total_bytes / u64::from(self.files.max(1))
    }

    /// Bytes of a file that are touched.
    pub(super) fn reach(&self) -> u64 {
        match self.version {
            // Whole blocks always: the last one of a file may reach beyond its end.
            SysbenchVersion::V0_4 if !self.mode.sequential() => self
                .file_bytes()
                .next_multiple_of(u64::from(self.block_size)),
            _ => self.file_bytes(),
        }
    }

    /// Path of the file of this number, from 0.
    pub fn path(&self, file: u32) -> PathBuf {
        self.directory.join(format!("test_file.{file}"))
    }

    /// Bytes of one request at most.
    pub(super) fn request_bytes(&self) -> u32 {
        if self.mode.sequential() {
            self.block_size * self.merged.max(1)
        } else {
            self.block_size
        }
    }

    pub(super) fn requests_of_file(&self) -> u64 {
        self.file_bytes().div_ceil(u64::from(self.request_bytes()))
    }

    /// Requests between two bursts of fsync; 0 means no fsync.
    pub(super) fn cadence(&self) -> u32 {
        let single_pass = self.version == SysbenchVersion::V0_4 && self.mode.sequential();
        if self.fsync_each || single_pass {
            return 0;
        }
        self.fsync_every
    }

    /// Refuses a plan that cannot be carried out.
    ///
    /// # Errors
    /// [`StartError::Spec`].
    pub fn check(&self) -> Result<(), StartError> {
        let block = u64::from(self.block_size);
        // A product that wraps around would pass for a small one.
        let request = block.saturating_mul(u64::from(self.merged.max(1)));
        let wrong = if self.files == 0 || self.threads == 0 || block == 0 {
            "files, threads and block size must be at least 1".to_owned()
        } else if self.file_bytes() == 0 || self.file_bytes() < block && !self.mode.sequential() {
            let file = self.file_bytes();
            format!("a file of {file} bytes has no room for a block of {block}")
        } else if request > 1 << 30 {
            format!("a request of {request} bytes is more than 1 GiB")
        } else if self.fsync_every > i32::MAX as u32 {
            format!(
                "a burst of fsync after {} requests is out of range",
                self.fsync_every
            )
        } else if self.validate && block <= SEAL_BYTES as u64 {
            format!("a block of {block} bytes has no room for a checksum and an offset")
        } else if self.validate && matches!(self.transfer, Transfer::Async { .. }) {
            "asynchronous requests of a thread share one buffer, so nothing can be validated"
                .to_owned()
        } else if self.transfer == (Transfer::Async { backlog: 0 }) {
            "with a backlog of 0 nothing can be outstanding".to_owned()
        } else if let (Transfer::Async { .. }, Err(none)) = (self.transfer, uring::there()) {
            return Err(none);
        } else if self.direct && direct().is_err() {
            return Err(StartError::DirectRefused {
                path: self.directory.clone(),
            });
        } else {
            return Ok(());
        };
        Err(StartError::Spec {
            what: wrong,
            next: "change one of these numbers",
        })
    }

    pub(super) fn flags(&self) -> OFlags {
        let mut flags = OFlags::CLOEXEC;
        flags |= durable_on_return(self.open_dsync, self.open_sync);
        if self.direct {
            // `check` refuses the plan where there is no such flag.
            flags |= direct().unwrap_or(OFlags::empty());
        }
        flags
    }
}

/// An error of the system at one offset of a file.
pub(super) fn at(op: Op, path: &Path, offset: u64, errno: Errno) -> OpError {
    OpError {
        offset: Some(offset),
        ..fault(op, path, errno)
    }
}

/// An operation that the system allowed but that went wrong.
pub(super) fn wrong(op: Op, path: &Path, offset: u64, detail: String) -> OpError {
    OpError {
        offset: Some(offset),
        ..refusal(op, path, Errno::IO, detail)
    }
}
