//! The layouts of 0.4.12 and of 1.0.20.

use std::fmt::Write;

use libm::log10;

use super::report::{Done, Head, Intermediate, MIB, Results, SysbenchLayout, SysbenchReport};

/// The first line of our own report in one of the layouts, which says who made it where there is
/// room for that.
pub(super) fn banner(layout: SysbenchLayout) -> String {
    match layout {
        SysbenchLayout::V0_4 => {
            "sysbench 0.4.12:  multi-threaded system evaluation benchmark".to_owned()
        }
        SysbenchLayout::V1_0 => {
            format!("sysbench 1.0.20 (stackrace {})", env!("CARGO_PKG_VERSION"))
        }
    }
}

/// A size with five significant digits.
pub(super) fn size(layout: SysbenchLayout, bytes: f64) -> String {
    let units: [&str; 5] = match layout {
        SysbenchLayout::V0_4 => ["b", "Kb", "Mb", "Gb", "Tb"],
        SysbenchLayout::V1_0 => ["B", "KiB", "MiB", "GiB", "TiB"],
    };
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{}{}", five_digits(value), units[unit])
}

/// Prints a value as C's `%.5g` does, if it is neither tiny nor huge.
fn five_digits(value: f64) -> String {
    let before = if value < 1.0 {
        1
    } else {
        log10(value) as usize + 1
    };
    let text = format!("{value:.*}", 5usize.saturating_sub(before));
    if text.contains('.') {
        // %g drops zeros at the end, and a point that has nothing behind it.
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Prints everything before the threads start.
pub fn head(head: &Head) -> String {
    let size = |bytes| size(head.layout, bytes);
    let mut text = format!(
        "{}\n\nRunning the test with following options:\n",
        head.banner
    );
    let mut line = |words: String| text.push_str(&(words + "\n"));
    line(format!("Number of threads: {}", head.threads));
    if let Some(rate) = head.rate {
        line(format!("Target transaction rate: {rate}/sec"));
    }
    if let Some(seconds) = head.interval_s {
        line(format!(
            "Report intermediate results every {seconds} second(s)"
        ));
    }
    if head.validate && head.layout == SysbenchLayout::V1_0 {
        line("Validation checks: on.\n".to_owned());
    }
    if !head.seed.is_empty() {
        line(format!("{}\n", head.seed));
    }
    line(format!("\nExtra file open flags: {}", head.flags));
    line(format!(
        "{} files, {} each",
        head.files,
        size(head.file_bytes)
    ));
    line(format!("{} total file size", size(head.total_bytes)));
    line(format!("Block size {}", size(head.block_bytes)));
    if let Some(bytes) = head.merged_bytes {
        line(format!(
            "Merging requests up to {} for sequential IO.",
            size(bytes)
        ));
    }
    if let Some((requests, ratio)) = head.random {
        let label = match head.layout {
            SysbenchLayout::V0_4 => "Number of random requests for random IO",
            SysbenchLayout::V1_0 => "Number of IO requests",
        };
        line(format!("{label}: {requests}"));
        line(format!(
            "Read/Write ratio for combined random IO test: {ratio:.2}"
        ));
    }
    text + &durability(head)
}

/// Prints the fsyncs, the way bytes are moved, and the mode.
fn durability(head: &Head) -> String {
    let mut text = String::new();
    if let Some(every) = head.fsync_every {
        text += &format!("Periodic FSYNC enabled, calling fsync() each {every} requests.\n");
    }
    if head.fsync_at_end {
        text += "Calling fsync() at the end of test, Enabled.\n";
    }
    if head.fsync_each {
        text += "Calling fsync() after each write operation.\n";
    }
    text += &format!("Using {} I/O mode\n", head.transfer);
    if head.validate {
        text += "Using checksums validation.\n";
    }
    text + &format!("Doing {} test\n", head.mode)
}

/// Message when the threads start.
pub fn started(layout: SysbenchLayout) -> &'static str {
    match layout {
        SysbenchLayout::V0_4 => "Threads started!\n",
        SysbenchLayout::V1_0 => "Initializing worker threads...\n\nThreads started!\n\n",
    }
}

/// A line while it runs.
pub fn intermediate(line: &Intermediate) -> String {
    format!(
        "[ {}s ] reads: {:.2} MiB/s writes: {:.2} MiB/s fsyncs: {:.2}/s latency (ms,{}%): {:.3}\n",
        line.second,
        line.read / MIB,
        line.written / MIB,
        line.fsyncs,
        line.percentile.0,
        line.percentile.1
    )
}

fn histogram(rows: &[(f64, u64)]) -> String {
    const WIDTH: f64 = 40.0;
    // The longest row has all the stars; the others are in proportion.
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1);
    let mut text = "Latency histogram (values are in milliseconds)\n       value  \
                    ------------- distribution ------------- count\n"
        .to_owned();
    for (ms, count) in rows {
        let stars = "*".repeat((*count as f64 / most as f64 * WIDTH + 0.5) as usize);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{ms:12.3} |{stars:<40} {count}");
    }
    text + " \n"
}

