//! The stacks that it is tested with.

use stackrace_foundation::foundation::{KillStack, Tried};

pub(super) const TRIED: Tried = Tried {
    kills: &[
        KillStack::on_one("gfs2", ("256 MiB", 1), &["gfs2 = {}"]),
        KillStack {
            name: "dlm",
            disks: ("256 MiB", 1),
            layers: &[
                "drbd = { role = \"dual\" }",
                "gfs2 = { lock = \"dlm\", mounted-on = 2 }",
            ],
            machines: &[2],
        },
    ],
    changes: &["corosync", "dlm_controld", "mkfs.gfs2"],
    standing: "ours corosync\nours dlm_controld",
    ..Tried::NOWHERE
};
