//! What people use storage for, each as a documented list of workloads.
//!
//! `compare --for` takes a purpose and turns it into the workloads of an ordinary study. A probe of
//! the storage comes first, and the sizes follow from it, so that measuring takes about the time it is
//! given. All configurations get exactly the same work.

mod meant;
mod part;
mod published;

use part::{random, small_files, stream};

pub use meant::meant;
pub use part::{PurposeWorkload, SizedBy, WorkloadSize};
pub use published::{RequiredBound, detail_of, published, required};

/// One purpose, as `compare --for` takes it.
#[derive(Debug)]
pub struct Purpose {
    /// The word after `--for`.
    pub name: &'static str,
    /// Summary of what the storage does, in one sentence.
    pub summary: &'static str,
    /// The workloads, in the order in which they run: where the time is short, the last ones of the
    /// least weight are left out.
    pub parts: &'static [PurposeWorkload],
}

/// Every purpose; the first is the default.
pub const ALL: &[Purpose] = &[
    Purpose {
        name: "general",
        summary: "mixed use: streaming, random access, small files",
        parts: &[
            stream(
                "streaming write",
                1.0,
                "sequential = { mode = 'write', size = 'SIZE' }",
            ),
            random(
                "random read 4 KiB",
                1.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '4 KiB', time = 'TIME', passes = 0 }",
            ),
            small_files(
                "small files",
                1.0,
                "files = { count = 'COUNT', size-min = '1 KiB', size-max = '16 KiB' }",
            ),
            random(
                // With a sync now and then: writes that nothing makes durable measure memory.
                "random write 4 KiB",
                1.0,
                "random = { mode = 'write', size = 'SIZE', block-size = '4 KiB', fsync-every = 16, time = 'TIME', passes = 0 }",
            ),
            stream(
                "streaming read",
                1.0,
                "sequential = { mode = 'read', size = 'SIZE' }",
            ),
        ],
    },
    Purpose {
        name: "database",
        summary: "a transactional database: random 16 KiB pages with fsync",
        parts: &[
            random(
                // A transaction reads pages and waits for its commit. The mixed work repeats both, so
                // that it weighs half as much.
                "commit 16 KiB",
                2.0,
                "random = { mode = 'write', size = 'SIZE', block-size = '16 KiB', fsync-every = 1, time = 'TIME', passes = 0 }",
            ),
            random(
                "page read 16 KiB",
                2.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '16 KiB', time = 'TIME', passes = 0 }",
            ),
            random(
                "mixed 16 KiB",
                1.0,
                "random = { mode = 'mixed', read-share = '70 %', size = 'SIZE', block-size = '16 KiB', fsync-every = 8, time = 'TIME', passes = 0 }",
            ),
        ],
    },
    Purpose {
        name: "postgresql",
        summary: "a PostgreSQL server: commits to its log, 8 KiB pages",
        parts: &[
            random(
                // Segments of the log are written over again, in order, each commit made durable.
                "log commit 8 KiB",
                2.0,
                "sequential = { mode = 'rewrite', size = 'SIZE', block-size = '8 KiB', fsync-every = 1, data-only = true, time = 'TIME', passes = 0 }",
            ),
            random(
                // Index look-ups of a data set beyond shared buffers.
                "page read 8 KiB",
                2.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '8 KiB', time = 'TIME', passes = 0 }",
            ),
            random(
                // The checkpointer writes many pages and makes them durable together, not one by one.
                "checkpoint 8 KiB",
                1.0,
                "random = { mode = 'write', size = 'SIZE', block-size = '8 KiB', fsync-every = 256, time = 'TIME', passes = 0 }",
            ),
        ],
    },
    Purpose {
        name: "files",
        summary: "many small files: source trees, package managers, backups",
        parts: &[
            small_files(
                "small files",
                2.0,
                "files = { count = 'COUNT', size-min = '512 B', size-max = '16 KiB' }",
            ),
            small_files(
                "copy tree",
                1.0,
                "copy-tree = { files = 'COUNT', size-median = '8 KiB', size-max = '1 MiB' }",
            ),
            small_files(
                "delete tree",
                1.0,
                "delete-tree = { files = 'COUNT', size-median = '4 KiB', size-max = '256 KiB' }",
            ),
        ],
    },
    Purpose {
        name: "mail",
        summary: "a mail spool: each message is durable before it is acknowledged",
        parts: &[
            small_files(
                "deliver and expunge",
                2.0,
                "files = { count = 'COUNT', size-min = '1 KiB', size-max = '64 KiB', fsync = true }",
            ),
            random(
                "mailbox read 16 KiB",
                1.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '16 KiB', time = 'TIME', passes = 0 }",
            ),
            random(
                "index update 4 KiB",
                1.0,
                "random = { mode = 'write', size = 'SIZE', block-size = '4 KiB', fsync-every = 1, time = 'TIME', passes = 0 }",
            ),
        ],
    },
    Purpose {
        name: "photos",
        summary: "a library of small and large files: import, browse, copy",
        parts: &[
            stream(
                "import one large file",
                1.0,
                "copy-file = { size = 'SIZE' }",
            ),
            small_files(
                "thumbnails",
                1.0,
                "files = { count = 'COUNT', size-min = '4 KiB', size-max = '256 KiB' }",
            ),
            stream(
                "read large files",
                1.0,
                "sequential = { mode = 'read', size = 'SIZE' }",
            ),
            random(
                "catalogue 4 KiB",
                1.0,
                "random = { mode = 'mixed', read-share = '80 %', size = 'SIZE', block-size = '4 KiB', fsync-every = 8, time = 'TIME', passes = 0 }",
            ),
        ],
    },
    Purpose {
        name: "video",
        summary: "large files streamed in and out",
        parts: &[
            stream(
                "record",
                1.0,
                "sequential = { mode = 'write', size = 'SIZE', block-size = '4 MiB' }",
            ),
            stream(
                "play back",
                1.0,
                "sequential = { mode = 'read', size = 'SIZE', block-size = '4 MiB' }",
            ),
            stream(
                "overwrite",
                0.5,
                "sequential = { mode = 'rewrite', size = 'SIZE', block-size = '4 MiB' }",
            ),
        ],
    },
    Purpose {
        name: "vm-images",
        summary: "images of virtual machines: 4 KiB blocks of guests, with their flushes",
        parts: &[
            random(
                "guest mixed 4 KiB",
                2.0,
                "random = { mode = 'mixed', read-share = '50 %', size = 'SIZE', block-size = '4 KiB', fsync-every = 16, time = 'TIME', passes = 0 }",
            ),
            random(
                // A guest's flush becomes fdatasync of its image.
                "guest commit 4 KiB",
                1.0,
                "random = { mode = 'write', size = 'SIZE', block-size = '4 KiB', fsync-every = 1, data-only = true, time = 'TIME', passes = 0 }",
            ),
            random(
                // Guests read ahead: a boot asks for more than single blocks.
                "boot read 64 KiB",
                1.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '64 KiB', time = 'TIME', passes = 0 }",
            ),
            stream("clone an image", 1.0, "copy-file = { size = 'SIZE' }"),
        ],
    },
    Purpose {
        name: "containers",
        summary: "container images: layers unpacked, files read at the start, layers removed",
        parts: &[
            small_files(
                "unpack a layer",
                2.0,
                "extract-tar = { files = 'COUNT', size-median = '4 KiB', size-max = '4 MiB' }",
            ),
            random(
                // A container reads only some of its files when it starts, in no order.
                "start read 16 KiB",
                1.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '16 KiB', time = 'TIME', passes = 0 }",
            ),
            small_files(
                "remove a layer",
                1.0,
                "delete-tree = { files = 'COUNT', size-median = '4 KiB', size-max = '4 MiB' }",
            ),
        ],
    },
    Purpose {
        name: "backup",
        summary: "a repository of backups: packs written, checked and restored",
        parts: &[
            stream(
                "write packs",
                2.0,
                "sequential = { mode = 'write', size = 'SIZE', block-size = '1 MiB' }",
            ),
            stream(
                "restore",
                1.0,
                "sequential = { mode = 'read', size = 'SIZE', block-size = '1 MiB' }",
            ),
            random(
                // A check of the repository reads chunks out of packs in the order of their hashes.
                "find chunks 512 KiB",
                1.0,
                "random = { mode = 'read', size = 'SIZE', block-size = '512 KiB', time = 'TIME', passes = 0 }",
            ),
        ],
    },
    Purpose {
        name: "build",
        summary: "builds of software: sources unpacked, small files made and read, trees removed",
        parts: &[
            small_files(
                "unpack sources",
                1.0,
                "extract-tar = { files = 'COUNT', size-median = '4 KiB', size-max = '256 KiB', sync-at-end = false }",
            ),
            small_files(
                "objects",
                2.0,
                "files = { count = 'COUNT', size-min = '1 KiB', size-max = '32 KiB' }",
            ),
            small_files(
                "remove the tree",
                1.0,
                "delete-tree = { files = 'COUNT', size-median = '4 KiB', size-max = '256 KiB' }",
            ),
        ],
    },
    Purpose {
        name: "etcd",
        summary: "a member of etcd: each append to its log is durable",
        parts: &[random(
            // Published tests append 2,300 bytes at a time; here it is the next multiple of 512.
            "log append",
            1.0,
            "sequential = { mode = 'write', size = 'SIZE', block-size = 2560, fsync-every = 1, data-only = true, time = 'TIME', passes = 0 }",
        )],
    },
    Purpose {
        name: "nas-gigabit",
        summary: "files on a server behind one gigabit of Ethernet, stored and fetched as streams",
        parts: &[
            stream(
                "store",
                1.0,
                "sequential = { mode = 'write', size = 'SIZE' }",
            ),
            stream(
                "fetch",
                1.0,
                "sequential = { mode = 'read', size = 'SIZE' }",
            ),
        ],
    },
    Purpose {
        name: "surveillance",
        summary: "a recorder of cameras: sixteen streams written at once",
        parts: &[stream(
            "record",
            1.0,
            "sequential = { mode = 'write', size = 'SIZE', block-size = '256 KiB', threads = 16 }",
        )],
    },
    Purpose {
        name: "ior",
        summary: "storage of several clients as IOR loads it: own files, then one shared file",
        // Weights are equal: neither pattern stands for more of the use than the other.
        parts: &[IOR_EASY, IOR_HARD],
    },
    Purpose {
        name: "mdtest",
        summary: "storage of several clients as mdtest loads it: own directories, then a shared one",
        // Creation, look-up and removal are metrics of each: a part would repeat them.
        parts: &[MDTEST_EASY, MDTEST_HARD],
    },
    Purpose {
        name: "io500",
        summary: "storage of several clients by the four access patterns of IO500",
        // In the order of IO500: what is hard comes last, and is left out first.
        parts: &[IOR_EASY, MDTEST_EASY, IOR_HARD, MDTEST_HARD],
    },
];

