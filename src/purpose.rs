//! What people use storage for, each as a documented list of workloads.
//!
//! `compare --for` takes a purpose and turns it into the workloads of an ordinary study. A probe of
//! the storage comes first, and the sizes follow from it, so that measuring takes about the time it is
//! given. All configurations get exactly the same work.

/// Rough speed of the directories, all together. It only sizes the work and is never reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// Durable sequential writes, B/s.
    pub(crate) write_rate: f64,
    /// Sequential reads from the storage, B/s.
    pub(crate) read_rate: f64,
    /// Small files created durably, files/s.
    pub(crate) create_rate: f64,
}

impl Pace {
    /// Where the sizes are replaced afterwards, or only shown as an example.
    pub(crate) const ANY: Self = Self {
        write_rate: 1e9,
        read_rate: 1e9,
        create_rate: 1e4,
    };
}

/// One workload of a purpose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PurposeWorkload {
    /// Name of the workload in the study.
    pub(crate) name: &'static str,
    /// Weight in the overall figure.
    pub(crate) weight: f64,
    /// Its table in TOML. `SIZE`, `COUNT` and `TIME` are placeholders for values that fit the time.
    template: &'static str,
    /// How many times one trial writes `SIZE` bytes, those included that each trial lays out anew.
    writes: f64,
    /// How many times it reads them.
    reads: f64,
    /// Upper limit of `SIZE`, bytes: a fast device would otherwise get files that fill it.
    size_max: u64,
    /// Cost of a trial per file, as a multiple of creating one file.
    file_costs: f64,
}

/// One purpose, as `compare --for` takes it.
#[derive(Debug)]
pub(crate) struct Purpose {
    /// The word after `--for`.
    pub(crate) name: &'static str,
    /// What the storage does, in one sentence.
    pub(crate) summary: &'static str,
    /// The workloads, in the order in which they run.
    pub(crate) parts: &'static [PurposeWorkload],
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const fn stream(
    name: &'static str,
    weight: f64,
    template: &'static str,
    [writes, reads]: [f64; 2],
) -> PurposeWorkload {
    PurposeWorkload {
        name,
        weight,
        template,
        writes,
        reads,
        size_max: 4 * GIB,
        file_costs: 0.0,
    }
}

const fn random(name: &'static str, weight: f64, template: &'static str) -> PurposeWorkload {
    PurposeWorkload {
        name,
        weight,
        template,
        // It ends by time; its data are laid out once, in as much time as one trial takes.
        writes: 1.0,
        reads: 0.0,
        size_max: GIB,
        file_costs: 0.0,
    }
}

const fn small_files(
    name: &'static str,
    weight: f64,
    template: &'static str,
    file_costs: f64,
) -> PurposeWorkload {
    PurposeWorkload {
        name,
        weight,
        template,
        writes: 0.0,
        reads: 0.0,
        size_max: 0,
        file_costs,
    }
}

/// Every purpose; the first is the default.
pub(crate) const ALL: &[Purpose] = &[
    Purpose {
        name: "general",
        summary: "mixed use: streaming, random access, small files",
        parts: &[
            stream(
                "streaming write",
                1.0,
                "sequential = { mode = \"write\", size = SIZE }",
                [1.0, 0.0],
            ),
            stream(
                "streaming read",
                1.0,
                "sequential = { mode = \"read\", size = SIZE }",
                [0.0, 1.0],
            ),
            random(
                "random read 4 KiB",
                1.0,
                "random = { mode = \"read\", size = SIZE, block-size = \"4 KiB\", time = TIME }",
            ),
            random(
                "random write 4 KiB",
                1.0,
                "random = { mode = \"write\", size = SIZE, block-size = \"4 KiB\", fsync-every = 16, time = TIME }",
            ),
            small_files(
                "small files",
                1.0,
                "files = { count = COUNT, size-min = \"1 KiB\", size-max = \"16 KiB\" }",
                3.0,
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
                "random = { mode = \"write\", size = SIZE, block-size = \"16 KiB\", fsync-every = 1, time = TIME }",
            ),
            random(
                "page read 16 KiB",
                2.0,
                "random = { mode = \"read\", size = SIZE, block-size = \"16 KiB\", time = TIME }",
            ),
            random(
                "mixed 16 KiB",
                1.0,
                "random = { mode = \"mixed\", read-share = \"70 %\", size = SIZE, block-size = \"16 KiB\", fsync-every = 8, time = TIME }",
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
                "files = { count = COUNT, size-min = \"512 B\", size-max = \"16 KiB\" }",
                3.0,
            ),
            small_files(
                "copy tree",
                1.0,
                "copy-tree = { files = COUNT, size-median = \"8 KiB\", size-max = \"1 MiB\" }",
                4.0,
            ),
            small_files(
                "delete tree",
                1.0,
                "delete-tree = { files = COUNT, size-median = \"4 KiB\", size-max = \"256 KiB\" }",
                3.0,
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
                "files = { count = COUNT, size-min = \"1 KiB\", size-max = \"64 KiB\", fsync = true }",
                8.0,
            ),
            random(
                "mailbox read 16 KiB",
                1.0,
                "random = { mode = \"read\", size = SIZE, block-size = \"16 KiB\", time = TIME }",
            ),
            random(
                "index update 4 KiB",
                1.0,
                "random = { mode = \"write\", size = SIZE, block-size = \"4 KiB\", fsync-every = 1, time = TIME }",
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
                "copy-file = { size = SIZE }",
                [2.0, 1.0],
            ),
            small_files(
                "thumbnails",
                1.0,
                "files = { count = COUNT, size-min = \"4 KiB\", size-max = \"256 KiB\" }",
                6.0,
            ),
            stream(
                "read large files",
                1.0,
                "sequential = { mode = \"read\", size = SIZE }",
                [0.0, 1.0],
            ),
            random(
                "catalogue 4 KiB",
                1.0,
                "random = { mode = \"mixed\", read-share = \"80 %\", size = SIZE, block-size = \"4 KiB\", fsync-every = 8, time = TIME }",
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
                "sequential = { mode = \"write\", size = SIZE, block-size = \"4 MiB\" }",
                [1.0, 0.0],
            ),
            stream(
                "play back",
                1.0,
                "sequential = { mode = \"read\", size = SIZE, block-size = \"4 MiB\" }",
                [0.0, 1.0],
            ),
            stream(
                "overwrite",
                0.5,
                "sequential = { mode = \"rewrite\", size = SIZE, block-size = \"4 MiB\" }",
                [1.0, 0.0],
            ),
        ],
    },
];

/// The purpose of that name.
pub(crate) fn find(name: &str) -> Option<&'static Purpose> {
    ALL.iter().find(|purpose| purpose.name == name)
}

