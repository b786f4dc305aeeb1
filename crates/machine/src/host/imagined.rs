//! The machine a plan imagines: files, mounts, devices, processes, and programs that act on them.
//!
//! It knows the tools every Linux has. What the tools of a layer would do, the layer tells it: as a
//! table of [`Tool`]s. It is strict: what is mounted or a part of something cannot be detached,
//! wiped or given away twice, and nothing goes while what it gives is in use.

mod kernel;
mod parameters;
mod servers;

pub use super::words::*;
use super::{HostError, LabDisk, MountInfo, Output, reading};
#[cfg(any(test, feature = "testing"))]
use parameters::BEFORE;
use parameters::{CONFIGFS, is_parameter};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program as it is imagined.
#[derive(Clone, Copy)]
pub struct Tool {
    /// Its name; `mount.TYPE` is asked by mount(8) about file systems of that type. A path stands for a driver
    /// that answers when the file, or one below it, is read or written.
    pub name: &'static str,
    /// Imitates the program when it is called with these words, its name the first.
    pub run: fn(&mut World, &[OsString]) -> Output,
}

impl Tool {
    /// A program of this name, and what imitates it.
    pub const fn new(name: &'static str, run: fn(&mut World, &[OsString]) -> Output) -> Self {
        Self { name, run }
    }
}

/// Everything that is imagined of one machine.
#[derive(Default)]
pub struct World {
    /// Its name.
    machine: &'static str,
    /// Its system, as `uname -s` names it.
    pub(super) system: String,
    /// True if it has nothing but a shell: then POSIX commands stand for what this program does itself.
    pub(super) shell: bool,
    tools: Arc<[Tool]>,
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) files: BTreeMap<PathBuf, u64>,
    pub(super) mounts: Vec<MountInfo>,
    devices: BTreeMap<OsString, ImaginedDevice>,
    signatures: BTreeMap<OsString, Signature>,
    /// Assemblies that tools put together, by a name or UUID that nothing else has.
    assemblies: BTreeMap<String, Assembly>,
    /// Servers that run, with the ports they listen at.
    processes: BTreeMap<String, &'static [u16]>,
    /// The variable that each of them was started with, if there was one.
    started_with: BTreeMap<String, String>,
    /// Texts that were written, parameters of the kernel among them.
    texts: BTreeMap<PathBuf, String>,
    /// Directories inside file systems, by source, while those are not mounted.
    unmounted: BTreeMap<OsString, Vec<PathBuf>>,
    /// Numbers drawn for names.
    drawn: usize,
}

/// A block device that is not given by an [`Assembly`].
#[derive(Clone, Default)]
pub struct ImaginedDevice {
    /// The file it lies on, which cannot be removed meanwhile.
    pub file: Option<PathBuf>,
    /// Texts of the files of `/sys/block` about it, by the path below its name.
    pub about: BTreeMap<&'static str, String>,
    /// True if it was there before: then it is not left behind.
    pub given: bool,
    /// True if what is on it ends with the machine.
    pub disposable: bool,
}

/// Content of a device.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// The file system as blkid(8) names it.
    pub file_system: String,
    /// UUID or label, where it is one of ours.
    pub mark: String,
    /// Other values that its tool was asked for and tells again.
    pub notes: BTreeMap<&'static str, String>,
}

/// A thing that a tool put together: an array, a pool, an export.
#[derive(Debug, Clone, Default)]
pub struct Assembly {
    /// The tool, by the name of its program.
    pub tool: &'static str,
    /// Devices it lies on.
    pub members: Vec<OsString>,
    /// Devices it gives.
    pub gives: Vec<OsString>,
    /// True if it is on its members alone: it gives nothing and holds nothing.
    pub away: bool,
    /// Values that its tool was asked for.
    pub asked: BTreeMap<String, String>,
    /// The parts it holds by name, each with what was asked.
    pub parts: BTreeMap<String, BTreeMap<String, String>>,
    /// Texts of the files of `/sys/block` about each device it gives, by the path below its name.
    pub about: BTreeMap<&'static str, String>,
}

