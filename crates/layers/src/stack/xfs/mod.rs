//! XFS on one device.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::OverShell;
use stackrace_foundation::foundation::plain::{self, Plain};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, AloneOrAmount, AloneOrOneOf, Amount, Pairs, Word},
    Words,
};
use stackrace_foundation::foundation::{FileData, GivesKind, LayerError, LayerKind, options};
use stackrace_machine::host::{Host, Package, argv};
use std::ffi::OsStr;
use std::path::Path;

/// The layer `xfs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "xfs",
    summary: "XFS on one device of at least 300 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "xfs = { mkfs = [\"-m\", \"reflink=0\"], mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse: |settings| XFS.parse(settings),
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.xfs")],
    reads: &[sections],
    over_shell: OverShell::Nearest("native = { file-system = \"xfs\", size = \"1 GiB\" }"),
    shapes: &[&["loop = { size = \"1 GiB\" }", "xfs = {}"]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    data: FileData::IN_PLACE,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("xfsprogs", &["mkfs.xfs", "xfs_info"])];

/// mkfs.xfs(8). Not on the list: other devices and files (`-c`, `-p`, `-r rtdev=`, `-l logdev=`,
/// `-d name=`), and what is set by the layer (`-m uuid=`).
const MKFS: Words = Words {
    tool: "mkfs.xfs",
    manual: "mkfs.xfs(8)",
    options: &[
        ("-b", Pairs(&[("size", Amount)])),
        (
            "-d",
            Pairs(&[
                ("agcount", Amount),
                ("agsize", Amount),
                ("concurrency", Amount),
                ("cowextsize", Amount),
                ("daxinherit", Amount),
                ("extszinherit", Amount),
                ("noalign", Alone),
                ("projinherit", Amount),
                ("rtinherit", Amount),
                ("sectsize", Amount),
                ("su", Amount),
                ("sunit", Amount),
                ("sw", Amount),
                ("swidth", Amount),
            ]),
        ),
        (
            "-i",
            Pairs(&[
                ("align", Amount),
                ("attr", Amount),
                ("exchange", Amount),
                ("maxpct", Amount),
                ("nrext64", Amount),
                ("perblock", Amount),
                ("projid32bit", Amount),
                ("size", Amount),
                ("sparse", Amount),
            ]),
        ),
        ("-K", Alone),
        ("-L", Word),
        (
            "-l",
            Pairs(&[
                ("agnum", Amount),
                ("concurrency", Amount),
                ("internal", AloneOrAmount),
                ("lazy-count", Amount),
                ("sectsize", Amount),
                ("size", Amount),
                ("su", Amount),
                ("sunit", Amount),
                ("version", Amount),
            ]),
        ),
        (
            "-m",
            Pairs(&[
                ("autofsck", Amount),
                ("bigtime", Amount),
                ("crc", Amount),
                ("finobt", Amount),
                ("inobtcount", Amount),
                ("metadir", Amount),
                ("reflink", Amount),
                ("rmapbt", Amount),
            ]),
        ),
        (
            "-n",
            Pairs(&[
                ("ftype", Amount),
                ("parent", Amount),
                ("size", Amount),
                ("version", Word),
            ]),
        ),
        ("-q", Alone),
        ("-s", Pairs(&[("size", Amount)])),
    ],
};

/// xfs(5). Not on the list: other devices (`logdev`, `rtdev`), and what leaves changes or checks out
/// (`norecovery`, `nouuid`).
const MOUNT: Words = Words {
    tool: "a mount of XFS",
    manual: "xfs(5)",
    options: &[
        ("allocsize", Amount),
        ("attr2", Alone),
        ("dax", AloneOrOneOf(&["always", "never", "inode"])),
        ("discard", Alone),
        ("filestreams", Alone),
        ("gquota", Alone),
        ("grpid", Alone),
        ("ikeep", Alone),
        ("inode32", Alone),
        ("inode64", Alone),
        ("largeio", Alone),
        ("logbsize", Amount),
        ("logbufs", Amount),
        ("max_atomic_write", Amount),
        ("noalign", Alone),
        ("noattr2", Alone),
        ("nodiscard", Alone),
        ("nogrpid", Alone),
        ("noikeep", Alone),
        ("nolargeio", Alone),
        ("noquota", Alone),
        ("pquota", Alone),
        ("prjquota", Alone),
        ("quota", Alone),
        ("sunit", Amount),
        ("swalloc", Alone),
        ("swidth", Amount),
        ("uquota", Alone),
        ("usrquota", Alone),
        ("wsync", Alone),
    ],
};

const XFS: &Plain = &Plain {
    kind: &KIND,
    tools: &["mkfs.xfs", "xfs_info", "wipefs", "mount", "umount"],
    mkfs: &MKFS,
    mount: &MOUNT,
    // No discard (mkfs.xfs(8)): blocks that were laid out stay.
    keeping: |_| &["-K"],
    // XFS refuses to mount a second file system of the same UUID: ours is drawn for each.
    uuid: |uuid| ["-m".to_string(), format!("uuid={uuid}")],
    repair: &["xfs_repair", "-L"],
    geometry,
    all_options: plain::untold,
};

/// `xfs_info`, one fact a section: `data`, `bsize=4096 blocks=76800 imaxpct=25 sunit=0 …`.
fn geometry(host: &dyn Host, root: &Path, _device: &Path) -> Result<Vec<Fact>, LayerError> {
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
            // Nothing in front of the sign: the section goes on.
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
