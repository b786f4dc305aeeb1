//! sysbench fileio, request for request: six modes over a set of files, fsync in bursts.
//!
//! What `docs/workloads/sysbench.md` says in words happens here. In version 1.0 every request, an
//! fsync of the cadence too, is an event; the fsyncs at the end are none. In version 0.4 only reads
//! and writes are. The original takes a mutex twice per request; here all threads share a few
//! atomic words (`requests`), so that with many threads this is faster than sysbench is.
//!
//! Units: bytes, nanoseconds.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode as Permissions, OFlags};
use rustix::io::Errno;

use crate::control::Control;
use crate::draw::Draw;
use crate::error::StartError;
use crate::outcome::{Op, OpError, OpOutcome, PhaseOutcome};
use crate::pacing::{exponential, sleep_ns};
use crate::spec::Content;
use crate::target::O_DSYNC;
use crate::watch::spin_ns;
use crate::worker_pool::{Halt, PhaseOptions, Worker, WorkerPool, fault, refusal};
use requests::{RequestSource, SysbenchRequest};
use transfer::{SysbenchFiles, TransferMethod};

pub use live::{BUCKETS, LiveCounters, bucket_ms, bucket_of};
pub use prepare::{FilePreparation, Preparation};

mod live;
mod prepare;
mod requests;
mod transfer;

/// Longest sleep before the world is looked at again, ns.
const LOOK_NS: u64 = 10_000_000;

/// Which sysbench: they measure different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysbenchVersion {
    /// 0.4.12: one pass in the sequential modes, without a cadence; one fsync of each file at the
    /// end of the work, as requests; whole blocks always; the generator of the C library.
    V0_4,
    /// 1.0.20: endless in every mode; each thread syncs every file at the end.
    V1_0,
}

/// What is done.
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
    /// Whether one cursor goes over the files.
    pub fn sequential(self) -> bool {
        matches!(self, Self::SeqWrite | Self::SeqRewrite | Self::SeqRead)
    }

    /// Whether anything is written.
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

