//! One job whose options are read.

use stackrace_engine::spec::{NameCall, Zones};

use super::super::place::OptionPlace;

/// Order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access {
    /// Block after block, ascending, file after file.
    Sequential,
    /// So many blocks of each file in turn, ascending.
    InTurn(u32),
    /// Ascending, with so many bytes left out after each block, or back.
    Gap(i64),
    /// Ascending, the beginning of each zone.
    Strided(StridedZones),
    /// Random, each block once a pass.
    Once,
    /// Random with repeats.
    Uniform,
    /// Zipf with this theta.
    Zipf(f64),
    /// Pareto with this power.
    Pareto(f64),
    /// Normal, with this standard deviation as a share of the range.
    Normal(f64),
    /// By zones, each with its share of the operations.
    Zoned(Zones),
    /// Random blocks of several sizes, each byte once a pass.
    Covering,
}

/// A share of what several jobs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Jobs of one number share (`flow_id`).
    pub(crate) id: u64,
    /// How many operations it does while others do as many as they have parts.
    pub(crate) parts: u32,
    /// Pause before it asks again, ns.
    pub(crate) pause_ns: u64,
}

/// Which jobs end when one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitScope {
    /// Those of its group.
    Group,
    /// All up to the next wall.
    Stage,
    /// All, and those behind the next walls do not begin.
    All,
}

/// The rate below which a job fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeastRate {
    /// Bytes a second.
    pub(crate) bytes: u64,
    /// Averaged over so many ns.
    pub(crate) every_ns: u64,
}

/// Zones of which the beginning is visited, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StridedZones {
    /// Bytes visited in each zone.
    pub(crate) used: u64,
    /// Bytes from the beginning of a zone to that of the next.
    pub(crate) every: u64,
}

/// Bytes at the beginning of each file that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Offset {
    /// For each job; none: nothing.
    pub(crate) first: Option<Extent>,
    /// More for each clone; none: nothing.
    pub(crate) increment: Option<Extent>,
    /// Percentages become multiples of it; 0: of the smallest block.
    pub(crate) align: u64,
}

/// What a log over time is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// KiB a second.
    Bandwidth,
    /// Operations a second.
    Operations,
    /// Nanoseconds.
    Latency,
}

/// The logs over time of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Logs {
    /// What of, and the beginning of the file's name.
    pub(crate) files: Vec<(LogKind, String)>,
    /// Averaged over so many ns; 0: each operation by itself.
    pub(crate) every_ns: u64,
    /// The largest in place of the average.
    pub(crate) largest: bool,
    /// With the offset of each operation.
    pub(crate) offsets: bool,
    /// With priorities as hexadecimal numbers.
    pub(crate) priorities: bool,
    /// A file for each clone, not one for all jobs.
    pub(crate) each_job: bool,
}

/// Which system calls do the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// `pread` and `pwrite`.
    Plain,
    /// io_uring.
    Ring,
    /// No I/O at all.
    Null,
    /// One call on the name of a file for each operation.
    Names(NameCall),
    /// `fallocate` that reserves blocks.
    Reserve,
    /// `fallocate` that gives them back.
    Punch,
    /// `ftruncate`.
    Length,
}

impl Engine {
    /// Whether it works on names, and opens no file before.
    pub(crate) fn is_names(self) -> bool {
        matches!(self, Engine::Names(_))
    }

    /// Whether it moves data.
    pub(crate) fn moves_data(self) -> bool {
        matches!(self, Engine::Plain | Engine::Ring)
    }
}

/// An amount that may depend on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// This many, whatever the file holds.
    Bytes(u64),
    /// This share of what the file holds, from 0 to 100.
    Percent(u64),
}

/// What the files are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobFiles {
    /// As `filename=` lists them; all clones of the job share them.
    Named(Vec<String>),
    /// By a pattern with `$jobname`, `$jobnum` and `$filenum`.
    Pattern(String),
}

/// When the next operation starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum JobPace {
    /// So long after one completed, ns.
    Think(u64),
    /// By the clock, evenly, so many a second.
    Even(f64),
    /// By the clock, with exponentially distributed gaps, so many a second on average.
    Poisson(f64),
}

/// What the blocks that are written hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Content {
    /// Every byte is 0.
    Zero,
    /// Random data; so large before over after compression, with this share of duplicates.
    Random {
        /// 1: it does not compress.
        ratio: f64,
        /// 0: no block is another's copy.
        duplicates: f64,
    },
}

/// What becomes of a file that is only written, before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// Its blocks are reserved where the file system can; else it gets its size.
    IfPossible,
    /// Its blocks are reserved.
    Blocks,
    /// It gets its size.
    Size,
    /// Nothing is reserved: a file grows as it is written.
    Nothing,
}

/// When data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SyncPolicy {
    /// After so many writes; 0: never.
    pub(crate) every: u64,
    /// By fdatasync instead of fsync.
    pub(crate) data_only: bool,
    /// Every file is synced at the end of the job.
    pub(crate) at_end: bool,
    /// Files are opened with `O_SYNC`.
    pub(crate) open_sync: bool,
    /// Files are opened with `O_DSYNC`.
    pub(crate) open_dsync: bool,
}

