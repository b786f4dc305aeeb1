//! sysbench fileio, request for request: six modes over a set of files, fsync in bursts.
//!
//! See `docs/workloads/sysbench.md`. In version 1.0 every request is an event, also an fsync of the
//! cadence, but not the fsyncs at the end. In version 0.4 only reads and writes are events. The
//! original takes a mutex twice per request; here all threads share a few atomic words
//! (`requests`), so with many threads this is faster than sysbench.
//!
//! Units: bytes, nanoseconds.

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use rustix::fs::{Mode as Permissions, OFlags};
use rustix::io::Errno;

use crate::control::Control;
use crate::error::StartError;
use crate::outcome::{Op, OpOutcome, PhaseOutcome};
use crate::worker_pool::{PhaseOptions, Worker, WorkerPool};
use job::Job;
use requests::RequestSource;
use stackrace_system::shown::ShownPath;
use transfer::SysbenchFiles;

pub use live::{BUCKETS, LiveCounters, bucket_ms, bucket_of};
pub use plan::{SysbenchMode, SysbenchPlan, SysbenchVersion, Transfer};
pub use prepare::{FilePreparation, Preparation};

mod job;
mod live;
mod plan;
mod prepare;
#[cfg_attr(not(target_os = "linux"), path = "sysbench/no_queue.rs")]
mod queued;
mod requests;
mod transfer;

/// The results of a run.
#[derive(Debug)]
pub struct SysbenchOutcome {
    /// Everything, the fsyncs at the end included.
    pub outcome: PhaseOutcome,
    /// Work of each thread before those: of version 1.0 the events, unless each write is synced.
    pub threads: Vec<Vec<OpOutcome>>,
}

impl SysbenchPlan {
    /// Runs the plan on files that [`SysbenchPlan::prepare`] made; `SeqWrite` makes its own.
    ///
    /// # Errors
    /// The plan is invalid, files are missing or short, or memory is short.
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
            keep: Some(&files),
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
        // SAFETY: of what was opened before, the work uses the files of `keep` alone.
        let outcome = unsafe { workers.together(parts, work, None) };
        let outcome = outcome.map_err(StartError::LayOut)?;
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
            // EINVAL is how a file system refuses O_DIRECT.
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
            // A mapped page beyond the end of the file raises SIGBUS.
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
            let name = path.file_name().unwrap_or(path.as_os_str()).shown();
            return Err(StartError::Spec {
                what: format!("{name} holds {found} bytes, and {needed} are needed"),
                next: "prepare again, with the size and number of files given here",
            });
        }
        Ok(fd)
    }
}

#[cfg(test)]
#[path = "sysbench/tests.rs"]
mod tests;
