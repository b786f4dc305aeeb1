//! The rates of a job in fio's normal output. Each is there several times: as a rate of few digits, and as
//! the amount and the time that it was made from. The statement with most digits counts.

use super::results::{Direction, ResultLatency, Shown, per_second, ticked};
use super::value;
use stackrace_base::printed::text::{TextLine, agree, bytes_of};
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Reads `IOPS=36.8k, BW=144MiB/s (151MB/s)(719MiB/5001msec); 0 zone resets`: the same rate twice,
/// and what it was made from.
pub(super) fn rates(line: TextLine<'_>, name: &str, rest: &str) -> Result<Direction, ImportError> {
    let refuse = || line.refuse("IOPS=…, BW=…MiB/s (…MB/s)(…MiB/…msec)");
    let (operations, rest) = rest
        .strip_prefix("IOPS=")
        .and_then(|rest| rest.split_once(", BW="))
        .ok_or_else(refuse)?;
    let (rate, rest) = rest.split_once(" (").ok_or_else(refuse)?;
    let (again, rest) = rest.split_once(")(").ok_or_else(refuse)?;
    let (moved, behind) = rest.split_once(')').ok_or_else(refuse)?;
    // "; 0 zone resets" and no other line of fio.
    if !(behind.trim().is_empty() || behind.starts_with(';')) || behind.contains('=') {
        return Err(refuse());
    }
    let (moved, elapsed) = moved.split_once('/').ok_or_else(refuse)?;
    let rate_of = |word: &str| word.strip_suffix("/s").and_then(amount).ok_or_else(refuse);
    let (binary, decimal) = (rate_of(rate)?, rate_of(again)?);
    let moved = amount(moved).ok_or_else(refuse)?;
    let milliseconds = elapsed
        .strip_suffix("msec")
        .and_then(PrintedFigure::read)
        .ok_or_else(refuse)?
        .value;
    // Each is cut to its own digits: of a rate of 1 MB/s that may be half of it.
    let same = |one: PrintedFigure, other: PrintedFigure| {
        agree(one.value, other.value) || one.agrees(other)
    };
    if !same(binary, decimal) {
        return Err(line.contradicts("itself: the rate is there twice, as two"));
    }
    let made = per_second(moved, milliseconds);
    if made.is_some_and(|made| !same(binary, made)) {
        return Err(line.contradicts("itself: amount over time is another rate"));
    }
    // All of them rest on the same whole milliseconds.
    let finest = made
        .map_or(binary, |made| binary.finer(made))
        .finer(decimal);
    let throughput = ticked(finest, milliseconds);
    Ok(Direction {
        name: name.to_owned(),
        throughput,
        operations: count(operations).ok_or_else(refuse)?,
        latency: ResultLatency::default(),
        notes: Vec::new(),
        shown: Shown {
            operations: operations.to_owned(),
            milliseconds,
            moved,
        },
    })
}

/// Takes the figures that follow from the number of operations that `issued rwts` tells, in blocks of
/// `block` (`4k`, or `4k-64k`, which says nothing of their bytes).
pub(super) fn counted(
    line: TextLine<'_>,
    direction: &mut Direction,
    block: &str,
    count: u64,
) -> Result<(), ImportError> {
    let count = PrintedFigure::exact(count as f64);
    let shown = &direction.shown;
    let Some(made) = per_second(count, shown.milliseconds) else {
        // Under a millisecond the time is 0, and the printed rate is all there is.
        return Ok(());
    };
    // Bytes that the count gives, if they are those that were moved: it is confirmed then.
    let bytes = value::bytes(block, 1024).map(|block| count * block as f64);
    let bytes = bytes.filter(|bytes| bytes.agrees(shown.moved));
    let printed = direction.operations;
    // Both were made from the same count and time, so that digits are all that may be lost.
    let same = PrintedFigure::exact(made.value).agrees(printed);
    if !same {
        // Either is wrong, and nothing says which.
        if bytes.is_none() && !agree(made.value, printed.value) {
            return Err(line.contradicts(format!(
                "IOPS={} of the {} before it",
                shown.operations, direction.name
            )));
        }
        direction.notes.push(format!(
            "fio printed IOPS={}, but {} operations in {} ms are {:.2} a second. That figure is taken: fio 3.0 to 3.25 drop digits",
            shown.operations, count.value, shown.milliseconds, made.value
        ));
    }
    direction.operations = made;
    let exact = bytes.and_then(|bytes| per_second(bytes, shown.milliseconds));
    direction.throughput = exact.unwrap_or(direction.throughput);
    Ok(())
}

/// Reads `36.8k`, `3852k`, `20033k`, `441.76`.
pub(super) fn count(word: &str) -> Option<PrintedFigure> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &word[digits.len()..] {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    scaled(digits, factor)
}

/// Reads `719MiB`, `1432MB`, `4096B`.
pub(super) fn amount(word: &str) -> Option<PrintedFigure> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    scaled(digits, bytes_of(&word[digits.len()..])?)
}

fn scaled(digits: &str, factor: f64) -> Option<PrintedFigure> {
    Some(PrintedFigure::read(digits)? * factor)
}
