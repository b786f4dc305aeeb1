//! A run is removed from the record, once nothing on any machine needs it any more.

use stackrace_base::event::again;
use std::path::Path;

use stackrace_base::failure::Failure;
use stackrace_machine::journal::{self, Journal, JournalError};
use stackrace_results::record::{RecordError, Store};

/// Removes a run, by its whole id.
///
/// # Errors
/// It goes on, something that it made is still there, or the system refuses.
pub(crate) fn run(store: &Store, run: &str) -> Result<(), Failure> {
    let removed = store.remove_run(run, |dir| nothing_left(run, dir));
    removed.map_err(|error| match error {
        NotRemoved::Left(failure) => failure,
        NotRemoved::Record(error) => {
            Failure::refused(format!("{run} is not removed: {error}")).next(error.next())
        }
    })
}

enum NotRemoved {
    Left(Failure),
    Record(RecordError),
}

impl From<RecordError> for NotRemoved {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// The journal is all that knows what the run left on machines: it goes when it names nothing.
fn nothing_left(run: &str, dir: &Path) -> Result<(), NotRemoved> {
    let path = dir.join(journal::FILE);
    let refused = |why: String, next: String| {
        Err(NotRemoved::Left(
            Failure::refused(format!("{run} is not removed: {why}")).next(next),
        ))
    };
    // Neither a link nor a file is there: an imported run made nothing.
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    match Journal::look(&path) {
        Ok(journal) if journal.pending().is_empty() => Ok(()),
        Ok(_) => refused(
            "something that it made may still be there".to_owned(),
            format!("remove that first: {}", again(&["clean"])),
        ),
        Err(error @ JournalError::Live { .. }) => {
            refused(error.to_string(), "wait for its end".to_owned())
        }
        Err(error) => refused(error.to_string(), error.next()),
    }
}
