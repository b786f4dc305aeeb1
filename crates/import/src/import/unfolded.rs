//! Lines that a mail program or a terminal broke in two are put together, where only one way of doing so gives a
//! result.
//!
//! A break is undone by its cause: the next word did not fit any more. At which width is not told, so every width is
//! tried. Where two of them give other figures, nothing is read: a wrong figure would look right.

use super::account::Accounted;
use super::margin;
use stackrace_base::printed::text::cut;
use stackrace_base::printed::{ImportError, Imported};

/// Two windows side by side leave half of a mail's 72 to 78 columns to each.
const NARROWEST: usize = 36;
/// Narrower than this a blank breaks so often that lines which end there by themselves look broken.
const NARROWEST_MAIL: usize = 60;
/// The widest mail, and the widest terminal that is tried where none of its lines is full.
const WIDEST: usize = 82;
/// Wider mails and pages, which break at blanks as well.
const WIDE: [usize; 3] = [100, 120, 132];
/// Longer texts come in files, and every width is a reading of the whole.
const LONGEST: usize = 256 * 1024;
/// Columns from one stop of a tabulator to the next.
const TAB: usize = 8;
/// Most breaks that may all stand at one column by chance.
const BY_CHANCE: usize = 3;
/// Note on results that were read so.
const NOTE: &str = "the lines of the text had been folded, and were put together";
/// Advice where nothing can be read.
const NEXT: &str = "the lines were folded; paste the output unfolded, or attach the file";
/// The same where it may have another reason.
const IF_FOLDED: &str =
    "or if its lines were folded on the way, paste it unfolded, or attach the file";

/// Way in which a line was broken in two.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Break {
    /// At a blank, which is gone.
    AtBlank,
    /// At the last column, in the middle of whatever stands there.
    AtColumn,
    /// At this last column, and a blank that stood there was lost when the text was copied.
    Copied(usize),
}

/// What a text says with its lines put together in one way.
struct Reading {
    found: Accounted,
    joined: Joined,
}

/// The lines of a text that may have been folded; `None` where a break means nothing, or it is too long.
fn foldable(text: &str) -> Option<Vec<&str>> {
    // JSON and XML may be broken wherever there is a blank.
    if text.len() > LONGEST || text.trim_start().starts_with(['{', '<']) {
        return None;
    }
    let lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    // Blanks behind every line are none of the window that folded them.
    let behind = |line: &str| line.len() - line.trim_end_matches(' ').len();
    let own = lines.clone().filter(|line| !line.trim().is_empty());
    let padding = own.map(behind).min().unwrap_or(0);
    let end = |line: &str| line.len() - padding.min(behind(line));
    Some(lines.map(|line| &line[..end(line)]).collect())
}

/// What is read of a text whose lines may have been folded: `first` is what its lines say as they stand, and `layouts`
/// are the text as it came and as it was cleaned, with the same lines. Where it was folded, its lines put together say
/// more, or what stood before each whole line does so again.
///
/// # Errors
/// The lines say nothing as they stand, or less than they did before they were folded, and there is no way to put them
/// together, or more than one.
pub(super) fn read(
    layouts: [&str; 2],
    first: Result<Accounted, ImportError>,
    reader: impl Fn(&str) -> Result<Accounted, ImportError>,
) -> Result<Accounted, ImportError> {
    let (mut found, mut tried) = (Vec::new(), Vec::new());
    let (mut folded, mut margin, mut needed) = (false, None, None);
    // Of JSON with a mark before each line no break means anything either.
    let texts: Option<Vec<Vec<&str>>> = layouts.iter().map(|layout| foldable(layout)).collect();
    for lines in texts.into_iter().flatten() {
        let begins = margin::begins(&lines);
        for (width, way) in widths(&lines) {
            let begins = begins.as_deref();
            let Some(joined) = Joined::new(&lines, (width, way), begins, &mut tried) else {
                continue;
            };
            let break_at = joined.first_break();
            if joined.margin {
                margin.get_or_insert(break_at);
            }
            match (reader(&joined.text), &first) {
                // What contradicts itself is not mended by lines elsewhere.
                (Ok(_), Err(refused))
                    if refused.contradiction && !joined.has_part(refused.line) => {}
                (Ok(whole), Ok(plain))
                    if !joined.margin && !says_more(&whole.results, &plain.results) => {}
                (Ok(whole), _) => {
                    let other = joined.other_way(&lines);
                    let other = other.and_then(|other| {
                        let found = reader(&other.text).ok()?;
                        Some(Reading {
                            found,
                            joined: other,
                        })
                    });
                    found.push(Reading {
                        found: whole,
                        joined,
                    });
                    found.extend(other);
                }
                // What was refused is understood now, and what went on in the line behind it with it.
                (Err(misread), Err(refused))
                    if joined.begin_of(misread.line) > refused.line
                        && joined.has_part(refused.line)
                        && *needed
                            .get_or_insert_with(|| is_needed(layouts[1], refused, &reader)) =>
                {
                    folded = true;
                }
                (Err(_), _) => {}
            }
        }
    }
    // What stands before each line of a text stood there before it was folded.
    found.retain(|reading| margin.is_none() || reading.joined.margin);
    let doubt = found.first().map(|reading| reading.joined.first_break());
    let doubt = doubt.or(margin);
    match (first, doubt) {
        (Err(refused), None) if folded => Err(maybe_folded(refused)),
        (Err(refused), None) => Err(refused),
        (Ok(plain), None) => Ok(plain),
        (first, Some(break_at)) => match likeliest(found) {
            Some(reading) => Ok(reading.noted()),
            None => Err(unreadable(first.err(), break_at, layouts[0])),
        },
    }
}

