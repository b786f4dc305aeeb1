//! The settings of block I/O: one meaning each, whichever workload offers them.

use stackrace_base::setting::{ChoiceDoc, SettingDoc, choice};
use stackrace_engine::spec::IoEngine;

/// A block size, with a default of the workload's own.
pub const fn block_size(default: &'static str) -> SettingDoc {
    SettingDoc::bytes("block-size", default, "Bytes of one operation.")
}

/// An fsync cadence, with a default of the workload's own.
pub const fn fsync_every(default: &'static str) -> SettingDoc {
    SettingDoc::count(
        "fsync-every",
        default,
        "fsync after so many writes of a thread; 0: never.",
    )
}

/// A number of files, with a default of the workload's own.
pub const fn files(default: &'static str, doc: &'static str) -> SettingDoc {
    SettingDoc::count("files", default, doc)
}

/// A longest time, with a default of the workload's own; empty means until the pass is complete.
pub const fn time(default: &'static str, doc: &'static str) -> SettingDoc {
    SettingDoc::time("time", default, doc)
}

/// Number of times the data are gone over.
pub const PASSES: SettingDoc = SettingDoc::count(
    "passes",
    "1",
    "Times each block is visited; 0: again and again until `time` is over. Each pass begins as the first one: new files, or pages dropped where caches are, with the clock stopped.",
);

/// Number of files, always one: for a workload that does not offer the setting.
pub const FILES: SettingDoc = files("1", "Number of files the size is divided among.");
/// See its `doc`, as all below.
pub const SIZE: SettingDoc =
    SettingDoc::bytes("size", "", "Size of the data: all files together.").required();
/// Sizes drawn by weight: a workload that offers it has one of [`block_size`] too.
pub const BLOCK_SIZES: SettingDoc = SettingDoc::weights(
    "block-sizes",
    "",
    "Several block sizes with their weights, instead of block-size; not with access = \"once\".",
);
/// Alignment in bytes; without it, a block begins at a multiple of its own size.
pub const ALIGN: SettingDoc = SettingDoc::bytes(
    "align",
    "",
    "Blocks begin at multiples of this; their own size unless given.",
);
/// Share of reads; `None` where [`READ_SHARE`] says it.
pub const MODE: ChoiceDoc<Option<f64>> = choice!(
    "mode",
    ["read" => Some(1.0), "write" => Some(0.0), "mixed" => None],
    "",
    "Read, write, or both.",
);
/// Share of reads in a mix, from 0 % to 100 %; only with `mixed` of [`MODE`].
pub const READ_SHARE: SettingDoc =
    SettingDoc::share("read-share", "60 %", "Share of reads in a mix.");
/// Number of threads, at least 1; each has its own queue.
pub const THREADS: SettingDoc = SettingDoc::count("threads", "1", "Threads.");
/// Queue depth of each thread: that of all together is this times the threads.
pub const QUEUE_DEPTH: SettingDoc = SettingDoc::count(
    "queue-depth",
    "1",
    "Operations outstanding at once, per thread.",
);
/// Sizes and offsets must then be multiples of the device's block.
pub const DIRECT: SettingDoc =
    SettingDoc::flag("direct", "false", "O_DIRECT: past the page cache.");
