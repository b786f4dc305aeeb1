//! ext2, ext3 and ext4 on one device.
//!
//! By default everything is initialised when the file system is made, so that no background thread
//! zeroes inode tables during the first trials, and blocks that were laid out are not discarded.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{OverShell, SettingDoc};
use stackrace_foundation::foundation::plain::{self, Plain};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, AloneOrAmount, AloneOrOneOf, Amount, Names, OneOf, Pairs, Word},
    Words,
};
use stackrace_foundation::foundation::{
    FileData, GivesKind, LayerError, LayerKind, ON_A_DISK, options,
};
use stackrace_machine::host::{Host, Package, argv};
use std::ffi::OsStr;
use std::path::Path;

/// Options given to `mkfs` where the study gives no `-E` of its own. With lazy initialisation the
/// kernel would write inode tables during the first trials; a discard would give back blocks that
/// were laid out (mke2fs(8)).
pub(super) const EXTENDED: &str = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";

const PACKAGES: &[Package] = &[Package::new(
    "e2fsprogs",
    &["mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "dumpe2fs"],
)];

const SETTINGS: &[SettingDoc] = &[
    SettingDoc {
        doc: "Words added to the mkfs command, as it takes them; without a -E of your own, -E lazy_itable_init=0,lazy_journal_init=0,nodiscard is given.",
        ..options::MKFS
    },
    options::MOUNT,
];

/// The like of all three, which the machine's own tools make.
const OVER_SHELL: OverShell =
    OverShell::Nearest("native = { file-system = \"ext4\", size = \"1 GiB\" }");

/// The layer `ext2` of a study.
pub(super) const EXT2: LayerKind = LayerKind {
    name: "ext2",
    summary: "The second extended file system, without a journal, on one device.",
    settings: SETTINGS,
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "ext2 = { mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse: |settings| {
        const EXT: &Plain = &version(
            &EXT2,
            &["mkfs.ext2", "dumpe2fs", "wipefs", "mount", "umount"],
        );
        EXT.parse(settings)
    },
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.ext2")],
    over_shell: OVER_SHELL,
    #[cfg(any(test, feature = "testing"))]
    tried: testing::EXT2,
    data: FileData::IN_PLACE,
    ..LayerKind::EMPTY
};

/// The layer `ext3` of a study.
pub(super) const EXT3: LayerKind = LayerKind {
    name: "ext3",
    summary: "The third extended file system, with a journal, on one device.",
    settings: SETTINGS,
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "ext3 = { mount = [\"data=writeback\"] }",
    words: &[&MKFS, &MOUNT],
    parse: |settings| {
        const EXT: &Plain = &version(
            &EXT3,
            &["mkfs.ext3", "dumpe2fs", "wipefs", "mount", "umount"],
        );
        EXT.parse(settings)
    },
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.ext3")],
    over_shell: OVER_SHELL,
    #[cfg(any(test, feature = "testing"))]
    tried: testing::EXT3,
    data: FileData::IN_PLACE,
    ..LayerKind::EMPTY
};

