//! One job whose options are read.

use super::super::place::OptionPlace;

/// Order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access {
    /// Block after block, ascending.
    Sequential,
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
    /// Passes over the data (`loops`).
    pub(crate) loops: u64,
    /// Most operations (`number_ios`); none: no limit.
    pub(crate) operations: Option<u64>,
    /// What the files are called.
    pub(crate) files: JobFiles,
    /// How many there are.
    pub(crate) file_count: u32,
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
