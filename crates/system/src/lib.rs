//! What this program asks of the system it runs on: its calls, memory, processes, clock and sentences.
//!
//! On Linux the calls have the names of those of the C library. Elsewhere each is what the system has in
//! its place, or is refused with `EOPNOTSUPP` before anything is touched. The rest of the program asks
//! this package, and knows no system.
pub mod child;
pub mod cpu;
pub mod draw;
pub mod extents;
pub mod front;
pub mod limit;
pub mod mapping;
pub mod memory;
pub mod port;
pub mod resident;
pub mod retry;
pub mod shown;
mod time;
pub mod window;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod plain;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use plain::*;
pub use time::{monotonic_ns, sleep_ns};

use rustix::fs::{FileType, Mode, RawMode};

/// Permissions, as every system writes them; bits beyond the twelve of `chmod` are left out.
pub fn permissions(mode: u32) -> Mode {
    // The type has 16 bits on some systems; the twelve fit.
    Mode::from_raw_mode((mode & 0o7777) as RawMode)
}

/// The kind of file that a mode (`st_mode`) says.
pub fn kind_of(mode: u32) -> FileType {
    FileType::from_raw_mode(mode as RawMode)
}

/// The sentence that says what a system lacks, and what it is; for a plan that is checked before it begins.
pub fn lacking(what: &str) -> String {
    format!(
        "{what} is part of Linux alone, and this is {}",
        std::env::consts::OS
    )
}

/// The mode of a file (`st_mode`), as wide as on Linux.
pub fn mode_of(about: &rustix::fs::Stat) -> u32 {
    #[expect(clippy::unnecessary_cast, reason = "16 bits on some systems")]
    let mode = about.st_mode as u32;
    mode
}

/// The number of a device, as wide as on Linux.
pub fn device_number(major: u32, minor: u32) -> u64 {
    // On macOS it has 32 bits and a sign.
    rustix::fs::makedev(major, minor) as u64
}

/// Major and minor part of a device's number that is as wide as on Linux.
pub fn device_parts(number: u64) -> (u32, u32) {
    // It came from such a number, so that it fits. On macOS it has 32 bits and a sign.
    let number = number as rustix::fs::Dev;
    (rustix::fs::major(number), rustix::fs::minor(number))
}

/// The device that a file lies on (`st_dev`), as wide as on Linux.
pub fn device_of(about: &rustix::fs::Stat) -> u64 {
    #[expect(clippy::unnecessary_cast, reason = "32 bits with a sign on macOS")]
    let device = about.st_dev as u64;
    device
}
