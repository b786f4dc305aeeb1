//! A host that touches nothing: it imagines what each step would do, and keeps the steps.
//!
//! Raising a stack here gives the exact commands a run will use. What exists on the real machine is
//! read (never changed), so that a directory that is missing is found out while planning. The
//! imagined world is strict: a device that is mounted cannot be detached, a file behind a device
//! cannot be removed. Told to fail at its k-th step, it is the fake host of the tests.

mod groups;

use super::{
    Filling, Host, HostError, LINE_HANDLE, LabDisk, LineSpeed, MountInfo, Needs, Output, daemon,
    reading, shown, tree,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One thing that would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The command, or one that does the same as this program's own system calls.
    pub(crate) argv: Vec<OsString>,
    /// Whether a command is run; otherwise this program does it itself.
    pub(crate) command: bool,
    /// On which machine; empty: this one.
    pub(crate) host: &'static str,
}

impl Step {
    /// As it would be typed.
    pub(crate) fn shown(&self) -> String {
        match self.host {
            "" => shown(&self.argv),
            host => format!("{host}: {}", shown(&self.argv)),
        }
    }
}

/// When the imagined machine fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only tests make the imagined machine fail")
)]
pub(crate) enum Fault {
    /// Never.
    Never,
    /// The step of this number (from 1) is refused and does nothing; the next ones work.
    Refused(usize),
    /// The program dies before this step: nothing works from there.
    DiedBefore(usize),
    /// The program dies after this step took effect: nothing works from there.
    DiedAfter(usize),
}

/// A host that only imagines.
pub(crate) struct PlanHost {
    world: Mutex<World>,
    /// Of this machine and its peer together.
    log: Arc<Mutex<Log>>,
    /// Empty: it is a peer itself.
    peers: Vec<PlanHost>,
    /// `plan`, `node2`, `node3`.
    name: &'static str,
}

#[derive(Debug)]
struct Log {
    steps: Vec<Step>,
    fault: Fault,
}

#[derive(Debug, Default)]
struct World {
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, u64>,
    loops: BTreeMap<OsString, LoopDevice>,
    loops_made: usize,
    lab_disks: BTreeMap<OsString, LabDisk>,
    signatures: BTreeMap<OsString, Signature>,
    mounts: Vec<MountInfo>,
    /// Replicated devices (DRBD) by resource: connection, configuration.
    replicas: BTreeMap<String, (&'static str, String)>,
    /// Texts that were written.
    texts: BTreeMap<PathBuf, String>,
    /// Daemons that run.
    daemons: BTreeSet<String>,
    /// What is exported (NFS).
    exported: Option<String>,
    /// Network cards that are slowed, to how many other machines.
    slowed: BTreeMap<String, usize>,
    /// Directories inside file systems, by source, while those are not mounted.
    away: BTreeMap<OsString, Vec<PathBuf>>,
    /// Real disks, by their link.
    disks: BTreeMap<OsString, Disk>,
    /// What was put together of devices, by UUID (arrays) or name.
    groups: BTreeMap<String, groups::Group>,
    /// Parameters of the kernel that were written.
    parameters: BTreeMap<PathBuf, String>,
}

#[derive(Debug, Clone)]
struct Disk {
    size: u64,
    model: String,
}

#[derive(Debug, Clone)]
struct LoopDevice {
    file: PathBuf,
    sector: String,
    direct: bool,
}

#[derive(Debug, Clone)]
struct Signature {
    file_system: String,
    data: String,
    metadata: String,
    /// UUID or label, where it is one of ours.
    mark: String,
}

impl PlanHost {
    /// An imagined machine on which everything works.
    pub(crate) fn new() -> Self {
        Self::failing(Fault::Never)
    }

    /// An imagined machine that fails as told.
    pub(crate) fn failing(fault: Fault) -> Self {
        let steps = Vec::new();
        let log = Arc::new(Mutex::new(Log { steps, fault }));
        let machine = |name, peers| Self {
            world: Mutex::new(World::default()),
            log: Arc::clone(&log),
            peers,
            name,
        };
        let peers = ["node2", "node3"].map(|name| machine(name, Vec::new()));
        machine("plan", peers.into())
    }

