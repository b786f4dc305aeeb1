//! The rates of a job in fio's normal output. Each is there several times: as a rate of few digits, and as
//! the amount and the time that it was made from. The statement with most digits counts.

use super::results::{Direction, is_version_2, per_second};
use super::value;
use stackrace_base::printed::text::{TextLine, bytes_of, times_of};
use stackrace_base::printed::{ImportError, PrintedFigure};

/// The first of fio's versions that prints the digits behind a point as they are.
const WHOLE_SINCE: u64 = 26;

/// The digits of a figure that a version of fio prints.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Digits {
    /// All that there is room for.
    #[default]
    Shown,
    /// 2 and 3.0 to 3.25 print 10.98k as "10.0k".
    Dropped,
}

impl Digits {
    /// Those of a version, as fio calls itself: `fio-3.33`.
    pub(super) fn of(version: &str) -> Self {
        if is_version_2(version) {
            return Self::Dropped;
        }
        let minor = version.strip_prefix("fio-3.").unwrap_or_default();
        let end = minor.find(|c: char| !c.is_ascii_digit());
        match minor[..end.unwrap_or(minor.len())].parse::<u64>() {
            Ok(minor) if minor < WHOLE_SINCE => Self::Dropped,
            _ => Self::Shown,
        }
    }
}

/// One figure that is printed in powers of 1024 and of 1000.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) binary: PrintedFigure,
    pub(super) decimal: PrintedFigure,
}

impl Pair {
    /// An amount in powers of 1024, and again in those of 1000.
    pub(super) fn amounts(binary: &str, decimal: &str, digits: Digits) -> Option<Self> {
        Some(Self {
            binary: amount(binary, digits)?,
            decimal: amount(decimal, digits)?,
        })
    }

    /// A rate in powers of 1024, and again in those of 1000.
    pub(super) fn rates(binary: &str, decimal: &str, digits: Digits) -> Option<Self> {
        Some(Self {
            binary: rate(binary, digits)?,
            decimal: rate(decimal, digits)?,
        })
    }

    /// Returns true if both can be of one figure: each is rounded to its own digits.
    pub(super) fn fits(self) -> bool {
        self.binary.agrees(self.decimal)
    }
}

/// Reads `IOPS=36.8k, BW=144MiB/s (151MB/s)(719MiB/5001msec); 0 zone resets`: the same rate twice,
/// and what it was made from.
pub(super) fn rates(
    line: TextLine<'_>,
    name: &str,
    rest: &str,
    digits: Digits,
) -> Result<Direction, ImportError> {
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
    let rate = Pair::rates(rate, again, digits).ok_or_else(refuse)?;
    let moved = amount(moved, digits).ok_or_else(refuse)?;
    let milliseconds = elapsed
        .strip_suffix("msec")
        .and_then(PrintedFigure::read)
        .ok_or_else(refuse)?
        .value;
    if !rate.fits() {
        return Err(line.contradicts("itself: the rate is there twice, as two"));
    }
    let printed = count(operations, digits).ok_or_else(refuse)?;
    let made = per_second(moved, milliseconds);
    let follows = match made {
        Some(made) => rate.binary.agrees(made),
        // fio makes no rate of less than a millisecond.
        None => rate.binary.value <= 0.0 && printed.value <= 0.0,
    };
    if !follows {
        return Err(line.contradicts("itself: amount over time is another rate"));
    }
    // All of them rest on the same whole milliseconds.
    let finest = made
        .map_or(rate.binary, |made| rate.binary.finer(made))
        .finer(rate.decimal);
    Ok(Direction::printed(
        name,
        finest,
        milliseconds,
        (operations, printed),
        moved,
    ))
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
        return Ok(());
    };
    // Bytes that the count gives, if they are those that were moved: it is confirmed then.
    let bytes = value::bytes(block, 1024).map(|block| count * block as f64);
    let bytes = bytes.filter(|bytes| bytes.agrees(shown.moved));
    let printed = direction.operations;
    let exact = PrintedFigure::exact(made.value);
    if !exact.agrees(printed) {
        // Digits are all that may be lost, and in no other version.
        return Err(line.contradicts(format!(
            "IOPS={} of the {} before it",
            shown.operations, direction.name
        )));
    }
    let strict = self::count(&shown.operations, Digits::Shown);
    if strict.is_some_and(|strict| !exact.agrees(strict)) {
        direction.notes.push(format!(
            "fio printed IOPS={}, but {} operations in {} ms are {:.2} a second. That figure is taken: fio 2 and 3.0 to 3.25 drop digits",
            shown.operations, count.value, shown.milliseconds, made.value
        ));
    }
    direction.operations = made;
    let exact = bytes.and_then(|bytes| per_second(bytes, shown.milliseconds));
    direction.throughput = exact.unwrap_or(direction.throughput);
    Ok(())
}

/// Reads `36.8k`, `3852k`, `20033k`, `441.76`.
pub(super) fn count(word: &str, digits: Digits) -> Option<PrintedFigure> {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &word[number.len()..] {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    scaled(number, factor, digits)
}

/// Reads `719MiB`, `1432MB`, `4096B`.
pub(super) fn amount(word: &str, digits: Digits) -> Option<PrintedFigure> {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    scaled(number, bytes_of(&word[number.len()..])?, digits)
}

/// Reads `54.1MiB/s`, and `433Mibit/s` as fio prints it with `unit_base=1`. Bytes per second.
fn rate(word: &str, digits: Digits) -> Option<PrintedFigure> {
    const BITS: f64 = 8.0;
    match word.strip_suffix("bit/s") {
        Some(bits) => {
            let number = bits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let factor = times_of(&bits[number.len()..])? / BITS;
            scaled(number, factor, digits)
        }
        None => amount(word.strip_suffix("/s")?, digits),
    }
}

pub(super) fn scaled(number: &str, factor: f64, digits: Digits) -> Option<PrintedFigure> {
    let figure = PrintedFigure::read(number)?;
    let known = match (digits, number.contains('.')) {
        (Digits::Dropped, true) => figure.no_finer_than(1.0),
        _ => figure,
    };
    Some(known * factor)
}

#[cfg(test)]
mod tests {
    use super::Digits;

    #[test]
    fn only_the_versions_that_drop_digits_are_taken_for_such() {
        for (version, digits) in [
            ("fio-2.2.10", Digits::Dropped),
            ("fio-3.0", Digits::Dropped),
            ("fio-3.1", Digits::Dropped),
            ("fio-3.25", Digits::Dropped),
            ("fio-3.25-68-g1234", Digits::Dropped),
            ("fio-3.26", Digits::Shown),
            ("fio-3.33", Digits::Shown),
            ("fio-3.39-dirty", Digits::Shown),
            ("stackrace-0.1.0 (fio-3.33 layout)", Digits::Shown),
        ] {
            assert_eq!(Digits::of(version), digits, "{version}");
        }
    }
}
