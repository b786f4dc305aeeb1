//! What is compared: layers from the devices up to the directory the workload runs in.
//!
//! A layer takes what the one below gives (nothing, or devices) and gives devices or a directory.
//! It is *raised* (each creation journalled before it happens), *described* (read back from the
//! system, never copied from the study), *settled* between trials and *lowered* from the journal
//! alone. A new layer is one file here and one line in [`ALL`].

mod afp;
mod bare;
mod bcachefs;
mod block;
mod btrfs;
mod composition;
mod dataset;
mod devices;
mod dir;
mod drbd;
mod error;
mod ext;
mod f2fs;
mod filesystem;
mod gfs2;
mod guard;
mod lab_disks;
mod line;
mod loops;
mod lvm;
mod md;
mod nfs;
mod options;
mod plain;
mod raised;
mod raising;
mod share;
mod smb;
mod tmpfs;
mod xfs;
mod zfs;
mod zpool;
mod zvol;

pub(crate) use bare::Bare;
pub(crate) use composition::{Stack, missing};
pub(crate) use error::{LayerError, StackError};
pub(crate) use raised::RaisedStack;
pub(crate) use raising::Raising;

use crate::event::{Fact, LayerFacts};
use crate::host::{Host, LabDisk, Needs};
use crate::journal::Journal;
use crate::setting::{Refusal, SettingDoc, Settings};
use std::path::PathBuf;

/// Every kind of layer, alphabetical.
pub(crate) const ALL: &[LayerKind] = &[
    afp::KIND,
    bare::KIND,
    bcachefs::KIND,
    btrfs::KIND,
    dataset::KIND,
    devices::KIND,
    dir::KIND,
    drbd::KIND,
    ext::EXT2,
    ext::EXT3,
    ext::EXT4,
    f2fs::KIND,
    gfs2::KIND,
    lab_disks::KIND,
    loops::KIND,
    lvm::KIND,
    md::KIND,
    nfs::KIND,
    smb::KIND,
    tmpfs::KIND,
    xfs::KIND,
    zpool::KIND,
    zvol::KIND,
];

/// Most devices one layer gives or takes.
pub(crate) const DEVICES_MAX: usize = 64;

/// One kind of layer, as a study's author sees it.
pub(crate) struct LayerKind {
    /// The word in a study.
    pub(crate) name: &'static str,
    /// One sentence.
    pub(crate) summary: &'static str,
    /// Its settings.
    pub(crate) settings: &'static [SettingDoc],
    /// What it takes from the layer below, whatever its settings.
    pub(crate) takes: Takes,
    /// What it gives to the layer above.
    pub(crate) gives: GivesKind,
    /// One line of TOML that works.
    pub(crate) example: &'static str,
    /// Makes a layer of settings that have been checked against `settings`.
    pub(crate) parse: fn(&Settings) -> Result<Box<dyn Layer>, Refusal>,
}

/// What a layer takes from the one below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing: it stands at the bottom.
    Nothing,
    /// Block devices.
    Devices {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
    /// The root of a file system of ours, or a private directory.
    Directory,
    /// A pool of ZFS.
    Pool,
}

/// What a kind of layer gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivesKind {
    /// Block devices.
    Devices,
    /// A directory.
    Directory,
    /// A pool of ZFS, in which datasets and volumes are made.
    Pool,
    /// Devices for the workload itself.
    Bare,
}

/// Where the layers below one stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// On this machine.
    Here,
    /// On the peer instead.
    OnPeer,
    /// On this machine and on the peer, alike.
    OnBoth,
}

/// One layer with its settings.
pub(crate) trait Layer: Send + Sync {
    /// The word in a study.
    fn kind(&self) -> &'static str;
    /// Kind and what matters to its neighbours: `loop, count = 4`.
    fn brief(&self) -> String {
        self.kind().to_string()
    }
    /// One line for the plan: what is asked for.
    fn describe_asked(&self) -> String;
    /// What it takes with these settings.
    fn takes(&self) -> Takes;
    /// How many devices it gives; none: it gives no devices.
    fn devices_given(&self) -> Option<usize> {
        None
    }
    /// What it gives.
    fn gives(&self) -> GivesKind {
        match self.devices_given() {
            Some(_) => GivesKind::Devices,
            None => GivesKind::Directory,
        }
    }
    /// Where what it takes stands.
    fn below(&self) -> Below {
        Below::Here
    }
    /// Whether both machines may write what it gives at once.
    fn is_shared(&self) -> bool {
        false
    }
    /// On how many machines the workload runs at once, each in a directory of its own.
    fn loaded_from(&self) -> usize {
        1
    }
    /// How many machines it needs.
    fn nodes(&self) -> usize {
        if self.below() == Below::Here { 1 } else { 2 }
    }
    /// A layer it cannot do without somewhere below, or with settings that one does not have: why
    /// not.
    ///
    /// # Errors
    /// One clause.
    fn accepts(&self, _below: &[Box<dyn Layer>]) -> Result<(), String> {
        Ok(())
    }
    /// What must be there before it can be raised, on each machine it stands on.
    fn needs(&self) -> Needs;
    /// What must be there where its server is, if it has one: on the peer if what it takes stands
    /// there, else on this machine.
    fn server_needs(&self) -> Option<Needs> {
        None
    }
    /// Where it needs how many bytes of disk; an empty path is the site's scratch directory.
    fn disk_needed(&self) -> Option<(PathBuf, u64)> {
        None
    }
    /// Ids of the disks it is told to write over.
    fn disk_ids(&self) -> Vec<&str> {
        Vec::new()
    }
    /// What is on devices it would write over, on this machine as it is now; `wipe` are ids of
    /// devices that may be wiped.
    fn dangers(&self, _host: &dyn Host, _wipe: &[String]) -> Vec<Danger> {
        Vec::new()
    }
    /// Disks the virtual machine has to be started with; only the lab gives any.
    fn lab_disks(&self) -> Vec<LabDisk> {
        Vec::new()
    }
    /// Builds it on what is below, then reads back what was really obtained.
    ///
    /// # Errors
    /// When the system refuses, or what was obtained is not what was asked for. What was created
    /// until then is in the journal and undone by the caller.
    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError>;
}

