//! What a terminal is like, and how text is broken to its width.

use super::styled::{columns_of, fitting};

/// Columns that are used at most: longer lines are hard to read.
const WIDTH_MAX: usize = 80;
/// Columns that a table may have where it needs more than a line of words.
const TABLE_MAX: usize = 120;
/// Fewer columns are not laid out for: names would be broken at every letter.
const WIDTH_MIN: usize = 36;

/// Properties of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Its columns.
    pub width: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self { width: WIDTH_MAX }
    }
}

impl Screen {
    /// Columns that text is laid out for: 36 to 80.
    pub fn columns(self) -> usize {
        self.width.clamp(WIDTH_MIN, WIDTH_MAX)
    }

    /// Columns for a table that does not fit into [`Self::columns`]: 36 to 120.
    pub(super) fn table_columns(self) -> usize {
        self.width.clamp(WIDTH_MIN, TABLE_MAX)
    }
}

/// A space at which no line is broken.
pub(super) const GLUE: char = '\u{a0}';

/// A figure and its unit stay on one line: `8 to 16 %`, `41 s`.
pub(super) fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        out.push_str(word);
        let figure = word.ends_with(|c: char| c.is_ascii_digit());
        // Units have at most three letters before anything else (`MiB`, `op/s`); `%` has none. What stands in
        // brackets is none.
        let unit = |next: &&str| {
            let letters = next.chars().take_while(|c| c.is_alphabetic()).count();
            letters <= 3 && !next.starts_with('(')
        };
        match words.peek() {
            Some(next) if figure && unit(next) => out.push(GLUE),
            Some(_) => out.push(' '),
            None => {}
        }
    }
    out
}

/// Breaks a text into lines at blanks alone: a word longer than a line stays whole.
pub fn wrap_whole(text: &str, width: usize) -> Vec<String> {
    folded(text, width, |_| true)
}

/// A space within a command that a reader is to type.
const IN_COMMAND: char = '\u{202f}';

/// Returns true if a quoted command is this program's, which a reader is to type.
pub(super) fn is_typed(quoted: &str) -> bool {
    matches!(quoted.split(' ').next(), Some("stackrace" | "sudo"))
}

/// A text whose quoted commands of this program are one word each.
fn with_whole_commands(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| {
        // Every second part stands between two marks.
        match at % 2 == 1 && is_typed(part) {
            true => part.replace(' ', &IN_COMMAND.to_string()),
            false => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Breaks a text into lines at blanks. A path longer than a line stays whole, and so does a quoted command of this
/// program, so that it can be copied; any other word is broken. Columns are counted as terminals do (East Asian characters take two).
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let kept = |word: &str| word.contains(['/', IN_COMMAND]);
    let mut lines = folded(&with_whole_commands(text), width, kept);
    for line in &mut lines {
        *line = line.replace(IN_COMMAND, " ");
    }
    lines
}

fn folded(text: &str, width: usize, stays_whole: fn(&str) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let (mut line, glued) = (None::<String>, glued(paragraph));
        // What does not fit a line together need not stay together.
        let words = glued
            .split(' ')
            .flat_map(|word| match columns_of(word) > width {
                true => word.split(GLUE).collect(),
                false => vec![word],
            });
        for word in words {
            let word = word.replace(GLUE, " ");
            let mut rest = word.as_str();
            match line.take() {
                Some(begun)
                    if begun.trim().is_empty()
                        || columns_of(&begun) + 1 + columns_of(rest) <= width =>
                {
                    line = Some(format!("{begun} {rest}"));
                    continue;
                }
                Some(full) => lines.push(full),
                None => {}
            }
            while columns_of(rest) > width && !stays_whole(rest) {
                // One letter at least, however wide it is: each line takes some.
                let letter = rest.chars().next().map_or(0, char::len_utf8);
                let (begins, goes_on) = rest.split_at(fitting(rest, width).max(letter));
                lines.push(begins.to_owned());
                rest = goes_on;
            }
            line = Some(rest.to_owned()).filter(|rest| !rest.is_empty() || word.is_empty());
        }
        lines.extend(line);
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_whole_and_other_words_fit_the_line() {
        let path = "/srv/a-directory-with-a-long-name/and-one-below-it";
        let lines = wrap(&format!("the data lie in {path} and stay"), 20);
        assert_eq!(lines, ["the data lie in", path, "and stay"]);
        let lines = wrap(&format!("a {} b", "x".repeat(45)), 20);
        let long = "x".repeat(20);
        assert_eq!(lines, ["a", &long, &long, "xxxxx b"]);
        assert_eq!(wrap("日本語日本語", 5), ["日本", "語日", "本語"]);
        assert_eq!(wrap("日", 1), ["日"]);
    }

    #[test]
    fn a_command_to_type_has_a_line_of_its_own() {
        let command = "`stackrace resume 2026-11-29T23-00-a --store /srv/s --until-decided`";
        let lines = wrap(&format!("not yet: {command} would take 8 s"), 40);
        assert_eq!(lines, ["not yet:", command, "would take 8 s"]);
        // One that failed is told, not typed.
        let lines = wrap("`mkfs -t ext4 -b 4096 disk` failed", 20);
        assert_eq!(lines, ["`mkfs -t ext4 -b", "4096 disk` failed"]);
    }

    #[test]
    fn lines_that_were_broken_already_stay_broken() {
        assert_eq!(wrap("\nit took 8 s", 10), ["", "it took", "8 s"]);
        assert_eq!(wrap("", 10), [""]);
    }
}
