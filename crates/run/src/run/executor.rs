//! What the coordinator and its executors tell each other.

use std::sync::Arc;

use stackrace_engine::Control;

use stackrace_base::event::Promised;
use stackrace_judge::verdict::CheckAnswer;
use stackrace_remote::agent::message::{RecoverOrder, Turn};

/// Number of times that a trial is measured in one round at most: pauses that go on would never let it end.
pub(super) const ATTEMPTS: u32 = 3;

/// End of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turned {
    /// Its trials were done, well or not.
    Done,
    /// The user stopped it.
    Interrupted,
    /// The connection to the worker is lost: what happened.
    Lost(String),
}

/// Executes turns: this machine, or workers on others.
///
/// Every event of a turn is on record before the turn is over.
pub trait Executor {
    /// Says which turns will be asked for next, in this order: an executor whose turns do not
    /// disturb each other may begin them already.
    fn announce(&mut self, _turns: &[Turn]) {}

    /// Executes one turn.
    ///
    /// # Errors
    /// The record cannot be written.
    fn execute(&mut self, turn: &Turn) -> Result<Turned, Broken>;

    /// Returns true if it can measure in slices.
    fn slices(&self) -> bool {
        false
    }

    /// Executes turns of one workload each, every one of another configuration: their trials take
    /// turns in slices of so many ns. Where it cannot measure in slices, one after the other.
    ///
    /// # Errors
    /// As for [`Executor::execute`].
    fn execute_in_slices(&mut self, turns: &[Turn], _slice_ns: u64) -> Result<Turned, Broken> {
        self.execute_all(turns)
    }

    /// Executes turns one after the other, up to the first that was not done.
    ///
    /// # Errors
    /// As for [`Executor::execute`].
    fn execute_all(&mut self, turns: &[Turn]) -> Result<Turned, Broken> {
        for turn in turns {
            match self.execute(turn)? {
                Turned::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Turned::Done)
    }

    /// Cuts the power of what was captured, brings the stack back and checks promises.
    ///
    /// # Errors
    /// As for [`Executor::execute`]; there is nothing that was captured.
    fn recover(&mut self, _order: &RecoverOrder) -> Result<(), Broken> {
        Err(Broken("only a guest in virtual time is cut".to_owned()))
    }

    /// Executes a turn whose power is going to be cut meanwhile: its ledger is told while it grows.
    ///
    /// # Errors
    /// As for [`Executor::execute`]; there is no one to tell it to.
    fn execute_until_cut(&mut self, _turn: &Turn) -> Result<Turned, Broken> {
        Err(Broken("only a real machine has its power cut".to_owned()))
    }

    /// Keeps what was promised before the power was cut, on a stack of this mark, for
    /// [`Executor::recover`].
    fn keep(&mut self, _mark: String, _promised: Promised) {}

    /// Tears down what still stands.
    ///
    /// # Errors
    /// As for [`Executor::execute`].
    fn end(&mut self) -> Result<(), Broken>;
}

/// A part of a trial that begins.
pub struct TrialStart<'a> {
    /// Number of the round, from 1.
    pub round: u32,
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index; none while a stack is set up.
    pub workload: Option<usize>,
    /// `set up`, `precondition`, `prepare`, `settle`, or the name of the phase, after `pass 3: ` where
    /// it is a pass of preconditioning.
    pub part: &'a str,
    /// Counts what the phase does; none where nothing is counted.
    pub control: Option<Arc<Control>>,
}

/// A watcher that is told what happens, as it happens.
pub trait Watcher: Send + Sync {
    /// A trial's next part begins.
    fn begins(&self, start: &TrialStart<'_>);
    /// The results were checked.
    fn looked(&self, answer: &CheckAnswer);
    /// The reader should know.
    fn warned(&self, text: &str);
}

/// The record takes no more events: why.
#[derive(Debug)]
pub struct Broken(pub String);
