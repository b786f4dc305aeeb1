//! JFS on one device.
//!
//! Its label has 16 letters, and mkfs.jfs draws the UUID itself. `jfs_tune` can set it later, but a kill in
//! between would leave a disk without a mark of ours, so that disks are refused.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::setting::{Refusal, Settings};
use stackrace_foundation::foundation::plain::{self, AskedUnmarked, Unmarked};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, OneOf, Word},
    Words,
};
use stackrace_foundation::foundation::{FileData, GivesKind, Layer, LayerKind, options};
use stackrace_machine::host::Package;
use stackrace_machine::host::imagined::{Tool, said};

/// The layer `jfs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "jfs",
    summary: "JFS by IBM, with a journal, on one device of at least 16 MiB that is no disk.",
    settings: &[options::MKFS, options::MOUNT],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "jfs = { mkfs = [\"-s\", \"32\"], mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse,
    packages: PACKAGES,
    imagined: &[
        plain::imagined_mkfs("mkfs.jfs"),
        Tool::new("jfs_tune", |_, _| {
            said("Aggregate block size:\t4096 bytes\n")
        }),
    ],
    reads: &[|text| plain::told(text, &GEOMETRY)],
    shapes: &[
        &["loop = { size = \"1 GiB\" }", "jfs = {}"],
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "jfs = { mkfs = [\"-s\", \"4\"], mount = [\"noatime\"] }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    data: FileData::IN_PLACE,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new(
    "jfsutils",
    &["mkfs.jfs", "jfs_tune", "jfs_fsck"],
)];

/// jfs_mkfs(8). Not on the list: other devices (`-j`, `-J`), what formats nothing (`-V`), and what the layer
/// gives (`-q`).
const MKFS: Words = Words {
    tool: "mkfs.jfs",
    manual: "jfs_mkfs(8)",
    options: &[("-c", Alone), ("-L", Word), ("-O", Alone), ("-s", Amount)],
};

/// Documentation/admin-guide/jfs.rst of the kernel; mount(8) lacks `discard`. Not on the list: owners and
/// modes, quotas, `resize`, which a first mount refuses, and what leaves the journal out (`nointegrity`).
const MOUNT: Words = Words {
    tool: "a mount of JFS",
    manual: "jfs.rst of the kernel",
    options: &[
        // With its value alone, as the system shows it.
        ("discard", Amount),
        ("errors", OneOf(&["continue", "panic", "remount-ro"])),
        ("iocharset", Word),
        ("nodiscard", Alone),
    ],
};

/// Lines of `jfs_tune -l` that say how the file system was made. The size is counted in physical blocks and
/// leaves the journal out.
const GEOMETRY: [&str; 5] = [
    "JFS flags",
    "Aggregate block size",
    "Aggregate size",
    "Physical block size",
    "Allocation group size",
];

const JFS: Unmarked = Unmarked {
    kind: &KIND,
    why: "a JFS cannot be marked as ours, so it could not be wiped from a disk afterwards",
    tools: &["mkfs.jfs", "jfs_tune", "wipefs", "mount", "umount"],
    ask: &["jfs_tune", "-l"],
    lines: &GEOMETRY,
    // The kernel does not replay the journal: until jfs_fsck has done it, a mount is refused.
    repair: &["jfs_fsck", "-a"],
};

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    Ok(Box::new(AskedUnmarked {
        of: &JFS,
        // Without -q it asks first, and ends where there is no answer.
        command: vec!["mkfs.jfs".to_string(), "-q".to_string()],
        text: KIND.name.to_string(),
        mkfs: options::mkfs(settings, &MKFS)?,
        mount: options::mount(settings, &MOUNT)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};
    use stackrace_base::event::Fact;
    use stackrace_foundation::foundation::ON_A_DISK;

    #[test]
    fn a_disk_is_refused_where_it_is_written() {
        let refused = |bottom: &str| Stack::new(vec![layer(bottom), layer("jfs = {}")]).err();
        let (place, why) = refused(ON_A_DISK).unwrap();
        assert_eq!(place, 1);
        assert!(why.contains("put it on loop"), "{why}");
        assert!(refused("loop = { size = \"1 GiB\" }").is_none());
    }

    #[test]
    fn other_devices_and_a_mount_without_the_journal_are_refused() {
        for setting in [
            "mkfs = [\"-j\", \"sdb\"]",
            "mkfs = [\"-J\", \"device=sdb\"]",
            "mount = [\"nointegrity\"]",
        ] {
            let refusal = try_layer(&format!("jfs = {{ {setting} }}")).err();
            let message = refusal.unwrap().message;
            assert!(message.contains("is no word that a study"), "{message}");
        }
    }

    #[test]
    fn what_jfs_tune_prints_is_read() {
        // jfsutils 1.1.15, shortened.
        let text = "jfs_tune version 1.1.15, 04-Mar-2011\n\nJFS filesystem superblock:\n\n\
            JFS magic number:\t'JFS1'\nJFS flags:\t\tJFS_LINUX  JFS_COMMIT  JFS_GROUPCOMMIT  JFS_INLINELOG  \n\
            Aggregate block size:\t4096 bytes\nAggregate size:\t\t128608 blocks\n\
            Filesystem creation:\tTue Nov 24 10:53:27 2026\nVolume label:\t\t''\n";
        let facts = [
            Fact::new(
                "JFS flags",
                "JFS_LINUX  JFS_COMMIT  JFS_GROUPCOMMIT  JFS_INLINELOG",
            ),
            Fact::new("Aggregate block size", "4096 bytes"),
            Fact::new("Aggregate size", "128608 blocks"),
        ];
        assert_eq!(plain::told(text, &GEOMETRY), facts);
    }
}
