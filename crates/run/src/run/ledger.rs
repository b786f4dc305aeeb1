//! The log, the index and the record in memory, kept the same.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::executor::Broken;
use stackrace_base::event::{Ended, Event, LogLine, Observation, WorkDone};
use stackrace_judge::verdict::KeptEvidence;
use stackrace_load::programs::other_work;
use stackrace_results::record::{Index, Log, Record, RecordError};

/// Keeper of every event of a run.
pub struct Ledger {
    log: Log,
    index: Option<Index>,
    record: Record,
    /// What the checks have read of the record.
    kept: KeptEvidence,
    /// Reason why the index is no longer kept, for the one who asks.
    index_trouble: Option<String>,
    copy: Option<LineCopy>,
    /// Time spent before the first line of this execution, ns.
    before_ns: u64,
}

/// A function that is told each line as it is written; it returns false if it wants no more of them.
pub(super) type LineCopy = Box<dyn FnMut(&LogLine) -> bool + Send>;

impl Ledger {
    /// Joins a log that is open with what it holds already.
    pub fn new(log: Log, index: Result<Index, RecordError>, record: Record) -> Self {
        let mut trouble = None;
        let mut index = index
            .map_err(|error| trouble = Some(error.to_string()))
            .ok();
        // An execution that was killed may have written lines that the index missed.
        for line in &record.lines {
            if let Some(open) = &mut index
                && let Err(error) = open.note(&record.head, line)
            {
                trouble = Some(error.to_string());
                index = None;
            }
        }
        Self {
            log,
            index,
            record,
            kept: KeptEvidence::default(),
            index_trouble: trouble,
            copy: None,
            before_ns: 0,
        }
    }

    /// Notes time that was spent before anything was on record: on machines that had to start, or be reached.
    pub fn spend(&mut self, ns: u64) {
        self.before_ns = self.before_ns.saturating_add(ns);
    }

    /// Time spent of what the run may take, s.
    pub fn spent_seconds(&self) -> f64 {
        self.record.elapsed_seconds() + self.before_ns as f64 / 1e9
    }

    /// Returns all lines that were recorded so far, read.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The same with what was read of it until now, for a look at it.
    pub fn looked_at(&mut self) -> (&mut KeptEvidence, &Record) {
        (&mut self.kept, &self.record)
    }

    /// Tells another of each line: first of those on record, then of the others as they are written.
    pub fn copy_to(&mut self, mut copy: LineCopy) {
        // `all` ends with the first line that is not wanted, and then none is.
        if self.record.lines.iter().all(&mut copy) {
            self.copy = Some(copy);
        }
    }

    /// Returns why the index is not kept; `None` if it is.
    pub fn index_trouble(&self) -> Option<&str> {
        self.index_trouble.as_deref()
    }

    /// Writes one event. The log is the truth and must take it; a failing index is given up, as it
    /// can be rebuilt from the log.
    ///
    /// # Errors
    /// The log could not be written.
    pub fn append(&mut self, mut event: Event) -> Result<(), RecordError> {
        if let Event::Trial(trial) = &mut event {
            refuse_other_work(&self.record, trial);
        }
        if let Some(text) = self.log.clock_was_set() {
            self.write(Event::Warned { text })?;
        }
        self.write(event)
    }

    fn write(&mut self, event: Event) -> Result<(), RecordError> {
        let line = self.log.append(event)?;
        if let Some(index) = &mut self.index
            && let Err(error) = index.note(&self.record.head, &line)
        {
            self.index_trouble = Some(error.to_string());
            self.index = None;
        }
        // After the log: a line that is on record nowhere did not happen.
        if self.copy.as_mut().is_some_and(|copy| !copy(&line)) {
            self.copy = None;
        }
        self.record.push(line);
        // The line is on record. What follows from here would be where no command looks for it.
        self.in_place()
    }

    /// Makes sure that the log still is where it was made.
    ///
    /// # Errors
    /// It was moved, with all its lines, or removed.
    pub fn in_place(&self) -> Result<(), RecordError> {
        self.log.in_place()
    }
}

/// Fails a trial whose program did other work than on record: in an earlier execution, or on another machine. Processes
/// compare only their own trials.
fn refuse_other_work(record: &Record, trial: &mut Observation) {
    if trial.ended != Ended::Complete {
        return;
    }
    let works = |trial: &'_ Observation| -> Vec<WorkDone> {
        let works = trial
            .phases
            .iter()
            .filter_map(|phase| phase.work.as_deref());
        works.cloned().collect()
    };
    for own in works(trial) {
        let complete = record.trials().filter(|it| it.ended == Ended::Complete);
        let mut known = complete.flat_map(works);
        let Some(first) = known.find(|known| known.command == own.command) else {
            continue;
        };
        if let Some(error) = other_work("its program", &first.results, &own.results) {
            trial.ended = Ended::Failed { error };
            // Figures of other work are no figures of this one.
            trial.metrics.fill(None);
            return;
        }
    }
}

/// A ledger shared by the race and by the host that records its commands.
#[derive(Clone)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// Lets several threads write to a ledger.
    pub fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// The ledger, for as long as the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock()
    }

    /// Writes one event.
    ///
    /// # Errors
    /// As for [`Ledger::append`].
    pub fn tell(&self, event: Event) -> Result<(), Broken> {
        let written = self.lock().append(event);
        written.map_err(|error| Broken(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::Fact;
    use stackrace_results::record::sample;

    /// The first trial of a record, as one whose program says that it wrote blocks of this size.
    fn trial(of: &Record, command: &str, block: &str) -> Observation {
        let mut trial = of.trials().next().unwrap().clone();
        trial.phases[0].work = Some(Box::new(WorkDone {
            command: command.to_owned(),
            results: vec![vec![Fact::new("bs", block)]],
        }));
        trial
    }

    #[test]
    fn a_trial_of_other_work_than_on_record_fails_whichever_process_measured_it() {
        let mut record = sample::record(&sample::small());
        let first = Event::Trial(Box::new(trial(&record, "dd", "4k")));
        let line = LogLine {
            event: first,
            ..record.lines[0].clone()
        };
        record.push(line);
        let told = |command, block| {
            let mut own = trial(&record, command, block);
            refuse_other_work(&record, &mut own);
            own
        };
        assert_eq!(told("dd", "4k").ended, Ended::Complete);
        assert_eq!(told("another command", "64k").ended, Ended::Complete);
        let refused = told("dd", "64k");
        let why = refused.ended.error().unwrap_or_default();
        assert!(why.contains("bs=64k instead of 4k"), "{why}");
        assert!(refused.metrics.iter().all(Option::is_none));
    }
}
