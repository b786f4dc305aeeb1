//! What a terminal is like, and how text is broken to its width.

use super::styled::columns_of;
use comfy_table::{ContentArrangement, Table as Grid, presets::NOTHING};

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

/// Breaks a paragraph into lines at blanks alone: a word longer than a line stays whole.
pub fn wrap_whole(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in glued(text).split(' ') {
        let word = word.replace(GLUE, " ");
        let more = columns_of(&line) + 1 + columns_of(&word);
        if !line.trim().is_empty() && more > width {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// Breaks a paragraph into lines; a word longer than a line is broken too. Columns are counted as
/// terminals do (East Asian characters take two).
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    // The tables' library breaks lines, too, and knows wide and combining letters.
    let mut grid = Grid::new();
    grid.load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .add_row([glued(text)]);
    if let Some(column) = grid.column_mut(0) {
        column.set_padding((0, 0));
    }
    grid.lines()
        .map(|line| line.trim_end().replace(GLUE, " "))
        .collect()
}