/// How bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// `pread` and `pwrite`.
    Sync,
    /// Up to so many requests of a thread outstanding, each handed over by itself, through
    /// io_uring (the original: Linux native AIO). A thread waits only when so many are; a latency
    /// lasts until the completion was seen. fsync is a plain call.
    Async {
        /// At least 1.
        backlog: u32,
    },
    /// The files are mapped, shared; fsync is `msync` of a whole file.
    Mmap,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub struct SysbenchPlan {
    /// Where the files are: `test_file.0`, `test_file.1`, …
    pub directory: PathBuf,
    /// Which sysbench.
    pub version: SysbenchVersion,
    /// What is done.
    pub mode: SysbenchMode,
    /// How.
    pub transfer: Transfer,
    /// At least 1.
    pub files: u32,
    /// Bytes of all files; one has this over their number, rounded down.
    pub total_bytes: u64,
    /// Bytes of one request.
    pub block_size: u32,
    /// Sequential modes: so many blocks in one request; 0 and 1: one.
    pub merged: u32,
    /// Open with `O_SYNC`.
    pub open_sync: bool,
    /// Open with `O_DSYNC`.
    pub open_dsync: bool,
    /// Open with `O_DIRECT`.
    pub direct: bool,
    /// After so many requests every file is synced, if anything was written; 0: never.
    pub fsync_every: u32,
    /// Sync after each write, inside its latency; the other two are off then.
    pub fsync_each: bool,
    /// Sync every file at the end.
    pub fsync_at_end: bool,
    /// `fdatasync` instead of `fsync`.
    pub data_only: bool,
    /// Reads for each write where both are done.
    pub ratio: f64,
    /// Blocks carry a checksum (CRC-32 of zlib) and their offset in their last 12 bytes, and are
    /// checked when read.
    pub validate: bool,
    /// What is written, if it is not validated.
    pub content: Content,
    /// At least 1.
    pub threads: u32,
    /// Stop after so many events; 0: never. Version 0.4 heeds it in random modes only.
    pub events: u64,
    /// Stop after this long, ns.
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

/// What came of it.
#[derive(Debug)]
pub struct SysbenchOutcome {
    /// Everything, the fsyncs at the end included.
    pub outcome: PhaseOutcome,
    /// What each thread did before those: of version 1.0 the events, unless each write is synced.
    pub threads: Vec<Vec<OpOutcome>>,
}

impl SysbenchPlan {
    /// What a version does in the working directory if nothing is asked of it but a mode; without
    /// one, random reads.
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
    fn reach(&self) -> u64 {
        match self.version {
            SysbenchVersion::V0_4 if !self.mode.sequential() => self
                .file_bytes()
                .next_multiple_of(u64::from(self.block_size)),
            _ => self.file_bytes(),
        }
    }

    /// One file.
    pub fn path(&self, file: u32) -> PathBuf {
        self.directory.join(format!("test_file.{file}"))
    }

    /// Bytes of one request at most.
    fn request_bytes(&self) -> u32 {
        if self.mode.sequential() {
            self.block_size * self.merged.max(1)
        } else {
            self.block_size
        }
    }

    fn requests_of_file(&self) -> u64 {
        self.file_bytes().div_ceil(u64::from(self.request_bytes()))
    }

    /// Requests between two bursts of fsync; 0: none.
    fn cadence(&self) -> u32 {
        let single_pass = self.version == SysbenchVersion::V0_4 && self.mode.sequential();
        if self.fsync_each || single_pass {
            return 0;
        }
        self.fsync_every
    }

    /// Refuses what cannot be carried out.
    ///
    /// # Errors
    /// [`StartError::Spec`].
    pub fn check(&self) -> Result<(), StartError> {
        let block = u64::from(self.block_size);
        let request = block.saturating_mul(u64::from(self.merged.max(1)));
        let wrong = if self.files == 0 || self.threads == 0 || block == 0 {
            "files, threads and block size must be at least 1".to_owned()
        } else if self.file_bytes() == 0 || self.file_bytes() < block && !self.mode.sequential() {
            let file = self.file_bytes();
            format!("a file of {file} bytes has no room for a block of {block}")
        } else if request > 1 << 30 {
            format!("a request of {request} bytes is more than 1 GiB")
        } else if self.fsync_every > i32::MAX as u32 {
            format!("a burst of fsync after {} requests", self.fsync_every)
        } else if self.validate && block <= prepare::SEAL as u64 {
            format!("a block of {block} bytes has no room for a checksum and an offset")
        } else if self.validate && matches!(self.transfer, Transfer::Async { .. }) {
            "asynchronous requests of a thread share one buffer, so nothing can be validated"
                .to_owned()
        } else if self.transfer == (Transfer::Async { backlog: 0 }) {
            "a backlog of 0 lets nothing be outstanding".to_owned()
        } else {
            return Ok(());
        };
        Err(StartError::Spec {
            what: wrong,
            next: "change one of these numbers",
        })
    }

    /// Runs the plan on files that [`SysbenchPlan::prepare`] made; `SeqWrite` makes its own.
    ///
    /// # Errors
    /// The plan makes no sense, files are missing or short, or there is no memory.
    pub fn run(
        &self,
        control: &Control,
        live: Option<&LiveCounters>,
    ) -> Result<SysbenchOutcome, StartError> {
        self.check()?;
        let files = self.open()?;
        let blocks = SysbenchFiles::new(self, &files)?;
        let parts = (0..self.threads)
            .map(|thread| Ok((thread, blocks.buffers(thread)?)))
            .collect::<Result<Vec<_>, StartError>>()?;
        let source = RequestSource::new(self);
        let before_end = Mutex::new(vec![Vec::new(); self.threads as usize]);
        let job = Job {
            plan: self,
            source: &source,
            live,
            next_arrival_ns: AtomicU64::new(0),
            before_end: &before_end,
        };
        let mut ops = self.mode.ops().to_vec();
        if self.mode.writes() {
            ops.push(Op::Fsync);
        }
        let workers = WorkerPool {
            watch: PhaseOptions {
                slice_ns: self.slice_ns,
                control,
                ops: &ops,
            },
            why: blocks.why().to_owned(),
            root: &self.directory,
            keep: &files,
        };
        let work =
            |(thread, buffers): (u32, transfer::ThreadBuffers), worker: &mut Worker<'_>| match self
                .transfer
            {
                Transfer::Sync => job.work(thread, blocks.sync(buffers), worker),
                Transfer::Async { backlog } => {
                    job.work(thread, blocks.queued(buffers, backlog)?, worker)
                }
                Transfer::Mmap => job.work(thread, blocks.mapped(buffers), worker),
            };
        let outcome = workers
            .together(parts, work, None)
            .map_err(StartError::LayOut)?;
        let threads = before_end
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(SysbenchOutcome { outcome, threads })
    }

    /// Opens every file as the mode wants it.
    fn open(&self) -> Result<Vec<OwnedFd>, StartError> {
        (0..self.files).map(|file| self.open_one(file)).collect()
    }

    fn open_one(&self, file: u32) -> Result<OwnedFd, StartError> {
        let path = self.path(file);
        let failed = |errno: Errno| match errno {
            Errno::INVAL if self.direct => StartError::DirectRefused { path: path.clone() },
            errno => StartError::Open {
                path: path.clone(),
                errno: errno.raw_os_error(),
            },
        };
        let mut flags = OFlags::RDWR | self.flags();
        if self.mode == SysbenchMode::SeqWrite {
            match rustix::fs::unlink(&path) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(failed(errno)),
            }
            flags |= OFlags::CREATE | OFlags::EXCL;
        }
        let fd =
            rustix::fs::open(&path, flags, Permissions::from_raw_mode(0o600)).map_err(failed)?;
        if self.mode == SysbenchMode::SeqWrite {
            // A mapping ends where its file does.
            if self.transfer == Transfer::Mmap {
                rustix::fs::ftruncate(&fd, self.file_bytes()).map_err(failed)?;
            }
            return Ok(fd);
        }
        let (found, needed) = (
            rustix::fs::fstat(&fd).map_err(failed)?.st_size,
            self.reach(),
        );
        if (found.unsigned_abs()) < needed {
            let name = path.file_name().unwrap_or(path.as_os_str()).display();
            return Err(StartError::Spec {
                what: format!("{name} holds {found} bytes, and {needed} are needed"),
                next: "prepare again, with the size and number of files given here",
            });
        }
        Ok(fd)
    }

    fn flags(&self) -> OFlags {
        let mut flags = OFlags::CLOEXEC;
        flags.set(OFlags::SYNC, self.open_sync);
        flags.set(O_DSYNC, self.open_dsync);
        flags.set(OFlags::DIRECT, self.direct);
        flags
    }
}

