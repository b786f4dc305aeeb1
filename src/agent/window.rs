//! The memory that a guest in virtual time shares with this program outside: large amounts pass at
//! once, and the guest's clock does not show it.

use stackrace_engine::window::SharedWindow;
use std::path::Path;

/// Where the kernel shows devices.
const DEVICES: &str = "/sys/bus/pci/devices";

/// Maker and model of QEMU's device for shared memory.
const IDENTITY: [(&str, &str); 2] = [("vendor", "0x1af4"), ("device", "0x1110")];

/// Most that the window holds, bytes; it takes no memory until something is put there.
pub(crate) const WINDOW_BYTES: u64 = 256 << 20;

/// The window of this guest.
///
/// # Errors
/// The guest has none, or the system refuses.
pub(crate) fn open() -> Result<SharedWindow, String> {
    let failed = |error: std::io::Error| format!("{DEVICES}: {error}");
    let devices = std::fs::read_dir(DEVICES).map_err(failed)?;
    let is_window = |device: &Path| {
        IDENTITY.iter().all(|(name, wanted)| {
            std::fs::read_to_string(device.join(name)).is_ok_and(|found| found.trim() == *wanted)
        })
    };
    let mut paths = devices.flatten().map(|entry| entry.path());
    let device = paths.find(|path| is_window(path));
    let device = device
        .ok_or("this guest has no memory that it shares: it was not started for power cuts")?;
    // Its memory can be reached only once the device is switched on.
    std::fs::write(device.join("enable"), "1").map_err(failed)?;
    SharedWindow::open(&device.join("resource2")).map_err(failed)
}