    /// The steps until now, in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.log().steps.clone()
    }

    /// The machine works from now on: the program was started again.
    #[cfg(test)]
    pub(crate) fn recover(&self) {
        self.log().fault = Fault::Never;
    }

    /// Imagines a disk.
    #[cfg(test)]
    pub(crate) fn with_disk(self, link: &Path, size: u64, model: &str) -> Self {
        let disk = Disk {
            size,
            model: model.to_string(),
        };
        self.world().disks.insert(link.into(), disk);
        self
    }

    /// Imagines that a device carries something that bears a mark.
    #[cfg(test)]
    pub(crate) fn carrying(self, device: &Path, file_system: &str, mark: &str) -> Self {
        self.world().sign(device.as_os_str(), file_system, mark);
        self
    }

    /// Everything imagined that is still there.
    #[cfg(test)]
    pub(crate) fn left(&self) -> Vec<String> {
        let world = self.world();
        let mut left: Vec<String> = Vec::new();
        left.extend(world.dirs.iter().map(|path| path.display().to_string()));
        left.extend(world.files.keys().map(|path| path.display().to_string()));
        left.extend(
            world
                .loops
                .keys()
                .map(|name| name.to_string_lossy().into_owned()),
        );
        left.extend(world.mounts.iter().map(|mount| format!("{mount:?}")));
        left.extend(world.replicas.keys().cloned());
        left.extend(world.daemons.iter().chain(world.slowed.keys()).cloned());
        left.extend(world.exported.clone());
        left.extend(self.peers.iter().flat_map(|peer| peer.left()));
        left.extend(world.groups.keys().cloned());
        // Each raise empties the disks of the lab, and they end with the guest.
        let signed = world.signatures.iter();
        let signed = signed.filter(|(device, _)| !world.lab_disks.contains_key(*device));
        left.extend(signed.map(|(device, signature)| format!("{signature:?} on {device:?}")));
        let changed = world
            .parameters
            .iter()
            .filter(|(_, text)| *text != "{before}");
        left.extend(changed.map(|(file, text)| format!("{} in {}", text, file.display())));
        left
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a step, fails it if told so, else lets it take effect.
    fn step<T>(
        &self,
        step: Step,
        effect: impl FnOnce(&mut World) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let mut world = self.world();
        let refused = HostError::NotStarted {
            command: step.shown(),
            cause: "told to fail here".to_string(),
        };
        let (number, fault) = {
            let mut log = self.log();
            log.steps.push(step);
            (log.steps.len(), log.fault)
        };
        match fault {
            Fault::Refused(at) if number == at => Err(refused),
            Fault::DiedBefore(at) if number >= at => Err(refused),
            Fault::DiedAfter(at) if number > at => Err(refused),
            Fault::DiedAfter(at) if number == at => effect(&mut world).and(Err(refused)),
            _ => effect(&mut world),
        }
    }

    /// What steps on this machine are shown with.
    fn prefix(&self) -> &'static str {
        match self.peers.is_empty() {
            false => "",
            true => self.name,
        }
    }

    fn own<T>(
        &self,
        words: &[&OsStr],
        effect: impl FnOnce(&mut World) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        let step = Step {
            argv: words.iter().map(|word| (*word).to_os_string()).collect(),
            command: false,
            host: self.prefix(),
        };
        self.step(step, effect)
    }
}

fn refuse(what: &'static str, path: &Path, kind: std::io::ErrorKind) -> HostError {
    HostError::path(what, path, std::io::Error::from(kind))
}

fn said(text: impl Into<String>) -> Output {
    Output {
        status: Some(0),
        stdout: text.into(),
        stderr: String::new(),
    }
}

