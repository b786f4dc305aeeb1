//! The words of `stackrace lab`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::lab::system;

/// `stackrace lab`.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

/// What to do with the lab.
#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// Build the image guests are made of from the distribution's packages; as root, some minutes, once
    Build {
        /// Of this operating system: debian-13 (Linux 6.12, OpenZFS 2.3) or debian-12 (Linux 6.1,
        /// OpenZFS 2.1); may be repeated
        #[arg(long = "system", value_name = "NAME", default_value = system::DEFAULT)]
        systems: Vec<String>,
        /// Build the ZFS modules for it too, which Debian gives as source: ten minutes more
        #[arg(long)]
        zfs: bool,
    },
    /// List images and machines that run, with their sizes; every file of an image is checked
    List,
    /// Use a guest by hand, at this terminal; nothing in it is kept
    Shell(LabShell),
    /// Let something happen to a machine that runs: to the power or the link of a guest, to a disk
    Fault(LabFault),
    /// Remove images that no recipe of this program makes any more, and damaged ones
    Clean {
        /// Remove the image and the ZFS modules of this system too; may be repeated
        #[arg(long = "system", value_name = "NAME")]
        systems: Vec<String>,
    },
    /// The part inside a guest
    #[command(hide = true)]
    Agent,
    /// Mount a volume of an AFP server, as a guest
    #[command(hide = true)]
    MountAfp(MountAfp),
}

/// `stackrace lab mount-afp`.
#[derive(Debug, Args)]
pub(crate) struct MountAfp {
    /// Address and port
    pub(crate) server: SocketAddr,
    /// Name of the volume
    pub(crate) volume: String,
    /// Directory to mount it at
    pub(crate) point: PathBuf,
    /// Serve it until it is unmounted, instead of starting a process that does
    #[arg(long)]
    pub(crate) serve: bool,
}

/// `stackrace lab fault`.
#[derive(Debug, Args)]
pub(crate) struct LabFault {
    /// The machine, where several run: its system, or as the refusal names it
    #[arg(long, value_name = "MACHINE", global = true)]
    pub(crate) machine: Option<String>,
    #[command(subcommand)]
    pub(crate) what: FaultVerb,
}

/// What may happen to a machine.
#[derive(Debug, Subcommand)]
pub(crate) enum FaultVerb {
    /// Cut the power of a guest, or let it come back: what was not written is lost, its disks are kept
    Power {
        /// The guest: 1 is node1
        node: usize,
        /// What happens
        what: PowerWord,
    },
    /// Cut the network link of a guest, or mend it
    Link {
        /// The guest: 1 is node1
        node: usize,
        /// What happens
        what: LinkWord,
    },
    /// Pull a disk of a guest, let requests to it fail, or no longer
    Disk {
        /// The guest: 1 is node1
        node: usize,
        /// The disk, as the run's environment calls it (`lab disk`); the first one of `lab shell` is disk-1
        serial: String,
        /// What happens
        what: DiskWord,
        /// Only requests fail that touch the bytes from here on
        #[arg(long, value_name = "BYTES")]
        at: Option<String>,
        /// So many of them
        #[arg(long, value_name = "BYTES", default_value = "4 KiB", requires = "at")]
        length: String,
    },
}

/// What may happen to the power of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PowerWord {
    /// It is gone
    Cut,
    /// It is back, and the guest starts
    On,
}

/// What may happen to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkWord {
    /// Nothing gets through
    Cut,
    /// Everything gets through
    Mend,
}

/// What may happen to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiskWord {
    /// The guest has it no more
    Pull,
    /// Reads, writes and flushes fail with an I/O error
    Fail,
    /// They work again
    Mend,
}

/// `stackrace lab shell`.
#[derive(Debug, Args)]
pub(crate) struct LabShell {
    /// Operating system of the guests: debian-13 or debian-12
    #[arg(long, value_name = "NAME", default_value = system::DEFAULT)]
    pub(crate) system: String,
    /// So many guests, node1, node2 …, on a network of their own; the shell is in node1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) nodes: usize,
    /// A disk of this size for each guest; may be repeated
    #[arg(long = "disk", value_name = "BYTES")]
    pub(crate) disks: Vec<String>,
    /// Logical and physical sector of the disks
    #[arg(long, value_name = "BYTES/BYTES", default_value = "512/512")]
    pub(crate) sectors: String,
    /// Memory of each guest
    #[arg(long, value_name = "BYTES", default_value = "1 GiB")]
    pub(crate) memory: String,
    /// Run this in node1 instead, and print what it prints
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
}
