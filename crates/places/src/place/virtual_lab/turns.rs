//! Turns executed by guests in virtual time: one guest for each, several side by side.
//!
//! Nothing in such a guest depends on how busy this machine is, so they may run at the same time
//! without disturbing each other. Their results are recorded in the order of the turns, in
//! whatever order the guests end: the log does not show how many ran side by side. The guest whose
//! turn it is waits until each of its results is on disk. The results of the others stay in memory
//! meanwhile; if they are lost, they are measured again.

use stackrace_base::unit::InWords;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use stackrace_base::event::{Ended, Event, Fact};
use stackrace_base::time::{Clock, GivenClock};
use stackrace_remote::agent::frame::WireFrame;
use stackrace_remote::agent::message::{
    Assignment, RecoverOrder, Turn, TurnReply, TurnRequest, WorkerReply, WorkerRequest,
};
use stackrace_remote::agent::polled::GuestOrders;
use stackrace_remote::lab::LabError;
use stackrace_remote::lab::virtual_guest::{SideBySide, VirtualGuest, VirtualLab};
use stackrace_run::run::{
    Broken, Executor, Interrupt, SharedLedger, TrialStart, TurnAsked, Turned, Watcher,
};
use stackrace_study::study::Study;

/// Time for which guests are listened to before it is checked whether the run is to be interrupted.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A guest waits at most so long before it begins, ns: as long as the kernel keeps written data back.
const DELAY_NS: u64 = 5_000_000_000;

/// Image of the guests of a system, and what they are told.
pub struct VirtualPlace<'a> {
    /// Image and settings from which a guest is started.
    pub lab: VirtualLab<'a>,
    /// The study as every guest of this system gets it.
    pub assignment: Assignment,
}

/// The place of a configuration, by its index.
fn place_of<'a>(
    places: &'a [VirtualPlace<'a>],
    study: &Study,
    configuration: usize,
) -> &'a VirtualPlace<'a> {
    let name = study.place_of(configuration);
    let mut named = places.iter();
    let named = named.find(|place| place.assignment.place.as_deref() == name);
    // Without a factor of systems, the only place has all configurations.
    named.unwrap_or(&places[0])
}

/// Executes turns in guests of their own.
pub struct VirtualExecutor<'a> {
    /// Places where guests are started: one for each system.
    pub places: &'a [VirtualPlace<'a>],
    /// The question.
    pub study: &'a Study,
    /// Ledger to which results go.
    pub ledger: SharedLedger,
    /// The clock of the ledger: the sum of what the guests' clocks show.
    pub clock: Arc<GivenClock>,
    /// Watcher that is told what begins.
    pub watcher: &'a dyn Watcher,
    /// Interrupt that stops it.
    pub interrupt: Arc<Interrupt>,
    /// Number of guests that may run side by side.
    pub jobs: usize,
    /// Turns announced and not done, in the order of the round.
    pub turns: VecDeque<VirtualTurn<'a>>,
    /// Guests started so far.
    pub started: usize,
}

/// Longest time that the clock of a guest can show, ns: a study of more than two days is refused, and starting is short.
const CLOCK_NS_MAX: u64 = 3 * 24 * 3600 * 1_000_000_000;

/// Work of a guest, announced or under way.
pub struct VirtualTurn<'a> {
    asked: Asked,
    /// Once it is started: what its guest may say.
    asked_for: Option<TurnAsked<'a>>,
    /// Clock of the guest at its last answer, ns since it started.
    clock_ns: u64,
    state: State,
    /// Bytes it left in the memory that it shares.
    left: Vec<u8>,
    /// Replies that are not on record yet, with the guest's clock.
    said: VecDeque<(u64, TurnReply)>,
}

/// Task of a guest.
pub enum Asked {
    /// Executes a turn.
    Turn(Turn),
    /// Brings a stack back after power cuts, with what is needed for it.
    Recover(RecoverOrder, Arc<Vec<u8>>),
}

