//! The settings of block I/O: one meaning each, whichever workload offers them.

use crate::setting::{Kind, SettingDoc};

/// A block size, with a default of the workload's own.
pub(in crate::workload) const fn block_size(default: &'static str) -> SettingDoc {
    SettingDoc::optional(
        "block-size",
        Kind::Bytes,
        default,
        "Bytes of one operation.",
    )
}

/// An fsync cadence, with a default of the workload's own.
pub(in crate::workload) const fn fsync_every(default: &'static str) -> SettingDoc {
    SettingDoc::optional(
        "fsync-every",
        Kind::Count,
        default,
        "fsync after so many writes of a thread; 0: never.",
    )
}

/// A number of files, with a default of the workload's own.
pub(in crate::workload) const fn files(default: &'static str, doc: &'static str) -> SettingDoc {
    SettingDoc::optional("files", Kind::Count, default, doc)
}

/// A longest time, with a default of the workload's own; empty: until the pass is complete.
pub(in crate::workload) const fn time(default: &'static str, doc: &'static str) -> SettingDoc {
    SettingDoc::optional("time", Kind::Time, default, doc)
}

/// See its `doc`, as all below.
pub(in crate::workload) const SIZE: SettingDoc = SettingDoc {
    name: "size",
    kind: Kind::Bytes,
    default: "",
    required: true,
    doc: "Size of the data: all files together.",
};
pub(in crate::workload) const BLOCK_SIZES: SettingDoc = SettingDoc::optional(
    "block-sizes",
    Kind::Weights,
    "",
    "Several block sizes with their weights, instead of block-size; not with access = \"once\".",
);
pub(in crate::workload) const ALIGN: SettingDoc = SettingDoc::optional(
    "align",
    Kind::Bytes,
    "",
    "Blocks begin at multiples of this; their own size unless given.",
);
pub(in crate::workload) const THREADS: SettingDoc =
    SettingDoc::optional("threads", Kind::Count, "1", "Threads.");
pub(in crate::workload) const QUEUE_DEPTH: SettingDoc = SettingDoc::optional(
    "queue-depth",
    Kind::Count,
    "1",
    "Operations outstanding at once, per thread.",
);
pub(in crate::workload) const DIRECT: SettingDoc = SettingDoc::optional(
    "direct",
    Kind::Flag,
    "false",
    "O_DIRECT: past the page cache.",
);
pub(in crate::workload) const ACCESS: SettingDoc = SettingDoc::optional(
    "access",
    Kind::Choice(&["once", "uniform", "zipf", "pareto", "normal", "hot"]),
    "once",
    "Each block once, or drawn with repeats: all alike, by Zipf's or Pareto's law, around the middle, or some hot.",
);
pub(in crate::workload) const SKEW: SettingDoc = SettingDoc::optional(
    "skew",
    Kind::Number,
    "",
    "How uneven access is: Zipf's exponent (default 1.1), Pareto's h (0.2), the normal deviation as a share of the data (0.15).",
);
pub(in crate::workload) const HOT_RANGE: SettingDoc = SettingDoc::optional(
    "hot-range",
    Kind::Share,
    "10 %",
    "With access = \"hot\": share of the data that is hot.",
);
pub(in crate::workload) const HOT_SHARE: SettingDoc = SettingDoc::optional(
    "hot-share",
    Kind::Share,
    "90 %",
    "With access = \"hot\": share of the operations that go there.",
);
pub(in crate::workload) const RATE: SettingDoc = SettingDoc::optional(
    "rate",
    Kind::Number,
    "",
    "Open loop: operations per second over all threads, by the clock; latency counts from the intended start.",
);
pub(in crate::workload) const ARRIVALS: SettingDoc = SettingDoc::optional(
    "arrivals",
    Kind::Choice(&["even", "poisson"]),
    "even",
    "With rate: evenly spaced, or at random as independent users come.",
);
pub(in crate::workload) const THINK_TIME: SettingDoc = SettingDoc::optional(
    "think-time",
    Kind::Time,
    "",
    "Pause between a completion and the next issue.",
);
pub(in crate::workload) const FSYNC_AT_END: SettingDoc = SettingDoc::optional(
    "fsync-at-end",
    Kind::Flag,
    "true",
    "fsync before the clock stops, if anything was written.",
);
pub(in crate::workload) const DATA_ONLY: SettingDoc = SettingDoc::optional(
    "data-only",
    Kind::Flag,
    "false",
    "fdatasync instead of fsync: time stamps need not be durable.",
);
pub(in crate::workload) const SYNC: SettingDoc = SettingDoc::optional(
    "sync",
    Kind::Choice(&["none", "dsync", "sync"]),
    "none",
    "Open with O_DSYNC or O_SYNC: each write is durable when it returns.",
);
pub(in crate::workload) const PREALLOCATE: SettingDoc = SettingDoc::optional(
    "preallocate",
    Kind::Flag,
    "false",
    "Reserve the blocks of a new file (fallocate) before the clock starts.",
);
pub(in crate::workload) const OPERATIONS: SettingDoc = SettingDoc::optional(
    "operations",
    Kind::Count,
    "",
    "Stop after so many operations.",
);
pub(in crate::workload) const VERIFY: SettingDoc = SettingDoc::optional(
    "verify",
    Kind::Flag,
    "false",
    "Check every byte read against what was written, and read everything back at the end.",
);
pub(in crate::workload) const CONTENT: SettingDoc = SettingDoc::optional(
    "content",
    Kind::Choice(&["random", "zero"]),
    "random",
    "What is written: random bytes, or zeros (compressing and thin storage may store nothing of them).",
);
pub(in crate::workload) const COMPRESS_RATIO: SettingDoc = SettingDoc::optional(
    "compress-ratio",
    Kind::Number,
    "1",
    "How many times smaller the data can be compressed.",
);
pub(in crate::workload) const DUPLICATES: SettingDoc = SettingDoc::optional(
    "duplicates",
    Kind::Share,
    "0 %",
    "Share of written blocks that repeat others, for storage that deduplicates.",
);
pub(in crate::workload) const ENGINE: SettingDoc = SettingDoc::optional(
    "engine",
    Kind::Choice(&["auto", "sync", "io_uring"]),
    "auto",
    "I/O engine; auto decides and says why.",
);
