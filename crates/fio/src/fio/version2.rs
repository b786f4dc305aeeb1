//! The lines of the normal output of fio 2 that fio 3 prints otherwise: `KB` there is 1024 bytes, and amounts come before
//! rates.

use super::group;
use super::rates::{self, Digits};
use super::results::{Direction, per_second};
use super::value;
use stackrace_base::printed::text::{TextLine, size};
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Reads the size of a letter's operations in `4K-4K/4K-4K/4K-4K`: reads, writes, trims.
pub(super) fn announced_block(rest: &str, letter: &str) -> Option<String> {
    let (_, sizes) = rest.split_once("bs=")?;
    let mut sizes = sizes.split(',').next()?.split('/');
    let at = ["(R) ", "(W) ", "(T) "]
        .iter()
        .position(|it| *it == letter)?;
    let (low, high) = sizes.nth(at)?.trim().split_once('-')?;
    let (low, high) = (value::bytes(low, 1024)?, value::bytes(high, 1024)?);
    Some(match low == high {
        true => size(low),
        false => format!("{}-{}", size(low), size(high)),
    })
}

/// Reads `io=1024.0MB, bw=1365.4MB/s, iops=1365, runt=   750msec`.
pub(super) fn rates(line: TextLine<'_>, name: &str, rest: &str) -> Result<Direction, ImportError> {
    let refuse = || line.refuse("io=…, bw=…KB/s, iops=…, runt=…msec");
    let mut parts = rest.split(',').map(str::trim);
    let mut part = |begin: &str| parts.next().and_then(|part| part.strip_prefix(begin));
    let moved = part("io=").and_then(amount).ok_or_else(refuse)?;
    let rate = part("bw=").and_then(rate).ok_or_else(refuse)?;
    let operations = part("iops=").ok_or_else(refuse)?;
    let milliseconds = part("runt=").and_then(time).ok_or_else(refuse)?;
    if parts.next().is_some() {
        return Err(refuse());
    }
    let printed = rates::count(operations, Digits::Shown).ok_or_else(refuse)?;
    let made = per_second(moved, milliseconds);
    if made.is_some_and(|made| !rate.agrees(made)) {
        return Err(line.contradicts("itself: amount over time is another rate"));
    }
    let finest = made.map_or(rate, |made| rate.finer(made));
    Ok(Direction::printed(
        name,
        finest,
        milliseconds,
        (operations, printed),
        moved,
    ))
}

/// Reads `r=1024/w=0/d=0`.
pub(super) fn counts(line: TextLine<'_>, list: &str) -> Option<[u64; 3]> {
    let mut counts = list.split('/');
    let mut next = |letter: &str| {
        let count = counts.next()?.trim().strip_prefix(letter)?;
        line.whole(count).ok()
    };
    Some([next("r=")?, next("w=")?, next("d=")?])
}

/// Checks `1024.0MB, aggrb=1398101KB/s, minb=…KB/s, maxb=…KB/s, mint=750msec, maxt=750msec` against the jobs.
pub(super) fn check_group(
    line: TextLine<'_>,
    rest: &str,
    jobs: &[&Direction],
) -> Result<(), ImportError> {
    let refuse = || line.refuse("io=…, aggrb=…KB/s, minb=…, maxb=…, mint=…msec, maxt=…msec");
    let mut parts = rest.split(',').map(str::trim);
    let mut part = |begin: &str| parts.next().and_then(|part| part.strip_prefix(begin));
    let moved = part("").and_then(amount).ok_or_else(refuse)?;
    let sum = part("aggrb=").and_then(rate).ok_or_else(refuse)?;
    let least = part("minb=").and_then(rate).ok_or_else(refuse)?;
    let most = part("maxb=").and_then(rate).ok_or_else(refuse)?;
    let first = part("mint=").and_then(time).ok_or_else(refuse)?;
    let last = part("maxt=").and_then(time).ok_or_else(refuse)?;
    let made = per_second(moved, last);
    let fits = made.is_none_or(|made| group::near(sum, made));
    if !fits || least.value > most.value + most.step || first > last {
        return Err(line.contradicts("itself: the rate, the amount and the time do not fit"));
    }
    group::check_jobs(line, moved, last, jobs)
}

