//! Names of files and others as they are shown: on their line, commanding no terminal, hiding nothing.

use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::path::Path;

/// Characters that are not seen and change how the others are read: those that reverse a direction (a
/// name could be read as another one), and those of no width (two names could look the same). Signs that
/// choose the form of the letter before them (U+FE00 to U+FE0F) are part of ordinary text.
fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true for a character that no text of several lines may hold: one that commands a terminal, which tools
/// print too (the backspaces of a progress line), or one that is not seen.
pub fn is_no_text(letter: char) -> bool {
    is_unseen(letter) || letter.is_control() && !matches!(letter, '\n' | '\t')
}

/// Returns true for a character that no name on one line may hold.
pub fn is_no_name(letter: char) -> bool {
    is_unseen(letter) || letter.is_control()
}

/// The sign that a character which is no text is shown as.
pub fn sign(letter: char) -> char {
    match u32::from(letter) {
        // The pictures of control characters stand in their order.
        code @ ..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// A name in which line breaks, tabs and whatever is no text are signs, one for each.
pub fn signs(name: &str) -> String {
    ShownName(OsStr::new(name)).to_string()
}

/// A path or a word of a command in a text for people.
pub trait ShownPath {
    /// The path as it is shown, what is no name in it as signs: a line break in a name would begin a line that looks
    /// like one of ours. For commands and files the path itself is taken.
    fn shown(&self) -> ShownName<'_>;
}

impl ShownPath for Path {
    fn shown(&self) -> ShownName<'_> {
        ShownName(self.as_os_str())
    }
}

impl ShownPath for OsStr {
    fn shown(&self) -> ShownName<'_> {
        ShownName(self)
    }
}

/// A name that is shown with signs for what is no name in it.
#[derive(Debug, Clone, Copy)]
pub struct ShownName<'a>(&'a OsStr);

impl fmt::Display for ShownName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.to_string_lossy().chars() {
            f.write_char(match is_no_name(letter) {
                true => sign(letter),
                false => letter,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_on_its_line_and_hides_nothing() {
        let path = Path::new("/srv/a\nVERDICT\t\u{1b}[1m\u{202e}fdp\u{200b}\u{7f} it's ä");
        let shown = path.shown().to_string();
        assert_eq!(shown, "/srv/a␊VERDICT␉␛[1m\u{fffd}fdp\u{fffd}␡ it's ä");
        assert_eq!(Path::new("/srv/a b").shown().to_string(), "/srv/a b");
        assert_eq!(OsStr::new("a\rb").shown().to_string(), "a␍b");
    }
}
