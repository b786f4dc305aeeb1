//! A table for a terminal: columns side by side, if their words fit.

use std::collections::HashSet;

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets::NOTHING,
};

use super::content::TextTable;
use super::figure::{harmless, plain};
use super::screen::{GLUE, glued, wrap};
use super::styled::{Style, columns_of};

/// Stands between two columns while a table is laid out: no text that is shown holds it.
const EDGE: char = '\u{1}';
/// Fills a line between two rows while a table is laid out.
const NEXT_ROW: char = '\u{2}';
/// Longer words in a table may be broken: names of files have no end.
const WORD_MAX: usize = 40;
/// Longer cells of a row that is a list may be broken at blanks.
const CELL_MAX: usize = 24;

/// A line of a table.
pub(super) struct GridLine {
    /// The style of its name.
    pub(super) style: Style,
    /// Content of the first column.
    pub(super) name: String,
    /// Content of the other columns.
    pub(super) rest: String,
}

/// A table of so many columns of a terminal, a blank in front of each line not counted; `None` if it is too narrow for
/// the words of the table.
pub(super) fn lines(table: &TextTable, width: usize) -> Option<Vec<GridLine>> {
    let least: Vec<usize> = (0..table.head.len())
        .map(|at| least_width(table, at, is_figure(table, at, width)))
        .collect();
    if least.iter().sum::<usize>() > width - 1 {
        return None;
    }
    let even = laid_out(table, width, None);
    // The library shares the room evenly, and may break a word of one column beside room in another.
    match words_are_whole(table, &even) {
        true => Some(even),
        false => Some(laid_out(table, width, Some(&least))),
    }
}

/// The cells of a row of a table that is too wide for its words, each behind the name of its column: lines
/// of at most `width` columns, empty cells left out.
pub fn stacked<'a>(cells: impl Iterator<Item = (&'a str, &'a str)>, width: usize) -> Vec<String> {
    let named = cells
        .filter(|(_, cell)| !cell.is_empty())
        .map(|(head, cell)| {
            let text = plain(&format!("{head} {cell}"));
            // What is short stays on one line.
            match columns_of(&text) <= CELL_MAX {
                true => text.replace(' ', &GLUE.to_string()),
                false => text,
            }
        });
    wrap(&named.collect::<Vec<_>>().join(" · "), width)
}

/// Returns true if a column is of figures, none of which is ever broken over two lines.
fn is_figure(table: &TextTable, at: usize, width: usize) -> bool {
    let count = table.counts_fit(width) && table.head_is_widest(at);
    at > 0 && (count || !table.text.contains(&at))
}

/// Columns that a column of a table takes at least, with a blank on either side: that of its figures, or
/// that of its longest word.
fn least_width(table: &TextTable, at: usize, figure: bool) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
    let texts = cells.chain(table.head.get(at));
    let widths = texts.map(|text| {
        let text = glued(&plain(text));
        match figure {
            true => columns_of(&text),
            false => {
                let words = text.split(' ').map(columns_of);
                words.max().unwrap_or(0).min(WORD_MAX)
            }
        }
    });
    widths.max().unwrap_or(0) + 2
}

/// Returns true if every word of a table that was laid out is one of its texts.
fn words_are_whole(table: &TextTable, lines: &[GridLine]) -> bool {
    let shown: Vec<String> = table
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .chain(&table.head)
        .map(|text| harmless(&plain(text)).into_owned())
        .collect();
    let words: HashSet<&str> = shown
        .iter()
        .flat_map(|text| text.split_whitespace())
        .collect();
    let mut laid_out = lines.iter().flat_map(|line| {
        line.name
            .split_whitespace()
            .chain(line.rest.split_whitespace())
    });
    laid_out.all(|word| words.contains(word))
}

/// The lines; with the least width of each column of text, if one is given.
fn laid_out(table: &TextTable, width: usize, least: Option<&[usize]>) -> Vec<GridLine> {
    let mut grid = Grid::new();
    // One column less: each line gets a space in front. The edges are taken out again.
    let room = width - 1 + table.head.len().saturating_sub(1);
    grid.load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(room).unwrap_or(u16::MAX))
        .set_header(table.head.iter().map(|head| harmless(head).into_owned()));
    let style = grid.style_mut();
    style.header_lines.junction = Some(EDGE);
    style.content_lines.junction = Some(EDGE);
    style.header_separator.fill = Some(NEXT_ROW);
    style.row_separator.fill = Some(NEXT_ROW);
    for row in &table.rows {
        let cells = row.cells.iter();
        grid.add_row(cells.map(|cell| glued(&harmless(&plain(cell)))));
    }
    for (at, column) in grid.column_iter_mut().enumerate() {
        if is_figure(table, at, width) {
            column.set_cell_alignment(CellAlignment::Right);
            // A figure is never broken over two lines; columns of text give way.
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else if at == 0 && table.head_is_widest(at) {
            // Giving way here would break the word above.
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else if let Some(least) = least {
            let least = u16::try_from(least[at]).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
    // The name of a configuration has its colour in every line of its row.
    let (mut rows, mut style) = (table.rows.iter(), Style::Plain);
    let mut lines = Vec::new();
    for line in grid.lines() {
        if line.starts_with(NEXT_ROW) {
            let of = rows.next().and_then(|row| row.configuration);
            style = of.map_or(Style::Plain, Style::Configuration);
            continue;
        }
        let line = line.replace(GLUE, " ");
        let (name, rest) = line.split_once(EDGE).unwrap_or((&line, ""));
        lines.push(GridLine {
            style,
            name: name.to_owned(),
            rest: rest.replace(EDGE, ""),
        });
    }
    lines
}
