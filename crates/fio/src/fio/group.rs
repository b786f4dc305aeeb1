//! The summary of a group in fio's normal output: what its jobs moved together. It says what the jobs said before, so
//! that both have to agree.

use super::rates::{Digits, Pair};
use super::results::{Direction, per_second};
use stackrace_base::printed::text::TextLine;
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Share by which amounts and times may differ beside their last digits.
const OFF: f64 = 0.01;

/// The direction whose sum a line is, and what it says: `READ: bw=…`; of version 2 `READ: io=…`.
pub(super) fn of(text: &str) -> Option<(&'static str, &str)> {
    let names = [
        ("READ: bw=", "read"),
        ("WRITE: bw=", "write"),
        ("TRIM: bw=", "trim"),
        ("MIXED: bw=", "mixed"),
        // Version 2.
        ("READ: io=", "read"),
        ("WRITE: io=", "write"),
        ("TRIM: io=", "trim"),
        ("MIXED: io=", "mixed"),
    ];
    let mut all = names.into_iter();
    all.find_map(|(begin, name)| Some((name, text.strip_prefix(begin)?)))
}

/// Checks `54.1MiB/s (56.7MB/s), 26.1MiB/s-28.0MiB/s (27.4MB/s-29.3MB/s), io=8192KiB (8389kB), run=71-74msec` against
/// the jobs of the group, of which each has moved so much in so many ms.
///
/// # Errors
/// It is no such line, or contradicts itself or its jobs.
pub(super) fn check(
    line: TextLine<'_>,
    rest: &str,
    digits: Digits,
    jobs: &[&Direction],
) -> Result<(), ImportError> {
    let refuse =
        || line.refuse("READ: bw=… (…), …-… (…-…), io=… (…), run=…-…msec, as fio 3 prints it");
    let mut parts = rest.splitn(4, ", ");
    let mut part = || parts.next().ok_or_else(refuse);
    let (rate, extremes, moved, ran) = (part()?, part()?, part()?, part()?);
    let pair = |text: &str, read: fn(&str, &str, Digits) -> Option<Pair>| {
        let (binary, decimal) = text
            .strip_suffix(')')
            .and_then(|text| text.split_once(" ("))
            .ok_or_else(refuse)?;
        read(binary, decimal, digits).ok_or_else(refuse)
    };
    let rate = pair(rate, Pair::rates)?;
    let (binary, decimal) = extremes
        .strip_suffix(')')
        .and_then(|text| text.split_once(" ("))
        .ok_or_else(refuse)?;
    let ((low, high), (low_again, high_again)) = binary
        .split_once('-')
        .zip(decimal.split_once('-'))
        .ok_or_else(refuse)?;
    let extreme = |one, again| Pair::rates(one, again, digits).ok_or_else(refuse);
    let (least, most) = (extreme(low, low_again)?, extreme(high, high_again)?);
    let moved = pair(moved.strip_prefix("io=").ok_or_else(refuse)?, Pair::amounts)?;
    let ran = ran
        .strip_prefix("run=")
        .and_then(|ran| ran.strip_suffix("msec"))
        .and_then(|ran| ran.split_once('-'))
        .ok_or_else(refuse)?;
    let ran = (line.whole(ran.0)? as f64, line.whole(ran.1)? as f64);
    if ![rate, least, most, moved].iter().all(|pair| pair.fits()) {
        return Err(line.contradicts("itself: the same figure is there twice, as two"));
    }
    let made = per_second(moved.binary, ran.1);
    let rates = [
        made.is_some_and(|made| !near(rate.binary, made)),
        least.binary.value > most.binary.value + most.binary.step,
        ran.0 > ran.1,
    ];
    if rates.contains(&true) {
        return Err(line.contradicts("itself: the rate, the amount and the time do not fit"));
    }
    check_jobs(line, moved.binary, ran.1, jobs)
}

/// Checks what a group moved in so many ms against its jobs.
///
/// # Errors
/// They moved something else.
pub(super) fn check_jobs(
    line: TextLine<'_>,
    moved: PrintedFigure,
    ran: f64,
    jobs: &[&Direction],
) -> Result<(), ImportError> {
    // The sum over all directions has no jobs of its own.
    let Some((first, others)) = jobs.split_first() else {
        return Ok(());
    };
    let sum = others
        .iter()
        .fold(first.shown.moved, |sum, job| sum + job.shown.moved);
    let longest = jobs
        .iter()
        .map(|job| job.shown.milliseconds)
        .fold(0.0, f64::max);
    if !near(moved, sum) || (ran - longest).abs() > 1.0 + OFF * longest {
        return Err(line.contradicts("the jobs of the group"));
    }
    Ok(())
}

pub(super) fn near(one: PrintedFigure, other: PrintedFigure) -> bool {
    one.agrees(other) || (one.value - other.value).abs() <= OFF * one.value.max(other.value)
}
