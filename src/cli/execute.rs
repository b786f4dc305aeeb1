//! `stackrace run`: a study from its first command to its verdict.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Setting;
use super::args::{Deciding, Output, Run};
use super::failure::{self, Failure};
use super::progress::{Progress, View};
use crate::event::{ConfigurationHead, Event, Fact, RunStarted};
use crate::host::{Host, local::LocalHost};
use crate::journal::Journal;
use crate::observe;
use crate::record::{Record, RecordError, Store, run_id};
use crate::report;
use crate::run::{Broken, Here, Interrupt, Ledger, Race, Reason, Shared, Venue};
use crate::setting::Refusal;
use crate::study::{self, HOST, Kinds, SYSTEM, Study};
use crate::time::{Clock, SystemClock};
use crate::unit;
use crate::verdict::{self, Evidence, State, Verdict};

/// Name of the fact that says in which directory a run was begun.
pub(super) const BEGUN_IN: &str = "working directory";

/// Lines of the answer at the end of a run: with those that say where it is kept, a screen of 24.
pub(super) const ANSWER_LINES: usize = 20;

/// `stackrace run`.
pub(super) fn exec_run(setting: &Setting, verb: Run) -> Result<u8, Failure> {
    let mut study = read(&verb.study, verb.full)?;
    study = at_places(study, &verb.systems, &verb.there.on)?;
    deciding(&mut study, &verb.deciding)?;
    if let Some(time) = &verb.at_most {
        study.decide.time_max_ns =
            unit::parse_time_ns(time).map_err(|why| Failure::usage(format!("--at-most: {why}")))?;
    }
    super::plan::check_wipe(&study, &verb.wipe)?;
    if verb.lab {
        return super::lab::run(setting, &study, &verb);
    }
    if let Some(hosts) = super::on::hosts(&study, &verb.there)? {
        return super::on::run(setting, &study, &verb, &hosts);
    }
    not_in_the_lab(&study)?;
    let asked = Asked {
        decide: verb.deciding.decide,
        wipe: &verb.wipe,
    };
    start(setting, &study, &[], &asked, &verb.output)
}

/// The study at the places that the command line names; at one alone, nothing is varied.
pub(super) fn at_places(
    study: Study,
    systems: &[String],
    hosts: &[String],
) -> Result<Study, Failure> {
    let (factor, places) = match hosts {
        [] => (SYSTEM, systems),
        _ => (HOST, hosts),
    };
    if places.is_empty() || (places.len() == 1 && study.places().is_none()) {
        return Ok(study);
    }
    let text = study::in_places(study.text.as_bytes(), factor, places);
    parse(&study.name, &text)
}

/// Refuses a study that is to be tried in the lab.
fn not_in_the_lab(study: &Study) -> Result<(), Failure> {
    let Some(factor) = study.places() else {
        return Ok(());
    };
    let error = study.refusal(Refusal::at(
        &factor.span,
        format!("the levels of \"{}\" are systems of the lab", factor.name),
        format!("run it there: stackrace run {} --lab", study.name),
    ));
    Err(Failure::refused(error.render(false)))
}

/// What the command line asks of a run besides its study.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Whether to exit with 6 if the question stays undecided.
    pub(super) decide: bool,
    /// Ids of disks that may be wiped.
    pub(super) wipe: &'a [String],
}

/// A study: a file, or one that ships; at full size if asked.
pub(super) fn read(name: &str, full: bool) -> Result<Study, Failure> {
    let (name, text) = read_study(name)?;
    // What is wrong is told of the text as it was written, so that its lines are those of the file.
    let study = parse(&name, &text)?;
    if !full {
        return Ok(study);
    }
    parse(&name, &study::full_size(&text))
}

/// The text of a study: a file, or one that ships.
fn read_study(name: &str) -> Result<(String, Vec<u8>), Failure> {
    let path = Path::new(name);
    if !path.is_file()
        && let Some((shipped, text)) = study::SHIPPED.iter().find(|(shipped, _)| *shipped == name)
    {
        return Ok((format!("{shipped}.toml"), text.as_bytes().to_vec()));
    }
    match std::fs::read(path) {
        Ok(bytes) => Ok((name.to_owned(), bytes)),
        Err(error) => {
            let shipped: Vec<&str> = study::SHIPPED.iter().map(|(name, _)| *name).collect();
            Err(
                Failure::refused(format!("cannot read the study {name}: {error}")).next(format!(
                    "name a file, or a study that ships: {}",
                    shipped.join(", ")
                )),
            )
        }
    }
}

