//! Files of the kernel that hold one value, which a layer sets and writes back.

use std::path::Path;

/// Directories of the parameters of the kernel's modules, of the loopback device, and of sysctls.
const PARAMETERS: [&str; 4] = [
    "/sys/module",
    "/sys/class/net/lo",
    "/proc/sys/vm",
    "/proc/sys/net/core",
];

/// The file with the governor of a processor's clock.
const GOVERNOR: &str = "cpufreq/scaling_governor";

/// Where the kernel shows what can be made by making directories.
pub(super) const CONFIGFS: &str = "/sys/kernel/config";

/// Files of a device's queue that can be written.
const QUEUE: [&str; 5] = [
    "scheduler",
    "read_ahead_kb",
    "nr_requests",
    "wbt_lat_usec",
    "rotational",
];

/// Value of each of them until it is written.
pub(super) const BEFORE: &str = "{before}";

/// What is written there is done, and kept nowhere.
const DONE: &str = "/proc/sys/vm/drop_caches";

/// Returns true if a file is one of them.
pub(super) fn is_parameter(path: &Path) -> bool {
    let of_queue = path.starts_with("/sys/block") && QUEUE.iter().any(|file| path.ends_with(file));
    if path == Path::new(DONE) {
        return false;
    }
    of_queue || path.ends_with(GOVERNOR) || PARAMETERS.iter().any(|place| path.starts_with(place))
}