/// Refusal of a text that is read further with some of its lines put together: that is a sign, and no more.
fn maybe_folded(refused: ImportError) -> ImportError {
    let next = format!("{}; {IF_FOLDED}", refused.next);
    ImportError { next, ..refused }
}

/// Returns true if a text is not read any further without the line that was refused. Otherwise one that was put to it
/// may only have hidden it: that shows no fold.
fn is_needed(
    text: &str,
    refused: &ImportError,
    reader: &impl Fn(&str) -> Result<Accounted, ImportError>,
) -> bool {
    let lines = text.split('\n').enumerate();
    let lines = lines.map(|(at, line)| if at + 1 == refused.line { "" } else { line });
    let without = lines.collect::<Vec<_>>().join("\n");
    reader(&without).is_err_and(|misread| misread.line <= refused.line)
}

/// Refusal of a text whose lines were folded: where it was refused as it stands, or at the first line that was broken.
fn unreadable(refused: Option<ImportError>, break_at: usize, came: &str) -> ImportError {
    let line = came.lines().nth(break_at);
    let refused = refused.unwrap_or_else(|| {
        let line = cut(line.unwrap_or_default().trim());
        let what = format!("\"{line}\" seems to go on in the next line");
        ImportError::at(break_at, what, "")
    });
    ImportError {
        next: NEXT.to_owned(),
        ..refused
    }
}

/// A text with its lines put together in one way.
struct Joined {
    text: String,
    way: Break,
    /// For each whole line, the one where it begins, from 0.
    starts: Vec<usize>,
    /// Lines that were put to the one before them.
    joins: usize,
    /// Set if the same stands before each whole line, and did not before they were put together.
    margin: bool,
}

impl Joined {
    /// The lines put together; `None` if that changes nothing, or was tried before.
    fn new(
        lines: &[&str],
        (width, way): (usize, Break),
        begins: Option<&[bool]>,
        tried: &mut Vec<String>,
    ) -> Option<Self> {
        let (joined, starts) = joined(lines, way, |at| {
            let begins = begins.is_some_and(|begins| begins[at]);
            !begins && goes_on(lines[at - 1], lines[at], width, way)
        });
        let joins = lines.len() - joined.len();
        let text = joined.join("\n");
        if joins == 0 || tried.contains(&text) {
            return None;
        }
        tried.push(text.clone());
        // What begins none of the lines of the tool was put to the one before it.
        let is_whole = |start: &usize| begins.is_some_and(|begins| begins[*start]);
        let margin = starts
            .iter()
            .all(|start| is_whole(start) || lines[*start].trim().is_empty());
        Some(Self {
            text,
            way,
            starts,
            joins,
            margin,
        })
    }

    /// The lines put together at the same places in the other of two ways, if the places do not tell which: all of
    /// them are at one column, or one before it.
    fn other_way(&self, lines: &[&str]) -> Option<Self> {
        let is_broken = |at: &usize| !self.starts.contains(at);
        let broken = (1..lines.len()).filter(is_broken);
        let broken = broken.map(|at| columns(lines[at - 1]));
        let width = broken.clone().max()?;
        let mut doubtful = broken.map(|columns| columns + 1 >= width);
        doubtful.all(|doubtful| doubtful).then_some(())?;
        let way = match self.way {
            Break::AtBlank => Break::Copied(width),
            _ => Break::AtBlank,
        };
        let (joined, starts) = joined(lines, way, |at| is_broken(&at));
        Some(Self {
            text: joined.join("\n"),
            way,
            starts,
            ..*self
        })
    }

    /// The first line that goes on in the next one, from 0.
    fn first_break(&self) -> usize {
        let whole = self.starts.iter().enumerate();
        whole.take_while(|(at, start)| at == *start).count() - 1
    }

    /// Line where a line of this text, from 1, begins in the text as it came, from 0.
    fn begin_of(&self, line: usize) -> usize {
        let at = self.starts.get(line.saturating_sub(1));
        at.copied().unwrap_or_default()
    }

