//! F2FS on one device.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_foundation::foundation::plain::{self, Plain};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, Names, OneOf, Word},
    Words,
};
use stackrace_foundation::foundation::{
    FileData, GivesKind, LayerError, LayerKind, block, options,
};
use stackrace_machine::host::{Host, Package};
use std::path::Path;

/// Files in which the driver tells of a mounted file system.
const TOLD: [&str; 3] = ["features", "encoding", "current_reserved_blocks"];

/// The layer `f2fs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "f2fs",
    summary: "F2FS, made for flash memory, on one device of at least 40 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "f2fs = { mkfs = [\"-O\", \"extra_attr\"], mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse: |settings| F2FS.parse(settings),
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.f2fs")],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    data: FileData {
        in_place: false,
        page_cache_alone: true,
    },
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new("f2fs-tools", &["mkfs.f2fs", "dump.f2fs"])];

/// mkfs.f2fs(8). Not on the list: other devices (`-c`), sizes beyond the device, and what is set by
/// the layer (`-U`).
const MKFS: Words = Words {
    tool: "mkfs.f2fs",
    manual: "mkfs.f2fs(8)",
    options: &[
        ("-a", OneOf(&["0", "1"])),
        ("-C", Word),
        ("-d", Amount),
        ("-E", Names),
        ("-e", Names),
        ("-g", OneOf(&["android"])),
        ("-i", Alone),
        ("-l", Word),
        ("-O", Names),
        ("-o", Amount),
        ("-q", Alone),
        ("-s", Amount),
        ("-t", OneOf(&["0", "1"])),
        ("-w", Amount),
        ("-z", Amount),
    ],
};

/// Documentation/filesystems/f2fs.rst of the kernel. Not on the list: files of quotas, and what
/// leaves changes out (`norecovery`, `disable_roll_forward`).
const MOUNT: Words = Words {
    tool: "a mount of F2FS",
    manual: "f2fs.rst of the kernel",
    options: &[
        ("acl", Alone),
        ("active_logs", Amount),
        ("alloc_mode", OneOf(&["reuse", "default"])),
        ("atgc", Alone),
        ("background_gc", OneOf(&["on", "off", "sync"])),
        ("barrier", Alone),
        ("checkpoint_merge", Alone),
        ("compress_algorithm", Word),
        ("compress_cache", Alone),
        ("compress_chksum", Alone),
        ("compress_extension", Word),
        ("compress_log_size", Amount),
        ("compress_mode", OneOf(&["fs", "user"])),
        ("discard", Alone),
        ("discard_unit", OneOf(&["block", "segment", "section"])),
        ("extent_cache", Alone),
        ("fastboot", Alone),
        ("flush_merge", Alone),
        ("fsync_mode", OneOf(&["posix", "strict", "nobarrier"])),
        ("gc_merge", Alone),
        ("inline_data", Alone),
        ("inline_dentry", Alone),
        ("inline_xattr", Alone),
        ("inline_xattr_size", Amount),
        ("memory", OneOf(&["normal", "low"])),
        (
            "mode",
            OneOf(&["adaptive", "lfs", "fragment:segment", "fragment:block"]),
        ),
        ("noacl", Alone),
        ("nobarrier", Alone),
        ("nocheckpoint_merge", Alone),
        ("nocompress_extension", Word),
        ("nodiscard", Alone),
        ("noextent_cache", Alone),
        ("noflush_merge", Alone),
        ("nogc_merge", Alone),
        ("noheap", Alone),
        ("noinline_data", Alone),
        ("noinline_dentry", Alone),
        ("noinline_xattr", Alone),
        ("nouser_xattr", Alone),
        ("prjquota", Alone),
        ("quota", Alone),
        ("reserve_root", Amount),
        ("user_xattr", Alone),
        ("whint_mode", Word),
    ],
};

const F2FS: &Plain = &Plain {
    kind: &KIND,
    tools: &["mkfs.f2fs", "wipefs", "mount", "umount"],
    mkfs: &MKFS,
    mount: &MOUNT,
    // No discard (mkfs.f2fs(8)): blocks that were laid out stay.
    keeping: |_| &["-t", "0"],
    uuid: |uuid| ["-U".to_string(), uuid.to_string()],
    repair: &["fsck.f2fs", "-f", "-y"],
    geometry: told,
    all_options: plain::untold,
};

/// Facts that the driver shows in `/sys/fs/f2fs`; what this kernel does not show is left out.
fn told(host: &dyn Host, _root: &Path, device: &Path) -> Result<Vec<Fact>, LayerError> {
    let about = Path::new("/sys/fs/f2fs").join(block::kernel_name(host, device));
    let fact = |name: &&str| {
        // Which of these files there are depends on the version of the kernel.
        let text = host.read_text(&about.join(name)).ok()?;
        Some(Fact::new(*name, text.trim()))
    };
    Ok(TOLD.iter().filter_map(fact).collect())
}