fn complained(status: i32, text: &str) -> Output {
    Output {
        status: Some(status),
        stdout: String::new(),
        stderr: text.to_string(),
    }
}

/// The word after an option.
fn after<'a>(words: &'a [OsString], option: &str) -> Option<&'a OsString> {
    words
        .iter()
        .position(|word| word == option)
        .and_then(|at| words.get(at + 1))
}

impl World {
    fn exists(&self, path: &Path) -> bool {
        self.dirs.contains(path)
            || self.files.contains_key(path)
            || self.is_device(path.as_os_str())
            || self.parameter(path).is_some()
            || reading::exists(path)
    }

    fn create_checks(&self, what: &'static str, path: &Path) -> Result<(), HostError> {
        if self.exists(path) {
            return Err(refuse(what, path, std::io::ErrorKind::AlreadyExists));
        }
        match path.parent() {
            Some(parent) if self.dirs.contains(parent) || parent.is_dir() => Ok(()),
            _ => Err(refuse(what, path, std::io::ErrorKind::NotFound)),
        }
    }

    fn exec(&mut self, machine: &str, argv: &[OsString]) -> Output {
        let Some((tool, words)) = argv.split_first() else {
            return complained(127, "the command is empty");
        };
        match tool.to_string_lossy().as_ref() {
            // `env NAME=VALUE COMMAND…`.
            "env" => self.exec(machine, words.get(1..).unwrap_or_default()),
            "losetup" => self.losetup(words),
            "mount" => self.mount(words),
            "umount" => self.unmount(words),
            "wipefs" => self.wipefs(words),
            "blkid" => self.blkid(words),
            "blkdiscard" => self.discard(words.last()),
            "mdadm" => self.mdadm(words),
            "pvs" => complained(5, "Failed to find physical volume"),
            "pvcreate" | "vgcreate" | "vgs" | "vgremove" | "lvcreate" | "lvconvert" | "lvs" => {
                self.lvm(&tool.to_string_lossy(), words)
            }
            "zpool" => self.zpool(words),
            "zfs" => self.zfs(words),
            "zdb" => self.zdb(words),
            "ln" => {
                let link = words.last().map(PathBuf::from).unwrap_or_default();
                self.files.insert(link, 0);
                said("")
            }
            tool if tool.starts_with("mkfs.") => {
                self.format(&tool["mkfs.".len()..], words);
                said("")
            }
            "bcachefs" => self.bcachefs(words),
            "btrfs" => self.btrfs(words),
            "drbdadm" => self.drbdadm(words),
            "drbdsetup" => self.drbdsetup(words),
            "tc" => self.tc(words),
            "ip" => said("10.77.0.2 dev {card} src 10.77.0.1\n"),
            "uname" => said(format!("{{name of {machine}}}\n")),
            "corosync-quorumtool" => said("Nodes: 2\n"),
            "dlm_tool" => said("node 1 M\nnode 2 M\n"),
            "corosync" | "dlm_controld" | "netatalk" | "smbd" | "rpcbind" | "rpc.mountd" => {
                self.daemons.insert(tool.to_string_lossy().into_owned());
                said("")
            }
            "rpc.nfsd" => {
                match words.last().is_some_and(|threads| threads == "0") {
                    true => self.daemons.remove("nfsd"),
                    false => self.daemons.insert("nfsd".to_string()),
                };
                said("")
            }
            "stackrace" => self.mount_afp(words),
            "exportfs" => self.exportfs(words),
            _ => said(""),
        }
    }

