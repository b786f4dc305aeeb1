//! A stack on its way up: everything is said in the journal before it is created.

use crate::foundation::error::LayerError;
use crate::foundation::gives::{Device, Gives};
use crate::foundation::parts::{Mounted, Movable, StackParts, appears};
use crate::foundation::site::Site;
use stackrace_base::event::{LayerFacts, shell};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::{
    Daemon, Filling, FixedDevice, Host, HostError, LineSpeed, Output, argv, daemon,
};
use stackrace_machine::journal::{EntryId, Undo, undo_entries, unmount};
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The means by which a layer builds.
pub struct Setup<'a> {
    site: &'a Site<'a>,
    /// What the set-up is for, as a part of names: `r3-t1`.
    tag: String,
    /// Common beginning of every name of this set-up; it is drawn for it.
    mark: String,
    /// 16 random digits, the end of `mark`.
    nonce: String,
    /// Number of names and UUIDs that were drawn.
    drawn: u32,
    /// True if what lies at the bottom is still there when the stack is gone.
    outlived: bool,
    /// True if the stack was set up before and lost its power.
    returning: bool,
    /// Commands that repaired what could not be brought back otherwise, as typed.
    pub repairs: Vec<String>,
    /// Parts of the stack that exist by now.
    pub parts: StackParts,
    /// The machine that is built on now.
    host: &'a dyn Host,
    /// Its number; 1: the site's own.
    pub node: usize,
    /// The machine the layer under way stands on; its peer is the next one.
    home: usize,
    /// Things that the layers below gave on the peer.
    pub there: Gives,
}

/// Directory of the files of [`Setup::prove`].
const PROOFS: &str = "/run";

impl<'a> Setup<'a> {
    /// Begins a set-up under a fresh mark; nothing is created if the host gives no digits, or no journal notes them.
    pub fn new(site: &'a Site<'a>) -> Result<Self, LayerError> {
        Self::with_nonce(site, site.host.nonce()?, None)
    }

    /// Brings back what was set up under a mark ([`Setup::mark`]) and lost its power.
    pub fn again(site: &'a Site<'a>, mark: &str) -> Result<Self, LayerError> {
        let nonce = mark.rsplit('-').next().unwrap_or_default().to_string();
        Self::with_nonce(site, nonce, Some(mark.to_string()))
    }

    fn with_nonce(
        site: &'a Site<'a>,
        nonce: String,
        mark: Option<String>,
    ) -> Result<Self, LayerError> {
        // It becomes a part of paths, labels and names of pools; not every tool takes others.
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let tag: String = site.tag.chars().map(plain).collect();
        // Before any name is made with it: undoing trusts only digits that the journal knows.
        site.journal.draw(&nonce)?;
        Ok(Self {
            site,
            returning: mark.is_some(),
            repairs: Vec::new(),
            mark: mark.unwrap_or_else(|| format!(".stackrace-{tag}-{nonce}")),
            tag,
            nonce,
            drawn: 0,
            outlived: false,
            parts: StackParts::default(),
            host: site.host,
            node: 1,
            home: 1,
            there: Gives::Nothing,
        })
    }

