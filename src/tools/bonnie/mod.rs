//! bonnie++ 1.03 and 2.00: its report, its command, its workload, its importer.

mod command;
mod field;
mod import;
mod options;
mod parse;
mod print;
mod report;
mod table;
#[cfg(test)]
mod tests;
mod user;
mod workload;

pub(crate) use parse::{csv_line, parse};
pub(crate) use print::{csv, text};
pub(crate) use report::*;

use super::tool::ClassicTool;

/// bonnie++, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "bonnie++",
    command: command::COMMAND,
    workload: Some(workload::KIND),
    importer: import::IMPORTER,
};