    fn losetup(&mut self, words: &[OsString]) -> Output {
        if let Some(file) = after(words, "--associated") {
            let names = self
                .loops
                .iter()
                .filter(|(_, device)| device.file.as_os_str() == file)
                .map(|(name, _)| format!("{}\n", name.to_string_lossy()));
            return said(names.collect::<String>());
        }
        if let Some(device) = after(words, "--detach") {
            if self.in_use(device) {
                return complained(1, "the device is busy");
            }
            self.signatures.remove(device);
            self.forget_groups_on(device);
            return match self.loops.remove(device) {
                Some(_) => said(""),
                None => complained(1, "No such device or address"),
            };
        }
        let file = words.last().map(PathBuf::from).unwrap_or_default();
        if !self.files.contains_key(&file) {
            return complained(1, "No such file or directory");
        }
        self.loops_made += 1;
        let name = format!("{{loop {}}}", self.loops_made);
        let device = LoopDevice {
            file,
            sector: after(words, "--sector-size").map_or("512".to_string(), |word| {
                word.to_string_lossy().into_owned()
            }),
            direct: words.iter().any(|word| word == "--direct-io=on"),
        };
        self.loops.insert(OsString::from(&name), device);
        said(format!("{name}\n"))
    }

    fn format(&mut self, file_system: &str, words: &[OsString]) {
        let word = |option: &str| {
            after(words, option).map_or("single".to_string(), |word| {
                word.to_string_lossy().into_owned()
            })
        };
        let in_metadata = after(words, "-m").map(|word| word.to_string_lossy().into_owned());
        let mark = after(words, "-U")
            .or(after(words, "--uuid"))
            .map(|uuid| uuid.to_string_lossy().into_owned())
            .or(in_metadata.and_then(|word| word.strip_prefix("uuid=").map(str::to_string)));
        let signature = Signature {
            file_system: file_system.to_string(),
            data: word("--data"),
            metadata: word("--metadata"),
            mark: mark.unwrap_or_default(),
        };
        for device in words {
            if self.is_device(device) {
                self.signatures.insert(device.clone(), signature.clone());
            }
        }
    }

    fn mount(&mut self, words: &[OsString]) -> Output {
        let [.., source, target] = words else {
            return complained(1, "bad usage");
        };
        let target = PathBuf::from(target);
        let file_system = after(words, "-t").map(|word| word.to_string_lossy().into_owned());
        let file_system = file_system.unwrap_or_default();
        // It shows what the kernel has, and stays.
        if file_system == "configfs" {
            return said("");
        }
        if words.iter().any(|word| word == "--bind") {
            let seen = self.lies_in(Path::new(source));
            let (source, file_system) = seen.unwrap_or_default();
            self.mounted(&source, target, &file_system, vec!["rw".to_string()]);
            return said("");
        }
        // What a peer formatted or a server holds has no signature here.
        let elsewhere = ["tmpfs", "nfs", "nfs4", "cifs", "gfs2"];
        let parts = source.to_string_lossy();
        let mut parts = parts.split(':').map(OsStr::new);
        if !elsewhere.contains(&&*file_system)
            && !parts.all(|part| self.signatures.contains_key(part))
        {
            return complained(32, "wrong fs type, bad option, bad superblock");
        }
        if !self.dirs.contains(&target) {
            return complained(32, "mount point does not exist");
        }
        let asked = after(words, "-o").map(|word| word.to_string_lossy().into_owned());
        let options = std::iter::once("rw".to_string())
            .chain(
                asked
                    .iter()
                    .flat_map(|asked| asked.split(','))
                    .map(str::to_string),
            )
            .collect();
        self.mounted(source, target, &file_system, options);
        said("")
    }

    /// Source and kind of what is mounted where a path lies.
    fn lies_in(&self, path: &Path) -> Option<(OsString, String)> {
        let mut mounts = self.mounts.iter().rev();
        let mount = mounts.find(|mount| path.starts_with(&mount.mount_point))?;
        Some((mount.source.clone(), mount.file_system.clone()))
    }

    /// `lab mount-afp SERVER VOLUME DIRECTORY`.
    fn mount_afp(&mut self, words: &[OsString]) -> Output {
        let [_, _, server, volume, target] = words else {
            return complained(2, "bad usage");
        };
        let [server, volume] = [server, volume].map(|word| word.to_string_lossy());
        let source = OsString::from(format!("afp://{server}/{volume}"));
        let options = vec!["rw".to_string()];
        self.mounted(&source, PathBuf::from(target), "fuse", options);
        said("")
    }

