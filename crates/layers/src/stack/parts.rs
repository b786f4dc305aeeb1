//! The parts of a stack that exist: what settling and tearing down need when the set-up is over.

use crate::stack::common::lasting::LastingState;
use crate::stack::error::LayerError;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::{FixedDevice, Host};
use stackrace_machine::journal::EntryId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Number of times, and pause between them, that a device that a tool has just made is looked for:
/// a minute in all, which udev may need on an emulated machine that has others beside it.
const APPEARS_TRIES: usize = 600;
const APPEARS_PAUSE: Duration = Duration::from_millis(100);

/// The existing parts of a stack: settling and tearing down need them when the set-up is over.
#[derive(Debug, Default)]
pub(super) struct StackParts {
    /// Entries of the journal, in the order in which things were made.
    pub(super) entries: Vec<EntryId>,
    pub(super) mounts: Vec<Mounted>,
    pub(super) movable: Vec<Movable>,
    /// Commands that drop caches which the kernel of this machine does not hold.
    pub(super) cold: Vec<Vec<OsString>>,
    /// Properties that have to stay as they are while trials are measured.
    pub(super) stays: Vec<LastingState>,
    /// Devices that have to be there again after what is movable came back.
    pub(super) awaited: Vec<PathBuf>,
    /// Directories whose file system holds the data of loop devices, by machine.
    pub(super) backing: Vec<(usize, PathBuf)>,
    /// Directories in which the workload runs on other machines, by machine.
    pub(super) others: Vec<(usize, PathBuf)>,
    /// Shares that another of its machines serves.
    pub(super) served: ServedShares,
    /// Real disks: an open file keeps others from taking them until the stack is torn down.
    pub(super) held: Vec<FixedDevice>,
}

/// Shares of a stack that are served by another of its machines.
#[derive(Debug, Default)]
pub(super) struct ServedShares {
    /// Where they are mounted, on the first machine.
    pub(super) mounted_at: Vec<PathBuf>,
    /// True once one of the stack's other machines was lost.
    pub(super) lost: AtomicBool,
}

impl ServedShares {
    /// Returns true once one of the stack's other machines was lost.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A mount of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    /// The machine it is on, by its number.
    pub node: usize,
    /// The command that mounted it, and mounts it again.
    pub command: Vec<OsString>,
    /// Its mount point.
    pub path: PathBuf,
    /// True if its content is still there after unmounting.
    pub survives: bool,
    /// Commands that make another form of its content when it is unmounted to settle: before, and after.
    pub folds: [Vec<Vec<OsString>>; 2],
    /// The command that mounts it so that it can be written, where `command` mounts what is only read.
    pub writable: Option<Vec<OsString>>,
}

impl Mounted {
    /// Returns true if settling makes another form of its content.
    pub(super) fn is_folded(&self) -> bool {
        self.folds.iter().any(|commands| !commands.is_empty())
    }
}

/// A thing of ours that is cold once it was taken away and brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Movable {
    /// The command that takes it away.
    pub(super) away: Vec<OsString>,
    /// The command that brings it back.
    pub(super) back: Vec<OsString>,
}

/// Waits for a device: udev makes its name some time after the kernel made the device.
pub(super) fn appears(host: &dyn Host, device: &Path) -> Result<(), LayerError> {
    for _ in 0..APPEARS_TRIES {
        if host.exists(device) {
            return Ok(());
        }
        host.pause(APPEARS_PAUSE);
    }
    Err(LayerError::refused(
        format!("{} was created and does not appear", device.shown()),
        "check that udevd runs",
    ))
}
