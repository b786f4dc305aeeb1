//! XFS on one device.

use super::{
    Gives, GivesKind, Layer, LayerError, LayerKind, RaisedLayer, Raising, Takes, block, filesystem,
    options, raising::Memory,
};
use crate::event::{Fact, LayerFacts};
use crate::host::{Host, Needs, argv};
use crate::setting::{Refusal, Settings};
use std::ffi::OsStr;
use std::path::Path;

/// XFS.
pub(super) const KIND: LayerKind = LayerKind {
    name: "xfs",
    summary: "XFS on one device of at least 300 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Directory,
    example: "xfs = { mkfs = [\"-m\", \"reflink=0\"], mount = [\"noatime\"] }",
    parse,
};

struct Xfs {
    mkfs: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(Xfs {
        mkfs: options::mkfs(settings)?,
        mount: options::mount(settings)?,
    }))
}

impl Layer for Xfs {
    fn kind(&self) -> &'static str {
        "xfs"
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
            tools: &["mkfs.xfs", "xfs_info", "wipefs", "mount", "umount"],
            file_system: Some("xfs"),
            loop_devices: false,
            ..Needs::default()
        }
    }

    fn raise(&self, raising: &mut Raising<'_>, below: Gives) -> Result<RaisedLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let device = devices[0].path.clone();
        // -K: blocks that were laid out are not discarded.
        let mut command = vec!["mkfs.xfs".to_string(), "-K".to_string()];
        command.extend(self.mkfs.iter().cloned());
        let uuid = |uuid: &str| vec!["-m".to_string(), format!("uuid={uuid}")];
        filesystem::format(raising, &command, uuid, &devices)?;
        let root = raising.mount("xfs", device.as_os_str(), &self.mount, Memory::No)?;
        let mut facts = geometry(raising.host(), &root)?;
        facts.extend(filesystem::mount_facts(
            raising.host(),
            &root,
            "xfs",
            &self.mount,
            &[],
        )?);
        Ok(RaisedLayer {
            gives: Gives::Mounted(root),
            facts: LayerFacts {
                layer: "xfs".to_string(),
                facts,
            },
            devices: vec![block::kernel_name(raising.host(), &device)],
            disks: Vec::new(),
        })
    }
}

/// `xfs_info`, one fact a section: `data`, `bsize=4096 blocks=76800 imaxpct=25 sunit=0 …`.
fn geometry(host: &dyn Host, root: &Path) -> Result<Vec<Fact>, LayerError> {
    let output = host.must(&argv([OsStr::new("xfs_info"), root.as_os_str()]))?;
    Ok(sections(&output.stdout))
}

pub(super) fn sections(text: &str) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for line in text.lines() {
        let Some((name, values)) = line.split_once('=') else {
            continue;
        };
        let values = values.replace(',', " ");
        let values = values.split_whitespace().collect::<Vec<_>>().join(" ");
        match (name.trim(), facts.last_mut()) {
            ("", Some(last)) => {
                last.value.push(' ');
                last.value.push_str(&values);
            }
            (name, _) => facts.push(Fact::new(name, values)),
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sections_of_xfs_info_become_facts() {
        let facts = sections(concat!(
            "meta-data=/dev/loop0             isize=512    agcount=4, agsize=19200 blks\n",
            "         =                       sectsz=512   attr=2, projid32bit=1\n",
            "log      =internal log           bsize=4096   blocks=16384, version=2\n",
        ));
        assert_eq!(
            facts,
            [
                Fact::new(
                    "meta-data",
                    "/dev/loop0 isize=512 agcount=4 agsize=19200 blks sectsz=512 attr=2 projid32bit=1"
                ),
                Fact::new("log", "internal log bsize=4096 blocks=16384 version=2"),
            ]
        );
    }
}
