//! What `sysbench fileio` reports: 0.4.12, 0.5 and 1.0.
//!
//! Sizes with `Kb` (0.4) and `KiB` (1.0) are both 1024 bytes. The latency of 1.0 is that of events,
//! which the fsyncs of the cadence are too; that of 0.4 is of reads and writes only. They are
//! different quantities with different names here, and are never compared.

use stackrace_base::event::{Better, MetricHead};
use stackrace_base::printed::PrintedFigure;
use stackrace_base::setting::{ChoiceDoc, choice};
use stackrace_engine::sysbench::SysbenchMode;

/// Bytes of what sysbench calls MiB, or Mb.
pub(super) const MIB: f64 = 1_048_576.0;

/// The version whose layout a report has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SysbenchLayout {
    /// 0.4.12, and 0.5 when read.
    V0_4,
    /// 1.0.
    #[default]
    V1_0,
}

/// Report of one run of fileio.
#[derive(Debug, Clone, PartialEq)]
pub struct SysbenchReport {
    /// Options as they were asked for.
    pub head: Head,
    /// Lines printed while it ran.
    pub intermediate: Vec<Intermediate>,
    /// Latency, ms, and number of events; empty if not asked for.
    pub histogram: Vec<(f64, u64)>,
    /// Results of the run.
    pub results: Results,
    /// Set if the end of the text is missing, so that some results are 0.
    pub cut_off: bool,
}

/// Options as they are printed before the run. By default that of a text whose beginning was cut off: empty, 0, and
/// the layout of today.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Head {
    pub layout: SysbenchLayout,
    /// The first line, whole.
    pub banner: String,
    pub threads: u64,
    /// Events per second.
    pub rate: Option<u64>,
    /// Seconds between two lines.
    pub interval_s: Option<u64>,
    pub validate: bool,
    /// Words about the random numbers; empty where nothing is said, as in 0.4.
    pub seed: String,
    /// Extra flags as printed.
    pub flags: String,
    pub files: u64,
    /// Bytes, as exact as printed.
    pub file_bytes: f64,
    pub total_bytes: f64,
    pub block_bytes: f64,
    /// Bytes of a merged request.
    pub merged_bytes: Option<f64>,
    /// Most events, and the ratio; random modes only.
    pub random: Option<(u64, f64)>,
    /// Requests between two bursts of fsync.
    pub fsync_every: Option<u64>,
    pub fsync_each: bool,
    pub fsync_at_end: bool,
    /// Way bytes are moved: `synchronous`, `asynchronous`, `fast mmaped`.
    pub transfer: String,
    /// Mode: `random r/w` and so on.
    pub mode: String,
}

/// A line of an intermediate report.
#[derive(Debug, Clone, PartialEq)]
pub struct Intermediate {
    /// Seconds since the start.
    pub second: u64,
    /// Bytes per second.
    pub read: f64,
    pub written: f64,
    /// Per second.
    pub fsyncs: f64,
    /// Rank, %, and latency, ms.
    pub percentile: (u64, f64),
}

/// Amount of work done: 0.4 counts, 1.0 prints rates.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    Counted {
        reads: u64,
        writes: u64,
        other: u64,
        /// Bytes, and bytes per second, as exact as printed.
        read: PrintedFigure,
        written: PrintedFigure,
        transferred: PrintedFigure,
        bytes_per_s: PrintedFigure,
        requests_per_s: PrintedFigure,
    },
    Rated {
        /// Per second.
        reads: PrintedFigure,
        writes: PrintedFigure,
        fsyncs: PrintedFigure,
        /// Bytes per second.
        read: PrintedFigure,
        written: PrintedFigure,
    },
}

/// Results as they are printed after the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    pub done: Done,
    pub total_s: PrintedFigure,
    pub events: u64,
    pub latency: SysbenchLatency,
    /// Mean and standard deviation over threads of events, then of seconds at work.
    pub fairness: [f64; 4],
}

impl Results {
    /// Makes results of what was done, and nothing more yet.
    pub(super) fn of(done: Done) -> Self {
        Self {
            done,
            total_s: PrintedFigure::default(),
            events: 0,
            latency: SysbenchLatency::default(),
            fairness: [0.0; 4],
        }
    }
}

