//! The calls that differ between the systems this program is built for.
//!
//! On Linux these names are those of the C library's calls. Elsewhere each is what the system has in
//! its place, or is refused with `EOPNOTSUPP` before anything is touched. The rest of the crate asks
//! this file, and knows no system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod plain;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use plain::*;

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

/// What a system lacks, and what to do about it; for a plan that is checked before it begins.
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
