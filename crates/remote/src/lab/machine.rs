//! A machine of the lab: one guest or several with a network between them.
//!
//! Everything it is made of lies in one directory, which is in the journal before it exists, and so
//! is the end of whatever runs in it.

pub use super::command::Accelerator;
use super::command::{self, DISKS_MAX, SCRATCH};
use super::console::last_words;
use super::description::Description;
use super::disk::{Failing, Served};
use super::disk_cache::DiskCache;
use super::error::LabError;
use super::facts;
use super::short::Short;
pub use super::site::MachineSite;
use super::site::{check_libc, start_node, write_first};
use super::switch::NetworkSwitch;
use crate::agent::connection::{Closing, Connection, ConnectionError};
use crate::agent::message::{COORDINATOR, PeerAddress, WorkerRequest};
use crate::agent::remote_host::RemoteHost;
use crate::agent::router::Router;
use parking_lot::Mutex;
use stackrace_base::event::Fact;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_machine::host::process::Process;
use stackrace_machine::host::{Filling, Host, HostError, Output, argv};
use stackrace_machine::journal::{self, Undo, UndoKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// File that tells one start of this machine from another.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Name of a machine's directory.
pub(super) const DIR: &str = ".stackrace-lab";

/// Most guests of one machine.
const NODES_MAX: usize = 16;

/// Time a guest may take until its worker answers.
const UP: Duration = Duration::from_secs(180);

/// Time a trial guest may take to show that the accelerator works.
const PROBE: Duration = Duration::from_secs(15);

/// Time the others of its machine wait for a guest whose power was cut.
const RETURN: Duration = Duration::from_secs(60);

/// Interval at which a guest that comes up is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Directory where a guest keeps what is too large for its memory.
pub const SCRATCH_DIR: &str = "/scratch";

/// Directories of the files of machines begun in the subdirectories of a directory.
pub fn dirs_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.map(|entry| entry.path().join(DIR));
    dirs.filter(|dir| dir.is_dir()).collect()
}

/// Size of a machine's files, bytes.
pub fn bytes_in(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    // `stat` counts blocks of 512 bytes, whatever the file system's are.
    let blocks = entries.filter_map(|entry| entry.metadata().ok());
    blocks.map(|found| found.blocks() * 512).sum()
}

/// A machine that runs. It ends when dropped; the journal removes its files.
pub struct LabMachine {
    dir: PathBuf,
    nodes: Vec<GuestNode>,
    switch: Option<NetworkSwitch>,
    /// Disks by number of the guest and serial.
    disks: BTreeMap<(usize, String), Served>,
    accelerator: Accelerator,
    facts: Vec<Fact>,
    /// Carries what the guests say to each other.
    router: Arc<Router>,
}

/// One guest. It may be used, and lose its power, at the same time.
pub struct GuestNode {
    process: Mutex<Process>,
    connection: Mutex<Option<Arc<Connection>>>,
    boot_ns: AtomicU64,
}

impl LabMachine {
    /// Starts the guests and waits until every worker answers.
    ///
    /// # Errors
    /// When QEMU is missing or refuses, or a guest does not come up: its last words.
    pub fn start(
        site: &MachineSite<'_>,
        description: &Description,
        accelerator: Accelerator,
    ) -> Result<Self, LabError> {
        let mut machine = Self::begin(site, description, accelerator)?;
        for index in 0..machine.nodes.len() {
            // A guest whose console is the terminal shows itself how it comes up.
            if description.shell_on != Some(index + 1) {
                machine.wait_for(index + 1, UP)?;
            }
        }
        // Last: the time to boot is one of them.
        machine.facts = machine.facts_of(site, description)?;
        Ok(machine)
    }

