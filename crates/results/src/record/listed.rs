//! Lists of runs, from the index where it has them.
//!
//! The index keeps the summary of each run with the state of the log that it was made of. A log in
//! another state is read again, so a list is always that of the logs, and what it finds out heals the
//! index. Without an index, every log is read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use super::error::RecordError;
use super::index::{Index, Unhealed};
use super::log::{self, LOG};
use super::store::Store;
use super::summary::{IndexedRun, RunSummary};
use super::tags;
use stackrace_base::owned::FileState;

/// Logs that are read side by side for a rebuild.
const READERS_MAX: usize = 4;

/// Summaries that are known already, each with the state of the log it was made of.
pub(super) type Summaries = HashMap<String, (FileState, Arc<RunSummary>)>;

/// What is seen of a run without reading its log.
struct SeenRun {
    run: String,
    /// `None` if its directory or its log is refused.
    state: Option<FileState>,
    tags: Vec<String>,
}

/// State of a run's log, as it was read or seen, and what a list says of the run.
type ListedRun = (Option<FileState>, Arc<RunSummary>);

impl SeenRun {
    /// The summary with the tags that the run has now.
    fn tagged(&self, summary: &Arc<RunSummary>) -> Arc<RunSummary> {
        if summary.tags == self.tags {
            return Arc::clone(summary);
        }
        Arc::new(RunSummary {
            tags: self.tags.clone(),
            ..RunSummary::clone(summary)
        })
    }
}

impl Store {
    /// Every run, oldest first; one that cannot be read is listed with the reason.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn runs(&self) -> Result<Vec<Arc<RunSummary>>, RecordError> {
        let listed = self.listed(&Summaries::new())?;
        Ok(listed.into_iter().map(|(_, summary)| summary).collect())
    }

    /// The same with the states of the logs: of what is known, of the index, or read now.
    pub(super) fn listed(&self, known: &Summaries) -> Result<Vec<ListedRun>, RecordError> {
        let seen = self.each(|run, dir| SeenRun {
            run,
            state: dir.and_then(|(_, state)| state),
            tags: dir
                .map(|(dir, _)| tags::read(dir))
                .unwrap_or_default()
                .into_iter()
                .collect(),
        })?;
        let same = |run: &SeenRun| {
            let (of, summary) = known.get(&run.run)?;
            (Some(*of) == run.state).then(|| run.tagged(summary))
        };
        let mut healer = None;
        let mut listed = Vec::with_capacity(seen.len());
        for run in &seen {
            let summary = same(run).unwrap_or_else(|| {
                let healer = healer.get_or_insert_with(|| Healer::new(self));
                healer.summary(run)
            });
            listed.push((run.state, summary));
        }
        if let Some(healer) = healer {
            healer.end(&seen.iter().map(|run| run.run.as_str()).collect());
        }
        Ok(listed)
    }

    /// Opens the index. One that is missing, damaged or of an older schema is rebuilt from the
    /// logs.
    ///
    /// # Errors
    /// The index cannot be used; nothing else is affected.
    pub fn index(&self) -> Result<Index, RecordError> {
        match Index::open(self.dir())? {
            Some(index) => Ok(index),
            None => self.reindex(),
        }
    }

    /// Rebuilds the index from the logs; runs that cannot be read are left out.
    ///
    /// # Errors
    /// The index cannot be written, or there is no store.
    pub fn reindex(&self) -> Result<Index, RecordError> {
        if !self.is_there() {
            return Err(RecordError::nothing_in(self.dir(), false));
        }
        let ids = Arc::new(self.ids()?);
        Index::rebuild(self.dir(), || self.read_side_by_side(&ids))
    }

    /// Reads runs ahead of the one who enters them; where no thread can be had, as they are entered.
    fn read_side_by_side(&self, ids: &Arc<Vec<String>>) -> Box<dyn Iterator<Item = IndexedRun>> {
        let readers = std::thread::available_parallelism().map_or(1, usize::from);
        // As many wait as are read: a record can take a lot of memory.
        let (give, take) = sync_channel(1);
        let next = Arc::new(AtomicUsize::new(0));
        let mut started = false;
        for _ in 0..readers.min(READERS_MAX) {
            let mut runs = self.indexed(ids, &next);
            let give = give.clone();
            // Ends also when none is taken any more: the index could not be written.
            let reader = move || _ = runs.all(|run| give.send(run).is_ok());
            started |= std::thread::Builder::new().spawn(reader).is_ok();
        }
        match started {
            true => Box::new(take.into_iter()),
            false => Box::new(self.indexed(ids, &next)),
        }
    }

    /// Runs that none of those who share `next` has read yet. One damaged log must not keep the others out.
    fn indexed(
        &self,
        ids: &Arc<Vec<String>>,
        next: &Arc<AtomicUsize>,
    ) -> impl Iterator<Item = IndexedRun> + Send + use<> {
        let (store, ids, next) = (self.clone(), Arc::clone(ids), Arc::clone(next));
        let each = std::iter::from_fn(move || {
            let run = ids.get(next.fetch_add(1, Ordering::Relaxed))?;
            let state = store.lasting(run);
            Some(store.read_run(run).ok().map(|record| (record, state)))
        });
        each.flatten()
    }

    /// State of a log that no program writes.
    fn lasting(&self, run: &str) -> Option<FileState> {
        let dir = self.own(run).ok()?;
        let state = dir.state(LOG)?;
        (!log::written(&dir)).then_some(state)
    }
}

/// Lists from the index, and mends what it lacks.
struct Healer<'a> {
    store: &'a Store,
    /// `None` where it cannot be used: a list needs none.
    index: Option<Index>,
    listed: HashMap<String, (FileState, RunSummary)>,
    is_damaged: bool,
}

impl<'a> Healer<'a> {
    fn new(store: &'a Store) -> Self {
        let mut index = store.index().ok();
        let mut listed = index.as_ref().map(Index::listed);
        // Pages inside can be damaged although it can be opened.
        if matches!(listed, Some(Err(_))) {
            // Closed before another one takes its place.
            index.take();
            index = store.reindex().ok();
            listed = index.as_ref().map(Index::listed);
        }
        Self {
            store,
            index,
            listed: listed.and_then(Result::ok).unwrap_or_default(),
            is_damaged: false,
        }
    }

    fn summary(&mut self, seen: &SeenRun) -> Arc<RunSummary> {
        let (run, state) = (&*seen.run, seen.state);
        let listed = self.listed.remove(run);
        let changed = listed.is_some();
        if let Some((of, summary)) = listed
            && Some(of) == state
        {
            return seen.tagged(&Arc::new(summary));
        }
        let (record, summary) = self.store.read_or_said(run);
        // What is still written differs at the next look anyway, and its writer keeps its rows.
        if let (Some(record), Some(index), Some(state)) = (record, &mut self.index, state)
            && self.store.lasting(run) == Some(state)
            && let Err(error) = index.heal(&record, &state, &summary, changed)
        {
            self.is_damaged |= error == Unhealed::Damaged;
        }
        Arc::new(summary)
    }

    /// Takes out what is gone, and makes the index anew if it turned out to be damaged.
    fn end(mut self, runs: &HashSet<&str>) {
        if let Some(index) = &mut self.index
            && let Err(error) = index.forget_others(runs)
        {
            self.is_damaged |= error == Unhealed::Damaged;
        }
        if self.is_damaged {
            self.index = None;
            // Best effort: the list is right without it.
            let _ = self.store.reindex();
        }
    }
}
