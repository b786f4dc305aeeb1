//! A run from its first line on record to its verdict.

pub mod resume;
pub mod virtual_clock;

use std::cell::RefCell;
use std::sync::Arc;

use crate::prepare::context::{Context, entropy, unjournalled, unrecorded};
use crate::prepare::observer::{Observer, WatchedRun};
use crate::prepare::preflight;
use crate::run::crash::CrashSide;
use crate::run::{
    Broken, Coordinator, Executor, Ledger, LocalExecutor, Reason, SharedLedger, Watcher,
};
use stackrace_base::event::{
    ConfigurationHead, Event, FORMAT, Fact, LeftBehind, RunPlace, RunStarted, again,
};
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_judge::verdict::{self, Evidence, Verdict};
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::{self, Journal};
use stackrace_machine::observe;
use stackrace_results::record::Store;
use stackrace_study::study::Study;

/// Name of the fact that says in which directory a run was begun.
const BEGUN_IN: &str = "working directory";

/// Actions of the user after a second Ctrl-C.
const LEFT: LeftBehind = LeftBehind {
    clean: &["clean"],
    told: "removes what is left standing",
    resumes: true,
};

/// A run that has come to its end, and what it found.
pub struct FinishedRun {
    /// Store that keeps it.
    pub store: Store,
    /// Everything it recorded.
    pub ledger: SharedLedger,
    /// Verdict that follows from the record.
    pub verdict: Verdict,
    /// Reason why it ended; or what went wrong after the last result on record, which is kept all the same.
    pub ended: Result<Reason, Failure>,
}

/// The store for a study on this machine that wipes no disk: a study that is refused leaves nothing behind.
///
/// # Errors
/// The study cannot be run here, or the store cannot be opened.
pub fn checked_store(context: &Context, study: &Study) -> Result<Store, Failure> {
    preflight::check(context, study, &[])?;
    context.open_store()
}

/// Begins a new run of a study on this machine, and takes it to its end.
///
/// # Errors
/// Nothing can be recorded.
pub fn start(
    context: &Context,
    (study, store): (&Study, &Store),
    warnings: &[String],
    wipe: &[String],
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    let mut environment = observe::environment();
    let begun_in = begun_in();
    let place = RunPlace::Here {
        directory: begun_in.as_ref().map(|fact| fact.value.clone()),
    };
    environment.extend(begun_in);
    let (ledger, journal) = begin(context, (study, store), (place, environment), warnings)?;
    execute(context, study, store, ledger, &journal, wipe, observer)
}

/// Begins to keep a new run at a place with these facts: its record, and the journal of what it makes.
///
/// # Errors
/// Nothing can be recorded.
pub fn begin(
    context: &Context,
    (study, store): (&Study, &Store),
    known: (RunPlace, Vec<Fact>),
    warnings: &[String],
) -> Result<(SharedLedger, Journal), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let head = head(context, study, "", known);
    let begun = store.begin_run(head, &clock, entropy);
    let (log, record) = begun.map_err(unrecorded)?;
    let path = store.run_dir(&record.head.run).join(journal::FILE);
    let ledger = SharedLedger::new(Ledger::new(log, store.index(), record));
    let journal = Journal::create(&path).map_err(unjournalled)?;
    tell_warnings(&ledger, warnings)?;
    Ok((ledger, journal))
}

/// Puts warnings on record.
fn tell_warnings(ledger: &SharedLedger, warnings: &[String]) -> Result<(), Failure> {
    let mut each = warnings.iter().cloned();
    each.try_for_each(|text| ledger.tell(Event::Warned { text }).map_err(unwritten))
}

/// Returns this machine as the run sees it: every command it carries out is on record.
fn recording_host(context: &Context, ledger: &SharedLedger) -> LocalHost {
    let ledger = ledger.clone();
    context.host(Arc::new(move |command| {
        // A log that cannot be written is found out at the next result, which must not be lost;
        // the command itself has happened either way.
        let _ = ledger.lock().append(Event::Command(command));
    }))
}