    fn begin(
        site: &MachineSite<'_>,
        description: &Description,
        accelerator: Accelerator,
    ) -> Result<Self, LabError> {
        check(description)?;
        // Before anything is created: nothing then has to be removed.
        check_libc(site)?;
        let dir = site.dir.join(DIR);
        site.journal.will("lab", Undo::RemoveTree(dir.clone()))?;
        site.host.create_dir(&dir)?;
        let first = dir.join(command::file(1, "first"));
        write_first(site, &first, false)
            .map_err(|error| HostError::path("write", &first, error))?;
        let disks = description.disks.iter().cloned();
        let scratch = description.scratch_bytes.map(command::scratch);
        let mut served = BTreeMap::new();
        for disk in disks.chain(scratch) {
            for node in 1..=description.nodes {
                let file = command::file(node, &disk.serial);
                let path = dir.join(&file);
                // A hole: the image of a large disk takes no space before it is written.
                site.host.create_file(&path, disk.bytes, Filling::Sparse)?;
                let socket = command::socket(&file);
                let latency_ns = disk.latency_ns.unwrap_or(0);
                let cache = match disk.serial.as_str() {
                    // The machine's own disk: it may be slow, and must not lie.
                    SCRATCH if description.disk_cache == DiskCache::Lying => DiskCache::Volatile,
                    _ => description.disk_cache,
                };
                let disk_served =
                    Served::start(&dir, &file, &socket, disk.bytes, latency_ns, cache)
                        .map_err(|error| HostError::path("serve the disk", &path, error))?;
                served.insert((node, disk.serial.clone()), disk_served);
            }
        }
        // One entry for all guests, because all of them name this directory in their command line.
        site.journal.will("lab", Undo::EndMachine(dir.clone()))?;
        let switch = (description.nodes > 1)
            .then(|| {
                Short::of(&dir).and_then(|short| NetworkSwitch::start(short, description.nodes))
            })
            .transpose()
            .map_err(|error| HostError::path("make the network in", &dir, error))?;
        let mut nodes = Vec::new();
        for node in 1..=description.nodes {
            let process = start_node(site, &dir, node, description, accelerator)?;
            nodes.push(GuestNode {
                process: Mutex::new(process),
                connection: Mutex::new(None),
                // The start for now; `wait_for` puts the time that it took in its place.
                boot_ns: AtomicU64::new(SystemClock.now_ns()),
            });
        }
        Ok(Self {
            dir,
            nodes,
            switch,
            disks: served,
            accelerator,
            facts: Vec::new(),
            router: Router::new(RETURN),
        })
    }

    /// Waits until a guest's worker answers.
    fn wait_for(&self, number: usize, patience: Duration) -> Result<(), LabError> {
        let dir = &self.dir;
        let words = || last_words(dir, number);
        let node = &self.nodes[number - 1];
        let began = node.boot_ns.load(Ordering::Relaxed);
        let until = began + patience.as_nanos() as u64;
        let left = || Duration::from_nanos(until.saturating_sub(SystemClock.now_ns()));
        let socket = command::file(number, "agent");
        let stream = loop {
            // A QEMU that refused its command ends at once: no need to wait for the limit.
            if node.process.lock().ended().is_some() || left().is_zero() {
                return Err(LabError::NotUp(words()));
            }
            match Short::of(dir).and_then(|short| UnixStream::connect(short.join(&socket))) {
                Ok(stream) => break stream,
                // QEMU has not made it yet.
                Err(_) => SystemClock.sleep(LOOK),
            }
        };
        let reader = stream.try_clone();
        let reader = reader.map_err(|error| HostError::path("listen to", dir, error))?;
        let connection = self.router.connect(
            number as u32,
            reader,
            Closing(stream),
            Box::new(|known: Option<&str>| {
                ConnectionError::new(known.unwrap_or("the guest has ended"))
            }),
        );
        // QEMU accepts the connection long before the guest listens: only an answer shows that it
        // is up.
        let hello = connection.open(COORDINATOR, &WorkerRequest::Hello);
        let answered = hello.and_then(|hello| hello.receive_within(left()));
        if !matches!(answered, Ok(Some(_))) {
            return Err(LabError::NotUp(words()));
        }
        let took_ns = SystemClock.now_ns().saturating_sub(began);
        node.boot_ns.store(took_ns, Ordering::Relaxed);
        *node.connection.lock() = Some(connection);
        Ok(())
    }

