//! A host that touches nothing: it imagines what each step would do, and keeps the steps.
//!
//! Setting a stack up here gives the exact commands a run will use. What exists on the real machine
//! is read (never changed), so that a directory that is missing is found out while planning. The
//! imagined machine ([`World`]) is strict; told to fail at its k-th step, it is the fake host of the
//! tests.

use super::imagined::{Tool, World};
use super::{
    DeviceContent, Filling, FixedDevice, Host, HostError, LabDisk, LineSpeed, MountInfo, Needs,
    Output, UserCommands, daemon, reading, tree,
};
use stackrace_base::event::shell;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A step that would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The command, or one that does the same as this program's own system calls.
    pub argv: Vec<OsString>,
    /// True if a command is run; otherwise this program does it itself.
    pub command: bool,
    /// Name of the machine; empty means this one.
    pub host: &'static str,
}

impl Step {
    /// The step as it would be typed.
    pub fn shown(&self) -> String {
        match self.host {
            "" => shell(&self.argv),
            host => format!("{host}: {}", shell(&self.argv)),
        }
    }
}

/// Moment at which the imagined machine fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Every step succeeds.
    Never,
    /// The step of this number (from 1) is refused and does nothing; the next ones work.
    Refused(usize),
    /// The program dies before this step: nothing works from there.
    DiedBefore(usize),
    /// The program dies after this step took effect: nothing works from there.
    DiedAfter(usize),
}

/// A host that only imagines.
pub struct PlanHost {
    world: Mutex<World>,
    /// Log of this machine and its peers together.
    log: Arc<Mutex<Log>>,
    user_commands: UserCommands,
    /// Empty: it is a peer itself.
    peers: Vec<PlanHost>,
    /// `plan`, `node2`, `node3`.
    name: &'static str,
    /// True if it is a peer in the kernel of the first machine.
    one_kernel: bool,
}

#[derive(Debug)]
struct Log {
    steps: Vec<Step>,
    fault: Fault,
}

impl PlanHost {
    /// An imagined machine that has these programs, and fails as told.
    pub fn new(tools: Vec<Tool>, fault: Fault) -> Self {
        let tools: Arc<[Tool]> = tools.into();
        let steps = Vec::new();
        let log = Arc::new(Mutex::new(Log { steps, fault }));
        let machine = |name, peers| Self {
            world: Mutex::new(World::new(name, Arc::clone(&tools))),
            log: Arc::clone(&log),
            user_commands: UserCommands::default(),
            peers,
            name,
            one_kernel: false,
        };
        let peers = ["node2", "node3"].map(|name| machine(name, Vec::new()));
        machine("plan", peers.into())
    }

    /// Sets another system, as `uname -s` names it, where these directories exist.
    pub fn of_system(self, system: &str, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.world().system = system.to_owned();
        self.world().shell = true;
        self.world().dirs.extend(directories);
        self
    }

    /// The same machines in one kernel, as in virtual time.
    pub fn in_one_kernel(mut self) -> Self {
        for peer in &mut self.peers {
            peer.one_kernel = true;
        }
        self
    }

    /// Carries over what the devices of these machines carry: they lost their power and were
    /// started again.
    #[cfg(any(test, feature = "testing"))]
    pub fn instead_of(self, before: &Self) -> Self {
        self.world().carries_what(&before.world());
        for (peer, before) in self.peers.iter().zip(&before.peers) {
            peer.world().carries_what(&before.world());
        }
        self
    }