/// A mount that needs no device here: its content is in memory, on a server, or was made elsewhere.
pub fn mount_without_device(world: &mut World, words: &[OsString]) -> Output {
    let [.., source, target] = words else {
        return complained(1, "bad usage");
    };
    let kind = text_after(words, "-t").unwrap_or_default();
    let options = text_after(words, "-o").unwrap_or_default();
    world.mount(source, Path::new(target), &kind, &options)
}

impl World {
    /// A machine with nothing on it but these programs, and those every Linux has.
    pub(super) fn new(machine: &'static str, tools: Arc<[Tool]>) -> Self {
        Self {
            machine,
            system: "Linux".to_owned(),
            shell: false,
            tools,
            ..Self::default()
        }
    }

    /// Returns true if something of that name exists, imagined or real.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.dirs.contains(path)
            || self.files.contains_key(path)
            || self.is_device(path.as_os_str())
            // Parameters of modules exist in a plan whether or not the module is loaded here.
            || is_parameter(path)
            || self.in_sys(path).is_some()
            || reading::exists(path)
    }

    /// Does what a command would do to this machine, and gives what it would print.
    pub(super) fn exec(&mut self, words: &[OsString]) -> Output {
        let name = word(words, 0);
        if let Some(tool) = self.tool(&name) {
            return (tool.run)(self, words);
        }
        match name.as_str() {
            "" => complained(127, "the command is empty"),
            // `env NAME=VALUE COMMAND…`.
            "env" => self.run_with(words),
            "mount" => self.run_mount(words),
            "umount" => self.unmount(Path::new(&last(words))),
            "wipefs" => self.wipefs(words),
            "blkid" => self.blkid(words),
            "blkdiscard" => self.discard(words.last()),
            "uname" => said(format!("{{name of {}}}\n", self.machine)),
            // With -p it stands for what the kernel has, or gets with a module.
            "mkdir" if words.len() == 2 => {
                self.dirs.insert(PathBuf::from(last(words)));
                said("")
            }
            "ln" => {
                self.files.insert(PathBuf::from(last(words)), 0);
                said("")
            }
            _ => said(""),
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).copied()
    }

    /// A number that nothing else on this machine has, from 1.
    pub fn draw(&mut self) -> usize {
        self.drawn += 1;
        self.drawn
    }

    /// The size of an imagined file; `None` if there is no such file.
    pub fn file_size(&self, path: &Path) -> Option<u64> {
        self.files.get(path).copied()
    }

    /// The text that was last written to a file.
    pub fn text(&self, path: &Path) -> Option<&String> {
        self.texts.get(path)
    }
}

/// Devices, and what is put together of them.
impl World {
    /// A block device of that name exists: one the machine began with, or one that a standing assembly gives.
    pub fn is_device(&self, name: &OsStr) -> bool {
        let mut standing = self.assemblies.values().filter(|assembly| !assembly.away);
        self.devices.contains_key(name)
            || standing.any(|assembly| assembly.gives.iter().any(|given| given == name))
    }

    /// Returns true if it is mounted, or a member of something.
    pub fn in_use(&self, device: &OsStr) -> bool {
        let mounted = |source: &OsStr| {
            let source = source.to_string_lossy();
            // bcachefs is mounted by all its devices, with colons between them.
            source.split(':').any(|part| OsStr::new(part) == device)
        };
        let mut standing = self.assemblies.values().filter(|assembly| !assembly.away);
        self.mounts.iter().any(|mount| mounted(&mount.source))
            || standing.any(|assembly| assembly.members.iter().any(|member| member == device))
    }

    /// Adds a device, or replaces the one of that name.
    pub fn attach(&mut self, name: impl Into<OsString>, device: ImaginedDevice) {
        self.devices.insert(name.into(), device);
    }

    /// Takes a device away with all it carries.
    pub fn detach(&mut self, name: &OsStr) -> Output {
        // As the kernel refuses it: a plan must fail where a run would.
        if self.in_use(name) {
            return complained(1, "the device is busy");
        }
        self.blank(name);
        match self.devices.remove(name) {
            Some(_) => said(""),
            None => complained(1, "No such device or address"),
        }
    }

    /// The file that a device lies on.
    pub fn file_on(&self, device: &OsStr) -> Option<PathBuf> {
        self.devices.get(device)?.file.clone()
    }

