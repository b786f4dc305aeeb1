//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[RealStack {
        name: "tmpfs",
        layers: &["tmpfs = { size = \"8 MiB\" }"],
        device: "",
        expected: &[(0, "mount options in force", Expected::Has("size=8192k"))],
    }],
    kills: &[KillStack::on_one(
        "tmpfs",
        ("", 0),
        &["tmpfs = { size = \"16 MiB\" }"],
    )],
    ..Tried::NOWHERE
};
