//! A file system of the machine's own kind, on a file that is made for the stack: UFS on FreeBSD and
//! illumos, HFS+ and APFS on macOS, FFS on NetBSD, ZFS where there is one, ext4, XFS and btrfs on Linux.
//!
//! It needs nothing but the system's own commands, and so it can be set up on a machine that has nothing
//! but a shell. Everything lies in a private directory with a mark of the run.

mod device;
mod imagined;
mod systems;
#[cfg(test)]
mod tests;

use crate::stack::dir;
use crate::stack::zfs;
use device::{DETACH, attach_image};
use stackrace_base::event::Fact;
use stackrace_base::setting::{OverShell, Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::{
    Danger, Gives, GivesKind, Inspection, Layer, LayerError, LayerKind, Memory, Setup,
    StandingLayer, Takes, block, place,
};
use stackrace_machine::host::{Filling, Host, Needs, argv, argv_at};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use systems::{NativeFileSystem, NativeSystem, NativeWay};

/// The word in a study.
const NAME: &str = "native";

/// Smallest file: below it no file system fits, and the mistake is a unit.
const SIZE_MIN: u64 = 1 << 20;

/// A file system of the machine's own kind.
pub(super) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A file system of the machine's own kind on a file, by its own commands; also with --agent none.",
    settings: &[
        SettingDoc::text(
            "file-system",
            "",
            "ufs, zfs, hfs+, apfs, ffs, ext4, xfs or btrfs: what the machine's system has.",
        )
        .required(),
        SettingDoc::bytes("size", "", "Size of the file.").required(),
        SettingDoc::text(
            "directory",
            "",
            "Where the file is made: its file system and disk are part of what is measured; the run's own directory unless given.",
        ),
        zfs::PROPERTIES,
    ],
    takes: Takes::Nothing,
    gives: GivesKind::Directory,
    example: "native = { file-system = \"ext4\", size = \"1 GiB\" }",
    words: &[&zfs::NATIVE_WORDS],
    parse,
    undo: &[DETACH],
    imagined: imagined::TOOLS,
    over_shell: OverShell::Runs,
    shapes: &[
        &["native = { file-system = \"xfs\", size = \"1 GiB\" }"],
        &[
            "native = { file-system = \"zfs\", size = \"1 GiB\", properties = [\"checksum=sha256\", \"primarycache=metadata\", \"recordsize=16K\"] }",
        ],
    ],
    ..LayerKind::EMPTY
};

struct Native {
    file_system: String,
    bytes: u64,
    directory: Option<PathBuf>,
    properties: Vec<(String, String)>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let file_system = settings.text("file-system")?;
    let mut known = systems::ALL.iter().flat_map(|system| system.file_systems);
    if !known.any(|known| known.word == file_system) {
        return Err(Refusal::at(
            settings.span_of("file-system"),
            format!("no system makes \"{file_system}\""),
            format!("write one of: {}", all_words()),
        ));
    }
    let bytes = settings.bytes("size")?;
    if bytes < SIZE_MIN || !bytes.is_multiple_of(SIZE_MIN) {
        return Err(Refusal::at(
            settings.span_of("size"),
            format!("{bytes} bytes is not a whole number of MiB"),
            "write a size like \"1 GiB\"",
        ));
    }
    let properties = zfs::properties(settings, &[&zfs::NATIVE_WORDS, &zfs::DATASET_WORDS])?;
    if !properties.is_empty() && file_system != "zfs" {
        return Err(Refusal::at(
            settings.span_of("properties"),
            format!("{file_system} has no properties"),
            "leave properties out, or write file-system = \"zfs\"",
        ));
    }
    Ok(Box::new(Native {
        file_system,
        bytes,
        directory: settings.optional_text("directory")?.map(PathBuf::from),
        properties,
    }))
}

fn all_words() -> String {
    let all = systems::ALL.iter().flat_map(|system| system.file_systems);
    let mut words: Vec<&str> = all.map(|each| each.word).collect();
    words.sort_unstable();
    words.dedup();
    words.join(", ")
}

impl Native {
    /// Finds what the machine's system makes it with.
    fn found(
        &self,
        host: &dyn Host,
    ) -> Result<(&'static NativeSystem, &'static NativeFileSystem), LayerError> {
        let name = host.system()?;
        let Some(system) = systems::named(&name) else {
            return Err(LayerError::refused(
                format!("the commands of {name} are not known"),
                "use dir on storage that is there, or script with commands of your own",
            ));
        };
        let mut all = system.file_systems.iter();
        let found = all.find(|each| each.word == self.file_system);
        found.map(|found| (system, found)).ok_or_else(|| {
            let words: Vec<&str> = system.file_systems.iter().map(|each| each.word).collect();
            LayerError::refused(
                format!("{} makes no {}", system.called, self.file_system),
                format!("write one of: {}", words.join(", ")),
            )
        })
    }

