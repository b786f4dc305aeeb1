//! The stacks that it is tested with.

use stackrace_foundation::foundation::{KillStack, Tried};

pub(super) const TRIED: Tried = Tried {
    kills: &[KillStack {
        name: "drbd",
        disks: ("64 MiB", 1),
        layers: &["drbd = { protocol = \"C\", delay = \"1 ms\" }", "ext4 = {}"],
        machines: &[2],
    }],
    changes: &["drbdadm"],
    standing: "[ ! -d /sys/module/drbd ] || drbdsetup status | grep -v 'No currently configured DRBD found'",
    ..Tried::NOWHERE
};
