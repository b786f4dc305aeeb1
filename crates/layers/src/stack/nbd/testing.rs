//! The stacks that it is tested with.

use super::{CLIENT, NAME, SERVER};
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[RealStack {
        name: NAME,
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "nbd = { block-size = \"4 KiB\", server = \"same\" }",
            "ext4 = {}",
        ],
        device: "nbd",
        expected: &[
            (1, "logical sector", Expected::Is("4096")),
            (1, "flushes", Expected::Has("passed on")),
        ],
    }],
    kills: &[KillStack {
        name: NAME,
        disks: ("64 MiB", 1),
        layers: &["nbd = { server = \"{server}\" }", "ext4 = {}"],
        machines: &[1, 2],
    }],
    changes: &[SERVER.program, CLIENT],
    standing: "ours nbd-server\nours nbd-client\nls -d /sys/block/nbd*/pid 2>/dev/null",
    ..Tried::NOWHERE
};