    /// Returns true if a line of the text as it came, from 1, was put together with one next to it.
    fn has_part(&self, line: usize) -> bool {
        !(self.starts.contains(&(line - 1)) && self.starts.contains(&line))
    }
}

/// Returns true if one reading has all that another one says, and more of it.
fn says_more(more: &[Imported], less: &[Imported]) -> bool {
    let (all, some) = (figures(more), figures(less));
    let mut rest = all.clone();
    let kept = some.iter().all(|figure| {
        let at = rest.iter().position(|it| it == figure);
        at.map(|at| rest.swap_remove(at)).is_some()
    });
    // Parts of one report may look like several.
    kept && (!rest.is_empty() || more.len() < less.len())
}

/// Every figure of a reading, by its name.
fn figures(results: &[Imported]) -> Vec<(&str, f64)> {
    let all = results
        .iter()
        .flat_map(|it| it.metrics.iter().zip(&it.values));
    all.filter_map(|(head, value)| Some((head.name.as_str(), value.as_ref()?.value)))
        .collect()
}

/// The one reading that is right; `None` if there is none, or that is open.
fn likeliest(mut found: Vec<Reading>) -> Option<Reading> {
    let mut at = 1;
    while at < found.len() {
        let known = found[..at].iter();
        if known
            .clone()
            .any(|known| same(&known.found.results, &found[at].found.results))
        {
            found.remove(at);
        } else {
            at += 1;
        }
    }
    if found.len() > 1 {
        // Words end at the last column by chance, and not often: the same breaks are those of a terminal.
        let way = |it: &Reading| it.joined.way;
        let of_terminal = found.iter().position(|it| way(it) == Break::AtColumn)?;
        let terminal = found.swap_remove(of_terminal);
        let by_chance =
            |it: &Reading| it.joined.starts == terminal.joined.starts && way(it) == Break::AtBlank;
        let often = terminal.joined.joins > BY_CHANCE;
        return (often && found.iter().all(by_chance)).then_some(terminal);
    }
    found.pop()
}

impl Reading {
    /// What was found, with a note, and with the lines of the text as it came.
    fn noted(self) -> Accounted {
        let mut found = self.found;
        for line in &mut found.unread {
            line.index = self.joined.begin_of(line.index + 1);
        }
        found.note(NOTE);
        found
    }
}

/// The widths at which the lines may have been folded, and the ways: none of them is longer, if it could be broken.
fn widths(lines: &[&str]) -> Vec<(usize, Break)> {
    let longest = longest(lines);
    let most = WIDEST.max(longest);
    let wide = WIDE.into_iter().filter(|width| *width > most);
    let all = (longest.max(NARROWEST)..=most).chain(wide);
    all.flat_map(|width| ways(width, longest).map(move |way| (width, way)))
        .collect()
}

/// The ways in which lines may have been folded at a width.
fn ways(width: usize, longest: usize) -> impl Iterator<Item = Break> {
    let mail = (NARROWEST_MAIL..=WIDEST).contains(&width) || WIDE.contains(&width);
    [
        (Break::AtBlank, mail),
        (Break::AtColumn, width == longest),
        (Break::Copied(width), width == longest),
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
    // Rows of one table are as long as each other, and each of them is whole.
    if line.trim_end().ends_with('|') && next.trim_start().starts_with('|') {
        return false;
    }
    let word = next.split(' ').next().unwrap_or_default();
    match way {
        // What follows a blank that is gone begins at the margin.
        Break::AtBlank => !word.is_empty() && columns(line.trim_end()) + 1 + columns(word) > width,
        Break::AtColumn => columns(line) == width,
        Break::Copied(_) => (width - 1..=width).contains(&columns(line)),
    }
}

/// The lines put together with those that go on in the next one, and where each begins, from 0.
fn joined(
    lines: &[&str],
    way: Break,
    goes_on: impl Fn(usize) -> bool,
) -> (Vec<String>, Vec<usize>) {
    let (mut all, mut starts): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate() {
        match all.last_mut() {
            Some(whole) if goes_on(at) => {
                let lost = match way {
                    // Mails that say so leave the blank at the end.
                    Break::AtBlank => !whole.ends_with(' '),
                    Break::AtColumn => false,
                    Break::Copied(width) => columns(lines[at - 1]) < width,
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
    }
    (all, starts)
}

/// Returns true if two readings give the same in everything but their notes.
fn same(one: &[Imported], other: &[Imported]) -> bool {
    // A command may be folded as well, and a part of it says less.
    let bare = |it: &Imported| Imported {
        command: None,
        notes: Vec::new(),
        against: Vec::new(),
        ..it.clone()
    };
    one.iter().map(bare).eq(other.iter().map(bare))
}
