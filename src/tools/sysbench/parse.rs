//! Reading what sysbench printed, line by line, in its order.
//!
//! A line that is missing, or stands twice, is an error, and so are figures that contradict each
//! other: a report that was cut, or put together from two, is not taken for one.

use super::report::{
    Done, Head, Intermediate, MIB, MODES, Results, SysbenchLatency, SysbenchLayout, SysbenchReport,
};
use crate::printed::ImportError;

const WHOLE: &str = "give the whole output of `sysbench … run`, from its first line to its last";

const FLAGS: &str = "Extra file open flags:";

/// Reads every run in a text; what stands before, between and after them is left out.
///
/// # Errors
/// No run, or one that is not whole.
pub(crate) fn parse(text: &str) -> Result<Vec<SysbenchReport>, ImportError> {
    let mut lines = Lines {
        all: text.lines().collect(),
        at: 0,
    };
    let mut reports = Vec::new();
    while lines.seek_banner() {
        reports.extend(report(&mut lines)?);
    }
    if reports.is_empty() {
        return Err(lines.misread("there is no run of sysbench fileio in this text"));
    }
    Ok(reports)
}

struct Lines<'a> {
    all: Vec<&'a str>,
    at: usize,
}

impl<'a> Lines<'a> {
    /// The line to be read next, the blank ones before it skipped.
    fn peek(&mut self) -> &'a str {
        while self
            .all
            .get(self.at)
            .is_some_and(|line| line.trim().is_empty())
        {
            self.at += 1;
        }
        self.all.get(self.at).map_or("", |line| line.trim())
    }

    fn next(&mut self) -> &'a str {
        let line = self.peek();
        self.at += 1;
        line
    }

    fn misread(&self, what: impl Into<String>) -> ImportError {
        ImportError {
            line: self.at + 1,
            what: what.into(),
            next: WHOLE.to_owned(),
        }
    }

    /// A mistake in the line just taken.
    fn behind(&self, what: impl Into<String>) -> ImportError {
        ImportError {
            line: self.at.max(1),
            ..self.misread(what)
        }
    }

    /// What follows a label, if the next line has it.
    fn option(&mut self, label: &str) -> Option<&'a str> {
        let rest = self.peek().strip_prefix(label)?;
        self.at += 1;
        Some(rest.trim())
    }

    fn take(&mut self, label: &str) -> Result<&'a str, ImportError> {
        self.option(label).ok_or_else(|| {
            let line: String = self.peek().chars().take(60).collect();
            self.misread(format!(
                "\"{label}\" should stand here, and \"{line}\" does"
            ))
        })
    }

    /// A count after a label and before an end, if the line is there.
    fn count_within(&mut self, label: &str, end: &str) -> Result<Option<u64>, ImportError> {
        let Some(rest) = self.option(label) else {
            return Ok(None);
        };
        self.count(rest.strip_suffix(end).unwrap_or("").trim())
            .map(Some)
    }

    /// What stands between a label and an end.
    fn within(&mut self, label: &str, end: &str) -> Result<&'a str, ImportError> {
        let rest = self.take(label)?;
        let within = rest.strip_suffix(end).map(str::trim_end);
        within.ok_or_else(|| self.behind(format!("\"{rest}\" does not end with \"{end}\"")))
    }

    fn number_after(&mut self, label: &str) -> Result<f64, ImportError> {
        let word = self.take(label)?;
        self.number(word)
    }

    fn count(&self, word: &str) -> Result<u64, ImportError> {
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse().ok().filter(|_| digits);
        number.ok_or_else(|| self.behind(format!("\"{word}\" is no whole number")))
    }

    fn number(&self, word: &str) -> Result<f64, ImportError> {
        let plain = word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: Option<f64> = word.parse().ok().filter(|_| plain);
        let number = number.filter(|number| number.is_finite());
        number.ok_or_else(|| self.behind(format!("\"{word}\" is no number")))
    }

    fn size(&self, word: &str) -> Result<f64, ImportError> {
        let end = word
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let power = match unit {
            "b" | "B" => 0,
            "Kb" | "KiB" => 1,
            "Mb" | "MiB" => 2,
            "Gb" | "GiB" => 3,
            "Tb" | "TiB" => 4,
            _ => return Err(self.behind(format!("\"{word}\" is no size"))),
        };
        Ok(self.number(number)? * 1024f64.powi(power))
    }

    /// Goes to the next line that begins a report.
    fn seek_banner(&mut self) -> bool {
        let banner = |line: &&str| {
            let rest = line.trim().strip_prefix("sysbench ");
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        match self.all[self.at.min(self.all.len())..]
            .iter()
            .position(banner)
        {
            Some(skipped) => self.at += skipped,
            None => self.at = self.all.len(),
        }
        self.at < self.all.len()
    }
}

