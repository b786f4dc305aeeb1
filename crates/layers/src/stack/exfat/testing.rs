//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

pub(super) const TRIED: Tried = Tried {
    // Not `on_devices`: stacks of those may stand on disks, which are refused.
    real: &[RealStack {
        name: "exfat",
        layers: &[
            "loop = { size = \"128 MiB\" }",
            "exfat = { cluster-size = \"64 KiB\", boundary-align = \"2 MiB\", mount = [\"noatime\"] }",
        ],
        device: "loop",
        expected: &[
            (1, "Cluster size", Expected::Is("65536")),
            // Sectors of 512 B.
            (1, "FAT Offset(sector offset)", Expected::Is("4096")),
            (1, "mount options in force", Expected::Has("noatime")),
            (1, "mount option not as asked", Expected::Absent),
        ],
    }],
    kills: &[KillStack::on_one("exfat", ("64 MiB", 1), &["exfat = {}"])],
    changes: &["mkfs.exfat"],
    ..Tried::NOWHERE
};
