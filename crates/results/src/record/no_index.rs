//! Stands for the index where the program was built without SQLite.

use std::convert::Infallible;
use std::path::Path;

use super::error::RecordError;
use super::read::Record;
use stackrace_base::event::LogLine;

/// The index of a program built without SQLite: no value of it exists.
#[derive(Debug)]
pub struct Index(Infallible);

impl Index {
    /// Refuses: a run goes on without an index.
    pub(super) fn open(_: &Path) -> Result<Option<Self>, RecordError> {
        Err(missing("write"))
    }

    /// Says that this program was built without the index.
    pub(super) fn rebuild<R: Iterator<Item = Record>>(
        _: &Path,
        _: impl Fn() -> R,
    ) -> Result<Self, RecordError> {
        Err(missing("rebuild"))
    }

    /// Cannot be called, as there is no value.
    pub fn note(&mut self, _: &str, _: &LogLine) -> Result<(), RecordError> {
        match self.0 {}
    }

    /// Cannot be called, as there is no value.
    pub(super) fn forget(&mut self, _: &str) -> Result<(), RecordError> {
        match self.0 {}
    }
}

fn missing(tried: &'static str) -> RecordError {
    RecordError::Index {
        tried,
        why: "built without SQLite (cargo install --path . --features full)".to_owned(),
    }
}
