//! The five studies: what was asked, on what, and where their figures are.

use super::counterpart::{self, Counterpart};

/// A published study: its measurements, its systems and its methods.
pub struct Card {
    /// The word it is asked for by, and the name of the runnable study that ships.
    pub name: &'static str,
    /// A title of our own.
    pub title: &'static str,
    /// Year of publication or, where only plots are known, the year of the systems.
    pub year: u16,
    /// The question of the study.
    pub question: &'static str,
    /// The stack and its surroundings, as published.
    pub environment: &'static [(&'static str, &'static str)],
    /// Statements of the authors in words where no figures are published.
    pub words: &'static [&'static str],
    /// Numbers that were stated and that the checks need.
    pub stated: Stated,
    /// The factors that were varied, in the order of the data.
    pub factors: &'static [PublishedFactor],
    /// The figures.
    pub source: PublishedSource,
    /// Mapping to the study that ships.
    pub counterpart: Counterpart,
}

impl Card {
    /// `stripe-4, ashift 9`: the levels that apply; one that is only a number or a letter is told
    /// by its factor.
    pub fn configuration(&self, levels: &[String]) -> String {
        // "9" or "C" alone tells a reader nothing.
        let bare = |level: &str| level.len() < 2 || level.chars().all(|c| c.is_ascii_digit());
        let names: Vec<String> = self
            .factors
            .iter()
            .zip(levels)
            // A factor that does not apply to a configuration has no level there.
            .filter(|(_, level)| !level.is_empty())
            .map(|(factor, level)| match bare(level) {
                true => format!("{} {level}", factor.name.trim_start_matches("drbd_")),
                false => level.clone(),
            })
            .collect();
        names.join(", ")
    }
}

/// A factor that the study varied.
pub struct PublishedFactor {
    /// Name as in the data.
    pub name: &'static str,
    /// Its levels; of several that were measured, the first is the baseline.
    pub levels: &'static [&'static str],
    /// Its levels exist only within levels of other factors: it is not held equal when those are
    /// compared.
    pub nested: bool,
}

/// Stated numbers; `None` if not stated.
pub struct Stated {
    /// Memory of the machine that was measured, bytes.
    pub memory_bytes: Option<u64>,
    /// The most that the network carries, B/s.
    // A figure near this rate is a figure of the network.
    pub line: Option<f64>,
    /// Bytes each load moves.
    pub bytes: &'static [(&'static str, u64)],
    /// A disk filled anew in a redundant pool: bytes written, seconds, rate of the scan
    /// (B/s), bytes allocated in the pool.
    pub resilver: Option<[f64; 4]>,
    /// Rates said in words: what, operations per second.
    pub about: &'static [(&'static str, f64)],
}

impl Stated {
    /// Bytes a load moves.
    pub fn bytes_of(&self, workload: &str) -> Option<u64> {
        self.bytes
            .iter()
            .find(|(name, _)| *name == workload)
            .map(|(_, bytes)| *bytes)
    }
}

