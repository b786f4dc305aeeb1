//! CSV: RFC 4180 with line breaks of one character; missing is empty.

use csv::{Terminator, WriterBuilder};

use super::column::{ColumnValues, DataTable};

/// The file.
pub(super) fn render(table: &DataTable) -> csv::Result<Vec<u8>> {
    // CRLF, which the RFC asks for, would leave a carriage return in the last column of most tools.
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::Any(b'\n'))
        .from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|column| column.name.as_str()))?;
    for row in 0..table.rows() {
        let cell = |values: &ColumnValues| match values {
            ColumnValues::Text(values) => values[row].clone(),
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