/// A study, or every error in it.
pub(super) fn parse(name: &str, text: &[u8]) -> Result<Study, Failure> {
    study::parse(name, text, &Kinds::real()).map_err(|errors| {
        let text: Vec<String> = errors.iter().map(|error| error.render(false)).collect();
        Failure::refused(text.join("\n"))
    })
}

/// A share a word of the command line gives, above 0 and within what is valid.
pub(super) fn share(
    word: &str,
    text: Option<&String>,
    valid: std::ops::Range<f64>,
) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match unit::parse_share(text) {
        Ok(value) if valid.contains(&value) && value > 0.0 => Ok(Some(value)),
        Ok(_) => Err(
            Failure::usage(format!("{word} {text} makes no sense")).next(format!(
                "choose a share above 0 and below {}",
                unit::percent(valid.end)
            )),
        ),
        Err(why) => Err(Failure::usage(format!("{word}: {why}"))),
    }
}

/// What the command line says of the decision replaces what the study says.
pub(super) fn deciding(study: &mut Study, asked: &Deciding) -> Result<(), Failure> {
    if let Some(margin) = share("--margin", asked.margin.as_ref(), 0.0..1.0)? {
        study.decide.margin = margin;
    }
    if let Some(confidence) = share("--confidence", asked.confidence.as_ref(), 0.5..1.0)? {
        study.decide.confidence = confidence;
    }
    if let Some(seed) = asked.seed {
        study.seed = seed;
    }
    Ok(())
}

/// Begins a new run of a study.
pub(super) fn start(
    setting: &Setting,
    study: &Study,
    warnings: &[String],
    asked: &Asked<'_>,
    output: &Output,
) -> Result<u8, Failure> {
    super::plan::check_places(setting, study)?;
    super::plan::check_machine(setting, study)?;
    super::plan::check_dangers(study, asked.wipe)?;
    let store = setting.open_store()?;
    let (shared, journal) = begin(setting, study, &store, environment())?;
    for text in warnings {
        shared
            .lock()
            .append(Event::Warned { text: text.clone() })
            .map_err(broken)?;
    }
    race(setting, study, &store, shared, &journal, asked, output)
}

/// Begins to keep a new run: its record, and the journal of what it makes.
pub(super) fn begin(
    setting: &Setting,
    study: &Study,
    store: &Store,
    environment: Vec<Fact>,
) -> Result<(Shared, Journal), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let run = run_id(&clock.today(), entropy());
    let head = head(setting, study, &run, environment);
    let (log, line) = store.create_run(head, clock).map_err(broken)?;
    let record = Record::begin(line)
        .ok_or_else(|| Failure::internal("the run's first line is not its head"))?;
    let shared = Shared::new(Ledger::new(log, store.index(), record));
    let path = store.run_dir(&run).join("journal.jsonl");
    let journal = Journal::create(&path)
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    Ok((shared, journal))
}

fn recording_host(setting: &Setting, shared: &Shared) -> LocalHost {
    let ledger = shared.clone();
    setting.host(Arc::new(move |command| {
        // A log that cannot be written is found out at the next result, which must not be lost;
        // the command itself has happened either way.
        let _ = ledger.lock().append(Event::Command(command));
    }))
}

/// The live view of a run.
pub(super) fn progress(
    setting: &Setting,
    study: &Study,
    store: &Store,
    shared: &Shared,
) -> Progress {
    let workloads = study.workload_heads.iter();
    let run = shared.lock().record().head.run.clone();
    let view = View {
        configurations: study
            .configurations
            .iter()
            .map(|t| t.name.clone())
            .collect(),
        workloads: workloads.map(|w| w.name.clone()).collect(),
        rounds_max: study.decide.rounds_max,
        time_max_s: study.decide.time_max_ns as f64 / 1e9,
        quiet: setting.quiet,
        colour: setting.colour,
        told: store.tell_now(&run),
    };
    Progress::new(shared.clone(), view)
}

