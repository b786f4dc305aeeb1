//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const EROFS: Tried = Tried {
    real: &[RealStack {
        name: "erofs",
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "ext4 = {}",
            "erofs = { compression = \"lz4hc\", level = 9 }",
        ],
        device: "loop",
        expected: &[(2, "mount options in force", Expected::Has("ro"))],
    }],
    kills: &[KillStack::on_one(
        "erofs",
        ("64 MiB", 1),
        &["ext4 = {}", "erofs = {}"],
    )],
    changes: &["mkfs.erofs"],
    ..Tried::NOWHERE
};

pub(super) const SQUASHFS: Tried = Tried {
    real: &[RealStack {
        name: "squashfs",
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "ext4 = {}",
            "squashfs = { compression = \"zstd\", level = 3, block-size = \"64 KiB\" }",
        ],
        device: "loop",
        expected: &[
            (2, "Compression", Expected::Is("zstd")),
            (2, "compression-level", Expected::Is("3")),
            (2, "Block size", Expected::Is("65536")),
            (2, "mount options in force", Expected::Has("ro")),
        ],
    }],
    kills: &[KillStack::on_one(
        "squashfs",
        ("64 MiB", 1),
        &["ext4 = {}", "squashfs = {}"],
    )],
    changes: &["mksquashfs"],
    ..Tried::NOWHERE
};