/// Prints everything after the run.
pub fn results(report: &SysbenchReport) -> String {
    let results = &report.results;
    let mut text = match (report.head.layout, report.histogram.is_empty()) {
        (SysbenchLayout::V1_0, false) => histogram(&report.histogram),
        _ => String::new(),
    };
    text.push_str(&done(report.head.layout, &results.done));
    text.push_str(&match report.head.layout {
        SysbenchLayout::V0_4 => statistics_0_4(results),
        SysbenchLayout::V1_0 => statistics_1_0(results),
    });
    let [events, events_deviation, seconds, seconds_deviation] = results.fairness;
    text + &format!(
        "Threads fairness:\n    \
         events (avg/stddev):           {events:.4}/{events_deviation:.2}\n    \
         execution time (avg/stddev):   {seconds:.4}/{seconds_deviation:.2}\n\n"
    )
}

fn done(layout: SysbenchLayout, done: &Done) -> String {
    let size = |bytes: f64| size(layout, bytes);
    match *done {
        Done::Counted {
            reads,
            writes,
            other,
            read,
            written,
            transferred,
            bytes_per_s,
            requests_per_s,
        } => format!(
            "Done.\n\n\
             Operations performed:  {reads} Read, {writes} Write, {other} Other = {} Total\n\
             Read {}  Written {}  Total transferred {}  ({}/sec)\n\
             {:8.2} Requests/sec executed\n\n",
            reads + writes + other,
            size(read.value),
            size(written.value),
            size(transferred.value),
            size(bytes_per_s.value),
            requests_per_s.value
        ),
        Done::Rated {
            reads,
            writes,
            fsyncs,
            read,
            written,
        } => format!(
            "\nFile operations:\n    \
             reads/s:                      {:.2}\n    \
             writes/s:                     {:.2}\n    \
             fsyncs/s:                     {:.2}\n\n\
             Throughput:\n    \
             read, MiB/s:                  {:.2}\n    \
             written, MiB/s:               {:.2}\n\n",
            reads.value,
            writes.value,
            fsyncs.value,
            read.value / MIB,
            written.value / MIB
        ),
    }
}

fn statistics_0_4(results: &Results) -> String {
    let latency = &results.latency;
    let mut text = format!(
        "Test execution summary:\n    \
         total time:                          {:.4}s\n    \
         total number of events:              {}\n    \
         total time taken by event execution: {:.4}\n    \
         per-request statistics:\n",
        results.total_s.value,
        results.events,
        // In seconds here; the lines below are in ms.
        latency.sum / 1e3
    );
    for (label, ms) in [
        ("min", latency.min),
        ("avg", latency.mean.value),
        ("max", latency.max),
    ] {
        let _ = writeln!(text, "         {label}:{ms:38.2}ms");
    }
    if let Some((rank, ms)) = latency.percentile {
        let _ = writeln!(
            text,
            "         approx. {rank:>3} percentile:{:19.2}ms",
            ms.value
        );
    }
    text + "\n"
}

fn statistics_1_0(results: &Results) -> String {
    let latency = &results.latency;
    let mut text = format!(
        "General statistics:\n    \
         total time:                          {:.4}s\n    \
         total number of events:              {}\n\nLatency (ms):\n",
        results.total_s.value, results.events
    );
    for (label, ms) in [
        ("min", latency.min),
        ("avg", latency.mean.value),
        ("max", latency.max),
    ] {
        let _ = writeln!(text, "         {label}:{ms:40.2}");
    }
    let _ = match latency.percentile {
        Some((rank, ms)) => writeln!(text, "        {rank:3}th percentile:{:28.2}", ms.value),
        None => writeln!(text, "         percentile stats:               disabled"),
    };
    let _ = writeln!(text, "         sum:{:40.2}\n", latency.sum);
    text
}
