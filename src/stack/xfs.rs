//! XFS on one device.

use crate::event::Fact;
use crate::host::{Host, Package, argv};
use crate::stack::common::{
    options,
    plain::{self, Plain},
};
use crate::stack::error::LayerError;
use crate::stack::gives::GivesKind;
use crate::stack::layer::{KillStack, LayerKind, Tried};
use std::ffi::OsStr;
use std::path::Path;

/// XFS.
pub(crate) const KIND: LayerKind = LayerKind {
    name: "xfs",
    summary: "XFS on one device of at least 300 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "xfs = { mkfs = [\"-m\", \"reflink=0\"], mount = [\"noatime\"] }",
    parse: |settings| XFS.parse(settings),
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.xfs")],
    reads: &[sections],
    tried: Tried {
        shapes: &[&["loop = { size = \"1 GiB\" }", "xfs = {}"]],
        on_devices: &[(1, &["xfs = {}"])],
        kills: &[KillStack::on_one("xfs", ("400 MiB", 1), &["xfs = {}"])],
        changes: &["mkfs.xfs"],
        ..Tried::NOWHERE
    },
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("xfsprogs", &["mkfs.xfs", "xfs_info"])];

const XFS: &Plain = &Plain {
    name: "xfs",
    tools: &["mkfs.xfs", "xfs_info", "wipefs", "mount", "umount"],
    packages: PACKAGES,
    keeping: |_| &["-K"],
    uuid: |uuid| ["-m".to_string(), format!("uuid={uuid}")],
    geometry,
    all_options: plain::untold,
};

/// `xfs_info`, one fact a section: `data`, `bsize=4096 blocks=76800 imaxpct=25 sunit=0 …`.
fn geometry(host: &dyn Host, root: &Path, _device: &Path) -> Result<Vec<Fact>, LayerError> {
    let output = host.must(&argv([OsStr::new("xfs_info"), root.as_os_str()]))?;
    Ok(sections(&output.stdout))
}

pub(crate) fn sections(text: &str) -> Vec<Fact> {
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
