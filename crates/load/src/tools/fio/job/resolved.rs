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
    /// Number of operations it does while others do as many as they have parts.
    pub parts: u32,
    /// Pause before it asks again, ns.
    pub pause_ns: u64,
}

/// The jobs that end when one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitScope {
    /// The jobs of its group.
    Group,
    /// All jobs up to the next wall.
    Stage,
    /// All jobs, and those behind the next walls do not begin.
    All,
}

/// The rate below which a job fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastRate {
    /// Bytes a second.
    pub bytes: u64,
    /// Time the rate is averaged over, ns.
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
    /// Bytes for each job; `None` if there are none.
    pub first: Option<Extent>,
    /// Bytes more for each clone; `None` if there are none.
    pub increment: Option<Extent>,
    /// Bytes of which percentages become multiples; 0 means those of the smallest block.
    pub align: u64,
}

/// The quantity that a log over time is of.
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
    /// Quantity of each log, and the beginning of the file's name.
    pub files: Vec<(LogKind, String)>,
    /// Time an entry is averaged over, ns; 0 means each operation by itself.
    pub every_ns: u64,
    /// Set if an entry is the largest in place of the average.
    pub largest: bool,
    /// Set if entries have the offset of each operation.
    pub offsets: bool,
    /// Set if entries have priorities as hexadecimal numbers.
    pub priorities: bool,
    /// Set if there is a file for each clone, not one for all jobs.
    pub each_job: bool,
}

/// The system calls that do the I/O.
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
    /// Returns true if it works on names, and opens no file before.
    pub fn is_names(self) -> bool {
        matches!(self, Engine::Names(_))
    }

    /// Returns true if it moves data.
    pub fn moves_data(self) -> bool {
        matches!(self, Engine::Plain | Engine::Ring)
    }
}

/// An amount that may depend on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// A number of bytes, whatever the file holds.
    Bytes(u64),
    /// A share of what the file holds, from 0 to 100.
    Percent(u64),
}

/// Names of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobFiles {
    /// As `filename=` lists them; all clones of the job share them.
    Named(Vec<String>),
    /// By a pattern with `$jobname`, `$jobnum` and `$filenum`.
    Pattern(String),
}

/// Rule for when the next operation starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JobPace {
    /// A fixed time after one completed, ns.
    Think(u64),
    /// By the clock, evenly, so many a second.
    Even(f64),
    /// By the clock, with exponentially distributed gaps, so many a second on average.
    Poisson(f64),
}

/// Content of the blocks that are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content {
    /// Every byte is 0.
    Zero,
    /// Random data; so large before over after compression, with this share of duplicates.
    Random {
        /// Size before compression over that after it; 1 if it does not compress.
        ratio: f64,
        /// Share of blocks that are copies; 0 if no block is another's copy.
        duplicates: f64,
    },
}

/// Preparation of a file that is only written, before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// Its blocks are reserved where the file system can; else it gets its size.
    IfPossible,
    /// Its blocks are reserved.
    Blocks,
    /// The file gets its size.
    Size,
    /// Nothing is reserved: a file grows as it is written.
    Nothing,
}

/// Rule for when data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncPolicy {
    /// Number of writes after which files are synced; 0 means never.
    pub every: u64,
    /// Set if it is done by fdatasync instead of fsync.
    pub data_only: bool,
    /// Set if every file is synced at the end of the job.
    pub at_end: bool,
    /// Set if files are opened with `O_SYNC`.
    pub open_sync: bool,
    /// Set if files are opened with `O_DSYNC`.
    pub open_dsync: bool,
}

/// Ties of a job to others that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ties {
    /// Name of the job whose clones must all have ended before it begins.
    pub waits_for: Option<String>,
    /// Jobs that end with it (`exitall`); `None` if no others do.
    pub ends: Option<ExitScope>,
    /// Rate below which it fails.
    pub least: Option<LeastRate>,
    /// Proportion of its operations to those of others.
    pub flow: Option<Flow>,
}

