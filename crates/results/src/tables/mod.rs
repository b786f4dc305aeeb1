//! Tables for other programs: typed columns of equal length, written as CSV, JSON or Parquet.
//!
//! Every file of figures that this program writes for machines goes through here, so that a missing
//! value, a time of day or a quoted cell looks the same everywhere. A column is one line: its name,
//! and where a row has its value. Missing is missing, never 0.

mod column;
mod csv;
mod json;
#[cfg_attr(not(feature = "parquet"), path = "no_parquet.rs")]
mod parquet;

pub use column::{Column, ColumnOf, ColumnValues, DataTable, columns};

/// A form of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableForm {
    /// RFC 4180, lines ending in one character, names of the columns first.
    Csv,
    /// An array of one object per row.
    Json,
    /// Apache Parquet, one row group, pages deflated.
    Parquet,
}

impl TableForm {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Json, Self::Parquet];

    /// The word for it, which is also the file extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }

    /// The form of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The whole file.
    ///
    /// # Errors
    /// The message of the library that writes the form.
    pub fn render(self, table: &DataTable) -> Result<Vec<u8>, String> {
        match self {
            Self::Csv => csv::render(table).map_err(|error| error.to_string()),
            Self::Json => Ok(json::render(table)),
            Self::Parquet => parquet::render(table).map_err(|error| error.to_string()),
        }
    }
}
