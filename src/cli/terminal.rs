//! What is printed.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

use super::variable::variable;
use stackrace_show::report::{is_no_text, wrap};

/// Columns of a terminal; 80 where it is none or does not say. `COLUMNS` overrides it.
pub(super) fn columns(to: &impl AsFd) -> usize {
    known_columns(to).unwrap_or(80)
}

/// None: it is no terminal, or does not say.
fn known_columns(to: &impl AsFd) -> Option<usize> {
    let named = variable("COLUMNS").and_then(|value| value.to_str()?.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(to).ok()?;
        Some(usize::from(size.ws_col))
    };
    let known = |columns: &usize| *columns > 0;
    // COLUMNS first: it is how a user, or a test, says a width.
    named.filter(known).or_else(|| asked().filter(known))
}

/// Writes text for a person to standard output: on a terminal no line is wider than it is.
pub(super) fn say(text: &str) {
    match known_columns(&std::io::stdout()) {
        Some(columns) => print(&broken(text, columns)),
        None => print(text),
    }
}

/// The text with its longer lines broken at blanks; what follows begins below the text of the line:
/// behind its indentation, its mark (`- `) or its first column.
fn broken(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        // A line of a file that is pointed at stays whole: what is below it points into it.
        if bare.chars().count() <= columns || is_excerpt(bare) {
            out.push_str(line);
            continue;
        }
        // Columns of a table and marks of a list stay visible when their text goes on in the next
        // line.
        let hang = hanging(bare, columns);
        let (begin, rest) = bare.split_at(hang);
        let parts = wrap(rest, columns.saturating_sub(hang).max(1));
        for (at, part) in parts.iter().enumerate() {
            let begin = match at {
                0 => begin.to_owned(),
                _ => " ".repeat(hang),
            };
            out.push_str(&format!("{begin}{part}\n"));
        }
    }
    out
}

/// `3 | block-size = "4 KiB"`, and what is marked below it.
fn is_excerpt(line: &str) -> bool {
    let number = line
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    number.trim_start().starts_with(['|', '│'])
}

/// Bytes before the text of a line: all of them ASCII, so they are its columns too.
fn hanging(line: &str, columns: usize) -> usize {
    let indented = line.len() - line.trim_start_matches(' ').len();
    let gap = line[indented..].find("  ").map(|gap| {
        let after = &line[indented + gap..];
        indented + gap + after.len() - after.trim_start_matches(' ').len()
    });
    let marked = line[indented..].starts_with("- ").then_some(indented + 2);
    let hang = marked.or(gap).unwrap_or(indented);
    match line.as_bytes().get(..hang) {
        Some(begin) if begin.is_ascii() && hang <= columns / 2 => hang,
        _ => 0,
    }
}

/// The colours that this program sets: bold, faint, the eight colours, and the end of each.
const COLOURS: std::ops::RangeInclusive<u8> = 30..=37;

/// A text that commands no terminal, whatever names of files, machines or configurations stand in
/// it: control characters are shown as signs. Line breaks, tabs and our own colours stay.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_no_text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let bytes = colour(rest).unwrap_or(letter.len_utf8());
        match bytes > letter.len_utf8() || !is_no_text(letter) {
            true => shown.push_str(&rest[..bytes]),
            false => shown.push(sign(letter)),
        }
        rest = &rest[bytes..];
    }
    Cow::Owned(shown)
}

/// How a control character is shown.
fn sign(letter: char) -> char {
    match u32::from(letter) {
        // The pictures of control characters stand in their order.
        code @ ..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// Bytes of a colour of ours at the beginning of a text; none: there is none.
fn colour(text: &str) -> Option<usize> {
    let (code, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    // Reading a number takes signs and zeros that a terminal may take otherwise.
    let number: u8 = code
        .parse()
        .ok()
        .filter(|number: &u8| number.to_string() == code)?;
    // Plain, bold, faint and eight colours are ours. Others hide text or move the cursor.
    (number <= 2 || COLOURS.contains(&number)).then_some("\u{1b}[m".len() + code.len())
}

/// Writes to standard output; a reader that has gone away ends the program quietly.
pub(super) fn print(text: &str) {
    print_bytes(harmless(text).as_bytes());
}

/// Writes to standard output, and goes on where its reader has gone.
pub(super) fn print_on(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out
        .write_all(harmless(text).as_bytes())
        .and_then(|()| out.flush());
}

/// Writes bytes to standard output as they are: the content of a file, for a program to read.
pub(super) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    // `stackrace show layers | head` is no error.
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Writes to standard error.
pub(super) fn error(text: &str) {
    // Where standard error is closed, there is no other place to report that.
    let text = harmless(text);
    let mut to = std::io::stderr().lock();
    let _ = match known_columns(&to) {
        Some(columns) => to.write_all(broken(&text, columns).as_bytes()),
        None => to.write_all(text.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_commands_no_terminal() {
        for (text, shown) in [
            ("a\n\tä ☃", "a\n\tä ☃"),
            (
                "\u{1b}[1mbold\u{1b}[0m \u{1b}[32m",
                "\u{1b}[1mbold\u{1b}[0m \u{1b}[32m",
            ),
            // The title of the window, what hides a text, the cursor, a colour of its own.
            ("\u{1b}]0;owned\u{7}", "␛]0;owned␇"),
            ("\u{1b}[8mhidden", "␛[8mhidden"),
            ("\u{1b}[2J\u{1b}[H", "␛[2J␛[H"),
            ("\u{1b}[01m\u{1b}[+1m\u{1b}[m", "␛[01m␛[+1m␛[m"),
            ("a\rb\u{8}\u{7f}", "a␍b␈␡"),
            ("\u{9b}2J\u{202e}", "\u{fffd}2J\u{fffd}"),
        ] {
            assert_eq!(harmless(text), shown, "{text:?}");
        }
    }

    const TEXT: &str = "error: the directory cannot be looked at by an ordinary user\n  \
        next: name another one, or ask the administrator for the right to read it\n\
        first column    what it means, in words that need more than a line of it\n  \
        - an item of a list that is longer than the terminal is wide by far\n\nshort\n";

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_lost() {
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for columns in [20, 40, 60, 80, 120] {
            let shown = broken(TEXT, columns);
            for line in shown.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
            assert_eq!(words(&shown), words(TEXT), "{columns}");
        }
        assert_eq!(broken(TEXT, 200), TEXT);
    }

    #[test]
    fn a_broken_line_goes_on_below_its_own_text() {
        let shown = broken(TEXT, 40);
        assert!(shown.contains("\n                that need"), "{shown}");
        assert!(
            shown.contains("  - an item of a list that is longer\n    than"),
            "{shown}"
        );
    }

    #[test]
    fn a_line_of_a_file_that_is_pointed_at_stays_whole() {
        let text = "3 | block-size = \"4 KiB\" # and a comment that is long\n  | ^^^^\n";
        assert_eq!(broken(text, 20), text);
    }
}
