//! Where a stack lives: commands, files and what the kernel knows, behind one trait.
//!
//! Everything the program does to a machine goes through [`Host`]. [`local::LocalHost`] does it;
//! [`plan::PlanHost`] imagines it, keeps the steps in order and can be told to fail at any of them.
//! A layer cannot tell which one it stands on, so that `plan` and `run` cannot differ.
//!
//! Only this room starts processes.

mod adopted;
mod advice;
mod command;
pub mod daemon;
pub mod device;
pub mod drives;
mod ended_command;
mod error;
mod file_system_settings;
pub mod identity;
pub mod imagined;
mod lab_disk;
pub mod line_speed;
pub mod local;
mod missing;
pub mod mountinfo;
mod needs;
pub mod plan;
mod probe;
pub mod process;
pub mod program;
mod reading;
pub mod second;
pub mod shared_memory;
mod storage_settings;
mod sysfs;
pub mod thing;
mod tools;
mod tree;
pub mod udev;
mod user_commands;
pub mod verb;
mod words;

pub use advice::{advised, is_of, known_packages, modules};
pub use command::{Output, argv, argv_at};
pub use device::{DeviceContent, FixedDevice};
pub use error::HostError;
pub use lab_disk::{DeclaredFault, DiskModel, DriveCache, LabDisk};
pub use missing::lacking;
pub use mountinfo::MountInfo;
pub use needs::{Daemon, Driver, Needs, Package, ProgramPart};
pub use probe::TimedDevice;
pub use thing::{MadeThing, SeenThing, ThingReads, TooMuch, Whereabouts};
pub use tree::check as check_tree;
pub use user_commands::{UserCommand, UserCommands, digest};

use program::{ProgramCall, ProgramRun};
use serde::{Deserialize, Serialize};
use stackrace_base::event::StorageIdentity;
use stackrace_base::owned::held::HeldDir;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::ShownPath;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The command that removes what is left on the machine that it is typed at.
pub const CLEAN: &str = "stackrace clean";

/// Advice where the kernel's own files are missing.
pub const MOUNT_PROC: &str =
    "mount it: sudo mount -t proc proc /proc (a container gets it from what starts it)";

/// Returns true if this system shows what its kernel knows: on Linux, if `/proc` is mounted.
pub fn sees_the_kernel() -> bool {
    !cfg!(target_os = "linux") || Path::new("/proc/self/mountinfo").exists()
}

/// Content of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filling {
    /// Nothing: one hole; the file system below allocates at the first write.
    Sparse,
    /// Blocks reserved by `fallocate(2)`, marked unwritten: space is safe, the first write still
    /// changes the mark.
    Allocated,
    /// Incompressible bytes drawn from the seed, written and synced.
    Written {
        /// Seed of the bytes.
        seed: u64,
    },
}

/// Speed of the line between two machines, as measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineSpeed {
    /// Shortest of several round trips of a short message, ns.
    pub round_trip_ns: u64,
    /// Throughput of one TCP connection to the machine that is named, B/s.
    pub rate: f64,
    /// Bytes that were sent to find it.
    pub bytes: u64,
}

/// A machine a stack can live on.
pub trait Host: Send + Sync {
    /// `local`, `plan`, `node2`.
    fn name(&self) -> &str;

    /// Runs a command to its end, whatever its exit status, and records it.
    ///
    /// # Errors
    /// When the program is missing or cannot be started.
    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError>;

    /// Runs a command that has to succeed.
    ///
    /// # Errors
    /// As [`Host::exec`], and when the exit status is not 0.
    fn must(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let begun_ns = SystemClock.now_ns();
        let output = self.exec(argv)?;
        if output.status == Some(0) {
            Ok(output)
        } else {
            let took_ns = SystemClock.now_ns().saturating_sub(begun_ns);
            Err(HostError::failed_after(argv, output, took_ns))
        }
    }

    /// Needs that this machine does not meet, each with what to do about it; empty if it meets all.
    fn missing(&self, needs: &Needs) -> Vec<HostError>;
    /// Returns true if this process has the rights of root there.
    fn is_root(&self) -> bool;

