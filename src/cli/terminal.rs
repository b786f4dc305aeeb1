//! The one place that prints.
//!
//! Text for people goes through [`Styled`], which takes out what would command a terminal and alone makes
//! colours. Data for programs stay as they are, except on a terminal. What cannot be written is
//! remembered, so that a command whose output was lost never ends well.

use stackrace_base::unit::InWords;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use indicatif::MultiProgress;
use parking_lot::Mutex;

use super::args::Colour;
use super::failure::Failure;
use super::variable::variable;
use stackrace_base::unit::signs;
use stackrace_show::report::{Styled, columns_of, harmless, wrap_whole};

/// Columns before what goes on below a line whose first column is too wide to stand beside it.
const BELOW: usize = 4;

/// View that is drawn on standard error at the moment.
static VIEW: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// Why standard output could not be written; unset: it could.
static LOST: OnceLock<String> = OnceLock::new();

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
    // What it is wrapped by is what is seen, so signs take the place of what is no text first.
    let text = harmless(text);
    match known_columns(&std::io::stdout()) {
        Some(columns) => print(&broken(&text, columns)),
        None => print(&text),
    }
}

/// The text with its longer lines broken at blanks; what follows begins below the text of the line:
/// behind its indentation, its mark (`- `) or its first column.
fn broken(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        // A line of a file that is pointed at stays whole: what is below it points into it.
        if columns_of(bare) <= columns || is_excerpt(bare) {
            out.push_str(line);
            continue;
        }
        // Columns of a table and marks of a list stay visible when their text goes on in the next
        // line.
        let (hang, below) = hanging(bare, columns);
        let (begin, rest) = bare.split_at(hang);
        let parts = wrap_whole(rest, columns.saturating_sub(below).max(1));
        for (at, part) in parts.iter().enumerate() {
            let wanted = if at == 0 { hang.min(below) } else { below };
            // A path that is broken cannot be copied: it gives up its indentation first.
            let indent = wanted.min(columns.saturating_sub(columns_of(part)));
            let begin = match at {
                0 if indent == hang => begin.to_owned(),
                // An empty line would end a command that goes on here.
                0 if begin.trim().is_empty() => " ".repeat(indent),
                0 => format!("{}\n{}", begin.trim_end(), " ".repeat(indent)),
                _ => " ".repeat(indent),
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

/// Bytes before the text of a line, all of them ASCII, so that they are its columns too, and the columns before what
/// goes on below it.
fn hanging(line: &str, columns: usize) -> (usize, usize) {
    let indented = line.len() - line.trim_start_matches(' ').len();
    let gap = line[indented..].find("  ").map(|gap| {
        let after = &line[indented + gap..];
        indented + gap + after.len() - after.trim_start_matches(' ').len()
    });
    // The second is that of the advice on a study.
    let mut marks = ["- ", "= help: "].into_iter();
    let mark = marks.find(|mark| line[indented..].starts_with(mark));
    let hang = mark.map(|mark| indented + mark.len()).or(gap);
    let hang = hang.unwrap_or(indented);
    match line.as_bytes().get(..hang) {
        Some(begin) if begin.is_ascii() && hang <= columns / 2 => (hang, hang),
        // A name that is too wide has a line of its own.
        Some(begin)
            if begin.is_ascii()
                && gap.is_some()
                && begin.trim_ascii_end().len() <= columns / 2 + BELOW =>
        {
            (hang, indented + BELOW)
        }
        // Behind a column that is no name, what goes on is still seen to.
        Some(begin) if begin.is_ascii() && gap.is_some() => (indented, indented + BELOW),
        _ => (0, 0),
    }
}

/// Returns true if colours go to this stream.
pub(super) fn colours(asked: Colour, to: &impl IsTerminal) -> bool {
    wanted(asked, to.is_terminal(), &variable)
}

/// Decision of the command line, then of the environment, then by the kind of stream.
fn wanted(asked: Colour, terminal: bool, named: &dyn Fn(&str) -> Option<OsString>) -> bool {
    // An empty variable is none (no-color.org).
    let named = |name: &str| named(name).filter(|value| !value.is_empty());
    let off = |name: &str| named(name).is_some_and(|value| value == "0");
    let forced = |name: &str| named(name).is_some() && !off(name);
    match asked {
        Colour::Always => true,
        Colour::Never => false,
        // A wish for plain text comes before one for colours.
        Colour::Auto if named("NO_COLOR").is_some() => false,
        Colour::Auto if forced("FORCE_COLOR") || forced("CLICOLOR_FORCE") => true,
        Colour::Auto if off("FORCE_COLOR") || off("CLICOLOR") => false,
        Colour::Auto => terminal && !is_dumb(named("TERM").as_deref()),
    }
}

/// Returns true if a terminal of that name knows nothing but text.
fn is_dumb(name: Option<&std::ffi::OsStr>) -> bool {
    name.is_none_or(|name| name == "dumb")
}

/// From now on text on standard error stands above what this draws; none: nothing is drawn any more.
pub(super) fn set_view(view: Option<&MultiProgress>) {
    *VIEW.lock() = view.cloned();
}

/// Returns true if a live view can be drawn on standard error: a terminal whose cursor moves.
pub(super) fn draws() -> bool {
    std::io::stderr().is_terminal() && !is_dumb(variable("TERM").as_deref())
}

/// Writes a text to standard output as it is laid out.
pub(super) fn print(text: &str) {
    write_out(harmless(text).as_bytes());
}

/// The same, with its styles if colours are wanted.
pub(super) fn print_styled(text: &Styled, colour: bool) {
    write_out(text.render(colour).as_bytes());
}

/// Writes help of ours. Nothing from outside stands in it, so that its colours are ours.
pub(super) fn print_help(help: &clap::builder::StyledStr, colour: bool) {
    let plain = help.to_string();
    let columns = known_columns(&std::io::stdout());
    let fits = |line: &str| columns.is_none_or(|columns| columns_of(line) <= columns);
    let mut text = String::new();
    for (line, coloured) in plain.lines().zip(help.ansi().to_string().lines()) {
        // The parser's own wrapping leaves usage lines and long names of options as they are.
        match (fits(line), colour) {
            (true, true) => text.push_str(coloured),
            (true, false) => text.push_str(line),
            (false, _) => text.push_str(broken(line, columns.unwrap_or(80)).trim_end()),
        }
        text.push('\n');
    }
    write_out(text.as_bytes());
}

/// Writes to standard output, and goes on where its reader has gone.
pub(super) fn print_on(text: &str) {
    // A reader that has gone is all that is let pass; a full disk is remembered.
    let _ = StandardOutput.write_all(harmless(text).as_bytes());
}

/// Writes data for a program: as they are, unless a person looks at them on a terminal.
pub(super) fn print_data(bytes: &[u8]) {
    match std::io::stdout().is_terminal() {
        true => print(&String::from_utf8_lossy(bytes)),
        false => write_out(bytes),
    }
}

/// A reader that has gone away ends the program quietly: `stackrace show layers | head` is no error.
fn write_out(bytes: &[u8]) {
    let written = StandardOutput.write_all(bytes);
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Standard output; what it could not write is remembered for the end of the program.
pub(super) struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut out = std::io::stdout().lock();
        // Flushed each time: an error that comes with the last bytes is one of this text.
        let written = out.write_all(bytes).and_then(|()| out.flush());
        match written {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                if error.kind() != ErrorKind::BrokenPipe {
                    LOST.get_or_init(|| error.in_words());
                }
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The failure of a command whose output was lost; none: all of it was written.
pub(super) fn lost() -> Option<Failure> {
    let why = LOST.get()?;
    Some(
        Failure::internal(format!("cannot write to standard output: {why}"))
            .next("free space where the output goes, or send it elsewhere, and repeat the command"),
    )
}

/// The text with every name that was typed on one line. A name may hold line breaks, and what stands behind one
/// would read as a line of ours.
fn on_their_lines(text: &str, typed: impl Iterator<Item = OsString>) -> String {
    let mut text = text.to_owned();
    for word in typed {
        // A path is shown whole, without the name or option typed before it, or with a directory in front.
        for part in word.to_string_lossy().split(['/', '=', ':', ',']) {
            if part.contains(char::is_control) && part.contains(|letter: char| !letter.is_control())
            {
                text = text.replace(part, &signs(part));
            }
        }
    }
    text
}

/// Writes to standard error.
pub(super) fn error(text: &str) {
    let text = on_their_lines(text, std::env::args_os());
    let text = harmless(&text);
    let write = || {
        let mut to = std::io::stderr().lock();
        // Where standard error is closed, there is no other place to report that.
        let _ = match known_columns(&to) {
            Some(columns) => to.write_all(broken(&text, columns).as_bytes()),
            None => to.write_all(text.as_bytes()),
        };
    };
    // A live view that is drawn again would wipe out what was written into it.
    let view = VIEW.lock().clone();
    match view {
        Some(view) => view.suspend(write),
        None => write(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_where_they_are_wanted() {
        const TERMINAL: (&str, &str) = ("TERM", "xterm-256color");
        for (asked, terminal, environment, expected) in [
            (Colour::Auto, true, vec![TERMINAL], true),
            (Colour::Auto, false, vec![TERMINAL], false),
            (Colour::Auto, true, vec![TERMINAL, ("NO_COLOR", "1")], false),
            (Colour::Auto, true, vec![TERMINAL, ("NO_COLOR", "")], true),
            (Colour::Auto, true, vec![TERMINAL, ("CLICOLOR", "0")], false),
            (Colour::Auto, false, vec![("CLICOLOR_FORCE", "1")], true),
            (Colour::Auto, false, vec![("CLICOLOR_FORCE", "0")], false),
            (Colour::Auto, false, vec![("FORCE_COLOR", "1")], true),
            (
                Colour::Auto,
                true,
                vec![TERMINAL, ("FORCE_COLOR", "0")],
                false,
            ),
            (
                Colour::Auto,
                false,
                vec![("FORCE_COLOR", "1"), ("NO_COLOR", "1")],
                false,
            ),
            (Colour::Auto, true, vec![("TERM", "dumb")], false),
            (
                Colour::Auto,
                true,
                vec![("TERM", "dumb"), ("FORCE_COLOR", "1")],
                true,
            ),
            (Colour::Auto, true, vec![], false),
            (Colour::Always, false, vec![("NO_COLOR", "1")], true),
            (
                Colour::Never,
                true,
                vec![TERMINAL, ("FORCE_COLOR", "1")],
                false,
            ),
        ] {
            let named = |name: &str| {
                let found = environment.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let said = wanted(asked, terminal, &named);
            assert_eq!(said, expected, "{asked:?} {terminal} {environment:?}");
        }
    }

    #[test]
    fn a_path_is_never_broken() {
        let path = "/var/lib/a-path-that-is-long/and/has/no/blank";
        let shown = broken(&format!("record  {path}\n"), 46);
        assert_eq!(shown, format!("record\n {path}\n"));
        let shown = broken(&format!("record  {path} and more\n"), 20);
        assert_eq!(shown, format!("record\n{path}\n        and more\n"));
        // A command that is pasted ends at an empty line.
        let shown = broken(&format!("  mkdir \\\n      {path}\n"), 48);
        assert_eq!(shown, format!("  mkdir \\\n   {path}\n"));
    }

    #[test]
    fn lines_are_broken_by_what_is_seen() {
        let text = "日本語 ファイル システム の 名前 です\n";
        for line in broken(text, 12).lines() {
            assert!(columns_of(line) <= 12, "{line}");
        }
        assert_eq!(
            broken("e\u{301}e\u{301} e\u{301}\n", 4),
            "e\u{301}e\u{301} e\u{301}\n"
        );
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
    fn a_name_that_is_too_wide_has_a_line_of_its_own() {
        let row = "  a-setting-of-a-layer  What it is, in more words than fit (bytes; required)\n";
        let shown = broken(row, 40);
        assert_eq!(
            shown,
            "  a-setting-of-a-layer\n      What it is, in more words than fit\n      (bytes; required)\n"
        );
    }

    #[test]
    fn a_line_of_a_file_that_is_pointed_at_stays_whole() {
        let text = "3 | block-size = \"4 KiB\" # and a comment that is long\n  | ^^^^\n";
        assert_eq!(broken(text, 20), text);
    }
}