/// Latency of events, ms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SysbenchLatency {
    pub min: f64,
    pub mean: PrintedFigure,
    pub max: f64,
    /// Rank, %, and value; `None` if not asked for.
    pub percentile: Option<(u64, PrintedFigure)>,
    /// Sum of all events, ms.
    pub sum: f64,
}

/// The modes as sysbench names them, in a study and on its command line.
pub(super) const MODE: ChoiceDoc<SysbenchMode> = choice!(
    "mode",
    [
        "seqwr" => SysbenchMode::SeqWrite,
        "seqrewr" => SysbenchMode::SeqRewrite,
        "seqrd" => SysbenchMode::SeqRead,
        "rndrd" => SysbenchMode::RandomRead,
        "rndwr" => SysbenchMode::RandomWrite,
        "rndrw" => SysbenchMode::RandomBoth,
    ],
    "",
    "Sequential write of new files, rewrite, read; random read, write, both.",
);

/// A mode as it is printed.
pub(super) fn printed(mode: SysbenchMode) -> &'static str {
    match mode {
        SysbenchMode::SeqWrite => "sequential write (creation)",
        SysbenchMode::SeqRewrite => "sequential rewrite",
        SysbenchMode::SeqRead => "sequential read",
        SysbenchMode::RandomRead => "random read",
        SysbenchMode::RandomWrite => "random write",
        SysbenchMode::RandomBoth => "random r/w",
    }
}

/// Metrics of a run: shared by the workload and by imports of what sysbench printed.
pub fn metrics() -> Vec<MetricHead> {
    let all = [
        ("operations", "op/s", Better::Higher),
        ("throughput", "B/s", Better::Higher),
        ("reads", "op/s", Better::Higher),
        ("writes", "op/s", Better::Higher),
        ("fsyncs", "op/s", Better::Higher),
        ("read throughput", "B/s", Better::Higher),
        ("write throughput", "B/s", Better::Higher),
        ("event latency mean", "ns", Better::Lower),
        ("event latency p95", "ns", Better::Lower),
        ("request latency mean", "ns", Better::Lower),
        ("request latency p95", "ns", Better::Lower),
    ];
    all.map(|(name, unit, better)| MetricHead::new(name, unit, better))
        .into()
}

/// The values of [`metrics`]; `None` if not done, or smaller than the report can say.
pub fn values(report: &SysbenchReport) -> Vec<Option<PrintedFigure>> {
    let results = &report.results;
    let (rates, read, written) = match results.done {
        Done::Rated {
            reads,
            writes,
            fsyncs,
            read,
            written,
        } => ([reads, writes, fsyncs].map(Some), Some(read), Some(written)),
        Done::Counted {
            reads,
            writes,
            other,
            read,
            written,
            ..
        } => (
            // Without a time, which may be cut off, there is no rate.
            [reads, writes, other]
                .map(|count| PrintedFigure::exact(count as f64).per(results.total_s)),
            read.per(results.total_s),
            written.per(results.total_s),
        ),
    };
    // 0.4 prints these two rates from the exact time, of which it shows four decimals.
    let (operations, throughput) = match results.done {
        Done::Counted {
            requests_per_s,
            bytes_per_s,
            ..
        } => (requests_per_s, bytes_per_s),
        Done::Rated {
            reads,
            writes,
            read,
            written,
            ..
        } => (reads + writes, read + written),
    };
    let p95 = match results.latency.percentile {
        // Another percentile has no metric. sysbench prints ms, metrics are in ns.
        Some((95, ms)) => Some(ms * 1e6),
        _ => None,
    };
    let latency = [Some(results.latency.mean * 1e6), p95];
    // Two metrics: events of 1.0 may be fsyncs, requests of 0.4 never are.
    let (event, request) = match report.head.layout {
        SysbenchLayout::V1_0 => (latency, [None; 2]),
        SysbenchLayout::V0_4 => ([None; 2], latency),
    };
    let [reads, writes, fsyncs] = rates;
    let sums = [operations, throughput].map(Some);
    let parts = [reads, writes, fsyncs, read, written];
    let all = sums.into_iter().chain(parts).chain(event).chain(request);
    all.map(|value| value?.above_zero()).collect()
}
