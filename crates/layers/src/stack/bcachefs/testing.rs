//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(2, &["bcachefs = { replicas = 2 }"])],
    real: &[RealStack {
        name: "bcachefs",
        layers: &[
            "loop = { size = \"256 MiB\", count = 2 }",
            "bcachefs = { replicas = 2, compression = \"lz4\" }",
        ],
        device: "loop",
        expected: &[(1, "data_replicas", Expected::Is("2"))],
    }],
    kills: &[KillStack::on_one(
        "bcachefs",
        ("128 MiB", 2),
        &["bcachefs = { replicas = 2 }"],
    )],
    changes: &["bcachefs", "mkfs.bcachefs"],
    ..Tried::NOWHERE
};
