//! What another machine says of its turns and phases, compared with what it was asked for. Nothing of it is put on
//! record, or made a figure of, before it fits: a machine that mixes up two configurations would decide the verdict.

use std::io::Write;

use stackrace_base::event::histogram::decoded;
use stackrace_base::event::{Ended, Event, Observation, PhaseObservation};
use stackrace_base::time::{Clock, GivenClock, SystemClock};
use stackrace_base::unit;
use stackrace_engine::recorder::SLICES_MAX;
use stackrace_remote::agent::message::{Turn, TurnReply, TurnRequest};
use stackrace_study::study::Study;

use super::executor::ATTEMPTS;

/// Time by which a machine's figures may exceed the time that passed here: its clock may run a little faster.
const SLACK_NS: u64 = 10_000_000_000;
const SLACK_SHARE: f64 = 0.05;
/// Time by which the wall clocks of two machines may differ before a time of day makes no sense, ns.
const WALL_SLACK_NS: u64 = 24 * 3600 * 1_000_000_000;
/// Longest time that a guest in virtual time can have measured, ns: a study that takes more is refused.
const VIRTUAL_NS: u64 = 2 * 24 * 3600 * 1_000_000_000;
/// Notes of a trial, all together, bytes.
const NOTES_MAX: usize = 64 << 10;
/// Size of what is recorded of a trial, bytes: of any; for each phase, step of a series, thread and client more.
const TRIAL_BYTES: u64 = 1 << 20;
const PHASE_BYTES: u64 = 256 << 10;
const STEP_BYTES: u64 = 48;
const THREAD_BYTES: u64 = 512;
const CLIENT_BYTES: u64 = 16 << 10;
/// Greatest number of threads, or of clients, that a trial is believed to have.
const MANY: usize = 65_536;
/// Size of any other event, and of all of them in one turn, bytes.
const EVENT_BYTES: u64 = 32 << 20;
const TURN_BYTES: u64 = 256 << 20;
/// Least that an answer counts.
const REPLY_BYTES: u64 = 64;
/// Operations and bytes that no machine does in a nanosecond.
const OPERATIONS_PER_NS: u64 = 1_000;
const BYTES_PER_NS: u64 = 1_000_000;

/// A moment from which a machine was at work for us.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since {
    monotonic_ns: u64,
    unix_ns: u64,
    /// A clock that counts instructions, of which ours say nothing.
    virtual_time: bool,
}

impl Since {
    /// The present time of both clocks: what is asked for next begins after it.
    pub(super) fn now() -> Self {
        Self {
            monotonic_ns: SystemClock.now_ns(),
            unix_ns: SystemClock.unix_ns(),
            virtual_time: false,
        }
    }

    /// Longest time that can have been measured since then, ns.
    fn longest_ns(self) -> u64 {
        if self.virtual_time {
            return VIRTUAL_NS;
        }
        let monotonic = SystemClock.now_ns().saturating_sub(self.monotonic_ns);
        // The monotonic clock stands still while this machine is suspended, and the other one works on.
        let wall = SystemClock.unix_ns().saturating_sub(self.unix_ns);
        let passed = monotonic.max(wall);
        let slack = (passed as f64 * SLACK_SHARE) as u64;
        passed.saturating_add(slack).saturating_add(SLACK_NS)
    }

    /// Returns true if something can have begun at a time of our monotonic clock: since then, and not later than now.
    pub(super) fn holds_start(self, at_ns: i64) -> bool {
        let slack = i64::try_from(SLACK_NS).unwrap_or(i64::MAX);
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let from = signed(self.monotonic_ns).saturating_sub(slack);
        (from..=signed(SystemClock.now_ns()).saturating_add(slack)).contains(&at_ns)
    }

    /// Refuses a duration that is longer than the time since then.
    ///
    /// # Errors
    /// It is; a clause.
    fn holds(self, ns: u64, what: &str) -> Result<(), String> {
        match ns <= self.longest_ns() {
            true => Ok(()),
            false => Err(format!(
                "{what} is said to have taken {}, more than passed since it was asked for",
                unit::time_ns(ns as f64)
            )),
        }
    }

    /// Refuses a time of day that is far from the time since then.
    ///
    /// # Errors
    /// It is, or is no time; a clause.
    fn holds_time(self, today: &str) -> Result<(), String> {
        let Some(said) = GivenClock::at(today) else {
            let text: String = today.chars().take(40).collect();
            return Err(format!("{text:?} is no time at which it began"));
        };
        if self.virtual_time {
            return Ok(());
        }
        let (from, to) = (
            self.unix_ns.saturating_sub(WALL_SLACK_NS),
            SystemClock.unix_ns().saturating_add(WALL_SLACK_NS),
        );
        match (from..=to).contains(&said.now_ns()) {
            true => Ok(()),
            false => Err(format!(
                "it is said to have begun at {today}: set the clock of that machine"
            )),
        }
    }
}