/// Reads `1024.0MB`, `8192KB`, `512B`: powers of 1024.
fn amount(word: &str) -> Option<PrintedFigure> {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let prefix = word[number.len()..].strip_suffix('B')?;
    let powers = ["", "K", "M", "G", "T", "P"];
    let power = powers.iter().position(|it| *it == prefix)?;
    // As 3.0 to 3.25 do, it may drop digits behind the point.
    rates::scaled(
        number,
        1024f64.powi(i32::try_from(power).ok()?),
        Digits::Dropped,
    )
}

fn rate(word: &str) -> Option<PrintedFigure> {
    amount(word.strip_suffix("/s")?)
}

/// Milliseconds in `   750msec`.
fn time(word: &str) -> Option<f64> {
    let number = PrintedFigure::read(word.strip_suffix("msec")?.trim())?;
    Some(number.value)
}

#[cfg(test)]
mod tests {
    use super::super::import::IMPORTER;

    const RUNS: &str = include_str!("../../../../tests/golden/fio/fio-2.2.10_two-runs_normal.txt");

    #[test]
    fn the_normal_output_of_fio_2_has_the_rates_that_its_counts_give() {
        let results = (IMPORTER.read)(RUNS).unwrap_or_else(|error| panic!("{error}"));
        let [read, write] = results.as_slice() else {
            panic!("{results:?}");
        };
        for (result, workload, milliseconds) in [
            (read, "fio read 16M", 1099.0),
            (write, "fio write 16M", 2125.0),
        ] {
            assert_eq!(result.workload, workload);
            let seconds = milliseconds / 1e3;
            let of = |name: &str| {
                let at = result.metrics.iter().position(|head| head.name == name);
                result.values[at.unwrap()].unwrap().value
            };
            let bytes = 8192.0 * 1_048_576.0 / seconds;
            assert!((of("throughput") / bytes - 1.0).abs() < 1e-9, "{workload}");
            assert!(
                (of("operations") * seconds - 512.0).abs() < 1e-6,
                "{workload}"
            );
        }
        let latency = read
            .metrics
            .iter()
            .position(|head| head.name == "read latency mean");
        assert_eq!(read.values[latency.unwrap()].unwrap().value, 2_142_950.0);
    }

    #[test]
    fn what_fio_2_says_twice_has_to_agree() {
        for (said, other) in [
            ("bw=7454.5MB/s", "bw=754.5MB/s"),
            ("iops=465", "iops=4650"),
            ("total=r=512/", "total=r=51/"),
            ("aggrb=7454.5MB/s", "aggrb=7454.5KB/s"),
            ("maxt=1099msec", "maxt=10990msec"),
            ("io=8192.0MB, aggrb", "io=819.0MB, aggrb"),
        ] {
            assert!(RUNS.contains(said));
            assert!(
                (IMPORTER.read)(&RUNS.replacen(said, other, 1)).is_err(),
                "{other}"
            );
        }
        let cut = RUNS.split("Run status").next().unwrap();
        assert!((IMPORTER.read)(cut).is_err());
    }

    /// `unit_base=1`
    #[test]
    fn rates_in_bits_are_those_in_bytes() {
        let text = include_str!("../../../../tests/golden/fio/fio-3.33_bits_normal.txt");
        let results = (IMPORTER.read)(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(results[0].values[0].unwrap().value, 1_024_000.0);
        assert_eq!(results[0].values[1].unwrap().value, 4_194_304_000.0);
        let other = text.replace("31.2Gibit/s (33.6Gbit/s)(", "31.2Gibit/s (3.36Gbit/s)(");
        assert!((IMPORTER.read)(&other).is_err());
    }
}
