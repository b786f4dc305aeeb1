//! The answer on a terminal: the verdict first, at most 80 columns, readable without colour.

use comfy_table::{
    Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Grid,
    presets::NOTHING,
};

use super::audited;
use super::clients;
use super::content::{self, TextTable};
use super::durability;
use super::effects;
use super::figure::{self, plain};
use super::screen::{GLUE, Screen, colour_of, glued, wrap};
use super::sheet::{Sheet, SheetPart};
use super::{ReportForm, ReportOptions};
use stackrace_judge::verdict::{State, Verdict};
use stackrace_results::record::Record;

/// Lines a brief page needs at least.
const LINES_MIN: usize = 16;

/// The form for terminals.
pub(super) struct Terminal;

impl ReportForm for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn summary(&self) -> &'static str {
        "plain text of at most 80 columns"
    }

    fn extension(&self) -> &'static str {
        "txt"
    }

    fn render(&self, record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8> {
        let mut page = Page::new(options);
        page.answer(verdict, usize::MAX);
        for detail in &verdict.details {
            page.labelled("", "", detail);
        }
        page.labelled("", "", &content::facts(record, verdict).join(" · "));
        page.tables(record, verdict, options);
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
        // Only a terminal has a screen to fit; a file gets everything.
        match options.lines_max {
            Some(most) if page.lines() > most => {
                brief(record, verdict, options, most.max(LINES_MIN))
            }
            _ => page.text,
        }
        .into_bytes()
    }
}

/// Lines of the sentence and of the notes on a brief page.
const SENTENCE_LINES: usize = 5;
const NOTES_LINES: usize = 2;

/// What fits so many lines (at least [`LINES_MIN`]): the sentence, the ranking, then as many of the
/// details as there is room for, and where the rest is.
fn brief(record: &Record, verdict: &Verdict, options: &ReportOptions, lines_max: usize) -> String {
    // The end first: what to do next must be seen, and the middle gets what room is left.
    let mut tail = Page::new(options);
    tail.text.push('\n');
    let notes = content::notes(record, verdict);
    if let Some(first) = notes.first() {
        let text = match notes.len() {
            1 => first.clone(),
            more => format!("{first}; {} more", figure::counted(more - 1, "note")),
        };
        tail.labelled_at_most("note", "1", &text, NOTES_LINES);
    }
    let all = format!("stackrace report {}", record.head.run);
    tail.labelled_at_most("figures", "1", &all, 1);
    if !options.next.is_empty() {
        tail.labelled_at_most("next", "1", &options.next, NOTES_LINES);
    }
    let mut answer = Page::new(options);
    answer.answer(verdict, SENTENCE_LINES);
    let mut facts = Page::new(options);
    let text = content::facts(record, verdict).join(" · ");
    facts.labelled_at_most("", "", &text, 3);
    let room = lines_max.saturating_sub(tail.lines() + answer.lines() + facts.lines());
    let ranking = ranking(record, verdict, options, room);
    let mut room = room.saturating_sub(ranking.lines());
    for detail in &verdict.details {
        let mut one = Page::new(options);
        one.labelled("", "", detail);
        if one.lines() > room {
            break;
        }
        room -= one.lines();
        answer.text.push_str(&one.text);
    }
    answer.text + &facts.text + &ranking.text + &tail.text
}

/// The sentences of a text that was cut that are there to their end; none: the first one is not.
fn whole_sentences(cut: &str) -> Option<&str> {
    // A full stop within a number or a name has no blank behind it.
    let end = cut.rfind(". ")?;
    Some(&cut[..=end])
}

/// The overall table, or that of the only workload, with as many rows as fit.
fn ranking(record: &Record, verdict: &Verdict, options: &ReportOptions, room: usize) -> Page {
    let only = || {
        Some(content::workload(
            verdict,
            0,
            record.head.workloads.first()?,
        ))
    };
    let table = content::overall(verdict).or_else(only).unwrap_or_default();
    // Wrapping decides how high a row is, so numbers of rows are tried from all downwards.
    for rows in (1..=table.rows.len()).rev() {
        let mut page = Page::new(options);
        let more = table.rows.len() - rows;
        page.table(&TextTable {
            note: String::new(),
            rows: table.rows[..rows].to_vec(),
            ..table.clone()
        });
        if more > 0 {
            page.line(&format!("  and {more} more"));
        }
        if page.lines() <= room {
            return page;
        }
    }
    Page::new(options)
}

