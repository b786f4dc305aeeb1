//! The stacks that it is tested with.

use super::NAME;
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(1, &["mergerfs = {}"])],
    real: &[RealStack {
        name: NAME,
        layers: &[
            "loop = { size = \"64 MiB\", count = 3 }",
            "mergerfs = { create = \"mfs\", mount = [\"cache.files=partial\", \"dropcacheonclose=true\"] }",
        ],
        device: "loop",
        expected: &[
            (1, "branches", Expected::Is("3 of ext4")),
            (1, "category.create", Expected::Is("mfs")),
            (1, "cache.files", Expected::Is("partial")),
            (1, "mount option not as asked", Expected::Absent),
        ],
    }],
    kills: &[KillStack::on_one(
        NAME,
        ("64 MiB", 2),
        &["mergerfs = { create = \"mfs\" }"],
    )],
    changes: &[NAME],
    standing: "grep -F fuse.mergerfs /proc/self/mounts | grep -F $places",
};
