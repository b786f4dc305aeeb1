//! The stacks that it is tested with.

use super::NAME;
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    on_devices: &[(1, &["queue = { scheduler = \"none\" }"])],
    real: &[RealStack {
        name: NAME,
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "queue = { scheduler = \"mq-deadline\", requests = 200, read-ahead = \"1 MiB\", rotational = true }",
            "ext4 = {}",
        ],
        device: "loop",
        expected: &[
            (1, "read_ahead_kb", Expected::Is("1024")),
            (1, "rotational", Expected::Is("1")),
            (1, "scheduler", Expected::Is("mq-deadline")),
            (1, "nr_requests", Expected::Is("200")),
        ],
    }],
    kills: &[KillStack::on_one(
        NAME,
        ("64 MiB", 1),
        &["queue = { read-ahead = \"1 MiB\" }", "ext4 = {}"],
    )],
    ..Tried::NOWHERE
};
