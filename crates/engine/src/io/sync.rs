//! One plain call per operation.
//!
//! The calls are inlined into the loop (rustix's own system calls, not the C library's): returning
//! from a function right after a system call costs about 120 ns where the kernel has cleared the
//! processor's return predictor.

use std::os::fd::OwnedFd;

use super::{IoDevice, IoFailure};
use crate::content::ContentPool;
use crate::outcome::Op;
use crate::shape::BlockStep;
use crate::verify::Slots;
use stackrace_system::memory::AlignedMemory;
use stackrace_system::retry::again;

/// Reads by `pread`, writes by `pwrite`.
#[derive(Debug)]
pub(crate) struct Sync<'a> {
    pub(crate) files: &'a [OwnedFd],
    pub(crate) read: AlignedMemory,
    /// The content to write. `None` means the content of `read`.
    pub(crate) pool: Option<ContentPool>,
    /// fdatasync instead of fsync.
    pub(crate) data_only: bool,
}

impl IoDevice for Sync<'_> {
    #[inline(always)]
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        let file = &self.files[step.target as usize];
        let size = step.size as usize;
        let moved = match (step.op, &mut self.pool) {
            (Op::Write, Some(pool)) => {
                let bytes = pool.take(size);
                again(|| rustix::io::pwrite(file, bytes, step.offset))?
            }
            (Op::Write, None) => {
                let bytes = &self.read.bytes()[..size];
                again(|| rustix::io::pwrite(file, bytes, step.offset))?
            }
            _ => {
                let bytes = &mut self.read.bytes_mut()[..size];
                again(|| rustix::io::pread(file, &mut *bytes, step.offset))?
            }
        };
        if moved == 0 {
            return Err(match step.op {
                Op::Write => IoFailure::NOTHING_WRITTEN,
                _ => IoFailure::END_OF_FILE,
            });
        }
        // No more than `size`, which came from 32 bits.
        Ok(moved as u32)
    }

    #[inline]
    fn sync(&mut self, target: u32) -> Result<(), IoFailure> {
        Ok(sync_file(&self.files[target as usize], self.data_only)?)
    }
}

impl Slots for Sync<'_> {
    #[inline]
    fn buffer(&mut self, _slot: usize, bytes: usize) -> &mut [u8] {
        &mut self.read.bytes_mut()[..bytes]
    }
}

/// Calls fdatasync if `data_only`, else fsync; again if a signal interrupts it.
pub(crate) fn sync_file(file: &OwnedFd, data_only: bool) -> rustix::io::Result<()> {
    again(|| {
        if data_only {
            stackrace_system::fdatasync(file)
        } else {
            rustix::fs::fsync(file)
        }
    })
}
