//! Requests that are handed to io_uring one by one.

use std::os::fd::AsRawFd;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::io::{Errno, retry_on_intr};

use super::job::{Job, TransferMethod};
use super::requests::SysbenchStep;
use super::transfer::{SysbenchFiles, ThreadBuffers};
use crate::io::uring;
use crate::outcome::Op;
use crate::worker_pool::{Halt, Worker, fault, refusal};

impl<'a> SysbenchFiles<'a> {
    /// A ring for one thread, made by that thread.
    pub(super) fn queued(
        &self,
        buffers: ThreadBuffers,
        backlog: u32,
    ) -> Result<AsyncTransfer<'_>, Halt> {
        let ring = uring::build(backlog as usize).map_err(|error| {
            let ops = self.plan.mode.ops();
            refusal(
                ops[0],
                &self.plan.directory,
                Errno::NOSYS,
                error.to_string(),
            )
        })?;
        Ok(AsyncTransfer {
            ring,
            blocks: self,
            buffers,
            begun: vec![None; backlog as usize],
            free: (0..backlog).collect(),
        })
    }
}

/// A ring and one buffer for all outstanding requests, as in the original. The ring is dropped
/// before the buffer.
pub(super) struct AsyncTransfer<'a> {
    ring: IoUring,
    blocks: &'a SysbenchFiles<'a>,
    buffers: ThreadBuffers,
    /// The step that is outstanding in each place, and its start.
    begun: Vec<Option<(SysbenchStep, u64)>>,
    /// Places with nothing outstanding.
    free: Vec<u32>,
}

impl AsyncTransfer<'_> {
    fn entry(&mut self, step: SysbenchStep) -> squeue::Entry {
        let file = Fd(self.blocks.files[step.file as usize].as_raw_fd());
        if step.op == Op::Read {
            opcode::Read::new(file, self.buffers.buffer.as_ptr(), step.bytes)
                .offset(step.offset)
                .build()
        } else {
            let block = self.buffers.filler.block(step.offset, step.bytes as usize);
            opcode::Write::new(file, block.as_ptr(), step.bytes)
                .offset(step.offset)
                .build()
        }
    }

    /// Waits for at least so many completions and takes all there are.
    fn reap(&mut self, least: usize, job: &Job<'_>, worker: &mut Worker<'_>) -> Result<(), Halt> {
        retry_on_intr(|| {
            let submitted = self.ring.submit_and_wait(least);
            submitted.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })
        .map_err(|errno| fault(Op::Read, &self.blocks.plan.directory, errno))?;
        loop {
            let next = self.ring.completion().next();
            let Some(done) = next else {
                return Ok(());
            };
            let place = done.user_data() as u32;
            // A completion of an unknown slot: ignore it rather than free a slot twice.
            let Some((step, begun_ns)) = self.begun[place as usize].take() else {
                continue;
            };
            self.free.push(place);
            let moved = usize::try_from(done.result()).map_err(|_| {
                self.blocks
                    .failed(step, Errno::from_raw_os_error(-done.result()))
            })?;
            self.blocks.whole(step, moved)?;
            job.done(self, (step.op, step.file, moved as u64), begun_ns, worker)?;
        }
    }
}

impl TransferMethod for AsyncTransfer<'_> {
    fn transfer(
        &mut self,
        step: SysbenchStep,
        begun_ns: u64,
        job: &Job<'_>,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let Some(place) = self.free.pop() else {
            let detail = "more requests are outstanding than the backlog has places";
            return Err(refusal(step.op, &self.blocks.plan.directory, Errno::AGAIN, detail).into());
        };
        let entry = self.entry(step).user_data(u64::from(place));
        self.begun[place as usize] = Some((step, begun_ns));
        // SAFETY: the buffers live until the ring has been drained and dropped, for they stand
        // beside it; overlapping reads and writes change only bytes that the program never
        // inspects.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| self.blocks.failed(step, Errno::BUSY))?;
        // Waits only if every place is taken; one is free again then.
        let least = usize::from(self.free.is_empty());
        if least == 0 {
            let submitted = self.ring.submit();
            return submitted.map(drop).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                self.blocks.failed(step, errno).into()
            });
        }
        self.reap(least, job, worker)
    }

    fn sync(&mut self, file: u32) -> Result<(), Halt> {
        self.blocks.fsync(file)
    }

    fn drain(&mut self, job: &Job<'_>, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let mut result = Ok(());
        while self.free.len() < self.begun.len() {
            let outstanding = self.begun.len() - self.free.len();
            // Also after a failure: outstanding requests may still use the buffers.
            result = result.and(self.reap(1, job, worker));
            if result.is_err() && outstanding == self.begun.len() - self.free.len() {
                // The ring itself is broken: no more completions will arrive.
                break;
            }
        }
        result
    }
}