/// Care for the files of a job before and afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCare {
    /// Preparation of files that are only written.
    pub reserve: Reserve,
    /// Set if they are laid out as those that are read.
    pub overwrite: bool,
    /// Set if the kernel is told the order of the blocks.
    pub advise: bool,
    /// Set if files are dropped from the page cache before.
    pub invalidate: bool,
    /// Set if files are removed afterwards.
    pub unlink: bool,
}

/// One job with every option resolved.
#[derive(Debug, Clone)]
pub struct FioJob {
    /// Name its files have, `$jobname`: the word in brackets.
    pub title: String,
    /// The job's name in the report.
    pub name: String,
    /// Place where its section begins, for refusals.
    pub place: OptionPlace,
    /// Its group: those of one group run at the same time.
    pub group: u64,
    /// Number of the wall it begins behind: jobs between two walls run at the same time.
    pub stage: u64,
    /// Ties to others that run meanwhile.
    pub ties: Ties,
    /// Set if it is reported with the other jobs of its group.
    pub grouped: bool,
    /// Description in the job file (`description`).
    pub description: Option<String>,
    /// Options said of all jobs, and of this: name and value.
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
    /// Bytes of all files together (`size`); `None` means what there is.
    pub size: Option<Extent>,
    /// Bytes of each file (`filesize`).
    pub file_bytes: Option<u64>,
    /// Bytes to transfer (`io_size`); `None` means one pass.
    pub io_size: Option<Extent>,
    /// Offset in each file at which the job begins (`offset`).
    pub offset: Offset,
    /// Time at the beginning that counts for nothing (`ramp_time`), ns.
    pub ramp_ns: u64,
    /// The logs over time.
    pub logs: Logs,
    /// Passes over the data (`loops`).
    pub loops: u64,
    /// Most operations (`number_ios`); `None` if there is no limit.
    pub operations: Option<u64>,
    /// Names of the files.
    pub files: JobFiles,
    /// Number of files.
    pub file_count: u32,
    /// Set if files that are missing are made (`allow_file_create`).
    pub makes_files: bool,
    /// Directories of the files; clones take them in turn. If empty, the working directory.
    pub directories: Vec<String>,
    /// Number of copies of the job that run (`numjobs`).
    pub clones: u32,
    /// Operations outstanding at once.
    pub queue_depth: u32,
    /// The system calls that do the I/O.
    pub engine: Engine,
    /// The engine's name in the report, which is the job file's where fio has it.
    pub engine_name: String,
    /// Set if I/O bypasses the page cache.
    pub direct: bool,
    /// Time after the others of its group at which it begins (`startdelay`), ns.
    pub start_delay_ns: u64,
    /// Longest time (`runtime`), ns; `None` if there is no limit.
    pub time_ns: Option<u64>,
    /// Set if it takes the whole of that time, however often the data is passed over.
    pub time_based: bool,
    /// Rule for when data is made durable.
    pub durable: SyncPolicy,
    /// Rule for when the next operation starts.
    pub pace: JobPace,
    /// Content of the blocks that are written.
    pub content: Content,
    /// Care for its files before and afterwards.
    pub care: FileCare,
    /// Set if what is read must be what was written.
    pub verify: bool,
    /// Set if everything is read back at the end.
    pub read_back: bool,
    /// Seed from which everything random follows; `None` means another each time.
    pub seed: Option<u64>,
    /// Percentiles to report, rising.
    pub percentiles: Vec<f64>,
    /// Set if they are of the whole latency.
    pub whole_percentiles: bool,
    /// Notes on what is done in another way than fio does it.
    pub notes: Vec<String>,
}

/// Clones of a job, and files of one, at most.
pub(super) const MANY: u64 = 1024;
/// Files of a job that only works on names, at most.
pub(super) const NAMES: u64 = 1 << 20;
