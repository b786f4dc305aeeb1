//! What the operations of a trial are promised: told afterwards, or while they are done.

use stackrace_engine::PhaseOutcome;

use super::runner::failed;
use super::trial::Trial;
use stackrace_base::event::{Ended, Event, LedgerLine, Promised};
use stackrace_load::workload::{Place, WorkloadError, trouble};

impl Trial<'_> {
    /// Runs one phase; where the power is going to be cut, another machine hears what it does.
    pub(super) fn measured_phase(
        &self,
        phase: usize,
        place: &Place<'_>,
    ) -> Result<PhaseOutcome, WorkloadError> {
        let workload = self.workload();
        let crash = &self.executor.crash;
        let Some(told) = crash.told.as_deref().filter(|_| crash.telling) else {
            return workload.measure(phase, place);
        };
        let lines = workload.planned(place);
        // Other workloads of the study are measured as ever.
        if lines.is_empty() {
            return workload.measure(phase, place);
        }
        let planned = self.promised(place, lines);
        let known = told.begin(self.standing.mark(), &planned);
        known.map_err(|broken| trouble(broken.0))?;
        workload.measure_told(phase, place, told)
    }

    /// Lines of this trial's ledger.
    fn promised(&self, place: &Place<'_>, lines: Vec<LedgerLine>) -> Promised {
        Promised {
            round: self.round,
            configuration: self.configuration,
            workload: self.workload,
            seed: place.seed,
            directory: place.directory.display().to_string(),
            lines,
        }
    }

    /// Puts on record what the operations of a phase were promised, whatever came of it.
    pub(super) fn tell_promised(
        &self,
        place: &Place<'_>,
        outcome: &PhaseOutcome,
    ) -> Result<(), Ended> {
        let all = self.promised(place, self.workload().promised(place, outcome));
        for promised in all.pieces() {
            let told = (self.executor.tell)(Event::Promised(Box::new(promised)));
            let not_kept = "the ledger of what was promised cannot be kept";
            told.map_err(|broken| failed(format!("{not_kept}: {}", broken.0)))?;
        }
        Ok(())
    }
}
