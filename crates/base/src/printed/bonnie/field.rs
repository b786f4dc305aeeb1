//! Reads single fields: numbers, sizes, latencies, numbers of files.

use super::report::{BonnieFiles, Data, Made};
use crate::printed::{ImportError, PrintedFigure};

/// Larger numbers than these are no sizes, and no rates.
const NUMBER_MAX: f64 = 1e15;

/// The refusal of a line (counted from 1) that is no output of bonnie++; `what` says why, `next` what to do.
pub fn misread(line: usize, what: impl Into<String>, next: &str) -> ImportError {
    ImportError::at(line.saturating_sub(1), what, next)
}

/// A whole number, or one with decimals, and nothing else; within reason.
pub fn number(text: &str) -> Option<f64> {
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    let begins = text.starts_with(|c: char| c.is_ascii_digit());
    // `parse` alone also takes "inf", "nan", "1e5" and ".5", which bonnie++ never prints.
    let number: f64 = text
        .parse()
        .ok()
        .filter(|_| begins && text.chars().all(plain))?;
    (number <= NUMBER_MAX).then_some(number)
}

/// Reads as [`number`], with the step of its last digit.
pub fn figure(text: &str) -> Option<PrintedFigure> {
    number(text).and_then(|_| PrintedFigure::read(text))
}

/// A count without decimals; none where [`number`] gives none, or decimals follow.
pub fn whole(text: &str) -> Option<u64> {
    let number = number(text).filter(|_| !text.contains('.'))?;
    Some(number as u64)
}

/// Reads as [`whole`], and none above 32 bits: for percentages, and numbers of files.
pub fn small(text: &str) -> Option<u32> {
    whole(text).and_then(|number| u32::try_from(number).ok())
}

/// `1G` or `1100M`, in MiB.
pub fn size_mib(text: &str) -> Option<u64> {
    match text.strip_suffix('G') {
        Some(gib) => whole(gib)?.checked_mul(1024),
        None => whole(text.strip_suffix('M')?),
    }
}

/// `64k` or `512`, in bytes.
pub fn chunk_bytes(text: &str) -> Option<u64> {
    match text.strip_suffix('k') {
        Some(kib) => whole(kib)?.checked_mul(1024),
        None => whole(text),
    }
}

/// `62186us`, `102ms` or `5s`, in ns.
pub fn latency_ns(text: &str) -> Option<PrintedFigure> {
    // "us" and "ms" before "s": all three end with it.
    let (digits, unit_ns) = match text.strip_suffix("us") {
        Some(digits) => (digits, 1e3),
        None => match text.strip_suffix("ms") {
            Some(digits) => (digits, 1e6),
            None => (text.strip_suffix('s')?, 1e9),
        },
    };
    Some(PrintedFigure::whole(whole(digits)?) * unit_ns)
}

/// `8`, `8:16384:512`, `8:link`, with `/4` behind it.
pub fn files_words(text: &str) -> Option<BonnieFiles> {
    let (words, directories) = match text.split_once('/') {
        Some((words, directories)) => (words, small(directories)?),
        // A single directory is not printed.
        None => (text, 1),
    };
    let mut words = words.split(':');
    let number = whole(words.next()?)?;
    let made = match (words.next(), words.next()) {
        // Empty files, the default, are shown as a number alone.
        (None, _) => Made::Sizes { max: 0, min: 0 },
        (Some("link"), None) => Made::HardLinks,
        (Some("symlink"), None) => Made::SymbolicLinks,
        (Some(max), min) => Made::Sizes {
            max: whole(max)?,
            min: min.map_or(Some(0), whole)?,
        },
    };
    words.next().is_none().then_some(BonnieFiles {
        number,
        made,
        directories,
    })
}

/// `1G:64k:2:20000`: size, chunk, copies, seeks; what is usual may be missing.
pub fn data_words(text: &str) -> Option<(Data, u32)> {
    let mut words = text.split(':');
    let size_mib = size_mib(words.next()?)?;
    let chunk = match words.next() {
        None | Some("") => None,
        Some(chunk) => Some(chunk_bytes(chunk)?),
    };
    let mut more = || match words.next() {
        None | Some("") => Some(None),
        Some(number) => small(number).map(Some),
    };
    // 2.00 leaves the default out between its colons: `1G:::20000` has only seeks.
    let (concurrency, seeks) = (more()?.unwrap_or(1), more()?);
    let data = Data {
        size_mib,
        chunk,
        seeks,
        seekers: None,
    };
    words.next().is_none().then_some((data, concurrency))
}

/// Returns true if a report may have this name: no row of a table is in it, nor the number of the line.
pub fn is_name(name: &str) -> bool {
    let words: Vec<&str> = name.split_whitespace().collect();
    let numbered = |word: &str| {
        word.trim_end_matches([':', '.', ')', '|'])
            .parse::<u32>()
            .is_ok()
    };
    let row = words.len() > 1
        && words
            .iter()
            .any(|word| word.starts_with("++") || numbered(word));
    !row
}
