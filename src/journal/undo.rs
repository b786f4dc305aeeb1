//! Undoing what the journal names, newest first.
//!
//! Nothing is forced: no lazy unmount, no detaching of what is in use. What cannot be undone stays
//! in the journal with everything older of its group, and the report says who is in the way.

use super::{Entry, EntryId, GROUND, Journal, JournalError, Undo, devices, peers};
use crate::host::{Host, HostError, Output, argv};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often something busy is tried again.
const BUSY_TRIES: usize = 30;

/// How long is waited between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Most mounts on top of each other at one directory that are taken away.
const STACKED_MAX: usize = 8;

/// What undoing came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Undone, in the order it was done.
    pub(crate) undone: Vec<Undo>,
    /// Not undone, each with why.
    pub(crate) failed: Vec<(Undo, String)>,
}

/// Undoes everything that is pending.
///
/// # Errors
/// When the journal itself cannot be written; what could not be undone is in the report.
pub(crate) fn undo_all(host: &dyn Host, journal: &Journal) -> Result<Report, JournalError> {
    undo(host, journal, journal.pending())
}

/// Undoes those of these entries that are pending, newest first.
///
/// # Errors
/// As [`undo_all`].
pub(crate) fn undo_entries(
    host: &dyn Host,
    journal: &Journal,
    ids: &[EntryId],
) -> Result<Report, JournalError> {
    let mut entries = journal.pending();
    entries.retain(|entry| ids.contains(&entry.id));
    undo(host, journal, entries)
}

fn undo(host: &dyn Host, journal: &Journal, entries: Vec<Entry>) -> Result<Report, JournalError> {
    let mut report = Report::default();
    let mut stuck: BTreeSet<String> = BTreeSet::new();
    for entry in entries {
        if stuck.contains(&entry.group) || (entry.group == GROUND && !stuck.is_empty()) {
            let why = "what was made later could not be undone".to_string();
            report.failed.push((entry.undo, why));
            continue;
        }
        match undo_one(host, &entry.undo) {
            Ok(()) => {
                journal.done(entry.id)?;
                report.undone.push(entry.undo);
            }
            Err(error) => {
                stuck.insert(entry.group);
                report.failed.push((entry.undo, error.to_string()));
            }
        }
    }
    Ok(report)
}

fn undo_one(host: &dyn Host, undo: &Undo) -> Result<(), HostError> {
    match undo {
        Undo::RemoveFile(path) => host.remove_file(path),
        Undo::RemoveDir(path) => host.remove_dir(path),
        Undo::RemoveTree(path) => host.remove_tree(path),
        Undo::DetachLoop(file) => detach(host, file),
        Undo::Unmount(path) => unmount(host, path),
        Undo::Blank { device, mark } => devices::blank(host, device, mark),
        Undo::StopArray(uuid) => devices::stop_array(host, uuid),
        Undo::RemoveVolumeGroup(name) => devices::remove_volume_group(host, name),
        Undo::DestroyPool(name) => devices::destroy_pool(host, name),
        Undo::WriteBack { file, ours, before } => devices::write_back(host, file, ours, before),
        Undo::EndMachine(path) => host.end_machine(path),
        Undo::DownReplica(name) => peers::down_replica(host, name),
        Undo::PlainLine(card) => peers::plain_line(host, card),
        Undo::EndServer { program, mark } => host.end_daemon(program, mark),
        Undo::Unexport { client, directory } => peers::unexport(host, client, directory),
        Undo::EndNfsServer { boot } => peers::end_nfs_server(host, boot),
        Undo::EndDaemon(program) => peers::end_in_lab(host, program),
        Undo::EndNfs => peers::end_nfs_in_lab(host),
        Undo::OnPeer {
            node,
            host: name,
            undo,
        } => undo_one(peers::named(host, *node, name)?, undo),
    }
}

/// Unmounts what is mounted at a directory; nothing mounted there is fine. Tries again for
/// [`BUSY_TRIES`] × [`BUSY_PAUSE`] while it is busy.
///
/// # Errors
/// When it stays busy, naming who holds it where that can be found out.
pub(crate) fn unmount(host: &dyn Host, path: &Path) -> Result<(), HostError> {
    for _ in 0..STACKED_MAX {
        let mounted = host.mounts()?.iter().any(|mount| mount.mount_point == path);
        if !mounted {
            return Ok(());
        }
        unmount_top(host, path)?;
    }
    Err(HostError::NotOurs {
        path: path.to_path_buf(),
        why: format!("more than {STACKED_MAX} mounts lie on it"),
    })
}

