//! The studies that ship with the program.

/// The studies that ship, by name, with their text.
pub const SHIPPED: &[(&str, &str)] = &[
    (
        "block-size-sweep",
        include_str!("../../studies/block-size-sweep.toml"),
    ),
    ("cache-tier", include_str!("../../studies/cache-tier.toml")),
    (
        "cloud-volume",
        include_str!("../../studies/cloud-volume.toml"),
    ),
    ("demo", include_str!("../../studies/demo.toml")),
    ("drbd-gfs2", include_str!("../../studies/drbd-gfs2.toml")),
    (
        "durability-cache",
        include_str!("../../studies/durability-cache.toml"),
    ),
    (
        "durability-databases",
        include_str!("../../studies/durability-databases.toml"),
    ),
    (
        "durability-drbd",
        include_str!("../../studies/durability-drbd.toml"),
    ),
    (
        "durability-ext4",
        include_str!("../../studies/durability-ext4.toml"),
    ),
    (
        "durability-md",
        include_str!("../../studies/durability-md.toml"),
    ),
    (
        "durability-nfs",
        include_str!("../../studies/durability-nfs.toml"),
    ),
    (
        "durability-postgresql",
        include_str!("../../studies/durability-postgresql.toml"),
    ),
    (
        "durability-xfs-btrfs",
        include_str!("../../studies/durability-xfs-btrfs.toml"),
    ),
    (
        "durability-zfs",
        include_str!("../../studies/durability-zfs.toml"),
    ),
    ("encryption", include_str!("../../studies/encryption.toml")),
    (
        "ext4-vs-xfs",
        include_str!("../../studies/ext4-vs-xfs.toml"),
    ),
    (
        "four-drives",
        include_str!("../../studies/four-drives.toml"),
    ),
    (
        "full-and-old",
        include_str!("../../studies/full-and-old.toml"),
    ),
    ("gfs2-dlm", include_str!("../../studies/gfs2-dlm.toml")),
    ("home-nas", include_str!("../../studies/home-nas.toml")),
    (
        "iscsi-or-nvme-tcp-or-nfs",
        include_str!("../../studies/iscsi-or-nvme-tcp-or-nfs.toml"),
    ),
    ("kernels", include_str!("../../studies/kernels.toml")),
    (
        "mkfs-options",
        include_str!("../../studies/mkfs-options.toml"),
    ),
    (
        "modelled-disk",
        include_str!("../../studies/modelled-disk.toml"),
    ),
    (
        "netatalk-cnid",
        include_str!("../../studies/netatalk-cnid.toml"),
    ),
    ("originals", include_str!("../../studies/originals.toml")),
    ("rebuild", include_str!("../../studies/rebuild.toml")),
    ("scheduler", include_str!("../../studies/scheduler.toml")),
    ("slog", include_str!("../../studies/slog.toml")),
    ("smr-or-cmr", include_str!("../../studies/smr-or-cmr.toml")),
    ("vm-disk", include_str!("../../studies/vm-disk.toml")),
    ("zfs-ashift", include_str!("../../studies/zfs-ashift.toml")),
    (
        "zfs-block-size",
        include_str!("../../studies/zfs-block-size.toml"),
    ),
    (
        "zfs-migration",
        include_str!("../../studies/zfs-migration.toml"),
    ),
    (
        "zfs-three-os",
        include_str!("../../studies/zfs-three-os.toml"),
    ),
    (
        "zfs-two-systems",
        include_str!("../../studies/zfs-two-systems.toml"),
    ),
];

/// The database that a study needs and this program was built without; `None` if it can be read.
#[cfg(any(test, feature = "testing"))]
pub fn left_out(text: &str) -> Option<&'static str> {
    // Studies name their database as the idiom of a workload.
    let needs = |idiom: &str| text.contains(&format!("idiom = \"{idiom}\""));
    let missing = [
        (!cfg!(feature = "sqlite") && needs("sqlite"), "SQLite"),
        (
            !cfg!(feature = "postgresql") && needs("postgresql"),
            "PostgreSQL",
        ),
    ];
    let mut missing = missing.into_iter();
    missing.find_map(|(missing, name)| missing.then_some(name))
}
