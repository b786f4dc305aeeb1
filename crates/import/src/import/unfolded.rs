//! Lines that a mail program or a terminal broke in two are put together, where only one way of doing so gives a
//! result.
//!
//! A break is undone by its cause: the next word did not fit any more. At which width is not told, so every width is
//! tried. Where two of them give other figures, nothing is read: a wrong figure would look right.

use stackrace_base::printed::{ImportError, Imported};

/// Mail programs fold at 72 to 78 columns; two windows side by side leave half of that to each.
const NARROWEST: usize = 36;
/// The widest terminal that breaks lines, and the widest mail.
const WIDEST: usize = 82;
/// Longer texts come in files, and every width is a reading of the whole.
const LONGEST: usize = 256 * 1024;
/// Note on results that were read so.
const NOTE: &str = "the lines of the text had been folded, and were put together";
/// Advice where nothing can be read.
const NEXT: &str = "the lines were folded; paste the output unfolded, or attach the file";

/// Way in which a line was broken in two.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Break {
    /// At a blank, which is gone.
    AtBlank,
    /// At the last column, in the middle of whatever stands there.
    AtColumn,
}

/// Reads a text that could not be read, with its folded lines put together; `None` if no line of it was folded
/// where the refusal is, so that this stands.
///
/// # Errors
/// Its lines were folded, and there is no reading, or more than one.
pub(super) fn read(
    text: &str,
    refused: &ImportError,
    reader: impl Fn(&str) -> Result<Vec<Imported>, ImportError>,
) -> Option<Result<Vec<Imported>, ImportError>> {
    // JSON and XML may be broken wherever there is a blank.
    if text.len() > LONGEST || text.trim_start().starts_with(['{', '<']) {
        return None;
    }
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    let mut found: Vec<Vec<Imported>> = Vec::new();
    let mut tried: Vec<String> = Vec::new();
    let mut folded = false;
    for width in widths(&lines) {
        for way in [Break::AtBlank, Break::AtColumn] {
            let (joined, starts) = joined(&lines, width, way);
            if joined.len() == lines.len() {
                continue;
            }
            let joined = joined.join("\n");
            if tried.contains(&joined) {
                continue;
            }
            match reader(&joined) {
                Ok(results) if !found.iter().any(|known| same(known, &results)) => {
                    found.push(results);
                }
                Ok(_) => {}
                // What was refused is understood now, and what went on in the line behind it with it.
                Err(misread) => {
                    let at = starts.get(misread.line.saturating_sub(1));
                    folded |= at.is_some_and(|at| *at > refused.line);
                }
            }
            tried.push(joined);
        }
    }
    match found.len() {
        1 => found.pop().map(|mut results| {
            results
                .iter_mut()
                .for_each(|it| it.notes.push(NOTE.to_owned()));
            Ok(results)
        }),
        0 if !folded => None,
        _ => Some(Err(ImportError {
            next: NEXT.to_owned(),
            ..refused.clone()
        })),
    }
}

/// The widths at which the lines may have been folded: none of them is longer, if it could be broken.
fn widths(lines: &[&str]) -> std::ops::RangeInclusive<usize> {
    let breakable = lines.iter().filter(|line| line.trim().contains(' '));
    let longest = breakable.map(|line| columns(line)).max().unwrap_or(0);
    longest.max(NARROWEST)..=WIDEST
}

fn columns(line: &str) -> usize {
    line.trim_end().chars().count()
}

/// Returns true if the second of two lines may go on the first one, which was broken at this width.
fn goes_on(line: &str, next: &str, width: usize, way: Break) -> bool {
    // What follows a break begins at the margin.
    let Some(word) = next.split(' ').next().filter(|word| !word.is_empty()) else {
        return false;
    };
    match way {
        Break::AtBlank => {
            !line.trim().is_empty() && columns(line) + 1 + word.chars().count() > width
        }
        Break::AtColumn => line.chars().count() == width,
    }
}

/// The lines with those that go on in the next one put together, and where each begins, from 0.
fn joined(lines: &[&str], width: usize, way: Break) -> (Vec<String>, Vec<usize>) {
    let (mut all, mut starts): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut last = "";
    for (at, line) in lines.iter().enumerate() {
        match all.last_mut() {
            Some(whole) if goes_on(last, line, width, way) => {
                // Mails that say so leave the blank at the end.
                if way == Break::AtBlank && !whole.ends_with(' ') {
                    whole.push(' ');
                }
                whole.push_str(line);
            }
            _ => {
                all.push((*line).to_owned());
                starts.push(at);
            }
        }
        last = line;
    }
    (all, starts)
}

/// Returns true if two readings give the same: what was done, and every figure of it.
fn same(one: &[Imported], other: &[Imported]) -> bool {
    let told = |all: &[Imported]| -> Vec<_> {
        let of = |it: &Imported| {
            let values = it.values.iter().map(|it| it.map(|it| it.value));
            (
                it.workload.clone(),
                it.metrics.clone(),
                values.collect::<Vec<_>>(),
            )
        };
        all.iter().map(of).collect()
    };
    told(one) == told(other)
}