pub(super) fn race(
    setting: &Setting,
    study: &Study,
    store: &Store,
    shared: Shared,
    journal: &Journal,
    asked: &Asked<'_>,
    output: &Output,
) -> Result<u8, Failure> {
    let host = recording_host(setting, &shared);
    let run = shared.lock().record().head.run.clone();
    host.belong_to(&run);
    let interrupt = Arc::new(Interrupt::default());
    let progress = progress(setting, study, store, &shared);
    catch_interrupt(
        &interrupt,
        "lowering what stands, then the verdict so far",
        "`stackrace clean` removes what is left standing, `stackrace resume` goes on",
    )?;
    let tell = |event| shared.tell(event);
    let mut here = Here {
        study,
        tell: &tell,
        host: &host,
        journal,
        scratch: store.run_dir(&run).join("mnt"),
        clock: Arc::new(SystemClock),
        watcher: &progress,
        interrupt,
        execution: format!("{run}-{:04x}", entropy() & 0xffff),
        wipe: asked.wipe.to_vec(),
        standing: Vec::new(),
    };
    let going = Going {
        setting,
        study,
        store,
        shared: shared.clone(),
        asked: *asked,
        output,
    };
    going.race(&progress, &mut here)
}

/// A run that goes on, wherever its trials are done.
pub(super) struct Going<'a> {
    pub(super) setting: &'a Setting,
    pub(super) study: &'a Study,
    pub(super) store: &'a Store,
    pub(super) shared: Shared,
    pub(super) asked: Asked<'a>,
    pub(super) output: &'a Output,
}

impl Going<'_> {
    /// Races to the end, and says what came of it.
    pub(super) fn race(&self, progress: &Progress, place: &mut dyn Venue) -> Result<u8, Failure> {
        let race = Race {
            study: self.study,
            ledger: self.shared.clone(),
            watcher: progress,
        };
        let ended = race.run(place);
        progress.end();
        let ledger = self.shared.lock();
        let record = ledger.record();
        let verdict = verdict::judge(&Evidence::of(record));
        show(
            self.setting,
            record,
            &verdict,
            self.output,
            Some(ANSWER_LINES),
        )?;
        where_it_is(self.setting, self.store, &ledger);
        let reason = ended.map_err(unwritten)?;
        if reason == Reason::Lost && !self.setting.quiet {
            let detail = record.ended().map_or("", |ended| ended.detail);
            super::error(&format!(
                "{detail}\n  next: stackrace resume {}\n",
                record.head.run
            ));
        }
        Ok(exit_code(reason, record, &verdict, self.asked.decide))
    }
}

/// The record takes no more.
pub(super) fn unwritten(broken: Broken) -> Failure {
    Failure::internal(format!("the record cannot be written: {}", broken.0))
        .next("free space where the store is, then: stackrace resume")
}

/// Says where a run is kept.
pub(super) fn where_it_is(setting: &Setting, store: &Store, ledger: &Ledger) {
    if setting.quiet {
        return;
    }
    if let Some(why) = ledger.index_trouble() {
        super::error(&format!(
            "warning: the index is not up to date: {why}\n  next: stackrace reindex\n"
        ));
    }
    let run = &ledger.record().head.run;
    super::print(&format!(
        "\nrun     {run}\nrecord  {}\nindex   {}\n",
        store.run_dir(run).display(),
        store.dir().join("stackrace.db").display()
    ));
}

fn exit_code(reason: Reason, record: &Record, verdict: &Verdict, decide: bool) -> u8 {
    let failed = record
        .trials()
        .any(|trial| matches!(trial.ended, crate::event::Ended::Failed { .. }));
    match reason {
        Reason::Interrupted => failure::INTERRUPTED,
        Reason::Lost => failure::TRIAL_FAILED,
        _ if failed => failure::TRIAL_FAILED,
        _ if decide && verdict.state != State::Decided => failure::UNDECIDED,
        _ => 0,
    }
}

