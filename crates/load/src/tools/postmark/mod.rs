//! PostMark 1.51: its language, its report, its command, its workload, its importer.

mod command;
mod import;
pub mod language;
mod options;
mod parse;
mod print;
mod report;
#[cfg(test)]
mod tests;
mod unasked;
mod workload;

pub use parse::parse;
pub use report::{metrics, values};

use super::tool::ClassicTool;

/// PostMark, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "postmark",
    command: command::COMMAND,
    workload: Some(workload::KIND),
    importer: import::IMPORTER,
};