/// Laws by which the next block is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLaw {
    /// Each block once, in random order.
    Once,
    /// Drawn, all alike.
    Uniform,
    /// Drawn by Zipf's law.
    Zipf,
    /// Drawn by Pareto's law.
    Pareto,
    /// Drawn around the middle.
    Normal,
    /// Drawn, a part of the data more often than the rest.
    Hot,
}
/// The order in which blocks are visited; [`SKEW`], [`HOT_RANGE`] and [`HOT_SHARE`] refine it.
pub const ACCESS: ChoiceDoc<AccessLaw> = choice!(
    "access",
    [
        "once" => AccessLaw::Once,
        "uniform" => AccessLaw::Uniform,
        "zipf" => AccessLaw::Zipf,
        "pareto" => AccessLaw::Pareto,
        "normal" => AccessLaw::Normal,
        "hot" => AccessLaw::Hot,
    ],
    "once",
    "Each block once, or drawn with repeats: all alike, by Zipf's or Pareto's law, around the middle, or some hot.",
);
/// Skew of access, only with the laws `zipf`, `pareto` and `normal` of [`ACCESS`].
pub const SKEW: SettingDoc = SettingDoc::number("skew", "", "How uneven access is: Zipf's exponent, Pareto's h, or the normal deviation as a share of the data.").computed("1.1 for zipf, 0.2 for pareto, 0.15 for normal");
/// Hot range, from 0 % to 100 % of the data; only with `hot` of [`ACCESS`].
pub const HOT_RANGE: SettingDoc = SettingDoc::share(
    "hot-range",
    "10 %",
    "With access = \"hot\": share of the data that is hot.",
);
/// Share of the hot range, from 0 % to 100 % of the operations; only with `hot` of [`ACCESS`].
pub const HOT_SHARE: SettingDoc = SettingDoc::share(
    "hot-share",
    "90 %",
    "With access = \"hot\": share of the operations that go there.",
);
/// Operations per second; empty means a closed loop, as fast as the storage answers.
pub const RATE: SettingDoc = SettingDoc::number(
    "rate",
    "",
    "Open loop: operations per second over all threads, by the clock; latency counts from the intended start.",
);
/// The spacing of intended starts, true for a random one; only with [`RATE`].
pub const ARRIVALS: ChoiceDoc<bool> = choice!(
    "arrivals",
    ["even" => false, "poisson" => true],
    "even",
    "With rate: evenly spaced, or at random as independent users come.",
);
/// Think time of each thread, in a closed loop.
pub const THINK_TIME: SettingDoc = SettingDoc::time(
    "think-time",
    "0 s",
    "Pause between a completion and the next issue.",
);
/// Its time is part of the measured time.
pub const FSYNC_AT_END: SettingDoc = SettingDoc::flag(
    "fsync-at-end",
    "true",
    "fsync before the clock stops, if anything was written.",
);
/// Changes each fsync that [`fsync_every`] and [`FSYNC_AT_END`] ask for.
pub const DATA_ONLY: SettingDoc = SettingDoc::flag(
    "data-only",
    "false",
    "fdatasync instead of fsync: time stamps need not be durable.",
);
/// Flags with which files are opened, so that a write is durable when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenSync {
    /// Neither.
    None,
    /// `O_DSYNC`: what is needed to read the data back.
    Dsync,
    /// `O_SYNC`: time stamps, too.
    Sync,
}
/// Durability by the open file, instead of an fsync.
pub const SYNC: ChoiceDoc<OpenSync> = choice!(
    "sync",
    ["none" => OpenSync::None, "dsync" => OpenSync::Dsync, "sync" => OpenSync::Sync],
    "none",
    "Open with O_DSYNC or O_SYNC: each write is durable when it returns.",
);
/// Flag to preallocate, so that writes find their blocks reserved; not for files that exist.
pub const PREALLOCATE: SettingDoc = SettingDoc::flag(
    "preallocate",
    "false",
    "Reserve the blocks of a new file (fallocate) before the clock starts.",
);
/// Flag to read first: one operation is then a read and a write of the same block.
pub const READ_FIRST: SettingDoc = SettingDoc::flag(
    "read-first",
    "false",
    "A write reads its block first, changes one byte and writes it back, as bonnie++ rewrites.",
);
/// Flag to keep the data: nothing is laid out anew; size and files must match those before.
pub const SAME_DATA: SettingDoc = SettingDoc::flag(
    "same-data",
    "false",
    "Work on the data that the workload before this one left, as the phases of bonnie++ do.",
);
/// Operations of all threads together; empty means until the passes are done, or time is over.
pub const OPERATIONS: SettingDoc =
    SettingDoc::count("operations", "", "Stop after so many operations.");
/// A wrong byte fails the trial.
pub const VERIFY: SettingDoc = SettingDoc::flag(
    "verify",
    "false",
    "Check every byte read against what was written, and read everything back at the end.",
);
/// Random bytes unless the storage is to see zeros, which is true then; [`COMPRESS_RATIO`] and
/// [`DUPLICATES`] shape random ones.
pub const CONTENT: ChoiceDoc<bool> = choice!(
    "content",
    ["random" => false, "zero" => true],
    "random",
    "What is written: random bytes, or zeros (compressing and thin storage may store nothing of them).",
);
/// Compression ratio, at least 1; data of ratio 1 cannot be compressed.
pub const COMPRESS_RATIO: SettingDoc = SettingDoc::number(
    "compress-ratio",
    "1",
    "How many times smaller the data can be compressed.",
);
/// Share of duplicates, from 0 % to 100 % of the blocks.
pub const DUPLICATES: SettingDoc = SettingDoc::share(
    "duplicates",
    "0 %",
    "Share of written blocks that repeat others, for storage that deduplicates.",
);
/// The interface to the kernel; the choice of `auto` is recorded.
pub const ENGINE: ChoiceDoc<IoEngine> = choice!(
    "engine",
    ["auto" => IoEngine::Auto, "sync" => IoEngine::Sync, "io_uring" => IoEngine::Uring],
    "auto",
    "I/O engine; auto decides and says why.",
);
