//! Taking away what may be busy for a moment: tried again, never forced.

use crate::host::{Host, HostError, Output, argv};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// Number of times that something busy is tried again.
const BUSY_TRIES: usize = 30;

/// Pause between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Most mounts on top of each other at one directory that are taken away.
const STACKED_MAX: usize = 8;

/// Unmounts what is mounted at a directory; nothing mounted there is fine. Tries again for
/// [`BUSY_TRIES`] × [`BUSY_PAUSE`] while it is busy.
///
/// # Errors
/// When it stays busy, naming who holds it where that can be found out.
pub fn unmount(host: &dyn Host, path: &Path) -> Result<(), HostError> {
    // A mount hides the one below it: each call of umount takes away only the topmost.
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
pub fn until_free(host: &dyn Host, command: &[OsString]) -> Result<(), HostError> {
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
        _ => Err(HostError::failed(command, output)),
    }
}

/// Returns true if a tool failed because something is in use, in the words of umount, zpool, mdadm
/// and LVM.
fn is_busy(output: &Output) -> bool {
    // Tools have no exit status of their own for this; the words are those of umount, LVM, mdadm and
    // ZFS, whose locale this program sets to C.
    let words = ["busy", "in use", "exclusive access"];
    output.status != Some(0) && words.iter().any(|word| output.stderr.contains(word))
}

/// The error that something is busy, and who holds it where that can be found out.
pub fn busy(host: &dyn Host, path: &Path, what: &'static str) -> HostError {
    let holders = host.holders(path);
    let by = if holders.is_empty() {
        // The holder may be the kernel itself (swap, an export), or a process that this user may not
        // inspect.
        "who holds it could not be found out".to_string()
    } else {
        format!("held by {}", holders.join(", "))
    };
    HostError::Path {
        what,
        path: path.to_path_buf(),
        cause: format!("it is busy, {by}"),
        kind: std::io::ErrorKind::ResourceBusy,
        errno: None,
    }
}