    /// The guests from number 2 on, as the first one knows them.
    pub fn peers(&self) -> Vec<PeerAddress> {
        let numbers = 2..=self.nodes.len();
        let peers = numbers.map(|number| PeerAddress {
            name: format!("node{number}"),
            // As `recipe/start` gives them out.
            address: Ipv4Addr::new(10, 77, 0, number as u8).into(),
            directory: None,
        });
        peers.collect()
    }

    /// Number of guests that make up the machine.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// A guest, from 1.
    ///
    /// # Errors
    /// When there is none of that number.
    pub fn node(&self, number: usize) -> Result<&GuestNode, LabError> {
        number
            .checked_sub(1)
            .and_then(|index| self.nodes.get(index))
            .ok_or_else(|| {
                let nodes = self.nodes.len();
                LabError::Refused(format!(
                    "there is no node {number}: the lab has 1 to {nodes}"
                ))
            })
    }

    /// Cuts the power of a guest: what it had not written is lost, and any part of what its disks had
    /// in a volatile cache; all else that they hold stays.
    ///
    /// # Errors
    /// When there is none of that number, or it has none.
    pub fn cut_power(&self, number: usize) -> Result<(), LabError> {
        let node = self.node(number)?;
        let mut process = node.process.lock();
        if process.ended().is_some() {
            return Err(LabError::Refused(format!("node{number} has no power")));
        }
        // With it the connection is lost, which fails what the other guests asked of it.
        process.kill();
        let served = self.disks.iter().filter(|((node, _), _)| *node == number);
        for ((_, serial), disk) in served {
            let lost = disk.lose(SystemClock.now_ns());
            lost.map_err(|error| HostError::path("cut the power of", Path::new(serial), error))?;
        }
        Ok(())
    }

    /// Cuts the network link of a guest, or mends it.
    ///
    /// # Errors
    /// When there is none of that number, or it has no link.
    pub fn cut_link(&self, number: usize, cut: bool) -> Result<(), LabError> {
        self.node(number)?;
        match &self.switch {
            Some(switch) => switch.cut(number, cut),
            None => {
                let why = "one guest alone has no network: ask for more, --nodes 2";
                return Err(LabError::Refused(why.to_string()));
            }
        }
        Ok(())
    }

    /// Lets requests to a disk fail, those that touch the bytes of a range; `None` for no longer.
    ///
    /// # Errors
    /// When there is no such disk, or the range is none of it.
    pub fn fail_disk(
        &self,
        number: usize,
        serial: &str,
        failing: Option<Failing>,
    ) -> Result<(), LabError> {
        let disk = self.disk(number, serial)?;
        let bytes = disk.bytes();
        // A range behind the end would never fail a request, and the fault would seem to have been
        // survived.
        if let Some(range) = failing.as_ref().filter(|range| range.start >= bytes) {
            return Err(LabError::Refused(format!(
                "{serial} ends at byte {bytes}, and byte {} is none of it",
                range.start
            )));
        }
        disk.fail(failing);
        Ok(())
    }

    /// Takes a disk away while it is in use, as if it had been pulled.
    ///
    /// # Errors
    /// When there is no such disk, or the guest cannot.
    pub fn pull_disk(&self, number: usize, serial: &str) -> Result<(), LabError> {
        self.disk(number, serial)?;
        self.node(number)?.pull_disk(serial)
    }

