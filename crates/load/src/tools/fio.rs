//! fio, as [`super::ALL`] lists it: its reports are read, and `stackrace fio` says what takes the place of the
//! imitation that it once was. Its jobs and reports are in `crates/fio`.

use clap::Command;

use super::tool::{ClassicTool, ToolCommand, raw_command};
use stackrace_base::failure::Failure;
use stackrace_fio::fio::IMPORTER;

/// fio, as `tools::ALL` lists it.
pub(super) const TOOL: ClassicTool = ClassicTool {
    name: "fio",
    command: COMMAND,
    workload: None,
    importer: IMPORTER,
};

const COMMAND: ToolCommand = ToolCommand {
    arguments: |command: Command| {
        let about = "Gone: fio itself is measured, see compare --fio";
        raw_command(command, about, "Whatever fio takes").hide(true)
    },
    run: |_, _| {
        Err(Failure::usage(
            "stackrace does not imitate fio any more: it starts the fio that is installed",
        )
        .next("write stackrace compare DIR DIR --fio JOB.fio, stackrace load DIR fio job=JOB.fio, or run fio itself"))
    },
};
