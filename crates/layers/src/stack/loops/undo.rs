//! Detaching loop devices, found by the file they lie on.

use stackrace_base::unit::ShownPath;
use stackrace_machine::host::{Host, HostError, argv};
use stackrace_machine::journal::{Param, UndoKind, busy};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of times, and pause between them, that it is checked whether the kernel has let go of a
/// device.
const BUSY_TRIES: usize = 30;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Detaches the loop devices on a file.
pub(super) const DETACH: UndoKind = UndoKind::new("loop", "detach", &[Param::Path], detach);

/// Detaches every loop device on a file and waits until the kernel has let go of it.
fn detach(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let file = Path::new(&of[0]);
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
            cause: format!("it is mounted at {}", mount.mount_point.shown()),
            kind: std::io::ErrorKind::ResourceBusy,
            errno: None,
        }),
        None => Ok(()),
    }
}

/// Loop devices that lie on a file, found by the file: a device number may belong to another file
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

/// The file was removed by another program while its device was still there: only the kernel's own list
/// still knows the name.
fn devices_on_removed(host: &dyn Host, file: &Path) -> Vec<PathBuf> {
    let block = Path::new("/sys/block");
    let removed = [file.as_os_str().as_bytes(), b" (deleted)"].concat();
    let removed = String::from_utf8_lossy(&removed).into_owned();
    let names = host.list(block).unwrap_or_default();
    names
        .iter()
        .filter(|name| {
            host.read_text(&block.join(name).join("loop/backing_file"))
                .is_ok_and(|text| text.trim_end_matches('\n') == removed)
        })
        .map(|name| Path::new("/dev").join(name))
        .collect()
}
