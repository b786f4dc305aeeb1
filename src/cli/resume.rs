//! `stackrace resume`: a run that stopped goes on.

use std::path::Path;
use std::sync::Arc;

use super::Setting;
use super::args::{Output, Resume};
use super::execute::{self, Asked, BEGUN_IN, broken, parse, unwritten};
use super::failure::{self, Failure};
use crate::event::Event;
use crate::host::local::LocalHost;
use crate::journal::Journal;
use crate::record::{Log, Record, RecordError, Store};
use crate::run::{Ledger, Shared};
use crate::stack;
use crate::time::{Clock, SystemClock};
use crate::unit;

/// `stackrace resume`.
pub(super) fn exec(setting: &Setting, verb: Resume) -> Result<u8, Failure> {
    let store = setting.open_store()?;
    let run = store
        .find(&verb.run)
        .map_err(|error| Failure::usage(error.to_string()).next(error.next()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let reopen = || store.reopen_run(&run, Arc::clone(&clock));
    let locked = |log: &Result<_, _>| matches!(log, Err(RecordError::Locked { .. }));
    let (log, torn) = super::clean::patiently(reopen, locked).map_err(|error| match error {
        RecordError::Locked { .. } => Failure::refused(error.to_string()).next(error.next()),
        _ => broken(error),
    })?;
    let record = store.read(&run).map_err(broken)?;
    can_go_on(&record)?;
    let mut study = parse(&record.head.study_name, record.head.study.as_bytes())?;
    super::plan::check_wipe(&study, &verb.wipe)?;
    // The head says what was really asked: words on the command line are not in the study's text.
    study.decide = record.head.decide.clone();
    study.seed = record.head.seed;
    if let Some(time) = &verb.more_time {
        let more = unit::parse_time_ns(time)
            .map_err(|why| Failure::usage(format!("--more-time: {why}")))?;
        study.decide.time_max_ns = (record.elapsed_seconds() * 1e9) as u64 + more;
    }
    let html = verb
        .output
        .html
        .clone()
        .map(std::path::absolute)
        .transpose();
    let html = html.map_err(|error| Failure::usage(format!("--html: {error}")))?;
    let stopped = Stopped { log, torn, record };
    let output = Output { html };
    if super::lab::made(&stopped.record) {
        return super::lab::resume(setting, &study, &store, stopped, &output);
    }
    if let Some(hosts) = super::on::known(&study, &stopped.record, &verb.reach)? {
        go_back(&stopped.record)?;
        return super::on::resume(setting, &study, &store, stopped, &verb, &hosts, &output);
    }
    go_back(&stopped.record)?;
    // Before the machine is asked: what the dead run left standing takes up the room needed.
    let (journal, leftovers) = stopped.take_over(&store)?;
    super::plan::check_machine(setting, &study)?;
    super::plan::check_dangers(&study, &verb.wipe)?;
    let shared = stopped.resumed(setting, &store, leftovers)?;
    let asked = Asked {
        decide: false,
        wipe: &verb.wipe,
    };
    execute::race(setting, &study, &store, shared, &journal, &asked, &output)
}

/// A run that stopped, and that nobody else writes.
pub(super) struct Stopped {
    log: Log,
    /// Bytes of a last line that was not complete.
    torn: u64,
    /// What it left behind.
    pub(super) record: Record,
}

impl Stopped {
    /// Its journal, with what it had left standing removed, and how many things that were.
    pub(super) fn take_over(&self, store: &Store) -> Result<(Journal, usize), Failure> {
        let dir = store.run_dir(&self.record.head.run);
        take_over(&dir.join("journal.jsonl"))
    }

    /// Writes down that it goes on.
    pub(super) fn resumed(
        self,
        setting: &Setting,
        store: &Store,
        leftovers: usize,
    ) -> Result<Shared, Failure> {
        let run = self.record.head.run.clone();
        let rounds = self.record.complete_rounds().len();
        let shared = Shared::new(Ledger::new(self.log, store.index(), self.record));
        let resumed = Event::RunResumed {
            stackrace: env!("CARGO_PKG_VERSION").to_owned(),
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        };
        shared.tell(resumed).map_err(unwritten)?;
        if self.torn > 0 {
            let text = format!(
                "the log ended in a line of {} bytes that was not complete; it was set aside",
                self.torn
            );
            shared.tell(Event::Warned { text }).map_err(unwritten)?;
        }
        if !setting.quiet {
            super::error(&format!(
                "resuming {run}: {rounds} complete round(s) on record, {leftovers} leftover(s) removed\n"
            ));
        }
        Ok(shared)
    }
}

/// Refuses a run that nobody can go on with.
fn can_go_on(record: &Record) -> Result<(), Failure> {
    let run = &record.head.run;
    if record.imported() {
        return Err(Failure::refused(format!(
            "{run} was imported: there is nothing to go on with"
        ))
        .next("stackrace import the further results together with these"));
    }
    Ok(())
}

/// The journal of a dead run, and how many things it had left standing, which are removed: they
/// would be in the way, and hold no result.
fn take_over(path: &Path) -> Result<(Journal, usize), Failure> {
    // Killed before it had a journal, a run had created nothing yet.
    let journal = if path.exists() {
        Journal::open(path)
    } else {
        Journal::create(path)
    }
    .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    let host = LocalHost::new(Arc::new(|_| ()));
    super::clean::outlive(&host, path, &journal).map_err(|command| {
        let text = format!("a command of the interrupted run is still running: {command}");
        Failure::new(failure::CANNOT, text).next("wait until it has ended, or end it")
    })?;
    let report = stack::undo_all(&host, &journal)
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    match report.failed.first() {
        None => Ok((journal, report.undone.len())),
        Some((what, why)) => Err(Failure::new(
            failure::CANNOT,
            format!("cannot lower what the interrupted run left ({what}): {why}"),
        )
        .next("mend that, then `stackrace clean` and `stackrace resume` again")),
    }
}

/// Goes where a run was begun, so that its study means the same directories.
fn go_back(record: &Record) -> Result<(), Failure> {
    let mut facts = record.head.environment.iter();
    let Some(fact) = facts.find(|fact| fact.name == BEGUN_IN) else {
        return Ok(());
    };
    std::env::set_current_dir(&fact.value).map_err(|error| {
        Failure::refused(format!(
            "the run was begun in {}, which cannot be entered: {error}",
            fact.value
        ))
        .next("make that directory accessible again")
    })
}
