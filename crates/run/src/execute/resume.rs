//! A run that stopped, continued.

use stackrace_base::unit::InWords;
use std::path::Path;
use std::sync::Arc;

use crate::execute::virtual_clock;
use crate::execute::{self, FinishedRun, unwritten};
use crate::prepare::clean::{outlive, patiently};
use crate::prepare::context::{Context, unjournalled, unrecorded};
use crate::prepare::observer::Observer;
use crate::prepare::permission;
use crate::prepare::preflight;
use crate::prepare::study_file;
use crate::prepare::study_file::NO_LIMIT_NS;
use crate::run::{Ledger, Reason, SharedLedger};
use stackrace_base::event::{Event, Precision, RunPlace, Until, again};
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, GivenClock, SystemClock};
use stackrace_base::unit;
use stackrace_judge::verdict::{Evidence, withheld};
use stackrace_layers::stack;
use stackrace_machine::host::Host;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::{self, Journal};
use stackrace_results::record::{Log, Record, RecordError, Store};
use stackrace_study::study::{ROUNDS_MAX, Study};

/// Limits of a run that goes on for longer than it was begun for. What it found keeps its certainty: the checks have no
/// fixed number.
#[derive(Debug, Clone, Copy)]
pub struct Longer {
    /// Further time, ns.
    pub time_ns: Option<u64>,
    /// Further rounds, whether it is decided or not.
    pub rounds: Option<u32>,
    /// True to go on until the question is decided, without another limit.
    pub until_decided: bool,
    /// How well the size of a difference is to be known, if otherwise than the run was begun with.
    pub precision: Option<Precision>,
}

impl Longer {
    /// Puts it into the study, in place of the limits the run was begun with.
    pub fn apply(self, record: &Record, study: &mut Study) {
        let decide = &mut study.decide;
        if self.until_decided {
            study_file::until_decided(decide);
        }
        if let Some(precision) = self.precision {
            decide.precision = precision;
            // The limits that the run was begun with were for another question.
            if matches!(precision, Precision::Within(_)) {
                study_file::until_decided(decide);
            }
        }
        // Time and rounds that were used already are on record, whatever was allowed at first.
        if let Some(rounds) = self.rounds {
            let done = u32::try_from(record.complete_rounds().len()).unwrap_or(ROUNDS_MAX);
            decide.rounds_max = done.saturating_add(rounds);
            // So many rounds were asked for, needed or not.
            decide.until = Until::Never;
        }
        let used = (record.elapsed_seconds() * 1e9) as u64;
        match (self.time_ns, self.rounds) {
            (Some(more), rounds) => {
                decide.time_max_ns = used.saturating_add(more);
                // More time alone: the number of rounds must not end the run before.
                if rounds.is_none() {
                    decide.rounds_max = ROUNDS_MAX;
                }
            }
            // More rounds alone: the time must not end the run before.
            (None, Some(_)) => decide.time_max_ns = used.saturating_add(NO_LIMIT_NS),
            (None, None) => {}
        }
    }
}

/// A run that stopped, and that no other process writes.
pub struct Stopped {
    log: Log,
    /// Bytes of a last line that was not complete.
    torn: u64,
    /// Record that it left behind.
    pub record: Record,
    /// The clock that goes on where the run's own stopped; `None` if this machine's goes on.
    pub given: Option<Arc<GivenClock>>,
}

impl Stopped {
    /// Takes over a run, so that no other process can, with its study as it was asked for.
    ///
    /// # Errors
    /// There is no such run, it goes on elsewhere, or there is nothing to continue.
    pub fn open(store: &Store, name: &str) -> Result<(Self, Study), Failure> {
        let run = store
            .find(name)
            .map_err(|error| Failure::usage(error.to_string()).next(error.next()))?;
        // Which clock goes on is on record; whatever is wrong with that is found out below.
        let given = store
            .read(&run)
            .ok()
            .and_then(|record| virtual_clock::of(&record));
        let clock: Arc<dyn Clock> = match &given {
            Some(given) => Arc::<GivenClock>::clone(given),
            None => Arc::new(SystemClock),
        };
        let reopen = || store.reopen_run(&run, Arc::clone(&clock));
        let locked = |log: &Result<_, _>| matches!(log, Err(RecordError::Locked { .. }));
        let (log, torn) = patiently(reopen, locked).map_err(|error| match error {
            RecordError::Locked { .. } => Failure::refused(error.to_string()).next(error.next()),
            _ => unrecorded(error),
        })?;
        let record = store.read(&run).map_err(unrecorded)?;
        if record.imported() {
            return Err(Failure::refused(format!(
                "{run} was imported: there is nothing to continue"
            ))
            .next("stackrace import the further results together with these"));
        }
        let mut study = study_file::parse(&record.head.study_name, record.head.study.as_bytes())?;
        // Options of the first command line are in the head alone, not in the study's text.
        study.decide = record.head.decide.clone();
        study.seed = record.head.seed;
        let stopped = Self {
            log,
            torn,
            record,
            given,
        };
        Ok((stopped, study))
    }

