//! In place of the kernel side, where the program was built without it.

use stackrace_base::failure::Failure;

use super::counts::Counts;

/// Stands for the kernel side, of which there is none.
pub(super) enum NoKernelSide {}

pub(super) use NoKernelSide as KernelSide;

impl NoKernelSide {
    pub(super) fn load(_: usize, _: u32) -> Result<Self, Failure> {
        Err(Failure::unable("this program was built without `record`")
            .next("build it with the feature: cargo install --path . --features record"))
    }

    pub(super) fn follow(&mut self, _: u32) -> Result<(), Failure> {
        match *self {}
    }

    pub(super) fn follow_started(&mut self, _: u32) -> Result<(), Failure> {
        match *self {}
    }

    pub(super) fn unfollow(&mut self, _: u32) {
        match *self {}
    }

    pub(super) fn follows(&self, _: u32) -> bool {
        match *self {}
    }

    pub(super) fn follows_some(&self) -> bool {
        match *self {}
    }

    pub(super) fn forget_gone(&mut self) {
        match *self {}
    }

    pub(super) fn leave(&mut self) {
        match *self {}
    }

    pub(super) fn next_event(&mut self, _: &mut dyn FnMut(&[u8])) -> Option<()> {
        match *self {}
    }

    pub(super) fn counts(&self) -> Counts {
        match *self {}
    }
}
