//! A client for AFP, the protocol of Mac file servers: a volume mounted through FUSE.
//!
//! Written from the public description of the protocol (Apple's "Apple Filing Protocol Reference",
//! versions 3.0 to 3.4). It does what the workloads need and no more: data forks, Unix privileges,
//! symbolic links; no resource forks, no locks, no reconnecting.
//!
//! Nothing that is written is held back: a write has reached the server, and may be in its memory,
//! when the call returns; fsync has the server sync the file, fsync of a directory all it has. What is read is in the kernel's page cache
//! until the file is opened again, names and attributes for [`mount::TRUSTED`]. Renaming over a file
//! is deleting it first, since the protocol has no other way.
//!
//! Bytes go through three files: [`dsi`] carries a command and its answer, [`protocol`] says what is
//! in them, [`volume`] asks for one thing; [`files`] does what the kernel wants with that, and [`mount`]
//! hands it through.

mod codes;
mod dsi;
mod error;
mod files;
mod mount;
mod nodes;
pub(crate) mod protocol;
mod volume;

pub(crate) use mount::AfpMount;
