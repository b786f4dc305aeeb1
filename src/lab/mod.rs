//! Disposable virtual machines: real kernels, real modules, emulated disks, a private network.
//!
//! A guest is made of an [`image`] (kernel and read-only root file system from the distribution's
//! packages, memory over it) and of this very program, handed over in the first file system. It is
//! told what to do over a serial port ([`crate::agent`]); nothing of the host is visible in it, and
//! nothing it does outlives it. `docs/lab.md` is the user's page.

mod command;
mod cpio;
mod disk;
pub(crate) mod fault;
pub(crate) mod image;
pub(crate) mod machine;
mod short;
mod switch;
pub(crate) mod system;
mod vmlinux;

use crate::host::HostError;
use crate::journal::JournalError;
use std::fmt;
use std::path::PathBuf;
use system::System;

/// Why the lab could not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LabError {
    /// The image of a system was not built.
    NoImage(&'static System),
    /// A file of an image is missing or is not what was built.
    Damaged(PathBuf),
    /// The distribution has something else by now than the image has.
    MovedOn {
        /// The system whose image it is.
        system: &'static System,
        /// What the distribution has.
        now: String,
    },
    /// This program needs a newer C library than the image has.
    Libc {
        /// What the program needs.
        needs: String,
        /// What the image has.
        has: String,
    },
    /// A guest did not come up; the end of what it printed.
    NotUp(String),
    /// A guest has ended.
    Ended,
    /// A guest, or a part of the lab, refused.
    Refused(String),
    /// This machine refused.
    Host(HostError),
    /// The journal could not be written: nothing was created.
    Journal(JournalError),
}

impl LabError {
    /// What the user can do about it.
    pub(crate) fn next(&self) -> String {
        match self {
            Self::NoImage(system) => format!("build it once: {}", system.build()),
            Self::Damaged(_) => {
                "remove what is damaged, and build it again: sudo stackrace lab clean, then sudo stackrace lab build".to_string()
            }
            Self::MovedOn { system, .. } => format!(
                "build both again: sudo stackrace lab clean --system {system}, then {} --zfs",
                system.build()
            ),
            Self::Libc { .. } => {
                "use a stackrace that was built on that distribution or an older one, or statically: \
                 RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu"
                    .to_string()
            }
            Self::NotUp(_) | Self::Ended | Self::Refused(_) => String::new(),
            Self::Host(error) => error.next(),
            Self::Journal(error) => error.next(),
        }
    }
}

impl From<HostError> for LabError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<JournalError> for LabError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoImage(system) => write!(f, "the lab has no image of {system}"),
            Self::Damaged(path) => write!(f, "{} is not what was built", path.display()),
            Self::MovedOn { system, now } => write!(
                f,
                "the distribution now has {now}, which does not fit the image of {system}"
            ),
            Self::Libc { needs, has } => write!(
                f,
                "this program needs glibc {needs}, the guest has {has}: it cannot run there"
            ),
            Self::NotUp(console) => {
                write!(f, "the guest did not come up; its last words:\n{console}")
            }
            Self::Ended => f.write_str("the guest has ended"),
            Self::Refused(why) => f.write_str(why),
            Self::Host(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LabError {}
