//! A trial on another machine, listened to until the power there is gone.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::command::Cutting;
use super::stop::{Stop, lost};
use crate::place::machine_options::PowerOptions;
use stackrace_base::event::{Ended, Event, Promised};
use stackrace_remote::agent::message::{TurnReply, TurnRequest, WorkerReply};
use stackrace_run::run::crash::HeardLedger;
use stackrace_run::run::{RemoteExecutor, RemoteWorker, Turned};

/// Time for which a worker is listened to before something else is looked at.
pub(super) const MOMENT: Duration = Duration::from_millis(20);

/// State of listening: what was heard so far.
pub(super) struct Listening<'a> {
    executor: &'a RemoteExecutor<'a>,
    worker: &'a RemoteWorker,
    /// Planned operations, while they come in parts.
    planned: Option<Promised>,
    heard: Option<HeardLedger>,
    cutting: Cutting,
    /// Asks the machine whether it is there.
    asked: &'a dyn Fn() -> Receiver<bool>,
}

impl<'a> Listening<'a> {
    /// Listens to the worker of an executor.
    pub(super) fn to(
        executor: &'a RemoteExecutor<'a>,
        worker: &'a RemoteWorker,
        asked: &'a dyn Fn() -> Receiver<bool>,
    ) -> Self {
        Self {
            executor,
            worker,
            planned: None,
            heard: None,
            cutting: Cutting::default(),
            asked,
        }
    }

    /// Listens until the power is gone, which is cut after an operation that the seed draws. `None` if the trial failed
    /// before, which is on record.
    ///
    /// # Errors
    /// The machine is lost before, the power does not go, or the user stopped the run.
    pub(super) fn until_cut(
        mut self,
        power: PowerOptions<'_>,
        seed: u64,
    ) -> Result<Option<HeardLedger>, Stop> {
        loop {
            if self.cutting.is_over(self.asked)? {
                return Ok(self.heard);
            }
            // Before the command, and only then: afterwards the machine is brought back first.
            if self.executor.interrupt.raised() && !self.cutting.begun() {
                // A machine that cannot be told is lost, and the run ends either way.
                let _ = self.worker.send(TurnRequest::Interrupt);
                return Err(Stop::Turned(Turned::Interrupted));
            }
            let reply = match self.worker.conversation.receive_within(MOMENT) {
                Ok(Some(reply)) => reply,
                Ok(None) => continue,
                Err(error) if !self.cutting.begun() => return Err(lost(error)),
                Err(_) => {
                    self.cutting.line_broke();
                    continue;
                }
            };
            self.cutting.spoke();
            if self.takes(reply)? {
                return Ok(None);
            }
            if let (Some(heard), false) = (&self.heard, self.cutting.begun())
                && heard.acknowledged() >= drawn_operation(seed, heard.planned())
            {
                self.cutting.begin(power)?;
            }
        }
    }

    /// Takes what the machine said; whether the turn is over before the power was cut.
    fn takes(&mut self, reply: WorkerReply) -> Result<bool, Stop> {
        match reply {
            WorkerReply::Turn(TurnReply::WillPromise {
                mark,
                promised,
                last,
            }) => self.plans(mark, *promised, last)?,
            WorkerReply::Turn(TurnReply::Acknowledged {
                thread,
                begun_ns,
                acknowledged_ns,
            }) => {
                if let Some(heard) = &mut self.heard {
                    let known = heard.hear(thread, begun_ns, acknowledged_ns);
                    known.map_err(lost)?;
                    let thread = Some(thread);
                    // A machine that is gone does not hear it, and needs not.
                    let _ = self.worker.send(TurnRequest::Heard { thread });
                }
            }
            WorkerReply::Turn(TurnReply::Executed { lost, .. }) => {
                self.cutting.said_all();
                return is_over(self.cutting.begun(), lost);
            }
            WorkerReply::Turn(reply) => self.told(reply)?,
            WorkerReply::Refused { text, .. } => return Err(lost(text)),
            _ => return Err(lost("an unexpected answer")),
        }
        Ok(false)
    }

    /// A part of what is planned.
    fn plans(&mut self, mark: String, promised: Promised, last: bool) -> Result<(), Stop> {
        match &mut self.planned {
            None => self.planned = Some(promised),
            Some(known) => known.lines.extend(promised.lines),
        }
        if let (true, Some(all)) = (last, self.planned.take()) {
            self.heard = Some(HeardLedger::new(mark, all));
            let heard = TurnRequest::Heard { thread: None };
            self.worker.send(heard).map_err(lost)?;
        }
        Ok(())
    }

    /// Puts on record what belongs there: of a trial that is cut, only that it failed.
    fn told(&self, reply: TurnReply) -> Result<(), Stop> {
        match reply {
            TurnReply::Happened(event) => match *event {
                Event::Trial(trial) if !matches!(trial.ended, Ended::Failed { .. }) => {}
                // Of the trial that is measured these are on record.
                Event::Promised(_) | Event::StackSetUp { .. } | Event::StackTornDown { .. } => {}
                event => self.executor.ledger.tell(event)?,
            },
            TurnReply::Warned { text } => self.executor.watcher.warned(&text),
            _ => {}
        }
        Ok(())
    }
}

/// Returns true if a turn that has ended is over without a cut; `begun`: its cut was begun, and `client` tells of one
/// that was lost.
///
/// # Errors
/// The client was lost, which is no trial of this storage.
fn is_over(begun: bool, client: Option<String>) -> Result<bool, Stop> {
    match (begun, client) {
        (false, Some(why)) => Err(lost(why)),
        // Nothing more is acknowledged: a cut that was not begun by now never would be.
        (begun, _) => Ok(!begun),
    }
}

/// Draws the operation after which the power is cut, from 1: each is as likely.
fn drawn_operation(seed: u64, planned: u64) -> u64 {
    let hash = blake3::hash(&seed.to_le_bytes());
    let drawn = u64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap_or(&[0; 8]));
    1 + drawn % planned.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It would be listened to for ever: no operation that is still to come begins the cut.
    #[test]
    fn a_trial_that_ends_before_its_cut_is_over() {
        assert!(is_over(false, None).is_ok_and(|over| over));
        assert!(is_over(true, None).is_ok_and(|over| !over));
        assert!(is_over(true, Some("gone".to_owned())).is_ok_and(|over| !over));
        assert!(is_over(false, Some("gone".to_owned())).is_err());
    }

    #[test]
    fn any_operation_may_be_the_last_one_before_the_cut() {
        let mut drawn: Vec<u64> = (0..200).map(|seed| drawn_operation(seed, 8)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
