//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(1, &["btrfs = {}"])],
    real: &[
        RealStack {
            name: "btrfs on one disk",
            layers: &[
                "loop = { size = \"130 MiB\", count = 1 }",
                "btrfs = { profile = \"single\", compression = \"zstd:5\" }",
            ],
            device: "loop",
            expected: &[
                (1, "space, Data, single", Expected::There),
                (
                    1,
                    "mount options in force",
                    Expected::Has("compress=zstd:5"),
                ),
            ],
        },
        RealStack {
            name: "btrfs on two disks",
            layers: &[
                "loop = { size = \"130 MiB\", count = 2 }",
                "btrfs = { profile = \"raid1\", compression = \"zstd:5\" }",
            ],
            device: "loop",
            expected: &[
                (1, "space, Data, RAID1", Expected::There),
                (
                    1,
                    "mount options in force",
                    Expected::Has("compress=zstd:5"),
                ),
            ],
        },
        RealStack {
            name: "btrfs on four disks",
            layers: &[
                "loop = { size = \"130 MiB\", count = 4 }",
                "btrfs = { profile = \"raid10\", compression = \"zstd:5\" }",
            ],
            device: "loop",
            expected: &[
                (1, "space, Data, RAID10", Expected::There),
                (
                    1,
                    "mount options in force",
                    Expected::Has("compress=zstd:5"),
                ),
            ],
        },
    ],
    kills: &[KillStack::on_one(
        "btrfs",
        ("256 MiB", 2),
        &["btrfs = { profile = \"raid1\" }"],
    )],
    changes: &["mkfs.btrfs"],
    ..Tried::NOWHERE
};
