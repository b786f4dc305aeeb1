//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(1, &["xfs = {}"])],
    real: &[RealStack {
        name: "xfs",
        layers: &[
            "loop = { size = \"320 MiB\", laid-out = \"no\" }",
            "xfs = { mkfs = [\"-m\", \"reflink=0\"], mount = [\"allocsize=1m\"] }",
        ],
        device: "loop",
        expected: &[
            (1, "meta-data", Expected::Has("reflink=0")),
            (1, "mount option not as asked", Expected::Absent),
        ],
    }],
    kills: &[KillStack::on_one("xfs", ("400 MiB", 1), &["xfs = {}"])],
    changes: &["mkfs.xfs"],
    ..Tried::NOWHERE
};