    /// Continues it on this machine, to its end.
    ///
    /// # Errors
    /// What it left cannot be removed, or the machine cannot do it any more.
    pub fn resume(
        self,
        context: &Context,
        (study, store): (&Study, &Store),
        warnings: &[String],
        wipe: &[String],
        observer: &dyn Observer,
    ) -> Result<FinishedRun, Failure> {
        // Before the machine is asked: what the dead run left standing takes up the room needed.
        let (journal, leftovers) = self.take_over(store)?;
        preflight::check_machine(context, study)?;
        preflight::check_dangers(study, wipe)?;
        let ledger = self.resumed(store, leftovers, warnings, observer)?;
        execute::execute(context, study, store, ledger, &journal, wipe, observer)
    }

    /// Its journal, with what it had left standing removed, and how many things that were.
    pub fn take_over(&self, store: &Store) -> Result<(Journal, usize), Failure> {
        let dir = store.run_dir(&self.record.head.run);
        let host = LocalHost::new(Arc::new(|_| ()));
        if let Some(commands) = host.user_commands() {
            // `resume` goes on only where the user permits the study's commands, these among them.
            commands.know(permission::undoing_commands(&self.record), true);
        }
        take_over(&host, &dir.join(journal::FILE))
    }

    /// Writes down that it goes on.
    pub fn resumed(
        self,
        store: &Store,
        leftovers: usize,
        warnings: &[String],
        observer: &dyn Observer,
    ) -> Result<SharedLedger, Failure> {
        let run = self.record.head.run.clone();
        let rounds = self.record.complete_rounds().len();
        let idle = why_idle(&self.record, rounds);
        let ledger = SharedLedger::new(Ledger::new(self.log, store.index(), self.record));
        let resumed = Event::RunResumed {
            stackrace: env!("CARGO_PKG_VERSION").to_owned(),
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        };
        ledger.tell(resumed).map_err(unwritten)?;
        let torn = self.torn;
        let torn = (torn > 0).then(|| {
            format!(
                "the log ended in a line of {torn} bytes that was not complete; it was set aside"
            )
        });
        execute::tell_warnings(&ledger, warnings)?;
        execute::tell_warnings(&ledger, torn.as_slice())?;
        if let Some(why) = idle {
            observer.remark(&why);
        }
        // What stood on another machine was removed there, and counts in no journal here: "0" would be false.
        let removed = match leftovers {
            0 => String::new(),
            some => format!(", {} removed", unit::counted(some, "leftover")),
        };
        observer.remark(&format!(
            "resuming {run}: {} on record{removed}",
            unit::counted(rounds, "round")
        ));
        Ok(ledger)
    }

    /// Goes where the run was begun, so that its study means the same directories.
    ///
    /// # Errors
    /// That directory cannot be entered.
    pub fn enter_directory(&self, place: &RunPlace) -> Result<(), Failure> {
        let Some(dir) = place.directory() else {
            return Ok(());
        };
        std::env::set_current_dir(dir).map_err(|error| {
            Failure::refused(format!(
                "the run was begun in {dir}, which cannot be entered: {error}",
                error = error.in_words()
            ))
            .next("make that directory accessible again")
        })
    }
}

/// Why a run that goes on measures nothing; `None` if it does.
fn why_idle(record: &Record, rounds: usize) -> Option<String> {
    let run = &record.head.run;
    let reason = record.ended()?.reason;
    if reason == Reason::Decided.word() {
        return Some(format!(
            "the question of {run} was decided after {rounds} rounds: only --rounds N measures more"
        ));
    }
    if let Some(why) = withheld(&Evidence::of(record)) {
        return Some(format!("{run} measures nothing more: {why}"));
    }
    // What another try would not change stays out, and without it nothing is left to be compared.
    let out = reason == Reason::Failed.word() && record.mendable().is_none();
    out.then(|| {
        format!("{run} measures nothing more: what failed in it would fail again, and stays out")
    })
}

/// The journal of a dead run, and how many things it had left standing, which are removed: they
/// would be in the way, and hold no result.
fn take_over(host: &LocalHost, path: &Path) -> Result<(Journal, usize), Failure> {
    // Killed before it had a journal, a run had created nothing yet.
    let journal = match Journal::open(path) {
        Err(error) if error.is_missing() => Journal::create(path),
        opened => opened,
    }
    .map_err(unjournalled)?;
    outlive(host, path, &journal).map_err(|command| {
        Failure::unable(format!(
            "a command of the interrupted run is still running: {command}"
        ))
        .next("wait until it has ended, or end it")
    })?;
    let report = stack::undo_all(host, &journal).map_err(unjournalled)?;
    match report.failed.first() {
        None => Ok((journal, report.undone.len())),
        Some((what, why)) => Err(Failure::unable(format!(
            "cannot tear down what the interrupted run left ({what}): {why}"
        ))
        .next(format!(
            "mend that, then `{}` and `{}` again",
            again(&["clean"]),
            again(&["resume"])
        ))),
    }
}
