//! Turns executed by workers: in lab machines, on machines over SSH.
//!
//! Each configuration has its place, and one turn is under way at a time: no place works while another
//! one is measured, and drift meets all of them alike.

use std::sync::Arc;
use std::time::Duration;

use super::executor::{Broken, Executor, TrialStart, Turned, Watcher};
use super::fits::TurnAsked;
use super::ledger::SharedLedger;
use stackrace_base::event::Event;
use stackrace_base::interrupt::Interrupt;
use stackrace_remote::agent::connection::{ConnectionError, Conversation};
use stackrace_remote::agent::message::Turn;
use stackrace_remote::agent::message::{TurnReply, TurnRequest, WorkerReply, WorkerRequest};
use stackrace_study::study::Study;

/// Time for which a worker is listened to before it is checked whether the turn is to be interrupted.
const MOMENT: Duration = Duration::from_millis(100);

/// A worker that waits for its next turn.
pub struct RemoteWorker {
    /// Name of its place; of several, a level of the study's factor of places.
    pub place: String,
    /// Conversation in which its turns are asked for.
    pub conversation: Conversation,
}

impl RemoteWorker {
    /// Asks for something.
    ///
    /// # Errors
    /// The connection is lost, or the request is too long.
    pub fn send(&self, request: TurnRequest) -> Result<(), ConnectionError> {
        self.conversation.send(&WorkerRequest::Turn(request))
    }

    /// Tears down what stands there, and waits until that is done.
    pub fn close(&self, mut heard: impl FnMut(TurnReply)) {
        // On a machine that is lost there is nothing to tear down any more.
        if self.send(TurnRequest::Close).is_ok() {
            while let Ok(WorkerReply::Turn(reply)) = self.conversation.receive() {
                heard(reply);
            }
        }
    }
}

/// Hands each turn to the worker at its place.
pub struct RemoteExecutor<'a> {
    /// The question.
    pub study: &'a Study,
    /// Ledger to which results go.
    pub ledger: SharedLedger,
    /// Watcher that is told what begins, and what went wrong.
    pub watcher: &'a dyn Watcher,
    /// Interrupt that stops it.
    pub interrupt: Arc<Interrupt>,
    /// Worker of each place.
    pub workers: Vec<RemoteWorker>,
}

impl Executor for RemoteExecutor<'_> {
    fn execute(&mut self, turn: &Turn) -> Result<Turned, Broken> {
        let worker = self.worker_of(turn.configuration);
        self.executed(worker, &TurnRequest::Execute(turn.clone()))
    }

    /// Returns true for one place: several would have to change turns in step.
    fn slices(&self) -> bool {
        self.workers.len() == 1
    }

    fn execute_in_slices(&mut self, turns: &[Turn], slice_ns: u64) -> Result<Turned, Broken> {
        let turns = turns.to_vec();
        let asked = TurnRequest::ExecuteInSlices { turns, slice_ns };
        self.executed(&self.workers[0], &asked)
    }

    fn end(&mut self) -> Result<(), Broken> {
        let mut ended = Ok(());
        for worker in &self.workers {
            let closing = TurnRequest::Close;
            let mut asked = TurnAsked::now(self.study, &closing);
            worker.close(|reply| {
                // Nothing of a machine that says what it was not asked for is kept.
                if asked.fits(&reply).is_err() {
                    return;
                }
                // The first failure is reported; the other workers are closed all the same.
                let heard = self.heard(worker, reply);
                ended = std::mem::replace(&mut ended, Ok(())).and(heard);
            });
        }
        ended
    }
}

impl RemoteExecutor<'_> {
    /// Has a worker do what is asked, and passes on what it says meanwhile.
    fn executed(&self, worker: &RemoteWorker, request: &TurnRequest) -> Result<Turned, Broken> {
        let lost = |why: &dyn std::fmt::Display| Turned::Lost(format!("{}: {why}", worker.place));
        // A machine of which one answer is wrong is asked nothing more: no other answer of it can be believed.
        let wrong = |why: String| lost(&format!("its answer does not fit what was asked: {why}"));
        let mut asked = TurnAsked::now(self.study, request);
        if let Err(error) = worker.send(request.clone()) {
            return Ok(lost(&error));
        }
        let mut interrupted = false;
        loop {
            if self.interrupt.raised() && !interrupted {
                interrupted = true;
                // A worker that cannot be told is lost, which the next reply says.
                let _ = worker.send(TurnRequest::Interrupt);
            }
            match worker.conversation.receive_within(MOMENT) {
                Ok(None) => {}
                Ok(Some(WorkerReply::Turn(TurnReply::Executed {
                    lost: Some(why), ..
                }))) => return Ok(Turned::Lost(why)),
                Ok(Some(WorkerReply::Turn(TurnReply::Executed { done: true, .. }))) => {
                    return Ok(asked.is_whole().map_or_else(wrong, |()| Turned::Done));
                }
                Ok(Some(WorkerReply::Turn(TurnReply::Executed { done: false, .. }))) => {
                    return Ok(Turned::Interrupted);
                }
                Ok(Some(WorkerReply::Turn(reply))) => match asked.fits(&reply) {
                    Ok(()) => self.heard(worker, reply)?,
                    Err(why) => return Ok(wrong(why)),
                },
                Ok(Some(WorkerReply::Refused { text, .. })) => return Ok(lost(&text)),
                Ok(Some(other)) => return Ok(lost(&format!("an unexpected answer: {other:?}"))),
                Err(error) => return Ok(lost(&error)),
            }
        }
    }

    /// The worker at the place of a configuration.
    fn worker_of(&self, configuration: usize) -> &RemoteWorker {
        let place = self.study.place_of(configuration);
        let mut workers = self.workers.iter();
        let named = workers.find(|worker| Some(worker.place.as_str()) == place);
        // Without a factor of places, the only worker has all configurations.
        named.unwrap_or(&self.workers[0])
    }

    /// Passes on what a worker said.
    fn heard(&self, worker: &RemoteWorker, reply: TurnReply) -> Result<(), Broken> {
        match reply {
            TurnReply::Happened(event) => return self.ledger.tell(self.named(worker, *event)),
            TurnReply::Began {
                round,
                configuration,
                workload,
                part,
            } => self.watcher.begins(&TrialStart {
                round,
                configuration,
                workload,
                part: &part,
                control: None,
            }),
            TurnReply::Warned { text } => self.watcher.warned(&text),
            // Only a turn whose power is cut says these, and is listened to by its own executor.
            TurnReply::WillPromise { .. } | TurnReply::Acknowledged { .. } => {}
            TurnReply::Ready { .. } | TurnReply::Executed { .. } | TurnReply::Closed => {}
        }
        Ok(())
    }

    /// Names the host of a command with its place: of several places each has hosts of its own.
    fn named(&self, worker: &RemoteWorker, event: Event) -> Event {
        match event {
            Event::Command(mut command) if self.workers.len() > 1 => {
                let place = &worker.place;
                command.host = match command.host.as_str() {
                    "local" => place.clone(),
                    peer => format!("{peer} of {place}"),
                };
                Event::Command(command)
            }
            event => event,
        }
    }
}
