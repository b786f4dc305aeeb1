//! Phases that alternate: each issues operations for a short part of time, then the next one does.
//!
//! Two phases that run one after the other meet a machine in two moods: what else it does changes
//! from second to second. Phases that alternate every 50 ms meet the same mood, and their ratio
//! varies several times less. They never run at the very same time: that would make each the
//! other's neighbour.
//!
//! A part ends with no operation under way and, with an fsync cadence, with nothing left to sync.
//! The clock of a phase stands still while it waits, so its rates, latencies, deadline and time
//! series are those of a phase that ran alone. Every second lap goes backwards (A B, B A, ...), so
//! that each phase is first and last equally often. [`AlternatedPart`] tells which part was which,
//! so that the effect of the order can be estimated.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::progress::Progress;
use stackrace_system::cpu::Cpu;
use stackrace_system::monotonic_ns;

/// Sleep of a waiting worker before it looks for a stop of the phase.
const LOOK: Duration = Duration::from_millis(10);

/// The work of one phase in one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlternatedPart {
    /// The lap, from 0. In each, every phase that goes on has one part.
    pub lap: u64,
    /// Its place in the lap, from 0.
    pub position: u32,
    /// Time until nothing of it was under way, ns.
    pub ns: u64,
    /// Operations that completed, fsyncs left out.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Sum of their latencies, ns.
    pub latency_ns: u128,
}

/// The two ends of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartMoment {
    /// The part is about to begin: its clock does not run yet.
    Begins,
    /// The part is over: nothing of it is under way, and no other phase has begun.
    Ended,
}

/// Callback that is told of each part of a phase, outside its time. All phases wait until it returns.
pub type PartObserver = Box<dyn Fn(PartMoment) + Send + Sync>;

/// Phases of this process that alternate. Make one seat for each, and put it into the phase's
/// [`Control`](crate::Control).
pub struct Alternation {
    state: Mutex<State>,
    changed: Condvar,
    part_ns: u64,
}

impl fmt::Debug for Alternation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alternation")
            .field("part_ns", &self.part_ns)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    seats: Vec<Seat>,
    /// Phases of this lap that still come, the next one last.
    to_come: Vec<usize>,
    lap: u64,
    position: u32,
    /// The phase whose part it is; `None` before all are set up and after all have left.
    holder: Option<usize>,
}

/// The state of one phase.
#[derive(Debug, Default)]
struct Seat {
    /// Set if its workers are about to start.
    entered: bool,
    left: bool,
    /// Workers that have not ended.
    workers: usize,
    /// Number of the part that runs, from 1, or ran last.
    part: u64,
    /// Workers that have finished it.
    finished: usize,
    /// Start of its part, of the monotonic clock; `None` while it waits.
    begun_ns: Option<u64>,
    /// Time of its parts so far.
    active_ns: u64,
    cpu_begun: Cpu,
    cpu: Cpu,
    /// Work done in the part that runs.
    done: Progress,
    parts: Vec<AlternatedPart>,
}

/// The seat of one phase. A phase leaves when it ends, and when its seat is dropped.
pub struct AlternationSeat {
    shared: Arc<Alternation>,
    index: usize,
    observer: Option<PartObserver>,
}

impl fmt::Debug for AlternationSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlternationSeat")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Alternation {
    /// Seats for `phases` phases with parts of `part_ns` each. None begins before all are set up.
    pub fn seats(phases: usize, part_ns: u64) -> Vec<AlternationSeat> {
        let shared = Arc::new(Alternation {
            state: Mutex::new(State {
                seats: (0..phases).map(|_| Seat::default()).collect(),
                to_come: (0..phases).rev().collect(),
                lap: 0,
                position: 0,
                holder: None,
            }),
            changed: Condvar::new(),
            part_ns: part_ns.max(1),
        });
        let seat = |index| AlternationSeat {
            shared: Arc::clone(&shared),
            index,
            observer: None,
        };
        (0..phases).map(seat).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock means that a worker panicked; joining it reports that.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives the next part to a phase that goes on, once all are set up.
    fn pass_on(&mut self) {
        self.holder = None;
        if self.seats.iter().any(|seat| !seat.entered && !seat.left) {
            return;
        }
        while self.seats.iter().any(|seat| !seat.left) {
            if let Some(next) = self.to_come.pop() {
                if !self.seats[next].left {
                    self.holder = Some(next);
                    self.seats[next].part += 1;
                    return;
                }
            } else {
                self.lap += 1;
                self.position = 0;
                self.to_come = (0..self.seats.len()).collect();
                // The list is taken from its end: even laps go forwards.
                if self.lap.is_multiple_of(2) {
                    self.to_come.reverse();
                }
            }
        }
    }

    /// Ends the part of the phase that holds it.
    fn close_part(&mut self, index: usize) {
        let (lap, position) = (self.lap, self.position);
        let seat = &mut self.seats[index];
        let Some(begun_ns) = seat.begun_ns.take() else {
            return;
        };
        let ns = monotonic_ns().saturating_sub(begun_ns);
        seat.active_ns += ns;
        let cpu = seat.cpu_begun.spent();
        seat.cpu.user_ns += cpu.user_ns;
        seat.cpu.system_ns += cpu.system_ns;
        let done = std::mem::take(&mut seat.done);
        seat.parts.push(AlternatedPart {
            lap,
            position,
            ns,
            ops: done.ops,
            bytes: done.bytes,
            latency_ns: done.latency_ns,
        });
        self.position += 1;
    }
}

