//! Block devices that this process serves through the kernel's `ublk` driver, and whose service
//! times a model decides.
//!
//! A device has one queue and one thread. The kernel hands a request over in a slot of an io_uring;
//! the thread moves the data at once, asks the model when the request completes, and completes it
//! then. Data lie in memory, and beyond that in a file of the host ([`ContentRoom`]).
//!
//! The way of a request into the thread and back costs processor time that a real drive would not
//! take. Where the model answers later than that, the thread answers so much sooner
//! ([`DeviceShape`] is served with a `lead`).

#[cfg(target_os = "linux")]
mod abi;
#[cfg(target_os = "linux")]
mod content;
#[cfg_attr(not(target_os = "linux"), path = "none.rs")]
mod control;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "nothing is served")
)]
mod device;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "nothing is served")
)]
mod log;
#[cfg(target_os = "linux")]
mod queue;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "nothing is served")
)]
mod room;

pub use control::{remove, serve};
pub use device::{DeviceShape, ServeError, ServedDevice, Serving};
pub use log::{DeviceLog, Medium};
pub use room::ContentRoom;
