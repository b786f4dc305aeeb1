//! In place of the kernel side, where the program was built without it.

use stackrace_base::failure::Failure;

/// What the kernel side would have counted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) handled: u64,
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) processor_ns: u64,
    pub(super) not_followed: u64,
}

/// There is none.
pub(super) enum KernelSide {}

impl KernelSide {
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

    pub(super) fn started(&mut self, _: u32) {
        match *self {}
    }

    pub(super) fn follows_some(&self) -> bool {
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
