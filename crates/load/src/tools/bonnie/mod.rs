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

pub use parse::parse;
pub use print::{csv, text};
pub use stackrace_base::printed::bonnie::report::*;

use super::tool::ClassicTool;
use stackrace_base::printed::bonnie::{csv_line, field, report};

/// bonnie++, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "bonnie++",
    command: command::COMMAND,
    workload: Some(workload::KIND),
    importer: import::IMPORTER,
};
