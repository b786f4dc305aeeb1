//! A client for AFP, the protocol of Mac file servers: a volume mounted through FUSE.
//!
//! Written from the public description of the protocol (Apple's "Apple Filing Protocol Reference",
//! versions 3.0 to 3.4). It does what the workloads need and no more: data forks, Unix privileges,
//! symbolic links; no resource forks, no locks, no reconnecting.
//!
//! Writes are not cached here: when the call returns, the data has reached the server, at least its
//! memory. fsync makes the server sync the file; fsync of a directory syncs the whole volume. Reads
//! stay in the kernel's page cache until the file is opened again, names and attributes for
//! [`mount::TRUSTED`]. Renaming over a file deletes it first, since the protocol has no other way.
//!
//! [`dsi`] carries a command and its reply, [`protocol`] encodes and decodes them, and [`volume`]
//! sends one request at a time. [`files`] implements the kernel's requests with that, and [`mount`]
//! connects it to FUSE.

#[cfg_attr(
    not(all(feature = "afp", target_os = "linux")),
    expect(dead_code, reason = "as of the protocol")
)]
mod codes;
#[cfg(all(feature = "afp", target_os = "linux"))]
mod dsi;
#[cfg_attr(
    not(all(feature = "afp", target_os = "linux")),
    expect(dead_code, reason = "as of the protocol")
)]
mod error;
#[cfg(all(feature = "afp", target_os = "linux"))]
mod files;
#[cfg_attr(not(all(feature = "afp", target_os = "linux")), path = "no_mount.rs")]
mod mount;
#[cfg(all(feature = "afp", target_os = "linux"))]
mod nodes;
#[cfg_attr(
    not(all(feature = "afp", target_os = "linux")),
    expect(
        dead_code,
        unused_imports,
        reason = "without the client only its check reads the protocol"
    )
)]
pub mod protocol;
#[cfg(all(feature = "afp", target_os = "linux"))]
mod volume;

pub use mount::AfpMount;
