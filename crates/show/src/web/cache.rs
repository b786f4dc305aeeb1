//! The runs on record, kept read as long as their logs do not change.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use maud::Markup;
use parking_lot::Mutex;

use crate::report;
use stackrace_judge::verdict::{self, Evidence, Verdict};
use stackrace_results::record::{LogVersion, Now, Record, RecordError, RunSource, RunSummary};

/// Records kept read, the last ones asked for.
const RECORDS_MAX: usize = 24;

/// Bytes of the logs of the records that are kept. A record takes several times as much.
const RECORD_BYTES_MAX: u64 = 32 << 20;

/// Outlines kept, the last ones asked for. They lack the complete trials, which are nearly all of a record.
const OUTLINES_MAX: usize = 2000;

/// Logs that are read side by side for one page.
const READERS_MAX: usize = 4;

/// Runs that were read, with the version of the log that was read, the last one at the end.
type Known = Mutex<VecDeque<(String, LogVersion, Arc<Judged>)>>;

/// The runs of a store, or of a team.
#[derive(Debug)]
pub(super) struct RunCache {
    source: Arc<dyn RunSource>,
    records: Known,
    /// Records without complete trials: what a history needs of many runs.
    outlines: Known,
    /// Held while a whole record is read.
    reading: Mutex<()>,
}

/// A run and what follows from it so far.
#[derive(Debug)]
pub(super) struct Judged {
    /// Everything that the log holds so far.
    pub(super) record: Record,
    /// Verdict on the record so far.
    pub(super) verdict: Verdict,
    // A record never changes here, so what is written of it once holds: a report of a thousand trials
    // takes longer to make than to send.
    body: OnceLock<Markup>,
    file: OnceLock<Vec<u8>>,
}

impl Judged {
    /// Everything the run's report says, for a page.
    pub(super) fn body(&self) -> &Markup {
        self.body.get_or_init(|| {
            report::body(
                &self.record,
                &self.verdict,
                &report::ReportOptions::default(),
            )
        })
    }

    /// The report as a file of its own.
    pub(super) fn file(&self) -> &[u8] {
        let html = || {
            report::by_name("html").map(|html| {
                html.render(
                    &self.record,
                    &self.verdict,
                    &report::ReportOptions::default(),
                )
            })
        };
        self.file.get_or_init(|| html().unwrap_or_default())
    }
}

/// Stage of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// The run goes on; its work at this moment, where it tells.
    Running(Option<Box<Now>>),
    /// The run came to its end.
    Finished,
    /// The run was stopped or killed; `stackrace resume` goes on with it.
    Interrupted,
    /// The run ended because something failed.
    Failed,
    /// The run had not ended when it was entered here; whether it goes on elsewhere is not known.
    NotEnded,
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
            Self::NotEnded => "not ended",
            Self::Unreadable => "unreadable",
        }
    }
}

impl RunCache {
    /// Over what runs are read from.
    pub(super) fn new(source: Arc<dyn RunSource>) -> Self {
        Self {
            source,
            records: Known::default(),
            outlines: Known::default(),
            reading: Mutex::default(),
        }
    }

