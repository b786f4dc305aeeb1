//! `stackrace fio`: says what takes the place of the imitation of fio that it once was.

use clap::Command;

use super::super::tool::{ToolCommand, raw_command};
use stackrace_base::failure::Failure;

/// `stackrace fio`, for [`super::TOOL`].
pub(super) const COMMAND: ToolCommand = ToolCommand {
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
