//! Writes that read their block first: what bonnie++ calls rewriting.

use std::os::fd::OwnedFd;

use super::sync::sync_file;
use super::{IoDevice, IoFailure};
use crate::outcome::Op;
use crate::shape::BlockStep;
use stackrace_system::memory::AlignedMemory;
use stackrace_system::retry::again;

/// Reads by `pread`; writes by `pread`, another value in one byte, and `pwrite`.
#[derive(Debug)]
pub(crate) struct Update<'a> {
    pub(crate) files: &'a [OwnedFd],
    pub(crate) block: AlignedMemory,
    /// fdatasync instead of fsync.
    pub(crate) data_only: bool,
    /// Blocks changed so far: each is changed in another place.
    pub(crate) changed: usize,
}

impl IoDevice for Update<'_> {
    #[inline]
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        let file = &self.files[step.target as usize];
        let block = &mut self.block.bytes_mut()[..step.size as usize];
        let mut moved = again(|| rustix::io::pread(file, &mut *block, step.offset))?;
        if moved == 0 {
            return Err(IoFailure::END_OF_FILE);
        }
        if step.op == Op::Write {
            let byte = &mut block[self.changed % moved];
            *byte = byte.wrapping_add(1);
            self.changed += 1;
            let bytes = &block[..moved];
            moved = again(|| rustix::io::pwrite(file, bytes, step.offset))?;
            if moved == 0 {
                return Err(IoFailure::NOTHING_WRITTEN);
            }
        }
        // No more than the step's size, which came from 32 bits.
        Ok(moved as u32)
    }

    #[inline]
    fn sync(&mut self, target: u32) -> Result<(), IoFailure> {
        Ok(sync_file(&self.files[target as usize], self.data_only)?)
    }
}
