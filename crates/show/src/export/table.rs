//! What a table is.

use crate::record::Record;
use crate::tables::DataTable;

/// A table of the export, with its columns filled.
pub(crate) struct ExportTable {
    /// The word it is asked for by, and the name of its file.
    pub(crate) name: &'static str,
    /// What a row is, one clause.
    pub(crate) summary: &'static str,
    /// The table over any number of runs.
    pub(crate) of: fn(&[Record]) -> DataTable,
}
