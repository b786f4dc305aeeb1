//! One process of a client, as the conductor knows it: its conversation and its clock.

use std::time::Duration;

use super::seating::Seated;
use crate::run::fits::{Since, phase_fits};
use crate::run::replied::{MachineTrouble, replied};
use stackrace_base::event::{ClientPart, Counted, PhaseObservation};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::workload::trouble;
use stackrace_machine::observe;
use stackrace_remote::agent::connection::{Connection, ConnectionError, Conversation};
use stackrace_remote::agent::message::{PhaseReply, PhaseRequest, WorkerReply, WorkerRequest};
use std::sync::Arc;

/// Time that reading a clock may take: a client that takes longer is lost.
const CLOCK_PATIENCE: Duration = Duration::from_secs(4);

/// Time that a client may take to end what it does after it was told to.
const ENDING: Duration = Duration::from_secs(10);

/// Interval at which the processes that have not answered are looked at again.
const LOOK: Duration = Duration::from_millis(2);

/// A process that measures.
pub(super) struct ClientProcess {
    seat: Seated,
    connection: Arc<Connection>,
    conversation: Conversation,
    /// Time by which its monotonic clock is ahead of ours, ns.
    ahead_ns: i64,
    /// Facts known of it until now.
    pub part: ClientPart,
}

/// A phase as one process measured it.
pub(super) struct ClientMeasured {
    /// Observation of the process.
    pub observation: PhaseObservation,
    /// Time at which it began, by our monotonic clock, ns.
    pub began_ns: i64,
}

impl ClientProcess {
    /// Asks it to prepare.
    ///
    /// # Errors
    /// It is lost; said with its name.
    pub(super) fn prepare(
        connection: &Arc<Connection>,
        seat: Seated,
        request: PhaseRequest,
    ) -> Result<Self, MachineTrouble> {
        let opened = connection.open(seat.machine, &WorkerRequest::Phase(request));
        let lost = |error| MachineTrouble::Lost(format!("{}: {error}", seat.client));
        let conversation = opened.map_err(lost)?;
        let part = ClientPart {
            client: seat.client.clone(),
            process: seat.process,
            ..ClientPart::default()
        };
        Ok(Self {
            seat,
            connection: Arc::clone(connection),
            conversation,
            ahead_ns: 0,
            part,
        })
    }

