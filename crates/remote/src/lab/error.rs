//! Why the lab could not do something, and what to do about it.

use super::added_error::AddedError;
use super::system::System;
use stackrace_base::event::sudo;
use stackrace_base::owned::OwnError;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::HostError;
use stackrace_machine::journal::JournalError;
use std::path::PathBuf;

/// Reasons the lab could not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// The image of a system was not built.
    #[error("the lab has no image of {0}")]
    NoImage(&'static System),
    /// A file of an image is missing or is not what was built.
    #[error("{} is not what was built", .0.shown())]
    Damaged(PathBuf),
    /// The distribution has something else by now than the image has.
    #[error("the distribution now has {now}, which does not fit the image of {system}")]
    MovedOn {
        /// The system whose image it is.
        system: &'static System,
        /// Version the distribution has.
        now: String,
    },
    /// This program needs a newer C library than the image has.
    #[error("this program needs glibc {needs}, the guest has {has}: it cannot run there")]
    Libc {
        /// Version the program needs.
        needs: String,
        /// Version the image has.
        has: String,
    },
    /// A guest did not come up; the end of what it printed.
    #[error("the guest did not come up; its last words:\n{0}")]
    NotUp(String),
    /// A guest stopped before it had done what it was to do; the end of what it printed.
    #[error("the guest stopped; its last words:\n{0}")]
    Stopped(String),
    /// The user stopped it.
    #[error("interrupted: nothing was built")]
    Interrupted,
    /// A guest has ended.
    #[error("the guest has ended")]
    Ended,
    /// A guest, or a part of the lab, refused.
    #[error("{0}")]
    Refused(String),
    /// Everything that this machine lacks.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Lacks(Vec<HostError>),
    /// This machine refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system that the user brought cannot be used.
    #[error(transparent)]
    Added(#[from] AddedError),
    /// An image, or the way to it, is not the user's own: why.
    #[error("{0}")]
    NotOwn(String),
    /// The journal could not be written: nothing was created.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<OwnError> for LabError {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::System { .. } => Self::Refused(error.to_string()),
            _ => Self::NotOwn(error.to_string()),
        }
    }
}

impl LabError {
    /// Advice for the user.
    pub fn next(&self) -> String {
        match self {
            Self::NoImage(system) => format!("build it once: {}", system.build()),
            Self::Damaged(_) => {
                format!("remove what is damaged, and build it again: {0} lab clean, then {0} lab build", sudo())
            }
            Self::MovedOn { system, .. } => format!(
                "build both again: {} lab clean --system {system}, then {} --zfs",
                sudo(),
                system.build()
            ),
            Self::Libc { .. } => {
                "use a stackrace that was built on that distribution or an older one, or statically: \
                 RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu"
                    .to_string()
            }
            // Virtual time counts instructions, which a QEMU without TCG does not execute itself.
            Self::NotUp(words) if words.contains("icount") => {
                "virtual time needs a QEMU that emulates the processor (TCG): apt install qemu-system-x86"
                    .to_string()
            }
            Self::NotUp(_) | Self::Stopped(_) | Self::Ended | Self::Refused(_) => String::new(),
            Self::Interrupted => "begin again when there is time: what was made is removed".to_string(),
            Self::Lacks(missing) => match install(missing) {
                Some(command) => command,
                // Each says what to do; of the first, so that there is one thing to begin with.
                None => missing.first().map_or(String::new(), HostError::next),
            },
            Self::Host(error) => error.next(),
            Self::Added(error) => error.next(),
            Self::NotOwn(_) => "have root own it and no other user write it: chown -R root: and chmod -R go-w; or name a place of your own: XDG_CACHE_HOME=DIR".to_owned(),
            Self::Journal(error) => error.next(),
        }
    }
}

/// One command that installs everything; `None` if something else is missing than packages.
fn install(missing: &[HostError]) -> Option<String> {
    let packages = missing.iter().map(|error| Some(error.package()?.name));
    let packages: Vec<&str> = packages.collect::<Option<_>>()?;
    Some(format!(
        "install what is missing: apt install {}",
        packages.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qemu_that_cannot_count_instructions_is_told_from_a_guest_that_fails() {
        let refused = "-icount shift=0: cannot configure icount, TCG support not available";
        let next = LabError::NotUp(refused.to_owned()).next();
        assert!(next.ends_with("apt install qemu-system-x86"), "{next}");
        assert_eq!(LabError::NotUp("panic".to_owned()).next(), "");
    }

    #[test]
    fn everything_that_is_missing_is_installed_by_one_command() {
        let tool = |tool: &str| HostError::ToolMissing {
            tool: tool.to_owned(),
            package: None,
        };
        let two = LabError::Lacks(vec![tool("mmdebstrap"), tool("mksquashfs")]);
        assert_eq!(
            two.to_string(),
            "mmdebstrap is not installed; mksquashfs is not installed"
        );
        assert_eq!(
            two.next(),
            "install what is missing: apt install mmdebstrap squashfs-tools"
        );
        // Without root nothing is installed: that comes first.
        let root = LabError::Lacks(vec![HostError::NeedsRoot, tool("mmdebstrap")]);
        assert_eq!(root.next(), HostError::NeedsRoot.next());
    }
}
