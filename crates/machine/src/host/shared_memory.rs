//! Files of the host that a guest reaches as memory of devices on its bus (QEMU's `ivshmem`).

use stackrace_base::unit::InWords;
use std::path::{Path, PathBuf};

/// Directory in which the kernel shows devices.
const DEVICES: &str = "/sys/bus/pci/devices";

/// Maker and model of QEMU's device for shared memory.
const IDENTITY: [(&str, &str); 2] = [("vendor", "0x1af4"), ("device", "0x1110")];

/// Switches on the device with so many bytes of shared memory, by which a guest tells its devices
/// apart; returns the file to map, or `None` if this guest has no such device.
///
/// # Errors
/// The system refuses.
pub fn shared_memory(bytes: u64) -> Result<Option<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{DEVICES}: {error}", error = error.in_words());
    let devices = std::fs::read_dir(DEVICES).map_err(failed)?;
    let is_it = |device: &Path| {
        let of_kind = IDENTITY.iter().all(|(name, wanted)| {
            std::fs::read_to_string(device.join(name)).is_ok_and(|found| found.trim() == *wanted)
        });
        let memory = device.join("resource2").metadata();
        of_kind && memory.is_ok_and(|memory| memory.len() == bytes)
    };
    let mut paths = devices.flatten().map(|entry| entry.path());
    let Some(device) = paths.find(|path| is_it(path)) else {
        return Ok(None);
    };
    // Its memory can be reached only once the device is switched on.
    std::fs::write(device.join("enable"), "1").map_err(failed)?;
    Ok(Some(device.join("resource2")))
}
