//! Runs as long tables for other programs: CSV, JSON and Parquet, read by them as they are.
//!
//! A table is typed columns of equal length; every form writes the same ones. A column is one line
//! of its table's file: its name, and where a row has its value. `docs/formats/export.md` lists the
//! columns with their units, and a test holds the two together.
//!
//! Units: bytes, nanoseconds, per second, as in the log; times of day in UTC. A value that could
//! not be had is missing, never 0.

mod around;
mod comparisons;
mod cuts;
mod inside;
mod table;
#[cfg(test)]
mod tests;
mod trials;

pub use table::ExportTable;

/// Every table, alphabetical.
pub const ALL: &[ExportTable] = &[
    around::COMMANDS,
    comparisons::COMPARISONS,
    cuts::CUTS,
    trials::DEVICES,
    around::ENVIRONMENT,
    inside::LATENCY,
    trials::OBSERVATIONS,
    inside::PHASES,
    around::RUNS,
    inside::SERIES,
    trials::TRIALS,
];