/// The layer `ext4` of a study.
pub(super) const EXT4: LayerKind = LayerKind {
    name: "ext4",
    summary: "The fourth extended file system on one device.",
    settings: SETTINGS,
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "ext4 = { mkfs = [\"-b\", \"4096\"], mount = [\"noatime\", \"commit=30\"] }",
    words: &[&MKFS, &MOUNT],
    parse: |settings| {
        const EXT: &Plain = &version(
            &EXT4,
            &["mkfs.ext4", "dumpe2fs", "wipefs", "mount", "umount"],
        );
        EXT.parse(settings)
    },
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.ext4")],
    reads: &[header],
    over_shell: OVER_SHELL,
    shapes: &[
        &[
            "loop = { size = \"1 GiB\" }",
            "ext4 = { mount = [\"noatime\"] }",
        ],
        &[ON_A_DISK, "ext4 = {}"],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::EXT4,
    data: FileData::IN_PLACE,
    ..LayerKind::EMPTY
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

/// mke2fs(8). Not on the list: what reads files (`-l`, `-d`), writes them (`-z`), makes another
/// device a part (`-J device=`), only pretends (`-n`), or is set by the layer (`-U`).
const MKFS: Words = Words {
    tool: "mkfs of ext2, ext3 and ext4",
    manual: "mke2fs(8)",
    options: &[
        ("-b", Amount),
        ("-C", Amount),
        ("-D", Alone),
        (
            "-E",
            Pairs(&[
                ("assume_storage_prezeroed", AloneOrAmount),
                ("desc_size", Amount),
                ("discard", Alone),
                ("encoding", Word),
                ("hash_seed", Word),
                ("lazy_itable_init", AloneOrAmount),
                ("lazy_journal_init", AloneOrAmount),
                ("mmp_update_interval", Amount),
                ("nodiscard", Alone),
                ("num_backup_sb", Amount),
                ("orphan_file_size", Amount),
                ("packed_meta_blocks", AloneOrAmount),
                ("quotatype", Word),
                ("resize", Amount),
                ("stride", Amount),
                ("stripe-width", Amount),
                ("stripe_width", Amount),
            ]),
        ),
        ("-e", OneOf(&["continue", "remount-ro", "panic"])),
        ("-G", Amount),
        ("-g", Amount),
        ("-I", Amount),
        ("-i", Amount),
        (
            "-J",
            Pairs(&[
                ("fast_commit_size", Amount),
                ("location", Amount),
                ("size", Amount),
            ]),
        ),
        ("-j", Alone),
        ("-L", Word),
        ("-m", Amount),
        ("-N", Amount),
        ("-O", Names),
        ("-q", Alone),
        ("-r", Amount),
        ("-T", Names),
        ("-v", Alone),
    ],
};

/// ext4(5). Not on the list: other devices and files (`journal_dev`, `usrjquota`), and what leaves
/// changes out (`noload`, `abort`).
const MOUNT: Words = Words {
    tool: "a mount of ext2, ext3 or ext4",
    manual: "ext4(5)",
    options: &[
        ("acl", Alone),
        ("auto_da_alloc", AloneOrAmount),
        ("barrier", AloneOrAmount),
        ("block_validity", Alone),
        ("commit", Amount),
        ("data", OneOf(&["journal", "ordered", "writeback"])),
        ("data_err", OneOf(&["ignore", "abort"])),
        ("dax", AloneOrOneOf(&["always", "never", "inode"])),
        ("debug", Alone),
        ("delalloc", Alone),
        ("dioread_lock", Alone),
        ("dioread_nolock", Alone),
        ("discard", Alone),
        ("errors", OneOf(&["continue", "remount-ro", "panic"])),
        ("grpid", Alone),
        ("i_version", Alone),
        ("init_itable", AloneOrAmount),
        ("inode_readahead_blks", Amount),
        ("journal_async_commit", Alone),
        ("journal_checksum", Alone),
        ("journal_ioprio", Amount),
        ("max_batch_time", Amount),
        ("max_dir_size_kb", Amount),
        ("mb_optimize_scan", Amount),
        ("min_batch_time", Amount),
        ("minixdf", Alone),
        ("noacl", Alone),
        ("noauto_da_alloc", Alone),
        ("nobarrier", Alone),
        ("noblock_validity", Alone),
        ("nodelalloc", Alone),
        ("nodiscard", Alone),
        ("noinit_itable", Alone),
        ("nojournal_checksum", Alone),
        ("noprefetch_block_bitmaps", Alone),
        ("noquota", Alone),
        ("nouid32", Alone),
        ("nouser_xattr", Alone),
        ("orlov", Alone),
        ("prefetch_block_bitmaps", Alone),
        ("prjquota", Alone),
        ("quota", Alone),
        ("stripe", Amount),
        ("sysvgroups", Alone),
        ("user_xattr", Alone),
    ],
};

const fn version(kind: &'static LayerKind, tools: &'static [&'static str]) -> Plain {
    Plain {
        kind,
        tools,
        mkfs: &MKFS,
        mount: &MOUNT,
        // mke2fs keeps the words of the last -E only, so ours would undo the study's, or the other
        // way round.
        keeping: |mkfs| match mkfs.iter().any(|word| word.starts_with("-E")) {
            true => &[],
            false => &["-E", EXTENDED],
        },
        uuid: |uuid| ["-U".to_string(), uuid.to_string()],
        repair: &["e2fsck", "-f", "-y"],
        geometry,
        all_options,
    }
}

fn geometry(host: &dyn Host, _root: &Path, device: &Path) -> Result<Vec<Fact>, LayerError> {
    // -h: the superblock alone; the groups would be megabytes of text.
    let words = ["dumpe2fs", "-h"].map(OsStr::new);
    let output = host.must(&argv([words[0], words[1], device.as_os_str()]))?;
    Ok(header(&output.stdout))
}

/// Facts that matter to figures, of all that `dumpe2fs -h` prints.
pub(super) fn header(text: &str) -> Vec<Fact> {
    let facts = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        // The other lines are counters, dates and hashes, which differ from trial to trial.
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