/// What a turn, or turns in slices, may report.
pub struct TurnAsked<'a> {
    study: &'a Study,
    turns: Vec<Turn>,
    /// Stacks are brought back after power cuts, and nothing is measured.
    recovers: bool,
    slice_ns: Option<u64>,
    since: Since,
    /// Trials that were reported: configuration, workload, complete, failed.
    reported: Vec<(usize, usize, bool, bool)>,
    bytes: u64,
}

impl<'a> TurnAsked<'a> {
    /// A turn that is asked for now, or several in slices; of any other request, nothing.
    pub(super) fn now(study: &'a Study, request: &TurnRequest) -> Self {
        let (turns, slice_ns) = match request {
            TurnRequest::Execute(turn) | TurnRequest::ExecuteUntilCut(turn) => {
                (vec![turn.clone()], None)
            }
            TurnRequest::ExecuteInSlices { turns, slice_ns } => (turns.clone(), Some(*slice_ns)),
            _ => (Vec::new(), None),
        };
        Self {
            study,
            turns,
            recovers: false,
            slice_ns,
            since: Since::now(),
            reported: Vec::new(),
            bytes: 0,
        }
    }

    /// A turn of a guest in virtual time, or the recovery of what that turn left.
    pub fn of_guest(study: &'a Study, turn: Turn, recovers: bool) -> Self {
        let since = Since {
            virtual_time: true,
            ..Since::now()
        };
        Self {
            turns: vec![turn],
            recovers,
            since,
            ..Self::now(study, &TurnRequest::Close)
        }
    }

    /// Looks whether something that a machine says belongs to what it was asked for.
    ///
    /// # Errors
    /// It does not; a clause.
    pub fn fits(&mut self, reply: &TurnReply) -> Result<(), String> {
        match reply {
            TurnReply::Happened(event) => self.event_fits(event),
            TurnReply::Began {
                round,
                configuration,
                workload,
                part,
            } => {
                let turn = self.turn_of(*round, *configuration)?;
                let workload = workload.unwrap_or(turn.missing.first().copied().unwrap_or(0));
                self.workload_fits(turn, workload)?;
                match part.len() <= NOTES_MAX {
                    true => self.takes(part.len() as u64),
                    false => Err("the name of a part of a trial is too long".to_owned()),
                }
            }
            TurnReply::Warned { text } if text.len() > NOTES_MAX => {
                Err(format!("a warning of {} bytes", text.len()))
            }
            TurnReply::Warned { text } => self.takes(text.len() as u64),
            _ => self.takes(0),
        }
    }

    /// Counts what is said in this turn.
    ///
    /// # Errors
    /// It is more than a turn can be about; a clause.
    fn takes(&mut self, bytes: u64) -> Result<(), String> {
        // Each answer takes memory while it waits, however short it is.
        self.bytes = self.bytes.saturating_add(bytes.max(REPLY_BYTES));
        match bytes <= EVENT_BYTES && self.bytes <= TURN_BYTES {
            true => Ok(()),
            false => {
                let bytes = unit::bytes(self.bytes.max(bytes));
                Err(format!("{bytes} in one turn"))
            }
        }
    }

    /// Looks whether a machine that says it is done has reported what was asked for.
    ///
    /// # Errors
    /// A trial is missing; a clause.
    pub fn is_whole(&self) -> Result<(), String> {
        for turn in &self.turns {
            let mut own = self.reported.iter();
            // A configuration that fails is not tried further.
            if own.any(|(configuration, _, _, failed)| {
                *configuration == turn.configuration && *failed
            }) {
                continue;
            }
            let told = |workload: &&usize| {
                let key = (turn.configuration, **workload);
                self.reported.iter().any(|one| (one.0, one.1) == key)
            };
            if let Some(missing) = turn.missing.iter().find(|workload| !told(workload)) {
                return Err(format!(
                    "the turn is said to be done, and there is no trial of {}",
                    self.name(*missing)
                ));
            }
        }
        Ok(())
    }

