//! ext2, ext3 and ext4 on one device.
//!
//! By default everything is initialised when the file system is made, so that no background thread
//! zeroes inode tables during the first trials, and blocks that were laid out are not discarded.

use super::{
    Gives, GivesKind, Layer, LayerError, LayerKind, RaisedLayer, Raising, Takes, block, filesystem,
    options, raising::Memory,
};
use crate::event::{Fact, LayerFacts};
use crate::host::{Host, Needs, argv};
use crate::setting::{Refusal, SettingDoc, Settings};
use std::ffi::OsStr;
use std::path::Path;

/// What is given to `mkfs` where the study gives no `-E` of its own.
pub(super) const EXTENDED: &str = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";

const SETTINGS: &[SettingDoc] = &[
    SettingDoc {
        doc: "Words added to the mkfs command, as it takes them; without a -E of your own, -E lazy_itable_init=0,lazy_journal_init=0,nodiscard is given.",
        ..options::MKFS
    },
    options::MOUNT,
];

/// ext2.
pub(super) const EXT2: LayerKind = LayerKind {
    name: "ext2",
    summary: "The second extended file system, without a journal, on one device.",
    settings: SETTINGS,
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Directory,
    example: "ext2 = { mount = [\"noatime\"] }",
    parse: |settings| parse(settings, Version::Ext2),
};

/// ext3.
pub(super) const EXT3: LayerKind = LayerKind {
    name: "ext3",
    summary: "The third extended file system, with a journal, on one device.",
    settings: SETTINGS,
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Directory,
    example: "ext3 = { mount = [\"data=writeback\"] }",
    parse: |settings| parse(settings, Version::Ext3),
};

/// ext4.
pub(super) const EXT4: LayerKind = LayerKind {
    name: "ext4",
    summary: "The fourth extended file system on one device.",
    settings: SETTINGS,
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Directory,
    example: "ext4 = { mkfs = [\"-b\", \"4096\"], mount = [\"noatime\", \"commit=30\"] }",
    parse: |settings| parse(settings, Version::Ext4),
};

/// Lines of `dumpe2fs -h` that say how the file system was made.
const GEOMETRY: [&str; 15] = [
    "Filesystem features",
    "Default mount options",
    "Inode count",
    "Block count",
    "Reserved block count",
    "Block size",
    "Cluster size",
    "Blocks per group",
    "RAID stride",
    "RAID stripe width",
    "Flex block group size",
    "Inode size",
    "Journal features",
    "Total journal size",
    "Journal checksum type",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Ext2,
    Ext3,
    Ext4,
}

struct Ext {
    version: Version,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings, version: Version) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(Ext {
        version,
        mkfs: options::mkfs(settings)?,
        mount: options::mount(settings)?,
    }))
}

impl Ext {
    fn command(&self) -> Vec<String> {
        let mut command = vec![format!("mkfs.{}", self.kind())];
        if !self.mkfs.iter().any(|word| word.starts_with("-E")) {
            command.extend(["-E".to_string(), EXTENDED.to_string()]);
        }
        command.extend(self.mkfs.iter().cloned());
        command
    }
}

impl Layer for Ext {
    fn kind(&self) -> &'static str {
        match self.version {
            Version::Ext2 => "ext2",
            Version::Ext3 => "ext3",
            Version::Ext4 => "ext4",
        }
    }

    fn describe_asked(&self) -> String {
        filesystem::asked(self.kind(), &self.mkfs, &self.mount)
    }

    fn takes(&self) -> Takes {
        Takes::Devices { min: 1, max: 1 }
    }

    fn needs(&self) -> Needs {
        Needs {
            root: true,
            tools: match self.version {
                Version::Ext2 => &["mkfs.ext2", "dumpe2fs", "wipefs", "mount", "umount"],
                Version::Ext3 => &["mkfs.ext3", "dumpe2fs", "wipefs", "mount", "umount"],
                Version::Ext4 => &["mkfs.ext4", "dumpe2fs", "wipefs", "mount", "umount"],
            },
            file_system: Some(self.kind()),
            loop_devices: false,
            ..Needs::default()
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let device = devices[0].path.clone();
        let uuid = |uuid: &str| vec!["-U".to_string(), uuid.to_string()];
        filesystem::format(raising, &self.command(), uuid, &devices)?;
        let source = device.as_os_str();
        let root = raising.mount(self.kind(), source, &self.mount, Memory::No)?;
        let name = block::kernel_name(raising.host(), &device);
        let mut facts = geometry(raising.host(), source)?;
        let all = all_options(raising.host(), &name);
        facts.extend(filesystem::mount_facts(
            raising.host(),
            &root,
            self.kind(),
            &self.mount,
            &all,
        )?);
        if !all.is_empty() {
            facts.push(Fact::new(
                "options of the driver, defaults included",
                all.join(","),
            ));
        }
        Ok(RaisedLayer {
            gives: Gives::Mounted(root),
            facts: LayerFacts {
                layer: self.kind().to_string(),
                facts,
            },
            devices: vec![name],
            disks: Vec::new(),
        })
    }
}

fn geometry(host: &dyn Host, device: &OsStr) -> Result<Vec<Fact>, LayerError> {
    let output = host.must(&argv([OsStr::new("dumpe2fs"), OsStr::new("-h"), device]))?;
    Ok(header(&output.stdout))
}

/// What `dumpe2fs -h` prints of what matters to figures.
pub(super) fn header(text: &str) -> Vec<Fact> {
    let facts = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        GEOMETRY
            .contains(&name)
            .then(|| Fact::new(name, value.trim()))
    });
    facts.collect()
}

/// The ext4 driver, which may serve ext2 and ext3 too, lists every option it follows.
fn all_options(host: &dyn Host, device: &str) -> Vec<String> {
    let list = Path::new("/proc/fs/ext4").join(device).join("options");
    host.read_text(&list)
        .unwrap_or_default()
        .lines()
        .map(str::to_string)
        .collect()
}
