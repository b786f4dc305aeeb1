//! The stacks that it is tested with.

use stackrace_foundation::foundation::{KillStack, Tried};

pub(super) const POOL: Tried = Tried {
    on_devices: &[
        (1, &["zpool = {}", "dataset = { compression = \"lz4\" }"]),
        (2, &["zpool = { topology = \"mirror\" }", "dataset = {}"]),
    ],
    kills: &[KillStack::on_one(
        "zpool",
        ("128 MiB", 5),
        &[
            "zpool = { topology = \"raidz1\", special = 1, log = 1 }",
            "dataset = { compression = \"lz4\" }",
        ],
    )],
    changes: &["zfs", "zpool"],
    standing: "[ -d /proc/spl ] && zpool list -H",
    ..Tried::NOWHERE
};

pub(super) const VOLUME: Tried = Tried {
    on_devices: &[(
        1,
        &[
            "zpool = { ashift = 9, max-auto-ashift = 9 }",
            "zvol = { size = \"256 MiB\" }",
        ],
    )],
    kills: &[KillStack::on_one(
        "zvol",
        ("128 MiB", 3),
        &[
            "zpool = { topology = \"raidz1\" }",
            "zvol = { size = \"64 MiB\" }",
            "ext4 = {}",
        ],
    )],
    ..Tried::NOWHERE
};
