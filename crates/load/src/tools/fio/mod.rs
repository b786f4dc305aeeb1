//! fio: its job files done (`stackrace fio`), its reports printed and read.
//!
//! The semantics are those of fio's manual and of its behaviour; no code is its. The job language is
//! resolved as far as words go (`language`, `job`), then against the machine (`plan`), and run (`run`).

mod command;
#[cfg(test)]
mod command_tests;
mod import;
mod job;
mod known;
mod language;
mod logs;
mod measured;
mod options;
mod place;
mod plan;
mod print_json;
mod print_normal;
mod rates;
mod read_json;
mod read_normal;
mod report;
mod results;
mod run;
mod runs;
mod spelling;
#[cfg(test)]
mod tests;
mod value;

pub use job::jobs;
pub use language::Sections;
pub use place::OptionPlace;
pub use print_normal::announced;

use super::tool::ClassicTool;

/// fio, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "fio",
    command: command::COMMAND,
    workload: None,
    importer: import::IMPORTER,
};
