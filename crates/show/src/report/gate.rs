//! The answer of a gate: one line, then what it rests on.

use super::content::{TextRow, TextTable};
use super::figure;
use super::render::render;
use super::screen::Screen;
use super::sheet::{Sheet, SheetPart};
use super::styled::Styled;
use stackrace_judge::verdict::{FigureAnswer, GateAnswer, RequiredRow, Verdict, figure_of};

/// The page; `form` is `markdown`, else it is for a terminal.
pub fn gate(gate: &GateAnswer, form: &str, screen: Screen) -> Styled {
    let mut parts = vec![SheetPart::Table(table(gate))];
    if !gate.notes.is_empty() {
        parts.push(SheetPart::List("Notes".to_owned(), gate.notes.clone()));
    }
    let sheet = Sheet {
        title: format!("{}: {}", word(gate), gate.sentence),
        lead: Vec::new(),
        facts: Vec::new(),
        parts,
    };
    render(&sheet, form, screen)
}

/// The page of a run that is asked what it requires, as Markdown; `failed`: the first error of a trial.
pub fn required(verdict: &Verdict, failed: Option<&str>, screen: Screen) -> Styled {
    // What the table of a comparison says in columns, a sentence says for each requirement.
    let of = |row: &RequiredRow| format!("{}, {}: {}", row.name, row.workload, row.words());
    let rows = verdict.required.iter().map(of).collect();
    let mut parts = vec![SheetPart::List("Required".to_owned(), rows)];
    // Before the notes: a failed trial leaves no other answer.
    let failed = failed.map(|error| format!("a trial failed: {error}"));
    let notes: Vec<String> = failed.into_iter().chain(verdict.notes.clone()).collect();
    if !notes.is_empty() {
        parts.push(SheetPart::List("Notes".to_owned(), notes));
    }
    let sheet = Sheet {
        title: verdict.sentence.clone(),
        lead: Vec::new(),
        facts: Vec::new(),
        parts,
    };
    render(&sheet, "markdown", screen)
}

/// The outcome in capitals: the first word of the first line.
fn word(gate: &GateAnswer) -> String {
    match gate.failed {
        Some(_) => "FAILED".to_owned(),
        None => gate.outcome.name().to_uppercase(),
    }
}

fn table(gate: &GateAnswer) -> TextTable {
    let name = format!(
        "{} against {}",
        gate.compared.configuration, gate.baseline.configuration
    );
    let values = if gate.paired { "rounds" } else { "runs" };
    TextTable {
        title: name,
        note: format!(
            "Above 1 is better; the limit is {}.",
            figure::ratio(1.0 - gate.worse_than)
        ),
        head: ["figure", "ratio", "interval", values, "outcome"]
            .map(str::to_owned)
            .to_vec(),
        text: vec![4],
        rows: gate.answers.iter().map(row).collect(),
    }
}

fn row(answer: &FigureAnswer) -> TextRow {
    let name = answer.outcome.name();
    let outcome = match answer.more {
        Some(more) => format!("{name}, {more} more"),
        None => name.to_owned(),
    };
    let (a, b) = answer.values;
    let [ratio, interval] = figure::ratio_texts(answer.ratio);
    TextRow::of(vec![
        figure_of(answer),
        ratio,
        interval,
        // Equal numbers of rounds, as always in a paired answer, are written once.
        match a == b {
            true => a.to_string(),
            // In the order of the title: the compared side first.
            false => format!("{b}, {a}"),
        },
        outcome,
    ])
}
