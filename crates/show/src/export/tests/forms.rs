//! Parquet, JSON and CSV hold the same cells.

use std::io::Write as _;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

use super::*;
use stackrace_results::tables::TableForm;

/// The cell as JSON has it, read back from Parquet.
fn cell(field: &Field) -> serde_json::Value {
    use jiff::Timestamp;
    match field {
        Field::Null => serde_json::Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::Double(value) => (*value).into(),
        Field::Str(value) => value.clone().into(),
        Field::TimestampMicros(value) => {
            format!("{:.6}", Timestamp::from_microsecond(*value).unwrap()).into()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_forms_hold_the_same_cells() {
    for kind in ALL {
        let table = (kind.of)(&records());
        let json: serde_json::Value =
            serde_json::from_slice(&TableForm::Json.render(&table).unwrap()).unwrap();
        let json = json.as_array().unwrap();
        assert_eq!(json.len(), table.rows());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&TableForm::Parquet.render(&table).unwrap())
            .unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        let mut rows = 0;
        for (row, expected) in file.get_row_iter(None).unwrap().zip(json) {
            for (name, field) in row.unwrap().get_column_iter() {
                assert_eq!(cell(field), expected[name], "{}: {name}", kind.name);
            }
            rows += 1;
        }
        assert_eq!(rows, table.rows(), "{}", kind.name);
        let csv = String::from_utf8(TableForm::Csv.render(&table).unwrap()).unwrap();
        let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert_eq!(head.len(), table.columns.len());
    }
}
