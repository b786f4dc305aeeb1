//! Systems without io_uring: plans that need it are refused before any file is touched.

use super::job::{Job, TransferMethod};
use super::requests::SysbenchStep;
use super::transfer::{SysbenchFiles, ThreadBuffers};
use crate::error::StartError;
use crate::worker_pool::{Halt, Worker, refusal};
use rustix::io::Errno;
use std::convert::Infallible;

/// Requests under way, of which there are none.
pub(super) struct NoTransfer(Infallible);

impl SysbenchFiles<'_> {
    /// A ring for one thread, which cannot be had.
    pub(super) fn queued(
        &self,
        _buffers: ThreadBuffers,
        _backlog: u32,
    ) -> Result<NoTransfer, Halt> {
        let (plan, none) = (self.plan, StartError::NoRing);
        let op = plan.mode.ops()[0];
        Err(refusal(op, &plan.directory, Errno::OPNOTSUPP, none.to_string()).into())
    }
}

impl TransferMethod for NoTransfer {
    fn transfer(
        &mut self,
        _step: SysbenchStep,
        _begun_ns: u64,
        _job: &Job<'_>,
        _worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        match self.0 {}
    }

    fn sync(&mut self, _file: u32) -> Result<(), Halt> {
        match self.0 {}
    }
}