    /// A device carries what another one does: it is a copy of it.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_copy(self, from: &str, to: &str) -> Self {
        self.world().copies(from, to);
        self
    }

    /// The steps until now, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.log().steps.clone()
    }

    /// The machine works from now on: the program was started again.
    #[cfg(any(test, feature = "testing"))]
    pub fn recover(&self) {
        self.log().fault = Fault::Never;
    }

    /// Adds a disk of this size, bytes, and model, with its link below `/dev/disk/by-id`.
    pub fn with_disk(self, link: &Path, size: u64, model: &str) -> Self {
        let disk = super::imagined::ImaginedDevice {
            about: [
                ("size", (size / 512).to_string()),
                ("device/model", model.to_string()),
            ]
            .into(),
            given: true,
            ..Default::default()
        };
        self.world().attach(link, disk);
        self
    }

    /// Imagines that a device carries something that bears a mark.
    #[cfg(any(test, feature = "testing"))]
    pub fn carrying(self, device: &Path, file_system: &str, mark: &str) -> Self {
        let signature = super::imagined::Signature {
            file_system: file_system.to_string(),
            mark: mark.to_string(),
            ..Default::default()
        };
        self.world().sign(&[device.into()], &signature);
        self
    }

    /// Everything imagined that is still there.
    #[cfg(any(test, feature = "testing"))]
    pub fn left(&self) -> Vec<String> {
        let mut left = self.world().left();
        left.extend(self.peers.iter().flat_map(PlanHost::left));
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
            // Dead from here on: nothing that follows has an effect.
            Fault::DiedBefore(at) if number >= at => Err(refused),
            Fault::DiedAfter(at) if number > at => Err(refused),
            Fault::DiedAfter(at) if number == at => effect(&mut world).and(Err(refused)),
            _ => effect(&mut world),
        }
    }

    /// Word with which steps on this machine are shown.
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

fn refuse(what: &'static str, path: &Path, kind: ErrorKind) -> HostError {
    HostError::path(what, path, kind)
}

impl Host for PlanHost {
    fn name(&self) -> &str {
        self.name
    }

    fn is_here(&self) -> bool {
        !self.world().shell
    }

    fn system(&self) -> Result<String, HostError> {
        Ok(self.world().system.clone())
    }

    fn exec(&self, argv: &[OsString]) -> Result<Output, HostError> {
        let step = Step {
            argv: argv.to_vec(),
            command: true,
            host: self.prefix(),
        };
        self.step(step, |world| Ok(world.exec(argv)))
    }

    /// Nothing is missing in a plan: it shows what a machine that has everything would do.
    fn missing(&self, _needs: &Needs) -> Vec<HostError> {
        Vec::new()
    }

    fn is_root(&self) -> bool {
        true
    }

    fn user_commands(&self) -> Option<&UserCommands> {
        // A peer of a stack runs none: the permission is for the machine that has the study.
        (!self.peers.is_empty()).then_some(&self.user_commands)
    }

    fn create_dir(&self, path: &Path) -> Result<(), HostError> {
        self.own(&["mkdir".as_ref(), path.as_os_str()], |world| {
            world.may_create("create directory", path)?;
            world.dirs.insert(path.to_path_buf());
            Ok(())
        })
    }

