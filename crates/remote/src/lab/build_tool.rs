//! A tool that takes minutes to build an image: it ends with this program.

use super::error::LabError;
use stackrace_base::event::shell;
use stackrace_machine::host::program::{self, ProgramCall};
use stackrace_machine::host::{HostError, Output};
use std::ffi::OsString;
use std::path::Path;

/// Runs a command to its end, or ends it with all that it began as soon as `stopped` says so.
///
/// # Errors
/// It cannot be started, it fails, or it was stopped.
pub(super) fn run(
    words: &[OsString],
    work: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<(), LabError> {
    let ran = program::run(&ProgramCall {
        argv: words,
        directory: work,
        environment: &[],
        time_max_ns: u64::MAX,
        durable: false,
        leaves_server: false,
        stopped,
        lines: None,
    })?;
    match (ran.cut, ran.status) {
        (Some(_), _) => Err(LabError::Interrupted),
        (None, Some(0)) => Ok(()),
        (None, status) => Err(LabError::Host(HostError::Failed {
            command: shell(words),
            output: Output {
                status,
                stdout: ran.stdout,
                stderr: ran.stderr,
            },
        })),
    }
}
