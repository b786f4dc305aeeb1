//! This machine: the only place that starts processes.
//!
//! Commands run with `LC_ALL=C`, no input, `/` as working directory (those that format: none) and a
//! process group of their own: an interrupt at the terminal reaches this program alone, which then tears the stacks down with
//! commands that go on undisturbed. Every command that ended is handed to the sink. Each has the run
//! that it belongs to in its environment.

pub use super::ended_command::OUTPUT_MAX;
use super::ended_command::run;
use super::{
    DeviceContent, Filling, FixedDevice, Host, HostError, LabDisk, LineSpeed, MadeThing, MountInfo,
    Needs, Output, SeenThing, ThingReads, TooMuch, UserCommands, Whereabouts, daemon, device,
    drives, identity, line_speed, process, program, reading, second, thing, tools, tree,
};
use rand_core::{Rng, SeedableRng};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use stackrace_base::event::{CommandRun, StorageIdentity, again, shell};
use stackrace_base::owned::OwnDir;
use stackrace_base::owned::held::HeldDir;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::InWords;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of times, and pause between them, that commands of a dead program are waited for: half a
/// minute.
const ORPHAN_TRIES: usize = 300;
const ORPHAN_PAUSE: Duration = Duration::from_millis(100);

/// Number of times, and pause between them, that the users of a device are looked for again: udev
/// opens each that was written to for a moment.
const LOOK_TRIES: usize = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Bytes drawn and written at a time when a file is filled.
const FILL_BYTES: usize = 1 << 20;

/// Receiver of every command.
pub type Sink = Arc<dyn Fn(CommandRun) + Send + Sync>;

/// The machine that this program runs on.
pub struct LocalHost {
    name: &'static str,
    sink: Sink,
    peers: Vec<Box<dyn Host>>,
    mark: Mutex<Option<String>>,
    user_commands: UserCommands,
    cleaned_by: String,
}

impl LocalHost {
    /// Sets up this machine; the sink is told of every command.
    pub fn new(sink: Sink) -> Self {
        Self {
            name: "local",
            sink,
            peers: Vec::new(),
            mark: Mutex::default(),
            user_commands: UserCommands::default(),
            cleaned_by: again(&["clean"]),
        }
    }

    /// The second machine of a stack, in the kernel of this one.
    pub fn second(sink: Sink) -> Self {
        Self {
            name: second::SECOND,
            ..Self::new(sink)
        }
    }

    /// Adds these peers, from number 2 on.
    pub fn with_peers(self, peers: Vec<Box<dyn Host>>) -> Self {
        Self { peers, ..self }
    }

    /// Cleaned by another command than the usual one: it is no machine that anybody types at.
    pub fn with_cleaned_by(self, cleaned_by: String) -> Self {
        Self { cleaned_by, ..self }
    }

    /// Every command from here on is one of this run's: [`Host::outlive`] finds it.
    pub fn belong_to(&self, run: &str) {
        *self.mark() = Some(mark(run, getpid()));
    }

    /// Does something as this machine: the second one in this kernel has a name and a network of its own.
    fn as_itself<T: Send>(&self, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        match self.shares_kernel() {
            true => second::on_second(work),
            false => Ok(work()),
        }
    }

    /// As [`Host::exec`], of which so many bytes of each output are kept.
    ///
    /// # Errors
    /// Those of [`Host::exec`].
    pub fn exec_keeping(&self, argv: &[OsString], most: u64) -> Result<Output, HostError> {
        let Some((tool, arguments)) = argv.split_first() else {
            return Err(HostError::NotStarted {
                command: String::new(),
                cause: "the command is empty".to_string(),
            });
        };
        let tool = tool.to_string_lossy();
        let program = tools::find(&tool).ok_or_else(|| HostError::ToolMissing {
            tool: tool.clone().into_owned(),
            package: None,
        })?;
        let start_ns = SystemClock.now_ns();
        let mark = self.mark().clone();
        let run = || run(&program, arguments, mark.as_deref(), most);
        let ended = self.as_itself(run).flatten();
        let elapsed_ns = SystemClock.now_ns().saturating_sub(start_ns);
        let shown_output = match &ended {
            Ok(output) => output.clone(),
            Err(error) => Output {
                stderr: error.in_words(),
                ..Output::default()
            },
        };
        (self.sink)(CommandRun {
            host: self.name().to_string(),
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            status: shown_output.status,
            stdout: shown_output.stdout,
            stderr: shown_output.stderr,
            elapsed_ns,
        });
        ended.map_err(|error| HostError::NotStarted {
            command: shell(argv),
            cause: error.in_words(),
        })
    }

