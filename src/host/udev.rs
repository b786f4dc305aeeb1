//! Whoever makes partitions waits for udev.

use super::{Host, HostError, Output, argv};
use std::ffi::OsString;

/// How often a pool is tried to be made while udev looks at its disks.
const TRIES: usize = 5;

/// What `zpool create` says when udev was in its way: it had the disk open when the kernel was to read
/// the partition table, or was not done with the new partition after half a minute (ENODEV).
const UDEV_IN_THE_WAY: [&str; 2] = [
    "failed to rescan the partition table",
    "failed to detect device partitions",
];

/// Makes a pool by the `zpool create` given. ZFS makes a partition on a whole disk and has the kernel
/// read it, which the kernel refuses while udev looks at the disk, as it does after each write; then it
/// waits until udev knows the partition. An emulated machine takes longer for either than ZFS allows.
/// So udev comes first, and is waited for again where that was not enough.
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
                    && UDEV_IN_THE_WAY
                        .iter()
                        .any(|said| output.stderr.contains(said)) => {}
            ended => return ended,
        }
    }
}