/// A page that is no report of a run.
pub(super) fn sheet(sheet: &Sheet, screen: Screen) -> String {
    let mut page = Page::on(screen);
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
    if !sheet.facts.is_empty() {
        page.text.push('\n');
    }
    for (name, value) in &sheet.facts {
        page.fact(name, value);
    }
    for part in &sheet.parts {
        match part {
            SheetPart::Table(table) => page.table(table),
            SheetPart::List(title, items) => {
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
    fn new(options: &ReportOptions) -> Self {
        Self::on(options.screen)
    }

    fn on(screen: Screen) -> Self {
        Self {
            text: String::new(),
            width: screen.columns(),
            colour: screen.colour,
        }
    }

    fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The sentence, its label coloured by how far the question is decided.
    fn answer(&mut self, verdict: &Verdict, lines_max: usize) {
        let state = match verdict.state {
            State::Decided => "1;32",
            State::Undecided if verdict.hints() => "1;36",
            State::Undecided | State::TooFew | State::Unpaired => "1",
        };
        self.labelled_at_most("VERDICT", state, &verdict.sentence, lines_max);
    }

    fn tables(&mut self, record: &Record, verdict: &Verdict, options: &ReportOptions) {
        if let Some(table) = content::overall(verdict) {
            self.table(&table);
        }
        for (at, head) in record.head.workloads.iter().enumerate() {
            self.table(&content::workload(verdict, at, head));
        }
        self.durability(record, verdict);
        for formats in content::video_tables(verdict) {
            self.table(&formats);
        }
        for table in content::comparison_tables(verdict) {
            self.table(&table);
        }
        if let Some(table) = effects::short(verdict) {
            self.table(&table);
        }
        if let Some(beside) = &options.beside {
            for table in content::beside(beside, verdict) {
                self.table(&table);
            }
            self.heading(&format!("How {} differs", beside.study));
            for note in content::beside_notes(beside) {
                self.item(&note);
            }
        }
        if let Some(table) = clients::table(record, clients::CLIENTS_FEW) {
            self.table(&table);
        }
        let limited = audited::limited(&audited::audit(record), &record.head);
        if !limited.is_empty() {
            self.heading("Limited by");
            limited.iter().for_each(|line| self.item(line));
        }
        let promised = durability::promised(record);
        if !promised.is_empty() {
            self.heading("What the stacks promise");
            promised.iter().for_each(|line| self.item(line));
        }
        let turns = content::order_effects(record, verdict);
        if !turns.is_empty() {
            self.heading(content::ORDER_EFFECTS);
            turns.iter().for_each(|text| self.item(text));
        }
    }

    /// What power cuts took, where the power was cut.
    fn durability(&mut self, record: &Record, verdict: &Verdict) {
        let rows = durability::rows(record, verdict);
        if rows.is_empty() {
            return;
        }
        self.table(&durability::guarantees(&rows, verdict));
        for kinds in durability::kinds(&rows) {
            self.table(&kinds);
        }
        self.text.push('\n');
        for (sentence, command) in durability::sentences(&rows, record) {
            self.item(&sentence);
            // By itself, so that it can be copied.
            if let Some(command) = command {
                self.line(&format!("    {command}"));
            }
        }
        if let Some(all) = durability::all_losses(record) {
            self.item(&all);
        }
    }

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
        self.labelled_at_most(label, code, text, usize::MAX);
    }

    /// The same, cut after so many lines: after a whole sentence, if one ends there.
    fn labelled_at_most(&mut self, label: &str, code: &str, text: &str, lines_max: usize) {
        const MARGIN: usize = 9;
        // Room for the mark of what is cut off.
        let mut lines = wrap(&plain(text), self.width - MARGIN - 2);
        if lines.len() <= lines_max {
            lines = wrap(&plain(text), self.width - MARGIN);
        } else {
            lines.truncate(lines_max);
            lines = match whole_sentences(&lines.join(" ")) {
                Some(sentences) => wrap(sentences, self.width - MARGIN),
                None => {
                    let last = lines.last_mut().into_iter();
                    last.for_each(|line| line.push_str(" …"));
                    lines
                }
            };
        }
        for (at, line) in lines.iter().enumerate() {
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

    fn table(&mut self, table: &TextTable) {
        self.heading(&table.title);
        if !table.note.is_empty() {
            for line in wrap(&plain(&table.note), self.width - 2) {
                self.line(&format!("  {line}"));
            }
        }
        let mut grid = Grid::new();
        grid.load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            // One column less: each line gets a space in front.
            .set_width(u16::try_from(self.width - 1).unwrap_or(u16::MAX))
            .set_header(&table.head);
        if self.colour {
            // The library colours only what it takes for a terminal; the caller has decided that
            // already.
            grid.enforce_styling();
        }
        for row in &table.rows {
            let cells = row.cells.iter().enumerate().map(|(at, cell)| {
                let cell = Cell::new(glued(&plain(cell)));
                match row.configuration {
                    Some(of) if at == 0 && self.colour => cell.fg(Color::AnsiValue(colour_of(of))),
                    _ => cell,
                }
            });
            grid.add_row(cells);
        }
        let whole_counts = table.counts_fit(self.width);
        for (at, column) in grid.column_iter_mut().enumerate() {
            let count = whole_counts && table.head_is_widest(at);
            if at > 0 && (count || !table.text.contains(&at)) {
                column.set_cell_alignment(CellAlignment::Right);
                // A figure is never broken over two lines; columns of text give way.
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else if at == 0 && table.head_is_widest(at) {
                // Giving way here would break the word above.
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        for line in grid.lines().collect::<Vec<_>>() {
            self.line(&format!(" {}", line.replace(GLUE, " ")));
        }
    }
}
