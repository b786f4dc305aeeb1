//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const EXT2: Tried = Tried {
    on_devices: &[(1, &["ext2 = {}"])],
    real: &[RealStack {
        name: "ext2",
        layers: &["loop = { size = \"64 MiB\" }", "ext2 = {}"],
        device: "loop",
        expected: &[(1, "Filesystem features", Expected::Lacks("has_journal"))],
    }],
    changes: &["mkfs.ext2"],
    ..Tried::NOWHERE
};

pub(super) const EXT3: Tried = Tried {
    on_devices: &[(1, &["ext3 = {}"])],
    real: &[RealStack {
        name: "ext3",
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "ext3 = { mount = [\"data=writeback\"] }",
        ],
        device: "loop",
        expected: &[
            (1, "Filesystem features", Expected::Has("has_journal")),
            (1, "mount options in force", Expected::Has("data=writeback")),
        ],
    }],
    changes: &["mkfs.ext3"],
    ..Tried::NOWHERE
};

pub(super) const EXT4: Tried = Tried {
    on_devices: &[(1, &["ext4 = {}"])],
    real: &[RealStack {
        name: "ext4 on large sectors, with options",
        layers: &[
            "loop = { size = \"64 MiB\", logical-sector = 4096, laid-out = \"written\" }",
            "ext4 = { mkfs = [\"-I\", \"512\"], mount = [\"noatime,commit=30\", \"barrier=1\"] }",
        ],
        device: "loop",
        expected: &[
            (1, "Block size", Expected::Is("4096")),
            (1, "Inode size", Expected::Is("512")),
            (1, "mount options in force", Expected::Has("noatime")),
            (1, "mount options in force", Expected::Has("commit=30")),
            (1, "mount option not as asked", Expected::Absent),
        ],
    }],
    kills: &[KillStack::on_one("ext4", ("64 MiB", 1), &["ext4 = {}"])],
    changes: &["mkfs.ext4"],
    ..Tried::NOWHERE
};
