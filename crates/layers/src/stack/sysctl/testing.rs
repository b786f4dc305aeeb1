//! The stacks that it is tested with.

use super::NAME;
use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    real: &[RealStack {
        name: NAME,
        layers: &[
            "loop = { size = \"64 MiB\" }",
            "ext4 = {}",
            "sysctl = { \"vm.dirty_expire_centisecs\" = 2987, \"vm.vfs_cache_pressure\" = 99 }",
        ],
        device: "loop",
        expected: &[
            (2, "vm.dirty_expire_centisecs", Expected::Is("2987")),
            (2, "vm.vfs_cache_pressure", Expected::Is("99")),
        ],
    }],
    kills: &[KillStack::on_one(
        NAME,
        ("64 MiB", 1),
        &["ext4 = {}", "sysctl = { \"vm.dirty_bytes\" = \"64 MiB\" }"],
    )],
    standing: "grep -v -x 0 /proc/sys/vm/dirty_bytes",
    ..Tried::NOWHERE
};