    /// Puts its name before what is said of it.
    pub(super) fn named(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.seat.client)
    }

    fn lost(&self, why: impl std::fmt::Display) -> MachineTrouble {
        MachineTrouble::Lost(self.named(why))
    }

    pub(super) fn failed(&self, why: impl std::fmt::Display) -> MachineTrouble {
        MachineTrouble::Failed(trouble(self.named(why)))
    }

    /// Asks for the next thing.
    ///
    /// # Errors
    /// It is lost.
    pub(super) fn ask(&self, request: PhaseRequest) -> Result<(), MachineTrouble> {
        let sent = self.conversation.send(&WorkerRequest::Phase(request));
        sent.map_err(|error| self.lost(error))
    }

    /// Has it begin at a time of our clock.
    ///
    /// # Errors
    /// It is lost.
    pub(super) fn start_at(&self, ours_ns: u64) -> Result<(), MachineTrouble> {
        let at_ns = ours_ns.saturating_add_signed(self.ahead_ns);
        self.ask(PhaseRequest::StartAt { at_ns })
    }

    /// Reads its clocks once, and keeps what it learns if this was the shortest round trip.
    ///
    /// # Errors
    /// It is lost.
    pub(super) fn read_clocks(&mut self) -> Result<(), MachineTrouble> {
        let lost = |error: ConnectionError| self.lost(error);
        let before_ns = SystemClock.now_ns();
        let asked = self
            .connection
            .open(self.seat.machine, &WorkerRequest::Clocks);
        let reply = asked.and_then(|asked| asked.receive_within(CLOCK_PATIENCE));
        let reply = reply.map_err(lost)?;
        let (after_ns, wall_ns) = (SystemClock.now_ns(), SystemClock.unix_ns());
        let Some(WorkerReply::Clocks {
            monotonic_ns,
            unix_ns,
        }) = reply
        else {
            return Err(match reply {
                Some(WorkerReply::Undelivered { why, .. }) => self.lost(why),
                _ => self.lost("it does not answer"),
            });
        };
        let round_trip_ns = after_ns.saturating_sub(before_ns);
        if self.part.round_trip_ns == 0 || round_trip_ns < self.part.round_trip_ns {
            self.part.round_trip_ns = round_trip_ns.max(1);
            // Read somewhere in between: the middle is wrong by half of the round trip at most.
            let middle = i128::from(before_ns) + i128::from(round_trip_ns / 2);
            self.ahead_ns = signed(i128::from(monotonic_ns) - middle);
            let wall = i128::from(wall_ns) - i128::from(round_trip_ns / 2);
            self.part.wall_clock_ahead_ns = signed(i128::from(unix_ns) - wall);
        }
        Ok(())
    }

    /// Forgets what it knows of the clocks: they drift.
    pub(super) fn forget_clocks(&mut self) {
        self.part.round_trip_ns = 0;
    }

    /// Takes in that a phase of this name is over, which was asked for since then.
    ///
    /// # Errors
    /// It says something else, or what cannot be.
    pub(super) fn measured(
        &mut self,
        reply: PhaseReply,
        (name, since): (&str, Since),
    ) -> Result<ClientMeasured, MachineTrouble> {
        let PhaseReply::Measured {
            observation,
            began_ns,
            counted,
            ..
        } = reply
        else {
            return Err(self.failed(format!("an unexpected answer: {reply:?}")));
        };
        phase_fits(&observation, name, since).map_err(|why| self.failed(why))?;
        let began_ns = signed(i128::from(began_ns) - i128::from(self.ahead_ns));
        if !since.holds_start(began_ns) {
            return Err(self.failed("its phase did not begin when it was to"));
        }
        let counted = counted.map_or_else(Counted::default, |counted| *counted);
        observe::add(&mut self.part.counted, &counted);
        Ok(ClientMeasured {
            observation: *observation,
            began_ns,
        })
    }
}

/// Waits until all have replied once. One that is lost or fails is found while others still work.
///
/// # Errors
/// The first that cannot go on, with its name; `stopped` says so.
pub(super) fn all_replied(
    processes: &[ClientProcess],
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<PhaseReply>, MachineTrouble> {
    let mut replies: Vec<Option<PhaseReply>> = processes.iter().map(|_| None).collect();
    loop {
        let mut waiting = false;
        for (process, reply) in processes.iter().zip(&mut replies) {
            if reply.is_none() {
                *reply = replied(&process.conversation, &process.seat.client, Duration::ZERO)?;
                waiting |= reply.is_none();
            }
        }
        if !waiting {
            return Ok(replies.into_iter().flatten().collect());
        }
        if stopped() {
            return Err(MachineTrouble::Failed(trouble("stopped")));
        }
        SystemClock.sleep(LOOK);
    }
}

/// Tells all to end what they do, and waits for a while until they have. The first that has not ended
/// by then, with its name.
pub(super) fn end(processes: &[ClientProcess]) -> Option<String> {
    for process in processes {
        // One that is lost ends by itself.
        let _ = process.ask(PhaseRequest::Stop);
    }
    let began = SystemClock.now_ns();
    processes.iter().find_map(|process| {
        loop {
            let waited = SystemClock.now_ns().saturating_sub(began);
            let left = ENDING.saturating_sub(Duration::from_nanos(waited));
            match process.conversation.receive_within(left) {
                Ok(Some(_)) => {}
                // The conversation is over: nothing goes on there.
                Err(_) => return None,
                Ok(None) => return Some(process.named("it goes on after it was told to stop")),
            }
        }
    })
}

/// A difference of two clocks. None of them is 292 years ahead.
fn signed(ns: i128) -> i64 {
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
}