    fn disk(&self, number: usize, serial: &str) -> Result<&Served, LabError> {
        self.node(number)?;
        let found = self.disks.get(&(number, serial.to_string()));
        found.ok_or_else(|| {
            let serials = self.disks.keys().filter(|(node, _)| *node == number);
            let serials: Vec<&str> = serials.map(|(_, serial)| serial.as_str()).collect();
            let has = match serials.is_empty() {
                true => "it has no disk".to_string(),
                false => format!("it has {}", serials.join(", ")),
            };
            LabError::Refused(format!("node{number} has no disk \"{serial}\": {has}"))
        })
    }

    /// Starts a guest again whose power was cut, on the same disks.
    ///
    /// # Errors
    /// When it has power; as [`LabMachine::start`].
    pub fn power_on(
        &self,
        number: usize,
        site: &MachineSite<'_>,
        description: &Description,
    ) -> Result<(), LabError> {
        let node = self.node(number)?;
        {
            let mut process = node.process.lock();
            if process.ended().is_none() {
                return Err(LabError::Refused(format!("node{number} has power")));
            }
            // QEMU does not bind to a socket that is there already.
            let socket = self.dir.join(command::file(number, "agent"));
            site.host.remove_file(&socket)?;
            *process = start_node(site, &self.dir, number, description, self.accelerator)?;
            node.boot_ns.store(SystemClock.now_ns(), Ordering::Relaxed);
        }
        self.wait_for(number, UP)?;
        match description.scratch_bytes {
            // Its file system is still on the disk: only the mount was lost.
            Some(_) => node.mount_scratch(),
            None => Ok(()),
        }
    }

    /// Waits for the end of the guest whose console is this terminal.
    ///
    /// # Errors
    /// When there is none of that number.
    pub fn wait(&self, number: usize) -> Result<(), LabError> {
        let node = self.node(number)?;
        // Asked again and again: its power may be cut meanwhile.
        while node.process.lock().ended().is_none() {
            SystemClock.sleep(LOOK);
        }
        Ok(())
    }

    /// Directory of its files.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Facts on it, for the record.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Means of running its instructions.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Time from the start of the slowest guest to the first answer of its worker, ns.
    pub fn boot_ns(&self) -> u64 {
        self.nodes
            .iter()
            .map(|node| node.boot_ns.load(Ordering::Relaxed))
            .max()
            .unwrap_or(0)
    }

    fn facts_of(
        &self,
        site: &MachineSite<'_>,
        description: &Description,
    ) -> Result<Vec<Fact>, LabError> {
        let image = site.image.name();
        let boot_ns = self.boot_ns();
        let mut facts = facts::of_guests(site.host, &image, self.accelerator, boot_ns)?;
        for disk in &description.disks {
            facts.push(Fact::new(
                "lab disk",
                format!("{}: {}", disk.serial, disk.described()),
            ));
        }
        for node in &self.nodes {
            facts.push(Fact::new("lab command", node.process.lock().command()));
        }
        Ok(facts)
    }
}

impl Drop for LabMachine {
    fn drop(&mut self) {
        for node in &self.nodes {
            // Guests are disposable: there is nothing in them to be shut down in order.
            node.process.lock().kill();
        }
    }
}

impl GuestNode {
    /// The connection to the worker in the guest.
    ///
    /// # Errors
    /// When the guest has ended.
    pub fn connection(&self) -> Result<Arc<Connection>, LabError> {
        self.connection.lock().clone().ok_or(LabError::Ended)
    }

    fn host(&self) -> Result<RemoteHost, LabError> {
        Ok(RemoteHost::direct("the guest", &self.connection()?))
    }

    /// Runs a command in the guest to its end, whatever its exit status.
    ///
    /// # Errors
    /// When it cannot be started, or the guest ends.
    pub fn exec(&self, argv: &[OsString]) -> Result<Output, LabError> {
        Ok(self.host()?.exec(argv)?)
    }

    /// Runs a command that has to succeed.
    ///
    /// # Errors
    /// As [`GuestNode::exec`], and when the exit status is not 0.
    pub fn must(&self, argv: &[OsString]) -> Result<Output, LabError> {
        Ok(self.host()?.must(argv)?)
    }

