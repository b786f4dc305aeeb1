//! The layout people read. Lines whose figures are not measured are left out, never made up.

use super::job::FioJob;
use super::report::{CLASSES, FioLatency, FioReport, JobReport, Moved, VERSION, milliseconds};

/// Shares are shown where they round to this many percent at least.
const SHARE_SHOWN: f64 = 0.005;

/// A number in so many characters: whole while it fits, else of a larger unit.
fn short(value: f64, characters: usize, base: f64) -> (String, usize) {
    let limit = 10f64.powi(characters as i32);
    let (mut value, mut power) = (value, 0);
    while value.round() >= limit && power < 6 {
        value /= base;
        power += 1;
    }
    if power == 0 {
        return (format!("{value:.0}"), 0);
    }
    let whole = format!("{:.0}", value.floor()).len();
    // fio fills four characters with decimals; six are for whole numbers.
    let places = if characters > 4 {
        0
    } else {
        characters.saturating_sub(whole + 1)
    };
    (format!("{value:.places$}"), power)
}

/// Prints `9358`, `60.2k`.
fn count(value: f64, characters: usize) -> String {
    let (text, power) = short(value, characters, 1000.0);
    text + ["", "k", "M", "G", "T", "P", "E"][power]
}

/// Prints `36.6MiB`.
fn binary(value: f64) -> String {
    let (text, power) = short(value, 4, 1024.0);
    text + ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][power]
}

/// Prints `38.3MB`.
fn decimal(value: f64) -> String {
    let (text, power) = short(value, 4, 1000.0);
    text + ["B", "kB", "MB", "GB", "TB", "PB", "EB"][power]
}

fn msec(ns: u64) -> String {
    let ms = milliseconds(ns);
    if ms.fract() == 0.0 {
        format!("{ms:.0}")
    } else {
        format!("{ms:.3}")
    }
}

/// The unit that suits a distribution, and how many ns it has.
fn unit(latency: &FioLatency) -> (&'static str, f64) {
    let suits = |scale: u64| {
        // fio's own rule: a unit is left when minimum, maximum and deviation are all large in it.
        latency.min > 2_000 * scale
            && latency.max > 99_999 * scale
            && latency.deviation > 1e3 * scale as f64
    };
    match (suits(1), suits(1_000)) {
        (true, true) => ("msec", 1e6),
        (true, false) => ("usec", 1e3),
        _ => ("nsec", 1.0),
    }
}

/// Prints `clat (usec): min=21, max=383, avg=68.12, stdev=27.38`.
fn times(name: &str, latency: &FioLatency) -> String {
    let (unit, scale) = unit(latency);
    let (min, max) = (latency.min as f64 / scale, latency.max as f64 / scale);
    format!(
        "    {name:>4} ({unit}): min={}, max={}, avg={:.2}, stdev={:.2}\n",
        count(min, 6),
        count(max, 6),
        latency.mean / scale,
        latency.deviation / scale
    )
}

fn percentiles(name: &str, latency: &FioLatency) -> String {
    if latency.percentiles.is_empty() {
        return String::new();
    }
    let (unit, scale) = unit(latency);
    let values = latency
        .percentiles
        .iter()
        // Rounded here, so that the widest value, which sets the columns, is the one that is
        // printed.
        .map(|(at, ns)| (at, (*ns as f64 / scale).round()));
    let width = values
        .clone()
        .map(|(_, value)| format!("{value:.0}").len())
        .max();
    let width = width.unwrap_or(0).max(5);
    let cells: Vec<String> = values
        .map(|(at, value)| format!("{at:>5.2}th=[{value:>width$.0}]"))
        .collect();
    let mut text = format!("    {name} percentiles ({unit}):\n");
    let last = cells.len().div_ceil(4) - 1;
    for (row, cells) in cells.chunks(4).enumerate() {
        let end = if row == last { "" } else { "," };
        text.push_str(&format!("     | {}{end}\n", cells.join(", ")));
    }
    text
}

/// Prints the lines about all jobs before the first begins.
pub fn announced(jobs: &[FioJob]) -> String {
    let mut text = String::new();
    for job in jobs {
        let sizes = job.block_sizes.iter().map(|(size, _)| f64::from(*size));
        // One range for all three kinds: mixed jobs have one size for both, and nothing is
        // trimmed.
        let low = binary(sizes.clone().fold(f64::INFINITY, f64::min));
        let high = binary(sizes.fold(0.0, f64::max));
        text.push_str(&format!(
            "{}: (g={}): rw={}, bs=(R) {low}-{high}, (W) {low}-{high}, (T) {low}-{high}, ioengine={}, iodepth={}\n",
            job.name, job.group, job.mode, job.engine_name, job.queue_depth
        ));
        if job.clones > 1 {
            text.push_str("...\n");
        }
    }
    let threads: u64 = jobs.iter().map(|job| u64::from(job.clones)).sum();
    let plural = if threads == 1 { "" } else { "s" };
    text.push_str(&format!("{VERSION}\nStarting {threads} thread{plural}\n"));
    text
}

/// Prints the report after the run.
pub(super) fn normal(report: &FioReport) -> String {
    let mut text = String::new();
    for job in &report.jobs {
        text.push_str(&part(report, job));
    }
    let mut groups: Vec<u64> = report.jobs.iter().map(|job| job.group).collect();
    groups.dedup();
    for group in groups {
        let jobs: Vec<&JobReport> = report.jobs.iter().filter(|it| it.group == group).collect();
        text.push_str(&summary(group, &jobs));
    }
    text
}

