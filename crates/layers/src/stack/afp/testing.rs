//! The stacks that it is tested with.

use stackrace_foundation::foundation::{KillStack, Tried};

pub(super) const TRIED: Tried = Tried {
    kills: &[KillStack {
        name: "afp",
        disks: ("64 MiB", 1),
        layers: &["ext4 = {}", "afp = { server = \"{server}\" }"],
        machines: &[1, 2],
    }],
    changes: &["netatalk"],
    standing: "ours netatalk",
    ..Tried::NOWHERE
};
