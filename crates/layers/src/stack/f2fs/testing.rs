//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(1, &["f2fs = {}"])],
    real: &[RealStack {
        name: "f2fs",
        layers: &[
            "loop = { size = \"128 MiB\" }",
            "f2fs = { mount = [\"noatime\"] }",
        ],
        device: "loop",
        expected: &[(1, "mount options in force", Expected::Has("noatime"))],
    }],
    kills: &[KillStack::on_one("f2fs", ("128 MiB", 1), &["f2fs = {}"])],
    changes: &["mkfs.f2fs"],
    ..Tried::NOWHERE
};
