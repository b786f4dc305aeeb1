//! The parts of a stack that exist: what settling and tearing down need when the set-up is over.

use crate::foundation::error::LayerError;
use crate::foundation::lasting::LastingState;
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
pub struct StackParts {
    /// Entries of the journal, in the order in which things were made.
    pub entries: Vec<EntryId>,
    /// Mounts of ours, in the order in which they were made.
    pub mounts: Vec<Mounted>,
    /// Things that are cold once they were taken away and brought back.
    pub movable: Vec<Movable>,
    /// Commands that drop caches which the kernel of this machine does not hold.
    pub cold: Vec<Vec<OsString>>,
    /// Properties that have to stay as they are while trials are measured.
    pub stays: Vec<LastingState>,
    /// Devices that have to be there again after what is movable came back.
    pub awaited: Vec<PathBuf>,
    /// Directories whose file system holds the data of loop devices, by machine.
    pub backing: Vec<(usize, PathBuf)>,
    /// Directories in which the workload runs on other machines, by machine.
    pub others: Vec<(usize, PathBuf)>,
    /// Shares that another of its machines serves.
    pub served: ServedShares,
    /// Real disks: an open file keeps others from taking them until the stack is torn down.
    pub held: Vec<FixedDevice>,
}

/// Shares of a stack that are served by another of its machines.
#[derive(Debug, Default)]
pub struct ServedShares {
    /// Where they are mounted, on the first machine.
    pub mounted_at: Vec<PathBuf>,
    /// True once one of the stack's other machines was lost.
    pub lost: AtomicBool,
}

impl ServedShares {
    /// Returns true once one of the stack's other machines was lost.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

/// A mount of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
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
    pub fn is_folded(&self) -> bool {
        self.folds.iter().any(|commands| !commands.is_empty())
    }
}

/// A thing of ours that is cold once it was taken away and brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movable {
    /// The command that takes it away.
    pub away: Vec<OsString>,
    /// The command that brings it back.
    pub back: Vec<OsString>,
}

/// Waits for a device: udev makes its name some time after the kernel made the device.
pub fn appears(host: &dyn Host, device: &Path) -> Result<(), LayerError> {
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
