//! Trials of several configurations that take turns, slice by slice.
//!
//! They are carried out together: all data are laid out and all stacks settled before the first slice. Each trial has
//! its own clock, which stands still in the slices of others, and its own counters. Each trial ends on its own: if one
//! fails, the others go on without it.

use std::sync::Arc;

use stackrace_engine::{
    AlternatedPart, Alternation, AlternationSeat, Control, PartMoment, PartObserver, PhaseOutcome,
};

use stackrace_base::event::{Counted, SliceSum, Sliced};
use stackrace_load::workload::{Place, Workload, WorkloadError};
use stackrace_machine::observe::SliceCounter;

/// Part of a trial in what is measured in turns.
pub(super) struct SlicedPart {
    slice_ns: u64,
    counter: Arc<SliceCounter>,
}

impl SlicedPart {
    pub(super) fn new(slice_ns: u64, devices: &[String]) -> Self {
        Self {
            slice_ns,
            counter: Arc::new(SliceCounter::new(devices.to_vec())),
        }
    }

    /// Returns what was counted in its own slices, of what was counted from the first of any to the last.
    pub(super) fn counted(&self, whole: &Counted) -> Counted {
        self.counter.counted(whole)
    }

    /// Adds its slices up.
    pub(super) fn sums(&self, outcome: &PhaseOutcome) -> Sliced {
        sliced(&outcome.parts, self.slice_ns)
    }
}

/// Returns the seats of those of several trials that take turns; one that does not has none.
pub(super) fn seats(parts: &[Option<&SlicedPart>]) -> Vec<Option<AlternationSeat>> {
    let slice_ns = parts
        .iter()
        .flatten()
        .next()
        .map_or(0, |part| part.slice_ns);
    let mut seats = Alternation::seats(parts.iter().flatten().count(), slice_ns).into_iter();
    let mut seat = |part: &SlicedPart| Some(seats.next()?.observed(observer(&part.counter)));
    let each = parts.iter();
    each.map(|part| part.and_then(&mut seat)).collect()
}

/// Measures a phase of all these workloads, each at its place in a thread of its own.
pub(super) fn measured(
    phase: usize,
    works: Vec<(&dyn Workload, Place<'_>)>,
) -> Vec<Result<PhaseOutcome, WorkloadError>> {
    // Threads, since a phase cannot be left and entered again: each waits for its turns inside.
    std::thread::scope(|scope| {
        let each = works.into_iter().map(|(workload, place)| {
            scope.spawn(move || {
                let _leaves = LeavesAtTheEnd(place.control);
                workload.measure(phase, &place)
            })
        });
        let phases: Vec<_> = each.collect();
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
