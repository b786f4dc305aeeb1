//! Looking at this machine without changing it: shared by the host that does and the host that
//! only imagines.

use super::{HostError, MountInfo, mountinfo};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Most of a text file that is read; kernel files are far smaller.
const TEXT_MAX: u64 = 1 << 20;

pub(super) fn text(path: &Path) -> Result<String, HostError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        // Files of the kernel have no size beforehand, and a path may lead to one without an end.
        .and_then(|file| file.take(TEXT_MAX).read_to_end(&mut bytes))
        .map_err(|error| HostError::path("read", path, error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn list(path: &Path) -> Result<Vec<OsString>, HostError> {
    let read = |path: &Path| -> std::io::Result<Vec<OsString>> {
        let mut names = std::fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<Vec<_>, _>>()?;
        names.sort();
        Ok(names)
    };
    read(path).map_err(|error| HostError::path("list", path, error))
}

pub(super) fn sync(path: &Path) -> Result<(), HostError> {
    std::fs::File::open(path)
        .and_then(|file| Ok(stackrace_system::syncfs(file)?))
        .map_err(|error| HostError::path("sync the file system of", path, error))
}

pub(super) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(super) fn canonical(path: &Path) -> Result<PathBuf, HostError> {
    path.canonicalize()
        .map_err(|error| HostError::path("find", path, error))
}

pub(super) fn free_bytes(path: &Path) -> Result<u64, HostError> {
    let found = rustix::fs::statvfs(path)
        .map_err(|error| HostError::path("ask the free space of", path, error))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

pub(super) fn mounts() -> Result<Vec<MountInfo>, HostError> {
    let table = Path::new("/proc/self/mountinfo");
    std::fs::read(table)
        .map(|bytes| mountinfo::parse(&bytes))
        .map_err(|error| HostError::path("read", table, error))
}

/// Asks the kernel for the number of the mount instead of comparing paths: mounts can hide each
/// other, and no order of path lengths tells which one is seen.
pub(super) fn mount_of(path: &Path) -> Result<MountInfo, HostError> {
    let lost = |error: std::io::Error| HostError::path("find the mount that holds", path, error);
    let handle = rustix::fs::open(
        path,
        stackrace_system::PLACE_ONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| lost(error.into()))?;
    mount_of_open(&handle, path, &[])
}

/// The same of what is open already; `path` is what it is called. The table is read if it is not among the `known`.
pub(super) fn mount_of_open(
    handle: &OwnedFd,
    path: &Path,
    known: &[MountInfo],
) -> Result<MountInfo, HostError> {
    let lost = |error: std::io::Error| HostError::path("find the mount that holds", path, error);
    let about = text(Path::new(&format!(
        "/proc/self/fdinfo/{}",
        handle.as_raw_fd()
    )))?;
    let id = about
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))
        .and_then(|number| number.trim().parse::<u64>().ok());
    let is_it = |mount: &&MountInfo| Some(mount.id) == id;
    if let Some(mount) = known.iter().find(is_it) {
        return Ok(mount.clone());
    }
    let table = mounts()?;
    table
        .iter()
        .find(is_it)
        .cloned()
        .ok_or_else(|| lost(std::io::Error::other("it is not in /proc/self/mountinfo")))
}
