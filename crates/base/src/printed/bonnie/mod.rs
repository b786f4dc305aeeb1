//! Reports of bonnie++: its own importer reads them, and two published studies are lists of them.

mod csv;
pub(crate) mod field;
pub(crate) mod report;

pub(crate) use csv::csv_line;
