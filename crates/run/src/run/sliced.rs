//! Trials of several configurations that take turns, slice by slice.
//!
//! All data are laid out and all stacks settled before the first slice. Each trial has its own clock,
//! which stands still in the slices of others, and its own counters. Each trial ends on its own:
//! if one fails, the others go on without it.

use std::path::Path;
use std::sync::Arc;

use stackrace_engine::{
    AlternatedPart, Alternation, Control, PartMoment, PartObserver, PhaseOutcome,
};

use super::trial::{Trial, TrialSite};
use stackrace_base::event::{Counted, Ended, Observation, SliceSum, Sliced};
use stackrace_load::workload::{KeptData, WorkloadError};
use stackrace_machine::observe::{Pulse, SliceCounter, Snapshot};

/// A trial that takes turns.
struct SlicedTrial<'a> {
    trial: &'a Trial<'a>,
    site: TrialSite<'a>,
    directory: &'a Path,
    /// True if its directory exists.
    made: bool,
    /// Data that may stay for the next trial.
    data: Option<KeptData>,
    observation: Observation,
}

/// Measures the trials, each of another configuration, in turns of `slice_ns`; the first lap goes in
/// the order of the trials.
pub(super) fn run(trials: &[Trial<'_>], slice_ns: u64) -> Vec<Observation> {
    let directories: Vec<_> = trials.iter().map(Trial::directory).collect();
    let prepared = trials.iter().zip(&directories);
    let mut all: Vec<SlicedTrial<'_>> = prepared
        .map(|(trial, directory)| SlicedTrial::prepared(trial, directory))
        .collect();
    // Data laid out later would lie in the caches again.
    for trial in &mut all {
        trial.settle();
    }
    let mut ready: Vec<&mut SlicedTrial<'_>> = all
        .iter_mut()
        .filter(|trial| trial.observation.ended == Ended::Complete)
        .collect();
    measure(&mut ready, slice_ns);
    all.into_iter().map(SlicedTrial::left).collect()
}

fn measure(ready: &mut [&mut SlicedTrial<'_>], slice_ns: u64) {
    let Some(executor) = ready.first().map(|first| first.trial.executor) else {
        return;
    };
    let mut devices = Vec::new();
    let mut counters = Vec::new();
    for trial in &mut *ready {
        let own = trial.trial.standing.devices().to_vec();
        counters.push(Arc::new(SliceCounter::new(own.clone())));
        devices.extend(own);
    }
    // Stacks may share a disk, which is counted once.
    devices.sort();
    devices.dedup();
    let seats = Alternation::seats(ready.len(), slice_ns).into_iter();
    let seats = seats.zip(&counters);
    let controls = executor
        .interrupt
        .controls(seats.map(|(seat, counter)| Some(seat.observed(observer(counter)))));
    for (trial, control) in ready.iter_mut().zip(&controls) {
        trial.begins(control);
    }
    let before = Snapshot::take(&devices);
    let pulse = Pulse::begin();
    let outcomes = phases(ready, &controls);
    let mut whole = before.until(&Snapshot::take(&devices));
    pulse.end(&mut whole);
    for ((trial, control), (counter, outcome)) in ready
        .iter_mut()
        .zip(&controls)
        .zip(counters.iter().zip(outcomes))
    {
        trial.measured(control, outcome, counter.counted(&whole), slice_ns);
    }
}

/// The phases of all trials, each in a thread of its own.
fn phases(
    ready: &[&mut SlicedTrial<'_>],
    controls: &[Arc<Control>],
) -> Vec<Result<PhaseOutcome, WorkloadError>> {
    // Threads, since a phase cannot be left and entered again: each waits for its turns inside.
    std::thread::scope(|scope| {
        let phases: Vec<_> = ready
            .iter()
            .zip(controls)
            .map(|(trial, control)| {
                let (workload, place) = (trial.trial.workload(), trial.site.place(control));
                scope.spawn(move || {
                    let _leaves = LeavesAtTheEnd(control);
                    workload.measure(0, &place)
                })
            })
            .collect();
        let joined = phases.into_iter().map(|phase| phase.join());
        joined
            // A panic is a fault of this program, and must not look like a failed trial.
            .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Frees the seat of a phase however it ends, so that no other one waits for it.
struct LeavesAtTheEnd<'a>(&'a Control);

impl Drop for LeavesAtTheEnd<'_> {
    fn drop(&mut self) {
        if let Some(seat) = &self.0.seat {
            seat.give_up();
        }
    }
}

fn observer(counter: &Arc<SliceCounter>) -> PartObserver {
    let counter = Arc::clone(counter);
    Box::new(move |moment| match moment {
        PartMoment::Begins => counter.begins(),
        PartMoment::Ended => counter.ended(),
    })
}

impl<'a> SlicedTrial<'a> {
    /// Lays out its data.
    fn prepared(trial: &'a Trial<'a>, directory: &'a Path) -> Self {
        let mut prepared = Self {
            trial,
            site: trial.trial_site(directory),
            directory,
            made: false,
            data: None,
            observation: trial.begun(),
        };
        let ended = prepared.prepare();
        prepared.ended(ended);
        prepared
    }

    fn prepare(&mut self) -> Result<(), Ended> {
        self.trial.lies_where_it_lay(&mut self.observation)?;
        let found = self.trial.find_data(self.directory)?;
        self.made = true;
        self.data = self
            .trial
            .prepare(&self.site, found, &mut self.observation, &[])?;
        Ok(())
    }

    fn settle(&mut self) {
        if self.observation.ended == Ended::Complete {
            let settled = self.trial.settle(self.directory, &mut self.observation);
            self.ended(settled);
        }
    }

    fn begins(&mut self, control: &Arc<Control>) {
        let phases = self.trial.workload().phases();
        let part = format!("{}, in slices", phases[0]);
        self.trial.begins_with(&part, control);
        self.observation.started_at = self.trial.executor.clock.today();
    }

    fn measured(
        &mut self,
        control: &Control,
        outcome: Result<PhaseOutcome, WorkloadError>,
        counted: Counted,
        slice_ns: u64,
    ) {
        let ended = outcome
            .map_err(|trouble| self.trial.ended(control, trouble.0))
            .and_then(|outcome| {
                let observation = &mut self.observation;
                self.trial.note(0, &outcome, counted, observation);
                observation.sliced = Some(sliced(&outcome.parts, slice_ns));
                self.trial.accept(control, &outcome)?;
                self.trial.conclude(&[outcome], observation)
            });
        self.ended(ended);
    }

    fn ended(&mut self, ended: Result<(), Ended>) {
        if let Err(ended) = ended {
            self.observation.ended = ended;
        }
    }

    /// Keeps its data or removes them.
    fn left(mut self) -> Observation {
        self.trial.has_lain_there(&mut self.observation);
        if self.made {
            let (data, observation) = (self.data.take(), &mut self.observation);
            self.trial.leave(self.directory, data, observation);
        }
        self.observation
    }
}

fn sliced(parts: &[AlternatedPart], slice_ns: u64) -> Sliced {
    let sum = |backwards: bool| {
        // Laps count from 0, and every second one goes backwards.
        let of = |part: &&AlternatedPart| part.lap.is_multiple_of(2) != backwards;
        let plus = |sum: SliceSum, part: &AlternatedPart| SliceSum {
            ns: sum.ns + part.ns,
            operations: sum.operations + part.ops,
            bytes: sum.bytes + part.bytes,
            latency_ns: sum.latency_ns.saturating_add(
                // More than 584 years of waiting saturate.
                u64::try_from(part.latency_ns).unwrap_or(u64::MAX),
            ),
        };
        parts.iter().filter(of).fold(SliceSum::default(), plus)
    };
    Sliced {
        slice_ns,
        slices: parts.len() as u64,
        forwards: sum(false),
        backwards: sum(true),
    }
}