enum State {
    Waiting,
    Running(Box<VirtualGuest>),
    Over,
    Lost(String),
}

/// Returns what a guest of a round is asked: all of it, before it starts.
pub fn orders(assignment: &Assignment, turn: Option<&Turn>) -> GuestOrders {
    let execute = turn.map(|turn| TurnRequest::Execute(turn.clone()));
    GuestOrders {
        delay_ns: turn.map_or(0, |turn| accident(assignment.seed, turn.round) % DELAY_NS),
        requests: conversation(assignment, execute),
    }
}

/// A whole conversation: all of it in advance, because there is no way into a guest that runs.
pub fn conversation(assignment: &Assignment, request: Option<TurnRequest>) -> Vec<WorkerRequest> {
    let open = TurnRequest::Open(Box::new(assignment.clone()));
    let requests = [Some(open), request, Some(TurnRequest::Close)];
    let requests = requests.into_iter().flatten().map(WorkerRequest::Turn);
    requests.collect()
}

/// Number that differs between two rounds besides the work: the same for all configurations of a round.
pub fn accident(seed: u64, round: u32) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(b"start of a guest");
    hash.update(&seed.to_le_bytes())
        .update(&round.to_le_bytes());
    let drawn = hash.finalize();
    u64::from_le_bytes(*drawn.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// Reads the reply in a frame; a guest says nothing but replies of a turn.
pub fn reply(frame: &WireFrame) -> Result<TurnReply, String> {
    match serde_json::from_slice(&frame.message) {
        Ok(WorkerReply::Turn(reply)) => Ok(reply),
        Ok(WorkerReply::Refused { text, .. }) => Err(text),
        Ok(other) => Err(format!("an unexpected answer: {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

impl VirtualTurn<'_> {
    fn new(asked: Asked) -> Self {
        Self {
            asked,
            asked_for: None,
            clock_ns: 0,
            state: State::Waiting,
            left: Vec::new(),
            said: VecDeque::new(),
        }
    }

    fn guest(&self) -> Option<&VirtualGuest> {
        match &self.state {
            State::Running(guest) => Some(guest),
            _ => None,
        }
    }

    fn is_turn(&self, turn: &Turn) -> bool {
        matches!(&self.asked, Asked::Turn(own) if own == turn)
    }

    /// Takes what its guest says next; what it left, too, where it `leaves` something.
    fn listen(&mut self, leaves: bool) {
        let State::Running(guest) = &mut self.state else {
            return;
        };
        let said = guest.read().map_err(|error| error.to_string());
        let said = match said {
            Ok(None) => return,
            Ok(Some((at, frame))) => reply(&frame).map(|reply| (at, reply)),
            Err(why) => Err(why),
        };
        match said {
            Ok((at, TurnReply::Closed)) => {
                let left = match leaves && matches!(self.asked, Asked::Turn(_)) {
                    true => guest.window(),
                    false => Ok(Vec::new()),
                };
                self.said.push_back((at, TurnReply::Closed));
                self.state = match left {
                    Ok(left) => {
                        self.left = left;
                        State::Over
                    }
                    Err(error) => State::Lost(error.to_string()),
                };
            }
            // Before it waits for its turn: what does not fit takes no memory.
            Ok((at, said)) => match self.fits(at, &said) {
                Ok(()) => self.said.push_back((at, said)),
                Err(why) => {
                    let why = format!("its answer does not fit what was asked: {why}");
                    self.state = State::Lost(why);
                }
            },
            Err(why) => self.state = State::Lost(why),
        }
    }

    /// Looks whether an answer of the guest, at a time of its clock, fits what it was asked, as of any other machine.
    ///
    /// # Errors
    /// It does not; a clause.
    fn fits(&mut self, at_ns: u64, reply: &TurnReply) -> Result<(), String> {
        if !(self.clock_ns..=CLOCK_NS_MAX).contains(&at_ns) {
            return Err(format!("its clock shows {at_ns} ns"));
        }
        self.clock_ns = at_ns;
        let Some(asked) = &mut self.asked_for else {
            return Ok(());
        };
        asked.fits(reply)?;
        match reply {
            TurnReply::Executed { done: true, .. } if matches!(self.asked, Asked::Turn(_)) => {
                asked.is_whole()
            }
            _ => Ok(()),
        }
    }
}

impl Executor for VirtualExecutor<'_> {
    fn announce(&mut self, turns: &[Turn]) {
        let turns = turns.iter().cloned().map(Asked::Turn);
        self.turns = turns.map(VirtualTurn::new).collect();
    }

    fn execute(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        // Only what was announced is started by `fill`.
        if self.turns.front().is_none_or(|next| !next.is_turn(turn)) {
            self.announce(std::slice::from_ref(turn));
        }
        let (turned, left) = self.first_to_end()?;
        if turned != Turned::Done || self.study.crash.is_none() {
            return Ok(turned);
        }
        self.cut(turn, &left)
    }

    fn end(&mut self) -> Result<(), Broken> {
        self.turns.clear();
        Ok(())
    }
}

impl VirtualExecutor<'_> {
    /// Has the first guest of those announced say all it has to say; how it ended, and what it left.
    pub fn first_to_end(&mut self) -> Result<(Turned, Vec<u8>), Broken> {
        let began = self.clock.now_ns();
        let mut done = false;
        loop {
            self.fill();
            while let Some((at, reply)) =
                self.turns.front_mut().and_then(|one| one.said.pop_front())
            {
                // The clock is set before: the record has the time at which it happened.
                self.clock.set(began.saturating_add(at));
                done |= matches!(reply, TurnReply::Executed { done: true, .. });
                self.heard(reply)?;
            }
            match self.turns.front().map(|one| &one.state) {
                Some(State::Over) => {
                    let over = self.turns.pop_front();
                    let left = over.map_or_else(Vec::new, |over| over.left);
                    return Ok(match done {
                        true => (Turned::Done, left),
                        false => (Turned::Interrupted, left),
                    });
                }
                Some(State::Lost(why)) => {
                    let why = why.clone();
                    self.turns.clear();
                    return Ok((Turned::Lost(why), Vec::new()));
                }
                _ => {}
            }
            if self.interrupt.raised() {
                // There is no way into a guest. What it did not say is said again when the run goes on.
                self.turns.clear();
                return Ok((Turned::Interrupted, Vec::new()));
            }
            self.listen()?;
        }
    }

    /// Puts guests that bring a stack back before all others.
    pub fn next(&mut self, orders: Vec<RecoverOrder>, package: &Arc<Vec<u8>>) {
        // Backwards, because each goes before all others.
        for order in orders.into_iter().rev() {
            let asked = Asked::Recover(order, Arc::clone(package));
            self.turns.push_front(VirtualTurn::new(asked));
        }
    }

    /// Starts guests for the next turns, as many as may run.
    fn fill(&mut self) {
        let running = self.turns.iter().filter_map(VirtualTurn::guest);
        let taken: Vec<usize> = running.map(VirtualGuest::place).collect();
        let free = (0..self.jobs).filter(|place| !taken.contains(place));
        let waiting = |one: &&mut VirtualTurn| matches!(one.state, State::Waiting);
        for (next, place) in self.turns.iter_mut().filter(waiting).zip(free) {
            self.started += 1;
            let (configuration, round) = match &next.asked {
                Asked::Turn(turn) => (turn.configuration, turn.round),
                Asked::Recover(order, _) => (order.configuration, order.round),
            };
            let VirtualPlace { lab, assignment } = place_of(self.places, self.study, configuration);
            let (orders, window) = match &next.asked {
                Asked::Turn(turn) => {
                    let whole = whole(&self.ledger, turn);
                    // Empty: it is to be filled.
                    let window = self.study.crash.map(|_| &[][..]);
                    let orders = orders(assignment, Some(&whole));
                    next.asked_for = Some(TurnAsked::of_guest(self.study, whole, false));
                    (orders, window)
                }
                Asked::Recover(order, package) => {
                    let turn = turn_before(order);
                    next.asked_for = Some(TurnAsked::of_guest(self.study, turn, true));
                    let recover = TurnRequest::Recover(order.clone());
                    let orders = GuestOrders {
                        delay_ns: 0,
                        requests: conversation(assignment, Some(recover)),
                    };
                    (orders, Some(&package[..]))
                }
            };
            let seed = accident(assignment.seed, round);
            let beside = SideBySide {
                place,
                guests: self.jobs,
            };
            next.state = match lab.start(self.started, seed, &orders, window, beside) {
                Ok(guest) => State::Running(Box::new(guest)),
                Err(error) => State::Lost(error.to_string()),
            };
        }
    }

    /// Waits for a moment, and takes what guests say meanwhile.
    fn listen(&mut self) -> Result<(), Broken> {
        let polled = self.turns.iter().filter_map(VirtualTurn::guest);
        let mut polled: Vec<PollFd<'_>> = polled
            .map(|guest| PollFd::from_borrowed_fd(guest.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut polled, Some(&MOMENT)) {
            // A signal: `execute` looks at its flag next.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                return Err(Broken(format!(
                    "cannot wait for guests: {errno}",
                    errno = errno.in_words()
                )));
            }
        }
        let said: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        let running = self.turns.iter_mut().filter(|one| one.guest().is_some());
        for (one, said) in running.zip(said) {
            if said {
                one.listen(self.study.crash.is_some());
            } else if let State::Running(guest) = &mut one.state
                && let Some(error) = guest.refused()
            {
                one.state = State::Lost(error.to_string());
            }
        }
        Ok(())
    }

    /// Puts on record what a guest said.
    fn heard(&self, reply: TurnReply) -> Result<(), Broken> {
        match reply {
            // It is on record already: the turn was done again, whole, to get at the others.
            TurnReply::Happened(event) if self.is_known(&event) => Ok(()),
            TurnReply::Happened(mut event) => {
                // Numbers of a guest that is gone after its turn: nothing is compared with them.
                if let Event::StackSetUp { lies_on, .. } = &mut *event {
                    lies_on.clear();
                }
                self.ledger.tell(*event)
            }
            TurnReply::Began {
                round,
                configuration,
                workload,
                part,
            } => {
                self.watcher.begins(&TrialStart {
                    round,
                    configuration,
                    workload,
                    part: &part,
                    control: None,
                });
                Ok(())
            }
            TurnReply::Warned { text } => {
                self.watcher.warned(&text);
                Ok(())
            }
            TurnReply::WillPromise { .. } | TurnReply::Acknowledged { .. } => Ok(()),
            TurnReply::Ready { .. } | TurnReply::Executed { .. } | TurnReply::Closed => Ok(()),
        }
    }
}

