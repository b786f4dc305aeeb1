//! Reading what sysbench printed, line by line, in its order.
//!
//! People paste what their terminal shows: prompts and progress stand between the lines, and a part
//! may be missing at either end. Lines of others are passed over, and what was cut off is left out.
//! A line that is missing in the middle, or stands twice, is an error, and so are figures that
//! contradict each other: a report put together from two is not taken for one.

use super::fits::{PERCENTILE, contradiction};
use super::lines::{FLAGS, LAST, Lines, RESULTS, RUNNING, THREADS, is_banner};
use super::report::{
    Done, Head, Intermediate, MIB, MODE, Results, SysbenchLayout, SysbenchReport, printed,
};
use stackrace_base::printed::{ImportError, text};

/// Reads every run in a text; what stands before, between and after them is left out.
///
/// # Errors
/// No run, or one that is not whole.
pub fn parse(text: &str) -> Result<Vec<SysbenchReport>, ImportError> {
    let mut all: Vec<&str> = text::lines(text).iter().map(|line| line.text).collect();
    // sysbench ends every line: the last one of a text that does not may lack digits. No figure is
    // read from its very last.
    if all
        .last()
        .is_some_and(|last| !last.trim().starts_with(LAST))
    {
        all.pop();
    }
    let mut lines = Lines {
        all,
        at: 0,
        labels: Vec::new(),
    };
    let mut reports = Vec::new();
    while lines.seek_report()? {
        reports.extend(report(&mut lines)?);
    }
    if reports.is_empty() {
        return Err(lines.misread("there is no run of sysbench fileio in this text"));
    }
    Ok(reports)
}

/// Reads a report from its first line on; `None` if it is preparation, or a test of another kind.
fn report(lines: &mut Lines<'_>) -> Result<Option<SysbenchReport>, ImportError> {
    lines.labels.clear();
    let head = match is_banner(lines.peek()) {
        true => whole_head(lines)?,
        false => Some(rest_of_head(lines)),
    };
    let Some(mut head) = head else {
        lines.skip_part();
        return Ok(None);
    };
    let mut intermediate = Vec::new();
    while lines.peek().starts_with('[') {
        intermediate.push(step(lines)?);
    }
    let histogram = histogram(lines)?;
    let done = match head.layout {
        SysbenchLayout::V0_4 => counted(lines)?,
        SysbenchLayout::V1_0 => rated(lines)?,
    };
    let mut results = Results::of(done);
    let failed = summary(lines, &mut head, &mut results);
    // Only the end of a text may be missing.
    let cut_off = match failed {
        Err(error) if !lines.is_over() => return Err(error),
        failed => failed.is_err(),
    };
    let report = SysbenchReport {
        head,
        intermediate,
        histogram,
        results,
        cut_off,
    };
    match contradiction(&report) {
        None => Ok(Some(report)),
        Some(found) => Err(lines.at_label(found.labels, found.what).contradicting()),
    }
}

/// The head of a run from its banner on.
fn whole_head(lines: &mut Lines<'_>) -> Result<Option<Head>, ImportError> {
    let banner = lines.next().to_owned();
    let version = banner.split([' ', ':']).nth(1).unwrap_or("");
    let mut numbers = version.split('.');
    let layout = match (numbers.next(), numbers.next()) {
        // 0.5 has the layout of 0.4, with other words in a few labels.
        (Some("0"), Some("4" | "5")) => SysbenchLayout::V0_4,
        (Some("1"), Some("0")) => SysbenchLayout::V1_0,
        _ => return Err(lines.behind(format!("sysbench {version} is not known here"))),
    };
    match lines.option(RUNNING) {
        None => Ok(None),
        Some(_) => head(lines, layout, banner),
    }
}