    /// Returns true if this process runs on it, and can look at counters, pages and processes by
    /// itself.
    fn is_here(&self) -> bool {
        true
    }
    /// The reason why the way to it broke since this was last asked; `None` if it did not.
    fn lost(&self) -> Option<String> {
        None
    }
    /// The system's name, as `uname -s` says it.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn system(&self) -> Result<String, HostError> {
        let said = self.must(&argv(["uname", "-s"]))?;
        Ok(said.stdout.trim().to_owned())
    }
    /// Runs a program that is measured, to its end.
    ///
    /// # Errors
    /// It is missing or cannot be started.
    fn run_program(&self, call: &ProgramCall<'_>) -> Result<ProgramRun, HostError> {
        program::run(call)
    }

    /// Commands of the study's own that this machine may be asked to run; `None` if it runs none.
    fn user_commands(&self) -> Option<&UserCommands> {
        None
    }

    /// Creates one directory, for the owner alone (mode 0700).
    ///
    /// # Errors
    /// Also when something of that name exists.
    fn create_dir(&self, path: &Path) -> Result<(), HostError>;
    /// Holds a directory that was just made, so that it can be worked in whatever happens to its
    /// name; `None` if it is on another machine, or imagined.
    ///
    /// # Errors
    /// Something else is in its place.
    fn hold_dir(&self, path: &Path) -> Result<Option<HeldDir>, HostError> {
        let _ = path;
        Ok(None)
    }
    /// Creates one file of a size, for the owner alone (mode 0600).
    ///
    /// # Errors
    /// Also when something of that name exists; a part may have been written.
    fn create_file(&self, path: &Path, bytes: u64, filling: Filling) -> Result<(), HostError>;
    /// Removes one file; one that is not there is fine.
    ///
    /// # Errors
    /// When the system refuses.
    fn remove_file(&self, path: &Path) -> Result<(), HostError>;
    /// Removes one empty directory; one that is not there is fine.
    ///
    /// # Errors
    /// When the system refuses, or it is not empty.
    fn remove_dir(&self, path: &Path) -> Result<(), HostError>;
    /// Removes a directory of ours and all it holds: see [`tree::check`] for what is refused.
    ///
    /// # Errors
    /// When it is not ours by name, has a mount in it, or the system refuses.
    fn remove_tree(&self, path: &Path) -> Result<(), HostError>;
    /// Writes a short text into an existing file of the kernel's.
    ///
    /// # Errors
    /// When the system refuses.
    fn write_text(&self, path: &Path, text: &str) -> Result<(), HostError>;
    /// Writes back everything the file system that holds `path` has in memory (`syncfs(2)`).
    ///
    /// # Errors
    /// When the system reports an error, also one of an earlier write.
    fn sync_file_system(&self, path: &Path) -> Result<(), HostError>;

    /// Finds the block device at a path, links followed once; it keeps its name while what is
    /// returned is there.
    ///
    /// # Errors
    /// When there is none.
    fn fix_device(&self, path: &Path) -> Result<FixedDevice, HostError> {
        // A host that cannot hold devices still follows a link only once.
        Ok(FixedDevice::by_path(self.canonical(path)?))
    }
    /// Users of a device or its partitions that `/sys/…/holders` does not show, a clause each:
    /// processes, loop devices, servers of the kernel, a holder of the exclusive right.
    fn device_users(&self, device: &FixedDevice) -> Vec<String> {
        let node = device.node.shown();
        // Not knowing counts as in use.
        vec![format!("it could not be found out who uses {node}")]
    }
    /// Reads samples of a device.
    ///
    /// # Errors
    /// When they cannot be read.
    fn device_content(&self, device: &FixedDevice) -> Result<DeviceContent, HostError> {
        let cannot = std::io::Error::from(std::io::ErrorKind::Unsupported);
        Err(HostError::path("read samples of", &device.node, cannot))
    }
    /// Writes into the first sector of a device that nothing on it is needed any more: then it is
    /// found to be [`DeviceContent::Left`] until anything is written to it.
    ///
    /// # Errors
    /// When it is in use, or cannot be written.
    fn leave_device(&self, _device: &FixedDevice) -> Result<(), HostError> {
        Ok(())
    }

    /// A small text file, lossy where it is not UTF-8.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read_text(&self, path: &Path) -> Result<String, HostError>;
    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// When it cannot be read.
    fn list(&self, path: &Path) -> Result<Vec<OsString>, HostError>;
    /// Makes sure that the machine still answers. That something does not exist is also said of
    /// a machine that is lost.
    ///
    /// # Errors
    /// It does not answer.
    fn answers(&self) -> Result<(), HostError> {
        Ok(())
    }
    /// Returns true if something of that name exists, a dangling link included; of a lost machine: no.
    fn exists(&self, path: &Path) -> bool;
    /// Returns true if it is a directory, links followed.
    fn is_dir(&self, path: &Path) -> bool;
    /// Absolute, without links.
    ///
    /// # Errors
    /// When it does not exist.
    fn canonical(&self, path: &Path) -> Result<PathBuf, HostError>;
    /// The same of a directory to work in: for root, no link of another user leads there.
    ///
    /// # Errors
    /// When it does not exist, or such a link does.
    fn own_way_to(&self, directory: &Path) -> Result<PathBuf, HostError> {
        self.canonical(directory)
    }
    /// Bytes this user may still write in the file system that holds a directory.
    ///
    /// # Errors
    /// When the system cannot say.
    fn free_bytes(&self, path: &Path) -> Result<u64, HostError>;
    /// Every mount this process sees, in the kernel's order.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn mounts(&self) -> Result<Vec<MountInfo>, HostError>;
    /// The mount that holds a path.
    ///
    /// # Errors
    /// When the path does not exist or the mount is not in the table.
    fn mount_of(&self, path: &Path) -> Result<MountInfo, HostError>;
    /// Identity of the storage that a directory lies on, so that another storage in its place is
    /// noticed.
    ///
    /// # Errors
    /// It is not there, or the system does not say.
    fn identity_of(&self, directory: &Path) -> Result<StorageIdentity, HostError> {
        let directory = self.canonical(directory)?;
        let mount = self.mount_of(&directory)?;
        let boot = self.read_text(Path::new(identity::BOOT)).ok();
        Ok(identity::of_mount(&directory, &mount, boot))
    }
    /// The same with a table of mounts that was just read: a look at many directories reads it once.
    ///
    /// # Errors
    /// As [`Host::identity_of`].
    fn identity_among(
        &self,
        mounts: &[MountInfo],
        directory: &Path,
    ) -> Result<StorageIdentity, HostError> {
        // A machine elsewhere has its own table at hand.
        let _ = mounts;
        self.identity_of(directory)
    }
    /// Marks that tell a file or a directory from any other that may be at its path later; `None`
    /// if nothing is there, or this machine does not say.
    fn thing_at(&self, path: &Path) -> Option<MadeThing> {
        let _ = path;
        None
    }
    /// Finds a thing that was made at a path and is not there any more.
    fn find_thing(&self, thing: &MadeThing, path: &Path) -> Whereabouts {
        let _ = (thing, path);
        Whereabouts::NotKnown
    }
    /// The command that removes what is left on this machine, typed where the run was begun.
    fn cleaned_by(&self) -> &str {
        CLEAN
    }
    /// Tells why nothing can be made in a directory; `None` if it can, or if this machine does not say.
    fn closed(&self, directory: &Path) -> Option<HostError> {
        let _ = directory;
        None
    }
    /// Processes that keep something open in or below a directory, as far as this process may see:
    /// `bash (process 4711)`.
    fn holders(&self, path: &Path) -> Vec<String>;

    /// Waits for the commands that a killed run has left running: a `mount` or `mdadm` among them
    /// may still make what is about to be removed. One that does not end, by its command line.
    ///
    /// # Errors
    /// When it cannot be looked.
    fn outlive(&self, run: &str) -> Result<Option<String>, HostError> {
        let _ = run;
        Ok(None)
    }

    /// The device of a disk of the lab, by its serial.
    ///
    /// # Errors
    /// When there is none.
    fn lab_disk(&self, disk: &LabDisk) -> Result<PathBuf, HostError>;
    /// Ends the virtual machine that keeps its files in a directory; none running is fine. Guests
    /// are disposable: it is not asked.
    ///
    /// # Errors
    /// When it does not end.
    fn end_machine(&self, directory: &Path) -> Result<(), HostError>;

    /// A process of a name, at most 15 characters as the kernel keeps it: `smbd (process 4711)`.
    ///
    /// # Errors
    /// When the machine cannot be asked.
    fn running(&self, program: &str) -> Result<Option<String>, HostError>;
    /// The process that listens at a port, TCP or UDP, at any address.
    ///
    /// # Errors
    /// When the machine cannot be asked.
    fn listener(&self, port: u16) -> Result<Option<String>, HostError>;
    /// Refuses a server where it runs already, or where its port is taken.
    ///
    /// # Errors
    /// [`HostError::Occupied`]; when the machine cannot be asked.
    fn check_free(&self, daemon: &Daemon) -> Result<(), HostError> {
        let program = daemon.program;
        let why = match (self.running(program)?, daemon.port) {
            (Some(by), _) => format!("{by} runs already, and a machine has one"),
            (None, Some(port)) => match self.listener(port)? {
                Some(by) => format!("{by} listens at port {port}, where {program} would"),
                None => return Ok(()),
            },
            (None, None) => return Ok(()),
        };
        let host = self.name().to_string();
        Err(HostError::Occupied { host, why })
    }
    /// Ends the processes of a name that bear a mark ([`daemon::MARK`]) with all they began, and
    /// waits until they are gone; none is fine.
    ///
    /// # Errors
    /// When one does not end.
    fn end_daemon(&self, program: &str, mark: &str) -> Result<(), HostError>;

    /// Number of machines that a stack raised from here can live on: this one and its peers.
    fn nodes(&self) -> usize {
        1
    }
    /// A peer of this machine, from 2.
    ///
    /// # Errors
    /// When it has none of that number.
    fn peer(&self, node: usize) -> Result<&dyn Host, HostError> {
        Err(HostError::NoPeer { node })
    }
    /// Returns true if this machine as a peer is in the same kernel as the first one.
    fn shares_kernel(&self) -> bool {
        false
    }
    /// Addresses of the line to this machine as a peer: of the first machine, of this one.
    ///
    /// # Errors
    /// When it is no peer, or cannot be reached.
    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        Err(HostError::NoPeer { node: 1 })
    }
    /// The run's own directory on this machine, where it is a peer that has one of its own; `None`
    /// means the same path as on the first machine.
    fn own_scratch(&self) -> Option<&Path> {
        None
    }
    /// Address at which this machine as a peer listens to one who measures the line to it.
    ///
    /// # Errors
    /// When it is no peer, or cannot listen.
    fn measured_at(&self) -> Result<SocketAddr, HostError> {
        Err(HostError::NoPeer { node: 1 })
    }
    /// Measures the line to this machine as a peer, with so many bytes; `None` if it is only planned.
    ///
    /// # Errors
    /// When it is no peer, or the line fails.
    fn measure_line(&self, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let _ = bytes;
        Err(HostError::NoPeer { node: 1 })
    }
    /// The same of the line from this machine as a peer to another peer.
    ///
    /// # Errors
    /// As [`Host::measure_line`].
    fn measure_line_to(
        &self,
        other: &dyn Host,
        bytes: u64,
    ) -> Result<Option<LineSpeed>, HostError> {
        let _ = (other, bytes);
        Err(HostError::NoPeer { node: 1 })
    }

    /// Waits.
    fn pause(&self, duration: Duration);
    /// 16 random hexadecimal digits.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    fn nonce(&self) -> Result<String, HostError>;
}

/// A path that exists inside a guest of the lab and nowhere else.
pub const LAB_MARK: &str = "/run/stackrace-lab";