/// `video` with a format: recorded and played back frame after frame, as the published rates are tested.
static VIDEO_FORMAT: Purpose = Purpose {
    name: "video",
    summary: "a video format, recorded and played back without dropping a frame",
    parts: &[stream("stream", 1.0, "stream-video = { size = 'SIZE' }")],
};

/// A file of each process, in large blocks; read by another client than wrote it.
const IOR_EASY: PurposeWorkload = stream(
    "ior-easy",
    1.0,
    "shared-file = { size = 'SIZE', block-size = '1 MiB', layout = 'own', visits = 'next' }",
);
/// One file of all processes in blocks of 47,008 bytes, which fit no page and no stripe (IO500).
const IOR_HARD: PurposeWorkload = stream(
    "ior-hard",
    1.0,
    "shared-file = { size = 'SIZE', block-size = 47008, layout = 'strided', visits = 'next' }",
);
/// Empty files, in directories of each process. As mdtest does, this visits them in the order in
/// which they were made, and makes nothing durable.
const MDTEST_EASY: PurposeWorkload = small_files(
    "mdtest-easy",
    1.0,
    "files = { count = 'COUNT', size-min = 0, size-max = 0, directories = 1, phases = ['create', 'stat', 'unlink'], order = 'creation', sync-at-end = false, visits = 'next' }",
);
/// Files of 3,901 bytes, in one directory of all processes (IO500).
const MDTEST_HARD: PurposeWorkload = small_files(
    "mdtest-hard",
    1.0,
    "files = { count = 'COUNT', size-min = 3901, size-max = 3901, directories = 1, tree = 'shared', order = 'creation', sync-at-end = false, visits = 'next' }",
);

