//! One trial outside of a run: of `load`, of a comparison that finds its sizes, of a command that is tried once.
//!
//! It is the same everywhere: Ctrl-C ends the phase under way, a phase that failed or was stopped is the last
//! one, and what the workload started is ended, whatever came before.

use std::path::Path;
use std::sync::OnceLock;

use stackrace_engine::{ContentLedger, Control, PhaseEnd, PhaseOutcome};

use super::Interrupt;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::workload::{Place, Workload};

/// A trial of one workload, in one place.
#[derive(Clone, Copy)]
pub struct SingleTrial<'a> {
    /// The workload that is carried out.
    pub workload: &'a dyn Workload,
    /// An empty directory of its own.
    pub directory: &'a Path,
    /// A file or device that is only read, in place of data that are laid out.
    pub existing: Option<&'a Path>,
    /// True if the data leave the page cache before each pass.
    pub cold: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Interrupt that ends it at once.
    pub interrupt: &'a Interrupt,
}

/// Work around each phase of such a trial.
pub trait AroundPhase {
    /// Called before a phase, by its index.
    fn before(&mut self, phase: usize);
    /// Called after a phase that began, however it ended.
    fn after(&mut self, _phase: usize, _outcome: &PhaseOutcome) {}
}

/// Does nothing around phases.
impl AroundPhase for () {
    fn before(&mut self, _phase: usize) {}
}

/// The end of such a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SingleEnd {
    /// All phases are complete.
    Complete,
    /// Ctrl-C.
    Interrupted,
    /// The data could not be laid out, or a phase could not begin.
    NotBegun(String),
    /// An operation of the last phase failed.
    Failed(String),
}

/// Everything that a trial gave.
pub struct SingleOutcome {
    /// Time to lay out the data, ns.
    pub laid_out_ns: u64,
    /// One outcome for each phase that began.
    pub outcomes: Vec<PhaseOutcome>,
    /// The reason why it went no further.
    pub end: SingleEnd,
    /// The reason why something that the workload started could not be ended; `None` if all was.
    pub left: Option<String>,
}

impl SingleTrial<'_> {
    /// Carries it out, to whatever end.
    pub fn run(&self, around: &mut dyn AroundPhase) -> SingleOutcome {
        let ledger = OnceLock::new();
        let control = self.interrupt.control();
        let began = SystemClock.now_ns();
        let prepared = match self.existing {
            Some(_) => Ok(()),
            None => self.workload.prepare(&self.place(&ledger, &control)),
        };
        let laid_out_ns = SystemClock.now_ns().saturating_sub(began);
        let mut outcomes = Vec::new();
        let end = match prepared {
            // Whatever it says: it was stopped.
            _ if control.stopped() => SingleEnd::Interrupted,
            Err(trouble) => SingleEnd::NotBegun(trouble.0),
            Ok(()) => self.phases(&ledger, around, &mut outcomes),
        };
        // A control of its own: what an interrupted trial has begun must come to its end, too.
        let control = Control::default();
        let finished = match self.existing {
            Some(_) => Ok(()),
            None => self.workload.finish(&self.place(&ledger, &control)),
        };
        SingleOutcome {
            laid_out_ns,
            outcomes,
            end,
            left: finished.err().map(|trouble| trouble.0),
        }
    }

    /// Measures the phases, until one is not complete.
    fn phases(
        &self,
        ledger: &OnceLock<ContentLedger>,
        around: &mut dyn AroundPhase,
        outcomes: &mut Vec<PhaseOutcome>,
    ) -> SingleEnd {
        for phase in 0..self.workload.phases().len() {
            around.before(phase);
            // One for each phase: a control that was stopped stays so.
            let control = self.interrupt.control();
            if control.stopped() {
                return SingleEnd::Interrupted;
            }
            let outcome = match self.workload.measure(phase, &self.place(ledger, &control)) {
                Err(_) if control.stopped() => return SingleEnd::Interrupted,
                Err(trouble) => return SingleEnd::NotBegun(trouble.0),
                Ok(outcome) => outcome,
            };
            around.after(phase, &outcome);
            let (ended, error) = (outcome.ended, outcome.error.as_ref());
            let why = error.map_or(String::new(), ToString::to_string);
            outcomes.push(outcome);
            match ended {
                _ if control.stopped() => return SingleEnd::Interrupted,
                PhaseEnd::Complete => {}
                // The next phase would find other data than it expects.
                _ => return SingleEnd::Failed(why),
            }
        }
        SingleEnd::Complete
    }

    fn place<'b>(&'b self, ledger: &'b OnceLock<ContentLedger>, control: &'b Control) -> Place<'b> {
        Place {
            cold: self.cold,
            existing: self.existing,
            ..Place::alone(self.directory, self.seed, ledger, control)
        }
    }
}