    fn mounted(
        &mut self,
        source: &OsStr,
        mount_point: PathBuf,
        file_system: &str,
        options: Vec<String>,
    ) {
        self.dirs
            .extend(self.away.remove(source).unwrap_or_default());
        self.mounts.push(MountInfo {
            id: 0,
            st_dev: (0, 0),
            root: PathBuf::from("/"),
            mount_point,
            options,
            file_system: file_system.to_string(),
            source: source.to_os_string(),
        });
    }

    /// `drbdadm --config-file FILE VERB [OPTION] RESOURCE`: the two ends are imagined apart, and
    /// each finds the other at once.
    fn drbdadm(&mut self, words: &[OsString]) -> Output {
        let texts = words.iter().map(|word| word.to_string_lossy().into_owned());
        let texts: Vec<String> = texts.collect();
        let (Some(verb), Some(resource)) = (texts.get(2), texts.last()) else {
            return complained(1, "bad usage");
        };
        if verb == "up" {
            let file = after(words, "--config-file").map(PathBuf::from);
            let text = file.and_then(|file| self.texts.get(&file));
            let replica = ("Connected", text.cloned().unwrap_or_default());
            self.replicas.insert(resource.clone(), replica);
            return said("");
        }
        let Some((connection, _)) = self.replicas.get_mut(resource) else {
            return match verb.as_str() {
                "create-md" => said(""),
                _ => complained(10, "Unknown resource"),
            };
        };
        match verb.as_str() {
            "primary" if words.iter().any(|word| word == "--force") => *connection = "SyncSource",
            "disconnect" => *connection = "StandAlone",
            _ => {}
        }
        said(match verb.as_str() {
            "cstate" => *connection,
            "dstate" => "UpToDate/UpToDate",
            _ => "",
        })
    }

    fn drbdsetup(&mut self, words: &[OsString]) -> Output {
        let resource = words.last().map(|word| word.to_string_lossy().into_owned());
        let resource = resource.unwrap_or_default();
        let down = words.first().is_some_and(|verb| verb == "down");
        let Some((_, configuration)) = self.replicas.get(&resource) else {
            return complained(10, "Unknown resource");
        };
        let mounted = |mount: &MountInfo| mount.source.to_string_lossy().starts_with("/dev/drbd");
        if !down {
            return said(configuration.clone());
        }
        if self.mounts.iter().any(mounted) {
            return complained(11, "State change failed: Device is held open by someone");
        }
        self.replicas.remove(&resource);
        self.signatures
            .retain(|device, _| !device.to_string_lossy().starts_with("/dev/drbd"));
        said("")
    }

    fn tc(&mut self, words: &[OsString]) -> Output {
        let card = after(words, "dev").map(|word| word.to_string_lossy().into_owned());
        let card = card.unwrap_or_default();
        let word = |at: usize| words.get(at).and_then(|word| word.to_str());
        let netem = words.iter().any(|word| word == "netem");
        match (word(0), word(1)) {
            (Some("qdisc"), Some("show")) => {
                let Some(others) = self.slowed.get(&card) else {
                    return said("");
                };
                let ours = format!("qdisc prio {LINE_HANDLE} root\n");
                return said(ours + &"qdisc netem\n".repeat(*others));
            }
            (Some("qdisc"), Some("add")) => {
                *self.slowed.entry(card).or_default() += usize::from(netem);
            }
            (Some("qdisc"), Some("del")) => {
                self.slowed.remove(&card);
            }
            _ => {}
        }
        said("")
    }

