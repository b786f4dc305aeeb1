//! Why a system that the user brings cannot be one of the lab, and what to do about it.

use super::system::System;
use crate::agent::ssh::SshError;
use stackrace_base::event::again;
use stackrace_base::unit::{self, ShownPath};
use std::path::PathBuf;

/// Digits of the hash of an image in a name.
pub(super) const HASH_LEN: usize = 12;

/// Most characters of the name of a system.
pub(super) const NAME_MAX: usize = 40;

/// Reasons a system that the user brings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddedError {
    /// The name cannot be one.
    #[error(
        "\"{0}\" cannot be the name of a system: lower-case letters, digits, - and . are, a letter first, {NAME_MAX} at most"
    )]
    Name(String),
    /// The name is that of a system that the lab makes itself.
    #[error("the lab makes {0} itself")]
    OfTheLab(&'static System),
    /// There is one of this name.
    #[error("{name} was added before, from an image whose BLAKE3 begins with {}", .blake3.get(..HASH_LEN).unwrap_or_default())]
    Twice {
        /// Name that both would have.
        name: String,
        /// Hash of the image that it was added from.
        blake3: String,
    },
    /// A file of it is missing, or is another one now.
    #[error("the image of {0} is not what was added")]
    Damaged(String),
    /// The file is packed.
    #[error("{} is packed, and a disk that a guest starts from is not", .path.shown())]
    Packed {
        /// The file.
        path: PathBuf,
        /// Program that unpacks it.
        unpack: &'static str,
    },
    /// The file has a format that is not kept.
    #[error("{} is in the format {format}, and raw and qcow2 are what the lab keeps", .path.shown())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format, as QEMU names it.
        format: String,
    },
    /// The image is only a part of a disk.
    #[error("{} holds a part of a disk alone: the rest is in another file, {other}", .path.shown())]
    Part {
        /// The file.
        path: PathBuf,
        /// The other file, as the image names it.
        other: String,
    },
    /// Nothing in it can be started.
    #[error("{} is no disk that a PC starts from: {why}", .path.shown())]
    NoSystem {
        /// The file.
        path: PathBuf,
        /// What is missing in its first sector.
        why: &'static str,
    },
    /// The cache has no room for it.
    #[error("{} needs {}, and {} has {} free", .path.shown(), unit::bytes(*.bytes), .dir.shown(), unit::bytes(*.free))]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The cache.
        dir: PathBuf,
        /// Bytes that are free there.
        free: u64,
    },
    /// The guest ended before it was reached.
    #[error("{name} started and ended by itself before it was reached; its last words:\n{words}")]
    Ended {
        /// The system.
        name: String,
        /// The end of what its console and QEMU printed.
        words: String,
    },
    /// The guest never answered on its network.
    #[error(
        "{name} started and did not answer on its network within {seconds} s; its last words:\n{words}"
    )]
    NoAnswer {
        /// The system.
        name: String,
        /// Time that it was waited for.
        seconds: u64,
        /// The end of what its console and QEMU printed.
        words: String,
    },
    /// The guest is on its network, without ssh.
    #[error(
        "{name} is up and has no ssh: nothing there listens on port 22 after {seconds} s; its last words:\n{words}"
    )]
    NoSsh {
        /// The system.
        name: String,
        /// Time that it was waited for.
        seconds: u64,
        /// The end of what its console and QEMU printed.
        words: String,
    },
    /// The login is refused, or wants a password.
    #[error("{name} does not let {login} in without a password: {said}")]
    Denied {
        /// The system.
        name: String,
        /// The user who was to log in.
        login: String,
        /// Words of ssh.
        said: String,
    },
    /// Its shell cannot be used, or lacks something.
    #[error(transparent)]
    Shell(#[from] SshError),
}

impl AddedError {
    /// Advice for the user.
    pub fn next(&self) -> String {
        let remove = |name: &str| again(&["lab", "clean", "--system", name]);
        match self {
            Self::Name(_) => "name it after what it is: freebsd-14".to_owned(),
            Self::OfTheLab(system) => format!("choose another name: my-{system}"),
            Self::Twice { name, .. } => {
                format!("choose another name, or remove that one first: {}", remove(name))
            }
            Self::Damaged(name) => format!("remove it, and add it again: {}", remove(name)),
            Self::Packed { path, unpack } => {
                format!("unpack it, and add what comes of it: {unpack} {}", path.shown())
            }
            Self::Format { path, .. } | Self::Part { path, .. } => format!(
                "make one file of it, and add that: qemu-img convert -O qcow2 {0} {0}.qcow2",
                path.shown()
            ),
            Self::NoSystem { .. } => {
                "take the image that its maker offers for virtual machines with a BIOS and an x86-64 processor (amd64)"
                    .to_owned()
            }
            Self::NoRoom { .. } => {
                "make room there, or name another place: export XDG_CACHE_HOME=DIR".to_owned()
            }
            Self::Ended { .. } | Self::NoAnswer { .. } => {
                "the image must start without a question on a PC with a BIOS, an x86-64 processor, a virtio disk and a virtio network card, and ask for its address by DHCP; more memory: --memory \"2 GiB\""
                    .to_owned()
            }
            Self::NoSsh { .. } => "have sshd start with the system in the image".to_owned(),
            Self::Denied { login, .. } => format!(
                "put your public key into ~{login}/.ssh/authorized_keys in the image and let {login} log in by key; name the key: --ssh \"ssh -i KEY\"; or another user: --login USER"
            ),
            // Who asks for it over there is told to name the machine; here it is in the image.
            Self::Shell(error) => match error {
                SshError::Unreached { .. } | SshError::Ended { .. } | SshError::Silent { .. } => String::new(),
                error => error.next(),
            },
        }
    }
}
