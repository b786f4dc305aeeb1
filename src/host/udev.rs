//! Whoever makes partitions waits for udev.

use super::{Host, HostError, Output, argv};
use std::ffi::OsString;

/// How often a pool is tried to be made while udev looks at its disks.
const TRIES: usize = 5;

/// Makes a pool by the `zpool create` given. ZFS makes a partition on a whole disk and has the kernel
/// read it, which the kernel refuses while udev looks at the disk, as it does after each write; ZFS
/// gives up after half a second, and an emulated machine takes longer. So udev comes first, and is
/// waited for again where that was not enough.
///
/// # Errors
/// When the command fails.
pub(crate) fn create_pool(host: &dyn Host, command: &[OsString]) -> Result<Output, HostError> {
    let mut left = TRIES;
    loop {
        // Where there is no udev, nobody looks.
        let _ = host.exec(&argv(["udevadm", "settle"]));
        left -= 1;
        match host.must(command) {
            Err(HostError::Failed { output, .. })
                if left > 0
                    && output
                        .stderr
                        .contains("failed to rescan the partition table") => {}
            ended => return ended,
        }
    }
}
