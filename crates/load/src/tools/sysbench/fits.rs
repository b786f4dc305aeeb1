//! What cannot be true together in a report of sysbench, and the line that is at odds with the others.

use super::lines::LAST;
use super::report::{Done, Results, SysbenchReport};
use stackrace_base::printed::PrintedFigure;

/// Labels of the lines that may be wrong.
const EVENTS: &[&str] = &["total number of events:"];
const FILES: &[&str] = &["Number of threads:"];
const TIME: &[&str] = &["total time:"];
const SUM: &[&str] = &["sum:", "total time taken by event execution:"];
const MEAN: &[&str] = &["avg:"];
/// Label of the line whose own begins with a rank, `95th percentile:`.
pub(super) const PERCENTILE: &str = "percentile:";
/// The rates count the start and the end of the threads as well, and the total time does not, s.
const THREADS_S: f64 = 0.002;
/// sysbench counts latencies in classes; a percentile may lie beyond the largest by so much.
const CLASS: f64 = 1.1;

/// A contradiction of a report.
pub(super) struct Misfit {
    /// The label of the line that does not fit the others, in the words of each version.
    pub(super) labels: &'static [&'static str],
    pub(super) what: String,
}

impl Misfit {
    fn of(labels: &'static [&'static str], what: impl Into<String>) -> Option<Self> {
        let what = what.into();
        Some(Self { labels, what })
    }
}

/// Returns what cannot be true together.
pub(super) fn contradiction(report: &SysbenchReport) -> Option<Misfit> {
    let amounts = of_files(report).or_else(|| of_amounts(report));
    if amounts.is_some() || report.cut_off {
        return amounts;
    }
    of_events(report).or_else(|| of_latencies(report))
}

fn near(a: f64, b: f64, slack: f64) -> bool {
    (a - b).abs() <= slack + 0.001 * a.abs().max(b.abs())
}

/// Files and their size.
fn of_files(report: &SysbenchReport) -> Option<Misfit> {
    let head = &report.head;
    let files = head.files as f64 * head.file_bytes;
    // 0: the beginning was cut off.
    let told = files > 0.0 && head.total_bytes > 0.0;
    (told && !near(files, head.total_bytes, 0.0)).then_some(())?;
    Misfit::of(
        FILES,
        format!(
            "{} files of this size are not the total file size",
            head.files
        ),
    )
}

/// Requests, bytes and blocks.
fn of_amounts(report: &SysbenchReport) -> Option<Misfit> {
    let results = &report.results;
    let counted = results.events > 0 || !report.cut_off;
    match results.done {
        Done::Counted { reads, writes, .. }
            if counted && reads.saturating_add(writes) != results.events =>
        {
            let events = results.events;
            Misfit::of(
                EVENTS,
                format!("{reads} and {writes} are not {events} events"),
            )
        }
        Done::Counted {
            read,
            written,
            transferred,
            ..
        } if !near(read.value + written.value, transferred.value, 0.0) => Misfit::of(
            &["Read "],
            "what was read and written is not what was transferred",
        ),
        // Without the time, as where it was cut off, there is nothing to hold the rates against.
        Done::Counted {
            transferred,
            bytes_per_s,
            requests_per_s,
            ..
        } if results.total_s.value > 0.0 => {
            let events = PrintedFigure::exact(results.events as f64);
            let is_rate = |amount: PrintedFigure, rate: PrintedFigure| {
                let own = amount.per(results.total_s);
                own.is_none_or(|own| near(own.value, rate.value, own.step + rate.step))
            };
            match (
                is_rate(events, requests_per_s),
                is_rate(transferred, bytes_per_s),
            ) {
                (true, true) => None,
                (false, false) => Misfit::of(TIME, "neither rate is what was done over the time"),
                (false, true) => Misfit::of(
                    &["Requests/sec executed"],
                    "the requests per second are not the events over the time",
                ),
                (true, false) => Misfit::of(
                    &["Read "],
                    "the rate is not what was transferred over the time",
                ),
            }
        }
        Done::Rated {
            reads,
            writes,
            read,
            written,
            ..
        } => {
            let what = "the MiB/s are not the requests of this block size";
            let of_blocks = |rate, moved| is_of_blocks(report, rate, moved);
            match (of_blocks(reads, read), of_blocks(writes, written)) {
                (true, true) => None,
                (false, _) => Misfit::of(&["read, MiB/s:"], what),
                (true, false) => Misfit::of(&["written, MiB/s:"], what),
            }
        }
        Done::Counted { .. } => None,
    }
}

