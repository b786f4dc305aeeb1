//! sysbench's fileio test, 0.4.12 and 1.0: its report, its command, its workload, its importer.

mod command;
#[cfg(test)]
mod command_tests;
mod exact;
mod fits;
mod import;
mod lines;
mod measured;
mod options;
mod parse;
mod print;
mod report;
#[cfg(test)]
mod tests;
mod workload;

pub use parse::parse;
pub use print::{head, intermediate, results, started};
pub use report::{metrics, values};

use super::tool::ClassicTool;

/// sysbench, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "sysbench",
    command: command::COMMAND,
    workload: Some(workload::KIND),
    importer: import::IMPORTER,
};