/// A part as a worker sees it, in the time of its phase, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartTimes {
    /// Number of the part, from 1.
    pub(crate) part: u64,
    pub(crate) now_ns: u64,
    pub(crate) end_ns: u64,
}

impl AlternationSeat {
    /// The same seat with someone who is told of each of its parts.
    #[must_use]
    pub fn observed(mut self, observer: PartObserver) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The phase will not begin, or has ended: no other one waits for it.
    pub fn give_up(&self) {
        let mut state = self.shared.state();
        state.seats[self.index].left = true;
        if state.holder.is_none_or(|holder| holder == self.index) {
            state.pass_on();
        }
        self.shared.changed.notify_all();
    }

    fn tell(&self, moment: PartMoment) {
        if let Some(observer) = &self.observer {
            observer(moment);
        }
    }

    /// The phase is about to start this many workers.
    pub(crate) fn enter(&self, workers: usize) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        (seat.entered, seat.workers) = (true, workers);
        if state.holder.is_none() {
            state.pass_on();
        }
        self.shared.changed.notify_all();
    }

    /// Waits for a part of this phase after that of number `last`; `stopped` is asked every now and
    /// then. Returns `None` if it returned true.
    pub(crate) fn begin(&self, last: u64, stopped: impl Fn() -> bool) -> Option<PartTimes> {
        let mut state = self.shared.state();
        while state.holder != Some(self.index) || state.seats[self.index].part <= last {
            if stopped() {
                return None;
            }
            let waited = self.shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let seat = &mut state.seats[self.index];
        if seat.begun_ns.is_none() {
            self.tell(PartMoment::Begins);
        }
        let now_ns = monotonic_ns();
        // The part begins with its first worker: what it took to wake up belongs to no phase.
        let begun_ns = *seat.begun_ns.get_or_insert_with(|| {
            seat.cpu_begun = Cpu::now();
            now_ns
        });
        Some(PartTimes {
            part: seat.part,
            now_ns: seat.active_ns + now_ns.saturating_sub(begun_ns),
            end_ns: seat.active_ns + self.shared.part_ns,
        })
    }

    /// Takes so much of the part that runs out of the phase's time.
    pub(crate) fn exclude(&self, ns: u64) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        // Of several workers the others went on meanwhile: for them the time did pass.
        if seat.workers == 1
            && let Some(begun_ns) = &mut seat.begun_ns
        {
            *begun_ns += ns;
        }
    }

    /// A worker has finished its part: it did this much in it, and nothing of it is under way.
    pub(crate) fn finish_part(&self, done: Progress) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        seat.done = seat.done.plus(done);
        seat.finished += 1;
        self.hand_over_if_done(state);
    }

    /// A worker has ended.
    pub(crate) fn retire(&self, done: Progress) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        seat.done = seat.done.plus(done);
        seat.workers = seat.workers.saturating_sub(1);
        self.hand_over_if_done(state);
    }

    fn hand_over_if_done(&self, mut state: MutexGuard<'_, State>) {
        let seat = &mut state.seats[self.index];
        let (is_done, goes_on) = (seat.finished >= seat.workers, seat.workers > 0);
        // A worker that is stopped while its phase waits takes nothing from the others.
        if !is_done || state.holder != Some(self.index) {
            return;
        }
        state.seats[self.index].finished = 0;
        state.close_part(self.index);
        self.tell(PartMoment::Ended);
        // The last worker does not pass on: a closing fsync is still this phase's own.
        if goes_on {
            state.pass_on();
        }
        self.shared.changed.notify_all();
    }

    /// The phase has ended. Returns the processor time of its parts, and the parts.
    pub(crate) fn leave(&self) -> (Cpu, Vec<AlternatedPart>) {
        self.give_up();
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        (seat.cpu, std::mem::take(&mut seat.parts))
    }
}

impl Drop for AlternationSeat {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