impl VirtualExecutor<'_> {
    /// Returns true if a trial, or its ledger, is on record already.
    fn is_known(&self, event: &Event) -> bool {
        let ledger = self.ledger.lock();
        let record = ledger.record();
        match event {
            Event::Trial(new) => record.trials().any(|trial| {
                trial.ended == Ended::Complete
                    && (trial.round, trial.configuration, trial.workload)
                        == (new.round, new.configuration, new.workload)
            }),
            Event::Promised(new) => record
                .promised(new.round, new.configuration, new.workload)
                .is_some(),
            _ => false,
        }
    }
}

/// The turn whose stack is brought back.
fn turn_before(order: &RecoverOrder) -> Turn {
    Turn {
        round: order.round,
        position: 0,
        configuration: order.configuration,
        missing: order.cuts.iter().map(|cut| cut.workload).collect(),
        keep: false,
        lies_on: Vec::new(),
    }
}

/// The turn with the workloads whose trials are on record already: each trial depends on those before
/// it in its guest, so a turn that was interrupted is done again from its beginning.
fn whole(ledger: &SharedLedger, turn: &Turn) -> Turn {
    let ledger = ledger.lock();
    let here = ledger.record().trials().filter(|trial| {
        trial.round == turn.round
            && trial.configuration == turn.configuration
            && trial.ended == Ended::Complete
    });
    let mut missing: Vec<usize> = turn.missing.clone();
    missing.extend(here.map(|trial| trial.workload));
    missing.sort_unstable();
    missing.dedup();
    Turn {
        missing,
        keep: false,
        // Each trial has a guest of its own, and the same orders give the same figures.
        lies_on: Vec::new(),
        ..turn.clone()
    }
}

