//! Turns executed by guests in virtual time: one guest for each, several side by side.
//!
//! Nothing in such a guest depends on how busy this machine is, so they may run at the same time
//! without disturbing each other. What they say is put on record in the order of the turns, whatever
//! order they end in: the log does not show how many ran side by side. The guest whose turn it is
//! waits for each of its results to be on disk; what the others say meanwhile is kept in memory, and
//! is said again if it is lost.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::agent::frame::WireFrame;
use crate::agent::message::{Assignment, Turn, TurnReply, TurnRequest, WorkerReply, WorkerRequest};
use crate::agent::polled::GuestOrders;
use crate::event::{Ended, Event};
use crate::lab::LabError;
use crate::lab::virtual_guest::{VirtualGuest, VirtualLab};
use crate::run::{Broken, Executor, Interrupt, SharedLedger, TrialStart, Turned, Watcher};
use crate::time::{Clock, GivenClock};

/// How long guests are listened to before it is checked whether the run is to be interrupted.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A guest waits at most so long before it begins, ns: as long as the kernel keeps written data back.
const DELAY_NS: u64 = 5_000_000_000;

/// Executes turns in guests of their own.
pub(super) struct VirtualExecutor<'a> {
    pub(super) lab: &'a VirtualLab<'a>,
    /// The study as every guest gets it.
    pub(super) assignment: Assignment,
    /// Where results go.
    pub(super) ledger: SharedLedger,
    /// The clock of the ledger: the sum of what the guests' clocks show.
    pub(super) clock: Arc<GivenClock>,
    /// Told what begins.
    pub(super) watcher: &'a dyn Watcher,
    /// How to stop it.
    pub(super) interrupt: Arc<Interrupt>,
    /// How many guests may run side by side.
    pub(super) jobs: usize,
    /// Turns announced and not done, in the order of the round.
    pub(super) turns: VecDeque<VirtualTurn>,
    /// Guests started so far.
    pub(super) started: usize,
}

/// A turn, announced or under way.
pub(super) struct VirtualTurn {
    turn: Turn,
    state: State,
    /// What was said and is not on record yet, with the guest's clock.
    said: VecDeque<(u64, TurnReply)>,
}

enum State {
    Waiting,
    Running(Box<VirtualGuest>),
    Over,
    Lost(String),
}

/// What a guest of a round is asked: all of it, before it starts.
pub(super) fn orders(assignment: &Assignment, turn: Option<&Turn>) -> GuestOrders {
    let open = TurnRequest::Open(Box::new(assignment.clone()));
    let execute = turn.map(|turn| TurnRequest::Execute(turn.clone()));
    // All of it in advance: there is no way into a guest that runs.
    let requests = [Some(open), execute, Some(TurnRequest::Close)];
    let requests = requests.into_iter().flatten().map(WorkerRequest::Turn);
    GuestOrders {
        delay_ns: turn.map_or(0, |turn| accident(assignment.seed, turn.round) % DELAY_NS),
        requests: requests.collect(),
    }
}

