//! The stacks that it is tested with.

use super::NAME;
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[
        RealStack {
            name: "image_qcow2",
            layers: &[
                "loop = { size = \"128 MiB\" }",
                "ext4 = {}",
                "image = { size = \"64 MiB\", cluster-size = \"128 KiB\" }",
                "ext4 = {}",
            ],
            device: "loop",
            expected: &[
                (2, "file format", Expected::Is("qcow2")),
                (2, "cluster_size", Expected::Is("131072")),
            ],
        },
        RealStack {
            name: "image_raw",
            layers: &[
                "loop = { size = \"128 MiB\" }",
                "ext4 = {}",
                "image = { size = \"64 MiB\", format = \"raw\", cache = \"unsafe\", preallocation = \"falloc\" }",
                "ext4 = {}",
            ],
            device: "loop",
            expected: &[
                (2, "file format", Expected::Is("raw")),
                (2, "flushes", Expected::Is("ignored")),
            ],
        },
    ],
    kills: &[KillStack::on_one(
        NAME,
        ("128 MiB", 1),
        &["ext4 = {}", "image = { size = \"64 MiB\" }", "ext2 = {}"],
    )],
    changes: &["qemu-img", "qemu-storage-daemon"],
    standing: "ours qemu-storage-da",
    ..Tried::NOWHERE
};
