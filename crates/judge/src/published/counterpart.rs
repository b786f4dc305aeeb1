//! How a study that ships maps to the published one: which of its levels stand for which, and
//! which metric stands beside which.

/// The mapping of one study.
pub struct Counterpart {
    /// Factors of the study that ships, each with the published one.
    pub factors: &'static [FactorPair],
    /// Metrics of the study that ships, each with the published one.
    pub metrics: &'static [MetricPair],
    /// Other studies that ship with a part of it.
    pub also: &'static [&'static str],
    /// True if the study that ships runs in the lab alone.
    pub lab: bool,
    /// Parts the stacks of the program lack, and what stands in for them.
    pub stands_in: &'static str,
}

/// Two factors that vary the same thing, or what stands in for it.
pub struct FactorPair {
    /// Name in the study that ships.
    pub own: &'static str,
    /// Name in the published data.
    pub published: &'static str,
    /// Level labels: own, published.
    pub levels: &'static [(&'static str, &'static str)],
}

/// Two metrics that say the same.
pub struct MetricPair {
    /// Name of the workload in the study that ships, and its metric.
    pub own: (&'static str, &'static str),
    /// Beginning of the load's name in the published data, and its metric.
    pub published: (&'static str, &'static str),
}

const fn pair(
    own: (&'static str, &'static str),
    published: (&'static str, &'static str),
) -> MetricPair {
    MetricPair { own, published }
}

/// Metrics of bonnie++, each with the workload that measures the same.
const BONNIE: &[MetricPair] = &[
    pair(("block output", "throughput"), ("bonnie++", "block output")),
    pair(("rewrite", "throughput"), ("bonnie++", "rewrite")),
    pair(("block input", "throughput"), ("bonnie++", "block input")),
    pair(("random seeks", "operations"), ("bonnie++", "random seeks")),
    pair(("small files", "create"), ("bonnie++", "sequential create")),
    pair(("small files", "unlink"), ("bonnie++", "sequential delete")),
];

pub(super) const DRBD_GFS2: Counterpart = Counterpart {
    factors: &[
        FactorPair {
            own: "replication",
            published: "drbd_protocol",
            levels: &[("none", "none"), ("A", "A"), ("B", "B"), ("C", "C")],
        },
        FactorPair {
            own: "filesystem",
            published: "filesystem",
            levels: &[("ext3", "ext3"), ("gfs2", "gfs2")],
        },
    ],
    metrics: BONNIE,
    also: &["gfs2-dlm"],
    lab: true,
    stands_in: "modelled Hitachi HDS721010KLA330, a line of 112 MB/s and one processor of 1 GIPS for both \
                hosts instead of the real ones; DRBD 8.4 instead of 8.2; a 120th of the data, and of the \
                disk its beginning; GFS2 is a study of its own, in real time on slow emulated disks",
};

pub(super) const NETATALK_CNID: Counterpart = Counterpart {
    factors: &[
        FactorPair {
            own: "filesystem",
            published: "filesystem",
            levels: &[("xfs", "xfs"), ("ext4", "ext4")],
        },
        FactorPair {
            own: "database",
            published: "cnid_db",
            levels: &[
                ("on the volume", "default"),
                ("on another disk", "var"),
                ("on tmpfs", "tmp"),
            ],
        },
    ],
    metrics: &[
        pair(
            ("copy-small-tree", "elapsed"),
            ("copy-small-tree", "elapsed"),
        ),
        pair(
            ("copy-small-tree", "throughput"),
            ("copy-small-tree", "throughput"),
        ),
        pair(
            ("copy-large-files", "elapsed"),
            ("copy-large-files", "elapsed"),
        ),
        pair(
            ("copy-large-files", "throughput"),
            ("copy-large-files", "throughput"),
        ),
        pair(("delete-tree", "elapsed"), ("delete-tree", "elapsed")),
        pair(("postmark", "transactions"), ("postmark", "transactions")),
        pair(("postmark", "files created"), ("postmark", "create")),
        pair(("postmark", "files read"), ("postmark", "read")),
        pair(("postmark", "files appended"), ("postmark", "append")),
        pair(("postmark", "files deleted"), ("postmark", "delete")),
        pair(("video", "write throughput"), ("stream-video", "write")),
        pair(("video", "read throughput"), ("stream-video", "read")),
    ],
    also: &[],
    lab: true,
    stands_in: "modelled disks (WD30EFRX, HDP725050GLA360), a gigabit line and one processor of 1 GIPS for \
                server and client instead of the real ones; netatalk 4 instead of 2.2; our own client, which \
                does not gather writes, instead of Mac OS X; ext4 on the other disk; the copied files, a \
                small part of the published ones, are on the share too",
};

pub(super) const ZFS_ASHIFT: Counterpart = Counterpart {
    factors: &[
        FactorPair {
            own: "topology",
            published: "topology",
            levels: &[
                ("stripe-4", "stripe-4"),
                ("raidz1-4", "raidz1-4"),
                ("raid10-4", "raid10-4"),
                ("mirror-2", "mirror-2"),
            ],
        },
        FactorPair {
            own: "ashift",
            published: "ashift",
            levels: &[("9", "9"), ("12", "12")],
        },
    ],
    metrics: BONNIE,
    also: &[],
    lab: true,
    stands_in: "modelled Seagate ST3000DM001 and a processor of 1 GIPS instead of the real ones; OpenZFS 2 \
                instead of ZFS on Linux 0.6; the phases of bonnie++ one by one, each from a cold start, on a sixtieth \
                of the data with a cache as much smaller",
};

pub(super) const ZFS_BLOCK_SIZE: Counterpart = Counterpart {
    factors: &[],
    metrics: &[],
    also: &[],
    lab: true,
    stands_in: "a modelled Seagate Savvio 15K with a protected cache instead of the disk and its \
                controller, and a processor of 1 GIPS; OpenZFS 2 on Linux instead of both systems; data, \
                cache and disk are a 160th of the published ones",
};

pub(super) const ZFS_THREE_OS: Counterpart = Counterpart {
    factors: &[FactorPair {
        own: "compression",
        published: "compression",
        levels: &[("off", "off"), ("lz4", "lz4")],
    }],
    metrics: &[
        pair(("extract a tree", "elapsed"), ("extract-tar", "elapsed")),
        pair(("delete a tree", "elapsed"), ("delete-tree", "elapsed")),
    ],
    also: &["zfs-two-systems"],
    lab: true,
    stands_in: "modelled laptop disks (HTS721010A9E630, HTS725050A9A364) and a processor of 1 GIPS \
                instead of the real ones; a 64th of the data, with a cache as much smaller; one system, \
                Debian with OpenZFS 2, instead of three; two are compared by zfs-two-systems, and \
                that ratio has no published counterpart",
};
