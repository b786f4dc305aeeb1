//! CSV: RFC 4180 with line breaks of one character; missing is empty.

use super::column::{Table, Values};

/// The file.
pub(super) fn render(table: &Table) -> Vec<u8> {
    let mut text = String::new();
    line(
        &mut text,
        table.columns.iter().map(|column| column.name.clone()),
    );
    for row in 0..table.rows() {
        let cell = |values: &Values| match values {
            Values::Text(values) => values[row].clone(),
            Values::Whole(values) => values[row].map(|value| value.to_string()),
            // With a point or an exponent, so that a reader that guesses takes it for no whole number.
            Values::Real(values) => values[row].map(|value| format!("{value:?}")),
            Values::Time(values) => values[row].map(|value| format!("{value:.6}")),
            Values::Flag(values) => values[row].map(|value| value.to_string()),
        };
        let cells = table.columns.iter().map(|column| cell(&column.values));
        line(&mut text, cells.map(Option::unwrap_or_default));
    }
    text.into_bytes()
}

/// One row.
fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(&cell);
        }
    }
    text.push('\n');
}
