//! The one way in which a trial is carried out, of whatever kind: of a run, in slices, by clients, on a peer, of
//! `load`, of sizes that are found, of a program that is tried once.
//!
//! A kind says what is done at each stage ([`Stages`]). This file says when: it is the only one that begins a
//! phase, waits for its end or for the interrupt, finds out how a trial ended, and has it cleaned up at whatever
//! stage it stopped. Trials that take turns are carried out together, stage by stage; any other one is alone.

use std::sync::Arc;

use stackrace_engine::{AlternationSeat, Control, PhaseEnd, PhaseOutcome};

use stackrace_base::event::{Counted, Ended};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::owned::held::with_real_names;
use stackrace_load::workload::Workload;
use stackrace_machine::host::process;
use stackrace_machine::observe::{Pulse, Snapshot};

/// Things that are observed around a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed<'a> {
    /// Nothing, as its figures are all that counts.
    Nothing,
    /// The system's counters, and those of these block devices.
    Counters(&'a [String]),
    /// The same, and whether the program ran all the time.
    CountersAndPulse(&'a [String]),
}

/// One kind of trial: what it does at each stage. An error ends the trial; after an interrupt it is taken for the
/// interrupt's doing.
pub(super) trait Stages {
    /// Returns the workload that is carried out.
    fn workload(&self) -> &dyn Workload;

    /// Looks whether its storage is what it was, before anything is made and when all is over.
    fn look(&mut self) -> Result<(), Ended> {
        Ok(())
    }

    /// Makes what has to be there before data are laid out.
    fn begin(&mut self) -> Result<(), Ended> {
        Ok(())
    }

    /// Lays out the data.
    fn prepare(&mut self, control: &Arc<Control>) -> Result<(), Ended>;

    /// Brings the storage into the state in which a phase is to find it.
    fn settle(&mut self, _phase: usize) -> Result<(), Ended> {
        Ok(())
    }

    /// Returns the seat of each of several trials that take turns.
    fn seats(trials: &mut [&mut Self]) -> Vec<Option<AlternationSeat>> {
        trials.iter().map(|_| None).collect()
    }

    /// Is told that a phase begins, which this control stops.
    fn begins(&mut self, _phase: usize, _control: &Arc<Control>) {}

    /// Returns what is observed around its phases.
    fn observed(&self) -> Observed<'_>;

    /// Measures a phase.
    fn measure(&mut self, phase: usize, control: &Arc<Control>) -> Result<PhaseOutcome, Ended>;

    /// Measures a phase of all these trials, each with its control; of one alone, here and now.
    fn measure_all(
        trials: &mut [&mut Self],
        phase: usize,
        controls: &[Arc<Control>],
    ) -> Vec<Result<PhaseOutcome, Ended>> {
        let each = trials.iter_mut().zip(controls);
        each.map(|(trial, control)| trial.measure(phase, control))
            .collect()
    }

    /// Notes what a phase did, however it ended, and what was counted meanwhile.
    fn note(
        &mut self,
        phase: usize,
        outcome: &PhaseOutcome,
        counted: &Counted,
    ) -> Result<(), Ended>;

    /// Is told that a phase is complete, with the outcomes of all until now.
    fn goes_on(&mut self, _phase: usize, _outcomes: &[PhaseOutcome]) -> Result<(), Ended> {
        Ok(())
    }

    /// Works out the figures of a trial whose phases are all complete.
    fn conclude(&mut self, _outcomes: &[PhaseOutcome]) -> Result<(), Ended> {
        Ok(())
    }

    /// Ends what others still do for this trial, whatever came of it.
    fn end_others(&mut self) {}

    /// Says of an error of a phase where it happened.
    fn named(&self, error: String) -> String {
        error
    }

    /// Ends what was begun and removes what was made, at whatever stage it stopped.
    /// There is one outcome for each phase that began and could be noted.
    fn leave(&mut self, ended: Ended, outcomes: Vec<PhaseOutcome>);
}

/// The end of a trial in an error.
pub(super) fn failed(error: impl std::fmt::Display) -> Ended {
    Ended::Failed {
        error: error.to_string(),
    }
}

/// Carries trials out, all together, to whatever end of each. All have equally many phases.
pub(super) fn carry_out<S: Stages>(trials: &mut [S], interrupt: &Interrupt) {
    // Data laid out later would lie in the caches again.
    let prepared = trials
        .iter_mut()
        .map(|stages| UnderWay::prepared(stages, interrupt));
    let mut all: Vec<UnderWay<'_, S>> = prepared.collect();
    let phases = all
        .first()
        .map_or(0, |one| one.stages.workload().phases().len());
    for phase in 0..phases {
        for one in &mut all {
            one.stop_if(interrupt.raised());
            one.step(&|| interrupt.raised(), |stages, _| stages.settle(phase));
        }
        let live = all.iter_mut().filter(|one| one.ended == Ended::Complete);
        measure(live.collect(), phase, interrupt);
    }
    for one in &mut all {
        let conclude = |stages: &mut S, outcomes: &mut Vec<_>| stages.conclude(outcomes);
        one.step(&|| interrupt.raised(), conclude);
    }
    all.into_iter().for_each(UnderWay::left);
}

/// Measures a phase of trials that have come so far.
fn measure<S: Stages>(mut live: Vec<&mut UnderWay<'_, S>>, phase: usize, interrupt: &Interrupt) {
    let mut stages: Vec<&mut S> = live.iter_mut().map(|one| &mut *one.stages).collect();
    // One for each phase: a control that was stopped stays so.
    let seats = S::seats(&mut stages);
    let stops = interrupt.stop_flags(seats.len());
    let each = seats.into_iter().zip(stops);
    let controls: Vec<Arc<Control>> = each
        .map(|(seat, stop)| {
            let mut control = Control::ended_by(stop);
            control.seat = seat;
            Arc::new(control)
        })
        .collect();
    if interrupt.raised() {
        live.iter_mut().for_each(|one| one.stop_if(true));
        return;
    }
    for (stages, control) in stages.iter_mut().zip(&controls) {
        stages.begins(phase, control);
    }
    // As close around the phase as can be: all that lies between is counted as the workload's.
    let counters = Counters::begin(stages.iter().map(|stages| stages.observed()));
    let outcomes = S::measure_all(&mut stages, phase, &controls);
    let counted = counters.end();
    for ((one, control), outcome) in live.iter_mut().zip(&controls).zip(outcomes) {
        one.measured(phase, control, outcome, &counted);
    }
}

/// Counters around a phase, of all the devices of the trials in it.
struct Counters {
    devices: Vec<String>,
    before: Option<Snapshot>,
    pulse: Option<Pulse>,
}

impl Counters {
    fn begin<'a>(observed: impl Iterator<Item = Observed<'a>>) -> Self {
        let (mut devices, mut counts, mut pulses) = (Vec::new(), false, false);
        for one in observed {
            let (Observed::Counters(own) | Observed::CountersAndPulse(own)) = one else {
                continue;
            };
            counts = true;
            pulses |= matches!(one, Observed::CountersAndPulse(_));
            devices.extend_from_slice(own);
        }
        // Stacks may share a disk, which is counted once.
        devices.sort();
        devices.dedup();
        Self {
            before: counts.then(|| Snapshot::take(&devices)),
            pulse: pulses.then(|| Pulse::begin(process::stopped)),
            devices,
        }
    }

    fn end(self) -> Counted {
        let before = self.before;
        let mut counted =
            before.map_or_else(Counted::default, |before| before.until_now(&self.devices));
        if let Some(pulse) = self.pulse {
            pulse.end(&mut counted);
        }
        counted
    }
}