    /// `exportfs -o OPTIONS CLIENT:DIRECTORY`, the list of that, and its end.
    fn exportfs(&mut self, words: &[OsString]) -> Output {
        let lossy = |word: &OsString| word.to_string_lossy().into_owned();
        if let Some(options) = after(words, "-o").map(lossy) {
            let place = words.last().map(lossy).unwrap_or_default();
            let (client, directory) = place.split_once(':').unwrap_or_default();
            self.exported = Some(format!("{directory}  {client}({options})\n"));
        } else if words.first().is_some_and(|word| word == "-u") {
            self.exported = None;
        } else if words.first().is_some_and(|word| word == "-s") {
            return said(self.exported.clone().unwrap_or_default());
        }
        said("")
    }

    fn unmount(&mut self, words: &[OsString]) -> Output {
        let target = words.last().map(PathBuf::from).unwrap_or_default();
        let Some(at) = self
            .mounts
            .iter()
            .rposition(|mount| mount.mount_point == target)
        else {
            return complained(32, "not mounted");
        };
        let mount = self.mounts.remove(at);
        let inside = |path: &PathBuf| path.starts_with(&target) && *path != target;
        let away = self.dirs.iter().filter(|path| inside(path)).cloned();
        let away: Vec<PathBuf> = away.collect();
        self.dirs.retain(|path| !inside(path));
        if mount.file_system != "tmpfs" {
            self.away.insert(mount.source, away);
        }
        said("")
    }

    /// `bcachefs format` and `bcachefs show-super`, as far as they are looked at.
    fn bcachefs(&mut self, words: &[OsString]) -> Output {
        let option = |name: &str| {
            let mut words = words.iter().map(|word| word.to_string_lossy());
            words.find_map(|word| word.strip_prefix(name).map(str::to_string))
        };
        if words.first().is_some_and(|verb| verb == "format") {
            let signature = Signature {
                file_system: "bcachefs".to_string(),
                data: option("--replicas=").unwrap_or_default(),
                metadata: option("--compression=").unwrap_or_default(),
                mark: option("--uuid=").unwrap_or_default(),
            };
            for device in words {
                if self.is_device(device) {
                    self.signatures.insert(device.clone(), signature.clone());
                }
            }
            return said("");
        }
        match words.last().and_then(|device| self.signatures.get(device)) {
            Some(Signature { data, metadata, .. }) => said(format!(
                "Options for this superblock:\n data_replicas: {data}\n metadata_replicas: {data}\n compression: {metadata}\n"
            )),
            None => complained(1, "not a bcachefs superblock"),
        }
    }

    /// `btrfs filesystem df -b PATH`, as far as it is looked at.
    fn btrfs(&self, words: &[OsString]) -> Output {
        let mounted = words.last().map(PathBuf::from).unwrap_or_default();
        let signature = self
            .mounts
            .iter()
            .find(|mount| mount.mount_point == mounted)
            .and_then(|mount| self.signatures.get(&mount.source));
        match signature {
            Some(signature) => said(format!(
                "Data, {}: total=0, used=0\nMetadata, {}: total=0, used=0\n",
                signature.data, signature.metadata
            )),
            None => complained(1, "not a btrfs filesystem"),
        }
    }

    /// What `/sys/block` says of an imagined device; none: not imagined.
    fn about_device(&self, path: &Path) -> Option<String> {
        let below = path
            .strip_prefix("/sys/block")
            .or_else(|_| path.strip_prefix("/sys/class/block"))
            .ok()?;
        let mut parts = below.components();
        let name = parts.next()?.as_os_str();
        let about = parts.as_path().to_str()?;
        if let Some(disk) = self.lab_disks.get(name) {
            return match about {
                "queue/logical_block_size" => Some(disk.logical_sector.to_string()),
                "queue/physical_block_size" => Some(disk.physical_sector.to_string()),
                "size" => Some((disk.bytes / 512).to_string()),
                "serial" => Some(disk.serial.clone()),
                _ => None,
            };
        }
        let Some(device) = self.loops.get(name) else {
            return self
                .about_disk(name, about)
                .or(self.about_array(name, about))
                .or(self.about_given(name, about));
        };
        match about {
            "size" => {
                let bytes = self.files.get(&device.file).copied().unwrap_or_default();
                Some((bytes / 512).to_string())
            }
            "queue/logical_block_size" | "queue/physical_block_size" => Some(device.sector.clone()),
            "loop/dio" => Some(u8::from(device.direct).to_string()),
            "loop/backing_file" => Some(device.file.display().to_string()),
            _ => None,
        }
    }
}

