//! Why the lab could not do something, and what to do about it.

use super::system::System;
use crate::host::HostError;
use crate::journal::JournalError;
use std::path::PathBuf;

/// Why the lab could not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LabError {
    /// The image of a system was not built.
    #[error("the lab has no image of {0}")]
    NoImage(&'static System),
    /// A file of an image is missing or is not what was built.
    #[error("{} is not what was built", .0.display())]
    Damaged(PathBuf),
    /// The distribution has something else by now than the image has.
    #[error("the distribution now has {now}, which does not fit the image of {system}")]
    MovedOn {
        /// The system whose image it is.
        system: &'static System,
        /// What the distribution has.
        now: String,
    },
    /// This program needs a newer C library than the image has.
    #[error("this program needs glibc {needs}, the guest has {has}: it cannot run there")]
    Libc {
        /// What the program needs.
        needs: String,
        /// What the image has.
        has: String,
    },
    /// A guest did not come up; the end of what it printed.
    #[error("the guest did not come up; its last words:\n{0}")]
    NotUp(String),
    /// A guest stopped before it had done what it was to do; the end of what it printed.
    #[error("the guest stopped; its last words:\n{0}")]
    Stopped(String),
    /// A guest has ended.
    #[error("the guest has ended")]
    Ended,
    /// A guest, or a part of the lab, refused.
    #[error("{0}")]
    Refused(String),
    /// This machine refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal could not be written: nothing was created.
    #[error(transparent)]
    Journal(#[from] JournalError),
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
            Self::NotUp(_) | Self::Stopped(_) | Self::Ended | Self::Refused(_) => String::new(),
            Self::Host(error) => error.next(),
            Self::Journal(error) => error.next(),
        }
    }
}
