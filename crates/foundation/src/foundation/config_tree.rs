//! The tree in which the kernel is told what to make by making directories (configfs).

use crate::foundation::error::LayerError;
use stackrace_machine::host::imagined::{Tool, said};
use stackrace_machine::host::{Host, argv};
use std::path::Path;

/// Its place.
pub const ROOT: &str = "/sys/kernel/config";

/// Its mount, as a plan imagines it.
pub const IMAGINED: Tool = Tool::new("mount.configfs", |_, _| said(""));

/// Mounts it where it is not: it shows what the kernel has, like `/sys` itself, and stays.
///
/// # Errors
/// The table of mounts cannot be read, or the system refuses.
pub fn shown(host: &dyn Host) -> Result<(), LayerError> {
    // The table, and not a look at the directory: it is there, and empty, without the mount.
    let mounts = host.mounts()?;
    let root = Path::new(ROOT);
    if !mounts.iter().any(|mount| mount.mount_point == root) {
        host.must(&argv(["mount", "-t", "configfs", "configfs", ROOT]))?;
    }
    Ok(())
}
