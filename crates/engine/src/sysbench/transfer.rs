//! How bytes get from and to the files: by calls or by mapped memory; by a ring: [`super::queued`].

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use super::job::{Job, TransferMethod};
use super::plan::{SysbenchPlan, Transfer, at, wrong};
use super::prepare::{Filler, flaw};
use super::requests::SysbenchStep;
use crate::error::StartError;
use crate::outcome::{Op, OpError};
use crate::worker_pool::{Halt, Worker, fault};
use stackrace_system::fdatasync;
use stackrace_system::mapping::Mapping;
use stackrace_system::memory::{AlignedMemory, NoMemory};
use stackrace_system::retry::again;

/// The files of a plan.
pub(super) struct SysbenchFiles<'a> {
    pub(super) plan: &'a SysbenchPlan,
    pub(super) files: &'a [OwnedFd],
    /// Mapping of each file, where they are mapped.
    maps: Vec<MappedFile>,
}

/// The buffers of one thread.
pub(super) struct ThreadBuffers {
    pub(super) buffer: AlignedMemory,
    pub(super) filler: Filler,
}

impl<'a> SysbenchFiles<'a> {
    pub(super) fn new(plan: &'a SysbenchPlan, files: &'a [OwnedFd]) -> Result<Self, StartError> {
        let maps = match plan.transfer {
            Transfer::Mmap => files
                .iter()
                .map(|fd| MappedFile::new(fd, plan.reach()))
                .collect::<Result<_, _>>()?,
            _ => Vec::new(),
        };
        Ok(SysbenchFiles { plan, files, maps })
    }

    /// Buffers of one thread.
    pub(super) fn buffers(&self, thread: u32) -> Result<ThreadBuffers, StartError> {
        Ok(ThreadBuffers {
            buffer: AlignedMemory::new(self.plan.request_bytes() as usize)?,
            filler: Filler::new(self.plan, thread)?,
        })
    }

    /// The way of moving bytes, in a clause.
    pub(super) fn why(&self) -> &'static str {
        match self.plan.transfer {
            Transfer::Sync => "sysbench's synchronous mode is pread and pwrite",
            Transfer::Async { .. } => "requests are handed to io_uring one by one",
            Transfer::Mmap => "the files are mapped",
        }
    }

    pub(super) fn sync(&self, buffers: ThreadBuffers) -> SyncTransfer<'_> {
        SyncTransfer {
            blocks: self,
            buffers,
        }
    }

    pub(super) fn mapped(&self, buffers: ThreadBuffers) -> MmapTransfer<'_> {
        MmapTransfer {
            blocks: self,
            buffers,
        }
    }

    /// Makes a file durable by a call, as the plan says which.
    pub(super) fn fsync(&self, file: u32) -> Result<(), Halt> {
        let fd = &self.files[file as usize];
        let done = if self.plan.data_only {
            fdatasync(fd)
        } else {
            rustix::fs::fsync(fd)
        };
        done.map_err(|errno| fault(Op::Fsync, &self.plan.path(file), errno).into())
    }

    #[cold]
    pub(super) fn failed(&self, step: SysbenchStep, errno: Errno) -> OpError {
        at(step.op, &self.plan.path(step.file), step.offset, errno)
    }

    /// A short transfer is an error, as in the original.
    pub(super) fn whole(&self, step: SysbenchStep, moved: usize) -> Result<(), OpError> {
        if moved == step.bytes as usize {
            return Ok(());
        }
        let detail = format!("{moved} of {} bytes were moved", step.bytes);
        Err(wrong(
            step.op,
            &self.plan.path(step.file),
            step.offset,
            detail,
        ))
    }

    /// Checks the content of a read, if the plan validates.
    fn check(&self, step: SysbenchStep, block: &[u8]) -> Result<(), OpError> {
        if !self.plan.validate || step.op != Op::Read {
            return Ok(());
        }
        match flaw(block, step.offset) {
            None => Ok(()),
            Some(flaw) => Err(wrong(
                Op::Read,
                &self.plan.path(step.file),
                step.offset,
                flaw,
            )),
        }
    }
}

/// Moves data with `pread` and `pwrite`.
pub(super) struct SyncTransfer<'a> {
    blocks: &'a SysbenchFiles<'a>,
    buffers: ThreadBuffers,
}

impl TransferMethod for SyncTransfer<'_> {
    #[inline(always)]
    fn transfer(
        &mut self,
        step: SysbenchStep,
        begun_ns: u64,
        job: &Job<'_>,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let fd = &self.blocks.files[step.file as usize];
        let bytes = step.bytes as usize;
        let moved = if step.op == Op::Read {
            let buffer = &mut self.buffers.buffer.bytes_mut()[..bytes];
            again(|| rustix::io::pread(fd, &mut *buffer, step.offset))
        } else {
            let block = self.buffers.filler.block(step.offset, bytes);
            again(|| rustix::io::pwrite(fd, block, step.offset))
        };
        let moved = moved.map_err(|errno| self.blocks.failed(step, errno))?;
        self.blocks.whole(step, moved)?;
        job.done(self, (step.op, step.file, moved as u64), begun_ns, worker)?;
        let block = &self.buffers.buffer.bytes()[..bytes];
        Ok(self.blocks.check(step, block)?)
    }

    fn sync(&mut self, file: u32) -> Result<(), Halt> {
        self.blocks.fsync(file)
    }
}

/// A whole file in memory, shared with the page cache.
struct MappedFile(Mapping);

impl MappedFile {
    fn new(fd: &OwnedFd, bytes: u64) -> Result<MappedFile, StartError> {
        let refused = |errno: Errno| NoMemory {
            bytes: bytes as usize,
            errno: errno.raw_os_error(),
        };
        let bytes = usize::try_from(bytes).map_err(|_| refused(Errno::NOMEM))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let mapped = Mapping::of_file(fd, 0, bytes, protection, MapFlags::SHARED);
        Ok(MappedFile(mapped.map_err(refused)?))
    }

    fn sync(&self) -> Result<(), Errno> {
        // The flags of sysbench.
        let flags = MsyncFlags::SYNC | MsyncFlags::INVALIDATE;
        // SAFETY: the range is a mapping that lives as long as `self`, and no reference to it exists.
        unsafe { rustix::mm::msync(self.0.start().as_ptr().cast(), self.0.size(), flags) }
    }
}

/// Moves data through files that are mapped into memory.
pub(super) struct MmapTransfer<'a> {
    blocks: &'a SysbenchFiles<'a>,
    buffers: ThreadBuffers,
}

impl TransferMethod for MmapTransfer<'_> {
    #[inline(always)]
    fn transfer(
        &mut self,
        step: SysbenchStep,
        begun_ns: u64,
        job: &Job<'_>,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let map = &self.blocks.maps[step.file as usize].0;
        // Beyond what an address can name nothing is mapped.
        let offset = usize::try_from(step.offset).unwrap_or(usize::MAX);
        let bytes = step.bytes as usize;
        if step.op == Op::Read {
            map.read(offset, &mut self.buffers.buffer.bytes_mut()[..bytes]);
        } else {
            map.write(offset, self.buffers.filler.block(step.offset, bytes));
        }
        job.done(self, (step.op, step.file, bytes as u64), begun_ns, worker)?;
        let block = &self.buffers.buffer.bytes()[..bytes];
        Ok(self.blocks.check(step, block)?)
    }

    fn sync(&mut self, file: u32) -> Result<(), Halt> {
        let done = self.blocks.maps[file as usize].sync();
        done.map_err(|errno| fault(Op::Fsync, &self.blocks.plan.path(file), errno).into())
    }
}
