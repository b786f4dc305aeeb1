//! One job whose options are read.

use stackrace_engine::spec::{NameCall, Zones};

use super::super::place::OptionPlace;

/// Order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Access {
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
pub struct Flow {
    /// Jobs of one number share (`flow_id`).
    pub id: u64,
    /// How many operations it does while others do as many as they have parts.
    pub parts: u32,
    /// Pause before it asks again, ns.
    pub pause_ns: u64,
}

/// Which jobs end when one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitScope {
    /// Those of its group.
    Group,
    /// All up to the next wall.
    Stage,
    /// All, and those behind the next walls do not begin.
    All,
}

/// The rate below which a job fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastRate {
    /// Bytes a second.
    pub bytes: u64,
    /// Averaged over so many ns.
    pub every_ns: u64,
}

/// Zones of which the beginning is visited, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedZones {
    /// Bytes visited in each zone.
    pub used: u64,
    /// Bytes from the beginning of a zone to that of the next.
    pub every: u64,
}

/// Bytes at the beginning of each file that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offset {
    /// For each job; none: nothing.
    pub first: Option<Extent>,
    /// More for each clone; none: nothing.
    pub increment: Option<Extent>,
    /// Percentages become multiples of it; 0: of the smallest block.
    pub align: u64,
}

/// What a log over time is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// KiB a second.
    Bandwidth,
    /// Operations a second.
    Operations,
    /// Nanoseconds.
    Latency,
}

/// The logs over time of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logs {
    /// What of, and the beginning of the file's name.
    pub files: Vec<(LogKind, String)>,
    /// Averaged over so many ns; 0: each operation by itself.
    pub every_ns: u64,
    /// The largest in place of the average.
    pub largest: bool,
    /// With the offset of each operation.
    pub offsets: bool,
    /// With priorities as hexadecimal numbers.
    pub priorities: bool,
    /// A file for each clone, not one for all jobs.
    pub each_job: bool,
}

/// Which system calls do the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
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
    pub fn is_names(self) -> bool {
        matches!(self, Engine::Names(_))
    }

    /// Whether it moves data.
    pub fn moves_data(self) -> bool {
        matches!(self, Engine::Plain | Engine::Ring)
    }
}

/// An amount that may depend on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// This many, whatever the file holds.
    Bytes(u64),
    /// This share of what the file holds, from 0 to 100.
    Percent(u64),
}

/// What the files are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobFiles {
    /// As `filename=` lists them; all clones of the job share them.
    Named(Vec<String>),
    /// By a pattern with `$jobname`, `$jobnum` and `$filenum`.
    Pattern(String),
}

/// When the next operation starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JobPace {
    /// So long after one completed, ns.
    Think(u64),
    /// By the clock, evenly, so many a second.
    Even(f64),
    /// By the clock, with exponentially distributed gaps, so many a second on average.
    Poisson(f64),
}

/// What the blocks that are written hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content {
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
pub enum Reserve {
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
pub struct SyncPolicy {
    /// After so many writes; 0: never.
    pub every: u64,
    /// By fdatasync instead of fsync.
    pub data_only: bool,
    /// Every file is synced at the end of the job.
    pub at_end: bool,
    /// Files are opened with `O_SYNC`.
    pub open_sync: bool,
    /// Files are opened with `O_DSYNC`.
    pub open_dsync: bool,
}

/// What a job has to do with others that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ties {
    /// It begins when all clones of the job of this name have ended.
    pub waits_for: Option<String>,
    /// Which jobs end with it (`exitall`); none: no others do.
    pub ends: Option<ExitScope>,
    /// It fails when it moves fewer bytes a second.
    pub least: Option<LeastRate>,
    /// Its operations are in proportion to those of others.
    pub flow: Option<Flow>,
}