fn unmount_top(host: &dyn Host, path: &Path) -> Result<(), HostError> {
    let command = argv([OsStr::new("umount"), path.as_os_str()]);
    until_free(host, &command).map_err(|error| match error {
        HostError::Failed { output, .. } if is_busy(&output) => busy(host, path, "unmount"),
        other => other,
    })
}

/// Runs a command that takes something away, again for [`BUSY_TRIES`] × [`BUSY_PAUSE`] while what
/// it takes away is busy.
///
/// # Errors
/// When it stays busy, or fails for another reason.
pub(crate) fn until_free(host: &dyn Host, command: &[OsString]) -> Result<(), HostError> {
    let mut output = host.exec(command)?;
    for _ in 0..BUSY_TRIES {
        if !is_busy(&output) {
            break;
        }
        host.pause(BUSY_PAUSE);
        output = host.exec(command)?;
    }
    match output.status {
        Some(0) => Ok(()),
        _ => Err(HostError::Failed {
            command: crate::host::shown(command),
            output,
        }),
    }
}

/// Whether a tool failed because something is in use, in the words of umount, zpool, mdadm and LVM.
fn is_busy(output: &Output) -> bool {
    let words = ["busy", "in use", "exclusive access"];
    output.status != Some(0) && words.iter().any(|word| output.stderr.contains(word))
}

fn busy(host: &dyn Host, path: &Path, what: &'static str) -> HostError {
    let holders = host.holders(path);
    let by = if holders.is_empty() {
        "who holds it could not be found out".to_string()
    } else {
        format!("held by {}", holders.join(", "))
    };
    HostError::Path {
        what,
        path: path.to_path_buf(),
        cause: format!("it is busy, {by}"),
        kind: std::io::ErrorKind::ResourceBusy,
    }
}

/// Detaches every loop device on a file and waits until the kernel has let go of it.
fn detach(host: &dyn Host, file: &Path) -> Result<(), HostError> {
    for tries in 0..BUSY_TRIES {
        let devices = devices_on(host, file)?;
        if devices.is_empty() {
            return Ok(());
        }
        // `losetup --detach` of a device that is open only marks it, to be cleared when the last
        // user closes it; a mounted one is not even tried.
        if tries == 0 {
            for device in devices {
                refuse_mounted(host, &device)?;
                host.must(&argv([
                    OsStr::new("losetup"),
                    OsStr::new("--detach"),
                    device.as_os_str(),
                ]))?;
            }
        } else {
            host.pause(BUSY_PAUSE);
        }
    }
    let devices = devices_on(host, file)?;
    match devices.first() {
        Some(device) => Err(busy(host, device, "detach")),
        None => Ok(()),
    }
}

fn refuse_mounted(host: &dyn Host, device: &Path) -> Result<(), HostError> {
    let mounts = host.mounts()?;
    match mounts.iter().find(|mount| mount.source == *device) {
        Some(mount) => Err(HostError::Path {
            what: "detach",
            path: device.to_path_buf(),
            cause: format!("it is mounted at {}", mount.mount_point.display()),
            kind: std::io::ErrorKind::ResourceBusy,
        }),
        None => Ok(()),
    }
}

/// Loop devices that lie on a file, found by the file: a device number may belong to somebody else
/// by now.
fn devices_on(host: &dyn Host, file: &Path) -> Result<Vec<PathBuf>, HostError> {
    let output = host.must(&argv([
        OsStr::new("losetup"),
        OsStr::new("--associated"),
        file.as_os_str(),
        OsStr::new("--noheadings"),
        OsStr::new("--output"),
        OsStr::new("NAME"),
    ]))?;
    let mut devices: Vec<PathBuf> = output
        .stdout
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(PathBuf::from)
        .collect();
    if devices.is_empty() && !host.exists(file) {
        devices = devices_on_removed(host, file);
    }
    Ok(devices)
}

/// The file was removed by somebody while its device was still there: only the kernel's own list
/// still knows the name.
fn devices_on_removed(host: &dyn Host, file: &Path) -> Vec<PathBuf> {
    let block = Path::new("/sys/block");
    let removed = [file.as_os_str().as_bytes(), b" (deleted)"].concat();
    let removed = String::from_utf8_lossy(&removed).into_owned();
    let names: Vec<OsString> = host.list(block).unwrap_or_default();
    names
        .iter()
        .filter(|name| {
            host.read_text(&block.join(name).join("loop/backing_file"))
                .is_ok_and(|text| text.trim_end_matches('\n') == removed)
        })
        .map(|name| Path::new("/dev").join(name))
        .collect()
}