    fn mark(&self) -> MutexGuard<'_, Option<String>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mark of a run's commands. A daemon that one of them started inherits it, but has a session of
/// its own: it is not waited for.
fn mark(run: &str, of: Pid) -> String {
    format!("{run} in session {}", process::session(of))
}

/// A command of a run that is still running, if there is one.
fn command_of(run: &str) -> Option<Pid> {
    let of_run = |id: &Pid| {
        let mark = format!("{}={}", process::MARK, mark(run, *id));
        let environment = process::about(*id, "environ");
        environment.split('\0').any(|variable| variable == mark)
    };
    process::all().find(of_run)
}

impl ThingReads for LocalHost {
    fn seen_at(&self, path: &Path) -> Option<SeenThing> {
        thing::seen_here(path)
    }

    fn seen_below(
        &self,
        root: &Path,
        thing: &MadeThing,
        left: &mut usize,
    ) -> Result<Option<PathBuf>, TooMuch> {
        thing::seen_below_here(root, thing, left)
    }

    fn leads_on(&self, path: &Path) -> bool {
        self.is_dir(path)
    }

    fn table(&self) -> Option<Vec<MountInfo>> {
        self.mounts().ok()
    }

    fn boot(&self) -> Option<String> {
        let text = self.read_text(Path::new(identity::BOOT)).ok()?;
        Some(thing::boot_of(&text))
    }
}

impl Host for LocalHost {
    fn name(&self) -> &str {
        self.name
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        self.exec_keeping(argv, OUTPUT_MAX)
    }

    fn missing(&self, needs: &Needs) -> Vec<HostError> {
        super::lacking(self, needs, &|tool| Ok(tools::find(tool).is_some()))
            .unwrap_or_else(|error| vec![error])
    }

    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    fn user_commands(&self) -> Option<&UserCommands> {
        Some(&self.user_commands)
    }

    fn closed(&self, directory: &Path) -> Option<HostError> {
        let asked = Access::WRITE_OK | Access::EXEC_OK;
        let answer = accessat(CWD, directory, asked, AtFlags::EACCESS);
        let refused = answer.err().filter(|why| {
            // Any other answer is none: whether it can be written then shows.
            [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(why)
        });
        refused.map(|why| HostError::path("write to", directory, why))
    }

    fn create_dir(&self, path: &Path) -> Result<(), HostError> {
        tree::make_in_parent("create directory", path, |parent, name| parent.make(&name))
    }

    fn hold_dir(&self, path: &Path) -> Result<Option<HeldDir>, HostError> {
        let held = HeldDir::open(path);
        held.map(Some)
            .map_err(|error| tree::refused("hold", path, error))
    }

    fn create_file(&self, path: &Path, bytes: u64, filling: Filling) -> Result<(), HostError> {
        let failed = |error: std::io::Error| HostError::path("create", path, error);
        // Never a file that exists: it would not be ours to remove.
        let mut file = tree::make_in_parent("create", path, |parent, name| {
            parent.create_to_overwrite(name)
        })?;
        match filling {
            Filling::Sparse => file.set_len(bytes).map_err(failed)?,
            Filling::Allocated => {
                let flags = stackrace_system::FallocateFlags::empty();
                stackrace_system::fallocate(&file, flags, 0, bytes)
                    .map_err(|error| HostError::path("allocate the blocks of", path, error))?;
            }
            Filling::Written { seed } => {
                fill(&mut file, bytes, seed)
                    .map_err(|error| HostError::path("fill", path, error))?;
            }
        }
        file.sync_all()
            .map_err(|error| HostError::path("sync", path, error))
    }

    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        tree::in_parent(path, OwnDir::remove_file)
    }

