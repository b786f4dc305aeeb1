//! What is required: a table of a report, and the answer of a gate about it.

use super::content::{TextRow, TextTable, interval_name};
use super::figure;
use super::render::render;
use super::screen::Screen;
use super::sheet::{Sheet, SheetPart};
use super::styled::Styled;
use stackrace_base::unit;
use stackrace_judge::verdict::{RequiredRow, Verdict};

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

/// Every requirement of every configuration with its figure; `None` if nothing is required.
pub(super) fn table(verdict: &Verdict) -> Option<TextTable> {
    let head = ["configuration", "figure", "value"].map(str::to_owned);
    let last = ["required", "answer"].map(str::to_owned);
    let interval = std::iter::once(interval_name(verdict.confidence));
    (!verdict.required.is_empty()).then(|| TextTable {
        title: "Required".to_owned(),
        note: String::new(),
        head: head.into_iter().chain(interval).chain(last).collect(),
        text: vec![1, 4, 5],
        rows: verdict.required.iter().map(row).collect(),
    })
}

fn row(required: &RequiredRow) -> TextRow {
    let unit = required.metric.unit.as_str();
    let bound = unit::of_metric(unit, required.bound);
    let [value, interval] = required.value.map_or_else(
        || [figure::MISSING, figure::MISSING].map(str::to_owned),
        |found| {
            [
                figure::value(unit, found.estimate),
                figure::range(unit, found),
            ]
        },
    );
    TextRow::of(vec![
        required.name.clone(),
        required.metric.on(&required.workload),
        value,
        interval,
        format!("{} {bound}", required.limit.words()),
        required.enough.words().to_owned(),
    ])
}
