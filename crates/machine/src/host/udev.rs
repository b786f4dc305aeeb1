//! Partitions are made when udev has finished with the disk.

use super::{Host, HostError, Output, argv};
use std::ffi::OsString;

/// Number of times that a pool is tried to be made while udev looks at its disks.
const TRIES: usize = 5;

/// Errors of `zpool create` when udev was in its way: it had the disk open when the kernel was to
/// read the partition table, or was not done with the new partition after half a minute (ENODEV).
const UDEV_IN_THE_WAY: [&str; 2] = [
    "failed to rescan the partition table",
    "failed to detect device partitions",
];

/// Runs the given `zpool create`. ZFS makes a partition on a whole disk and asks the kernel to read it.
/// The kernel refuses that while udev has the disk open, which it does after each write. Then ZFS waits
/// until udev knows the partition. On an emulated machine both can take longer than ZFS allows. So this
/// waits for udev first, and tries again where that was not enough.
///
/// # Errors
/// When the command fails.
pub fn create_pool(host: &dyn Host, command: &[OsString]) -> Result<Output, HostError> {
    let mut left = TRIES;
    loop {
        // Without udev this fails, and then nothing else opens the disk.
        let _ = host.exec(&argv(["udevadm", "settle"]));
        left -= 1;
        match host.must(command) {
            Err(HostError::Failed { output, .. })
                // Only these two messages: another failure would be repeated in vain.
                if left > 0
                    && UDEV_IN_THE_WAY
                        .iter()
                        .any(|said| output.stderr.contains(said)) => {}
            ended => return ended,
        }
    }
}
