//! The stacks that it is tested with.

use stackrace_foundation::foundation::{Expected, KillStack, RealStack, Tried};

/// Prints what of them stands.
const STANDING: &str = "dmsetup ls 2>/dev/null | grep -v 'No devices found'";

pub(super) const INTEGRITY: Tried = Tried {
    real: &[
        RealStack {
            name: "integrity",
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "integrity = {}",
                "ext4 = {}",
            ],
            device: "loop",
            expected: &[
                (1, "mode", Expected::Is("journal")),
                (1, "checksum", Expected::Is("crc32c")),
                (1, "sector size", Expected::Is("512 B")),
            ],
        },
        RealStack {
            name: "integrity_bitmap",
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "integrity = { mode = \"bitmap\", checksum = \"sha256\", sector-size = \"4 KiB\" }",
                "ext4 = {}",
            ],
            device: "loop",
            expected: &[
                (1, "mode", Expected::Is("bitmap")),
                (1, "checksum", Expected::Is("sha256")),
                (1, "sector size", Expected::Is("4 KiB")),
            ],
        },
    ],
    kills: &[KillStack::on_one(
        "integrity",
        ("64 MiB", 1),
        &["integrity = {}", "ext4 = {}"],
    )],
    changes: &["integritysetup"],
    standing: STANDING,
    ..Tried::NOWHERE
};

pub(super) const LUKS: Tried = Tried {
    on_devices: &[(1, &["luks = { sector-size = \"4 KiB\" }"])],
    real: &[
        RealStack {
            name: "luks",
            layers: &["loop = { size = \"64 MiB\" }", "luks = {}", "ext4 = {}"],
            device: "dm-",
            expected: &[
                (1, "header", Expected::Is("LUKS2")),
                (1, "key size", Expected::Is("512 bits")),
                (1, "words of dm-crypt", Expected::Is("none")),
            ],
        },
        RealStack {
            name: "luks_without_queues",
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "luks = { key-size = 256, sector-size = \"4 KiB\", discards = true, no-read-workqueue = true, no-write-workqueue = true }",
                "ext4 = {}",
            ],
            device: "dm-",
            expected: &[
                (1, "sector size", Expected::Is("4 KiB")),
                (1, "words of dm-crypt", Expected::Has("no_write_workqueue")),
            ],
        },
        RealStack {
            name: "luks_1",
            layers: &[
                "loop = { size = \"64 MiB\" }",
                "luks = { version = \"1\", cipher = \"aes-cbc-essiv:sha256\" }",
                "ext4 = {}",
            ],
            device: "dm-",
            expected: &[(1, "header", Expected::Is("LUKS1"))],
        },
    ],
    kills: &[KillStack::on_one(
        "luks",
        ("64 MiB", 1),
        &["luks = { sector-size = \"4 KiB\" }", "ext4 = {}"],
    )],
    changes: &["cryptsetup"],
    standing: STANDING,
};

pub(super) const VDO: Tried = Tried {
    real: &[RealStack {
        name: "vdo",
        layers: &[
            "loop = { size = \"5 GiB\", laid-out = \"no\" }",
            "vdo = { slab-bits = 15, compression = true }",
            "ext4 = {}",
        ],
        device: "dm-",
        expected: &[
            (1, "deduplication", Expected::Is("on")),
            (1, "compression", Expected::Is("on")),
        ],
    }],
    kills: &[KillStack::on_one(
        "vdo",
        ("5 GiB", 1),
        &["vdo = { slab-bits = 15 }", "ext4 = {}"],
    )],
    changes: &["vdoformat"],
    standing: STANDING,
    ..Tried::NOWHERE
};

pub(super) const WRITECACHE: Tried = Tried {
    real: &[RealStack {
        name: "writecache",
        layers: &[
            "loop = { size = \"64 MiB\", count = 2 }",
            "writecache = { high = \"90 %\", low = \"80 %\" }",
            "ext4 = {}",
        ],
        device: "loop",
        expected: &[
            (1, "block size", Expected::Is("4 KiB")),
            (1, "high watermark", Expected::Is("90 %")),
            (1, "cache", Expected::Has("empty")),
        ],
    }],
    kills: &[KillStack::on_one(
        "writecache",
        ("64 MiB", 2),
        &["writecache = {}", "ext4 = {}"],
    )],
    changes: &["dmsetup"],
    standing: STANDING,
    ..Tried::NOWHERE
};
