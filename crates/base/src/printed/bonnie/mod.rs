//! Reports of bonnie++: its own importer reads them, and two published studies are lists of them.

mod csv;
pub mod field;
pub mod report;

pub use csv::csv_line;
