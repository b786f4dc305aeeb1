//! The answer on a terminal: the verdict first, sentences of at most 80 columns and tables of at most 120, readable
//! without colour.

use super::asked;
use super::audited;
use super::clients;
use super::content::{self, TextRow, TextTable};
use super::cost;
use super::cut::{beginning, closed, with_short_commands};
use super::durability;
use super::effects;
use super::figure::{self, plain};
use super::form::{ReportForm, ReportOptions};
use super::grid;
use super::latencies;
use super::screen::{Screen, wrap};
use super::sheet::{Sheet, SheetPart};
use super::styled::{Style, Styled, columns_of};
use stackrace_base::event::again;
use stackrace_judge::verdict::{State, Verdict};
use stackrace_results::record::Record;

/// Lines a brief page needs at least.
const LINES_MIN: usize = 16;

/// The form for terminals.
pub(super) const TERMINAL: ReportForm = ReportForm {
    name: "terminal",
    summary: "plain text of at most 80 columns",
    extension: "txt",
    render,
};

fn render(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8> {
    // A file has no colours.
    page(record, verdict, options).plain().into_bytes()
}

/// The report of a run for a terminal, whole or in so many lines.
pub fn page(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Styled {
    let mut page = Page::new(options);
    page.answer(verdict, usize::MAX);
    for detail in &verdict.details {
        page.labelled("", Style::Plain, detail);
    }
    page.labelled(
        "",
        Style::Plain,
        &content::facts(record, verdict).join(" · "),
    );
    page.tables(record, verdict, options);
    let notes = content::notes(record, verdict);
    if !notes.is_empty() {
        page.heading("Notes");
        for note in &notes {
            page.item(note);
        }
    }
    if !options.next.is_empty() {
        page.line("");
        page.next(options);
    }
    // Only a terminal has a screen to fit; a file gets everything.
    match options.lines_max {
        Some(most) if page.lines() > most => brief(record, verdict, options, most.max(LINES_MIN)),
        _ => page.text,
    }
}

/// Columns of the words in the margin.
const MARGIN: usize = 9;
/// Lines of the sentence and of the notes on a brief page, and of the notes where lines are short.
const SENTENCE_LINES: usize = 5;
const NOTES_LINES: usize = 2;
const NOTES_LINES_NARROW: usize = 3;
/// Columns below which lines are short.
const NARROW: usize = 72;

/// The part that fits so many lines (at least [`LINES_MIN`]): the sentence, the ranking, then as
/// many of the details as there is room for, and where the rest is.
fn brief(record: &Record, verdict: &Verdict, options: &ReportOptions, lines_max: usize) -> Styled {
    // The end first: what to do next must be seen, and the middle gets what room is left.
    let mut tail = Page::new(options);
    tail.line("");
    let notes = content::notes(record, verdict);
    if let Some(first) = notes.first() {
        let (first, more) = match notes.len() {
            1 => (first.as_str(), String::new()),
            all => (
                first.trim_end_matches('.'),
                format!("; {} more", figure::counted(all - 1, "note")),
            ),
        };
        let most = match tail.width < NARROW {
            true => NOTES_LINES_NARROW,
            false => NOTES_LINES,
        };
        tail.labelled_and("note", Style::Strong, (first, &more), most);
    }
    let all = again(&["report", &record.head.run]);
    tail.command("figures", &all);
    if !options.next.is_empty() {
        tail.next(options);
    }
    let mut answer = Page::new(options);
    answer.answer(verdict, SENTENCE_LINES);
    let mut facts = Page::new(options);
    let text = content::facts(record, verdict).join(" · ");
    facts.labelled_at_most("", Style::Plain, &text, 3);
    // One line says how many sentences are left out.
    let kept = asked(verdict);
    let left_out = usize::from(verdict.details.len() > kept);
    let room = lines_max.saturating_sub(tail.lines() + answer.lines() + facts.lines() + left_out);
    let ranking = ranking(record, verdict, options, room);
    answer.details(
        verdict,
        options,
        (kept, left_out + room.saturating_sub(ranking.lines())),
    );
    let mut text = answer.text;
    for part in [facts.text, ranking.text, tail.text] {
        text.append(part);
    }
    text
}

/// Number of further sentences that are shown however few lines there are: what is required of one configuration is what
/// was asked.
fn asked(verdict: &Verdict) -> usize {
    match verdict.configurations.len() {
        1 => verdict.required.len().min(verdict.details.len()),
        _ => 0,
    }
}

/// What is required, else the overall table, or that of the only configuration, with as many rows as fit.
fn ranking(record: &Record, verdict: &Verdict, options: &ReportOptions, room: usize) -> Page {
    let table = asked::required(verdict)
        .or_else(|| content::overall(&record.head, verdict))
        .or_else(|| asked::figures(verdict, &record.head.workloads))
        .unwrap_or_default();
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

/// A table by itself, its first column the name of each row: side by side where `width` columns are enough for
/// its words, else each row as a list.
pub fn table(head: &[String], rows: &[Vec<String>], width: usize) -> String {
    let table = TextTable {
        head: head.to_vec(),
        rows: rows.iter().cloned().map(TextRow::of).collect(),
        ..TextTable::default()
    };
    let mut page = Page::on(Screen { width });
    page.rows(&table);
    page.text.plain()
}

/// A page that is no report of a run.
pub(super) fn sheet(sheet: &Sheet, screen: Screen) -> Styled {
    let mut page = Page::on(screen);
    for line in wrap(&plain(&sheet.title), page.width) {
        page.styled(&[(Style::Strong, &line)]);
    }
    for paragraph in &sheet.lead {
        page.line("");
        for line in wrap(&plain(paragraph), page.width) {
            page.line(&line);
        }
    }
    if !sheet.facts.is_empty() {
        page.line("");
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
    text: Styled,
    width: usize,
    /// Columns for a table that needs more than a line of words.
    table_width: usize,
}

impl Page {
    fn new(options: &ReportOptions) -> Self {
        Self::on(options.screen)
    }

    fn on(screen: Screen) -> Self {
        Self {
            text: Styled::default(),
            width: screen.columns(),
            table_width: screen.table_columns(),
        }
    }

    fn lines(&self) -> usize {
        self.text.lines()
    }

    /// The sentence, its label coloured by how far the question is decided.
    fn answer(&mut self, verdict: &Verdict, lines_max: usize) {
        let state = match verdict.state {
            State::Decided => Style::Decided,
            State::Undecided if verdict.hints() => Style::Hinted,
            State::Undecided | State::TooFew | State::Unpaired => Style::Strong,
        };
        self.labelled_at_most("VERDICT", state, &verdict.sentence, lines_max);
    }

    /// The first sentences that must be `kept`, as many more as fit into the `room`, and how many do not.
    fn details(
        &mut self,
        verdict: &Verdict,
        options: &ReportOptions,
        (kept, mut room): (usize, usize),
    ) {
        for (at, detail) in verdict.details.iter().enumerate() {
            let mut one = Self::new(options);
            one.labelled("", Style::Plain, detail);
            let left = verdict.details.len() - at - 1;
            if at >= kept && one.lines() + usize::from(left > 0) > room {
                let more = format!("{} more with the figures", left + 1);
                self.labelled("", Style::Plain, &more);
                break;
            }
            room = room.saturating_sub(one.lines());
            self.text.append(one.text);
        }
    }

    fn tables(&mut self, record: &Record, verdict: &Verdict, options: &ReportOptions) {
        if let Some(table) = asked::required(verdict) {
            self.table(&table);
        }
        if let Some(table) = content::overall(&record.head, verdict) {
            self.table(&table);
        }
        for (at, head) in record.head.workloads.iter().enumerate() {
            self.table(&content::workload(verdict, at, head));
        }
        if let Some(costs) = cost::table(&record.head, verdict) {
            self.table(&costs);
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
        for table in latencies::tables(record, verdict, false) {
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

    /// Losses of power cuts, where the power was cut.
    fn durability(&mut self, record: &Record, verdict: &Verdict) {
        let rows = durability::rows(record, verdict);
        if rows.is_empty() {
            return;
        }
        self.table(&durability::guarantees(&rows, verdict));
        for kinds in durability::kinds(&rows) {
            self.table(&kinds);
        }
        self.line("");
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
        self.styled(&[(Style::Plain, line)]);
    }

    /// A line of parts; blanks at its end are left out.
    fn styled(&mut self, parts: &[(Style, &str)]) {
        let seen = |(_, part): &(Style, &str)| !part.trim_end().is_empty();
        let last = parts.iter().rposition(seen);
        // A label without text would leave its margin at the end of the line.
        for (at, (style, part)) in parts.iter().enumerate() {
            match last {
                Some(last) if at < last => self.text.add(*style, part),
                Some(last) if at == last => self.text.add(*style, part.trim_end()),
                _ => {}
            }
        }
        self.text.add(Style::Plain, "\n");
    }

    /// A command with a word in the margin: never broken, so that it can be copied as it is.
    fn command(&mut self, label: &str, command: &str) {
        let space = " ".repeat(MARGIN - label.len());
        // A path in it may have signs that a terminal obeys.
        let command = plain(command);
        self.styled(&[
            (Style::Strong, label),
            (Style::Plain, &space),
            (Style::Plain, &command),
        ]);
    }

    /// What to do next: words are broken into lines, the command stands whole.
    fn next(&mut self, options: &ReportOptions) {
        match options.before_next.as_str() {
            "" => self.command("next", &options.next),
            before => {
                self.labelled("next", Style::Strong, &format!("{before}:"));
                let command = plain(&options.next);
                let indent = self.indent(MARGIN, &command);
                self.line(&format!("{indent}{command}"));
            }
        }
    }

    /// Blanks before a line that goes on: a path that is broken cannot be copied, and gives up its indentation first.
    fn indent(&self, wanted: usize, line: &str) -> String {
        " ".repeat(wanted.min(self.width.saturating_sub(columns_of(line))))
    }

    /// A paragraph with a word in the margin.
    fn labelled(&mut self, label: &str, style: Style, text: &str) {
        self.labelled_at_most(label, style, text, usize::MAX);
    }

    /// The same, cut after so many lines: after a whole sentence or clause, if one ends there.
    fn labelled_at_most(&mut self, label: &str, style: Style, text: &str, lines_max: usize) {
        self.labelled_and(label, style, (text, ""), lines_max);
    }

    /// The same with something behind it that is never cut off.
    fn labelled_and(
        &mut self,
        label: &str,
        style: Style,
        (text, behind): (&str, &str),
        lines_max: usize,
    ) {
        let width = self.width - MARGIN;
        let (mut text, behind) = (plain(text), plain(behind));
        let mut lines = wrap(&format!("{text}{behind}"), width);
        if lines.len() > lines_max {
            // The reason stands behind the command that failed, and is worth more than its words.
            text = with_short_commands(&text);
            lines = wrap(&format!("{text}{behind}"), width);
        }
        if lines.len() > lines_max {
            lines = match beginning(&text, &behind, width, lines_max) {
                Some(text) => wrap(&text, width),
                None => {
                    // Room for the mark of what is cut off, and for what must not be.
                    let mark = format!(" …{behind}");
                    let mut lines = wrap(&text, width - columns_of(&mark).min(width / 2));
                    lines.truncate(lines_max);
                    let brackets = closed(&lines.join(" "));
                    let mark = format!(" …{brackets}{behind}");
                    let last = lines.last_mut().into_iter();
                    last.for_each(|line| line.push_str(&mark));
                    lines
                }
            };
        }
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let space = match label {
                "" => self.indent(MARGIN, line),
                label => " ".repeat(MARGIN - label.len()),
            };
            self.styled(&[(style, label), (Style::Plain, &space), (Style::Plain, line)]);
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
            let mark = match at {
                0 => "  - ".to_owned(),
                _ => self.indent(4, line),
            };
            self.line(&format!("{mark}{line}"));
        }
    }

    fn heading(&mut self, text: &str) {
        self.line("");
        for line in wrap(&plain(text), self.width) {
            self.styled(&[(Style::Strong, &line)]);
        }
    }

    fn table(&mut self, table: &TextTable) {
        self.heading(&table.title);
        if !table.note.is_empty() {
            for line in wrap(&plain(&table.note), self.width - 2) {
                self.line(&format!("  {line}"));
            }
        }
        self.rows(table);
    }

    fn rows(&mut self, table: &TextTable) {
        let mut widths = [self.width, self.table_width].into_iter();
        let Some(lines) = widths.find_map(|width| grid::lines(table, width)) else {
            return self.rows_as_lists(table);
        };
        for line in lines {
            self.styled(&[
                (Style::Plain, " "),
                (line.style, &line.name),
                (Style::Plain, &line.rest),
            ]);
        }
    }

    /// A table that is too wide for its words.
    fn rows_as_lists(&mut self, table: &TextTable) {
        for row in &table.rows {
            let style = row.configuration.map_or(Style::Plain, Style::Configuration);
            let name = row.cells.first().map_or("", String::as_str);
            for line in wrap(&plain(name), self.width - 2) {
                self.styled(&[(Style::Plain, "  "), (style, &line)]);
            }
            let cells = table.head.iter().zip(&row.cells).skip(1);
            let cells = cells.map(|(head, cell)| (&**head, &**cell));
            for line in grid::stacked(cells, self.width - 4) {
                self.line(&format!("    {line}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::content::TextRow;

    #[test]
    fn the_reason_of_a_failure_is_seen_behind_a_long_command_with_semicolons() {
        let command = "mount -o noatime; echo ".repeat(40);
        let text = format!(
            "No verdict: a failed in round 1: script: `{command}` failed with exit status 7: no."
        );
        for lines_max in [3, 5] {
            let mut page = Page::on(Screen { width: 80 });
            page.labelled_at_most("VERDICT", Style::Strong, &text, lines_max);
            let shown = page.text.plain();
            assert!(shown.lines().count() <= lines_max, "{shown}");
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                shown.ends_with("` failed with exit status 7: no."),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_name_of_thirty_five_letters_is_whole_in_every_table() {
        let name = "btrfs-compress-zstd-3-discard-async";
        let cells = [name, "203 k/s", "[45.9, 898]", "faster than the one before"];
        let table = TextTable {
            head: ["configuration", "value", "interval", "verdict"]
                .map(str::to_owned)
                .into(),
            rows: vec![TextRow::of(cells.map(str::to_owned).into())],
            ..TextTable::default()
        };
        for width in [40, 60, 80, 120] {
            let mut page = Page::on(Screen { width });
            page.rows(&table);
            let shown = page.text.plain();
            assert!(shown.contains(name), "{width}\n{shown}");
        }
    }

    #[test]
    fn a_path_gives_up_its_indentation_before_it_is_broken() {
        let path = "/var/tmp/a-directory-of-38-columns/all";
        let mut page = Page::on(Screen { width: 40 });
        let text = format!("the data lie in {path} now");
        page.labelled_at_most("VERDICT", Style::Strong, &text, usize::MAX);
        page.item(&text);
        let shown = page.text.plain();
        let lines = || shown.lines().filter(|line| line.contains(path));
        assert_eq!(lines().count(), 2, "{shown}");
        assert!(lines().all(|line| columns_of(line) <= 40), "{shown}");
    }

    #[test]
    fn a_list_that_is_cut_says_that_it_goes_on() {
        let text = format!("a leads; not separated from {}.", vec!["b"; 60].join("; "));
        let mut page = Page::on(Screen { width: 80 });
        page.labelled_at_most("VERDICT", Style::Strong, &text, 2);
        let shown = page.text.plain();
        assert!(shown.trim_end().ends_with("b; …"), "{shown}");
    }

    #[test]
    fn a_table_uses_the_width_there_is_before_it_becomes_a_list() {
        let columns = |cell: &str| vec![cell.to_owned(); 10];
        let table = TextTable {
            head: columns("a-column"),
            rows: vec![TextRow::of(columns("12345678"))],
            ..TextTable::default()
        };
        let lines = |width: usize| {
            let mut page = Page::on(Screen { width });
            page.rows(&table);
            page.text.render(false)
        };
        assert_eq!(lines(120).lines().count(), 2, "{}", lines(120));
        assert!(lines(80).contains(" · "), "{}", lines(80));
    }
}
