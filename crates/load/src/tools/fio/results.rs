//! What a report of fio says, whichever way it is printed: jobs, directions, latencies.

use stackrace_base::event::Fact;
use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::{self, Figures};

/// Percentiles that become metrics.
const PERCENTILES: [(f64, &str); 4] =
    [(50.0, "p50"), (95.0, "p95"), (99.0, "p99"), (99.9, "p99.9")];

/// One job as both outputs tell of it.
#[derive(Debug, Clone)]
pub(super) struct JobResult {
    /// Number of its line in the text, from 0.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) group: u64,
    /// What fio calls `rw`.
    pub(super) mode: String,
    /// Block sizes as `4k`, `4k-64k`.
    pub(super) block: String,
    pub(super) depth: u64,
    /// Jobs that were reported as one.
    pub(super) jobs: u64,
    pub(super) directions: Vec<Direction>,
    /// Of fsync and its like.
    pub(super) sync: Option<ResultLatency>,
    pub(super) settings: Vec<Fact>,
    /// Where and when.
    pub(super) reported: Reported,
}

/// Where and when a job was reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reported {
    /// Which run of the text it belongs to, from 0.
    pub(super) run: usize,
    /// The machine, where fio names it (`--client`); empty: this one.
    pub(super) host: String,
    /// The process, where it is told.
    pub(super) pid: Option<u64>,
    /// When it was printed, s since 1970; none: not told.
    pub(super) at_s: Option<f64>,
    /// How long it had run then, s.
    pub(super) ran_s: f64,
}

/// What was read, written or trimmed.
#[derive(Debug, Clone, Default)]
pub(super) struct Direction {
    /// `read`, `write`, `trim`.
    pub(super) name: String,
    /// Average over the job, B/s.
    pub(super) throughput: f64,
    /// Average over the job, operations per second.
    pub(super) operations: f64,
    pub(super) latency: ResultLatency,
}

/// Latencies of one direction, ns.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultLatency {
    /// From the moment fio began to submit.
    pub(super) mean: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) percentiles: Vec<(f64, f64)>,
    /// What the percentiles are of, as fio calls it.
    pub(super) of: &'static str,
}

impl ResultLatency {
    fn percentile(&self, wanted: f64) -> Option<f64> {
        let mut all = self.percentiles.iter();
        // Ranks were text ("99.900000"): parsed, they may differ from ours in the last bits.
        all.find(|(at, _)| (at - wanted).abs() < 1e-6)
            .map(|(_, ns)| *ns)
    }

    pub(super) fn metrics(&self, name: &str, figures: &mut Figures) {
        figures.time(format!("{name} latency mean"), "ns", self.mean);
        for (at, word) in PERCENTILES {
            figures.time(format!("{name} latency {word}"), "ns", self.percentile(at));
        }
        figures.time(format!("{name} latency max"), "ns", self.max);
    }
}

/// Whether a version is one whose layouts are read: of fio 3, or of `stackrace fio`.
pub(super) fn is_known(version: &str) -> bool {
    // fio 2 printed microseconds, in fields of other names.
    version.starts_with("fio-3.")
        || (version.starts_with("stackrace-") && version.ends_with(" (fio-3.33 layout)"))
}

/// Refuses a job that ended in an error: what it moved until then is no result.
pub(super) fn sound(line: usize, name: &str, error: i64) -> Result<(), ImportError> {
    if error == 0 {
        return Ok(());
    }
    Err(ImportError::at(
        line,
        format!("the job {} ended with error {error}", text::cut(name)),
        "leave this job out: its figures are no result",
    ))
}
