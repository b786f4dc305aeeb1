//! What a report of fio says, whichever way it is printed: jobs, directions, latencies.

use super::latencies::{PercentilesOf, Spread};
use super::value;
use stackrace_base::event::Fact;
use stackrace_base::printed::text::{self, Figures};
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Percentiles that become metrics.
const PERCENTILES: [(f64, &str); 4] =
    [(50.0, "p50"), (95.0, "p95"), (99.0, "p99"), (99.9, "p99.9")];

/// The directions in fio's order.
pub(super) const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Note on a job that asked for a steady state (`steadystate=`).
pub(super) const UNSTEADY: &str =
    "fio says that it did not reach the steady state that was asked for";

/// A note on operations whose blocks are not the bytes that were moved; `None` if they are, or `block` is no one size.
pub(super) fn other_blocks(count: f64, block: &str, moved: f64) -> Option<String> {
    let bytes = count * value::bytes(block, 1024)? as f64;
    (!text::agree(bytes, moved)).then(|| {
        format!(
            "{count} operations of {block} are {}, and fio says that {} were moved: either some had another size, or the text was changed",
            text::size(bytes as u64),
            text::size(moved.round() as u64)
        )
    })
}

/// A note on operations that moved less than they should; `None` if there are none.
pub(super) fn incomplete(what: &str, direction: &str, count: u64) -> Option<String> {
    let done = match what {
        "short" => "moved less than was asked for (short)",
        _ => "were dropped",
    };
    (count > 0).then(|| format!("fio says that {count} {direction} operation(s) {done}"))
}

/// The share of reads in a mix, as its counts tell; `None` if it is no mix, or too short to tell.
///
/// The normal output does not have `rwmixread`, and results of other mixes are no repetitions.
pub(super) fn share_of_reads(mode: &str, [reads, writes, _]: [u64; 3]) -> Option<String> {
    // fio throws a die for each operation. With so many, what falls is within 2.5 or 5 % of what was asked for.
    const FINE: u64 = 4000;
    const COARSE: u64 = 1000;
    let all = reads.saturating_add(writes);
    let share = 100.0 * reads as f64 / all.max(1) as f64;
    let near = |step: f64| (share / step).round() * step;
    match all {
        _ if !mode.contains("rw") => None,
        FINE.. => Some(format!("about {} %", near(5.0))),
        // People ask for 75 %, too, which lies between two tens.
        COARSE.. if share >= 65.0 => Some("about 70 % or more".to_owned()),
        COARSE.. if share <= 35.0 => Some("about 30 % or less".to_owned()),
        COARSE.. => Some(format!("about {} %", near(10.0))),
        _ => None,
    }
}

/// One job as both outputs tell of it.
#[derive(Debug, Clone)]
pub(super) struct JobResult {
    /// Number of its line in the text, from 0.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) group: u64,
    /// Mode, which fio calls `rw`.
    pub(super) mode: String,
    /// Block sizes as `4k`, `4k-64k`.
    pub(super) block: String,
    pub(super) depth: u64,
    /// Jobs that were reported as one.
    pub(super) jobs: u64,
    pub(super) directions: Vec<Direction>,
    /// Latencies of fsync and its like.
    pub(super) sync: Option<ResultLatency>,
    pub(super) settings: Vec<Fact>,
    /// Place and time of the report.
    pub(super) reported: Reported,
}

/// Place and time at which a job was reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reported {
    /// Number of the run in the text it belongs to, from 0.
    pub(super) run: usize,
    /// The machine, where fio names it (`--client`); empty means this one.
    pub(super) host: String,
    /// The process, where it is told.
    pub(super) pid: Option<u64>,
    /// Time it was printed, s since 1970; `None` if not told.
    pub(super) at_s: Option<f64>,
    /// Time it had run then, s.
    pub(super) ran_s: f64,
}

/// Amounts read, written or trimmed.
#[derive(Debug, Clone, Default)]
pub(super) struct Direction {
    /// Name: `read`, `write`, `trim`.
    pub(super) name: String,
    /// Average over the job, B/s.
    pub(super) throughput: PrintedFigure,
    /// Average over the job, operations per second.
    pub(super) operations: PrintedFigure,
    pub(super) latency: ResultLatency,
    /// Notes that a reader must know of the figures.
    pub(super) notes: Vec<String>,
    /// The amounts as they were printed.
    pub(super) shown: Shown,
}

