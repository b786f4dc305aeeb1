//! Stands for the index where the program was built without SQLite.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::Path;

use super::error::RecordError;
use super::read::Record;
use super::summary::{IndexedRun, RunSummary};
use stackrace_base::event::{LogLine, RunStarted};
use stackrace_base::owned::FileState;

/// Reason for which something was not mended in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unhealed {
    /// The file itself is damaged, so it must be made anew.
    Damaged,
}

/// The index of a program built without SQLite: no value of it exists.
#[derive(Debug)]
pub struct Index(Infallible);

impl Index {
    /// Refuses: a run goes on without an index.
    pub(super) fn open(_: &Path) -> Result<Option<Self>, RecordError> {
        Err(missing("write"))
    }

    /// Says that this program was built without the index.
    pub(super) fn rebuild<R: Iterator<Item = IndexedRun>>(
        _: &Path,
        _: impl Fn() -> R,
    ) -> Result<Self, RecordError> {
        Err(missing("rebuild"))
    }

    /// Cannot be called, as there is no value.
    pub fn note(&mut self, _: &RunStarted, _: &LogLine) -> Result<(), RecordError> {
        match self.0 {}
    }

    /// Cannot be called, as there is no value.
    pub(super) fn listed(&self) -> Result<HashMap<String, (FileState, RunSummary)>, RecordError> {
        match self.0 {}
    }

    /// Cannot be called, as there is no value.
    pub(super) fn heal(
        &mut self,
        _: &Record,
        _: &FileState,
        _: &RunSummary,
        _: bool,
    ) -> Result<(), Unhealed> {
        match self.0 {}
    }

    /// Cannot be called, as there is no value.
    pub(super) fn forget_others(&mut self, _: &HashSet<&str>) -> Result<(), Unhealed> {
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
