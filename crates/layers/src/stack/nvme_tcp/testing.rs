//! The stacks that it is tested with.

use super::{NAME, TOOL};
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[RealStack {
        name: "nvme_tcp",
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "nvme-tcp = { queues = 1, queue-size = 64, data-digest = true, server = \"same\" }",
            "ext4 = {}",
        ],
        device: "nvme",
        expected: &[
            (1, "queues", Expected::Is("1")),
            (1, "commands per queue", Expected::Is("64")),
        ],
    }],
    kills: &[KillStack {
        name: NAME,
        disks: ("64 MiB", 1),
        layers: &["nvme-tcp = { server = \"{server}\" }", "ext4 = {}"],
        machines: &[1, 2],
    }],
    changes: &[TOOL],
    standing: "ls /sys/kernel/config/nvmet/subsystems /sys/kernel/config/nvmet/ports /sys/kernel/config/nvmet/hosts 2>/dev/null | grep -v -e : -e '^$'\ncat /sys/class/nvme/*/subsysnqn 2>/dev/null | grep stackrace",
    ..Tried::NOWHERE
};
