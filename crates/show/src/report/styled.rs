//! Text for a terminal whose parts are set off by styles.
//!
//! Text enters through [`Styled::add`] alone, which shows as signs what would command a terminal.
//! Colours are made by [`Styled::render`] alone. So foreign text never passes for a colour of ours, and
//! a colour of ours is never shown as text.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::figure::harmless;

/// The configurations' colours on a terminal (of its 256), as the pages have them (`--s0` to `--s7`):
/// to be told apart by colour-blind readers, and readable on black and on white.
const COLOURS: [u8; 8] = [32, 166, 36, 169, 136, 74, 245, 98];

/// The colour of a configuration, by index, among the 256 of a terminal.
fn colour_of(configuration: usize) -> u8 {
    COLOURS[configuration % COLOURS.len()]
}

/// A way in which a part of a text is set off. A word or a mark says the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// No style at all.
    #[default]
    Plain,
    /// Bold: headings, and what runs now.
    Strong,
    /// Faint: what no longer takes part.
    Faint,
    /// A question that is decided.
    Decided,
    /// A question that is open, with a hint at its answer.
    Hinted,
    /// The colour of a configuration, by index.
    Configuration(usize),
}

impl Style {
    /// Codes that begin and end it on a terminal.
    fn codes(self) -> (Cow<'static, str>, &'static str) {
        const END: &str = "\u{1b}[0m";
        match self {
            Self::Plain => (Cow::Borrowed(""), ""),
            Self::Strong => (Cow::Borrowed("\u{1b}[1m"), END),
            Self::Faint => (Cow::Borrowed("\u{1b}[2m"), END),
            Self::Decided => (Cow::Borrowed("\u{1b}[1;32m"), END),
            Self::Hinted => (Cow::Borrowed("\u{1b}[1;36m"), END),
            Self::Configuration(of) => {
                let code = format!("\u{1b}[38;5;{}m", colour_of(of));
                (Cow::Owned(code), END)
            }
        }
    }
}

/// Text that commands no terminal, with the styles of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Styled {
    spans: Vec<(Style, String)>,
}

impl Styled {
    /// Adds a part. What is no text in it is shown as signs; line breaks and tabs stay.
    pub fn add(&mut self, style: Style, text: &str) {
        let text = harmless(text);
        match self.spans.last_mut() {
            Some((last, before)) if *last == style => before.push_str(&text),
            _ => self.spans.push((style, text.into_owned())),
        }
    }

    /// Adds all of another text.
    pub fn append(&mut self, other: Self) {
        self.spans.extend(other.spans);
    }

    /// The same without styles: for files, and to be measured.
    pub fn plain(&self) -> String {
        self.render(false)
    }

    /// The bytes for a terminal, with or without colours.
    pub fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.spans {
            let (begin, end) = match colour {
                true => style.codes(),
                false => Style::Plain.codes(),
            };
            out.push_str(&begin);
            out.push_str(text);
            out.push_str(end);
        }
        out
    }

    /// Lines that it takes on a screen, as it is laid out.
    pub fn lines(&self) -> usize {
        self.plain().lines().count()
    }

    /// Text before the first empty line.
    pub fn first_paragraph(mut self) -> Self {
        let plain = self.plain();
        let mut left = plain.find("\n\n").map_or(plain.len(), |end| end + 1);
        for (_, text) in &mut self.spans {
            text.truncate(left);
            left -= text.len();
        }
        self.spans.retain(|(_, text)| !text.is_empty());
        self
    }
}

impl From<&str> for Styled {
    fn from(text: &str) -> Self {
        let mut styled = Self::default();
        styled.add(Style::Plain, text);
        styled
    }
}

impl From<&String> for Styled {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

/// Columns that a text takes on a terminal: East Asian letters take two, combining marks none.
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// The text as far as it fits so many columns; `…` stands for the rest.
pub fn cut(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let kept = fitting(text, columns.saturating_sub(1));
    format!("{}…", &text[..kept])
}

/// Bytes of the longest beginning of a text that fits so many columns; a letter of two columns is not halved.
pub(super) fn fitting(text: &str, columns: usize) -> usize {
    let mut left = columns;
    let fits = |(_, letter): &(usize, char)| {
        let wide = letter.width().unwrap_or(0);
        let rest = left.checked_sub(wide);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let kept = text.char_indices().take_while(fits);
    kept.last().map_or(0, |(at, letter)| at + letter.len_utf8())
}

/// The same of a sentence, behind a whole word where one fits.
pub fn cut_at_blank(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let kept = &text[..fitting(text, columns.saturating_sub(2))];
    let words = match text[kept.len()..].starts_with(' ') {
        true => kept,
        false => kept.rsplit_once(' ').map_or("", |(words, _)| words),
    };
    match words.trim_end() {
        "" => cut(text, columns),
        words => format!("{words} …"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_commands_no_terminal_and_passes_for_no_colour() {
        for (text, shown) in [
            ("a\n\tä ☃", "a\n\tä ☃"),
            ("\u{1b}[1mbold\u{1b}[0m", "␛[1mbold␛[0m"),
            ("\u{1b}[1;32mVERDICT", "␛[1;32mVERDICT"),
            // The title of the window, what hides a text, the cursor.
            ("\u{1b}]0;owned\u{7}", "␛]0;owned␇"),
            ("\u{1b}[8mhidden", "␛[8mhidden"),
            ("\u{1b}[2J\u{1b}[H", "␛[2J␛[H"),
            ("a\rb\u{8}\u{7f}", "a␍b␈␡"),
            // C1, directions, letters of no width, tags.
            ("\u{9b}2J\u{202e}x\u{2066}", "\u{fffd}2J\u{fffd}x\u{fffd}"),
            (
                "x\u{200b}fs\u{200d}\u{feff}\u{2060}",
                "x\u{fffd}fs\u{fffd}\u{fffd}\u{fffd}",
            ),
            (
                "\u{200f}\u{61c}\u{ad}\u{e0041}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("one\u{2028}two", "one\u{fffd}two"),
        ] {
            for colour in [false, true] {
                assert_eq!(Styled::from(text).render(colour), shown, "{text:?}");
            }
        }
    }

    #[test]
    fn our_colours_are_colours_and_only_where_they_are_wanted() {
        let mut text = Styled::from("VERDICT is plain here; ");
        text.add(Style::Decided, "VERDICT");
        text.add(Style::Configuration(0), " \u{1b}[31mname");
        assert_eq!(
            text.render(true),
            "VERDICT is plain here; \u{1b}[1;32mVERDICT\u{1b}[0m\u{1b}[38;5;32m ␛[31mname\u{1b}[0m"
        );
        assert_eq!(
            text.render(false),
            "VERDICT is plain here; VERDICT ␛[31mname"
        );
    }

    #[test]
    fn a_text_is_cut_by_what_is_seen() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("e\u{301}te\u{301}", 3), "e\u{301}te\u{301}");
        assert_eq!(cut("ext4", 3), "ex…");
        for (columns, shown) in [
            (14, "random write …"),
            (13, "random …"),
            (18, "random write · 3 s"),
            (5, "rand…"),
        ] {
            assert_eq!(cut_at_blank("random write · 3 s", columns), shown);
        }
    }

    #[test]
    fn the_first_paragraph_keeps_its_styles() {
        let mut text = Styled::default();
        text.add(Style::Strong, "passed");
        text.add(Style::Plain, "\nit is\n\nmore");
        text.add(Style::Strong, "more");
        assert_eq!(
            text.first_paragraph().render(true),
            "\u{1b}[1mpassed\u{1b}[0m\nit is\n"
        );
    }
}