/// A report from its banner on; none: preparation, or a test of another kind.
fn report(lines: &mut Lines<'_>) -> Result<Option<SysbenchReport>, ImportError> {
    let banner = lines.next().to_owned();
    let version = banner.split([' ', ':']).nth(1).unwrap_or("");
    let mut numbers = version.split('.');
    let layout = match (numbers.next(), numbers.next()) {
        (Some("0"), Some("4" | "5")) => SysbenchLayout::V0_4,
        (Some("1"), Some("0")) => SysbenchLayout::V1_0,
        _ => return Err(lines.behind(format!("nothing is known of sysbench {version}"))),
    };
    let running = lines.option("Running the test with following options:");
    let head = match running {
        None => None,
        Some(_) => head(lines, layout, banner)?,
    };
    let Some(head) = head else {
        return Ok(None);
    };
    let mut intermediate = Vec::new();
    while lines.peek().starts_with('[') {
        intermediate.push(step(lines)?);
    }
    let histogram = histogram(lines)?;
    let results = match layout {
        SysbenchLayout::V0_4 => results_0_4(lines)?,
        SysbenchLayout::V1_0 => results_1_0(lines)?,
    };
    let report = SysbenchReport {
        head,
        intermediate,
        histogram,
        results,
    };
    match contradiction(&report) {
        None => Ok(Some(report)),
        Some(what) => Err(lines.behind(what)),
    }
}