    /// Makes a file system on the scratch disk and mounts it.
    ///
    /// # Errors
    /// When the guest cannot.
    pub fn make_scratch(&self) -> Result<(), LabError> {
        self.with_scratch("mkfs.ext4 -q -E nodiscard,lazy_itable_init=1 $scratch")?;
        self.mount_scratch()
    }

    fn mount_scratch(&self) -> Result<(), LabError> {
        self.with_scratch(&format!("mount $scratch {SCRATCH_DIR}"))
    }

    /// Runs a line of the shell, to which `$scratch` is the device.
    fn with_scratch(&self, line: &str) -> Result<(), LabError> {
        let device = format!("$(basename $(dirname $(grep -lx {SCRATCH} /sys/block/*/serial)))");
        let script = format!("set -e; scratch=/dev/{device}; {line}");
        self.must(&argv(["sh", "-c", &script])).map(|_| ())
    }

    /// Takes a disk away while it is in use, as if it had been pulled.
    ///
    /// # Errors
    /// When there is none of that serial.
    fn pull_disk(&self, serial: &str) -> Result<(), LabError> {
        let script = format!(
            "set -e; device=$(readlink -f $(dirname $(grep -lx {serial} /sys/block/*/serial))/device); \
             basename $device >/sys/bus/virtio/drivers/virtio_blk/unbind"
        );
        self.must(&argv(["sh", "-c", &script])).map(|_| ())
    }
}

/// The accelerator that was found to work since this machine started, as the file `known` has it; `None` if no guest
/// was tried.
pub fn accelerator_found(host: &dyn Host, known: &Path) -> Option<Accelerator> {
    let boot = host.read_text(Path::new(BOOT)).ok()?;
    let text = host.read_text(known).ok()?;
    Some(match text.strip_prefix(&*boot)?.trim() {
        "kvm" => Accelerator::Kvm,
        _ => Accelerator::Tcg,
    })
}

/// The accelerator that works here: found out by booting, once after each start of this machine;
/// what was found is kept in the file `known`. `undo` has the ways to undo what the journal of the site lists.
///
/// # Errors
/// When QEMU is missing or the file cannot be written.
pub fn accelerator(
    site: &MachineSite<'_>,
    known: &Path,
    undo: &[&UndoKind],
) -> Result<Accelerator, LabError> {
    if std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_err()
    {
        return Ok(Accelerator::Tcg);
    }
    if let Some(found) = accelerator_found(site.host, known) {
        return Ok(found);
    }
    let found = match LabMachine::begin(site, &Description::default(), Accelerator::Kvm) {
        Ok(machine) => match machine.wait_for(1, PROBE) {
            Ok(()) => Accelerator::Kvm,
            Err(_) => Accelerator::Tcg,
        },
        Err(error) => return Err(error),
    };
    let report = journal::undo_all(site.host, site.journal, undo)?;
    if let Some((what, why)) = report.failed.first() {
        return Err(LabError::Refused(format!("could not {what}: {why}")));
    }
    let boot = site.host.read_text(Path::new(BOOT)).unwrap_or_default();
    std::fs::write(known, format!("{boot}{}\n", found.name()))
        .map_err(|error| HostError::path("write", known, error))?;
    Ok(found)
}

fn check(description: &Description) -> Result<(), LabError> {
    if !(1..=NODES_MAX).contains(&description.nodes) {
        let nodes = description.nodes;
        return Err(LabError::Refused(format!(
            "a lab of {nodes} nodes cannot be made: 1 to {NODES_MAX}"
        )));
    }
    if description.disks.len() > DISKS_MAX {
        let disks = description.disks.len();
        return Err(LabError::Refused(format!(
            "a guest has room for {DISKS_MAX} disks, {disks} different ones are asked for: use disks of the same size, sectors and speed in several configurations"
        )));
    }
    Ok(())
}