/// Reads the rest of a head whose beginning was cut off: no figure stands in it, so that any part of
/// it will do.
fn rest_of_head(lines: &mut Lines<'_>) -> Head {
    let mut head = Head::default();
    loop {
        let line = lines.peek();
        if line.is_empty() || RESULTS.iter().any(|it| line.starts_with(it)) {
            break;
        }
        // Lines of the head follow the one that began the report; intermediate ones do not.
        if line.starts_with('[') || line.starts_with("Latency histogram") {
            break;
        }
        lines.at += 1;
        let rest = |label| line.strip_prefix(label).map(str::trim);
        // What is damaged here is as good as missing: 0 and "" mean that it is not known.
        if let Some(threads) = rest(THREADS) {
            head.threads = lines.count(threads).unwrap_or(0);
        } else if let Some(block) = rest("Block size") {
            head.block_bytes = lines.size(block).unwrap_or_default().value;
        } else if let Some(total) = line.strip_suffix(" total file size") {
            head.total_bytes = lines.size(total).unwrap_or_default().value;
        } else if let Some((files, file)) = line.split_once(" files, ") {
            head.files = lines.count(files).unwrap_or(0);
            let file = file.strip_suffix(" each").unwrap_or_default();
            head.file_bytes = lines.size(file).unwrap_or_default().value;
        } else if let Some(mode) = rest("Doing ").and_then(|it| it.strip_suffix(" test")) {
            head.mode = mode.to_owned();
        } else if let Some(transfer) = rest("Using").and_then(|it| it.strip_suffix("I/O mode")) {
            head.transfer = transfer.trim().to_owned();
        }
    }
    let rest = lines.all[lines.at.min(lines.all.len())..].iter();
    let counted = rest
        .clone()
        .find(|line| RESULTS.iter().any(|it| line.trim().starts_with(it)));
    if counted.is_some_and(|line| line.trim().starts_with(RESULTS[0])) {
        head.layout = SysbenchLayout::V0_4;
    }
    head
}

/// Reads what was asked for; `None` if it is a test that has nothing to do with files.
fn head(
    lines: &mut Lines<'_>,
    layout: SysbenchLayout,
    banner: String,
) -> Result<Option<Head>, ImportError> {
    let threads = lines.take("Number of threads:")?;
    let threads = lines.count(threads)?;
    let rate = lines.count_within("Target transaction rate:", "/sec")?;
    let interval_s = lines.count_within("Report intermediate results every", "second(s)")?;
    lines.option("Validation checks: on.");
    let seed = seed(lines);
    // Only fileio prints this line: it is another test of sysbench.
    if lines.option(FLAGS).is_none() {
        return Ok(None);
    }
    // Verbatim: some lists end with a space.
    let flags = lines.all[lines.at - 1].trim_start().strip_prefix(FLAGS);
    let flags = flags.unwrap_or("").trim_start().to_owned();
    let (files, file) = lines.next().split_once(" files, ").unwrap_or(("", ""));
    let files = lines.count(files)?;
    let file_bytes = lines.size(file.strip_suffix(" each").unwrap_or(""))?.value;
    let total = lines.next().strip_suffix(" total file size").unwrap_or("");
    let total_bytes = lines.size(total)?.value;
    let block = lines.take("Block size")?;
    let block_bytes = lines.size(block)?.value;
    let merged_bytes = match lines.option("Merging requests up to") {
        None => None,
        Some(rest) => Some(
            lines
                .size(rest.trim_end_matches(" for sequential IO."))?
                .value,
        ),
    };
    let random = random(lines)?;
    let every = "Periodic FSYNC enabled, calling fsync() each";
    let fsync_every = lines.count_within(every, "requests.")?;
    let at_end = lines.option("Calling fsync() at the end of test, Enabled.");
    let each = lines.option("Calling fsync() after each write operation.");
    let transfer = lines.within("Using", "I/O mode")?.to_owned();
    let validate = lines.option("Using checksums validation.").is_some();
    let mode = lines.within("Doing", "test")?.to_owned();
    let mut known = MODE.values().iter();
    if !known.any(|one| printed(*one) == mode) {
        return Err(lines.behind(format!("there is no mode \"{mode}\"")));
    }
    lines.option("Initializing worker threads...");
    lines.take("Threads started!")?;
    Ok(Some(Head {
        layout,
        banner,
        threads,
        rate,
        interval_s,
        validate,
        seed,
        flags,
        files,
        file_bytes,
        total_bytes,
        block_bytes,
        merged_bytes,
        random,
        fsync_every,
        fsync_each: each.is_some(),
        fsync_at_end: at_end.is_some(),
        transfer,
        mode,
    }))
}