/// Returns what the machines of the study are, each found in a guest that does nothing else; so many of these run side
/// by side. An answer of another kind is why a machine refused.
///
/// # Errors
/// A guest does not come up.
pub fn environments(
    places: &[VirtualPlace<'_>],
    study: &Study,
    jobs: usize,
) -> Result<Vec<Result<Vec<Fact>, WorkerReply>>, LabError> {
    let mut found = Vec::new();
    for together in places.chunks(jobs.max(1)) {
        let guests = together.len();
        // All are started before the first one is waited for.
        let guests: Vec<VirtualGuest> = together
            .iter()
            .enumerate()
            .map(|(place, on)| first_guest(on, study, SideBySide { place, guests }))
            .collect::<Result<_, _>>()?;
        for guest in guests {
            found.push(environment(guest)?);
        }
    }
    Ok(found)
}

/// Starts the guest that says what a machine of the study is.
fn first_guest(
    on: &VirtualPlace<'_>,
    study: &Study,
    beside: SideBySide,
) -> Result<VirtualGuest, LabError> {
    let orders = orders(&on.assignment, None);
    // A study that cuts the power shares memory with each of its guests.
    let window = study.crash.map(|_| &[][..]);
    on.lab.start(0, on.assignment.seed, &orders, window, beside)
}

fn environment(mut guest: VirtualGuest) -> Result<Result<Vec<Fact>, WorkerReply>, LabError> {
    loop {
        let frame = next_frame(&mut guest)?;
        match serde_json::from_slice(&frame.message) {
            Ok(WorkerReply::Turn(TurnReply::Ready { environment })) => return Ok(Ok(environment)),
            Ok(WorkerReply::Turn(_)) => {}
            Ok(other) => return Ok(Err(other)),
            Err(error) => return Err(LabError::Refused(error.to_string())),
        }
    }
}

/// Waits for what a guest says next.
///
/// # Errors
/// It refused, or has ended.
fn next_frame(guest: &mut VirtualGuest) -> Result<WireFrame, LabError> {
    loop {
        let mut polled = [PollFd::from_borrowed_fd(guest.as_fd(), PollFlags::IN)];
        // A signal ends the waiting, too; then it begins again.
        let _ = poll(&mut polled, Some(&MOMENT));
        if polled[0].revents().is_empty() {
            match guest.refused() {
                Some(error) => return Err(error),
                None => continue,
            }
        }
        if let Some((_, frame)) = guest.read()? {
            return Ok(frame);
        }
    }
}

/// Listens to a guest to its end: what it said, and what it left in the memory that it shares.
///
/// # Errors
/// It refused, or ended before it had said everything.
pub fn to_end(mut guest: VirtualGuest) -> Result<(Vec<TurnReply>, Vec<u8>), String> {
    let mut said = Vec::new();
    loop {
        let frame = next_frame(&mut guest).map_err(|error| error.to_string())?;
        match reply(&frame)? {
            TurnReply::Closed => {
                let left = guest.window().map_err(|error| error.to_string())?;
                return Ok((said, left));
            }
            other => said.push(other),
        }
    }
}
