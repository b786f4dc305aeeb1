//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    // Not `on_devices`: stacks of those may stand on disks, which are refused.
    real: &[RealStack {
        name: "jfs",
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "jfs = { mkfs = [\"-s\", \"4\"], mount = [\"noatime\", \"errors=continue\"] }",
        ],
        device: "loop",
        expected: &[
            (1, "Aggregate block size", Expected::Is("4096 bytes")),
            (1, "JFS flags", Expected::Has("JFS_LINUX")),
            (1, "mount options in force", Expected::Has("noatime")),
            (1, "mount option not as asked", Expected::Absent),
        ],
    }],
    kills: &[KillStack::on_one("jfs", ("64 MiB", 1), &["jfs = {}"])],
    changes: &["mkfs.jfs"],
    ..Tried::NOWHERE
};
