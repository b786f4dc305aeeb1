//! Arrays that the tests make.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

/// Arrays that the tests make, and what has to stand then.
pub(super) const TRIED: Tried = Tried {
    on_devices: &[
        (2, &["md = { raid = 0 }"]),
        (
            2,
            &["md = { raid = 1, degraded = true, metadata = \"1.0\" }"],
        ),
        (3, &["md = { raid = 5, assume-clean = false }"]),
        (4, &["md = { raid = 10, layout = \"o2\" }"]),
    ],
    real: &[
        RealStack {
            name: "RAID 0",
            layers: &[
                "loop = { size = \"64 MiB\", count = 4 }",
                "md = { raid = 0 }",
                "ext4 = {}",
            ],
            device: "md",
            expected: &[
                (1, "level", Expected::Is("raid0")),
                (1, "degraded", Expected::Absent),
            ],
        },
        RealStack {
            name: "RAID 1",
            layers: &[
                "loop = { size = \"64 MiB\", count = 4 }",
                "md = { raid = 1, bitmap = \"none\" }",
                "ext4 = {}",
            ],
            device: "md",
            expected: &[
                (1, "level", Expected::Is("raid1")),
                (1, "degraded", Expected::Is("0")),
            ],
        },
        RealStack {
            name: "RAID 1 with a member missing",
            layers: &[
                "loop = { size = \"64 MiB\", count = 4 }",
                "md = { raid = 1, degraded = true }",
                "ext4 = {}",
            ],
            device: "md",
            expected: &[
                (1, "level", Expected::Is("raid1")),
                (1, "degraded", Expected::Is("1")),
            ],
        },
        RealStack {
            name: "RAID 5",
            layers: &[
                "loop = { size = \"64 MiB\", count = 4 }",
                "md = { raid = 5, chunk = \"64 KiB\", assume-clean = false }",
                "ext4 = {}",
            ],
            device: "md",
            expected: &[
                (1, "level", Expected::Is("raid5")),
                (1, "degraded", Expected::Is("0")),
            ],
        },
        RealStack {
            name: "RAID 6",
            layers: &[
                "loop = { size = \"64 MiB\", count = 4 }",
                "md = { raid = 6 }",
                "ext4 = {}",
            ],
            device: "md",
            expected: &[
                (1, "level", Expected::Is("raid6")),
                (1, "degraded", Expected::Is("0")),
            ],
        },
        RealStack {
            name: "RAID 10",
            layers: &[
                "loop = { size = \"64 MiB\", count = 4 }",
                "md = { raid = 10, layout = \"f2\" }",
                "ext4 = {}",
            ],
            device: "md",
            expected: &[
                (1, "level", Expected::Is("raid10")),
                (1, "degraded", Expected::Is("0")),
            ],
        },
    ],
    kills: &[KillStack::on_one(
        "md",
        ("64 MiB", 3),
        &["md = { raid = 5, degraded = true }", "ext4 = {}"],
    )],
    changes: &["mdadm"],
    standing: "grep '^md' /proc/mdstat 2>/dev/null",
};