/// What becomes of the files of a job before and afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCare {
    /// What becomes of files that are only written, before.
    pub reserve: Reserve,
    /// They are laid out as those that are read.
    pub overwrite: bool,
    /// The kernel is told the order of the blocks.
    pub advise: bool,
    /// Files are dropped from the page cache before.
    pub invalidate: bool,
    /// Files are removed afterwards.
    pub unlink: bool,
}

/// One job with every option resolved.
#[derive(Debug, Clone)]
pub struct FioJob {
    /// What its files are called, `$jobname`: the word in brackets.
    pub title: String,
    /// The job's name in the report.
    pub name: String,
    /// Where its section begins, for refusals.
    pub place: OptionPlace,
    /// Its group: those of one group run at the same time.
    pub group: u64,
    /// Which wall it begins behind: those between two walls run at the same time.
    pub stage: u64,
    /// What it has to do with others that run meanwhile.
    pub ties: Ties,
    /// Reported with the other jobs of its group.
    pub grouped: bool,
    /// What the job file calls it (`description`).
    pub description: Option<String>,
    /// What was said of all jobs, and of this: name and value.
    pub options: [Vec<(String, String)>; 2],
    /// The value of `rw`, for the report.
    pub mode: &'static str,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Order of the blocks.
    pub access: Access,
    /// Block sizes in bytes, with their weights.
    pub block_sizes: Vec<(u32, u32)>,
    /// Random blocks lie at multiples of it.
    pub align: Option<u32>,
    /// Bytes of all files together (`size`); none: what there is.
    pub size: Option<Extent>,
    /// Bytes of each file (`filesize`).
    pub file_bytes: Option<u64>,
    /// Bytes to transfer (`io_size`); none: one pass.
    pub io_size: Option<Extent>,
    /// Where each file begins for the job (`offset`).
    pub offset: Offset,
    /// What is done before this counts for nothing (`ramp_time`), ns.
    pub ramp_ns: u64,
    /// The logs over time.
    pub logs: Logs,
    /// Passes over the data (`loops`).
    pub loops: u64,
    /// Most operations (`number_ios`); none: no limit.
    pub operations: Option<u64>,
    /// What the files are called.
    pub files: JobFiles,
    /// How many there are.
    pub file_count: u32,
    /// Files that are missing are made (`allow_file_create`).
    pub makes_files: bool,
    /// Directories of the files; clones take them in turn. Empty: the working directory.
    pub directories: Vec<String>,
    /// How many copies of the job run (`numjobs`).
    pub clones: u32,
    /// Operations outstanding at once.
    pub queue_depth: u32,
    /// Which system calls do the I/O.
    pub engine: Engine,
    /// The engine's name in the report, which is the job file's where fio has it.
    pub engine_name: String,
    /// Whether I/O bypasses the page cache.
    pub direct: bool,
    /// How long after the others of its group it begins (`startdelay`), ns.
    pub start_delay_ns: u64,
    /// Longest time (`runtime`), ns; none: no limit.
    pub time_ns: Option<u64>,
    /// The whole of that time, however often the data is passed over.
    pub time_based: bool,
    /// When data is made durable.
    pub durable: SyncPolicy,
    /// When the next operation starts.
    pub pace: JobPace,
    /// What the blocks that are written hold.
    pub content: Content,
    /// What becomes of its files before and afterwards.
    pub care: FileCare,
    /// What is read must be what was written.
    pub verify: bool,
    /// Everything is read back at the end.
    pub read_back: bool,
    /// What everything random follows from; none: another each time.
    pub seed: Option<u64>,
    /// Percentiles to report, rising.
    pub percentiles: Vec<f64>,
    /// They are of the whole latency.
    pub whole_percentiles: bool,
    /// What is done in another way than fio does it, to be said.
    pub notes: Vec<String>,
}

/// Clones of a job, and files of one, at most.
pub(super) const MANY: u64 = 1024;
/// Files of a job that only works on names, at most.
pub(super) const NAMES: u64 = 1 << 20;
