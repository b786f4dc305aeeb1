//! Devices of the device mapper: encrypted (dm-crypt), checked (dm-integrity), with a cache for writes
//! (dm-writecache). All are read back from the kernel's own table, and removed by their name.

mod imagined;
mod integrity;
mod luks;
mod writecache;

pub(super) use integrity::KIND as INTEGRITY;
pub(super) use luks::KIND as LUKS;
pub(super) use writecache::KIND as WRITECACHE;

use crate::stack::error::LayerError;
use stackrace_machine::host::{Driver, Host, HostError, Package, argv};
use stackrace_machine::journal::{Param, UndoKind, text, until_free};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Prints what of them stands.
const STANDING: &str = "dmsetup ls 2>/dev/null | grep -v 'No devices found'";

/// The package of the mapper's own tool.
const DMSETUP: Package = Package::new("dmsetup", &["dmsetup"]);

/// The mapper itself.
const MAPPER: Driver = Driver {
    module: "dm_mod",
    shown_by: "/sys/class/misc/device-mapper",
    what: "mapped devices (dm)",
};

/// Removes the mapped device of a name that stackrace chose.
const REMOVE: UndoKind = UndoKind {
    layer: "mapped",
    name: "remove",
    params: &[Param::OurName],
    undo: remove,
};

/// Removes a mapped device, unless it is in use; none of that name is fine.
fn remove(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let name = text(of, 0);
    // All devices, and not /dev/mapper: a link may be missing while the device stands.
    let listed = host.must(&argv(["dmsetup", "ls"]))?.stdout;
    // Lines are `NAME (254:0)`, or `No devices found`.
    let mut lines = listed.lines();
    match lines.any(|line| line.split_whitespace().next() == Some(name)) {
        true => until_free(host, &argv(["dmsetup", "remove", name])),
        false => Ok(()),
    }
}

/// The path at which a mapped device appears.
fn path_of(name: &str) -> PathBuf {
    Path::new("/dev/mapper").join(name)
}

/// The kernel's line about a device, without where it begins and how long it is, if it is of a target:
/// `crypt`, `integrity`, `writecache`.
///
/// # Errors
/// It is of another one, or there is no such device.
fn table(host: &dyn Host, name: &str, target: &str) -> Result<Vec<String>, LayerError> {
    let told = host.must(&argv(["dmsetup", "table", name]))?.stdout;
    words_of(&told, target).ok_or_else(|| {
        LayerError::refused(
            format!(
                "what dmsetup printed is no table of {target}: {}",
                told.trim()
            ),
            "",
        )
    })
}

fn words_of(told: &str, target: &str) -> Option<Vec<String>> {
    let mut words = told.lines().next()?.split_whitespace().skip(2);
    let is_it = words.next() == Some(target);
    is_it.then(|| words.map(String::from).collect())
}

/// Refuses what is read back as another thing than was asked for.
///
/// # Errors
/// The first that differs.
fn same(name: &str, each: &[(&str, String, String)]) -> Result<(), LayerError> {
    match each.iter().find(|(_, found, asked)| found != asked) {
        None => Ok(()),
        Some((what, found, asked)) => Err(LayerError::refused(
            format!("{name} has {what} {found} although {asked} was asked"),
            "ask for what this kernel takes as it is",
        )),
    }
}

/// Refuses disks below what leaves nothing of ours on them by which it could be wiped again.
///
/// # Errors
/// One clause.
fn no_disks(kind: &str, below: &[Box<dyn crate::stack::Layer>]) -> Result<(), String> {
    match below.iter().any(|layer| !layer.disks().is_empty()) {
        true => Err(format!(
            "{kind} writes no mark to a disk by which it could be told again and wiped: put it on loop or lab-disks"
        )),
        false => Ok(()),
    }
}
