//! A report as numbers. Units: bytes, nanoseconds.

/// Percentiles that are reported unless a job lists others.
pub(super) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Name of the program that printed a report, in the place where fio names itself.
pub(super) const VERSION: &str = concat!(
    "stackrace-",
    env!("CARGO_PKG_VERSION"),
    " (fio-3.33 layout)"
);

/// Upper ends of the classes latencies are counted in, ns; what is above the last is the last class.
pub(super) const CLASSES: [u64; 31] = [
    2,
    4,
    10,
    20,
    50,
    100,
    250,
    500,
    750,
    1_000, //
    2_000,
    4_000,
    10_000,
    20_000,
    50_000,
    100_000,
    250_000,
    500_000,
    750_000,
    1_000_000, //
    2_000_000,
    4_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_000_000_000,
];

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FioLatency {
    /// Number of operations.
    pub count: u64,
    /// Shortest, ns.
    pub min: u64,
    /// Longest, ns.
    pub max: u64,
    /// Mean, ns.
    pub mean: f64,
    /// Standard deviation, ns.
    pub deviation: f64,
    /// Ranks in percent, and latencies in ns.
    pub percentiles: Vec<(f64, u64)>,
    /// Lower ends of the bins that hold anything, ns, and how many each holds.
    pub bins: Vec<(u64, u64)>,
}

/// Course of a rate over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Varied {
    /// Lowest.
    pub min: f64,
    /// Highest.
    pub max: f64,
    /// Arithmetic mean over the samples.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

/// Rates in equal samples of the time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Samples {
    /// Whole samples; the last, shorter one is not among them.
    pub count: u64,
    /// Operations a second.
    pub operations: Varied,
    /// Bytes a second.
    pub bytes: Varied,
}

/// Amounts read, written, or given back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moved {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations that completed.
    pub operations: u64,
    /// Time it took, ns.
    pub elapsed_ns: u64,
    /// Operations that moved less than asked.
    pub short: u64,
    /// Rates over time; `None` if it was too short, or went on beside another direction.
    pub samples: Option<Samples>,
    /// Latency from the issue to the completion.
    pub latency: FioLatency,
    /// Latency from the moment an operation was due to its completion; `None` if nothing was due.
    pub response: Option<FioLatency>,
}

/// Facts that fio has no field for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Own {
    /// The engine that did the I/O.
    pub engine: String,
    /// Reason why this engine was chosen.
    pub engine_why: String,
    /// Operations outstanding on average over time.
    pub depth_achieved: f64,
    /// Bytes whose content was checked.
    pub verified_bytes: u64,
}

/// One job, or several as one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JobReport {
    /// The first job's name.
    pub name: String,
    /// The group it ran in.
    pub group: u64,
    /// Number of jobs that this report stands for.
    pub jobs: u32,
    /// Error number of the first operation that failed; 0 if none did.
    pub error: i32,
    /// Description in the job file (`description`).
    pub description: Option<String>,
    /// Options asked of all jobs, and of this.
    pub options: [Vec<(String, String)>; 2],
    /// Operations outstanding at once, as asked for.
    pub queue_depth: u32,
    /// Amounts read; `None` if nothing was.
    pub read: Option<Moved>,
    /// Amounts written; `None` if nothing was.
    pub written: Option<Moved>,
    /// Amounts given back; `None` if nothing was.
    pub trimmed: Option<Moved>,
    /// Latencies of fsync or fdatasync; `None` if there were none.
    pub synced: Option<FioLatency>,
    /// Number of latencies of reads and writes below each of [`CLASSES`], and above the last.
    pub classes: Vec<u64>,
    /// Processor time in user mode and in the kernel, as shares of the time; `None` if others ran.
    pub cpu: Option<(f64, f64)>,
    /// The whole time, ns.
    pub elapsed_ns: u64,
    /// Submission is completion: latencies are of completion as well.
    pub plain: bool,
    /// Percentiles are called those of the whole latency.
    pub whole_percentiles: bool,
    /// Facts that fio has no field for.
    pub own: Own,
}

/// Report of a run of all jobs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FioReport {
    /// ms since 1970, when it ended.
    pub unix_ms: u64,
    /// The same in words.
    pub date: String,
    /// Process id.
    pub pid: u32,
    /// Jobs, those of one group after each other.
    pub jobs: Vec<JobReport>,
}

impl JobReport {
    /// The directions in which anything moved.
    pub(super) fn directions(&self) -> impl Iterator<Item = (&'static str, &Moved)> {
        let all = [
            ("read", &self.read),
            ("write", &self.written),
            ("trim", &self.trimmed),
        ];
        all.into_iter()
            .filter_map(|(name, moved)| Some((name, moved.as_ref()?)))
    }

    /// Share of the latencies in each class, percent.
    pub(super) fn shares(&self) -> Vec<f64> {
        let total: u64 = self.classes.iter().sum();
        let share = |count: &u64| *count as f64 * 100.0 / total.max(1) as f64;
        self.classes.iter().map(share).collect()
    }
}

impl Moved {
    pub(super) fn per_second(&self, amount: u64) -> f64 {
        amount as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// Milliseconds: whole ones, as fio has them, where that is exact enough for a rate.
pub(super) fn milliseconds(ns: u64) -> f64 {
    let ms = ns as f64 / 1e6;
    if ms >= 100.0 {
        ms.round()
    } else {
        (ms * 1e3).round() / 1e3
    }
}
