//! Other systems than Linux: traces are recorded on Linux, and their calls are those of Linux.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::files::{HeldFile, OpenFiles, WarmPart};
use super::step::ReplayCall;
use stackrace_system::memory::AlignedMemory;

pub(super) const PIECE: usize = 4 << 20;

pub(super) struct Acts<'a> {
    pub(super) root: OwnedFd,
    pub(super) names: &'a [CString],
    pub(super) files: OpenFiles,
    pub(super) content: AlignedMemory,
}

pub(super) struct Memory(pub(super) AlignedMemory);

impl Acts<'_> {
    pub(super) fn hold(&self, _: &HeldFile) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(super) fn warm(
        &self,
        _: &WarmPart,
        _: &mut Memory,
        _: &dyn Fn() -> bool,
    ) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    pub(super) fn act(&self, _: &ReplayCall, _: &mut Memory, _: u64) -> i64 {
        -i64::from(Errno::NOSYS.raw_os_error())
    }

    pub(super) fn used(&self, _: u32) {}
}
