//! The runs on record, kept read as long as their logs do not change.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::record::{Now, Record, RecordError, RunSummary, Store};
use crate::verdict::{self, Evidence, Verdict};

/// Records kept read, the last ones asked for.
const RECORDS_MAX: usize = 24;

/// Bytes and time of a log's last change.
type Version = (u64, i128);

/// The runs of a store.
#[derive(Debug)]
pub(super) struct RunCache {
    store: Store,
    summaries: Mutex<HashMap<String, (Version, RunSummary)>>,
    records: Mutex<VecDeque<(String, Version, Arc<Judged>)>>,
}

/// A run and what follows from it so far.
#[derive(Debug)]
pub(super) struct Judged {
    /// Everything that the log holds so far.
    pub(super) record: Record,
    /// What the record says so far.
    pub(super) verdict: Verdict,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// It goes on; what it does at this moment, where it tells.
    Running(Option<Box<Now>>),
    /// It came to its end.
    Finished,
    /// It was stopped or killed; `stackrace resume` goes on with it.
    Interrupted,
    /// It ended because something failed.
    Failed,
    /// Its log cannot be read.
    Unreadable,
}

impl Stage {
    /// The stage as pages and filters call it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Running(_) => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Unreadable => "unreadable",
        }
    }
}

impl RunCache {
    /// A cache of the runs of this store; nothing is read yet.
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            summaries: Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// Every run with how far it is, newest first.
    ///
    /// # Errors
    /// The store cannot be listed.
    pub(super) fn list(&self) -> Result<Vec<(RunSummary, Stage)>, RecordError> {
        let mut list = Vec::new();
        for run in self.store.ids()? {
            let summary = self.summary(&run);
            let stage = match &summary.unreadable {
                Some(_) => Stage::Unreadable,
                None => self.stage(&run, summary.ended.as_deref()),
            };
            list.push((summary, stage));
        }
        // Ids are by the minute; the first line of the log is not.
        list.sort_by(|a, b| (&b.0.started_at, &b.0.run).cmp(&(&a.0.started_at, &a.0.run)));
        Ok(list)
    }

    fn summary(&self, run: &str) -> RunSummary {
        let version = self.version(run);
        // The lock is not held while a log is read, or every other page would wait for it.
        let known = self.summaries.lock().get(run).cloned();
        if let (Some(version), Some((of, summary))) = (version, known)
            && of == version
        {
            return summary;
        }
        let summary = self.store.summary(run);
        if let Some(version) = version {
            let entry = (version, summary.clone());
            self.summaries.lock().insert(run.to_owned(), entry);
        }
        summary
    }

    /// How far a run is that ended for this reason, or did not end.
    pub(super) fn stage(&self, run: &str, ended: Option<&str>) -> Stage {
        match ended {
            None if self.goes_on(run) => Stage::Running(self.store.now(run).map(Box::new)),
            None | Some("interrupted") => Stage::Interrupted,
            Some("failed") => Stage::Failed,
            Some(_) => Stage::Finished,
        }
    }

    /// Whether a process writes a run's log; the log is not read for that.
    pub(super) fn goes_on(&self, run: &str) -> bool {
        self.store.goes_on(run)
    }

    /// What changes whenever a run's log does; none: it is not there.
    pub(super) fn version(&self, run: &str) -> Option<(u64, i128)> {
        self.store.version(run).ok()
    }

    /// What a run is doing, where it tells.
    pub(super) fn now(&self, run: &str) -> Option<Now> {
        self.store.now(run)
    }

    /// Whether there is a run of exactly this id. An id is never made part of a path before that.
    pub(super) fn holds(&self, run: &str) -> bool {
        let ids = self.store.ids();
        ids.is_ok_and(|ids| ids.iter().any(|id| id == run))
    }

    /// A run as it was read last, for what does not change with every line; see [`Self::judged`].
    ///
    /// # Errors
    /// There is none, or its log cannot be read.
    pub(super) fn known(&self, run: &str) -> Result<Arc<Judged>, RecordError> {
        let known = self
            .records
            .lock()
            .iter()
            .find(|(id, ..)| id == run)
            .cloned();
        known.map_or_else(|| self.judged(run), |(.., judged)| Ok(judged))
    }

    /// A run by its whole id.
    ///
    /// # Errors
    /// There is none, or its log cannot be read.
    pub(super) fn judged(&self, run: &str) -> Result<Arc<Judged>, RecordError> {
        let version = if self.holds(run) {
            self.version(run)
        } else {
            None
        };
        if let Some(version) = version {
            let records = self.records.lock();
            let known = |(id, of, _): &&(String, Version, Arc<Judged>)| id == run && *of == version;
            if let Some((_, _, judged)) = records.iter().find(known) {
                return Ok(Arc::clone(judged));
            }
        }
        let record = match version {
            Some(_) => self.store.read(run)?,
            // The store names the nearest; a beginning of an id is not enough here.
            None => {
                return Err(RecordError::Unknown {
                    wanted: run.to_owned(),
                    nearest: Vec::new(),
                });
            }
        };
        let verdict = verdict::judge(&Evidence::of(&record));
        let judged = Arc::new(Judged { record, verdict });
        if let Some(version) = version {
            let mut records = self.records.lock();
            // Two visitors may have had it read at once: one record of a run stays.
            records.retain(|(id, ..)| id != run);
            records.push_back((run.to_owned(), version, Arc::clone(&judged)));
            if records.len() > RECORDS_MAX {
                records.pop_front();
            }
        }
        Ok(judged)
    }
}
