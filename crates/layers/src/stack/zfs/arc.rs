//! Where the kernel keeps the limits of ZFS's cache (ARC), and where it says what it made of them (zfs(4)).

pub(super) const ARC_MIN: &str = "/sys/module/zfs/parameters/zfs_arc_min";
pub(super) const ARC_MAX: &str = "/sys/module/zfs/parameters/zfs_arc_max";
pub(super) const ARC_STATS: &str = "/proc/spl/kstat/zfs/arcstats";