/// What a raised layer gives to the one above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gives {
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
pub(crate) struct Pool {
    /// Nobody else has a pool of this name.
    pub(crate) name: String,
}

/// The pool given from below.
///
/// # Errors
/// When there is none; [`Stack::new`] does not let that happen.
fn pool(below: Gives) -> Result<Pool, LayerError> {
    match below {
        Gives::Pool(pool) => Ok(pool),
        _ => Err(LayerError::refused("there is no pool below", "")),
    }
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// `/dev/loop3`.
    pub(crate) path: PathBuf,
    /// Why it may be written over.
    pub(crate) origin: Origin,
}

/// Where a device comes from: what may be formatted follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A loop device on a file that the loop layer below created in this raise.
    LoopOn(PathBuf),
    /// A whole disk the study names, guarded.
    Disk(guard::Identity),
    /// Put together of devices below in this raise, under a name nobody else has.
    Made(String),
    /// A disk of the lab, by its serial: the guest and all its disks are disposable.
    Lab(String),
    /// Of DRBD, by the name of its resource, which nobody else has.
    Replica(String),
}

/// What raising a layer would do to what is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Danger {
    /// It is refused.
    Refused(LayerError),
    /// It would be lost: `on ata-MODEL_SERIAL: ext4 "photos"`.
    Lost(String),
}

/// A layer that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RaisedLayer {
    /// What it gives.
    pub(crate) gives: Gives,
    /// What it really got.
    pub(crate) facts: LayerFacts,
    /// Block devices that show its traffic (`loop3`).
    pub(crate) devices: Vec<String>,
    /// Whole disks under it (`nvme0n1`), where it is the lowest layer.
    pub(crate) disks: Vec<String>,
}

/// Everything that reads what the tools and the kernel print, on one text.
pub(crate) fn read_back(text: &str) -> Vec<Fact> {
    let mut facts = xfs::sections(text);
    facts.extend(ext::header(text));
    facts.extend(btrfs::lines("space", text));
    facts.extend(
        btrfs::profile_of(text, "Data")
            .iter()
            .map(|profile| Fact::new("profile", *profile)),
    );
    let words: Vec<String> = text.split(',').map(str::to_string).collect();
    let (asked, in_force) = words.split_at(words.len().min(8));
    facts.extend(options::missing(asked, in_force));
    facts.push(Fact::new("scheduler", block::chosen(text)));
    let properties = [zfs::lines(text), zfs::table(text)].concat();
    facts.extend(zfs::facts(&[], &properties));
    facts.extend(zpool::ashift(text).map(|ashift| Fact::new("ashift", ashift.to_string())));
    facts.push(Fact::new("layout", zpool::layout(text, "")));
    facts.extend(bcachefs::options_of(text));
    facts.extend(md::exported(text));
    facts.extend(lvm::reported(text).iter().flatten().map(lvm::Volume::fact));
    facts.extend(guard::pool_of(text).map(|pool| Fact::new("pool", pool)));
    facts.extend(tmpfs::available(text).map(|bytes| Fact::new("free", bytes.to_string())));
    facts
}

/// Where a stack is raised, and for whom.
pub(crate) struct Site<'a> {
    /// The machine.
    pub(crate) host: &'a dyn Host,
    /// What is created is said here first.
    pub(crate) journal: &'a Journal,
    /// An absolute directory of the run: mount points live here, and disk files where the study
    /// names no directory. Created when it is not there; part of the record, not journalled.
    pub(crate) scratch: PathBuf,
    /// Names this raise: `r3-t1`.
    pub(crate) tag: String,
    /// What random content follows from.
    pub(crate) seed: u64,
    /// Ids of devices that may be wiped although they carry something, repeated on the command line.
    pub(crate) wipe: &'a [String],
}

#[cfg(test)]
mod tests;