/// What all threads work by.
struct Job<'a> {
    plan: &'a SysbenchPlan,
    source: &'a RequestSource<'a>,
    live: Option<&'a LiveCounters>,
    /// When the next event of an open loop arrives that no thread has taken yet.
    next_arrival_ns: AtomicU64,
    before_end: &'a Mutex<Vec<Vec<OpOutcome>>>,
}

/// What follows from the seed besides the blocks.
const ARRIVALS: u64 = 0x6172_7269_7665_0000;
const PLACES: u64 = 0x706c_6163_6573_0000;

impl Job<'_> {
    fn work<M: TransferMethod>(
        &self,
        thread: u32,
        mut method: M,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let mut arrivals = Draw::new(self.plan.seed, ARRIVALS | u64::from(thread));
        let mut places = Draw::new(self.plan.seed, PLACES | u64::from(thread));
        let result = match self.plan.rate {
            None => self.closed(thread as usize, &mut method, &mut places, worker),
            Some(rate) => {
                let mean_ns = 1e9 / rate;
                self.open_loop(
                    thread as usize,
                    &mut method,
                    &mut places,
                    worker,
                    |job, worker| job.arrival(mean_ns, &mut arrivals, worker),
                )
            }
        };
        let drained = method.drain(self, worker);
        let mut all = self
            .before_end
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        all[thread as usize] = worker.done();
        drop(all);
        result?;
        drained?;
        self.close(&mut method, worker)
    }

    fn closed<M: TransferMethod>(
        &self,
        thread: usize,
        method: &mut M,
        places: &mut Draw,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let deadline_ns = self.plan.time_ns.unwrap_or(u64::MAX);
        loop {
            worker.proceed()?;
            let now_ns = worker.now_ns();
            if now_ns >= deadline_ns {
                return Ok(());
            }
            let Some(request) = self.source.next(thread, places) else {
                return Ok(());
            };
            self.carry_out(request, thread, now_ns, method, worker)?;
        }
    }

    fn open_loop<M: TransferMethod>(
        &self,
        thread: usize,
        method: &mut M,
        places: &mut Draw,
        worker: &mut Worker<'_>,
        mut arrival: impl FnMut(&Self, &mut Worker<'_>) -> Result<Option<u64>, Halt>,
    ) -> Result<(), Halt> {
        while let Some(arrived_ns) = arrival(self, worker)? {
            let Some(request) = self.source.next(thread, places) else {
                return Ok(());
            };
            self.carry_out(request, thread, arrived_ns, method, worker)?;
        }
        Ok(())
    }

    /// Takes the next arrival of the queue and waits for it; none: the time is over before. The
    /// gap to the one after it is drawn by whoever takes this one.
    fn arrival(
        &self,
        mean_ns: f64,
        draw: &mut Draw,
        worker: &mut Worker<'_>,
    ) -> Result<Option<u64>, Halt> {
        let gap_ns = exponential(mean_ns, draw.bits()) as u64;
        let due_ns = self.next_arrival_ns.fetch_add(gap_ns, Ordering::Relaxed) + gap_ns;
        let deadline_ns = self.plan.time_ns.unwrap_or(u64::MAX);
        let spin_ns = spin_ns(self.plan.threads);
        loop {
            worker.proceed()?;
            let now_ns = worker.now_ns();
            if now_ns >= deadline_ns {
                return Ok(None);
            }
            if now_ns >= due_ns {
                return Ok(Some(due_ns));
            }
            match due_ns.min(deadline_ns).saturating_sub(now_ns + spin_ns) {
                0 => std::hint::spin_loop(),
                left_ns => sleep_ns(left_ns.min(LOOK_NS)),
            }
        }
    }

    #[inline(always)]
    fn carry_out<M: TransferMethod>(
        &self,
        request: SysbenchRequest,
        thread: usize,
        begun_ns: u64,
        method: &mut M,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        match request {
            SysbenchRequest::Move(step) => {
                method.go(step, begun_ns, self, worker)?;
                self.source.release(thread);
                Ok(())
            }
            SysbenchRequest::Fsync { file } => {
                method.sync(file)?;
                let ended_ns = worker.now_ns();
                worker.record(Op::Fsync, begun_ns, ended_ns, 0);
                self.tell(Op::Fsync, ended_ns.saturating_sub(begun_ns), 0);
                Ok(())
            }
        }
    }

    /// A read or write is done: syncs it if every write is, and records it.
    #[inline(always)]
    fn done<M: TransferMethod>(
        &self,
        method: &mut M,
        (op, file, bytes): (Op, u32, u64),
        begun_ns: u64,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let mut ended_ns = worker.now_ns();
        if self.plan.fsync_each && op == Op::Write {
            method.sync(file)?;
            let written_ns = ended_ns;
            ended_ns = worker.now_ns();
            worker.record(Op::Fsync, written_ns, ended_ns, 0);
            if let Some(live) = self.live {
                live.fsync();
            }
        }
        worker.record(op, begun_ns, ended_ns, bytes);
        self.source.completed(op);
        self.tell(op, ended_ns.saturating_sub(begun_ns), bytes);
        Ok(())
    }

    #[inline(always)]
    fn tell(&self, op: Op, latency_ns: u64, bytes: u64) {
        if let Some(live) = self.live {
            live.event(op, latency_ns, bytes);
        }
    }

    /// Version 1.0: each thread syncs all files, whatever mode wrote them last.
    fn close<M: TransferMethod>(
        &self,
        method: &mut M,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let asked = plan.version == SysbenchVersion::V1_0 && plan.fsync_at_end && !plan.fsync_each;
        if !asked || !plan.mode.writes() {
            return Ok(());
        }
        for file in 0..plan.files {
            worker.proceed()?;
            let begun_ns = worker.now_ns();
            method.sync(file)?;
            let ended_ns = worker.now_ns();
            worker.record(Op::Fsync, begun_ns, ended_ns, 0);
            if let Some(live) = self.live {
                live.fsync();
            }
        }
        Ok(())
    }
}

/// A failure of an operation on one place of a file.
fn at(op: Op, path: &Path, offset: u64, errno: Errno) -> OpError {
    OpError {
        offset: Some(offset),
        ..fault(op, path, errno)
    }
}

/// An operation that the system allowed and that is wrong all the same.
fn wrong(op: Op, path: &Path, offset: u64, detail: String) -> OpError {
    OpError {
        offset: Some(offset),
        ..refusal(op, path, Errno::IO, detail)
    }
}

#[cfg(test)]
#[path = "sysbench/tests.rs"]
mod tests;
