//! The words of `stackrace lab`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::SshCommand;
use clap::{Args, Subcommand, ValueEnum};

/// The operating system of guests where none is named.
pub const SYSTEM: &str = "debian-13";

/// Arguments of `stackrace lab`.
#[derive(Debug, Args)]
pub struct Lab {
    /// Which of them
    #[command(subcommand)]
    pub verb: LabVerb,
}

/// Which images to build, and what is added to them.
#[derive(Debug, Args)]
pub struct LabBuild {
    /// Operating system: debian-13 (Linux 6.12, OpenZFS 2.3), the same with Debian's kernels for
    /// clouds or for real time, or under Xen (debian-13-cloud, debian-13-rt, debian-13-xen), or
    /// debian-12 (Linux 6.1, OpenZFS 2.1); may be given several times
    #[arg(long = "system", value_name = "NAME", default_value = SYSTEM)]
    pub systems: Vec<String>,
    /// Build the ZFS modules too, which Debian ships as source: ten minutes more
    #[arg(long)]
    pub zfs: bool,
    /// Pack PostgreSQL too, for studies of databases: some minutes more
    #[arg(long)]
    pub postgresql: bool,
}

/// A system that the user brings.
#[derive(Debug, Args)]
pub struct LabAdd {
    /// Name of the system, for --system and in studies: freebsd-14
    pub name: String,
    /// File of its disk, raw or qcow2, that a PC with a BIOS starts from
    pub image: PathBuf,
    /// User who logs in there; most stacks need root
    #[arg(long, value_name = "USER", default_value = "root")]
    pub login: String,
    /// Memory of the guest that is tried
    #[arg(long, value_name = "BYTES", default_value = "1 GiB")]
    pub memory: String,
    /// The way in which each run logs in there.
    #[command(flatten)]
    pub ssh: SshCommand,
}

/// Commands on the lab.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Build the image of the guests from the distribution's packages; needs root and some minutes
    Build(LabBuild),
    /// Add a system of your own, an image of a disk with ssh (FreeBSD, illumos, NetBSD, any Linux): a guest is
    /// started from a copy of it, and its shell is tried; studies then name it as a system
    Add(LabAdd),
    /// List images and running machines with their sizes; checks every file of an image
    List,
    /// Open a shell in a guest; nothing in it is kept
    Shell(LabShell),
    /// Inject a fault into a running machine: its power, its link or a disk
    Fault(LabFault),
    /// Remove images that this program no longer uses, and damaged ones
    Clean {
        /// Also remove the image and the ZFS modules of this system, or a system that was added; may be given several
        /// times
        #[arg(long = "system", value_name = "NAME")]
        systems: Vec<String>,
    },
    /// The part inside a guest
    // Started by this program in a guest, never typed by people.
    #[command(hide = true)]
    Agent,
    /// Mount a volume of an AFP server, as a guest
    #[command(hide = true)]
    MountAfp(MountAfp),
}

/// `stackrace lab mount-afp`.
#[derive(Debug, Args)]
pub struct MountAfp {
    /// Address and port
    pub server: SocketAddr,
    /// Name of the volume
    pub volume: String,
    /// Directory to mount it at
    pub point: PathBuf,
    /// Serve it in this process until it is unmounted
    #[arg(long)]
    pub serve: bool,
}

/// Arguments of `stackrace lab fault`.
#[derive(Debug, Args)]
pub struct LabFault {
    /// Which machine, if several run: its system, or the name that the refusal shows
    #[arg(long, value_name = "MACHINE", global = true)]
    pub machine: Option<String>,
    /// Which fault
    #[command(subcommand)]
    pub what: FaultVerb,
}

/// Faults of a machine.
#[derive(Debug, Subcommand)]
pub enum FaultVerb {
    /// Cut the power of a guest, or turn it on: its memory is lost, its disks are kept
    Power {
        /// The guest: 1 is node1
        node: usize,
        /// What is done
        what: PowerWord,
    },
    /// Cut the network link of a guest, or repair it
    Link {
        /// The guest: 1 is node1
        node: usize,
        /// What is done
        what: LinkWord,
    },
    /// Pull a disk of a guest, make its requests fail, or repair it
    Disk {
        /// The guest: 1 is node1
        node: usize,
        /// The disk, as the run's environment calls it (`lab disk`); the first one of `lab shell` is disk-1
        serial: String,
        /// What is done
        what: DiskWord,
        /// Only requests that touch bytes from this offset on fail
        #[arg(long, value_name = "BYTES")]
        at: Option<String>,
        /// Length of that range
        // A length without a beginning says nothing.
        #[arg(long, value_name = "BYTES", default_value = "4 KiB", requires = "at")]
        length: String,
    },
}

/// Faults of the power of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PowerWord {
    /// Off
    Cut,
    /// On again: the guest starts
    On,
}

/// Faults of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LinkWord {
    /// Nothing gets through
    Cut,
    /// Everything gets through
    Mend,
}

/// Faults of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiskWord {
    /// Pulled: the guest does not see it
    Pull,
    /// Reads, writes and flushes fail with an I/O error
    Fail,
    /// Repaired: requests work again
    Mend,
}

/// Arguments of `stackrace lab shell`.
#[derive(Debug, Args)]
pub struct LabShell {
    /// Operating system of the guests: debian-13, debian-13-cloud, debian-13-rt or debian-12
    #[arg(long, value_name = "NAME", default_value = SYSTEM)]
    pub system: String,
    /// Number of guests (node1, node2 …) on a network of their own; the shell is in node1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub nodes: usize,
    /// Give each guest a disk of this size; may be given several times
    #[arg(long = "disk", value_name = "BYTES")]
    pub disks: Vec<String>,
    /// Logical and physical sector of the disks
    #[arg(long, value_name = "BYTES/BYTES", default_value = "512/512")]
    pub sectors: String,
    /// Memory of each guest
    #[arg(long, value_name = "BYTES", default_value = "1 GiB")]
    pub memory: String,
    /// Processors of each guest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub processors: u8,
    /// Run this command in node1 instead and print its output
    // Behind `--`: its own options are none of ours.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Clock that the lab's time follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabClock {
    /// The guest's instructions: the same figures on every machine.
    Virtual,
    /// This machine's clock.
    Real,
}

/// Options of `stackrace run` for the clock of its lab.
#[derive(Debug, Args)]
pub struct LabTime {
    /// Clock of the lab: virtual (the default where all drives are modelled; a stack's second machine is
    /// then in the same guest) or real
    #[arg(long, value_name = "CLOCK", requires = "lab")]
    pub clock: Option<LabClock>,
    /// Guests in virtual time that run side by side; one for each processor unless given
    #[arg(long, value_name = "N", requires = "lab")]
    pub jobs: Option<usize>,
}
