//! What the kernel tells of the device below a mount.

use super::MountInfo;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Number of the device that is mounted; `None` if it is none.
pub(super) fn mounted_device(mount: &MountInfo) -> Option<(u32, u32)> {
    let device = std::fs::metadata(Path::new(&mount.source)).ok()?;
    // No device has the number 0:0; the source of a file system without one may be any file.
    Some(stackrace_system::device_parts(device.rdev())).filter(|number| *number != (0, 0))
}

/// Path of the file below a loop device as `loop/backing_file` of the kernel tells it: without the mark of one that
/// was removed.
pub fn backing_path(told: &str) -> &str {
    let path = told.trim_end_matches('\n');
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// Directory of sysfs about a block device.
pub fn about_device((major, minor): (u32, u32)) -> String {
    format!("/sys/dev/block/{major}:{minor}")
}