/// The lines of one job: rates, latencies, and the count of operations that ends them.
fn part(report: &FioReport, job: &JobReport) -> String {
    let said = match job.error {
        0 => " 0".to_owned(),
        error => format!("{error:2} ({})", std::io::Error::from_raw_os_error(error)),
    };
    let mut text = format!(
        "\n{}: (groupid={}, jobs={}): err={said}: pid={}: {}\n",
        job.name, job.group, job.jobs, report.pid, report.date
    );
    if let Some(description) = &job.description {
        text.push_str(&format!("  Description  : [{description}]\n"));
    }
    for (name, moved) in job.directions() {
        text.push_str(&direction(job, name, moved));
    }
    text.push_str(&classes(job));
    if let Some(synced) = &job.synced {
        text.push_str("  fsync/fdatasync/sync_file_range:\n");
        text.push_str(&times("sync", synced));
        text.push_str(&percentiles("sync", synced));
    }
    if let Some((user, system)) = job.cpu {
        text.push_str(&format!(
            "  cpu          : usr={:.2}%, sys={:.2}%\n",
            user * 100.0,
            system * 100.0
        ));
    }
    let of = |moved: &Option<Moved>| {
        moved
            .as_ref()
            .map_or((0, 0), |it| (it.operations, it.short))
    };
    let (read, written, trimmed) = (of(&job.read), of(&job.written), of(&job.trimmed));
    let synced = job.synced.as_ref().map_or(0, |synced| synced.count);
    text.push_str(&format!(
        "     issued rwts: total={},{},{},{synced} short={},{},{},0 dropped=0,0,0,0\n",
        read.0, written.0, trimmed.0, read.1, written.1, trimmed.1
    ));
    text.push_str(&format!(
        "     latency   : target=0, window=0, percentile=100.00%, depth={}\n",
        job.queue_depth
    ));
    text
}

fn direction(job: &JobReport, name: &str, moved: &Moved) -> String {
    let rate = moved.per_second(moved.bytes);
    let mut text = format!(
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec)\n",
        count(moved.per_second(moved.operations), 4),
        binary(rate),
        decimal(rate),
        binary(moved.bytes as f64),
        msec(moved.elapsed_ns)
    );
    if job.plain {
        text.push_str(&times("clat", &moved.latency));
    }
    text.push_str(&times("lat", &moved.latency));
    if let Some(response) = &moved.response {
        text.push_str(&times("response", response));
    }
    let whole = job.whole_percentiles || !job.plain;
    text + &percentiles(if whole { "lat" } else { "clat" }, &moved.latency)
}

/// Prints `lat (usec)   : 4=47.66%, 10=1.56%`: how many lie between the class before and this.
fn classes(job: &JobReport) -> String {
    let shares = job.shares();
    let ends = CLASSES
        .iter()
        .map(|end| (end, false))
        .chain([(&CLASSES[30], true)]);
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for ((end, above), share) in ends.zip(shares).filter(|(_, share)| *share >= SHARE_SHOWN) {
        let (unit, scale) = match *end {
            0..=1_000 => ("nsec", 1),
            1_001..=1_000_000 => ("usec", 1_000),
            _ => ("msec", 1_000_000),
        };
        let sign = if above { ">=" } else { "" };
        let cell = format!("{sign}{}={share:.2}%", end / scale);
        match rows.last_mut() {
            Some((last, cells)) if *last == unit && cells.len() < 5 => cells.push(cell),
            _ => rows.push((unit, vec![cell])),
        }
    }
    rows.iter()
        .map(|(unit, cells)| format!("  lat ({unit})   : {}\n", cells.join(", ")))
        .collect()
}

/// Prints what the jobs of a group moved together.
fn summary(group: u64, jobs: &[&JobReport]) -> String {
    let mut text = format!("\nRun status group {group} (all jobs):\n");
    for name in ["read", "write", "trim"] {
        let moved: Vec<&Moved> = jobs
            .iter()
            .flat_map(|job| job.directions())
            .filter_map(|(which, moved)| (which == name).then_some(moved))
            .collect();
        let Some(longest) = moved.iter().map(|it| it.elapsed_ns).max() else {
            continue;
        };
        let shortest = moved.iter().map(|it| it.elapsed_ns).min().unwrap_or(0);
        let bytes: u64 = moved.iter().map(|it| it.bytes).sum();
        // Over the longest job, because all of a group run at the same time.
        let rate = bytes as f64 * 1e9 / longest.max(1) as f64;
        let rates = moved.iter().map(|it| it.per_second(it.bytes));
        let (low, high) = rates.fold((f64::INFINITY, 0.0f64), |(low, high), rate| {
            (low.min(rate), high.max(rate))
        });
        text.push_str(&format!(
            "{:>7}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={}-{}msec\n",
            name.to_uppercase(),
            binary(rate),
            decimal(rate),
            binary(low),
            binary(high),
            decimal(low),
            decimal(high),
            binary(bytes as f64),
            decimal(bytes as f64),
            msec(shortest),
            msec(longest)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures fio 3.33 printed itself, with what it printed them from.
    #[test]
    fn numbers_have_the_digits_fio_gives_them() {
        assert_eq!(count(9358.2, 4), "9358");
        assert_eq!(count(60_235.0, 4), "60.2k");
        assert_eq!(count(128_000.0, 4), "128k");
        assert_eq!(binary(2_031_616.0), "1984KiB");
        assert_eq!(binary(38_400_000.0), "36.6MiB");
        assert_eq!(binary(246_723_764.0), "235MiB");
        assert_eq!(binary(4096.0), "4096B");
        assert_eq!(binary(65_536.0), "64.0KiB");
        assert_eq!(decimal(38_332_377.0), "38.3MB");
        assert_eq!(decimal(4_026_368.0), "4026kB");
        assert_eq!(decimal(10_000.0), "10.0kB");
        assert_eq!(count(1_234_567.0, 6), "1235k");
    }
}