/// What differs between two rounds besides the work: the same for all configurations of a round.
fn accident(seed: u64, round: u32) -> u64 {
    let mut hash = blake3::Hasher::new();
    hash.update(b"start of a guest");
    hash.update(&seed.to_le_bytes())
        .update(&round.to_le_bytes());
    let drawn = hash.finalize();
    u64::from_le_bytes(*drawn.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// What a frame says; a guest says nothing but replies of a turn.
pub(super) fn reply(frame: &WireFrame) -> Result<TurnReply, String> {
    match serde_json::from_slice(&frame.message) {
        Ok(WorkerReply::Turn(reply)) => Ok(reply),
        Ok(WorkerReply::Refused { text, .. }) => Err(text),
        Ok(other) => Err(format!("an unexpected answer: {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

impl VirtualTurn {
    fn new(turn: Turn) -> Self {
        Self {
            turn,
            state: State::Waiting,
            said: VecDeque::new(),
        }
    }

    fn guest(&self) -> Option<&VirtualGuest> {
        match &self.state {
            State::Running(guest) => Some(guest),
            _ => None,
        }
    }

    /// Takes what its guest says next.
    fn listen(&mut self) {
        let State::Running(guest) = &mut self.state else {
            return;
        };
        let said = guest.read().map_err(|error| error.to_string());
        let said = said.and_then(|(at, frame)| Ok((at, reply(&frame)?)));
        match said {
            Ok((at, TurnReply::Closed)) => {
                self.said.push_back((at, TurnReply::Closed));
                self.state = State::Over;
            }
            Ok(said) => self.said.push_back(said),
            Err(why) => self.state = State::Lost(why),
        }
    }
}

impl Executor for VirtualExecutor<'_> {
    fn announce(&mut self, turns: &[Turn]) {
        self.turns = turns.iter().cloned().map(VirtualTurn::new).collect();
    }

    fn execute(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        // Only what was announced is started by `fill`.
        if self.turns.front().is_none_or(|next| next.turn != *turn) {
            self.announce(std::slice::from_ref(turn));
        }
        let began = self.clock.now_ns();
        let mut done = false;
        loop {
            self.fill();
            while let Some((at, reply)) =
                self.turns.front_mut().and_then(|one| one.said.pop_front())
            {
                // The clock is set before: the record has the time at which it happened.
                self.clock.set(began + at);
                done |= matches!(reply, TurnReply::Executed { done: true });
                self.heard(turn, reply)?;
            }
            match self.turns.front().map(|one| &one.state) {
                Some(State::Over) => {
                    self.turns.pop_front();
                    return Ok(match done {
                        true => Turned::Done,
                        false => Turned::Interrupted,
                    });
                }
                Some(State::Lost(why)) => {
                    let why = why.clone();
                    self.turns.clear();
                    return Ok(Turned::Lost(why));
                }
                _ => {}
            }
            if self.interrupt.raised() {
                // There is no way into a guest. What it did not say is said again when the run goes on.
                self.turns.clear();
                return Ok(Turned::Interrupted);
            }
            self.listen()?;
        }
    }

    fn end(&mut self) -> Result<(), Broken> {
        self.turns.clear();
        Ok(())
    }
}

impl VirtualExecutor<'_> {
    /// Starts guests for the next turns, as many as may run.
    fn fill(&mut self) {
        let running = self.turns.iter().filter(|one| one.guest().is_some());
        let free = self.jobs.saturating_sub(running.count());
        let waiting = |one: &&mut VirtualTurn| matches!(one.state, State::Waiting);
        for next in self.turns.iter_mut().filter(waiting).take(free) {
            self.started += 1;
            let whole = whole(&self.ledger, &next.turn);
            let orders = orders(&self.assignment, Some(&whole));
            let seed = accident(self.assignment.seed, whole.round);
            next.state = match self.lab.start(self.started, seed, &orders) {
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
            Err(errno) => return Err(Broken(format!("cannot wait for guests: {errno}"))),
        }
        let said: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        let running = self.turns.iter_mut().filter(|one| one.guest().is_some());
        for (one, said) in running.zip(said) {
            if said {
                one.listen();
            } else if let State::Running(guest) = &mut one.state
                && let Some(error) = guest.refused()
            {
                one.state = State::Lost(error.to_string());
            }
        }
        Ok(())
    }

    /// Puts on record what a guest said.
    fn heard(&self, turn: &Turn, reply: TurnReply) -> Result<(), Broken> {
        match reply {
            TurnReply::Happened(event) => match *event {
                // It is on record already: the turn was done again, whole, to get at the others.
                Event::Trial(trial) if !turn.missing.contains(&trial.workload) => Ok(()),
                event => self.ledger.tell(event),
            },
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
            TurnReply::Ready { .. } | TurnReply::Executed { .. } | TurnReply::Closed => Ok(()),
        }
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
        ..turn.clone()
    }
}

/// What a machine of the study is, found in a guest that does nothing else.
///
/// # Errors
/// It was refused there, or the guest does not come up.
pub(super) fn environment(
    lab: &VirtualLab<'_>,
    assignment: &Assignment,
) -> Result<Result<Vec<crate::event::Fact>, WorkerReply>, LabError> {
    let mut guest = lab.start(0, assignment.seed, &orders(assignment, None))?;
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
        let (_, frame) = guest.read()?;
        match serde_json::from_slice(&frame.message) {
            Ok(WorkerReply::Turn(TurnReply::Ready { environment })) => return Ok(Ok(environment)),
            Ok(WorkerReply::Turn(_)) => {}
            Ok(other) => return Ok(Err(other)),
            Err(error) => return Err(LabError::Refused(error.to_string())),
        }
    }
}