/// Takes a run on this machine to its end.
///
/// # Errors
/// Ctrl-C cannot be caught.
pub fn execute(
    context: &Context,
    study: &Study,
    store: &Store,
    ledger: SharedLedger,
    journal: &Journal,
    wipe: &[String],
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    let host = recording_host(context, &ledger);
    let run = ledger.lock().record().head.run.clone();
    // `clean` finds the commands of a run that died by its id.
    host.belong_to(&run);
    let interrupt = observer.catch_interrupt(LEFT)?;
    let watcher = watch(study, store, &ledger, observer);
    let tell = |event| ledger.tell(event);
    let mut here = LocalExecutor {
        study,
        tell: &tell,
        host: &host,
        peers: &context.peers,
        clients: None,
        machine: None,
        journal,
        scratch: store.run_dir(&run).join("mnt"),
        clock: Arc::new(SystemClock),
        watcher: &*watcher,
        interrupt,
        execution: format!("{run}-{:04x}", entropy() & 0xffff),
        wipe: wipe.to_vec(),
        first_look: LocalExecutor::first_look(study, &host),
        standing: Vec::new(),
        crash: CrashSide::default(),
        lost: RefCell::default(),
    };
    Ok(race(study, store, &ledger, &*watcher, &mut here))
}

/// Has a run watched.
pub fn watch(
    study: &Study,
    store: &Store,
    ledger: &SharedLedger,
    observer: &dyn Observer,
) -> Box<dyn Watcher> {
    let run = ledger.lock().record().head.run.clone();
    let configurations = study.configurations.iter();
    let workloads = study.workload_heads.iter();
    observer.watch(WatchedRun {
        ledger: ledger.clone(),
        configurations: configurations.map(|each| each.name.clone()).collect(),
        workloads: workloads.map(|each| each.name.clone()).collect(),
        rounds_max: study.decide.rounds_max,
        time_max_s: study.decide.time_limit_ns().map(|ns| ns as f64 / 1e9),
        now: store.tell_now(&run),
    })
}

/// Takes a run to its end, wherever its trials are done, and judges it.
pub fn race(
    study: &Study,
    store: &Store,
    ledger: &SharedLedger,
    watcher: &dyn Watcher,
    executor: &mut dyn Executor,
) -> FinishedRun {
    let race = Coordinator {
        study,
        ledger: ledger.clone(),
        watcher,
    };
    let mut ended = race.run(executor).map_err(unwritten);
    // Whatever else went wrong is its effect.
    if let Err(error) = ledger.lock().in_place() {
        ended = Err(Failure::internal(error.to_string()).next(error.next()));
    }
    // Judged also where the record could not be written to the end: what is in it still counts.
    let verdict = verdict::judge(&Evidence::of(ledger.lock().record()));
    FinishedRun {
        store: store.clone(),
        ledger: ledger.clone(),
        verdict,
        ended,
    }
}

/// The failure of a record that takes no more.
pub fn unwritten(broken: Broken) -> Failure {
    Failure::internal(format!("the record cannot be written: {}", broken.0)).next(format!(
        "free space where the store is, then: {}",
        again(&["resume"])
    ))
}

/// The head of a run's log: the study, its place and its environment.
pub fn head(
    context: &Context,
    study: &Study,
    run: &str,
    (place, environment): (RunPlace, Vec<Fact>),
) -> RunStarted {
    RunStarted {
        format: FORMAT,
        run: run.to_owned(),
        stackrace: env!("CARGO_PKG_VERSION").to_owned(),
        command: context.command.clone(),
        study: study.text.clone(),
        study_name: study.name.clone(),
        study_hash: study.hash(),
        title: study.title.clone(),
        factors: study
            .factors
            .iter()
            .map(|factor| factor.name.clone())
            .collect(),
        configurations: study
            .configurations
            .iter()
            .map(|t| ConfigurationHead {
                name: t.name.clone(),
                levels: t.levels.clone(),
                cost: t.cost.clone(),
            })
            .collect(),
        workloads: study.workload_heads.clone(),
        decide: study.decide.clone(),
        seed: study.seed,
        place: Some(place),
        environment,
    }
}

/// Returns the directory in which this run is begun, if that has a name: a study may name directories relative to it.
pub fn begun_in() -> Option<Fact> {
    let here = std::env::current_dir().ok()?;
    Some(Fact::new(BEGUN_IN, here.to_str()?))
}