/// What was asked for; none: a test that has nothing to do with files.
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
    if lines.option(FLAGS).is_none() {
        return Ok(None);
    }
    // Verbatim: some lists end with a space.
    let flags = lines.all[lines.at - 1].trim_start().strip_prefix(FLAGS);
    let flags = flags.unwrap_or("").trim_start().to_owned();
    let (files, file) = lines.next().split_once(" files, ").unwrap_or(("", ""));
    let files = lines.count(files)?;
    let file_bytes = lines.size(file.strip_suffix(" each").unwrap_or(""))?;
    let total = lines.next().strip_suffix(" total file size").unwrap_or("");
    let total_bytes = lines.size(total)?;
    let block = lines.take("Block size")?;
    let block_bytes = lines.size(block)?;
    let merged_bytes = match lines.option("Merging requests up to") {
        None => None,
        Some(rest) => Some(lines.size(rest.trim_end_matches(" for sequential IO."))?),
    };
    let random = random(lines)?;
    let every = "Periodic FSYNC enabled, calling fsync() each";
    let fsync_every = lines.count_within(every, "requests.")?;
    let at_end = lines.option("Calling fsync() at the end of test, Enabled.");
    let each = lines.option("Calling fsync() after each write operation.");
    let transfer = lines.within("Using", "I/O mode")?.to_owned();
    let validate = lines.option("Using checksums validation.").is_some();
    let mode = lines.within("Doing", "test")?.to_owned();
    if !MODES.iter().any(|(_, words)| *words == mode) {
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

/// `[ 2s ] reads: 1.00 MiB/s writes: … MiB/s fsyncs: …/s latency (ms,95%): 0.003`
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

fn results_0_4(lines: &mut Lines<'_>) -> Result<Results, ImportError> {
    lines.option("Done.");
    let done = counted(lines)?;
    if lines.option("Test execution summary:").is_none() {
        lines.take("General statistics:")?;
    }
    let (total_s, events) = general(lines)?;
    let sum = lines.take("total time taken by event execution:")?;
    let sum = lines.number(sum.trim_end_matches('s'))? * 1e3;
    if lines.option("per-request statistics:").is_none() {
        lines.take("response time:")?;
    }
    let mut figures = [0.0; 3];
    for (figure, label) in figures.iter_mut().zip(["min:", "avg:", "max:"]) {
        let ms = lines.within(label, "ms")?;
        *figure = lines.number(ms)?;
    }
    let rest = lines.take("approx.")?;
    let (rank, ms) = rest.split_once("percentile:").unwrap_or((rest, ""));
    let ms = ms.trim().strip_suffix("ms").unwrap_or("");
    let percentile = Some((lines.count(rank.trim())?, lines.number(ms)?));
    let [min, mean, max] = figures;
    Ok(Results {
        done,
        total_s,
        events,
        latency: SysbenchLatency {
            min,
            mean,
            max,
            percentile,
            sum,
        },
        fairness: fairness(lines)?,
    })
}

fn counted(lines: &mut Lines<'_>) -> Result<Done, ImportError> {
    let performed = lines.take("Operations performed:")?;
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
    let executed = lines.next().strip_suffix(" Requests/sec executed");
    Ok(Done::Counted {
        reads,
        writes,
        other,
        read,
        written,
        transferred,
        bytes_per_s,
        requests_per_s: lines.number(executed.unwrap_or(""))?,
    })
}

fn results_1_0(lines: &mut Lines<'_>) -> Result<Results, ImportError> {
    lines.take("File operations:")?;
    let reads = lines.number_after("reads/s:")?;
    let writes = lines.number_after("writes/s:")?;
    let fsyncs = lines.number_after("fsyncs/s:")?;
    lines.take("Throughput:")?;
    let read = lines.number_after("read, MiB/s:")? * MIB;
    let written = lines.number_after("written, MiB/s:")? * MIB;
    lines.take("General statistics:")?;
    let (total_s, events) = general(lines)?;
    lines.take("Latency (ms):")?;
    let min = lines.number_after("min:")?;
    let mean = lines.number_after("avg:")?;
    let max = lines.number_after("max:")?;
    let percentile = match lines.option("percentile stats:") {
        Some(_) => None,
        None => {
            let (rank, ms) = lines
                .next()
                .split_once("th percentile:")
                .unwrap_or(("", ""));
            Some((lines.count(rank)?, lines.number(ms.trim())?))
        }
    };
    Ok(Results {
        done: Done::Rated {
            reads,
            writes,
            fsyncs,
            read,
            written,
        },
        total_s,
        events,
        latency: SysbenchLatency {
            min,
            mean,
            max,
            percentile,
            sum: lines.number_after("sum:")?,
        },
        fairness: fairness(lines)?,
    })
}

fn general(lines: &mut Lines<'_>) -> Result<(f64, u64), ImportError> {
    let total = lines.within("total time:", "s")?;
    let total_s = lines.number(total)?;
    let events = lines.take("total number of events:")?;
    Ok((total_s, lines.count(events)?))
}

fn fairness(lines: &mut Lines<'_>) -> Result<[f64; 4], ImportError> {
    lines.take("Threads fairness:")?;
    let mut all = [0.0; 4];
    let labels = ["events (avg/stddev):", "execution time (avg/stddev):"];
    for (pair, label) in all.chunks_mut(2).zip(labels) {
        let words = lines.take(label)?;
        let (mean, deviation) = words.split_once('/').unwrap_or((words, ""));
        pair[0] = lines.number(mean)?;
        pair[1] = lines.number(deviation)?;
    }
    Ok(all)
}

/// What cannot be true together.
fn contradiction(report: &SysbenchReport) -> Option<String> {
    let results = &report.results;
    let [events, _, seconds, _] = results.fairness;
    let near = |a: f64, b: f64, slack: f64| (a - b).abs() <= slack + 0.001 * a.abs().max(b.abs());
    let (threads, count) = (report.head.threads as f64, results.events as f64);
    let latency = &results.latency;
    if !near(events * threads, count, 0.01 * threads) {
        return Some(format!("{count} events are not {threads} times {events}"));
    }
    if !near(seconds * threads, latency.sum / 1e3, 0.001 * threads + 0.01) {
        return Some("the times of the threads do not add up to that of the events".to_owned());
    }
    // Printed to 0.01 ms.
    if !near(latency.mean * count, latency.sum, 0.006 * count + 0.2) {
        return Some("the mean latency does not fit the sum".to_owned());
    }
    if latency.min > latency.mean + 0.01 || latency.mean > latency.max + 0.01 {
        return Some("the mean latency is not between the least and the largest".to_owned());
    }
    match results.done {
        Done::Counted { reads, writes, .. } if reads.saturating_add(writes) != results.events => {
            Some(format!("{reads} and {writes} are not {count} events"))
        }
        Done::Counted {
            read,
            written,
            transferred,
            ..
        } if !near(read + written, transferred, 0.0) => {
            Some("what was read and written is not what was transferred".to_owned())
        }
        _ => None,
    }
}
