//! A block device in a pool of ZFS.

use crate::stack::zfs::properties as zfs;
use crate::stack::zfs::supported::impossible;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::gives::pool;
use stackrace_foundation::foundation::{
    Danger, Gives, GivesKind, Inspection, Layer, LayerError, LayerKind, ON_TWO_DISKS, Setup,
    StandingLayer, Takes, assembled,
};
use stackrace_machine::host::{Needs, argv};
use std::path::Path;

/// Smallest volume: below it no file system fits, and the mistake is a unit.
const SIZE_MIN: u64 = 1 << 20;

/// The layer `zvol` of a study.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "zvol",
    summary: "A block device in a pool of ZFS; every property is read back.",
    settings: &[
        SettingDoc::bytes("size", "", "Size of the device.").required(),
        SettingDoc::bytes(
            "volblocksize",
            "",
            "Bytes of one of its blocks in the pool, a power of two.",
        ),
        SettingDoc::flag(
            "sparse",
            "false",
            "Whether no room is reserved for it in the pool.",
        ),
        zfs::COMPRESSION,
        zfs::SYNC,
        zfs::PRIMARYCACHE,
        zfs::LOGBIAS,
        zfs::DEDUP,
        zfs::PROPERTIES,
    ],
    takes: Takes::Pool,
    gives: GivesKind::Devices,
    example: "zvol = { size = \"1 GiB\", volblocksize = \"16 KiB\", compression = \"off\" }",
    words: &[&zfs::DATASET],
    parse,
    shapes: &[
        &[
            "loop = { size = \"1 GiB\", count = 4 }",
            "zpool = { topology = \"raid10\" }",
            "zvol = { size = \"256 MiB\", volblocksize = \"16 KiB\" }",
            "xfs = {}",
        ],
        &[
            ON_TWO_DISKS,
            "zpool = { topology = \"mirror\" }",
            "zvol = { size = \"256 MiB\" }",
            "ext3 = {}",
        ],
        &[
            "loop = { size = \"1 GiB\" }",
            "lvm = {}",
            "zpool = {}",
            "zvol = { size = \"256 MiB\" }",
            "zpool = {}",
            "dataset = {}",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: super::testing::VOLUME,
    over_shell: zfs::OVER_SHELL,
    ..LayerKind::EMPTY
};

struct Zvol {
    size: u64,
    sparse: bool,
    properties: Vec<(String, String)>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let size = settings.bytes("size")?;
    // A volume is a whole number of its blocks, the largest of which have 128 KiB.
    if size < SIZE_MIN || !size.is_multiple_of(128 << 10) {
        return Err(Refusal::at(
            settings.span_of("size"),
            format!("{size} bytes is not a whole number of blocks of 128 KiB"),
            "write a size of at least 1 MiB, like \"1 GiB\"",
        ));
    }
    Ok(Box::new(Zvol {
        size,
        sparse: settings.flag("sparse")?,
        properties: zfs::asked(settings, &[], &["volblocksize"])?,
    }))
}

impl Layer for Zvol {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn describe_asked(&self) -> String {
        format!(
            "{}volume of {}{}",
            if self.sparse { "sparse " } else { "" },
            unit::bytes(self.size),
            zfs::shown(&self.properties)
        )
    }

    fn needs(&self) -> Needs {
        Needs::as_root(&["zfs", "wipefs"], zfs::PACKAGES)
    }

    fn dangers(&self, machine: &Inspection<'_>) -> Vec<Danger> {
        impossible(machine, "zfs", &self.properties)
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let host = setup.host();
        let pool = pool(below)?.name;
        let name = format!("{pool}/volume");
        // It ends with its pool, which the journal names.
        let mut create = argv(["zfs", "create"]);
        if self.sparse {
            // No room is reserved for it in the pool (zfs-create(8)).
            create.push("-s".into());
        }
        create.extend(zfs::words(&self.properties));
        create.extend(argv(["-V", &self.size.to_string(), &name]));
        host.must(&create)?;
        let path = Path::new("/dev/zvol").join(&name);
        // udev makes the link some time after the command has returned.
        setup.await_device(&path)?;
        let mut asked = self.properties.clone();
        asked.push(("volsize".to_string(), self.size.to_string()));
        Ok(assembled::standing(
            host,
            "zvol",
            zfs::obtained(host, &name, &asked)?,
            path,
            pool,
        ))
    }
}
