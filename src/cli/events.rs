//! `--events FILE|-`: the lines of a run's log, copied as they are made.

use stackrace_base::unit::{InWords, ShownPath};
use std::io::Write;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::failure::Failure;
use super::output;
use super::terminal::error;
use stackrace_run::run::Ledger;

/// Destination of the lines of the run of this command.
#[derive(Debug, Default)]
pub(super) struct EventCopy {
    to: Mutex<Option<PathBuf>>,
}

impl EventCopy {
    /// Names the file; nothing is opened or emptied before the run begins.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn name(&self, path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        output::check(path)?;
        // A resumed run goes back to the directory where it was begun.
        let path = match output::is_standard_output(path) {
            true => PathBuf::from("-"),
            false => std::path::absolute(path).map_err(|error| {
                Failure::usage(format!("--events: {error}", error = error.in_words()))
            })?,
        };
        *self.to.lock() = Some(path);
        Ok(())
    }

    /// Returns true if standard output has the lines, and nothing else.
    pub(super) fn is_on_standard_output(&self) -> bool {
        let to = self.to.lock();
        to.as_deref().is_some_and(output::is_standard_output)
    }

    /// Begins to copy what a run writes.
    pub(super) fn begin(&self, ledger: &mut Ledger) {
        let Some(path) = self.to.lock().clone() else {
            return;
        };
        let mut file = match output::open(&path) {
            Ok(file) => file,
            Err(failure) => return error(&failure.render()),
        };
        ledger.copy_to(Box::new(move |line| {
            let Ok(mut text) = serde_json::to_string(line) else {
                return true;
            };
            text.push('\n');
            let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
            if let Err(why) = &written {
                // The run is worth more than its copy.
                let (path, why) = (path.shown(), why.in_words());
                error(&format!("warning: --events: {path}: {why}\n"));
            }
            written.is_ok()
        }));
    }
}