/// Returns true if the bytes per second can be those of the requests.
fn is_of_blocks(report: &SysbenchReport, rate: PrintedFigure, moved: PrintedFigure) -> bool {
    let block = report.head.block_bytes;
    // Merged requests are larger, and what was cut off is not known.
    if block <= 0.0 || report.head.merged_bytes.is_some() {
        return true;
    }
    let (most, slack) = (rate.value * block, moved.step + rate.step * block);
    // The last request of a file may be shorter.
    (0.5 * most - slack..=1.01 * most + slack).contains(&moved.value)
}

/// The number of events, with the rates and with the shares of the threads.
fn of_events(report: &SysbenchReport) -> Option<Misfit> {
    let results = &report.results;
    let [events, ..] = results.fairness;
    let (threads, count) = (report.head.threads as f64, results.events as f64);
    // Where the number of threads was cut off, nothing can be held against it.
    let shared = threads <= 0.0 || near(events * threads, count, 0.01 * threads);
    match (is_of_events(results), shared) {
        (true, true) => None,
        // The threads bear the number out.
        (false, true) if threads > 0.0 => {
            Misfit::of(TIME, "the rates are not the events over the time")
        }
        (false, _) => Misfit::of(EVENTS, "the rates are not the events over the time"),
        (true, false) => Misfit::of(
            &["events (avg/stddev):"],
            format!("{count} events are not {threads} times {events}"),
        ),
    }
}

/// Returns true if the rates can be those of the events: each read and write is one, and an fsync may be.
fn is_of_events(results: &Results) -> bool {
    let Done::Rated {
        reads,
        writes,
        fsyncs,
        ..
    } = results.done
    else {
        return true;
    };
    let (seconds, events) = (results.total_s.value, results.events as f64);
    let requests = (reads.value + writes.value) * seconds;
    let all = requests + fsyncs.value * seconds;
    let rates = reads.value + writes.value + fsyncs.value;
    // Threads start and end at different moments; the first of them begins the clock.
    let slack = 2.0 + 0.02 * seconds + THREADS_S * rates;
    requests <= 1.1 * events + slack && events <= 1.1 * all + slack
}

/// The latencies with their sum, and with each other.
fn of_latencies(report: &SysbenchReport) -> Option<Misfit> {
    let results = &report.results;
    let latency = &results.latency;
    let [_, _, seconds, _] = results.fairness;
    let (threads, count) = (report.head.threads as f64, results.events as f64);
    let slack = 0.001 * threads + 0.01;
    let shared = threads <= 0.0 || near(seconds * threads, latency.sum / 1e3, slack);
    // Printed to 0.01 ms.
    let mean = latency.mean.value;
    let summed = near(mean * count, latency.sum, 0.006 * count + 0.2);
    let of_threads = "the times of the threads do not add up to that of the events";
    match (shared, summed) {
        (true, true) => {}
        (false, false) => return Misfit::of(SUM, of_threads),
        (false, true) => return Misfit::of(&[LAST], of_threads),
        (true, false) => return Misfit::of(MEAN, "the mean latency does not fit the sum"),
    }
    let between = "the mean latency is not between the least and the largest";
    if latency.min > mean + 0.01 {
        return Misfit::of(&["min:"], between);
    }
    if mean > latency.max + 0.01 {
        return Misfit::of(&["max:"], between);
    }
    let beyond =
        |value: f64| value > CLASS * latency.max + 0.01 || value < latency.min / CLASS - 0.01;
    match latency.percentile {
        Some((_, percentile)) if beyond(percentile.value) => Misfit::of(
            &[PERCENTILE, "approx."],
            "the percentile is not between the least and the largest latency",
        ),
        _ => None,
    }
}
