//! The stacks that it is tested with.

use stackrace_foundation::foundation::{KillStack, Tried};

pub(super) const TRIED: Tried = Tried {
    kills: &[KillStack {
        name: "nfs",
        disks: ("64 MiB", 1),
        layers: &["ext4 = {}", "nfs = { server = \"{server}\" }"],
        machines: &[1, 2],
    }],
    changes: &["exportfs", "rpc.mountd", "rpc.nfsd", "rpcbind"],
    standing: "grep -F $places /var/lib/nfs/etab 2>/dev/null\nours rpc.mountd",
    ..Tried::NOWHERE
};
