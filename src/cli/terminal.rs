//! What is printed.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

use super::variable::variable;

/// Columns of a terminal; 80 where it is none or does not say. `COLUMNS` overrides it.
pub(super) fn columns(to: &impl AsFd) -> usize {
    let named = variable("COLUMNS").and_then(|value| value.to_str()?.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(to).ok()?;
        Some(usize::from(size.ws_col))
    };
    let known = |columns: &usize| *columns > 0;
    named
        .filter(known)
        .or_else(|| asked().filter(known))
        .unwrap_or(80)
}

/// The colours that this program sets: bold, faint, the eight colours, and the end of each.
const COLOURS: std::ops::RangeInclusive<u8> = 30..=37;

/// A text that commands no terminal, whatever names of files, machines or configurations stand in
/// it: control characters are shown as signs. Line breaks, tabs and our own colours stay.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(commands) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let bytes = colour(rest).unwrap_or(letter.len_utf8());
        match bytes > letter.len_utf8() || !commands(letter) {
            true => shown.push_str(&rest[..bytes]),
            false => shown.push(sign(letter)),
        }
        rest = &rest[bytes..];
    }
    Cow::Owned(shown)
}

/// Whether a terminal takes a character for a command, or reorders what stands around it.
fn commands(letter: char) -> bool {
    let reorders = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || letter.is_control() && !matches!(letter, '\n' | '\t')
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
    let _ = std::io::stderr()
        .lock()
        .write_all(harmless(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::harmless;

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
}
