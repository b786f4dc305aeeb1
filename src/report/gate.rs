//! The answer of a gate: one line, then what it rests on.

use super::content::{Row, Table};
use super::figure::{self, MISSING};
use super::sheet::{Part, Sheet};
use crate::verdict::{Gate, Outcome, Passing, on};

/// The page; `form` is `markdown`, else it is for a terminal.
pub(crate) fn gate(gate: &Gate, form: &str, colour: bool) -> Vec<u8> {
    let mut parts = vec![Part::Table(table(gate))];
    if !gate.notes.is_empty() {
        parts.push(Part::List("Notes".to_owned(), gate.notes.clone()));
    }
    let lead = gate.failed.as_ref().map(|error| {
        format!(
            "A trial of {} failed, so nothing else counts: {error}",
            gate.compared.configuration
        )
    });
    let sheet = Sheet {
        title: format!("{}: {}", word(gate), gate.sentence),
        lead: lead.into_iter().collect(),
        facts: Vec::new(),
        parts,
    };
    sheet.render(form, colour)
}

/// The outcome in capitals: the first word of the first line.
fn word(gate: &Gate) -> &'static str {
    match (&gate.failed, gate.outcome) {
        (Some(_), _) => "FAILED",
        (None, Outcome::Passed) => "PASSED",
        (None, Outcome::Undecided) => "UNDECIDED",
        (None, Outcome::Worse) => "WORSE",
    }
}

fn table(gate: &Gate) -> Table {
    let name = format!(
        "{} against {}",
        gate.compared.configuration, gate.baseline.configuration
    );
    Table {
        title: name,
        note: format!(
            "A ratio above 1 is better; allowed is down to {}.",
            figure::ratio(1.0 - gate.worse_than)
        ),
        head: ["figure", "ratio", "interval", "rounds", "outcome"]
            .map(str::to_owned)
            .to_vec(),
        text: vec![4],
        rows: gate.answers.iter().map(row).collect(),
    }
}

fn row(answer: &Passing) -> Row {
    let on = on(answer);
    let outcome = match answer.outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Worse => "worse".to_owned(),
        Outcome::Undecided => match answer.more_rounds {
            Some(rounds) => format!("undecided, {rounds} more"),
            None => "undecided".to_owned(),
        },
    };
    let (a, b) = answer.values;
    Row::of(vec![
        on.strip_prefix("on ").unwrap_or(&on).to_owned(),
        answer
            .ratio
            .map_or(MISSING.to_owned(), |ratio| figure::ratio(ratio.estimate)),
        answer.ratio.map_or(MISSING.to_owned(), figure::ratio_range),
        match a == b {
            true => a.to_string(),
            false => format!("{b}, {a}"),
        },
        outcome,
    ])
}