/// What a job has to do with others that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ties {
    /// It begins when all clones of the job of this name have ended.
    pub(crate) waits_for: Option<String>,
    /// Which jobs end with it (`exitall`); none: no others do.
    pub(crate) ends: Option<ExitScope>,
    /// It fails when it moves fewer bytes a second.
    pub(crate) least: Option<LeastRate>,
    /// Its operations are in proportion to those of others.
    pub(crate) flow: Option<Flow>,
}

/// What becomes of the files of a job before and afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileCare {
    /// What becomes of files that are only written, before.
    pub(crate) reserve: Reserve,
    /// They are laid out as those that are read.
    pub(crate) overwrite: bool,
    /// The kernel is told the order of the blocks.
    pub(crate) advise: bool,
    /// Files are dropped from the page cache before.
    pub(crate) invalidate: bool,
    /// Files are removed afterwards.
    pub(crate) unlink: bool,
}

/// One job with every option resolved.
#[derive(Debug, Clone)]
pub(crate) struct FioJob {
    /// What its files are called, `$jobname`: the word in brackets.
    pub(crate) title: String,
    /// The job's name in the report.
    pub(crate) name: String,
    /// Where its section begins, for refusals.
    pub(crate) place: OptionPlace,
    /// Its group: those of one group run at the same time.
    pub(crate) group: u64,
    /// Which wall it begins behind: those between two walls run at the same time.
    pub(crate) stage: u64,
    /// What it has to do with others that run meanwhile.
    pub(crate) ties: Ties,
    /// Reported with the other jobs of its group.
    pub(crate) grouped: bool,
    /// What the job file calls it (`description`).
    pub(crate) description: Option<String>,
    /// What was said of all jobs, and of this: name and value.
    pub(crate) options: [Vec<(String, String)>; 2],
    /// The value of `rw`, for the report.
    pub(crate) mode: &'static str,
    /// Share of reads, 0 to 1.
    pub(crate) read_share: f64,
    /// Order of the blocks.
    pub(crate) access: Access,
    /// Block sizes in bytes, with their weights.
    pub(crate) block_sizes: Vec<(u32, u32)>,
    /// Random blocks lie at multiples of it.
    pub(crate) align: Option<u32>,
    /// Bytes of all files together (`size`); none: what there is.
    pub(crate) size: Option<Extent>,
    /// Bytes of each file (`filesize`).
    pub(crate) file_bytes: Option<u64>,
    /// Bytes to transfer (`io_size`); none: one pass.
    pub(crate) io_size: Option<Extent>,
    /// Where each file begins for the job (`offset`).
    pub(crate) offset: Offset,
    /// What is done before this counts for nothing (`ramp_time`), ns.
    pub(crate) ramp_ns: u64,
    /// The logs over time.
    pub(crate) logs: Logs,
    /// Passes over the data (`loops`).
    pub(crate) loops: u64,
    /// Most operations (`number_ios`); none: no limit.
    pub(crate) operations: Option<u64>,
    /// What the files are called.
    pub(crate) files: JobFiles,
    /// How many there are.
    pub(crate) file_count: u32,
    /// Files that are missing are made (`allow_file_create`).
    pub(crate) makes_files: bool,
    /// Directories of the files; clones take them in turn. Empty: the working directory.
    pub(crate) directories: Vec<String>,
    /// How many copies of the job run (`numjobs`).
    pub(crate) clones: u32,
    /// Operations outstanding at once.
    pub(crate) queue_depth: u32,
    /// Which system calls do the I/O.
    pub(crate) engine: Engine,
    /// The engine's name in the report, which is the job file's where fio has it.
    pub(crate) engine_name: String,
    /// Whether I/O bypasses the page cache.
    pub(crate) direct: bool,
    /// How long after the others of its group it begins (`startdelay`), ns.
    pub(crate) start_delay_ns: u64,
    /// Longest time (`runtime`), ns; none: no limit.
    pub(crate) time_ns: Option<u64>,
    /// The whole of that time, however often the data is passed over.
    pub(crate) time_based: bool,
    /// When data is made durable.
    pub(crate) durable: SyncPolicy,
    /// When the next operation starts.
    pub(crate) pace: JobPace,
    /// What the blocks that are written hold.
    pub(crate) content: Content,
    /// What becomes of its files before and afterwards.
    pub(crate) care: FileCare,
    /// What is read must be what was written.
    pub(crate) verify: bool,
    /// Everything is read back at the end.
    pub(crate) read_back: bool,
    /// What everything random follows from; none: another each time.
    pub(crate) seed: Option<u64>,
    /// Percentiles to report, rising.
    pub(crate) percentiles: Vec<f64>,
    /// They are of the whole latency.
    pub(crate) whole_percentiles: bool,
    /// What is done in another way than fio does it, to be said.
    pub(crate) notes: Vec<String>,
}

/// Clones of a job, and files of one, at most.
pub(super) const MANY: u64 = 1024;
/// Files of a job that only works on names, at most.
pub(super) const NAMES: u64 = 1 << 20;
