//! NILFS2 on one device.
//!
//! `mount.nilfs2` starts a daemon that collects garbage, and `umount` ends it, as after any mount.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_foundation::foundation::plain::{self, Plain};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, Names, OneOf},
    Words,
};
use stackrace_foundation::foundation::{GivesKind, LayerError, LayerKind, block, options};
use stackrace_machine::host::{Host, Package};
use std::path::Path;

/// Files in which the driver tells of a mounted file system, below `/sys/fs/nilfs2/DEVICE`.
const TOLD: [&str; 5] = [
    "revision",
    "blocksize",
    "device_size",
    "segments/blocks_per_segment",
    "segments/segments_number",
];

/// The layer `nilfs2` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "nilfs2",
    summary: "NILFS2, which writes everything to a log, on one device of at least 128 MiB.",
    settings: &[options::MKFS, options::MOUNT],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "nilfs2 = { mkfs = [\"-b\", \"4096\"], mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse: |settings| NILFS2.parse(settings),
    packages: PACKAGES,
    imagined: &[plain::imagined_mkfs("mkfs.nilfs2")],
    shapes: &[&["loop = { size = \"1 GiB\" }", "nilfs2 = {}"]],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new(
    "nilfs-tools",
    &["mkfs.nilfs2", "mount.nilfs2"],
)];

/// mkfs.nilfs2(8). Not on the list: what only pretends (`-n`), and what is set by the layer (`-L`).
const MKFS: Words = Words {
    tool: "mkfs.nilfs2",
    manual: "mkfs.nilfs2(8)",
    options: &[
        ("-B", Amount),
        ("-b", Amount),
        ("-K", Alone),
        ("-m", Amount),
        ("-O", Names),
        ("-q", Alone),
        ("-v", Alone),
    ],
};

/// mount.nilfs2(8). Not on the list: other checkpoints (`cp`), the interval of a cleaner that would
/// outlive the mount (`pp`).
const MOUNT: Words = Words {
    tool: "a mount of NILFS2",
    manual: "mount.nilfs2(8)",
    options: &[
        ("barrier", Alone),
        ("discard", Alone),
        ("errors", OneOf(&["continue", "remount-ro", "panic"])),
        ("nobarrier", Alone),
        ("nodiscard", Alone),
        ("nogc", Alone),
        ("order", OneOf(&["relaxed", "strict"])),
    ],
};

const NILFS2: &Plain = &Plain {
    kind: &KIND,
    tools: &["mkfs.nilfs2", "mount.nilfs2", "wipefs", "mount", "umount"],
    mkfs: &MKFS,
    mount: &MOUNT,
    // No discard (mkfs.nilfs2(8)): blocks that were laid out stay.
    keeping: |_| &["-K"],
    // Its mkfs draws the UUID itself: the label bears the mark.
    uuid: |uuid| ["-L".to_string(), uuid.to_string()],
    repair: &[],
    geometry: told,
    all_options: plain::untold,
};

/// Facts that the driver shows; what this kernel does not show is left out.
fn told(host: &dyn Host, _root: &Path, device: &Path) -> Result<Vec<Fact>, LayerError> {
    let about = Path::new("/sys/fs/nilfs2").join(block::kernel_name(host, device));
    let fact = |name: &&str| {
        // Which of these files there are depends on the version of the kernel.
        let text = host.read_text(&about.join(name)).ok()?;
        Some(Fact::new(*name, text.trim()))
    };
    Ok(TOLD.iter().filter_map(fact).collect())
}