    /// Mount point of a device.
    pub fn mounted_from(&self, device: &OsStr) -> Option<PathBuf> {
        let mut mounts = self.mounts.iter();
        let mount = mounts.find(|mount| mount.source == device)?;
        Some(mount.mount_point.clone())
    }

    /// Options of what is mounted at a directory.
    pub fn options_at(&self, point: &Path) -> Option<Vec<String>> {
        let mut mounts = self.mounts.iter();
        let mount = mounts.find(|mount| mount.mount_point == point)?;
        Some(mount.options.clone())
    }

    /// Makes a file that a tool makes by itself.
    pub fn make_file(&mut self, file: &Path) {
        self.files.insert(file.to_path_buf(), 0);
    }

    /// Devices that lie on a file.
    pub fn devices_on(&self, file: &Path) -> Vec<&OsString> {
        let devices = self.devices.iter();
        let on = devices.filter(|(_, device)| device.file.as_deref() == Some(file));
        on.map(|(name, _)| name).collect()
    }

    /// Adds a disk of the lab: it is empty each time, and ends with the guest.
    pub(super) fn add_lab_disk(&mut self, disk: &LabDisk) -> PathBuf {
        let name = format!("{{disk {}}}", disk.serial);
        let device = ImaginedDevice {
            about: BTreeMap::from([
                ("queue/logical_block_size", disk.logical_sector.to_string()),
                (
                    "queue/physical_block_size",
                    disk.physical_sector.to_string(),
                ),
                ("size", (disk.bytes / 512).to_string()),
                ("serial", disk.serial.clone()),
            ]),
            given: true,
            disposable: true,
            ..ImaginedDevice::default()
        };
        self.attach(&name, device);
        PathBuf::from(name)
    }

    /// Content of a device.
    pub fn signature(&self, device: &OsStr) -> Option<&Signature> {
        self.signatures.get(device)
    }

    /// Content of the device that is mounted at a directory.
    pub fn signature_at(&self, point: &Path) -> Option<&Signature> {
        let mut mounts = self.mounts.iter();
        let mount = mounts.find(|mount| mount.mount_point == point)?;
        self.signature(&mount.source)
    }

    /// Signs every device among some words.
    pub fn sign(&mut self, words: &[OsString], signature: &Signature) {
        for word in words {
            if self.is_device(word) {
                self.signatures.insert(word.clone(), signature.clone());
            }
        }
    }

    /// Devices among some words that are free to become members.
    ///
    /// # Errors
    /// The complaint, where one is in use.
    pub fn members(&self, words: &[OsString]) -> Result<Vec<OsString>, Output> {
        let devices = words.iter().filter(|word| self.is_device(word));
        let devices: Vec<OsString> = devices.cloned().collect();
        match devices.iter().find(|device| self.in_use(device)) {
            Some(device) => Err(complained(1, &format!("{device:?} is busy"))),
            None => Ok(devices),
        }
    }

    /// Puts something together under a name or UUID of its own.
    pub fn assemble(&mut self, name: impl Into<String>, assembly: Assembly) -> Output {
        self.assemblies.insert(name.into(), assembly);
        said("")
    }

