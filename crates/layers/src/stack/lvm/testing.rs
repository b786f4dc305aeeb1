//! The stacks a logical volume is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

const REAL: &[RealStack] = &[
    RealStack {
        name: "linear volume",
        layers: &[
            "loop = { size = \"128 MiB\", count = 3 }",
            "lvm = {}",
            "ext4 = {}",
        ],
        device: "dm-",
        expected: &[(1, "volume data", Expected::Has("segtype linear"))],
    },
    RealStack {
        name: "volume under a snapshot",
        layers: &[
            "loop = { size = \"128 MiB\", count = 3 }",
            "lvm = { snapshot = \"present\" }",
            "ext4 = {}",
        ],
        device: "dm-",
        expected: &[(1, "volume data", Expected::Has("segtype linear"))],
    },
    RealStack {
        name: "striped volume",
        layers: &[
            "loop = { size = \"128 MiB\", count = 3 }",
            "lvm = { kind = \"striped\", stripes = 2 }",
            "ext4 = {}",
        ],
        device: "dm-",
        expected: &[(1, "volume data", Expected::Has("segtype striped"))],
    },
    RealStack {
        name: "thin volume",
        layers: &[
            "loop = { size = \"128 MiB\", count = 3 }",
            "lvm = { kind = \"thin\", snapshot = \"present\" }",
            "ext4 = {}",
        ],
        device: "dm-",
        expected: &[(1, "volume data", Expected::Has("segtype thin"))],
    },
    RealStack {
        name: "cached volume",
        layers: &[
            "loop = { size = \"128 MiB\", count = 3 }",
            "lvm = { kind = \"cache\", cache-mode = \"writeback\" }",
            "ext4 = {}",
        ],
        device: "dm-",
        expected: &[(1, "volume data", Expected::Has("segtype cache"))],
    },
    RealStack {
        name: "volume on an array",
        layers: &[
            "loop = { size = \"128 MiB\", count = 2 }",
            "md = { raid = 1 }",
            "lvm = {}",
            "ext3 = {}",
        ],
        device: "dm-",
        expected: &[(3, "Filesystem features", Expected::Has("has_journal"))],
    },
];

/// The stacks with a logical volume that tests set up.
pub(super) const TRIED: Tried = Tried {
    on_devices: &[
        (1, &["lvm = { snapshot = \"present\" }"]),
        (1, &["lvm = { kind = \"thin\", snapshot = \"present\" }"]),
        (2, &["lvm = { kind = \"striped\" }"]),
        (2, &["lvm = { kind = \"cache\" }"]),
    ],
    real: REAL,
    kills: &[
        KillStack::on_one(
            "lvm",
            ("128 MiB", 2),
            &[
                "lvm = { kind = \"striped\", snapshot = \"present\" }",
                "ext4 = {}",
            ],
        ),
        KillStack::on_one(
            "thin",
            ("128 MiB", 2),
            &[
                "lvm = { kind = \"thin\", snapshot = \"present\" }",
                "ext4 = {}",
            ],
        ),
        KillStack::on_one(
            "cache",
            ("128 MiB", 2),
            &["lvm = { kind = \"cache\" }", "ext4 = {}"],
        ),
        KillStack::on_one(
            "volume-on-array",
            ("64 MiB", 2),
            &["md = { raid = 1 }", "lvm = {}", "ext4 = {}"],
        ),
    ],
    changes: &[
        "dmsetup",
        "lvchange",
        "lvconvert",
        "lvcreate",
        "lvremove",
        "pvcreate",
        "pvremove",
        "vgchange",
        "vgcreate",
        "vgremove",
    ],
    standing: "dmsetup ls 2>/dev/null | grep -v 'No devices found'",
};