    /// Puts it on the file, and mounts it; where it is mounted, and by what it was made.
    fn made(
        &self,
        setup: &mut Setup<'_>,
        way: &NativeWay,
        private: &Path,
    ) -> Result<(PathBuf, Vec<Fact>), LayerError> {
        let host = setup.host();
        match way {
            NativeWay::Device { on, make, mount } => {
                let file = private.join("disk");
                // It goes with its directory, which the journal names.
                host.create_file(&file, self.bytes, Filling::Allocated)?;
                setup.lies_in(private);
                setup.will(DETACH.of([file.clone().into()]))?;
                let device = on.attached(host, &file)?;
                host.must(&make(&device))?;
                let point = setup.mount_point()?;
                let mut command = argv(mount.iter().copied());
                command.extend([OsString::from(&device), point.clone().into()]);
                setup.mount_with(command, &point, Memory::No)?;
                Ok((point, vec![Fact::new("device", device)]))
            }
            NativeWay::Pool => self.pool(setup, private),
            NativeWay::Image(kind) => {
                let file = private.join("disk.dmg");
                let point = setup.mount_point()?;
                // hdiutil(1): with the partitions that it makes by itself. With -quiet it would not say
                // why it failed.
                let size = format!("{}m", self.bytes / SIZE_MIN);
                let create = ["hdiutil", "create", "-size", &size, "-fs", kind];
                host.must(&argv_at(create.iter().copied(), &file))?;
                let attach = attach_image(&file, &point);
                setup.make(DETACH.of([file.into()]), &attach)?;
                // hdiutil(1): detach takes a mount point, too.
                setup.moves(argv_at(["hdiutil", "detach"], &point), attach);
                Ok((point, Vec::new()))
            }
        }
    }

    /// A pool on the file one dataset.
    fn pool(
        &self,
        setup: &mut Setup<'_>,
        private: &Path,
    ) -> Result<(PathBuf, Vec<Fact>), LayerError> {
        let host = setup.host();
        let file = private.join("disk");
        host.create_file(&file, self.bytes, Filling::Allocated)?;
        setup.lies_in(private);
        let name = setup.plain_name("pool");
        // zpool(8): a file is named by its full path. cachefile=none: nothing imports it when the machine
        // starts again.
        let create = [
            "zpool",
            "create",
            "-o",
            "cachefile=none",
            "-O",
            "mountpoint=none",
            &name,
        ];
        setup.make(
            zfs::DESTROY.of([name.clone().into()]),
            &argv_at(create.iter().copied(), &file),
        )?;
        // zpool(8): import -d DIRECTORY looks for the file there.
        let mut import = argv_at(["zpool", "import", "-o", "cachefile=none", "-d"], private);
        import.push(name.clone().into());
        setup.moves(argv(["zpool", "export", &name]), import);
        let dataset = format!("{name}/data");
        let point = setup.mount_point()?;
        // zfs(8): noauto: an import brings it back unmounted.
        let mut create = argv(["zfs", "create", "-o", "canmount=noauto", "-o"]);
        let mut at = OsString::from("mountpoint=");
        at.push(&point);
        create.push(at);
        create.extend(zfs::words(&self.properties));
        create.push(dataset.clone().into());
        host.must(&create)?;
        setup.mount_with(argv(["zfs", "mount", &dataset]), &point, Memory::No)?;
        let facts = zfs::obtained(host, &dataset, &self.properties)?;
        Ok((point, facts))
    }
}

impl Layer for Native {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("{NAME}, file-system = {}", self.file_system)
    }

    fn describe_asked(&self) -> String {
        let place = match &self.directory {
            Some(directory) => format!(" in {}", directory.shown()),
            None => String::new(),
        };
        format!(
            "{} of the machine's own on a file of {}{place}{}",
            self.file_system,
            unit::bytes(self.bytes),
            zfs::shown(&self.properties)
        )
    }

    fn needs(&self) -> Needs {
        // Which programs, only the machine's system tells: see `dangers`.
        Needs {
            root: true,
            ..Needs::default()
        }
    }

    fn disk_needed(&self) -> Option<(PathBuf, u64)> {
        Some((self.directory.clone().unwrap_or_default(), self.bytes))
    }

    /// Nothing that is there is written over: what a machine cannot do is refused here, before anything is
    /// touched.
    fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        let host = machine.host;
        let found = match self.found(host) {
            Ok((_, found)) => found,
            Err(error) => return vec![Danger::Refused(error)],
        };
        let needs = Needs {
            tools: found.tools,
            ..Needs::default()
        };
        let missing = host.missing(&needs).into_iter();
        let missing = missing.map(|error| Danger::Refused(error.into()));
        // Only ZFS has any.
        let impossible = zfs::impossible(machine, "zfs", &self.properties);
        missing.chain(impossible).collect()
    }

    fn set_up(&self, setup: &mut Setup<'_>, _below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let (system, found) = self.found(host)?;
        let base = match &self.directory {
            Some(directory) => dir::usable(host, directory)?,
            None => setup.scratch()?,
        };
        let private = base.join(setup.name(NAME));
        setup.create_tree(&private)?;
        let (point, made) = self.made(setup, &found.way, &private)?;
        let Some(mount) = place::mounted_at(host, &point)? else {
            return Err(LayerError::refused(
                format!("nothing is mounted at {}", point.shown()),
                "look whether mount(8) shows it there",
            ));
        };
        let mut facts = vec![
            Fact::new("system", system.called),
            Fact::new("file system", &mount.file_system),
            Fact::new("mounted from", mount.source.to_string_lossy()),
            Fact::new("mount options in force", mount.options.join(",")),
            Fact::new("size of the file", unit::bytes(self.bytes)),
        ];
        facts.extend(made);
        let devices = match host.is_here() {
            true => block::under_mount(host, &mount),
            false => Vec::new(),
        };
        let disks = block::disks(host, &devices);
        // No layer below says what the file lies on, and what its cache promises.
        facts.extend(disks.iter().map(|disk| block::fact(host, disk)));
        Ok(StandingLayer {
            disks,
            devices,
            ..StandingLayer::new(NAME, facts, Gives::Mounted(point))
        })
    }
}