    /// Assemblies that a tool put together.
    pub fn assembled<'a>(
        &'a self,
        tool: &'static str,
    ) -> impl Iterator<Item = (&'a String, &'a Assembly)> {
        let assemblies = self.assemblies.iter();
        assemblies.filter(move |(_, assembly)| assembly.tool == tool)
    }

    /// An assembly by its name.
    pub fn assembly(&mut self, name: &str) -> Option<&mut Assembly> {
        self.assemblies.get_mut(name)
    }

    /// Returns true if something that an assembly gives or holds is in use.
    pub fn is_busy(&self, name: &str) -> bool {
        let Some(assembly) = self.assemblies.get(name) else {
            return false;
        };
        let inside = format!("{name}/");
        let within = |mount: &MountInfo| mount.source.to_string_lossy().starts_with(&inside);
        assembly.gives.iter().any(|given| self.in_use(given)) || self.mounts.iter().any(within)
    }

    /// Takes an assembly apart, unless it is busy.
    pub fn disassemble(&mut self, name: &str) -> Output {
        if self.is_busy(name) {
            return complained(1, "it is busy");
        }
        match self.assemblies.remove(name) {
            Some(assembly) => {
                for device in &assembly.gives {
                    self.blank(device);
                }
                said("")
            }
            None => complained(1, "there is no such thing"),
        }
    }

    /// Removes the signature of a device, and the assemblies that lie on it with all that they gave.
    fn blank(&mut self, device: &OsStr) {
        self.signatures.remove(device);
        let on = |_: &String, assembly: &mut Assembly| {
            assembly.members.iter().any(|member| member == device)
        };
        let gone: Vec<(String, Assembly)> = self.assemblies.extract_if(.., on).collect();
        for given in gone.iter().flat_map(|(_, assembly)| &assembly.gives) {
            // What an assembly gave is gone with it, and so is what stood on that.
            self.blank(given);
        }
    }

    /// Removes files, and what was away and lay on one of them.
    pub(super) fn remove_files(&mut self, gone: impl Fn(&Path) -> bool) {
        let files: Vec<(PathBuf, u64)> = self.files.extract_if(.., |file, _| gone(file)).collect();
        for (file, _) in files {
            let away = |assembly: &Assembly| {
                assembly.away && assembly.members.contains(&file.clone().into())
            };
            // What stands on it keeps it: that is a leak, which a test has to see.
            if self.assemblies.values().any(away) {
                self.blank(file.as_os_str());
            }
        }
    }

    /// The complaint where a device is in use.
    pub fn untouched(&self, device: Option<&OsString>) -> Output {
        match device.is_some_and(|device| self.in_use(device)) {
            true => complained(1, "Device or resource busy"),
            false => said(""),
        }
    }

    fn discard(&mut self, device: Option<&OsString>) -> Output {
        let answer = self.untouched(device);
        if let Some(device) = device.filter(|_| answer.status == Some(0)) {
            self.signatures.remove(device);
        }
        answer
    }

    fn wipefs(&mut self, words: &[OsString]) -> Output {
        let Some(device) = words.last() else {
            return complained(1, "bad usage");
        };
        if words.iter().any(|word| word == "--all") {
            let answer = self.untouched(Some(device));
            if answer.status == Some(0) {
                self.blank(device);
            }
            return answer;
        }
        let found = self.signatures.get(device);
        said(found.map_or("", |signature| &signature.file_system))
    }

    fn blkid(&self, words: &[OsString]) -> Output {
        match words.last().and_then(|device| self.signatures.get(device)) {
            Some(found) => said(format!("UUID={}\nTYPE={}\n", found.mark, found.file_system)),
            None => complained(2, ""),
        }
    }
}

/// Power cuts.
#[cfg(any(test, feature = "testing"))]
impl World {
    /// Puts on its devices what those of another world carry.
    pub(super) fn carries_what(&mut self, other: &Self) {
        self.signatures.clone_from(&other.signatures);
    }

    /// Puts on a device what another one carries.
    pub(super) fn copies(&mut self, from: &str, to: &str) {
        if let Some(signature) = self.signatures.get(OsStr::new(from)).cloned() {
            self.signatures.insert(to.into(), signature);
        }
    }
}

/// Mounts.
impl World {
    fn run_mount(&mut self, words: &[OsString]) -> Output {
        let [.., source, target] = words else {
            return complained(1, "bad usage");
        };
        // illumos has -F for the type.
        let kind = text_after(words, "-t").or_else(|| text_after(words, "-F"));
        let kind = kind.unwrap_or_default();
        if let Some(helper) = self.tool(&format!("mount.{kind}")) {
            return (helper.run)(self, words);
        }
        if words.iter().any(|word| word == "--bind") {
            let mut mounts = self.mounts.iter().rev();
            let seen = mounts.find(|mount| Path::new(source).starts_with(&mount.mount_point));
            let seen = seen.map(|mount| (mount.source.clone(), mount.file_system.clone()));
            let (source, kind) = seen.unwrap_or_default();
            return self.mount(&source, Path::new(target), &kind, "");
        }
        let parts = source.to_string_lossy();
        let mut parts = parts.split(':').map(OsStr::new);
        // A device that nothing formatted cannot be mounted.
        if !parts.all(|part| self.signatures.contains_key(part)) {
            return complained(32, "wrong fs type, bad option, bad superblock");
        }
        let options = text_after(words, "-o").unwrap_or_default();
        self.mount(source, Path::new(target), &kind, &options)
    }

