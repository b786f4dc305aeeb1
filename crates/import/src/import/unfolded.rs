//! Lines that a mail program or a terminal broke in two are put together, where only one way of doing so gives a
//! result.
//!
//! A break is undone by its cause: the next word did not fit any more. At which width is not told, so every width is
//! tried. Where two of them give other figures, nothing is read: a wrong figure would look right.

use stackrace_base::printed::{ImportError, Imported};

/// Two windows side by side leave half of a mail's 72 to 78 columns to each.
const NARROWEST: usize = 36;
/// Narrower than this a blank breaks so often that lines which end there by themselves look broken.
const NARROWEST_MAIL: usize = 60;
/// The widest mail, and the widest terminal that is tried where none of its lines is full.
const WIDEST: usize = 82;
/// Longer texts come in files, and every width is a reading of the whole.
const LONGEST: usize = 256 * 1024;
/// Columns from one stop of a tabulator to the next.
const TAB: usize = 8;
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
    /// At the last column, and a blank that stood there was lost when the text was copied.
    Copied,
}

/// What a text says with its lines put together in one way.
struct Reading {
    results: Vec<Imported>,
    way: Break,
    /// For each whole line, the one where it begins, from 0.
    starts: Vec<usize>,
    /// Lines that were put to the one before them.
    joins: usize,
}

/// The lines of a text that may have been folded; `None` where a break means nothing, or it is too long.
fn foldable(text: &str) -> Option<Vec<&str>> {
    // JSON and XML may be broken wherever there is a blank.
    if text.len() > LONGEST || text.trim_start().starts_with(['{', '<']) {
        return None;
    }
    let lines = text.split('\n');
    Some(lines.map(|line| line.trim_end_matches('\r')).collect())
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
    let lines = foldable(text)?;
    let (mut found, mut tried, mut folded) = (Vec::new(), Vec::new(), false);
    for (width, way) in widths(&lines) {
        match read_joined(&lines, width, way, &mut tried, &reader) {
            // What contradicts itself is not mended by lines elsewhere.
            Some((starts, Ok(_))) if refused.contradiction && !is_joined(&starts, refused.line) => {
            }
            Some((_, Ok(reading))) => found.push(reading),
            // What was refused is understood now, and what went on in the line behind it with it.
            Some((starts, Err(misread))) => {
                let at = starts.get(misread.line.saturating_sub(1));
                folded |= at.is_some_and(|at| *at > refused.line);
            }
            None => {}
        }
    }
    let none = found.is_empty();
    match likeliest(found) {
        Some(reading) => Some(Ok(noted(reading.results))),
        None if none && !folded => None,
        None => Some(Err(ImportError {
            next: NEXT.to_owned(),
            ..refused.clone()
        })),
    }
}

/// The text with its lines put together in one way, and what is read of it with the starts of its lines; `None` if
/// that changes nothing, or was tried before.
fn read_joined(
    lines: &[&str],
    width: usize,
    way: Break,
    tried: &mut Vec<String>,
    reader: impl Fn(&str) -> Result<Vec<Imported>, ImportError>,
) -> Option<(Vec<usize>, Result<Reading, ImportError>)> {
    let (joined, starts) = joined(lines, width, way);
    let joins = lines.len() - joined.len();
    let joined = joined.join("\n");
    if joins == 0 || tried.contains(&joined) {
        return None;
    }
    let results = reader(&joined);
    tried.push(joined);
    let reading = results.map(|results| Reading {
        results,
        way,
        starts: starts.clone(),
        joins,
    });
    Some((starts, reading))
}

/// Returns true if a line, from 1, was put together with one next to it.
fn is_joined(starts: &[usize], line: usize) -> bool {
    !(starts.contains(&(line - 1)) && starts.contains(&line))
}

/// The one reading that is right; `None` if there is none, or that is open.
fn likeliest(mut found: Vec<Reading>) -> Option<Reading> {
    let mut at = 1;
    while at < found.len() {
        let known = found[..at].iter();
        if known
            .clone()
            .any(|known| same(&known.results, &found[at].results))
        {
            found.remove(at);
        } else {
            at += 1;
        }
    }
    if found.len() > 1 {
        // Words end at the last column by chance, and not twice: the same breaks are those of a terminal.
        let of_terminal = found.iter().position(|it| it.way == Break::AtColumn)?;
        let terminal = found.swap_remove(of_terminal);
        let by_chance = |it: &Reading| it.starts == terminal.starts && it.way == Break::AtBlank;
        return (terminal.joins > 1 && found.iter().all(by_chance)).then_some(terminal);
    }
    found.pop()
}

fn noted(mut results: Vec<Imported>) -> Vec<Imported> {
    results
        .iter_mut()
        .for_each(|it| it.notes.push(NOTE.to_owned()));
    results
}

/// The widths at which the lines may have been folded, and the ways: none of them is longer, if it could be broken.
fn widths(lines: &[&str]) -> Vec<(usize, Break)> {
    let longest = longest(lines);
    let most = WIDEST.max(longest);
    let all = (longest.max(NARROWEST)..=most)
        .flat_map(|width| ways(width, longest).map(move |way| (width, way)));
    all.collect()
}

/// The ways in which lines may have been folded at a width.
fn ways(width: usize, longest: usize) -> impl Iterator<Item = Break> {
    let mail = (NARROWEST_MAIL..=WIDEST).contains(&width);
    [
        (Break::AtBlank, mail),
        (Break::AtColumn, width == longest),
        (Break::Copied, width == longest),
    ]
    .into_iter()
    .filter_map(|(way, may_be)| may_be.then_some(way))
}

/// Columns of the longest line that could be broken.
fn longest(lines: &[&str]) -> usize {
    let breakable = lines.iter().filter(|line| line.trim().contains(' '));
    let all = breakable.map(|line| columns(line.trim_end()));
    all.max().unwrap_or(0)
}

fn columns(line: &str) -> usize {
    line.chars().fold(0, |at, letter| match letter {
        '\t' => at - at % TAB + TAB,
        _ => at + 1,
    })
}

/// Returns true if the second of two lines may go on the first one, which was broken at this width.
fn goes_on(line: &str, next: &str, width: usize, way: Break) -> bool {
    if line.trim().is_empty() || next.trim().is_empty() {
        return false;
    }
    let word = next.split(' ').next().unwrap_or_default();
    match way {
        // What follows a blank that is gone begins at the margin.
        Break::AtBlank => !word.is_empty() && columns(line.trim_end()) + 1 + columns(word) > width,
        Break::AtColumn => columns(line) == width,
        Break::Copied => (width - 1..=width).contains(&columns(line)),
    }
}

/// The lines with those that go on in the next one put together, and where each begins, from 0.
fn joined(lines: &[&str], width: usize, way: Break) -> (Vec<String>, Vec<usize>) {
    let (mut all, mut starts): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut last = "";
    for (at, line) in lines.iter().enumerate() {
        match all.last_mut() {
            Some(whole) if goes_on(last, line, width, way) => {
                let lost = match way {
                    // Mails that say so leave the blank at the end.
                    Break::AtBlank => !whole.ends_with(' '),
                    Break::AtColumn => false,
                    Break::Copied => columns(last) < width,
                };
                if lost {
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
                it.settings.clone(),
                it.metrics.clone(),
                values.collect::<Vec<_>>(),
            )
        };
        all.iter().map(of).collect()
    };
    told(one) == told(other)
}