impl Direction {
    /// What a line of rates tells: the finest rate, ms, operations per second as text and as a figure, bytes moved.
    pub(super) fn printed(
        name: &str,
        finest: PrintedFigure,
        milliseconds: f64,
        (text, operations): (&str, PrintedFigure),
        moved: PrintedFigure,
    ) -> Self {
        Self {
            name: name.to_owned(),
            throughput: ticked(finest, milliseconds),
            operations,
            shown: Shown {
                operations: text.to_owned(),
                milliseconds,
                moved,
                count: 0.0,
            },
            ..Self::default()
        }
    }
}

/// A line of rates of the normal output, until it is known how many operations there were.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// Text behind `IOPS=`.
    pub(super) operations: String,
    pub(super) milliseconds: f64,
    /// Bytes moved.
    pub(super) moved: PrintedFigure,
    /// Operations, where JSON tells.
    pub(super) count: f64,
}

/// Rate of so much in so many ms, per second; `None` if in no time. fio counts whole milliseconds.
pub(super) fn per_second(amount: PrintedFigure, milliseconds: f64) -> Option<PrintedFigure> {
    let ms = PrintedFigure::exact(milliseconds).no_finer_than(1.0);
    Some(amount.per(ms)? * 1e3)
}

/// A rate known no better than the whole milliseconds that it rests on.
pub(super) fn ticked(rate: PrintedFigure, milliseconds: f64) -> PrintedFigure {
    rate.no_finer_than(rate.value / milliseconds.max(1.0))
}

/// Latencies of one direction, ns.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultLatency {
    /// From the moment fio began to submit (lat).
    pub(super) whole: Option<Spread>,
    /// Time of the submission (slat).
    pub(super) submission: Option<Spread>,
    /// From there to the end (clat).
    pub(super) completion: Option<Spread>,
    pub(super) percentiles: Vec<(f64, f64)>,
    /// ns of the unit in which the percentiles are whole numbers.
    pub(super) percentile_step: f64,
    /// What the percentiles are of.
    pub(super) of: PercentilesOf,
}

impl ResultLatency {
    fn percentile(&self, wanted: f64) -> Option<PrintedFigure> {
        /// fio counts latencies in so many classes of equal width between a power of 2 and the next.
        const CLASSES: f64 = 64.0;
        let mut all = self.percentiles.iter();
        // Ranks were text ("99.900000"): parsed, they may differ from ours in the last bits.
        let (_, ns) = all.find(|(at, _)| (at - wanted).abs() < 1e-6)?;
        let step = self.percentile_step.max(ns / CLASSES);
        Some(PrintedFigure::exact(*ns).no_finer_than(step))
    }

    pub(super) fn metrics(&self, name: &str, figures: &mut Figures) {
        let mut add = |word: &str, stated: Option<PrintedFigure>| {
            figures.time(format!("{name} latency {word}"), "ns", stated);
        };
        add("mean", self.whole.map(|whole| whole.mean));
        for (at, word) in PERCENTILES {
            add(word, self.percentile(at));
        }
        add("max", self.whole.map(|whole| whole.largest));
    }
}

/// Returns true if a version is one of which all layouts are read: of fio 3, or of `stackrace fio`.
pub(super) fn is_known(version: &str) -> bool {
    // The JSON of fio 2 has microseconds, in fields of other names.
    version.starts_with("fio-3.")
        || (version.starts_with("stackrace-") && version.ends_with(" (fio-3.33 layout)"))
}

/// Returns true for a version of fio 2, whose normal output is read, as fio calls itself.
pub(super) fn is_version_2(version: &str) -> bool {
    version.starts_with("fio-2.")
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

#[cfg(test)]
mod tests {
    use super::share_of_reads;

    #[test]
    fn mixes_are_told_apart_by_what_was_counted() {
        let share = |reads, writes| share_of_reads("randrw", [reads, writes, 0]);
        let is = |reads, writes, expected: &str| {
            assert_eq!(share(reads, writes).as_deref(), Some(expected));
        };
        is(707, 317, "about 70 % or more");
        is(290, 734, "about 30 % or less");
        is(500, 524, "about 50 %");
        is(7035, 2965, "about 70 %");
        is(7460, 2540, "about 75 %");
        assert_eq!(share(70, 30), None);
        assert_eq!(share_of_reads("randread", [10_000, 0, 0]), None);
    }
}