/// Shows a verdict in the terminal, whole or in so many lines, and writes the HTML report if one is
/// asked for.
pub(super) fn show(
    setting: &Setting,
    record: &Record,
    verdict: &Verdict,
    output: &Output,
    lines_max: Option<usize>,
) -> Result<(), Failure> {
    if setting.quiet {
        super::print(&format!("{}\n", verdict.sentence));
    } else {
        let next = match (time_wanted(record, verdict), &output.html) {
            (Some(time), _) => format!(
                "stackrace resume {} --more-time \"{time}\"",
                record.head.run
            ),
            (None, Some(_)) => String::new(),
            (None, None) => format!("stackrace report {} --html report.html", record.head.run),
        };
        let options = report::ReportOptions {
            lines_max,
            colour: setting.colour,
            next,
            ..report::ReportOptions::default()
        };
        super::print(&String::from_utf8_lossy(
            &report::by_name("terminal")
                .map_or_else(Vec::new, |kind| kind.render(record, verdict, &options)),
        ));
    }
    if let Some(path) = &output.html {
        super::report::write(
            path,
            "html",
            record,
            verdict,
            &report::ReportOptions::default(),
        )?;
    }
    Ok(())
}

/// How much longer a run would have to go on for a verdict, at the pace so far, when it ended for want
/// of time; none: it ended otherwise, or no affordable time would do.
fn time_wanted(record: &Record, verdict: &Verdict) -> Option<String> {
    if record.ended()?.reason != Reason::Time.word() {
        return None;
    }
    let rounds = match verdict.state {
        State::TooFew => verdict
            .planned_checks
            .first()?
            .checked_sub(verdict.rounds)?,
        State::Undecided => verdict.more.as_ref()?.rounds?,
        _ => return None,
    };
    if verdict.rounds + rounds > record.head.decide.rounds_max {
        return None;
    }
    // A round more than needed: the last one may take longer than those before.
    let round = record.elapsed_seconds() / f64::from(verdict.rounds.max(1));
    let minutes = (round * f64::from(rounds + 1) / 60.0).ceil();
    Some(format!("{minutes} min"))
}

/// The first Ctrl-C ends what is under way cleanly and says `then`; the second ends the program at
/// once and says what is `left` to do.
pub(super) fn catch_interrupt(
    interrupt: &Arc<Interrupt>,
    then: &'static str,
    left: &'static str,
) -> Result<(), Failure> {
    let interrupt = Arc::clone(interrupt);
    let times = AtomicU32::new(0);
    ctrlc::set_handler(move || {
        interrupt.raise();
        if times.fetch_add(1, Ordering::SeqCst) >= 1 {
            super::error(&format!("\nstopped at once; {left}\n"));
            std::process::exit(i32::from(failure::INTERRUPTED));
        }
        super::error(&format!("\nstopping: {then} (again: stop at once)\n"));
    })
    .map_err(|error| Failure::internal(format!("cannot catch Ctrl-C: {error}")))
}

fn head(setting: &Setting, study: &Study, run: &str, environment: Vec<Fact>) -> RunStarted {
    RunStarted {
        format: crate::event::FORMAT,
        run: run.to_owned(),
        stackrace: env!("CARGO_PKG_VERSION").to_owned(),
        command: setting.command.clone(),
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
            })
            .collect(),
        workloads: study.workload_heads.clone(),
        decide: study.decide.clone(),
        seed: study.seed,
        environment,
    }
}

/// The machine, and where the run was begun: a study may name directories relative to it.
fn environment() -> Vec<Fact> {
    let mut facts = observe::environment();
    facts.extend(begun_in());
    facts
}

/// Where this run is begun, if that has a name.
pub(super) fn begun_in() -> Option<Fact> {
    let here = std::env::current_dir().ok()?;
    Some(Fact::new(BEGUN_IN, here.to_str()?))
}

/// Bits that differ from one execution to the next; the system's randomness where it gives any.
pub(super) fn entropy() -> u64 {
    let host = LocalHost::new(Arc::new(|_| ()));
    let nonce = host
        .nonce()
        .ok()
        .and_then(|text| u64::from_str_radix(&text, 16).ok());
    nonce.unwrap_or_else(|| SystemClock.now_ns() ^ u64::from(std::process::id()) << 32)
}

pub(super) fn broken(error: RecordError) -> Failure {
    Failure::internal(error.to_string()).next(error.next())
}
