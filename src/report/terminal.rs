//! The answer on a terminal: the verdict first, at most 80 columns, readable without colour.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, presets::NOTHING,
};

use super::content::{self, Table};
use super::effects;
use super::figure::plain;
use super::sheet::{Part, Sheet};
use super::{Options, Report};
use crate::record::Record;
use crate::verdict::{State, Verdict};

/// Columns that are used at most.
pub(super) const WIDTH_MAX: usize = 80;
/// Fewer columns are not laid out for: names would be broken at every letter.
const WIDTH_MIN: usize = 50;

/// The form for terminals.
pub(super) struct Terminal;

impl Report for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn summary(&self) -> &'static str {
        "plain text of at most 80 columns"
    }

    fn ending(&self) -> &'static str {
        "txt"
    }

    fn render(&self, record: &Record, verdict: &Verdict, options: &Options) -> Vec<u8> {
        let mut page = Page {
            text: String::new(),
            width: options.width.clamp(WIDTH_MIN, WIDTH_MAX),
            colour: options.colour,
        };
        let state = match verdict.state {
            State::Decided => "1;32",
            State::Undecided | State::TooFew | State::Unpaired => "1;33",
        };
        page.labelled("VERDICT", state, &verdict.sentence);
        for detail in &verdict.details {
            page.labelled("", "", detail);
        }
        page.labelled("", "", &content::facts(record, verdict).join(" · "));
        if let Some(table) = content::overall(verdict) {
            page.table(&table);
        }
        for (at, head) in record.head.workloads.iter().enumerate() {
            page.table(&content::workload(verdict, at, head));
        }
        for formats in content::video_tables(verdict) {
            page.table(&formats);
        }
        for table in content::contrast_tables(verdict) {
            page.table(&table);
        }
        if let Some(table) = effects::short(verdict) {
            page.table(&table);
        }
        if let Some(beside) = &options.beside {
            for table in content::beside(beside, verdict) {
                page.table(&table);
            }
            page.heading(&format!("What is not the same in {}", beside.study));
            for note in content::beside_notes(beside) {
                page.item(&note);
            }
        }
        let notes = content::notes(record, verdict);
        if !notes.is_empty() {
            page.heading("Notes");
            for note in &notes {
                page.item(note);
            }
        }
        if !options.next.is_empty() {
            page.text.push('\n');
            page.labelled("next", "1", &options.next);
        }
        page.text.into_bytes()
    }
}

/// A page that is no report of a run.
pub(super) fn sheet(sheet: &Sheet, colour: bool) -> String {
    let mut page = Page {
        text: String::new(),
        width: WIDTH_MAX,
        colour,
    };
    for line in wrap(&plain(&sheet.title), page.width) {
        let line = page.painted(&line, "1");
        page.line(&line);
    }
    for paragraph in &sheet.lead {
        page.text.push('\n');
        for line in wrap(&plain(paragraph), page.width) {
            page.line(&line);
        }
    }
    page.text.push('\n');
    for (name, value) in &sheet.facts {
        page.fact(name, value);
    }
    for part in &sheet.parts {
        match part {
            Part::Table(table) => page.table(table),
            Part::List(title, items) => {
                page.heading(title);
                items.iter().for_each(|item| page.item(item));
            }
        }
    }
    page.text
}

struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn painted(&self, text: &str, code: &str) -> String {
        if self.colour && !code.is_empty() && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A paragraph with a word in the margin.
    fn labelled(&mut self, label: &str, code: &str, text: &str) {
        const MARGIN: usize = 9;
        for (at, line) in wrap(&plain(text), self.width - MARGIN).iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let space = " ".repeat(MARGIN - label.len());
            let label = self.painted(label, code);
            self.line(&format!("{label}{space}{line}"));
        }
    }

    /// A named fact, its name in a margin wide enough for any.
    fn fact(&mut self, name: &str, value: &str) {
        const MARGIN: usize = 14;
        for (at, line) in wrap(&plain(value), self.width - MARGIN).iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            self.line(&format!("{name:<MARGIN$}{line}"));
        }
    }

    fn item(&mut self, text: &str) {
        for (at, line) in wrap(&plain(text), self.width - 4).iter().enumerate() {
            let mark = if at == 0 { "  - " } else { "    " };
            self.line(&format!("{mark}{line}"));
        }
    }

    fn heading(&mut self, text: &str) {
        self.text.push('\n');
        for line in wrap(&plain(text), self.width) {
            let line = self.painted(&line, "1");
            self.line(&line);
        }
    }

    fn table(&mut self, table: &Table) {
        self.heading(&table.title);
        if !table.note.is_empty() {
            for line in wrap(&plain(&table.note), self.width - 2) {
                self.line(&format!("  {line}"));
            }
        }
        let mut grid = Grid::new();
        grid.load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(self.width - 1).unwrap_or(u16::MAX))
            .set_header(&table.head);
        for row in &table.rows {
            grid.add_row(row.cells.iter().map(|cell| glued(&plain(cell))));
        }
        for (at, column) in grid.column_iter_mut().enumerate() {
            if at > 0 && !table.text.contains(&at) {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        for line in grid.lines().collect::<Vec<_>>() {
            self.line(&format!(" {}", line.replace(GLUE, " ")));
        }
    }
}

/// A space at which no line is broken.
const GLUE: char = '\u{a0}';

/// A figure and its unit stay on one line: `8 to 16 %`, `41 s`.
fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        out.push_str(word);
        let figure = word.ends_with(|c: char| c.is_ascii_digit());
        let unit = |next: &&str| next.chars().take_while(|c| c.is_alphabetic()).count() <= 3;
        match words.peek() {
            Some(next) if figure && unit(next) => out.push(GLUE),
            Some(_) => out.push(' '),
            None => {}
        }
    }
    out
}

/// Breaks a paragraph into lines; a word longer than a line is broken too. Columns are counted as
/// terminals do (East Asian characters take two).
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
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