impl PurposeWorkload {
    /// The workload's table, sized so that measuring takes about `seconds`, with at most `room` bytes
    /// of data, or with a given data size.
    pub(crate) fn toml(&self, pace: Pace, seconds: f64, room: u64, size: Option<u64>) -> String {
        let per_byte = self.writes / pace.write_rate + self.reads / pace.read_rate;
        // Random access costs no bytes per trial beyond its data, and small files cost none at all:
        // their size comes from the limits below alone.
        let affordable = if per_byte > 0.0 {
            seconds / per_byte
        } else {
            0.0
        };
        // Less than 16 MiB would be gone before the first sample of the throughput is taken.
        let most = self.size_max.min(room).max(16 * MIB);
        let fitting = (affordable as u64).clamp(16 * MIB, most) / MIB * MIB;
        let bytes = size.unwrap_or(fitting);
        // Fewer than 100 files are measured too coarsely, more than 100,000 fill directories for minutes.
        let count =
            (pace.create_rate * seconds / self.file_costs.max(1.0)).clamp(100.0, 100_000.0) as u64;
        // Two digits are enough to size a workload, and easier to read in the printed study.
        let count = round_two(count);
        // Random access lasts a fixed time: it has no end that data could set.
        let time = format!("\"{:.0} ms\"", (seconds * 1000.0).clamp(300.0, 30_000.0));
        self.template
            .replace("SIZE", &format!("{bytes}"))
            .replace("COUNT", &format!("{count}"))
            .replace("TIME", &time)
    }
}

fn round_two(count: u64) -> u64 {
    let mut scale = 1;
    while count / scale >= 100 {
        scale *= 10;
    }
    count / scale * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_of_every_purpose_is_replaced() {
        let pace = Pace {
            write_rate: 200e6,
            read_rate: 500e6,
            create_rate: 5000.0,
        };
        for purpose in ALL {
            assert!(!purpose.parts.is_empty());
            for part in purpose.parts {
                let toml = part.toml(pace, 2.0, GIB, None);
                assert!(
                    !toml.contains("SIZE") && !toml.contains("COUNT") && !toml.contains("TIME"),
                    "{toml}"
                );
            }
        }
    }

    #[test]
    fn a_slow_disk_gets_the_smallest_size() {
        let part = &ALL[0].parts[0];
        let slow = part.toml(
            Pace {
                write_rate: 1e6,
                read_rate: 1e6,
                create_rate: 10.0,
            },
            1.0,
            GIB,
            None,
        );
        assert!(slow.contains(&format!("size = {}", 16 * MIB)), "{slow}");
    }

    #[test]
    fn a_read_is_as_large_as_can_be_read_in_the_time_and_as_there_is_room() {
        let pace = Pace {
            write_rate: 100e6,
            read_rate: 2000e6,
            create_rate: 1.0,
        };
        let read = &ALL[0].parts[1];
        let sized = |room| read.toml(pace, 1.0, room, None);
        assert!(sized(4 * GIB).contains(&format!("size = {}", 1907 * MIB)));
        assert!(sized(GIB).contains(&format!("size = {GIB}")));
        let write = ALL[0].parts[0].toml(pace, 1.0, GIB, None);
        assert!(write.contains(&format!("size = {}", 95 * MIB)), "{write}");
    }

    #[test]
    fn counts_are_rounded_down_to_two_digits() {
        assert_eq!(round_two(12_345), 12_000);
        assert_eq!(round_two(99), 99);
    }
}