/// A trial under way.
struct UnderWay<'a, S> {
    stages: &'a mut S,
    /// True if its storage was what it was when it began.
    lay_there: bool,
    /// Its end; complete as long as nothing has ended it.
    ended: Ended,
    outcomes: Vec<PhaseOutcome>,
}

impl<'a, S: Stages> UnderWay<'a, S> {
    fn prepared(stages: &'a mut S, interrupt: &Interrupt) -> Self {
        let mut one = Self {
            stages,
            lay_there: false,
            ended: Ended::Complete,
            outcomes: Vec::new(),
        };
        one.step(&|| false, |stages, _| stages.look());
        one.lay_there = one.ended == Ended::Complete;
        one.step(&|| interrupt.raised(), |stages, _| stages.begin());
        if one.ended == Ended::Complete {
            let control = Arc::new(Control::ended_by(interrupt.stop_flag()));
            one.step(&|| control.stopped(), |stages, _| stages.prepare(&control));
            // Whatever it says: it was stopped.
            one.stop_if(control.stopped());
        }
        one
    }

    /// Ends a trial that goes on, if it was interrupted: it begins nothing more.
    fn stop_if(&mut self, interrupted: bool) {
        if interrupted && self.ended == Ended::Complete {
            self.ended = Ended::Interrupted;
        }
    }

    /// Takes one step of a trial that goes on, as long as nothing has ended it.
    fn step(
        &mut self,
        stopped: &dyn Fn() -> bool,
        step: impl FnOnce(&mut S, &mut Vec<PhaseOutcome>) -> Result<(), Ended>,
    ) {
        if self.ended != Ended::Complete {
            return;
        }
        self.ended = match step(self.stages, &mut self.outcomes) {
            Ok(()) => return,
            // An error after an interrupt is the interrupt's doing.
            Err(Ended::Failed { .. }) if stopped() => Ended::Interrupted,
            Err(Ended::Failed { error }) => failed(with_real_names(&error)),
            Err(ended) => ended,
        };
    }

    fn measured(
        &mut self,
        phase: usize,
        control: &Control,
        outcome: Result<PhaseOutcome, Ended>,
        counted: &Counted,
    ) {
        self.step(&|| control.stopped(), |stages, outcomes| {
            let outcome = outcome?;
            stages.note(phase, &outcome, counted)?;
            let end = match (&outcome.error, outcome.ended) {
                (Some(error), _) => Err(failed(stages.named(error.to_string()))),
                (None, PhaseEnd::Complete) => Ok(()),
                (None, _) => Err(Ended::Interrupted),
            };
            outcomes.push(outcome);
            // The next phase would find other data than it expects.
            end?;
            stages.goes_on(phase, outcomes)
        });
    }

    fn left(mut self) {
        self.stages.end_others();
        // What was on something else from the beginning is said already; what the user stopped does not count anyway.
        if self.lay_there
            && self.ended != Ended::Interrupted
            && let Err(Ended::Failed { error }) = self.stages.look()
        {
            // What failed is most likely the effect; both are said.
            self.ended = failed(match &self.ended {
                Ended::Failed { error: effect } => format!("{error} ({effect})"),
                _ => error,
            });
        }
        self.stages.leave(self.ended, self.outcomes);
    }
}
