//! Runs as long tables for other programs: CSV, JSON and Parquet, read by them as they are.
//!
//! A table is typed columns of equal length; every form writes the same ones. A column is one line
//! of its table's file: its name, and where a row has its value. `docs/formats/export.md` lists the
//! columns with their units, and a test holds the two together.
//!
//! Units: bytes, nanoseconds, per second, as in the log; times of day in UTC. A value that could
//! not be had is missing, never 0.

mod around;
mod column;
mod comparisons;
mod csv;
mod inside;
mod json;
mod parquet;
#[cfg(test)]
mod tests;
mod trials;

pub(crate) use column::Table;

use crate::record::Record;

/// One table.
pub(crate) struct Kind {
    /// The word it is asked for by, and the name of its file.
    pub(crate) name: &'static str,
    /// What a row is, one clause.
    pub(crate) summary: &'static str,
    /// The table over any number of runs.
    pub(crate) of: fn(&[Record]) -> Table,
}

/// Every table, alphabetical.
pub(crate) const ALL: &[Kind] = &[
    around::COMMANDS,
    comparisons::CONTRASTS,
    trials::DEVICES,
    around::ENVIRONMENT,
    inside::LATENCY,
    trials::OBSERVATIONS,
    inside::PHASES,
    around::RUNS,
    inside::SERIES,
    trials::TRIALS,
];

/// A form of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// RFC 4180, lines ending in one character, names of the columns first.
    Csv,
    /// An array of one object per row.
    Json,
    /// Apache Parquet, one row group, pages deflated.
    Parquet,
}

impl Form {
    /// Every form.
    pub(crate) const ALL: [Self; 3] = [Self::Csv, Self::Json, Self::Parquet];

    /// The word for it, which is also how its files end.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }

    /// The form of that name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The whole file.
    ///
    /// # Errors
    /// What the Parquet library says; the other forms cannot fail.
    pub(crate) fn render(self, table: &Table) -> Result<Vec<u8>, String> {
        match self {
            Self::Csv => Ok(csv::render(table)),
            Self::Json => Ok(json::render(table)),
            Self::Parquet => parquet::render(table).map_err(|error| error.to_string()),
        }
    }
}