    /// Every run with how far it is, newest first.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub(super) fn list(&self) -> Result<Vec<(Arc<RunSummary>, Stage)>, RecordError> {
        let with_stage = |summary: Arc<RunSummary>| {
            let stage = match &summary.unreadable {
                Some(_) => Stage::Unreadable,
                None => self.stage(&summary.run, summary.ended.as_deref()),
            };
            (summary, stage)
        };
        let summaries = self.source.summaries()?.into_iter();
        // The order of the source, and not that of times: a clock may have been set between two runs.
        let mut list: Vec<(Arc<RunSummary>, Stage)> = summaries.map(with_stage).collect();
        list.reverse();
        Ok(list)
    }

    /// Stage of a run that ended for this reason, or did not end.
    pub(super) fn stage(&self, run: &str, ended: Option<&str>) -> Stage {
        match ended {
            None => match self.source.goes_on(run) {
                Some(true) => Stage::Running(self.now(run).map(Box::new)),
                Some(false) => Stage::Interrupted,
                None => Stage::NotEnded,
            },
            Some("interrupted") => Stage::Interrupted,
            Some("failed") => Stage::Failed,
            Some(_) => Stage::Finished,
        }
    }

    /// Returns true if a process writes a run's log; the log is not read for that.
    pub(super) fn goes_on(&self, run: &str) -> bool {
        self.source.goes_on(run) == Some(true)
    }

    /// Value that changes whenever a run's log does; `None` if it is not there.
    pub(super) fn version(&self, run: &str) -> Option<LogVersion> {
        self.source.version(run)
    }

    /// Returns true if they are those of a team, not of this machine.
    pub(super) fn shared(&self) -> bool {
        self.source.shared()
    }

    /// Work of a run at the moment, where it tells.
    pub(super) fn now(&self, run: &str) -> Option<Now> {
        self.source.now(run)
    }

    /// Returns true if there is a run of exactly this id. An id is never made part of a path before that.
    pub(super) fn holds(&self, run: &str) -> bool {
        self.source.holds(run)
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
        if let Some(judged) = self.current(run, &self.records)?.1 {
            return Ok(judged);
        }
        // A record is large: its visitors wait for the first of them, and do not all read it.
        let _one_at_a_time = self.reading.lock();
        self.kept(
            run,
            &self.records,
            (RECORDS_MAX, RECORD_BYTES_MAX),
            |record| record,
        )
    }

    /// The same without its complete trials.
    ///
    /// # Errors
    /// There is none, or its log cannot be read.
    fn outline(&self, run: &str) -> Result<Arc<Judged>, RecordError> {
        // Nearly all of a log is not in its outline.
        self.kept(
            run,
            &self.outlines,
            (OUTLINES_MAX, u64::MAX),
            Record::outline,
        )
    }

    /// The version of a run's log, and the run where that was read already.
    fn current(
        &self,
        run: &str,
        known: &Known,
    ) -> Result<(LogVersion, Option<Arc<Judged>>), RecordError> {
        let Some(version) = self.holds(run).then(|| self.version(run)).flatten() else {
            // A store names the nearest; a beginning of an id is not enough here.
            return Err(RecordError::Unknown {
                wanted: run.to_owned(),
                nearest: Vec::new(),
            });
        };
        let known = known.lock();
        let read = known
            .iter()
            .find(|(id, read, _)| id == run && *read == version);
        Ok((version, read.map(|(.., judged)| Arc::clone(judged))))
    }

    /// A run from those that are kept, or read now and kept as `of` makes it.
    fn kept(
        &self,
        run: &str,
        known: &Known,
        (most, bytes_max): (usize, u64),
        of: impl Fn(Record) -> Record,
    ) -> Result<Arc<Judged>, RecordError> {
        let (version, current) = self.current(run, known)?;
        if let Some(judged) = current {
            return Ok(judged);
        }
        // That of a run that goes on is read again and again: the one before is given back first.
        known.lock().retain(|(id, ..)| id != run);
        let record = self.source.read(run)?;
        let verdict = verdict::judge(&Evidence::of(&record));
        let judged = Arc::new(Judged {
            record: of(record),
            verdict,
            body: OnceLock::new(),
            file: OnceLock::new(),
        });
        let mut known = known.lock();
        // Two visitors may have had it read at once: one record of a run stays.
        known.retain(|(id, ..)| id != run);
        known.push_back((run.to_owned(), version, Arc::clone(&judged)));
        // The last one always stays: it is being looked at.
        let bytes = |known: &VecDeque<(String, LogVersion, _)>| -> u64 {
            known.iter().map(|(_, (bytes, _), _)| bytes).sum()
        };
        while known.len() > most || known.len() > 1 && bytes(&known) > bytes_max {
            known.pop_front();
        }
        Ok(judged)
    }

    /// Reads the outlines of the newest runs ahead of their first visitor.
    pub(super) fn read_ahead(&self) {
        let newest = self.list().unwrap_or_default();
        // The newest last: what was read first is forgotten first.
        for (run, _) in newest.iter().take(OUTLINES_MAX).rev() {
            // What cannot be read now is said to the one who asks for it.
            let _ = self.outline(&run.run);
        }
    }

    /// Several runs without their complete trials, read side by side; those that cannot be read are left out.
    pub(super) fn outlines(&self, runs: &[&str]) -> Vec<Arc<Judged>> {
        let next = AtomicUsize::new(0);
        let mut read: Vec<OnceLock<Arc<Judged>>> = Vec::new();
        read.resize_with(runs.len(), OnceLock::new);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..processors.min(READERS_MAX).min(runs.len()) {
                scope.spawn(|| {
                    // Logs differ in length: the one that is done first takes the next.
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(run) = runs.get(at) else { break };
                        if let Ok(judged) = self.outline(run) {
                            let _ = read[at].set(judged);
                        }
                    }
                });
            }
        });
        read.into_iter().filter_map(OnceLock::into_inner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_results::record::sample;
    use std::sync::Weak;

    /// A run that goes on, looked at by several visitors at once.
    #[derive(Debug, Default)]
    struct Growing {
        version: AtomicUsize,
        asked: AtomicUsize,
        reads: AtomicUsize,
        /// What a visitor got before, and how often it was still kept when the log was read again.
        before: Mutex<Weak<Judged>>,
        both: AtomicUsize,
    }

    /// Visitors at once.
    const VISITORS: usize = 4;

    impl RunSource for Growing {
        fn summaries(&self) -> Result<Vec<Arc<RunSummary>>, RecordError> {
            Ok(Vec::new())
        }

        fn holds(&self, _run: &str) -> bool {
            true
        }

        fn version(&self, _run: &str) -> Option<LogVersion> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            Some((self.version.load(Ordering::SeqCst) as u64, 0))
        }

        fn read(&self, _run: &str) -> Result<Record, RecordError> {
            // Until all of them have found that it is not known.
            while self.asked.load(Ordering::SeqCst) < VISITORS {
                std::thread::yield_now();
            }
            self.reads.fetch_add(1, Ordering::SeqCst);
            let kept = self.before.lock().upgrade().is_some();
            self.both.fetch_add(usize::from(kept), Ordering::SeqCst);
            Ok(sample::record(&sample::small()))
        }

        fn goes_on(&self, _run: &str) -> Option<bool> {
            Some(true)
        }

        fn now(&self, _run: &str) -> Option<Now> {
            None
        }

        fn shared(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_run_that_goes_on_is_read_once_for_all_its_visitors_and_is_never_held_twice() {
        let source = Arc::new(Growing::default());
        let cache = RunCache::new(Arc::clone(&source) as Arc<dyn RunSource>);
        for version in 1..=3 {
            source.version.store(version, Ordering::SeqCst);
            source.asked.store(0, Ordering::SeqCst);
            std::thread::scope(|scope| {
                for _ in 0..VISITORS {
                    scope.spawn(|| cache.judged("run").unwrap());
                }
            });
            assert_eq!(source.reads.load(Ordering::SeqCst), version);
            *source.before.lock() = Arc::downgrade(&cache.known("run").unwrap());
        }
        assert_eq!(source.both.load(Ordering::SeqCst), 0);
    }

    /// Runs that are known by their lists alone.
    #[derive(Debug)]
    struct Listed(Vec<Arc<RunSummary>>);

    impl RunSource for Listed {
        fn summaries(&self) -> Result<Vec<Arc<RunSummary>>, RecordError> {
            Ok(self.0.clone())
        }

        fn holds(&self, _run: &str) -> bool {
            false
        }

        fn version(&self, _run: &str) -> Option<LogVersion> {
            None
        }

        fn read(&self, run: &str) -> Result<Record, RecordError> {
            Err(RecordError::Unknown {
                wanted: run.to_owned(),
                nearest: Vec::new(),
            })
        }

        fn goes_on(&self, _run: &str) -> Option<bool> {
            None
        }

        fn now(&self, _run: &str) -> Option<Now> {
            None
        }

        fn shared(&self) -> bool {
            true
        }
    }

    #[test]
    fn the_list_begins_with_the_run_that_was_begun_last_whatever_the_clock_said() {
        let run = |run: &str, started_at: &str| {
            Arc::new(RunSummary {
                run: run.to_owned(),
                started_at: started_at.to_owned(),
                ..RunSummary::default()
            })
        };
        // The clock was set back by a day between the two.
        let runs = vec![
            run("first", "2026-11-22T14:05:00.000Z"),
            run("second", "2026-11-21T14:06:00.000Z"),
        ];
        let cache = RunCache::new(Arc::new(Listed(runs)));
        let list = cache.list().unwrap();
        let ids: Vec<&str> = list.iter().map(|(run, _)| run.run.as_str()).collect();
        assert_eq!(ids, ["second", "first"]);
    }
}
