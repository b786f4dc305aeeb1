//! What layers give to each other: devices, directories, pools, and where each comes from.

use crate::foundation::error::LayerError;
use crate::foundation::guard::NamedDisk;
use stackrace_base::event::{Fact, LayerFacts};
use std::path::PathBuf;

/// Most devices one layer gives or takes.
pub const DEVICES_MAX: usize = 64;

/// Things that a layer takes from the one below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it stands at the bottom.
    Nothing,
    /// Block devices.
    Devices {
        /// Fewest devices.
        min: usize,
        /// Most devices.
        max: usize,
    },
    /// The root of a file system of ours, or a private directory.
    Directory,
    /// A pool of ZFS.
    Pool,
    /// Whatever is there: it is given to the layer above as it is.
    Anything,
}

impl Takes {
    /// So many devices or more.
    pub const fn at_least(min: usize) -> Self {
        let max = DEVICES_MAX;
        Self::Devices { min, max }
    }
}

/// Things that a kind of layer gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivesKind {
    /// Block devices.
    Devices,
    /// A directory that can be worked in.
    Directory,
    /// A pool of ZFS, in which datasets and volumes are made.
    Pool,
    /// Devices for the workload itself.
    Bare,
}

/// Place of the layers below one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// This machine.
    Here,
    /// The peer instead.
    OnPeer,
    /// This machine and the peer, alike.
    OnBoth,
}

/// Things that a standing layer gives to the one above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gives {
    /// Below the first layer.
    Nothing,
    /// Block devices.
    Devices(Vec<Device>),
    /// The root of a file system of ours.
    Mounted(PathBuf),
    /// A private, empty directory in a file system that is not ours.
    Private(PathBuf),
    /// A pool of ours.
    Pool(Pool),
    /// Devices for the workload itself.
    Bare(Bare),
}

/// One pool of ZFS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// No other pool has this name.
    pub name: String,
}

/// The pool given from below.
///
/// # Errors
/// When there is none; `Stack::new` does not let that happen.
pub fn pool(below: Gives) -> Result<Pool, LayerError> {
    match below {
        Gives::Pool(pool) => Ok(pool),
        _ => Err(LayerError::refused("there is no pool below", "")),
    }
}

/// A block device, and why it may be overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// `/dev/loop3`.
    pub path: PathBuf,
    /// The reason why it may be written over.
    pub origin: Origin,
}

impl Device {
    /// The path that names it after the next start of the machine too.
    pub fn lasting_path(&self) -> PathBuf {
        match &self.origin {
            // The kernel's name may be another disk's after the next start; the id stays.
            Origin::Disk(disk) => disk.asked.link(),
            _ => self.path.clone(),
        }
    }
}

/// The source of a device: what may be formatted follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A loop device on a file that the loop layer below created for this stack.
    LoopOn(PathBuf),
    /// A whole disk the study names, guarded.
    Disk(NamedDisk),
    /// A device put together of devices below for this stack, under a name that is drawn for it.
    Made(String),
    /// A disk of the lab, by its serial: the guest and all its disks are disposable.
    Lab(String),
    /// A modelled drive of the lab, which this process made and serves: it began as nothing but zeros.
    Served,
    /// A device of DRBD, by the name of its resource, which is drawn for it.
    Replica(String),
    /// A disk that a server lends to this machine for this stack.
    Lent {
        /// A file of the kernel's about it.
        shown: PathBuf,
        /// What that file holds as long as it is this disk.
        holds: String,
    },
}

/// Harm that setting up a layer would do to what is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Danger {
    /// The disk must not be written over.
    Refused(LayerError),
    /// The content would be lost: `on ata-MODEL_SERIAL: ext4 "photos"`.
    Lost(String),
}

/// A layer after it was set up: what it gives, and what it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingLayer {
    /// Things given to the layer above.
    pub gives: Gives,
    /// Facts about what it really got.
    pub facts: LayerFacts,
    /// Block devices that show its traffic (`loop3`).
    pub devices: Vec<String>,
    /// Whole disks under it (`nvme0n1`), where it is the lowest layer.
    pub disks: Vec<String>,
}

impl StandingLayer {
    /// A layer that gives this, with what it got; its traffic shows nowhere, and it lies on no disk.
    pub fn new(layer: &str, facts: Vec<Fact>, gives: Gives) -> Self {
        Self {
            gives,
            facts: LayerFacts {
                layer: layer.to_string(),
                facts,
            },
            devices: Vec::new(),
            disks: Vec::new(),
        }
    }
}

/// Things given to a workload that needs bare devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bare {
    /// The devices, in order.
    pub devices: Vec<PathBuf>,
    /// Names of the two pools that may be made of them, drawn for this stack.
    pub pools: [String; 2],
    /// Directory in which files may be made and pools mounted.
    pub directory: PathBuf,
}
