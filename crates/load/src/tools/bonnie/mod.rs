//! bonnie++ 1.03 and 2.00: its report, its command, its workload, its importer.

mod command;
mod import;
mod options;
mod parse;
mod print;
mod table;
#[cfg(test)]
mod tests;
mod user;
mod workload;

pub(crate) use crate::printed::bonnie::report::*;
pub(crate) use parse::parse;
pub(crate) use print::{csv, text};

use super::tool::ClassicTool;
use crate::printed::bonnie::{csv_line, field, report};

/// bonnie++, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "bonnie++",
    command: command::COMMAND,
    workload: Some(workload::KIND),
    importer: import::IMPORTER,
};
