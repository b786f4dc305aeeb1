//! JSON: an array of one object per row, a row a line; missing is `null`.

use serde_json::{Map, Value};

use super::column::{ColumnValues, DataTable};

/// The table as a file of JSON.
pub(super) fn render(table: &DataTable) -> Vec<u8> {
    let mut text = String::from("[");
    for row in 0..table.rows() {
        let cell = |values: &ColumnValues| match values {
            ColumnValues::Text(values) => Value::from(values[row].clone()),
            ColumnValues::Whole(values) => Value::from(values[row]),
            ColumnValues::Real(values) => Value::from(values[row]),
            ColumnValues::Time(values) => {
                Value::from(values[row].map(|value| format!("{value:.6}")))
            }
            ColumnValues::Flag(values) => Value::from(values[row]),
        };
        let object: Map<String, Value> = table
            .columns
            .iter()
            .map(|column| (column.name.clone(), cell(&column.values)))
            .collect();
        // A row is a line, so that the file can be cut, compared and searched line by line.
        text.push_str(if row == 0 { "\n" } else { ",\n" });
        text.push_str(&Value::Object(object).to_string());
    }
    text.push_str("\n]\n");
    text.into_bytes()
}
