//! Systems without the driver `ublk`, which is Linux's alone: nothing is served.

use super::device::{DeviceShape, ServeError, ServedDevice, Serving};
use super::room::ContentRoom;
use stackrace_drives::Drive;
use stackrace_system::lacking;

/// Refuses to serve a block device.
///
/// # Errors
/// Always: the driver is Linux's alone.
pub fn serve(
    _number: u32,
    _like: DeviceShape,
    _room: &ContentRoom,
    _how: Serving,
    _drive: impl FnOnce() -> Result<Box<dyn Drive>, String> + Send + 'static,
) -> Result<ServedDevice, ServeError> {
    Err(ServeError::new("make", lacking("the driver ublk")))
}

/// Refuses to end what was never served.
///
/// # Errors
/// Always: the driver is Linux's alone.
pub fn remove(_device: &ServedDevice) -> Result<(), ServeError> {
    Err(ServeError::new("remove", lacking("the driver ublk")))
}