    /// The machine that is built on now; another one than the first while a layer builds there.
    pub fn host(&self) -> &'a dyn Host {
        self.host
    }

    /// The machine that the stack begins on.
    pub fn first_host(&self) -> &'a dyn Host {
        self.site.host
    }

    /// A machine of the stack by its number.
    fn machine(&self, node: usize) -> Result<&'a dyn Host, HostError> {
        match node {
            1 => Ok(self.site.host),
            node => self.site.host.peer(node),
        }
    }

    /// Builds a layer on a machine, whose peer is the next one.
    pub fn stand_on(&mut self, home: usize) -> Result<(), HostError> {
        (self.host, self.node, self.home) = (self.machine(home)?, home, home);
        Ok(())
    }

    /// The machine beside the one that is built on.
    pub fn peer(&self) -> Result<&'a dyn Host, HostError> {
        self.machine(self.home + 1)
    }

    /// Addresses of this machine and of its peer, on the line between them.
    pub fn ends(&self) -> Result<[IpAddr; 2], HostError> {
        let [first, there] = self.peer()?.line()?;
        let here = match self.home {
            1 => first,
            // A peer's line begins at the first machine: its own address is the second one.
            home => self.machine(home)?.line()?[1],
        };
        Ok([here, there])
    }

    /// Measures the line from this machine to its peer, with so many bytes; `None` if only planned.
    pub fn measure_line(&self, bytes: u64) -> Result<Option<LineSpeed>, HostError> {
        let peer = self.peer()?;
        match self.home {
            1 => peer.measure_line(bytes),
            // The coordinator is no end of this line: the machine itself has to measure it.
            home => self.machine(home)?.measure_line_to(peer, bytes),
        }
    }

    /// Builds on the peer for a while.
    pub fn on_peer<T>(
        &mut self,
        build: impl FnOnce(&mut Self) -> Result<T, LayerError>,
    ) -> Result<T, LayerError> {
        let here = (self.host, self.node);
        (self.host, self.node) = (self.peer()?, self.home + 1);
        let built = build(self);
        // After an error, too: what follows must not be built on the wrong machine.
        (self.host, self.node) = here;
        built
    }

    /// Builds on this machine, then the same on the peer.
    pub fn on_both(
        &mut self,
        build: impl Fn(&mut Self) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        build(self)?;
        self.on_peer(build)
    }

    /// Takes what the layers below gave on the peer.
    pub fn there(&mut self) -> Gives {
        // Taken away, so that no second layer is put on the same devices.
        std::mem::replace(&mut self.there, Gives::Nothing)
    }

    /// Lets what stands until now stay when settling: it is served, or open.
    ///
    /// # Errors
    /// One of it has to be unmounted before each phase.
    pub fn keep_standing(&mut self) -> Result<(), LayerError> {
        if self.parts.mounts.iter().any(Mounted::is_folded) {
            return Err(LayerError::refused(
                "a layer below makes its content anew before each phase, which what is served or open does not let it do",
                "leave the layer above out, or take the setting content out of the one below",
            ));
        }
        self.parts.movable.clear();
        self.parts.awaited.clear();
        for mount in &mut self.parts.mounts {
            mount.survives = false;
        }
        Ok(())
    }

    /// Returns true if another machine than the first is built on.
    pub fn is_on_peer(&self) -> bool {
        self.node > 1
    }

    /// The number from which layers draw what must be the same in each repetition.
    pub fn seed(&self) -> u64 {
        self.site.seed
    }

    /// Common beginning of every name of this set-up.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Returns true if the stack was set up before and lost its power.
    pub fn is_returning(&self) -> bool {
        self.returning
    }

    /// Repairs what could not be brought back otherwise. How the tool ended is not looked at:
    /// whether it comes back now tells.
    pub fn repair(&mut self, command: &[OsString]) -> Result<(), LayerError> {
        self.repairs.push(shell(command));
        self.host().exec(command)?;
        Ok(())
    }

    /// A name that is ours and unique: `.stackrace-r3-t1-0123456789abcdef-disks`.
    pub fn name(&self, part: &str) -> String {
        format!("{}-{part}", self.mark)
    }

    /// A name that is ours and unique, also in this stack, where none may begin with a dot:
    /// `stackrace-r3-t1-0123456789abcdef-pool-1`.
    pub fn plain_name(&mut self, part: &str) -> String {
        let number = self.draw();
        format!("{}-{part}-{number}", self.mark.trim_start_matches('.'))
    }

    /// A short name that is ours and unique: `stackrace-0123456789abcdef-1`.
    pub fn short_name(&mut self) -> String {
        let number = self.draw();
        format!("stackrace-{}-{number}", self.nonce)
    }

    /// A number that no other name of this set-up has.
    fn draw(&mut self) -> u32 {
        self.drawn += 1;
        self.drawn
    }

    /// A UUID that is ours and unique: what is made bears it from its first moment, so that the
    /// journal can name it before.
    pub fn uuid(&mut self) -> String {
        let number = self.draw();
        let half = match self.nonce.len() {
            // The digits of the nonce come first, so that every UUID of a stack can be told for
            // ours.
            16 => [&self.nonce[..8], &self.nonce[8..12], &self.nonce[12..]].join("-"),
            _ => self.nonce.clone(),
        };
        format!("{half}-8000-{number:012x}")
    }

    /// Device ids that the user allowed to be wiped.
    pub fn may_wipe(&self) -> &'a [String] {
        self.site.wipe
    }

    /// Says that this disk at the bottom is still there when the stack is gone: what is written to it
    /// has to be wiped again. It is held until then.
    pub fn outlived_by(&mut self, disk: &FixedDevice) {
        self.outlived = true;
        self.parts.held.push(disk.clone());
    }

    /// Returns true if devices at the bottom outlive the stack.
    pub fn is_outlived(&self) -> bool {
        self.outlived
    }

    /// Says in the journal that a device is about to carry a signature with a mark of ours, which
    /// is wiped when the stack is torn down.
    pub fn will_carry(&mut self, device: &Device, mark: &str) -> Result<(), LayerError> {
        self.will(Undo::Blank {
            device: device.lasting_path(),
            mark: mark.to_string(),
        })?;
        Ok(())
    }

    /// Says in the journal what a command is about to make, then runs it.
    pub fn make(
        &mut self,
        undo: impl Into<Undo>,
        command: &[OsString],
    ) -> Result<Output, LayerError> {
        let id = self.will(undo)?;
        let output = self.host().must(command)?;
        self.made(id).map(|()| output)
    }

    /// Starts a server of which a machine has one; tearing down ends it with all it began, by the mark they
    /// bear. `daemons` are what must not run yet, its program first.
    pub fn start(&mut self, daemons: &[Daemon], command: &[OsString]) -> Result<(), LayerError> {
        for daemon in daemons {
            // One that runs is not ours: it is neither used nor, later, ended.
            self.host().check_free(daemon)?;
        }
        let program = daemons.first().map_or("", |daemon| daemon.program);
        self.start_one_more(program, command)
    }

    /// Starts a server of which a machine may have many, by the name the kernel has of it; it is ended as
    /// any other.
    pub fn start_one_more(
        &mut self,
        program: &str,
        command: &[OsString],
    ) -> Result<(), LayerError> {
        self.will(Undo::EndProcess {
            program: program.to_owned(),
            mark: self.mark.clone(),
        })?;
        // In the environment, because a process hands it on to all that it starts.
        let mut marked = argv(["env".to_string(), format!("{}={}", daemon::MARK, self.mark)]);
        marked.extend_from_slice(command);
        self.host().must(&marked)?;
        Ok(())
    }

    /// Returns true if the user wants the set-up to end.
    pub fn is_stopped(&self) -> bool {
        self.site.interrupt.is_some_and(Interrupt::raised)
    }

    /// Returns true if a stack of this run has started a program that still runs.
    pub fn has_started(&self, program: &str) -> bool {
        self.site.journal.will_end(program)
    }

    /// Waits until a device that was just made can be seen; it is waited for again when its pool was away.
    pub fn await_device(&mut self, device: &Path) -> Result<(), LayerError> {
        appears(self.host(), device)?;
        self.parts.awaited.push(device.to_path_buf());
        Ok(())
    }

    /// Says that something is taken away and brought back to make it cold.
    pub fn moves(&mut self, away: Vec<OsString>, back: Vec<OsString>) {
        self.parts.movable.push(Movable { away, back });
    }

    /// Says that a command drops caches of what stands, after the kernel's own are dropped.
    pub fn gets_cold_by(&mut self, command: Vec<OsString>) {
        self.parts.cold.push(command);
    }

    /// The run's own directory, absolute and without links; created where it is missing.
    pub fn scratch(&self) -> Result<PathBuf, LayerError> {
        let host = self.host();
        let scratch = host.own_scratch().unwrap_or(&self.site.scratch);
        if !scratch.is_absolute() {
            return Err(LayerError::refused(
                format!("the directory {} is not absolute", scratch.shown()),
                "",
            ));
        }
        // A store that was moved away must not be made again, without its journal.
        self.site.journal.in_place()?;
        // From the root down, and none of them journalled: it is part of the record.
        for directory in scratch.ancestors().collect::<Vec<_>>().into_iter().rev() {
            if !host.is_dir(directory) {
                host.create_dir(directory)?;
            }
        }
        // Without links: the table of mounts and /sys show paths without them.
        Ok(host.canonical(scratch)?)
    }

    /// Says in the journal how what is about to be made is undone.
    pub fn will(&mut self, undo: impl Into<Undo>) -> Result<EntryId, LayerError> {
        let undo = undo.into();
        let undo = match self.node {
            1 => undo,
            // There is one journal for all machines, on the first one.
            node => Undo::on(node, self.host, undo),
        };
        let id = self.site.journal.will(&self.site.tag, undo)?;
        self.parts.entries.push(id);
        Ok(id)
    }

    /// Journals, then creates; never over what is there. What turns out to be not ours is taken out of
    /// the journal again.
    fn create(
        &mut self,
        path: &Path,
        undo: Undo,
        make: impl FnOnce(&dyn Host) -> Result<(), HostError>,
    ) -> Result<(), LayerError> {
        // Looked at before the journal: an entry would let undoing remove what is not ours.
        if self.host().exists(path) {
            let there = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
            return Err(HostError::path("create", path, there).into());
        }
        let id = self.will(undo)?;
        make(self.host()).map_err(|error| -> LayerError {
            // It appeared since the look: it is another's, and must never be removed.
            if error.is_already_there()
                && let Err(unwritten) = self.site.journal.done(id)
            {
                return unwritten.into();
            }
            error.into()
        })?;
        self.made(id)
    }

    /// Says what was just made: from then on it is told from anything else at its path.
    fn made(&self, id: EntryId) -> Result<(), LayerError> {
        Ok(self.site.journal.made(self.host(), id)?)
    }

    /// Creates an empty directory that is removed when empty.
    pub fn create_dir(&mut self, path: &Path) -> Result<(), LayerError> {
        let undo = Undo::RemoveDir(path.to_path_buf());
        self.create(path, undo, |host| host.create_dir(path))
    }

    /// Creates an empty directory that is removed with all it holds then.
    pub fn create_tree(&mut self, path: &Path) -> Result<(), LayerError> {
        let undo = Undo::RemoveTree(path.to_path_buf());
        self.create(path, undo, |host| host.create_dir(path))
    }

    /// Creates a file of a size, which is removed again.
    pub fn create_file(
        &mut self,
        path: &Path,
        bytes: u64,
        filling: Filling,
    ) -> Result<(), LayerError> {
        let undo = Undo::RemoveFile(path.to_path_buf());
        self.create(path, undo, |host| host.create_file(path, bytes, filling))
    }

    /// A file that says to whom something belongs that can bear no name: a queue of a network card,
    /// the server of the kernel. Only root can make it, and it goes with the machine's memory.
    pub fn prove(&mut self, what: &str) -> Result<PathBuf, LayerError> {
        let path = Path::new(PROOFS).join(self.name(what));
        // One file is enough for several entries: they all end with the machine's memory.
        if !self.host().exists(&path) {
            self.create_file(&path, 0, Filling::Sparse)?;
        }
        Ok(path)
    }

    /// Creates a small text file.
    pub fn create_text(&mut self, path: &Path, text: &str) -> Result<(), LayerError> {
        self.create_file(path, 0, Filling::Sparse)?;
        Ok(self.host().write_text(path, text)?)
    }

    /// Says that a directory's file system holds our data and is to be synced when settling.
    pub fn lies_in(&mut self, directory: &Path) {
        self.parts
            .backing
            .push((self.node, directory.to_path_buf()));
    }

    /// Says that the workload runs on this machine too, in a directory of its own below `root`. Like
    /// the first one it ends with the file system it lies in.
    pub fn also_loaded(&mut self, root: &Path) -> Result<(), LayerError> {
        let directory = root.join(format!("work-{}", self.node));
        self.host().create_dir(&directory)?;
        self.parts.others.push((self.node, directory));
        Ok(())
    }

    /// Mounts a file system of ours at a new mount point and returns it.
    pub fn mount(
        &mut self,
        file_system: &str,
        source: &OsStr,
        options: &[String],
        memory: Memory,
    ) -> Result<PathBuf, LayerError> {
        let path = self.mount_point()?;
        let mut command = argv(["mount", "-t", file_system]);
        if !options.is_empty() {
            command.extend(argv(["-o".to_string(), options.join(",")]));
        }
        command.extend([source.to_os_string(), path.clone().into_os_string()]);
        self.mount_with(command, &path, memory)?;
        Ok(path)
    }

    /// A new, empty directory to mount at.
    pub fn mount_point(&mut self) -> Result<PathBuf, LayerError> {
        // A share is mounted beside what it serves.
        let before = self
            .parts
            .mounts
            .iter()
            .filter(|mount| mount.node == self.node);
        let name = match before.count() {
            0 => "mnt".to_string(),
            before => format!("mnt-{}", before + 1),
        };
        let scratch = self.scratch()?;
        // FreeBSD before 12 mounts at paths of at most 87 characters. Below a directory that carries a mark of the run
        // a name needs none: four digits tell it from a mount of the same trial that could not be undone.
        let name = match self.site.journal.is_marked(&scratch) {
            true => format!("{}-{:.4}-{name}", self.tag, self.nonce),
            false => self.name(&name),
        };
        let path = scratch.join(name);
        self.create_dir(&path)?;
        Ok(path)
    }

    /// Mounts a file system of ours with a command, which also mounts it again.
    pub fn mount_with(
        &mut self,
        command: Vec<OsString>,
        path: &Path,
        memory: Memory,
    ) -> Result<(), LayerError> {
        self.make(Undo::Unmount(path.to_path_buf()), &command)?;
        self.parts.mounts.push(Mounted {
            node: self.node,
            command,
            path: path.to_path_buf(),
            survives: memory == Memory::No,
            folds: Default::default(),
            writable: None,
        });
        Ok(())
    }

    /// Says that another machine serves what is mounted at a directory.
    pub fn served_at(&mut self, root: &Path) {
        self.parts.served.mounted_at.push(root.to_path_buf());
    }

    /// Opens what was mounted last, and is only read, so that it can be written, with another command; `pack`
    /// makes it of that again when it is unmounted to settle.
    pub fn opens(
        &mut self,
        writable: Vec<OsString>,
        pack: Vec<OsString>,
    ) -> Result<(), LayerError> {
        let host = self.host;
        if let Some(mount) = self.parts.mounts.last_mut() {
            unmount(host, &mount.path)?;
            host.must(&writable)?;
            mount.folds = [Vec::new(), vec![pack]];
            mount.writable = Some(writable);
        }
        Ok(())
    }

    /// Says that these commands are run before and after what was mounted last is unmounted to settle; it
    /// is then unmounted also where a study leaves file systems mounted.
    pub fn folds(&mut self, before: Vec<Vec<OsString>>, after: Vec<Vec<OsString>>) {
        if let Some(mount) = self.parts.mounts.last_mut() {
            mount.folds = [before, after];
        }
    }

    /// The facts of a layer, with the machine it stands on unless that is the first.
    pub fn placed(&self, facts: LayerFacts) -> LayerFacts {
        match self.node {
            1 => facts,
            _ => LayerFacts {
                layer: format!("{} on {}", facts.layer, self.host().name()),
                ..facts
            },
        }
    }

    /// Undoes everything until now; what could not be undone, each with why.
    pub fn tear_down(&self) -> Vec<String> {
        match undo_entries(
            self.site.host,
            self.site.journal,
            &self.parts.entries,
            self.site.undo,
        ) {
            Ok(report) => report
                .failed
                .iter()
                .map(|(undo, why)| format!("could not {undo}: {why}"))
                .collect(),
            Err(error) => vec![error.to_string()],
        }
    }
}

/// Life of a file system: in memory alone, so that it is lost when unmounted, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// It is gone when it is unmounted.
    Yes,
    /// It is still there after it was unmounted.
    No,
}