    fn create_file(&self, path: &Path, bytes: u64, filling: Filling) -> Result<(), HostError> {
        let size = bytes.to_string();
        if self.world().shell {
            let (out, count) = (path.display(), bytes >> 20);
            let words = [
                "dd",
                "if=/dev/zero",
                &format!("of={out}"),
                "bs=1048576",
                &format!("count={count}"),
            ]
            .map(OsString::from);
            let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
            return self.own(&words, |world| world.new_file(path, bytes));
        }
        let tool = match filling {
            Filling::Sparse => ["truncate", "--size"],
            Filling::Allocated => ["fallocate", "--length"],
            // No command does just this; a user who repeats the steps by hand gets the same kind of
            // file.
            Filling::Written { .. } => ["head", "--bytes"],
        };
        let mut words: Vec<&OsStr> = vec![tool[0].as_ref(), tool[1].as_ref(), size.as_ref()];
        if matches!(filling, Filling::Written { .. }) {
            words.extend(["/dev/urandom".as_ref(), ">".as_ref() as &OsStr]);
        }
        words.push(path.as_os_str());
        self.own(&words, |world| world.new_file(path, bytes))
    }

    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.own(&["rm".as_ref(), path.as_os_str()], |world| {
            // A real system would allow it and keep the blocks. That is a leak no test would see.
            if world.carries_device(path) {
                return Err(refuse("remove", path, ErrorKind::ResourceBusy));
            }
            world.remove_files(|file| file == path);
            Ok(())
        })
    }

    fn remove_dir(&self, path: &Path) -> Result<(), HostError> {
        self.own(&["rmdir".as_ref(), path.as_os_str()], |world| {
            let inside = |other: &Path| other.starts_with(path) && other != path;
            if world.is_mounted(path) {
                return Err(refuse("remove", path, ErrorKind::ResourceBusy));
            }
            if world.dirs.iter().any(|other| inside(other))
                || world.files.keys().any(|other| inside(other))
            {
                let kind = ErrorKind::DirectoryNotEmpty;
                return Err(refuse("remove", path, kind));
            }
            world.dirs.remove(path);
            Ok(())
        })
    }

    fn remove_tree(&self, path: &Path) -> Result<(), HostError> {
        let all = match self.world().shell {
            true => "-r",
            false => "--recursive",
        };
        let words = ["rm".as_ref(), all.as_ref(), path.as_os_str()];
        self.own(&words, |world| {
            tree::check(path, &world.mounts)?;
            world.dirs.retain(|other| !other.starts_with(path));
            world.remove_files(|file| file.starts_with(path));
            Ok(())
        })
    }

    fn write_text(&self, path: &Path, text: &str) -> Result<(), HostError> {
        // Files of a kernel's are those of Linux.
        if path.starts_with("/proc") && self.world().system != "Linux" {
            return Err(refuse("write to", path, ErrorKind::NotFound));
        }
        let words = [
            "echo".as_ref(),
            text.as_ref(),
            ">".as_ref(),
            path.as_os_str(),
        ];
        self.own(&words, |world| match world.write(path, text) {
            Some(answer) if answer.status != Some(0) => {
                Err(refuse("write to", path, ErrorKind::InvalidInput))
            }
            _ => Ok(()),
        })
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), HostError> {
        let words = ["sync".as_ref(), "--file-system".as_ref(), path.as_os_str()];
        // POSIX can sync everything or nothing.
        let words = match self.world().shell {
            true => &words[..1],
            false => &words[..],
        };
        self.own(words, |_| Ok(()))
    }

    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        let mut world = self.world();
        let imagined = world.in_sys(path).or_else(|| world.answered(path));
        match imagined {
            Some(text) => Ok(text),
            None => reading::text(path),
        }
    }

    /// A disk of this machine is imagined as it is, and blank.
    fn fix_device(&self, path: &Path) -> Result<FixedDevice, HostError> {
        let node = self.canonical(path)?;
        let mut world = self.world();
        if !world.is_device(node.as_os_str()) {
            let disk = super::imagined::ImaginedDevice {
                given: true,
                ..Default::default()
            };
            world.attach(&node, disk);
        }
        Ok(FixedDevice::by_path(node))
    }

    fn device_users(&self, device: &FixedDevice) -> Vec<String> {
        match self.world().in_use(device.node.as_os_str()) {
            true => vec!["it is a part of something".to_string()],
            false => Vec::new(),
        }
    }

    fn device_content(&self, device: &FixedDevice) -> Result<DeviceContent, HostError> {
        let carries = self.world().signature(device.node.as_os_str()).is_some();
        Ok(match carries {
            true => DeviceContent::Data { at: 0 },
            false => DeviceContent::Blank,
        })
    }

    fn leave_device(&self, device: &FixedDevice) -> Result<(), HostError> {
        let words: [&OsStr; 4] = [
            "echo".as_ref(),
            "left by stackrace".as_ref(),
            ">".as_ref(),
            device.node.as_os_str(),
        ];
        self.own(&words, |_| Ok(()))
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, HostError> {
        let imagined = self.world().listed(path);
        match imagined {
            // What is there for real stands beside it.
            Some(names) => Ok([names, reading::list(path).unwrap_or_default()].concat()),
            None => reading::list(path),
        }
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
        Ok(self.world().add_lab_disk(disk))
    }

    fn end_machine(&self, directory: &Path) -> Result<(), HostError> {
        let words = ["pkill".as_ref(), "--full".as_ref(), directory.as_os_str()];
        self.own(&words, |_| Ok(()))
    }

    fn running(&self, program: &str) -> Result<Option<String>, HostError> {
        let runs = self.world().runs(program);
        Ok(runs.then(|| format!("{program} (process {{id}})")))
    }

    fn listener(&self, port: u16) -> Result<Option<String>, HostError> {
        let listener = self.world().listener(port).cloned();
        listener.map_or(Ok(None), |program| self.running(&program))
    }

    fn end_daemon(&self, program: &str, mark: &str) -> Result<(), HostError> {
        let mark = format!("{}={mark}", daemon::MARK);
        let words = ["pkill", "--env", &mark, program].map(OsStr::new);
        self.own(&words, |world| {
            world.end_started_with(program, &mark);
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

    fn shares_kernel(&self) -> bool {
        self.one_kernel
    }

    fn line(&self) -> Result<[IpAddr; 2], HostError> {
        // Addresses that a reader recognises; nothing is sent to them.
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
