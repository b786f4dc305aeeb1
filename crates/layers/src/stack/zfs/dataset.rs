//! A file system in a pool of ZFS.

use crate::stack::zfs::properties as zfs;
use crate::stack::zfs::supported::impossible;
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_foundation::foundation::gives::pool;
use stackrace_foundation::foundation::{
    Danger, Gives, GivesKind, Inspection, Layer, LayerError, LayerKind, Memory, Setup,
    StandingLayer, Takes, block, filesystem,
};
use stackrace_machine::host::{Needs, argv, argv_at};
use std::ffi::OsString;

/// The layer `dataset` of a study.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "dataset",
    summary: "A file system of ZFS in a pool; every property is read back.",
    settings: &[
        zfs::COMPRESSION,
        SettingDoc::bytes("recordsize", "", "Largest block of a file, a power of two."),
        zfs::SYNC,
        SettingDoc::choice(
            "atime",
            &["on", "off"],
            "",
            "Whether the time of the last access is kept.",
        ),
        zfs::PRIMARYCACHE,
        zfs::LOGBIAS,
        zfs::DEDUP,
        SettingDoc::choice(
            "xattr",
            &["on", "off", "sa", "dir"],
            "",
            "Where extended attributes are kept.",
        ),
        zfs::PROPERTIES,
    ],
    takes: Takes::Pool,
    gives: GivesKind::Directory,
    example: "dataset = { compression = \"lz4\", recordsize = \"128 KiB\", atime = \"off\" }",
    words: &[&zfs::DATASET],
    parse,
    reads: &[|text| zfs::facts(&[], &[zfs::lines(text), zfs::table(text)].concat())],
    over_shell: zfs::OVER_SHELL,
    ..LayerKind::EMPTY
};

struct Dataset {
    properties: Vec<(String, String)>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(Dataset {
        properties: zfs::asked(settings, &["atime", "xattr"], &["recordsize"])?,
    }))
}

impl Layer for Dataset {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        format!("dataset{}", zfs::shown(&self.properties))
    }

    fn needs(&self) -> Needs {
        Needs::as_root(&["zfs", "umount"], zfs::PACKAGES)
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let name = format!("{}/data", pool(below)?.name);
        let root = setup.mount_point()?;
        // zfsutil: at another place than the dataset's own mountpoint (mount.zfs(8)).
        let mount = argv_at(["mount", "-t", "zfs", "-o", "zfsutil", &name], &root);
        setup.mount_with(mount, &root, Memory::No)?;
        let mount = filesystem::mounted(host, &root)?;
        let facts = vec![Fact::new("mount options in force", mount.options.join(","))];
        Ok(StandingLayer::new("dataset", facts, Gives::Mounted(root)))
    }

    fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        impossible(machine, "zfs", &self.properties)
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let name = format!("{}/data", pool(below)?.name);
        let root = setup.mount_point()?;
        // It ends with its pool, which the journal names.
        // noauto: an import of the pool brings the dataset back unmounted (zfsprops(7)).
        let mut create = argv(["zfs", "create", "-o", "canmount=noauto", "-o"]);
        let mut point = OsString::from("mountpoint=");
        point.push(&root);
        create.push(point);
        create.extend(zfs::words(&self.properties));
        create.push(name.clone().into());
        host.must(&create)?;
        setup.mount_with(argv(["zfs", "mount", &name]), &root, Memory::No)?;
        let mount = filesystem::mounted(host, &root)?;
        let mut facts = zfs::obtained(host, &name, &self.properties)?;
        facts.push(Fact::new("file system", &mount.file_system));
        facts.push(Fact::new("mount options in force", mount.options.join(",")));
        facts.extend(block::kernel(host));
        Ok(StandingLayer::new("dataset", facts, Gives::Mounted(root)))
    }
}
