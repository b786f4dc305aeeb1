//! Tables of an export, entered as they are: their columns by name, their values by type.

use postgres::types::{Json, ToSql, Type};
use postgres::{Error, Transaction};

use stackrace_results::tables::{ColumnValues, DataTable};

/// Begins the name of a column that holds the levels of a factor. Studies differ in their factors, so
/// here all levels of a row are one object.
const LEVEL: &str = "level_";
/// The column of that object.
const LEVELS: &str = "levels";

/// Enters the rows of a table into `stackrace.NAME`.
///
/// # Errors
/// The database refuses; the transaction is void then.
pub(super) fn enter(
    to: &mut Transaction<'_>,
    name: &str,
    mut table: DataTable,
    has_levels: bool,
) -> Result<(), Error> {
    let rows = table.rows();
    let (levels, mut columns): (Vec<_>, Vec<_>) = table
        .columns
        .drain(..)
        .partition(|column| column.name.starts_with(LEVEL));
    for column in &mut columns {
        if let ColumnValues::Text(values) = &mut column.values {
            values.iter_mut().flatten().for_each(without_nul);
        }
    }
    let levels: Vec<Json<serde_json::Value>> = (0..rows)
        .map(|row| Json(serde_json::Value::Object(levels_of(&levels, row))))
        .collect();
    // By name: the order of the columns in a table is no part of its version.
    let mut names: Vec<String> = columns
        .iter()
        .map(|column| format!("\"{}\"", column.name))
        .collect();
    let mut types: Vec<Type> = columns
        .iter()
        .map(|column| sql_type(&column.values))
        .collect();
    if has_levels {
        names.push(LEVELS.to_owned());
        types.push(Type::JSONB);
    }
    let copy = format!(
        "COPY stackrace.{name} ({}) FROM STDIN BINARY",
        names.join(", ")
    );
    let mut writer = postgres::binary_copy::BinaryCopyInWriter::new(to.copy_in(&copy)?, &types);
    // One for all rows: a run of many trials has millions of values.
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(types.len());
    for (row, levels) in levels.iter().enumerate() {
        values.clear();
        values.extend(columns.iter().map(|column| value(&column.values, row)));
        if has_levels {
            values.push(levels);
        }
        writer.write(&values)?;
    }
    writer.finish().map(drop)
}

/// The levels of a row: each factor's name with its level.
fn levels_of(
    columns: &[stackrace_results::tables::Column],
    row: usize,
) -> serde_json::Map<String, serde_json::Value> {
    let level = |column: &stackrace_results::tables::Column| {
        let ColumnValues::Text(values) = &column.values else {
            return None;
        };
        let (mut name, mut level) = (
            column.name[LEVEL.len()..].to_owned(),
            values.get(row)?.clone()?,
        );
        without_nul(&mut name);
        without_nul(&mut level);
        Some((name, level.into()))
    };
    columns.iter().filter_map(level).collect()
}

/// PostgreSQL's texts hold every character but this one; a log may name anything.
pub(super) fn without_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// The type that a column has in `schema.sql`.
pub(super) fn sql_type(values: &ColumnValues) -> Type {
    match values {
        ColumnValues::Text(_) => Type::TEXT,
        ColumnValues::Whole(_) => Type::INT8,
        ColumnValues::Real(_) => Type::FLOAT8,
        ColumnValues::Time(_) => Type::TIMESTAMPTZ,
        ColumnValues::Flag(_) => Type::BOOL,
    }
}

fn value(values: &ColumnValues, row: usize) -> &(dyn ToSql + Sync) {
    match values {
        ColumnValues::Text(values) => &values[row],
        ColumnValues::Whole(values) => &values[row],
        ColumnValues::Real(values) => &values[row],
        ColumnValues::Time(values) => &values[row],
        ColumnValues::Flag(values) => &values[row],
    }
}