    fn event_fits(&mut self, event: &Event) -> Result<(), String> {
        let bytes = bytes_of(event);
        self.takes(bytes)?;
        match event {
            Event::Trial(_) if self.recovers => {
                Err("a trial, where nothing was to be measured".to_owned())
            }
            Event::Trial(trial) => self.trial_fits(trial, bytes),
            Event::StackSetUp {
                round,
                configuration,
                ..
            } => self.turn_of(*round, *configuration).map(|_| ()),
            Event::Promised(one) => {
                let turn = self.turn_of(one.round, one.configuration)?;
                self.workload_fits(turn, one.workload)
            }
            Event::Cut(cut) => {
                let turn = self.turn_of(cut.round, cut.configuration)?;
                self.workload_fits(turn, cut.workload)
            }
            // What is left of an earlier turn may be torn down in this one.
            Event::StackTornDown { configuration, .. } => {
                match *configuration < self.study.configurations.len() {
                    true => Ok(()),
                    false => Err(format!("there is no configuration {configuration}")),
                }
            }
            Event::Command(_) | Event::Warned { .. } => Ok(()),
            // The course of a run is its coordinator's alone.
            _ => Err("an event that no worker has a say in".to_owned()),
        }
    }

    fn trial_fits(&mut self, trial: &Observation, bytes: u64) -> Result<(), String> {
        let turn = self.turn_of(trial.round, trial.configuration)?;
        self.workload_fits(turn, trial.workload)?;
        let position = turn.position;
        let name = self.name(trial.workload);
        let of = |why: String| format!("{name}: {why}");
        size_fits(trial, bytes).map_err(of)?;
        let complete = trial.ended == Ended::Complete;
        let key = (trial.configuration, trial.workload);
        let own = self.reported.iter().filter(|one| (one.0, one.1) == key);
        if own.clone().any(|one| one.2 || one.3) || own.count() >= ATTEMPTS as usize {
            return Err(of("the same trial twice".to_owned()));
        }
        self.since.holds(trial.elapsed_ns, name)?;
        self.since.holds_time(&trial.started_at).map_err(of)?;
        if complete {
            let sliced = trial.sliced.as_ref().map(|sliced| sliced.slice_ns);
            if trial.position != position || sliced != self.slice_ns {
                return Err(of(
                    "a trial in another position, or in other slices".to_owned()
                ));
            }
            complete_fits(self.study, trial, self.since).map_err(of)?;
        }
        let failed = matches!(trial.ended, Ended::Failed { .. });
        self.reported
            .push((trial.configuration, trial.workload, complete, failed));
        Ok(())
    }

    fn turn_of(&self, round: u32, configuration: usize) -> Result<&Turn, String> {
        let asked = |turn: &&Turn| (turn.round, turn.configuration) == (round, configuration);
        self.turns.iter().find(asked).ok_or_else(|| {
            let name = self.study.configurations.get(configuration);
            let name = name.map_or_else(
                || format!("configuration {configuration}"),
                |it| it.name.clone(),
            );
            format!("it was not asked for {name} in round {round}")
        })
    }

    fn workload_fits(&self, turn: &Turn, workload: usize) -> Result<(), String> {
        match turn.missing.contains(&workload) {
            true => Ok(()),
            false => Err(format!("it was not asked for {}", self.name(workload))),
        }
    }

    fn name(&self, workload: usize) -> &'a str {
        let head = self.study.workload_heads.get(workload);
        head.map_or("a workload that is not in the study", |head| &head.name)
    }
}

/// Looks whether a complete trial is one of its workload: its phases, its figures.
fn complete_fits(study: &Study, trial: &Observation, since: Since) -> Result<(), String> {
    let workload = &study.configurations[trial.configuration].workloads[trial.workload];
    let head = &study.workload_heads[trial.workload];
    let names = workload.phases();
    if trial.elapsed_ns == 0 || trial.phases.len() != names.len() {
        return Err(format!(
            "{} of {} phases, in {}",
            trial.phases.len(),
            names.len(),
            unit::time_ns(trial.elapsed_ns as f64)
        ));
    }
    for (phase, name) in trial.phases.iter().zip(&names) {
        phase_fits(phase, name, since)?;
        if phase.elapsed_ns > trial.elapsed_ns {
            return Err(format!("{name} is longer than all phases together"));
        }
    }
    for other in &trial.others {
        let named = |why: String| format!("{}: {why}", other.host);
        for (phase, name) in other.phases.iter().zip(&names) {
            phase_fits(phase, name, since).map_err(named)?;
        }
        figures_fit(&other.metrics, workload.metrics().len()).map_err(named)?;
    }
    figures_fit(&trial.metrics, head.metrics.len())?;
    figures_fit(
        &trial.resolution,
        trial.resolution.len().min(head.metrics.len()),
    )?;
    let counts = |phase: &PhaseObservation| phase.operations.iter().any(|op| op.count > 0);
    // Storage may stand still for a whole phase: only then there is no figure.
    let works = head.operations().are_foreign() || trial.phases.iter().any(counts);
    match (trial.metrics.first().copied().flatten(), works) {
        (None | Some(0.0), true) => Err(format!("no {}", head.metrics[0].name)),
        _ => Ok(()),
    }
}

