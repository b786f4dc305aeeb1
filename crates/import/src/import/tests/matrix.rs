//! Every output in every way in which people paste it, its lines folded at the widths of mails, pages and terminals:
//! read as it was, or refused with a line and what to do.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Columns of mails, pages and terminals.
const WIDTHS: [usize; 8] = [40, 60, 72, 76, 80, 100, 120, 132];
/// Columns from one stop of a tabulator to the next.
const TAB: usize = 8;

/// What is done to the whole text.
type Change = fn(&str) -> String;
/// What breaks its lines.
type Fold = fn(&str, usize) -> String;

const FOLDS: [(&str, Fold); 4] = [
    ("mail", folded),
    ("flowed mail", flowed),
    ("terminal", wrapped),
    ("copied from a terminal", |text, width| {
        trimmed(&wrapped(text, width))
    }),
];

/// Ways in which a text comes, before its lines are folded or behind that.
const WAYS: [(&str, Change); 11] = [
    ("as it is", str::to_owned),
    ("quoted", |text| each(text, |_, line| format!("> {line}"))),
    ("numbered", |text| {
        each(text, |at, line| format!("{:4}: {line}", at + 1))
    }),
    ("cat -n", |text| {
        each(text, |at, line| format!("{:6}\t{line}", at + 1))
    }),
    ("indented", |text| {
        each(text, |_, line| format!("    {line}"))
    }),
    ("blanks at the end", |text| {
        each(text, |_, line| format!("{line}   "))
    }),
    ("of Windows", |text| text.replace('\n', "\r\n")),
    ("other blanks", |text| text.replace(' ', "\u{a0}")),
    ("a fence", |text| format!("```text\n{text}```\n")),
    ("prompts", |text| format!("$ ./run.sh\n{text}$ \n")),
    ("colours", |text| {
        each(text, |_, line| format!("\u{1b}[1;32m{line}\u{1b}[0m"))
    }),
];

fn each(text: &str, change: impl Fn(usize, &str) -> String) -> String {
    let lines = text.lines().enumerate();
    lines.map(|(at, line)| change(at, line) + "\n").collect()
}

/// A text as a mail program folds it, at blanks.
pub(super) fn folded(text: &str, width: usize) -> String {
    broken(text, width, "\n")
}

/// A text as a mail program folds it that leaves a blank where a line goes on.
fn flowed(text: &str, width: usize) -> String {
    broken(text, width, " \n")
}

fn broken(text: &str, width: usize, end: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > width {
            let indented = rest.iter().take_while(|c| **c == ' ').count();
            let blank = |at: &usize| rest[*at] == ' ';
            let at = (indented + 1..=width).rev().find(blank);
            let Some(at) = at.or_else(|| (width..rest.len()).find(blank)) else {
                break;
            };
            all.push_str(rest[..at].iter().collect::<String>().trim_end());
            all.push_str(end);
            let next = rest[at..].iter().take_while(|c| **c == ' ').count();
            rest.drain(..at + next);
        }
        all.extend(rest);
        all.push('\n');
    }
    all
}

/// A text as a terminal breaks it: colours take no column.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut all = String::new();
    for line in text.lines() {
        let (mut column, mut in_colour) = (0, false);
        for letter in line.chars() {
            in_colour |= letter == '\u{1b}';
            if in_colour {
                all.push(letter);
                in_colour = !letter.is_ascii_alphabetic();
                continue;
            }
            // It shows blanks up to the next stop, and these are copied.
            let (shown, columns) = match letter {
                '\t' => (' ', TAB - column % TAB),
                letter => (letter, 1),
            };
            for _ in 0..columns {
                if column == width {
                    all.push('\n');
                    column = 0;
                }
                all.push(shown);
                column += 1;
            }
        }
        all.push('\n');
    }
    all
}

/// Lines that end in blanks lose them where a terminal's text is copied.
pub(super) fn trimmed(text: &str) -> String {
    each(text, |_, line| line.trim_end().to_owned())
}

/// What counts of a result: everything but its notes.
fn told(results: &[Imported]) -> Vec<Imported> {
    let bare = |it: &Imported| Imported {
        command: None,
        notes: Vec::new(),
        against: Vec::new(),
        ..it.clone()
    };
    results.iter().map(bare).collect()
}

/// A text that is tried, with what is read of it.
struct Whole {
    name: String,
    text: String,
    results: Vec<Imported>,
}

/// Every golden text that is read.
fn whole() -> Vec<Whole> {
    let all = goldens().into_iter().flat_map(|(folder, files)| {
        files
            .into_iter()
            .map(move |(name, text)| (format!("{folder}/{name}"), text))
    });
    let read = all.filter_map(|(name, text)| {
        let results = told(&read(&text, None).ok()?);
        Some(Whole {
            name,
            text,
            results,
        })
    });
    read.collect()
}

/// Every way in which a text is pasted, by its name, each text once.
fn pasted(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut seen = HashSet::from([text.to_owned()]);
    let mut add = |way: String, pasted: String| {
        if seen.insert(pasted.clone()) {
            all.push((way, pasted));
        }
    };
    for (way, change) in WAYS {
        add(way.to_owned(), change(text));
        for width in WIDTHS {
            for (fold, broken) in FOLDS {
                add(
                    format!("{way}, then {fold} at {width}"),
                    broken(&change(text), width),
                );
                add(
                    format!("{fold} at {width}, then {way}"),
                    change(&broken(text, width)),
                );
            }
        }
    }
    all
}

/// Counts of what became of the pasted texts.
#[derive(Default)]
struct Counts {
    same: AtomicUsize,
    refused: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Counts {
    fn count(&self, whole: &Whole, way: &str, pasted: &str) {
        let wrong = match read(pasted, None) {
            Ok(found) if told(&found) == whole.results => {
                self.same.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Ok(found) => format!("{:?}\ninstead of {:?}", told(&found), whole.results),
            Err(why) => {
                let lines = pasted.split('\n').count();
                if (1..=lines).contains(&why.line) && !why.next.is_empty() {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                format!("no line, or nothing to do: {why}")
            }
        };
        let mut all = self.wrong.lock().unwrap();
        all.push(format!("{}, {way}: {wrong}", whole.name));
    }
}

/// Tries one of so many pasted texts, and returns how many of them were read as they were, and how many refused.
fn check(one_of: usize) -> (usize, usize) {
    let counts = Counts::default();
    let (texts, next) = (whole(), AtomicUsize::new(0));
    let work = || {
        while let Some(whole) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Other ways of each text.
            let first = whole.text.len() % one_of;
            let all = pasted(&whole.text);
            for (way, pasted) in all.iter().skip(first).step_by(one_of) {
                counts.count(whole, way, pasted);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = counts.wrong.into_inner().unwrap();
    let (same, refused) = (counts.same.into_inner(), counts.refused.into_inner());
    let (count, texts) = (wrong.len(), texts.len());
    println!("{texts} texts: {same} read as they were, {refused} refused, {count} wrong");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    (same, refused)
}

#[test]
fn what_is_pasted_is_read_as_it_was_or_refused() {
    let (same, refused) = check(50);
    // What is refused has tables whose columns are gone, or several readings.
    assert!(same > refused, "{same} read, {refused} refused");
}

/// Minutes: `cargo test -p stackrace-import every_way -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn what_is_pasted_in_every_way_and_width_is_read_as_it_was_or_refused() {
    check(1);
}
