//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(1, &["nilfs2 = {}"])],
    real: &[RealStack {
        name: "nilfs2",
        layers: &[
            "loop = { size = \"256 MiB\" }",
            "nilfs2 = { mount = [\"noatime\"] }",
        ],
        device: "loop",
        expected: &[(1, "mount options in force", Expected::Has("noatime"))],
    }],
    kills: &[KillStack::on_one(
        "nilfs2",
        ("256 MiB", 1),
        &["nilfs2 = {}"],
    )],
    changes: &["mkfs.nilfs2"],
    ..Tried::NOWHERE
};
