//! The reading of a text by the importers that recognise it.

use std::borrow::Cow;

use super::account::{self, Accounted};
use super::{doubts, pasted, shell, unfolded};
use stackrace_base::printed::{ImportError, ImportSource, Imported, Importer, is_telling, text};

/// Every result in a text, by all of some importers that recognise it (`time dd …` prints for both), or by
/// the one that is named. What a mail or a page did to the text is undone first.
///
/// # Errors
/// Nothing recognises the text, the named importer is unknown, one cannot read it, or a part of it
/// would be passed over.
pub fn read(
    importers: &[Importer],
    text: &str,
    tool: Option<&str>,
) -> Result<Vec<Imported>, ImportError> {
    let decoded = pasted::decoded(text);
    let (text, starts) = match &decoded {
        Some((decoded, starts)) => (decoded.as_str(), starts.as_slice()),
        None => (text, [].as_slice()),
    };
    let plain = pasted::plain(text);
    let plain = pasted::unlisted(&plain).map_or(plain, Cow::Owned);
    let (once, copies) = pasted::once(&plain).unwrap_or((&plain, 1));
    let clean = pasted::cleaned(text);
    let single = if copies > 1 { once } else { &clean };
    // The line that the user sees.
    let seen = |index: usize| starts.get(index).map_or(index, |at| *at);
    let read_one = |came, plain| {
        read_pasted(importers, came, plain, tool).map_err(|misread| ImportError {
            line: seen(misread.line - 1) + 1,
            ..misread
        })
    };
    let mut found = read_one(single, once)?;
    // A clock of few digits shows the same of several runs.
    let coarse = copies > 1 && !is_telling(once, &found.results);
    if coarse {
        found = read_one(&clean, &plain)?;
    }
    for line in &mut found.unread {
        line.index = seen(line.index);
    }
    doubts::note(once, &mut found.results);
    let counted = match coarse {
        true => "It has so few digits that several runs may print them, and each counts",
        false => "It counts once",
    };
    let copies =
        (copies > 1).then(|| format!("the text has it {copies} times, word for word. {counted}"));
    for note in account::note(&found.unread).into_iter().chain(copies) {
        found.note(&note);
    }
    Ok(found.results)
}

/// Reads a text, and tries what a page or a mail may have done to its lines: `plain` without what stands around them,
/// `came` with it.
fn read_pasted(
    importers: &[Importer],
    came: &str,
    plain: &str,
    tool: Option<&str>,
) -> Result<Accounted, ImportError> {
    // What stands before each line, as its number does, stands before whole ones only.
    let whole = |text: &str| read_plain(importers, &pasted::plain(text), tool);
    // A page that was pasted whole: what is indented in it may be the output.
    let first = read_plain(importers, plain, tool).or_else(|refused| {
        let moved = pasted::paragraphs(plain).ok_or_else(|| refused.clone())?;
        read_plain(importers, &moved, tool).map_err(|_| refused)
    });
    unfolded::read([came, plain], first, whole)
}

fn read_plain(
    importers: &[Importer],
    text: &str,
    tool: Option<&str>,
) -> Result<Accounted, ImportError> {
    let readers: Vec<&Importer> = match tool {
        // A tool that was named reads the text even where it would not recognise it: its refusal
        // names the line.
        Some(tool) => importers
            .iter()
            .filter(|importer| importer.name == tool)
            .collect(),
        None => {
            let all = importers.iter();
            all.filter(|importer| (importer.recognises)(text)).collect()
        }
    };
    let mut results = Vec::new();
    for importer in &readers {
        // What is missing at the end may be told of the line behind the last one.
        let lines = text.split('\n').count();
        let found = (importer.read)(text).map_err(|mut misread| {
            misread.line = misread.line.clamp(1, lines);
            let line = text.split('\n').nth(misread.line - 1);
            if line.is_some_and(has_decimal_comma) && !misread.next.contains("LC_ALL") {
                misread.next.push_str(LANGUAGE);
            }
            misread
        })?;
        // The text was taken for one of this tool: to go on without a result would hide that it was
        // cut off.
        if found.is_empty() {
            let what = format!("this text has no result of {}", importer.name);
            return Err(ImportError::at(
                0,
                what,
                format!("give it {}", importer.summary),
            ));
        }
        let mut found = found;
        shell::tell_apart(importer, text, &mut found);
        results.extend(found);
    }
    // A tool that is named is read alone.
    let unread = match tool {
        Some(_) => Vec::new(),
        None => {
            let names: Vec<&str> = readers.iter().map(|importer| importer.name).collect();
            account::unread(text, &names).map_err(|mut unread| {
                if is_foreign(text) {
                    unread.next.push_str(LANGUAGE);
                }
                unread
            })?
        }
    };
    if results.is_empty() {
        return Err(unknown(importers, text));
    }
    Ok(Accounted { results, unread })
}

/// Advice for a text that may be in another language.
const LANGUAGE: &str = "; if it is in another language, run the tool with LC_ALL=C";

/// Explains why a text that no importer recognises is none of theirs.
fn unknown(importers: &[Importer], text: &str) -> ImportError {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let Some(first) = first else {
        return ImportError::at(0, "the text is empty", "give it what the tool printed");
    };
    if text.contains('\0') {
        let what = "this is binary data, not text that a tool printed";
        return ImportError::at(0, what, "give it what the tool printed on the terminal");
    }
    let begins = first.trim().to_lowercase();
    let named = |importer: &&Importer| begins.split([' ', '-', ':']).next() == Some(importer.name);
    if let Some(importer) = importers.iter().find(named) {
        let what = format!(
            "\"{}\" begins a text of {} that has no result which is read",
            text::cut(first),
            importer.name
        );
        return ImportError::at(0, what, format!("give it {}", importer.summary));
    }
    let names: Vec<&str> = importers.iter().map(|importer| importer.name).collect();
    let mut next = format!(
        "give it the unchanged output of one of: {}",
        names.join(", ")
    );
    if is_foreign(text) {
        next.push_str(LANGUAGE);
    }
    ImportError::at(
        0,
        format!(
            "no known tool prints a text that begins with \"{}\"",
            text::cut(first)
        ),
        next,
    )
}

/// Returns true if a text has letters or decimal commas as English has none.
fn is_foreign(text: &str) -> bool {
    let comma =
        |part: &[u8]| part[0].is_ascii_digit() && part[1] == b',' && part[2].is_ascii_digit();
    text.contains(|c: char| c.is_alphabetic() && !c.is_ascii() && c != 'µ')
        || text.as_bytes().windows(3).any(comma)
}

/// Returns true if a line has a word such as `4,29`, which is neither a list of numbers nor groups
/// of three.
fn has_decimal_comma(line: &str) -> bool {
    let apart = |c: char| !(c.is_ascii_digit() || c == ',' || c == '.');
    let mut words = line.split(apart).map(|word| word.trim_matches([',', '.']));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    words.any(|word| match word.split_once(',') {
        Some((whole, part)) => digits(whole) && digits(part) && (part.len() != 3 || whole == "0"),
        None => false,
    })
}

/// Reads a text as that of a file of this name, by the importer that is named, or by all of
/// some that recognise it.
///
/// # Errors
/// It is not understood: see [`read`].
pub fn source(
    importers: &[Importer],
    name: Option<String>,
    file: &str,
    text: String,
    tool: Option<&str>,
) -> Result<ImportSource, ImportError> {
    let results = read(importers, &text, tool)?;
    Ok(ImportSource::of(name, file, text, results))
}
