//! One operation of a phase, and which part of a phase a worker does.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::outcome::Op;
use crate::spec::{AccessPattern, Spec};

/// One operation to issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockStep {
    /// [`Op::Read`] or [`Op::Write`].
    pub op: Op,
    /// Index into [`crate::spec::Spec::targets`].
    pub target: u32,
    /// Bytes.
    pub size: u32,
    /// Bytes from the beginning of the target.
    pub offset: u64,
}

/// The part of a phase that a worker does.
#[derive(Debug, Clone)]
pub struct WorkerShare {
    /// Its number, from 0.
    pub worker: u32,
    /// Number of workers.
    pub workers: u32,
    /// The sequential streams: the worker's thread, and how many threads the spec asks for. Workers
    /// that stand in for one thread's queue depth advance one stream together.
    pub stream: (u32, u32),
    /// The position shared by the workers of one stream; `None` if the worker has its own.
    pub cursor: Option<Arc<AtomicU64>>,
}

impl WorkerShare {
    /// The shares of so many workers in all of a phase.
    pub(crate) fn all(spec: &Spec, workers: u32) -> impl Iterator<Item = WorkerShare> {
        let threads = spec.threads;
        // Workers that replace one thread's queue depth share that thread's stream.
        // Random access needs no shared stream: any worker may take any block.
        let together = workers > threads && spec.access == AccessPattern::Sequential;
        let cursors: Vec<_> = (0..threads)
            .map(|_| together.then(|| Arc::new(AtomicU64::new(0))))
            .collect();
        (0..workers).map(move |worker| {
            let thread = worker % threads;
            let cursor = cursors[thread as usize].clone();
            WorkerShare {
                worker,
                workers,
                stream: (thread, threads),
                cursor,
            }
        })
    }

    /// The share of one worker that is also one thread of the spec.
    pub fn of_thread(worker: u32, workers: u32) -> WorkerShare {
        WorkerShare {
            worker,
            workers,
            stream: (worker, workers),
            cursor: None,
        }
    }

    /// Number of operations of `total` that this worker does: as even as can be, exact in sum.
    pub fn operations(&self, total: u64) -> u64 {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        total / workers + u64::from(worker < total % workers)
    }

    /// Number of operations of `total` that the workers before this one do.
    pub(super) fn operations_before(&self, total: u64) -> u64 {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        // The first `total % workers` workers do one operation more.
        worker * (total / workers) + worker.min(total % workers)
    }
}
