//! Where runs are read from: a store on this machine, or a database that a team shares.

use std::sync::Arc;

use parking_lot::Mutex;

use super::error::RecordError;
use super::listed::Summaries;
use super::now::Now;
use super::read::Record;
use super::store::{LogVersion, Store};
use super::summary::RunSummary;
use stackrace_base::owned::FileState;

/// Runs that can be read.
pub trait RunSource: std::fmt::Debug + Send + Sync {
    /// Every run, oldest first; one that cannot be read is listed with the reason.
    ///
    /// # Errors
    /// They cannot be listed.
    fn summaries(&self) -> Result<Vec<Arc<RunSummary>>, RecordError>;

    /// Returns true if there is a run of exactly this id. To be asked before anything else about a
    /// run whose id a visitor named.
    fn holds(&self, run: &str) -> bool;

    /// The version of a run's log, which changes whenever the log does. `None` if it is not there,
    /// or cannot be looked at.
    fn version(&self, run: &str) -> Option<LogVersion>;

    /// Reads a run by its whole id, which [`Self::holds`] knows.
    ///
    /// # Errors
    /// It is not found, or its log cannot be read.
    fn read(&self, run: &str) -> Result<Record, RecordError>;

    /// Returns true if a process writes the run's log; `None` if that cannot be seen from here.
    fn goes_on(&self, run: &str) -> Option<bool>;

    /// The present work of a run, where it tells.
    fn now(&self, run: &str) -> Option<Now>;

    /// Returns true if the runs are those of a team, measured wherever its people are.
    fn shared(&self) -> bool;
}

/// The runs of a store, each summed up once for each version of its log.
#[derive(Debug)]
pub struct StoredRuns {
    store: Store,
    summaries: Mutex<Arc<Summaries>>,
}

impl StoredRuns {
    /// Reads from a store; nothing is read yet.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            summaries: Mutex::default(),
        }
    }
}

impl RunSource for StoredRuns {
    fn summaries(&self) -> Result<Vec<Arc<RunSummary>>, RecordError> {
        // The lock is not held while a log is read, or every other page would wait for it.
        let known = Arc::clone(&*self.summaries.lock());
        let listed = self.store.listed(&known)?;
        let all: Vec<Arc<RunSummary>> = listed.iter().map(|(_, run)| Arc::clone(run)).collect();
        let same = |(state, run): &(Option<FileState>, Arc<RunSummary>)| match known.get(&run.run) {
            Some((of, known)) => Some(*of) == *state && Arc::ptr_eq(known, run),
            None => state.is_none(),
        };
        // Only the runs that are there: those that were removed must not take memory for ever.
        if known.len() != listed.len() || !listed.iter().all(same) {
            let kept = listed
                .into_iter()
                .filter_map(|(state, run)| Some((run.run.clone(), (state?, run))));
            *self.summaries.lock() = Arc::new(kept.collect());
        }
        Ok(all)
    }

    fn holds(&self, run: &str) -> bool {
        // An id is never made part of a path before it is known to be one.
        Record::fits_id(run) && self.store.has_log(run)
    }

    fn version(&self, run: &str) -> Option<LogVersion> {
        self.store.version(run).ok()
    }

    fn read(&self, run: &str) -> Result<Record, RecordError> {
        self.store.read(run)
    }

    fn goes_on(&self, run: &str) -> Option<bool> {
        Some(self.store.goes_on(run))
    }

    fn now(&self, run: &str) -> Option<Now> {
        self.store.now(run)
    }

    fn shared(&self) -> bool {
        false
    }
}