fn seed(lines: &mut Lines<'_>) -> String {
    let line = lines.peek();
    let labels = [
        "Initializing random number generator",
        "Random number generator seed",
    ];
    if labels.iter().any(|label| line.starts_with(label)) {
        return lines.next().to_owned();
    }
    String::new()
}

fn random(lines: &mut Lines<'_>) -> Result<Option<(u64, f64)>, ImportError> {
    for label in [
        "Number of random requests for random IO:",
        "Number of IO requests:",
    ] {
        if let Some(requests) = lines.option(label) {
            let requests = lines.count(requests)?;
            let ratio = lines.number_after("Read/Write ratio for combined random IO test:")?;
            return Ok(Some((requests, ratio)));
        }
    }
    Ok(None)
}

/// Reads `[ 2s ] reads: 1.00 MiB/s writes: … MiB/s fsyncs: …/s latency (ms,95%): 0.003`.
fn step(lines: &mut Lines<'_>) -> Result<Intermediate, ImportError> {
    let line = lines.next();
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[
        "[",
        second,
        "]",
        "reads:",
        read,
        "MiB/s",
        "writes:",
        written,
        "MiB/s",
        "fsyncs:",
        fsyncs,
        "latency",
        rank,
        ms,
    ] = &words[..]
    else {
        return Err(lines.behind("this is no intermediate report of fileio"));
    };
    let rank = rank
        .strip_prefix("(ms,")
        .and_then(|it| it.strip_suffix("%):"));
    Ok(Intermediate {
        second: lines.count(second.trim_end_matches('s'))?,
        read: lines.number(read)? * MIB,
        written: lines.number(written)? * MIB,
        fsyncs: lines.number(fsyncs.trim_end_matches("/s"))?,
        percentile: (lines.count(rank.unwrap_or(""))?, lines.number(ms)?),
    })
}

fn histogram(lines: &mut Lines<'_>) -> Result<Vec<(f64, u64)>, ImportError> {
    let mut rows = Vec::new();
    if lines
        .option("Latency histogram (values are in milliseconds)")
        .is_none()
    {
        return Ok(rows);
    }
    lines.take("value  ------------- distribution ------------- count")?;
    while let Some((ms, rest)) = lines.peek().split_once('|') {
        lines.at += 1;
        let count = rest.trim_start_matches('*').trim();
        rows.push((lines.number(ms.trim())?, lines.count(count)?));
    }
    Ok(rows)
}

/// Reads the lines below what was done, as far as they can be read.
fn summary(
    lines: &mut Lines<'_>,
    head: &mut Head,
    results: &mut Results,
) -> Result<(), ImportError> {
    // 0.5 already calls it as 1.0 does, and has a word of its own for the statistics below.
    if lines.option("Test execution summary:").is_none() {
        lines.take("General statistics:")?;
    }
    general(lines, results)?;
    match lines
        .peek()
        .starts_with("total time taken by event execution:")
    {
        true => {
            // 1.0 in the making (2016) has its rates, and below them what 0.5 has: its latency is that
            // of requests, fsyncs not among them.
            head.layout = SysbenchLayout::V0_4;
            requests(lines, results)?;
        }
        false => events(lines, results)?,
    }
    results.fairness = fairness(lines)?;
    Ok(())
}

/// The latency of 0.4 and 0.5.
fn requests(lines: &mut Lines<'_>, results: &mut Results) -> Result<(), ImportError> {
    // 0.5 puts its unit behind the number.
    let sum = lines.take("total time taken by event execution:")?;
    results.latency.sum = lines.number(sum.trim_end_matches('s'))? * 1e3;
    if lines.option("per-request statistics:").is_none() {
        lines.take("response time:")?;
    }
    let latency = &mut results.latency;
    let mut ms = |label| {
        let ms = lines.within(label, "ms")?;
        lines.figure(ms)
    };
    latency.min = ms("min:")?.value;
    latency.mean = ms("avg:")?;
    latency.max = ms("max:")?.value;
    let rest = lines.take("approx.")?;
    let (rank, ms) = rest.split_once("percentile:").unwrap_or((rest, ""));
    let ms = ms.trim().strip_suffix("ms").unwrap_or("");
    latency.percentile = Some((lines.count(rank.trim())?, lines.figure(ms)?));
    Ok(())
}