impl Host for PlanHost {
    fn name(&self) -> &str {
        self.name
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let step = Step {
            argv: argv.to_vec(),
            command: true,
            host: self.prefix(),
        };
        self.step(step, |world| Ok(world.exec(self.name, argv)))
    }

    /// Nothing is missing in a plan: it shows what a machine that has everything would do.
    fn missing(&self, _needs: &Needs) -> Vec<HostError> {
        Vec::new()
    }

    fn is_root(&self) -> bool {
        true
    }

    fn create_dir(&self, path: &Path) -> Result<(), HostError> {
        self.own(&["mkdir".as_ref(), path.as_os_str()], |world| {
            world.create_checks("create directory", path)?;
            world.dirs.insert(path.to_path_buf());
            Ok(())
        })
    }

    fn create_file(&self, path: &Path, bytes: u64, filling: Filling) -> Result<(), HostError> {
        let size = bytes.to_string();
        let tool = match filling {
            Filling::Sparse => ["truncate", "--size"],
            Filling::Allocated => ["fallocate", "--length"],
            Filling::Written { .. } => ["head", "--bytes"],
        };
        let mut words: Vec<&OsStr> = vec![tool[0].as_ref(), tool[1].as_ref(), size.as_ref()];
        if matches!(filling, Filling::Written { .. }) {
            words.extend(["/dev/urandom".as_ref(), ">".as_ref() as &OsStr]);
        }
        words.push(path.as_os_str());
        self.own(&words, |world| {
            world.create_checks("create", path)?;
            world.files.insert(path.to_path_buf(), bytes);
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.own(&["rm".as_ref(), path.as_os_str()], |world| {
            if world.loops.values().any(|device| device.file == path) {
                return Err(refuse("remove", path, std::io::ErrorKind::ResourceBusy));
            }
            world.files.remove(path);
            Ok(())
        })
    }

    fn remove_dir(&self, path: &Path) -> Result<(), HostError> {
        self.own(&["rmdir".as_ref(), path.as_os_str()], |world| {
            let inside = |other: &Path| other.starts_with(path) && other != path;
            if world.mounts.iter().any(|mount| mount.mount_point == path) {
                return Err(refuse("remove", path, std::io::ErrorKind::ResourceBusy));
            }
            if world.dirs.iter().any(|other| inside(other))
                || world.files.keys().any(|other| inside(other))
            {
                let kind = std::io::ErrorKind::DirectoryNotEmpty;
                return Err(refuse("remove", path, kind));
            }
            world.dirs.remove(path);
            Ok(())
        })
    }

    fn remove_tree(&self, path: &Path) -> Result<(), HostError> {
        let words = ["rm".as_ref(), "--recursive".as_ref(), path.as_os_str()];
        self.own(&words, |world| {
            tree::check(path, &world.mounts)?;
            world.dirs.retain(|other| !other.starts_with(path));
            world.files.retain(|other, _| !other.starts_with(path));
            Ok(())
        })
    }

    fn write_text(&self, path: &Path, text: &str) -> Result<(), HostError> {
        let words = [
            "echo".as_ref(),
            text.as_ref(),
            ">".as_ref(),
            path.as_os_str(),
        ];
        self.own(&words, |world| {
            world.texts.insert(path.to_path_buf(), text.to_string());
            if path.starts_with(groups::PARAMETERS) {
                world
                    .parameters
                    .insert(path.to_path_buf(), text.to_string());
            }
            Ok(())
        })
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), HostError> {
        let words = ["sync".as_ref(), "--file-system".as_ref(), path.as_os_str()];
        self.own(&words, |_| Ok(()))
    }

    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        let world = self.world();
        match world.about_device(path).or(world.parameter(path)) {
            Some(text) => Ok(text),
            None => reading::text(path),
        }
    }

    fn open_exclusively(&self, path: &Path) -> Result<(), HostError> {
        match self.world().in_use(path.as_os_str()) {
            true => Err(refuse("open", path, std::io::ErrorKind::ResourceBusy)),
            false => Ok(()),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, HostError> {
        reading::list(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.world().exists(path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.world().dirs.contains(path) || path.is_dir()
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, HostError> {
        let world = self.world();
        if world.dirs.contains(path) || world.is_device(path.as_os_str()) {
            return Ok(path.to_path_buf());
        }
        reading::canonical(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, HostError> {
        let real = path.ancestors().find(|path| path.is_dir());
        reading::free_bytes(real.unwrap_or(path))
    }

    fn mounts(&self) -> Result<Vec<MountInfo>, HostError> {
        Ok(self.world().mounts.clone())
    }

    fn mount_of(&self, path: &Path) -> Result<MountInfo, HostError> {
        let world = self.world();
        let imagined = world.mounts.iter().rev();
        match imagined
            .clone()
            .find(|mount| path.starts_with(&mount.mount_point))
        {
            Some(mount) => Ok(mount.clone()),
            None => {
                let real = path.ancestors().find(|path| path.is_dir());
                reading::mount_of(real.unwrap_or(path))
            }
        }
    }

    fn holders(&self, _path: &Path) -> Vec<String> {
        Vec::new()
    }

    fn lab_disk(&self, disk: &LabDisk) -> Result<PathBuf, HostError> {
        let name = format!("{{disk {}}}", disk.serial);
        self.world()
            .lab_disks
            .insert(OsString::from(&name), disk.clone());
        Ok(PathBuf::from(name))
    }

    fn end_machine(&self, directory: &Path) -> Result<(), HostError> {
        let words = ["pkill".as_ref(), "--full".as_ref(), directory.as_os_str()];
        self.own(&words, |_| Ok(()))
    }

    fn running(&self, program: &str) -> Result<Option<String>, HostError> {
        let runs = self.world().daemons.contains(program);
        Ok(runs.then(|| format!("{program} (process {{id}})")))
    }

    fn listener(&self, port: u16) -> Result<Option<String>, HostError> {
        match port {
            111 => self.running("rpcbind"),
            445 => self.running("smbd"),
            548 | 4700 => self.running("netatalk"),
            2049 => self.running("nfsd"),
            5405 => self.running("corosync"),
            _ => Ok(None),
        }
    }

    fn end_daemon(&self, program: &str, mark: &str) -> Result<(), HostError> {
        let mark = format!("{}={mark}", daemon::MARK);
        let words = ["pkill", "--env", &mark, program].map(OsStr::new);
        self.own(&words, |world| {
            world.daemons.remove(program);
            Ok(())
        })
    }

    fn nodes(&self) -> usize {
        1 + self.peers.len()
    }

    fn peer(&self, node: usize) -> Result<&dyn Host, HostError> {
        match node.checked_sub(2).and_then(|at| self.peers.get(at)) {
            Some(peer) => Ok(peer),
            None => Err(HostError::NoPeer { node }),
        }
    }

    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        let own = if self.name == "node3" { 3 } else { 2 };
        Ok([1, own].map(|node| IpAddr::V4(Ipv4Addr::new(10, 77, 0, node))))
    }

    /// Nothing is measured in a plan.
    fn measure_line(&self, _bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        Ok(None)
    }

    fn measure_line_to(
        &self,
        _other: &dyn Host,
        _bytes: u64,
    ) -> Result<Option<LineSpeed>, HostError> {
        Ok(None)
    }

    fn pause(&self, _duration: Duration) {}

    /// Two names in a plan never meet: each raise has its own tag.
    fn nonce(&self) -> Result<String, HostError> {
        Ok("{id}".to_string())
    }
}