/// The purpose of that name.
pub fn find(name: &str) -> Option<&'static Purpose> {
    ALL.iter().find(|purpose| purpose.name == name)
}

impl Purpose {
    /// The purpose whose workloads show what is said after the colon: a format of `video` is streamed frame after frame.
    pub fn with_detail(&'static self) -> &'static Self {
        match self.name == VIDEO_FORMAT.name {
            true => &VIDEO_FORMAT,
            false => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::part::{FILES_MAX, GIB, MIB, round_two};
    use super::*;
    use stackrace_load::programs;

    #[test]
    fn every_purpose_is_workloads_with_settings_that_they_take() {
        for part in ALL.iter().flat_map(|purpose| purpose.parts) {
            let settings = part.settings(&WorkloadSize::LEAST);
            // What is no TOML has no kind; a placeholder left is no amount.
            assert!(programs::kind(&settings.owner).is_some(), "{}", part.name);
            assert_eq!(settings.check_all(), [], "{}", part.name);
            assert!(!settings.settings.is_empty(), "{}", part.name);
        }
    }

    #[test]
    fn a_size_grows_up_to_the_room_and_never_falls_below_the_least() {
        let write = &ALL[0].parts[0];
        let least = WorkloadSize::LEAST;
        let bytes = |times, room| write.scaled(least, times, room).bytes;
        assert_eq!(bytes(4.0, 4 * GIB), 64 * MIB);
        assert_eq!(bytes(1e6, 2 * GIB), 2 * GIB);
        assert_eq!(bytes(1e6, 100 * GIB), 4 * GIB);
        assert_eq!(bytes(0.01, 4 * GIB), least.bytes);
        assert_eq!(write.scaled(least, 1e9, GIB).files, FILES_MAX);
    }

    #[test]
    fn a_stream_that_has_no_room_is_repeated() {
        let write = &ALL[0].parts[0];
        let wanted = write.scaled(WorkloadSize::LEAST, 40.0, 100 * MIB);
        // 640 MiB, 100 of them at once.
        assert_eq!((wanted.bytes, wanted.passes), (91 * MIB, 7));
        let settings = write.settings(&wanted);
        assert_eq!(settings.count("size"), Ok(95_420_416));
        assert_eq!(settings.count("passes"), Ok(7));
        let more = write.scaled(wanted, 2.0, 100 * MIB);
        assert_eq!((more.bytes, more.passes), (98 * MIB, 13));
        let fits = write.scaled(wanted, 0.1, 100 * MIB);
        assert_eq!((fits.bytes, fits.passes), (63 * MIB, 1));
        let random = &ALL[0].parts[1];
        assert_eq!(random.scaled(wanted, 40.0, 100 * MIB).passes, 1);
    }

    #[test]
    fn counts_are_rounded_down_to_two_digits() {
        assert_eq!(round_two(12_345), 12_000);
        assert_eq!(round_two(99), 99);
    }
}