/// The latency of 1.0.
fn events(lines: &mut Lines<'_>, results: &mut Results) -> Result<(), ImportError> {
    lines.take("Latency (ms):")?;
    let latency = &mut results.latency;
    latency.min = lines.number_after("min:")?;
    latency.mean = lines.figure_after("avg:")?;
    latency.max = lines.number_after("max:")?;
    if lines.option("percentile stats:").is_none() {
        let line = lines.next();
        let (rank, ms) = line.split_once("th percentile:").unwrap_or(("", ""));
        latency.percentile = Some((lines.count(rank)?, lines.figure(ms.trim())?));
        lines.labels.push((PERCENTILE.to_owned(), lines.at - 1));
    }
    latency.sum = lines.number_after("sum:")?;
    Ok(())
}

fn counted(lines: &mut Lines<'_>) -> Result<Done, ImportError> {
    lines.option("Done.");
    let performed = lines.take(RESULTS[0])?;
    let words: Vec<&str> = performed
        .split([' ', ','])
        .filter(|it| !it.is_empty())
        .collect();
    let &[
        reads,
        "Read" | "reads",
        writes,
        "Write" | "writes",
        other,
        "Other",
        "=",
        total,
        "Total",
    ] = &words[..]
    else {
        return Err(lines.behind(format!("\"{performed}\" is no list of operations")));
    };
    let (reads, writes) = (lines.count(reads)?, lines.count(writes)?);
    let (other, total) = (lines.count(other)?, lines.count(total)?);
    if reads
        .checked_add(writes)
        .and_then(|sum| sum.checked_add(other))
        != Some(total)
    {
        return Err(lines.behind(format!("{reads}, {writes} and {other} are not {total}")));
    }
    let moved = lines.take("Read ")?;
    let words: Vec<&str> = moved.split_whitespace().collect();
    let &[
        read,
        "Written",
        written,
        "Total",
        "transferred",
        transferred,
        speed,
    ] = &words[..]
    else {
        return Err(lines.behind(format!("\"{moved}\" is no list of bytes")));
    };
    let speed = speed
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix("/sec)"));
    let (read, written) = (lines.size(read)?, lines.size(written)?);
    let (transferred, bytes_per_s) = (lines.size(transferred)?, lines.size(speed.unwrap_or(""))?);
    // The only line whose figure stands before its label.
    let executed = lines.next().strip_suffix(" Requests/sec executed");
    Ok(Done::Counted {
        reads,
        writes,
        other,
        read,
        written,
        transferred,
        bytes_per_s,
        requests_per_s: lines.figure(executed.unwrap_or(""))?,
    })
}

fn rated(lines: &mut Lines<'_>) -> Result<Done, ImportError> {
    lines.take(RESULTS[1])?;
    let reads = lines.figure_after("reads/s:")?;
    let writes = lines.figure_after("writes/s:")?;
    let fsyncs = lines.figure_after("fsyncs/s:")?;
    lines.take("Throughput:")?;
    Ok(Done::Rated {
        reads,
        writes,
        fsyncs,
        read: lines.figure_after("read, MiB/s:")? * MIB,
        written: lines.figure_after("written, MiB/s:")? * MIB,
    })
}

fn general(lines: &mut Lines<'_>, results: &mut Results) -> Result<(), ImportError> {
    let total = lines.within("total time:", "s")?;
    results.total_s = lines.figure(total)?;
    let events = lines.take("total number of events:")?;
    results.events = lines.count(events)?;
    Ok(())
}

fn fairness(lines: &mut Lines<'_>) -> Result<[f64; 4], ImportError> {
    lines.take("Threads fairness:")?;
    let mut all = [0.0; 4];
    let labels = ["events (avg/stddev):", LAST];
    for (pair, label) in all.chunks_mut(2).zip(labels) {
        let words = lines.take(label)?;
        let (mean, deviation) = words.split_once('/').unwrap_or((words, ""));
        pair[0] = lines.number(mean)?;
        pair[1] = lines.number(deviation)?;
    }
    Ok(all)
}
