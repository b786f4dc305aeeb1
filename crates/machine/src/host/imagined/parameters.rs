//! Files of the kernel that hold one value, which a layer sets and writes back.

use std::path::Path;

/// Directories of the parameters of the kernel's modules, and of the loopback device.
const PARAMETERS: [&str; 2] = ["/sys/module", "/sys/class/net/lo"];

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

/// Returns true if a file is one of them.
pub(super) fn is_parameter(path: &Path) -> bool {
    let of_queue = path.starts_with("/sys/block") && QUEUE.iter().any(|file| path.ends_with(file));
    of_queue || PARAMETERS.iter().any(|place| path.starts_with(place))
}
