//! Systems without io_uring. A ring is refused before a phase begins, so nothing here ever runs a
//! turn; the types have no values, which the compiler checks.

use std::convert::Infallible;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::content::ContentPool;
use crate::error::StartError;
use crate::ring::{Ring, Wait};
use crate::shape::BlockStep;
use crate::verify::Slots;

pub(crate) use self::{NoBuffers as Buffers, NoRing as Uring};

/// A ring, of which there is none.
pub(crate) struct NoRing(Infallible);

/// The buffers of a ring, of which there are none.
pub(crate) struct NoBuffers(Infallible);

/// Checks that this system has rings at all.
pub(crate) fn there() -> Result<(), StartError> {
    Err(StartError::NoRing)
}

/// Checks that the kernel lets this process have a ring.
pub(crate) fn allowed() -> Result<(), StartError> {
    Err(StartError::NoRing)
}

/// A ring for this many outstanding operations.
pub(crate) fn build(_depth: usize) -> Result<NoRing, StartError> {
    Err(StartError::NoRing)
}

impl NoBuffers {
    pub(crate) fn new(
        _depth: usize,
        _largest: usize,
        _pool: Option<ContentPool>,
    ) -> Result<NoBuffers, StartError> {
        Err(StartError::NoRing)
    }
}

impl NoRing {
    pub(crate) fn new(
        ring: &mut NoRing,
        _files: &[OwnedFd],
        _buffers: &mut NoBuffers,
        _data_only: bool,
    ) -> NoRing {
        match ring.0 {}
    }
}

impl Slots for NoRing {
    fn buffer(&mut self, _slot: usize, _bytes: usize) -> &mut [u8] {
        match self.0 {}
    }
}

impl Ring for NoRing {
    fn push(&mut self, _slot: usize, _step: &BlockStep) -> bool {
        match self.0 {}
    }

    fn submit(&mut self, _wait: Wait) -> Result<(), Errno> {
        match self.0 {}
    }

    fn reap(&mut self) -> Option<(usize, i32)> {
        match self.0 {}
    }
}
