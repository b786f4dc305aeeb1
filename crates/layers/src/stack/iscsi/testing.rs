//! The stacks that it is tested with.

use super::{DAEMON, NAME, TOOL};
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[RealStack {
        name: NAME,
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "iscsi = { queue-depth = 64, header-digest = true, server = \"same\" }",
            "ext4 = {}",
        ],
        device: "sd",
        expected: &[
            (1, "queue depth", Expected::Is("64")),
            (1, "header digest", Expected::Is("CRC32C")),
            (1, "data digest", Expected::Is("None")),
        ],
    }],
    kills: &[KillStack {
        name: NAME,
        disks: ("64 MiB", 1),
        layers: &["iscsi = { server = \"{server}\" }", "ext4 = {}"],
        machines: &[1, 2],
    }],
    changes: &[TOOL, DAEMON.program],
    standing: "ls -d /sys/kernel/config/target/iscsi/iqn*stackrace* /sys/kernel/config/target/core/*/stackrace-* 2>/dev/null\ncat /sys/class/iscsi_session/*/targetname 2>/dev/null | grep stackrace\niscsiadm -m node 2>/dev/null | grep stackrace\nours iscsid",
    ..Tried::NOWHERE
};
