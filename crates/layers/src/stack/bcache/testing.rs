//! The stacks that it is tested with.

use super::{MAKE, NAME};
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[RealStack {
        name: NAME,
        layers: &[
            "loop = { size = \"128 MiB\", count = 2 }",
            "bcache = { mode = \"writeback\" }",
            "ext4 = {}",
        ],
        device: NAME,
        expected: &[
            (1, "mode", Expected::Is("writeback")),
            (1, "cache", Expected::Has("empty")),
        ],
    }],
    kills: &[KillStack::on_one(
        NAME,
        ("64 MiB", 2),
        &["bcache = { bucket-size = \"128 KiB\" }", "ext4 = {}"],
    )],
    changes: &[MAKE],
    standing: "ls -d /sys/fs/bcache/*-* /sys/block/bcache* 2>/dev/null",
    ..Tried::NOWHERE
};