/// The form the figures were published in.
#[derive(Clone, Copy)]
pub enum PublishedSource {
    /// CSV of bonnie++ 1.03, and the levels of each of its lines.
    Bonnie {
        /// `1.03e`.
        version: &'static str,
        /// The tool's lines.
        results: &'static str,
        /// `line,<factors>`, then a line for each of them.
        levels: &'static str,
    },
    /// One figure a line: `workload,<factors>,metric,value,unit`.
    Long(&'static str),
    /// Only plots were published.
    None,
}

const GIB: u64 = 1 << 30;
/// A gigabit Ethernet line with frames of 1500 bytes carries at most 1448 bytes of data in 1538:
/// 117.7 MB/s.
const GIGABIT: f64 = 125e6 * 1448.0 / 1538.0;

pub(super) const NOTHING_STATED: Stated = Stated {
    memory_bytes: None,
    line: None,
    bytes: &[],
    resilver: None,
    about: &[],
};

const fn factor(name: &'static str, levels: &'static [&'static str]) -> PublishedFactor {
    PublishedFactor {
        name,
        levels,
        nested: false,
    }
}

/// Every study, alphabetical.
pub const ALL: &[Card] = &[
    DRBD_GFS2,
    NETATALK_CNID,
    ZFS_ASHIFT,
    ZFS_BLOCK_SIZE,
    ZFS_THREE_OS,
];

const DRBD_GFS2: Card = Card {
    name: "drbd-gfs2",
    title: "What replication and a cluster file system on it cost",
    year: 2008,
    question: "How much slower is a file system on a mirror between two hosts, under each of the \
               three protocols of DRBD, and how much slower is GFS2 on it than ext3?",
    environment: &[
        ("hosts", "two, Core 2 Quad, 8 GB, 1 TB disks"),
        ("network", "gigabit, 112 MB/s measured by FTP"),
        ("system", "CentOS 5.2, kernel with and without Xen"),
        ("stack", "disk, LVM, DRBD 8.2.6, ext3 or GFS2"),
        (
            "load",
            "bonnie++ 1.03c from one host alone, built with a too-fast limit of 0.01 s",
        ),
    ],
    words: &[],
    stated: Stated {
        memory_bytes: Some(8 * GIB),
        line: Some(112e6),
        ..NOTHING_STATED
    },
    factors: &[
        factor("drbd_protocol", &["none", "A", "B", "C"]),
        factor("kernel", &["normal", "xen"]),
        factor("filesystem", &["ext3", "gfs2"]),
        PublishedFactor {
            name: "state",
            levels: &[
                "",
                "primary/primary",
                "primary/secondary",
                "1 mount",
                "2 mounts",
            ],
            nested: true,
        },
    ],
    source: PublishedSource::Bonnie {
        version: "1.03c",
        results: include_str!("data/drbd-gfs2-2008.bonnie.csv"),
        levels: include_str!("data/drbd-gfs2-2008.levels.csv"),
    },
    counterpart: counterpart::DRBD_GFS2,
};

const NETATALK_CNID: Card = Card {
    name: "netatalk-cnid",
    title: "Where a file server should keep its file database",
    year: 2013,
    question: "A file server for Macs gives every file a number and keeps the numbers in a \
               database. How much faster is it with the database on another disk, or in memory, \
               than on the volume itself, and on which file system?",
    environment: &[
        ("server", "HP MicroServer, netatalk 2.2.2 (AFP)"),
        ("client", "Mac OS X 10.8"),
        ("network", "gigabit"),
        ("stack", "degraded md RAID 1, XFS or ext4"),
        (
            "database",
            "default: on the volume; var: on another disk; tmp: on tmpfs",
        ),
        (
            "loads",
            "rsync of a tree of 10,027 entries, 7.9 GB; ten files of 100 MB to 1 GB; rm -rf",
        ),
        (
            "",
            "PostMark 1.51 (5000 files, 5000 transactions, unbuffered); video disk speed test",
        ),
    ],
    words: &[],
    stated: Stated {
        line: Some(GIGABIT),
        bytes: &[("copy-small-tree", 7_900_000_000)],
        ..NOTHING_STATED
    },
    factors: &[
        factor("filesystem", &["xfs", "ext4"]),
        factor("cnid_db", &["default", "tmp", "var"]),
    ],
    source: PublishedSource::Long(include_str!("data/netatalk-2013.csv")),
    counterpart: counterpart::NETATALK_CNID,
};

const ZFS_ASHIFT: Card = Card {
    name: "zfs-ashift",
    title: "ZFS told of 4 KiB sectors on disks that report 512 B",
    year: 2012,
    question: "Disks with sectors of 4 KiB that report 512 B: how much faster is a pool made with \
               ashift=12 than with ashift=9, as stripe, raidz1, RAID 10 and mirror?",
    environment: &[
        ("machine", "HP MicroServer"),
        ("disks", "4 x 3 TB, sectors of 4 KiB, reported as 512 B"),
        ("system", "CentOS 6.2, ZFS on Linux 0.6.0-rc8"),
        (
            "load",
            "bonnie++ 1.03e, 15488M (2 x RAM), default number of files",
        ),
        ("repeats", "one run shown, of several said to be alike"),
        (
            "afterwards",
            "a mirror of 2 disks became a raidz of 4 by way of a sparse dummy disk",
        ),
        (
            "",
            "resilver of 836 GB in 3 h 51 min, scan at 232 MB/s; 3.27 TB of 10.9 TB allocated",
        ),
    ],
    words: &[],
    stated: Stated {
        memory_bytes: Some(15488 * 1024 * 1024 / 2),
        resilver: Some([836e9, 13_860.0, 232e6, 3.27e12]),
        ..NOTHING_STATED
    },
    factors: &[
        factor(
            "topology",
            &["stripe-4", "raidz1-4", "raid10-4", "mirror-2"],
        ),
        factor("ashift", &["9", "12"]),
    ],
    source: PublishedSource::Bonnie {
        version: "1.03e",
        results: include_str!("data/zfs-ashift-2012.bonnie.csv"),
        levels: include_str!("data/zfs-ashift-2012.levels.csv"),
    },
    counterpart: counterpart::ZFS_ASHIFT,
};

const ZFS_BLOCK_SIZE: Card = Card {
    name: "zfs-block-size",
    title: "ZFS on FreeBSD and OpenSolaris, block size by block size",
    year: 2009,
    question: "Six ways to read and write at many block sizes: where do FreeBSD and OpenSolaris \
               differ on the same disk under ZFS?",
    environment: &[
        (
            "systems",
            "FreeBSD 8-CURRENT, OpenSolaris 2009.06 (the year is theirs)",
        ),
        (
            "disk",
            "one, 15,000 rpm, behind a RAID controller, 512 MiB of battery-backed cache",
        ),
        (
            "load",
            "sysbench fileio, six modes, one thread, fsync after each write",
        ),
        ("data", "40 GiB for 4 GiB of RAM"),
        (
            "plots",
            "IOPS, MiB/s, latency (least, mean, 95th percentile; log axis) by block size",
        ),
    ],
    words: &[
        "random reads: about 170 a second",
        "random writes: about 120 a second",
        "random writes are fastest where a block equals the record of ZFS, 128 KiB",
    ],
    stated: Stated {
        memory_bytes: Some(4 * GIB),
        bytes: &[("sysbench fileio", 40 * GIB)],
        about: &[("random read", 170.0), ("random write", 120.0)],
        ..NOTHING_STATED
    },
    factors: &[],
    source: PublishedSource::None,
    counterpart: counterpart::ZFS_BLOCK_SIZE,
};

const ZFS_THREE_OS: Card = Card {
    name: "zfs-three-os",
    title: "One ZFS pool visited by three operating systems",
    year: 2014,
    question: "The same two disks, the same pool, taken from one system to the next: which of \
               OpenIndiana, FreeBSD and Linux is faster, and what does lz4 change?",
    environment: &[
        ("machine", "ThinkPad, 8 GB"),
        (
            "stack",
            "mirror of two laptop disks, ashift 12; exported and imported between systems",
        ),
        ("systems", "OpenIndiana 151a9, FreeBSD 10.0, CentOS 6.5"),
        (
            "loads",
            "cp of a file of 9,207,209,203 B; cold dd of the copies each system had made",
        ),
        (
            "",
            "extraction of a tar of 10,927,441,920 B; rm -rf; compression off and lz4",
        ),
    ],
    words: &[],
    stated: Stated {
        memory_bytes: Some(8 * GIB),
        bytes: &[
            ("copy-file", 9_207_209_203),
            ("read-cold", 9_207_209_203),
            ("extract-tar", 10_927_441_920),
        ],
        ..NOTHING_STATED
    },
    factors: &[
        factor("os", &["openindiana-151a9", "freebsd-10.0", "centos-6.5"]),
        factor("compression", &["off", "lz4"]),
        factor(
            "source_written_by",
            &["", "openindiana-151a9", "freebsd-10.0", "centos-6.5"],
        ),
    ],
    source: PublishedSource::Long(include_str!("data/zfs-three-os-2014.csv")),
    counterpart: counterpart::ZFS_THREE_OS,
};
