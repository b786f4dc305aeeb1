//! Turns as a coordinator asks for them: the worker's side.
//!
//! Workers only execute turns; the coordinator draws their order and decides.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use super::crash::LedgerStream;
use super::executor::{Broken, Executor, TrialStart, Turned, Watcher};
use stackrace_base::event::Event;
use stackrace_base::interrupt::Interrupt;
use stackrace_judge::verdict::CheckAnswer;
use stackrace_machine::host::local::Sink;
use stackrace_remote::agent::connection::Replies;
use stackrace_remote::agent::message::{TurnReply, TurnRequest, WorkerReply, WorkerRequest};

/// Says to the coordinator what happens.
#[derive(Clone)]
pub struct TurnReporter(pub Replies);

impl TurnReporter {
    /// Says something.
    ///
    /// # Errors
    /// The coordinator is lost: nothing measured after that would survive.
    pub fn say(&self, reply: TurnReply) -> Result<(), Broken> {
        let sent = self.0.send(&WorkerReply::Turn(reply));
        sent.map_err(|error| Broken(error.to_string()))
    }

    /// Reports what belongs on record.
    ///
    /// # Errors
    /// As [`TurnReporter::say`].
    pub fn happened(&self, event: Event) -> Result<(), Broken> {
        self.say(TurnReply::Happened(Box::new(event)))
    }

    /// Returns the sink through which a host tells of the commands that it runs.
    pub fn commands(&self) -> Sink {
        let reporter = self.clone();
        Arc::new(move |command| {
            // The next result finds out whether the coordinator is lost.
            let _ = reporter.happened(Event::Command(command));
        })
    }
}

impl Watcher for TurnReporter {
    fn begins(&self, start: &TrialStart<'_>) {
        // The next result finds out whether the coordinator is lost. This is not on record.
        let _ = self.say(TurnReply::Began {
            round: start.round,
            configuration: start.configuration,
            workload: start.workload,
            part: start.part.to_owned(),
        });
    }

    /// A worker takes no interim look at the data.
    fn looked(&self, _answer: &CheckAnswer) {}

    fn warned(&self, text: &str) {
        let text = text.to_owned();
        let _ = self.say(TurnReply::Warned { text });
    }
}

/// The turns of a conversation as they are asked for. An interrupt is passed on at once; when the
/// coordinator is lost before it closes the conversation, that is an interrupt as well. `told` is told
/// what the coordinator has heard.
pub fn asked_for(
    requests: Receiver<WorkerRequest>,
    interrupt: Arc<Interrupt>,
    told: Option<Arc<LedgerStream>>,
) -> impl Iterator<Item = TurnRequest> {
    let (sender, turns) = channel();
    // A thread of its own: a turn may take hours, and an interrupt has to reach it meanwhile.
    std::thread::spawn(move || {
        for request in requests {
            let asked = match request {
                WorkerRequest::Turn(TurnRequest::Heard { thread }) => {
                    told.iter().for_each(|told| told.heard(thread));
                    continue;
                }
                WorkerRequest::Turn(TurnRequest::Interrupt) => {
                    interrupt.raise();
                    continue;
                }
                WorkerRequest::Turn(TurnRequest::Close) => return,
                WorkerRequest::Turn(TurnRequest::Open(_)) => break,
                WorkerRequest::Turn(asked) => asked,
                _ => break,
            };
            // The turns ended in an error, which is reported elsewhere.
            if sender.send(asked).is_err() {
                return;
            }
        }
        interrupt.raise();
        told.iter().for_each(|told| told.end());
    });
    turns.into_iter()
}

/// Executes turns; whatever happens, what stands is torn down.
///
/// # Errors
/// The coordinator is lost.
pub fn execute_all(
    executor: &mut dyn Executor,
    mut asked: impl Iterator<Item = TurnRequest>,
    reporter: &TurnReporter,
) -> Result<(), Broken> {
    let executed = asked.try_for_each(|asked| {
        let turned = match asked {
            TurnRequest::Execute(turn) => executor.execute(&turn)?,
            TurnRequest::ExecuteInSlices { turns, slice_ns } => {
                executor.execute_in_slices(&turns, slice_ns)?
            }
            TurnRequest::ExecuteUntilCut(turn) => executor.execute_until_cut(&turn)?,
            // No reply: the order that they are kept for has one.
            TurnRequest::Keep { mark, promised } => {
                executor.keep(mark, *promised);
                return Ok(());
            }
            TurnRequest::Recover(order) => {
                executor.recover(&order)?;
                Turned::Done
            }
            // These are no work: the conversation itself obeys them.
            TurnRequest::Heard { .. }
            | TurnRequest::Interrupt
            | TurnRequest::Open(_)
            | TurnRequest::Close => return Ok(()),
        };
        let done = turned == Turned::Done;
        let lost = match turned {
            Turned::Lost(why) => Some(why),
            Turned::Done | Turned::Interrupted => None,
        };
        reporter.say(TurnReply::Executed { done, lost })
    });
    // `end` is called in any case: its value is worked out before `and` looks at the other one.
    executed.and(executor.end())
}
