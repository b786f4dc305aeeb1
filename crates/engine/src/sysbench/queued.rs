//! Requests that are handed to io_uring one by one.

use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::io::Errno;

use super::job::{Job, TransferMethod};
use super::requests::SysbenchStep;
use super::transfer::{SysbenchFiles, ThreadBuffers};
use crate::io::uring;
use crate::outcome::Op;
use crate::worker_pool::{Halt, Worker, fault, refusal};
use stackrace_system::retry::again;

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
            backlog: Backlog::new(buffers, backlog),
        })
    }
}

/// A ring and one buffer for all outstanding requests, as in the original.
pub(super) struct AsyncTransfer<'a> {
    ring: IoUring,
    blocks: &'a SysbenchFiles<'a>,
    backlog: Backlog,
}

/// The requests that are outstanding, and the buffers they use.
struct Backlog {
    /// Freed only if nothing is outstanding.
    buffers: ManuallyDrop<ThreadBuffers>,
    /// The step that is outstanding in each place, and its start.
    begun: Vec<Option<(SysbenchStep, u64)>>,
    /// Places with nothing outstanding.
    free: Vec<u32>,
}

impl Backlog {
    fn new(buffers: ThreadBuffers, places: u32) -> Self {
        Self {
            buffers: ManuallyDrop::new(buffers),
            begun: vec![None; places as usize],
            free: (0..places).collect(),
        }
    }

    fn outstanding(&self) -> usize {
        self.begun.len() - self.free.len()
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        if self.outstanding() == 0 {
            // SAFETY: nothing uses them any more: each request has come back, and `self` is going.
            unsafe { ManuallyDrop::drop(&mut self.buffers) }
        }
        // Else the ring is broken, and the kernel may still read or write them. Closing the ring does
        // not wait for that. Leaking them is safe; freeing them is not.
    }
}

impl AsyncTransfer<'_> {
    fn entry(&mut self, step: SysbenchStep) -> squeue::Entry {
        let file = Fd(self.blocks.files[step.file as usize].as_raw_fd());
        if step.op == Op::Read {
            opcode::Read::new(file, self.backlog.buffers.buffer.as_ptr(), step.bytes)
                .offset(step.offset)
                .build()
        } else {
            let block = self
                .backlog
                .buffers
                .filler
                .block(step.offset, step.bytes as usize);
            opcode::Write::new(file, block.as_ptr(), step.bytes)
                .offset(step.offset)
                .build()
        }
    }

    /// Waits for at least so many completions and takes all there are.
    fn reap(&mut self, least: usize, job: &Job<'_>, worker: &mut Worker<'_>) -> Result<(), Halt> {
        again(|| {
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
            let Some((step, begun_ns)) = self.backlog.begun[place as usize].take() else {
                continue;
            };
            self.backlog.free.push(place);
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
        let Some(place) = self.backlog.free.pop() else {
            let detail = "more requests are outstanding than the backlog has places";
            return Err(refusal(step.op, &self.blocks.plan.directory, Errno::AGAIN, detail).into());
        };
        let entry = self.entry(step).user_data(u64::from(place));
        self.backlog.begun[place as usize] = Some((step, begun_ns));
        // SAFETY: the buffers live until nothing is outstanding, or for ever; overlapping reads and
        // writes change only bytes that the program never inspects.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| self.blocks.failed(step, Errno::BUSY))?;
        // Waits only if every place is taken; one is free again then.
        let least = usize::from(self.backlog.free.is_empty());
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
        while self.backlog.outstanding() > 0 {
            let outstanding = self.backlog.outstanding();
            // Also after a failure: outstanding requests may still use the buffers.
            result = result.and(self.reap(1, job, worker));
            if result.is_err() && outstanding == self.backlog.outstanding() {
                // The ring itself is broken: no more completions will arrive.
                break;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysbench::prepare::Filler;
    use crate::sysbench::{SysbenchPlan, SysbenchVersion};
    use stackrace_system::memory::AlignedMemory;

    /// Tells if a buffer is still mapped after its backlog was dropped.
    fn stays(outstanding: u32) -> bool {
        let plan = SysbenchPlan::of(SysbenchVersion::V1_0);
        let buffer = AlignedMemory::new(4096).unwrap();
        let address = buffer.as_ptr().addr();
        let filler = Filler::new(&plan, 0).unwrap();
        let mut backlog = Backlog::new(ThreadBuffers { buffer, filler }, 4);
        for _ in 0..outstanding {
            backlog.free.pop();
        }
        drop(backlog);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ranges = maps.lines().filter_map(|line| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(from)?..number(to)?)
        });
        ranges.into_iter().any(|range| range.contains(&address))
    }

    #[test]
    fn buffers_that_a_broken_ring_may_still_use_are_not_freed() {
        assert!(stays(1), "freed although a request is outstanding");
    }
}