    fn remove_dir(&self, path: &Path) -> Result<(), HostError> {
        tree::in_parent(path, OwnDir::remove_dir)
    }

    fn remove_tree(&self, path: &Path) -> Result<(), HostError> {
        tree::remove(path, &self.mounts()?)
    }

    fn write_text(&self, path: &Path, text: &str) -> Result<(), HostError> {
        std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| HostError::path("write to", path, error))
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), HostError> {
        reading::sync(path)
    }

    fn fix_device(&self, path: &Path) -> Result<FixedDevice, HostError> {
        device::fix(path)
    }

    fn device_users(&self, device: &FixedDevice) -> Vec<String> {
        let mut users = device::users(device);
        // udev opens a new device for a moment.
        for _ in 0..LOOK_TRIES {
            if users.is_empty() {
                break;
            }
            self.pause(LOOK_PAUSE);
            users = device::users(device);
        }
        users
    }

    fn device_content(&self, device: &FixedDevice) -> Result<DeviceContent, HostError> {
        device::content(device)
    }

    fn leave_device(&self, device: &FixedDevice) -> Result<(), HostError> {
        device::leave(device)
    }

    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        reading::text(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, HostError> {
        reading::list(path)
    }

    fn exists(&self, path: &Path) -> bool {
        reading::exists(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, HostError> {
        reading::canonical(path)
    }

    fn own_way_to(&self, directory: &Path) -> Result<PathBuf, HostError> {
        let way = OwnDir::way_to(directory);
        way.map_err(|error| tree::refused("find", directory, error))
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, HostError> {
        reading::free_bytes(path)
    }

    fn mounts(&self) -> Result<Vec<MountInfo>, HostError> {
        reading::mounts()
    }

    fn mount_of(&self, path: &Path) -> Result<MountInfo, HostError> {
        reading::mount_of(path)
    }

    fn thing_at(&self, path: &Path) -> Option<MadeThing> {
        thing::at(self, path)
    }

    fn find_thing(&self, thing: &MadeThing, path: &Path) -> Whereabouts {
        thing::find(self, thing, path)
    }

    fn cleaned_by(&self) -> &str {
        &self.cleaned_by
    }

    fn identity_of(&self, directory: &Path) -> Result<StorageIdentity, HostError> {
        identity::here(&self.canonical(directory)?, &[])
    }

    fn identity_among(
        &self,
        mounts: &[MountInfo],
        directory: &Path,
    ) -> Result<StorageIdentity, HostError> {
        identity::here(&self.canonical(directory)?, mounts)
    }

    fn holders(&self, path: &Path) -> Vec<String> {
        process::holders(path)
    }

    fn outlive(&self, run: &str) -> Result<Option<String>, HostError> {
        // What was measured makes nothing that counts any more: it is not waited for.
        program::end_of_run(run);
        let Some(first) = command_of(run) else {
            return Ok(None);
        };
        let _named = process::AwaitedCommand::left_behind(first);
        for _ in 0..ORPHAN_TRIES {
            self.pause(ORPHAN_PAUSE);
            if command_of(run).is_none() {
                return Ok(None);
            }
        }
        Ok(command_of(run).map(process::named))
    }

    fn lab_disk(&self, disk: &LabDisk) -> Result<PathBuf, HostError> {
        if let Some(model) = &disk.model {
            return drives::start(disk, model);
        }
        let block = Path::new("/sys/block");
        let names = reading::list(block)?;
        let found = names.iter().find(|name| {
            reading::text(&block.join(name).join("serial"))
                .is_ok_and(|serial| serial.trim() == disk.serial)
        });
        found
            .map(|name| Path::new("/dev").join(name))
            .ok_or_else(|| HostError::Path {
                what: "find the disk of the lab",
                path: PathBuf::from(&disk.serial),
                cause: "this guest was started without it".to_string(),
                kind: std::io::ErrorKind::NotFound,
                errno: None,
            })
    }

    fn end_machine(&self, directory: &Path) -> Result<(), HostError> {
        for _ in 0..ORPHAN_TRIES {
            if process::end("qemu-system-", directory) {
                return Ok(());
            }
            self.pause(ORPHAN_PAUSE);
        }
        Err(HostError::Path {
            what: "end the virtual machine in",
            path: directory.to_path_buf(),
            cause: "it is still running".to_string(),
            kind: std::io::ErrorKind::ResourceBusy,
            errno: None,
        })
    }

    fn running(&self, program: &str) -> Result<Option<String>, HostError> {
        Ok(daemon::running(program))
    }

    fn listener(&self, port: u16) -> Result<Option<String>, HostError> {
        self.as_itself(|| daemon::listener(port))
            .map_err(|error| HostError::path("look at the network of", Path::new(self.name), error))
    }

    fn end_daemon(&self, program: &str, mark: &str) -> Result<(), HostError> {
        let mut ours = daemon::Ours::default();
        for _ in 0..ORPHAN_TRIES {
            if ours.ask_to_end(program, mark) {
                return Ok(());
            }
            self.pause(ORPHAN_PAUSE);
        }
        Err(HostError::Path {
            what: "end",
            path: PathBuf::from(program),
            cause: "it is still running".to_string(),
            kind: std::io::ErrorKind::ResourceBusy,
            errno: None,
        })
    }

    fn nodes(&self) -> usize {
        1 + self.peers.len()
    }

    fn peer(&self, node: usize) -> Result<&dyn Host, HostError> {
        let peer = node.checked_sub(2).and_then(|index| self.peers.get(index));
        peer.map(|peer| &**peer).ok_or(HostError::NoPeer { node })
    }

    fn shares_kernel(&self) -> bool {
        self.name == second::SECOND
    }

    fn own_scratch(&self) -> Option<&Path> {
        self.shares_kernel().then(|| Path::new(second::SCRATCH))
    }

    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        match (self.shares_kernel(), second::has_network()) {
            (false, _) => Err(HostError::NoPeer { node: 1 }),
            (true, false) => Ok(second::LOOPBACK_ENDS),
            (true, true) => Ok(second::NETWORK_ENDS),
        }
    }

    fn measured_at(&self) -> Result<SocketAddr, HostError> {
        let [_, own] = self.line()?;
        self.as_itself(|| line_speed::listen_once(own))
            .flatten()
            .map_err(|error| HostError::path("listen at", Path::new(&own.to_string()), error))
    }

    fn measure_line(&self, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let address = self.measured_at()?;
        // From the first machine, whose network is that of this program.
        let speed = line_speed::measure(address, bytes);
        let failed = |error| HostError::path("measure the line to", Path::new(self.name), error);
        speed.map(Some).map_err(failed)
    }

    fn pause(&self, duration: Duration) {
        SystemClock.sleep(duration);
    }

    fn nonce(&self) -> Result<String, HostError> {
        let source = Path::new("/dev/urandom");
        let mut bytes = [0; 8];
        std::fs::File::open(source)
            .and_then(|mut file| file.read_exact(&mut bytes))
            .map_err(|error| HostError::path("read", source, error))?;
        Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
    }
}

fn fill(file: &mut std::fs::File, bytes: u64, seed: u64) -> std::io::Result<()> {
    let mut draw = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut buffer = vec![0; FILL_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).map_or(FILL_BYTES, |left| left.min(FILL_BYTES));
        // Random bytes, because zeros would be compressed or left out by the storage below.
        draw.fill_bytes(&mut buffer[..now]);
        file.write_all(&buffer[..now])?;
        left -= now as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
