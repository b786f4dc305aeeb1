//! One trial outside of a run: of `load`, of a comparison that finds its sizes, of a command that is tried once.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use stackrace_engine::{ContentLedger, Control, PhaseOutcome};

use super::Interrupt;
use super::runner::{Observed, Stages, carry_out, failed};
use stackrace_base::event::{Counted, Ended, FailureCause};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_load::workload::{Place, Workload, WorkloadError, cause_of_operation};

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
    /// Says what was exchanged under the trial; `None` if nothing was.
    fn exchanged(&mut self) -> Option<String> {
        None
    }
    /// Called before a phase, by its index.
    fn before(&mut self, phase: usize);
    /// Returns what is observed around each phase.
    fn observed(&self) -> Observed<'_> {
        Observed::Nothing
    }
    /// Called after a phase that began, however it ended, with what was counted meanwhile.
    fn after(&mut self, _phase: usize, _outcome: &PhaseOutcome, _counted: &Counted) {}
}

/// Does nothing around phases.
impl AroundPhase for () {
    fn before(&mut self, _phase: usize) {}
}

/// Everything that such a trial gave.
pub struct SingleOutcome {
    /// Time to lay out the data, ns.
    pub laid_out_ns: u64,
    /// One outcome for each phase that began.
    pub outcomes: Vec<PhaseOutcome>,
    /// Complete, or the reason why it went no further.
    pub ended: Ended,
    /// Cause of a failure as the system gave it; `None` if nothing failed, or it is not known as a value.
    pub cause: Option<FailureCause>,
    /// What to do about a failure, one clause that begins with a verb; empty if nothing failed, or there is nothing to
    /// be said.
    pub advice: String,
    /// The reason why something that the workload started could not be ended; `None` if all was.
    pub left: Option<String>,
}

impl SingleTrial<'_> {
    /// Carries it out, to whatever end.
    pub fn run(&self, around: &mut dyn AroundPhase) -> SingleOutcome {
        let mut trial = SingleStages {
            trial: *self,
            around,
            ledger: OnceLock::new(),
            began: false,
            done: SingleOutcome {
                laid_out_ns: 0,
                outcomes: Vec::new(),
                ended: Ended::Complete,
                cause: None,
                advice: String::new(),
                left: None,
            },
        };
        carry_out(std::slice::from_mut(&mut trial), self.interrupt);
        // Also where nothing was left to stop: what follows the trial must not begin.
        if trial.done.ended == Ended::Complete && self.interrupt.raised() {
            trial.done.ended = Ended::Interrupted;
        }
        trial.done
    }
}

/// Such a trial under way.
struct SingleStages<'a> {
    trial: SingleTrial<'a>,
    around: &'a mut dyn AroundPhase,
    ledger: OnceLock<ContentLedger>,
    /// True if the workload has begun something that it has to end.
    began: bool,
    done: SingleOutcome,
}

impl SingleStages<'_> {
    fn place<'b>(&'b self, control: &'b Control) -> Place<'b> {
        Place {
            cold: self.trial.cold,
            existing: self.trial.existing,
            ..Place::alone(self.trial.directory, self.trial.seed, &self.ledger, control)
        }
    }

    /// The end of the trial in this trouble, whose cause is kept.
    fn failed(&mut self, trouble: WorkloadError) -> Ended {
        self.done.cause = trouble.cause;
        self.done.advice = trouble.next;
        failed(trouble.said)
    }
}

impl Stages for SingleStages<'_> {
    fn workload(&self) -> &dyn Workload {
        self.trial.workload
    }

    fn look(&mut self) -> Result<(), Ended> {
        self.around
            .exchanged()
            .map_or(Ok(()), |told| Err(failed(told)))
    }

    fn prepare(&mut self, control: &Arc<Control>) -> Result<(), Ended> {
        if self.trial.existing.is_some() {
            return Ok(());
        }
        self.began = true;
        let began = SystemClock.now_ns();
        let prepared = self.trial.workload.prepare(&self.place(control));
        self.done.laid_out_ns = SystemClock.now_ns().saturating_sub(began);
        prepared.map_err(|trouble| self.failed(trouble))
    }

    fn settle(&mut self, phase: usize) -> Result<(), Ended> {
        self.around.before(phase);
        let control = Control::ended_by(self.trial.interrupt.stop_flag());
        let warmed = self.trial.workload.warm(&self.place(&control));
        warmed.map_err(|trouble| self.failed(trouble))
    }

    fn observed(&self) -> Observed<'_> {
        self.around.observed()
    }

    fn measure(&mut self, phase: usize, control: &Arc<Control>) -> Result<PhaseOutcome, Ended> {
        let measured = self.trial.workload.measure(phase, &self.place(control));
        let outcome = measured.map_err(|trouble| self.failed(trouble))?;
        self.done.cause = outcome.error.as_ref().and_then(cause_of_operation);
        Ok(outcome)
    }

    fn note(
        &mut self,
        phase: usize,
        outcome: &PhaseOutcome,
        counted: &Counted,
    ) -> Result<(), Ended> {
        self.around.after(phase, outcome, counted);
        Ok(())
    }

    fn leave(&mut self, ended: Ended, outcomes: Vec<PhaseOutcome>) {
        if self.began {
            // A control of its own: what an interrupted trial has begun must come to its end, too.
            let finished = self.trial.workload.finish(&self.place(&Control::default()));
            self.done.left = finished.err().map(|trouble| trouble.to_string());
        }
        self.done.ended = ended;
        self.done.outcomes = outcomes;
    }
}
