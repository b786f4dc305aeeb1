//! CSV: RFC 4180 with line breaks of one character; missing is empty.

use csv::{Terminator, WriterBuilder};

use super::column::{ColumnValues, DataTable};

/// The table as a CSV file: one line of names, then one line a row.
pub(super) fn render(table: &DataTable) -> csv::Result<Vec<u8>> {
    // CRLF, which the RFC asks for, would leave a carriage return in the last column of most tools.
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::Any(b'\n'))
        .from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|column| column.name.as_str()))?;
    for row in 0..table.rows() {
        let cell = |values: &ColumnValues| match values {
            ColumnValues::Text(values) => values[row].as_deref().map(no_formula),
            ColumnValues::Whole(values) => values[row].map(|value| value.to_string()),
            // With a point or an exponent, so that a reader that guesses types sees no whole number.
            ColumnValues::Real(values) => values[row].map(|value| format!("{value:?}")),
            ColumnValues::Time(values) => values[row].map(|value| format!("{value:.6}")),
            ColumnValues::Flag(values) => values[row].map(|value| value.to_string()),
        };
        let cells = table.columns.iter().map(|column| cell(&column.values));
        writer.write_record(cells.map(Option::unwrap_or_default))?;
    }
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}

/// A text as a cell that no spreadsheet takes for a formula. Numbers stay numbers.
fn no_formula(text: &str) -> String {
    // Names come from studies of others, and a spreadsheet runs a cell that begins like a formula.
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    match begins && text.parse::<f64>().is_err() {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::no_formula;

    #[test]
    fn a_text_is_no_formula_and_a_number_stays_one() {
        for (text, cell) in [
            (
                "=HYPERLINK(\"http://evil.example\")",
                "'=HYPERLINK(\"http://evil.example\")",
            ),
            ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-2+3", "'-2+3"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("-2.5e-3", "-2.5e-3"),
            ("+7", "+7"),
            ("ext4 = fast", "ext4 = fast"),
        ] {
            assert_eq!(no_formula(text), cell);
        }
    }
}
