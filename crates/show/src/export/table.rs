//! What a table is.

use stackrace_results::record::Record;
use stackrace_results::tables::DataTable;

/// A table of the export, with its columns filled.
pub struct ExportTable {
    /// The word it is asked for by, and the name of its file.
    pub name: &'static str,
    /// Meaning of a row, one clause.
    pub summary: &'static str,
    /// The table over any number of runs.
    pub of: fn(&[Record]) -> DataTable,
}