    /// Mounts something at a directory that is there.
    pub fn mount(
        &mut self,
        source: &OsStr,
        target: &Path,
        file_system: &str,
        options: &str,
    ) -> Output {
        if !self.dirs.contains(target) {
            return complained(32, "mount point does not exist");
        }
        let options = options.split(',').filter(|option| !option.is_empty());
        let inside = self.unmounted.remove(source);
        self.dirs.extend(inside.unwrap_or_default());
        self.mounts.push(MountInfo {
            id: 0,
            st_dev: (0, 0),
            root: PathBuf::from("/"),
            mount_point: target.to_path_buf(),
            options: std::iter::once("rw")
                .chain(options)
                .map(String::from)
                .collect(),
            file_system: file_system.to_string(),
            source: source.to_os_string(),
        });
        said("")
    }

    /// Unmounts what is mounted there; what lies in it is kept for the next mount of the same source.
    pub fn unmount(&mut self, target: &Path) -> Output {
        let mut mounts = self.mounts.iter();
        let Some(at) = mounts.rposition(|mount| mount.mount_point == target) else {
            return complained(32, "not mounted");
        };
        let mount = self.mounts.remove(at);
        let is_inside = |path: &PathBuf| path.starts_with(target) && *path != target;
        let inside: Vec<PathBuf> = self.dirs.extract_if(.., is_inside).collect();
        // A source that only repeats the type stands for memory, which is given back.
        if mount.source != *mount.file_system {
            self.unmounted.insert(mount.source, inside);
        }
        said("")
    }

    pub(super) fn is_mounted(&self, path: &Path) -> bool {
        self.mounts.iter().any(|mount| mount.mount_point == path)
    }

    /// Everything that was not there before.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        let paths = self.dirs.iter().chain(self.files.keys());
        left.extend(paths.map(|path| path.display().to_string()));
        // Devices that were there before the stack are not left behind by it.
        let made = self.devices.iter().filter(|(_, device)| !device.given);
        left.extend(made.map(|(name, _)| name.to_string_lossy().into_owned()));
        left.extend(self.mounts.iter().map(|mount| format!("{mount:?}")));
        left.extend(self.assemblies.keys().chain(self.processes.keys()).cloned());
        let disposable = |name: &OsString| self.devices.get(name).is_some_and(|d| d.disposable);
        let signed = self.signatures.iter().filter(|(name, _)| !disposable(name));
        left.extend(signed.map(|(name, signature)| format!("{signature:?} on {name:?}")));
        let parameters = self.texts.iter().filter(|(file, _)| is_parameter(file));
        let changed = parameters.filter(|(_, text)| *text != BEFORE);
        left.extend(changed.map(|(file, text)| format!("{text} in {}", file.display())));
        left
    }

    /// Checks that a directory or file may be made at a path.
    pub(super) fn may_create(&self, what: &'static str, path: &Path) -> Result<(), HostError> {
        let refuse = |kind: std::io::ErrorKind| Err(HostError::path(what, path, kind));
        if self.exists(path) {
            return refuse(std::io::ErrorKind::AlreadyExists);
        }
        match path.parent() {
            Some(parent) if self.dirs.contains(parent) || parent.is_dir() => Ok(()),
            // There the kernel makes directories by itself, in each that is made.
            Some(parent) if parent.starts_with(CONFIGFS) => Ok(()),
            _ => refuse(std::io::ErrorKind::NotFound),
        }
    }

    /// A new file of a size.
    pub(super) fn new_file(&mut self, path: &Path, bytes: u64) -> Result<(), HostError> {
        self.may_create("create", path)?;
        self.files.insert(path.to_path_buf(), bytes);
        Ok(())
    }

    /// Returns true if a file lies under a device.
    pub(super) fn carries_device(&self, path: &Path) -> bool {
        !self.devices_on(path).is_empty()
    }
}