/// Looks whether figures are as many as were asked for, and each can be one.
///
/// # Errors
/// They are not; a clause.
pub(super) fn figures_fit(figures: &[Option<f64>], expected: usize) -> Result<(), String> {
    if figures.len() != expected {
        return Err(format!("{} figures, and not {expected}", figures.len()));
    }
    let wrong = |value: &&f64| !value.is_finite() || value.is_sign_negative();
    match figures.iter().flatten().find(wrong) {
        None => Ok(()),
        Some(value) => Err(format!("{value} is no figure")),
    }
}

/// Looks whether a phase is the one that was asked for, and can have been measured since then.
///
/// # Errors
/// It is not; a clause.
pub(super) fn phase_fits(phase: &PhaseObservation, name: &str, since: Since) -> Result<(), String> {
    if phase.name != name {
        let said: String = phase.name.chars().take(40).collect();
        return Err(format!("the phase {said:?}, and not {name}"));
    }
    since.holds(phase.elapsed_ns, name)?;
    let series = phase.series.len();
    if series > SLICES_MAX || (series > 0 && phase.step_ns == 0) {
        return Err(format!(
            "a series of {series} steps of {} ns",
            phase.step_ns
        ));
    }
    if phase.threads.len() > MANY || phase.operations.len() > MANY {
        return Err("more threads or kinds of operation than there are".to_owned());
    }
    let mut figures = vec![Some(phase.depth_achieved), phase.offered_per_s];
    figures.extend(phase.lateness.iter().map(|late| Some(late.ns_mean)));
    let ns = phase.elapsed_ns.saturating_add(1);
    for op in &phase.operations {
        figures.push(Some(op.latency_ns_mean));
        figures.extend(op.service.iter().map(|service| Some(service.ns_mean)));
        let (operations, bytes) = (
            ns.saturating_mul(OPERATIONS_PER_NS),
            ns.saturating_mul(BYTES_PER_NS),
        );
        if op.count > operations || op.bytes > bytes || op.latency_ns_min > op.latency_ns_max {
            return Err(format!(
                "{} of {} and {} in {}",
                op.count,
                op.op.chars().take(40).collect::<String>(),
                unit::bytes(op.bytes),
                unit::time_ns(phase.elapsed_ns as f64)
            ));
        }
        if !op.histogram.is_empty() && decoded(&op.histogram).is_none() {
            return Err("a histogram that cannot be read".to_owned());
        }
    }
    figures_fit(&figures, figures.len())
}

/// Looks whether a trial takes no more room than one of its shape does.
fn size_fits(trial: &Observation, bytes: u64) -> Result<(), String> {
    let told = trial.phases.iter().flat_map(|phase| &phase.told);
    let notes: usize = trial.notes.iter().chain(told).map(String::len).sum();
    if notes > NOTES_MAX {
        return Err(format!("{} of notes", unit::bytes(notes as u64)));
    }
    let others = trial.others.iter().flat_map(|other| &other.phases);
    let phases = || trial.phases.iter().chain(others.clone());
    let steps: usize = phases().map(|phase| phase.series.len()).sum();
    let threads: usize = phases().map(|phase| phase.threads.len()).sum();
    let clients = trial.clients.as_ref().map_or(0, |all| all.each.len());
    let limit = [
        (phases().count(), PHASE_BYTES),
        (steps, STEP_BYTES),
        (threads, THREAD_BYTES),
        (clients.min(MANY), CLIENT_BYTES),
    ];
    let limit = limit.iter().fold(TRIAL_BYTES, |sum, (number, each)| {
        sum.saturating_add((*number as u64).saturating_mul(*each))
    });
    match bytes <= limit {
        true => Ok(()),
        false => Err(format!("a trial of {}", unit::bytes(bytes))),
    }
}

/// Bytes that an event takes on record; counted, and not kept.
fn bytes_of(event: &Event) -> u64 {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written as JSON fits nowhere.
    match serde_json::to_writer(&mut count, event) {
        Ok(()) => count.0,
        Err(_) => u64::MAX,
    }
}
