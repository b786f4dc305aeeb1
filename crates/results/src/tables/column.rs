//! Tables as typed columns, and how a column is filled from rows.

use jiff::Timestamp;

/// The values of one column, one per row; `None` means missing.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Text, never empty.
    Text(Vec<Option<String>>),
    /// Whole numbers; above 2⁶³ − 1 they are entered as that.
    Whole(Vec<Option<i64>>),
    /// Numbers, all finite.
    Real(Vec<Option<f64>>),
    /// Times of day.
    Time(Vec<Option<Timestamp>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

/// A column of a table: its name, and a value for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The head of the column, as `docs/formats/export.md` lists it.
    pub name: String,
    /// Values, one for each row, all of one type.
    pub values: ColumnValues,
}

/// A table: columns of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct DataTable {
    /// Columns from left to right.
    pub columns: Vec<Column>,
}

impl DataTable {
    /// Number of rows of the table.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

impl ColumnValues {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Time(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// The word that `docs/formats/export.md` uses for the type of the column.
    #[cfg(any(test, feature = "testing"))]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Whole(_) => "whole",
            Self::Real(_) => "real",
            Self::Time(_) => "time",
            Self::Flag(_) => "flag",
        }
    }
}

/// The place of a column's value in a row, and its type.
pub enum ColumnOf<R> {
    /// An empty text is a missing one: not every form can tell them apart.
    Text(fn(&R) -> &str),
    /// Text that is made for the table.
    Made(fn(&R) -> String),
    /// A count, or a size in bytes; `None` means an empty cell.
    Whole(fn(&R) -> Option<u64>),
    /// A number that is not finite is a missing one.
    Real(fn(&R) -> Option<f64>),
    /// RFC 3339; what is no time of day is missing.
    Time(fn(&R) -> &str),
    /// Yes or no; `None` means not known.
    Flag(fn(&R) -> Option<bool>),
}

/// The columns of these rows.
pub fn columns<R>(rows: &[R], of: &[(&str, ColumnOf<R>)]) -> Vec<Column> {
    let text = |text: String| (!text.is_empty()).then_some(text);
    of.iter()
        .map(|(name, get)| {
            let rows = rows.iter();
            let values = match get {
                ColumnOf::Text(get) => {
                    ColumnValues::Text(rows.map(|r| text(get(r).to_owned())).collect())
                }
                ColumnOf::Made(get) => ColumnValues::Text(rows.map(|r| text(get(r))).collect()),
                ColumnOf::Whole(get) => {
                    ColumnValues::Whole(rows.map(|r| get(r).map(whole)).collect())
                }
                ColumnOf::Real(get) => {
                    // JSON has no infinity and spreadsheets read "NaN" as text: such a number is
                    // missing.
                    ColumnValues::Real(rows.map(|r| get(r).filter(|v| v.is_finite())).collect())
                }
                ColumnOf::Time(get) => {
                    ColumnValues::Time(rows.map(|r| get(r).parse().ok()).collect())
                }
                ColumnOf::Flag(get) => ColumnValues::Flag(rows.map(get).collect()),
            };
            let name = (*name).to_owned();
            Column { name, values }
        })
        .collect()
}

fn whole(value: u64) -> i64 {
    // Parquet and most readers know only signed numbers; a count beyond that is no count any more.
    i64::try_from(value).unwrap_or(i64::MAX)
}
