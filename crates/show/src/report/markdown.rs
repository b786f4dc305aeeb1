//! The answer for a ticket or a wiki: GitHub's Markdown, tables as tables.

use super::asked;
use super::audited;
use super::clients;
use super::content::{self, TextTable};
use super::cost;
use super::durability;
use super::effects;
use super::figure::plain;
use super::form::{ReportForm, ReportOptions};
use super::sheet::{Sheet, SheetPart};
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// The form for tickets.
pub(super) const MARKDOWN: ReportForm = ReportForm {
    name: "markdown",
    summary: "GitHub Markdown with tables",
    extension: "md",
    render,
};

fn render(record: &Record, verdict: &Verdict, options: &ReportOptions) -> Vec<u8> {
    let mut text = format!(
        "# {}\n\n**{}**\n",
        escaped(&record.head.title),
        with_commands(&verdict.sentence)
    );
    for sentence in &verdict.details {
        text.push_str(&format!("\n{}\n", with_commands(sentence)));
    }
    // Facts and notes hold names from outside, so all of them are escaped.
    text.push_str(&format!(
        "\n{}\n",
        escaped(&content::facts(record, verdict).join(" · "))
    ));
    let workloads = record.head.workloads.iter().enumerate();
    let workloads = workloads.map(|(at, head)| content::workload(verdict, at, head));
    let answers = [
        asked::required(verdict),
        content::overall(&record.head, verdict),
    ];
    let costs = cost::table(&record.head, verdict);
    let tables = answers.into_iter().flatten().chain(workloads).chain(costs);
    tables.for_each(|one| table(&mut text, &one));
    durability(&mut text, record, verdict);
    for formats in content::video_tables(verdict) {
        table(&mut text, &formats);
    }
    for comparisons in content::comparison_tables(verdict) {
        table(&mut text, &comparisons);
    }
    for effects in effects::tables(verdict) {
        table(&mut text, &effects);
    }
    if let Some(beside) = &options.beside {
        for comparison in content::beside(beside, verdict) {
            table(&mut text, &comparison);
        }
        text.push_str(&format!("\n## How {} differs\n\n", escaped(&beside.study)));
        for note in content::beside_notes(beside) {
            text.push_str(&format!("- {}\n", escaped(&note)));
        }
    }
    if let Some(clients) = clients::table(record, usize::MAX) {
        table(&mut text, &clients);
    }
    if let Some(measured) = audited::table(&audited::audit(record), &record.head) {
        table(&mut text, &measured);
    }
    list(
        &mut text,
        content::ORDER_EFFECTS,
        content::order_effects(record, verdict),
    );
    list(
        &mut text,
        "What the stacks promise",
        durability::promised(record),
    );
    list(&mut text, "Notes", content::notes(record, verdict));
    text.push_str(&format!(
        "\nRun {}, stackrace {}.\n",
        escaped(&record.head.run),
        escaped(&record.head.stackrace)
    ));
    text.push_str(&next(options));
    text.into_bytes()
}

/// What to do next: words, then the command; empty if there is nothing.
fn next(options: &ReportOptions) -> String {
    let command = escaped(&options.next);
    match (options.before_next.as_str(), options.next.as_str()) {
        (_, "") => String::new(),
        ("", _) => format!("\nNext: {command}\n"),
        (before, _) => format!("\nNext: {}: {command}\n", escaped(before)),
    }
}

/// Writes the losses of power cuts, where the power was cut.
fn durability(text: &mut String, record: &Record, verdict: &Verdict) {
    let rows = durability::rows(record, verdict);
    if rows.is_empty() {
        return;
    }
    table(text, &durability::guarantees(&rows, verdict));
    for kinds in durability::kinds(&rows) {
        table(text, &kinds);
    }
    text.push('\n');
    for (sentence, command) in durability::sentences(&rows, record) {
        let command = command.map_or(String::new(), |command| format!(" `{command}`"));
        text.push_str(&format!("- {}{command}\n", escaped(&sentence)));
    }
    if let Some(all) = durability::all_losses(record) {
        text.push_str(&format!("- {}\n", escaped(&all)));
    }
}

/// A heading and its items; nothing where there are none.
fn list(text: &mut String, title: &str, items: Vec<String>) {
    if !items.is_empty() {
        text.push_str(&format!("\n## {title}\n\n"));
    }
    for item in items {
        text.push_str(&format!("- {}\n", escaped(&item)));
    }
}

/// A page that is no report of a run.
pub(super) fn sheet(sheet: &Sheet) -> String {
    let mut text = format!("# {}\n", escaped(&sheet.title));
    for paragraph in &sheet.lead {
        text.push_str(&format!("\n{}\n", escaped(paragraph)));
    }
    if !sheet.facts.is_empty() {
        text.push('\n');
    }
    for (name, value) in &sheet.facts {
        // A fact without a name belongs to the one before it.
        let name = if name.is_empty() { "also" } else { name };
        text.push_str(&format!("- {}: {}\n", escaped(name), escaped(value)));
    }
    for part in &sheet.parts {
        match part {
            SheetPart::Table(part) => table(&mut text, part),
            SheetPart::List(title, items) => {
                text.push_str(&format!("\n## {}\n\n", escaped(title)));
                for item in items {
                    text.push_str(&format!("- {}\n", escaped(item)));
                }
            }
        }
    }
    text
}

fn table(text: &mut String, table: &TextTable) {
    text.push_str(&format!("\n## {}\n\n", escaped(&table.title)));
    if !table.note.is_empty() {
        text.push_str(&format!("{}\n\n", escaped(&table.note)));
    }
    let line = |cells: &mut dyn Iterator<Item = String>| {
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    text.push_str(&line(&mut table.head.iter().map(|name| escaped(name))));
    text.push_str(&line(&mut (0..table.head.len()).map(|at| {
        if at == 0 || table.text.contains(&at) {
            "---".to_owned()
        } else {
            // GitHub aligns a column to the right where its dashes end in a colon.
            "---:".to_owned()
        }
    })));
    for row in &table.rows {
        text.push_str(&line(&mut row.cells.iter().map(|cell| escaped(cell))));
    }
}

/// One line of text that Markdown, and the HTML it becomes, show as it is.
/// A sentence of a verdict: the commands of this program that it names stay code.
fn with_commands(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    // The program's own commands come in backquotes. Any other backquote is part of a name.
    while let Some((before, after)) = rest.split_once("`stackrace ")
        && let Some((command, left)) = after.split_once('`')
    {
        out.push_str(&format!("{} ", escaped(before)));
        // Within code nothing has a meaning but its end and, in a table, the bar.
        out.push_str(&format!("`stackrace {}`", plain(command).replace('|', " ")));
        // `escaped` trims, so the space behind the code would be lost.
        out.push_str(if left.starts_with(' ') { " " } else { "" });
        rest = left;
    }
    out + &escaped(rest)
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // GitHub passes HTML through.
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}
