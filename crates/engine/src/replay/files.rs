//! The open files of a replay: by the numbers that they had when recorded.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use super::step::ReplayCall;

/// A file that was open when the recording began.
#[derive(Debug, Clone, Copy)]
pub struct HeldFile {
    /// Its number.
    pub file: u32,
    /// Its name, by its place in the list of names.
    pub name: u32,
    /// Flags that it is opened with.
    pub flags: u32,
    /// Position in it, bytes.
    pub position: u64,
}

/// A part of a file that was in memory when the recording began.
#[derive(Debug, Clone, Copy)]
pub struct WarmPart {
    /// The file's name, by its place in the list of names.
    pub name: u32,
    /// Where the part begins, bytes.
    pub offset: u64,
    /// How long it is, bytes.
    pub length: u64,
}

/// The descriptor of a file that is not open.
const NONE: i32 = -1;

/// Open files, each closed by its last user. Threads share them, as the processes did that inherited them.
#[derive(Debug)]
pub(super) struct OpenFiles {
    descriptors: Vec<AtomicI32>,
    /// Steps that will still use each.
    left: Vec<AtomicU32>,
}

impl OpenFiles {
    pub(super) fn of<'a>(count: u32, calls: impl Iterator<Item = &'a ReplayCall>) -> Self {
        let mut left = vec![0; count as usize + 1];
        for file in calls.filter_map(ReplayCall::file) {
            // A number beyond the list was refused when the trace was compiled.
            if let Some(uses) = left.get_mut(file as usize) {
                *uses += 1;
            }
        }
        Self {
            descriptors: left.iter().map(|_| AtomicI32::new(NONE)).collect(),
            left: left.into_iter().map(AtomicU32::new).collect(),
        }
    }

    /// Keeps what was opened.
    pub(super) fn put(&self, file: u32, descriptor: i32) {
        // Read by other threads, which the order has made wait for this step.
        self.descriptors[file as usize].store(descriptor, Ordering::Release);
    }

    /// The descriptor of a file; `None` if it could not be opened.
    pub(super) fn get(&self, file: u32) -> Option<i32> {
        let found = self.descriptors[file as usize].load(Ordering::Acquire);
        (found != NONE).then_some(found)
    }

    /// Whether the step that asks is the only one left that uses it.
    pub(super) fn is_last(&self, file: u32) -> bool {
        self.left[file as usize].load(Ordering::Acquire) <= 1
    }

    /// A use is over. Gives the descriptor to close, if it was the last one.
    pub(super) fn used(&self, file: u32) -> Option<i32> {
        match self.left[file as usize].fetch_sub(1, Ordering::AcqRel) {
            1 => self.take(file),
            _ => None,
        }
    }

    /// Takes a descriptor out, to be closed.
    pub(super) fn take(&self, file: u32) -> Option<i32> {
        let found = self.descriptors[file as usize].swap(NONE, Ordering::AcqRel);
        (found != NONE).then_some(found)
    }

    /// What is still open.
    pub(super) fn rest(&self) -> impl Iterator<Item = i32> + '_ {
        (0..self.descriptors.len() as u32).filter_map(|file| self.take(file))
    }
}
