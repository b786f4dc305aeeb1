//! Calls that move no data: on the names of files, on their length, on their blocks.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, StatxFlags};
use rustix::io::retry_on_intr;

use super::sync::sync_file;
use super::{IoDevice, IoFailure};
use crate::outcome::Op;
use crate::shape::BlockStep;
use crate::spec::{IoEngine, IoTarget, NameCall};

/// One call on a file's name for each operation.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) targets: &'a [IoTarget],
    pub(crate) call: NameCall,
}

impl IoDevice for Names<'_> {
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        let path = &self.targets[step.target as usize].path;
        match self.call {
            NameCall::Create => {
                let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
                // Dropped at once: closing it is part of the operation.
                retry_on_intr(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o644)))?;
            }
            NameCall::Stat => {
                let flags = (AtFlags::empty(), StatxFlags::BASIC_STATS);
                retry_on_intr(|| rustix::fs::statx(CWD, path, flags.0, flags.1))?;
            }
            NameCall::Delete => rustix::fs::unlink(path)?,
        }
        Ok(step.size)
    }

    fn sync(&mut self, _target: u32) -> Result<(), IoFailure> {
        // Nothing was written.
        Ok(())
    }
}

/// Reserves blocks, gives them back, or sets lengths.
#[derive(Debug)]
pub(crate) struct Extents<'a> {
    pub(crate) files: &'a [OwnedFd],
    /// [`IoEngine::Length`], [`IoEngine::Punch`] or [`IoEngine::Reserve`].
    pub(crate) call: IoEngine,
}

impl IoDevice for Extents<'_> {
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        let file = &self.files[step.target as usize];
        let (offset, size) = (step.offset, u64::from(step.size));
        let flags = match (self.call, step.op) {
            (IoEngine::Length, _) => {
                retry_on_intr(|| rustix::fs::ftruncate(file, offset))?;
                return Ok(step.size);
            }
            // The kernel wants both (fallocate(2)).
            (IoEngine::Punch, _) => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            (_, Op::Write) => FallocateFlags::empty(),
            _ => FallocateFlags::KEEP_SIZE,
        };
        retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, size))?;
        Ok(step.size)
    }

    fn sync(&mut self, target: u32) -> Result<(), IoFailure> {
        Ok(sync_file(&self.files[target as usize], false)?)
    }
}
