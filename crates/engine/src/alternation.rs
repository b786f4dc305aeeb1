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

use crate::clock::monotonic_ns;
use crate::cpu::Cpu;

/// How long a waiting worker sleeps before it looks whether the phase was stopped.
const LOOK: Duration = Duration::from_millis(10);

/// What one phase did in one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlternatedPart {
    /// The lap, from 0. In each, every phase that goes on has one part.
    pub lap: u64,
    /// Its place in the lap, from 0.
    pub position: u32,
    /// How long it took until nothing of it was under way, ns.
    pub ns: u64,
    /// Operations that completed, fsyncs left out.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

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
    /// The phase whose part it is; none before all are set up and after all have left.
    holder: Option<usize>,
}

/// What is known of one phase.
#[derive(Debug, Default)]
struct Seat {
    /// Whether its workers are about to start.
    entered: bool,
    left: bool,
    /// Workers that have not ended.
    workers: usize,
    /// Which part runs, from 1, or ran last.
    part: u64,
    /// Workers that have finished it.
    finished: usize,
    /// When its part began, of the monotonic clock; none while it waits.
    begun_ns: Option<u64>,
    /// Time of its parts so far.
    active_ns: u64,
    cpu_begun: Cpu,
    cpu: Cpu,
    /// Operations and bytes of the part that runs.
    done: (u64, u64),
    parts: Vec<AlternatedPart>,
}

/// The seat of one phase. A phase leaves when it ends, and when its seat is dropped.
#[derive(Debug)]
pub struct AlternationSeat {
    shared: Arc<Alternation>,
    index: usize,
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
        let (ops, bytes) = std::mem::take(&mut seat.done);
        seat.parts.push(AlternatedPart {
            lap,
            position,
            ns,
            ops,
            bytes,
        });
        self.position += 1;
    }
}

/// A part as a worker sees it, in the time of its phase, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartTimes {
    /// Which, from 1.
    pub(crate) part: u64,
    pub(crate) now_ns: u64,
    pub(crate) end_ns: u64,
}

impl AlternationSeat {
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

    /// Waits for a part of this phase after that of number `last`; `stopped` is asked every now
    /// and then. None: stopped.
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

    /// A worker has finished its part: it did this much in it, and nothing of it is under way.
    pub(crate) fn finish_part(&self, ops: u64, bytes: u64) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        seat.done.0 += ops;
        seat.done.1 += bytes;
        seat.finished += 1;
        self.hand_over_if_done(state);
    }

    /// A worker has ended.
    pub(crate) fn retire(&self, ops: u64, bytes: u64) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        seat.done.0 += ops;
        seat.done.1 += bytes;
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
        // The last worker does not pass on: a closing fsync is still this phase's own.
        if goes_on {
            state.pass_on();
        }
        self.shared.changed.notify_all();
    }

    /// The phase has ended. Returns the processor time of its parts, and the parts.
    pub(crate) fn leave(&self) -> (Cpu, Vec<AlternatedPart>) {
        let mut state = self.shared.state();
        let seat = &mut state.seats[self.index];
        seat.left = true;
        let (cpu, parts) = (seat.cpu, std::mem::take(&mut seat.parts));
        if state.holder.is_none_or(|holder| holder == self.index) {
            state.pass_on();
        }
        self.shared.changed.notify_all();
        (cpu, parts)
    }
}

impl Drop for AlternationSeat {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::spec::{Content, Durability, IoEngine, IoTarget, Pacing, Spec, Stop};
    use crate::{Control, Op, PhaseEnd, PhaseOutcome, StartError, run};

    const PART_NS: u64 = 2_000_000;
    const TEN_PARTS: Stop = Stop {
        ops: None,
        time_ns: Some(10 * PART_NS),
    };

    /// The phases at the same time, each in a thread of its own.
    fn alternate(specs: &[Spec], part_ns: u64) -> Vec<Result<PhaseOutcome, StartError>> {
        let seats = Alternation::seats(specs.len(), part_ns);
        std::thread::scope(|scope| {
            let phases: Vec<_> = specs
                .iter()
                .zip(seats)
                .map(|(spec, seat)| {
                    scope.spawn(move || {
                        let control = Control {
                            seat: Some(seat),
                            ..Control::default()
                        };
                        run(spec, &control)
                    })
                })
                .collect();
            phases
                .into_iter()
                .map(|phase| phase.join().unwrap())
                .collect()
        })
    }

    fn on(directory: &Path, name: &str) -> Spec {
        let path = directory.join(name);
        std::fs::write(&path, vec![0; 1 << 20]).unwrap();
        Spec {
            content: Content::Zero,
            ..Spec::reads(
                vec![IoTarget {
                    path,
                    bytes: 1 << 20,
                }],
                4096,
            )
        }
    }

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in("/var/tmp").unwrap()
    }

    #[test]
    fn a_phase_alternates_until_its_own_time_is_over() {
        let directory = directory();
        for engine in [IoEngine::Null, IoEngine::Sync] {
            let specs = ["a", "b", "c"].map(|name| Spec {
                engine,
                stop: TEN_PARTS,
                ..on(directory.path(), name)
            });
            for outcome in alternate(&specs, PART_NS) {
                let outcome = outcome.unwrap();
                assert_eq!(outcome.ended, PhaseEnd::Complete);
                let total: u64 = outcome.parts.iter().map(|part| part.ops).sum();
                assert_eq!(
                    total, outcome.ops[0].count,
                    "every operation belongs to a part"
                );
                let bytes: u64 = outcome.parts.iter().map(|part| part.bytes).sum();
                assert_eq!(bytes, outcome.ops[0].bytes);
                // The phase's own clock stood still while the others had their parts.
                let active: u64 = outcome.parts.iter().map(|part| part.ns).sum();
                assert!(
                    outcome.elapsed_ns <= active,
                    "{} of {active}",
                    outcome.elapsed_ns
                );
                assert!(outcome.elapsed_ns >= 10 * PART_NS);
            }
        }
    }

    #[test]
    fn every_second_lap_goes_backwards() {
        let directory = directory();
        let specs = ["a", "b"].map(|name| Spec {
            engine: IoEngine::Null,
            stop: Stop {
                ops: None,
                time_ns: Some(6 * PART_NS),
            },
            ..on(directory.path(), name)
        });
        let places: Vec<Vec<u32>> = alternate(&specs, PART_NS)
            .into_iter()
            .map(|outcome| {
                outcome
                    .unwrap()
                    .parts
                    .iter()
                    .map(|part| part.position)
                    .collect()
            })
            .collect();
        // The last part may be alone, when the other phase has ended.
        assert_eq!(places[0][..4], [0, 1, 0, 1]);
        assert_eq!(places[1][..4], [1, 0, 1, 0]);
    }

    #[test]
    fn a_part_ends_with_nothing_left_to_sync() {
        let directory = directory();
        for (engine, queue_depth) in [(IoEngine::Sync, 1), (IoEngine::Auto, 4)] {
            let specs = ["a", "b"].map(|name| Spec {
                engine,
                queue_depth,
                read_share: 0.0,
                stop: Stop {
                    ops: Some(40),
                    time_ns: None,
                },
                durability: Durability {
                    // Never reached by counting: every fsync is one that ends a part.
                    fsync_every: NonZeroU64::new(1000),
                    ..Durability::default()
                },
                ..on(directory.path(), name)
            });
            // Each operation outlasts its part.
            for outcome in alternate(&specs, 1) {
                let outcome = outcome.unwrap();
                let count = |op| {
                    outcome
                        .ops
                        .iter()
                        .find(|it| it.op == op)
                        .map_or(0, |it| it.count)
                };
                assert_eq!(count(Op::Write), 40);
                let ended_by_the_next = outcome.parts.len() as u64 - 1;
                assert!(ended_by_the_next > 1);
                assert!(count(Op::Fsync) >= ended_by_the_next, "{engine:?}");
            }
        }
    }

    #[test]
    fn an_open_loop_offers_nothing_while_it_waits() {
        let directory = directory();
        let specs = ["a", "b"].map(|name| Spec {
            engine: IoEngine::Null,
            pacing: Pacing::Fixed(5_000.0),
            stop: TEN_PARTS,
            ..on(directory.path(), name)
        });
        for outcome in alternate(&specs, PART_NS) {
            let outcome = outcome.unwrap();
            // 20 ms of its own time at 5 a millisecond; 200 if the other's time passed as well.
            assert_eq!(outcome.ops[0].count + outcome.unissued, 100);
        }
    }

    #[test]
    fn a_phase_that_cannot_start_keeps_no_other_waiting() {
        let directory = directory();
        let sound = Spec {
            stop: Stop {
                ops: Some(100),
                time_ns: None,
            },
            ..on(directory.path(), "a")
        };
        let missing = Spec {
            targets: vec![IoTarget {
                path: directory.path().join("none"),
                bytes: 4096,
            }],
            ..sound.clone()
        };
        let endless = Spec {
            stop: Stop::default(),
            ..sound.clone()
        };
        let ended = alternate(&[missing, sound, endless], PART_NS);
        assert!(ended[0].is_err() && ended[2].is_err());
        assert_eq!(ended[1].as_ref().unwrap().ops[0].count, 100);
    }

    #[test]
    fn a_phase_that_waits_can_be_stopped() {
        let mut seats = Alternation::seats(2, PART_NS);
        let waits = seats.pop().unwrap();
        // The other phase is never set up, so that no part begins.
        waits.enter(1);
        assert_eq!(waits.begin(0, || true), None);
        drop(seats);
        assert!(waits.begin(0, || false).is_some(), "the other has left");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Workers that do steps of random number, some stopped early: all end, none at the same
        /// time as one of another phase.
        #[test]
        fn one_phase_at_a_time_and_all_come_to_their_end(
            phases in prop::collection::vec(prop::collection::vec(1..6_u64, 1..4), 1..4)
        ) {
            let running: Vec<AtomicUsize> = phases.iter().map(|_| AtomicUsize::new(0)).collect();
            let seats = Alternation::seats(phases.len(), 1);
            let overlaps = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for (index, (workers, seat)) in phases.iter().zip(&seats).enumerate() {
                    let (running, overlaps) = (&running, &overlaps);
                    scope.spawn(move || {
                        seat.enter(workers.len());
                        std::thread::scope(|scope| for &steps in workers {
                            scope.spawn(move || {
                                let mut last = 0;
                                for step in 0..steps {
                                    if step > 0 {
                                        seat.finish_part(1, 1);
                                    }
                                    last = seat.begin(last, || false).unwrap().part;
                                    running[index].fetch_add(1, Ordering::SeqCst);
                                    std::thread::yield_now();
                                    let others = running.iter().enumerate()
                                        .filter(|(other, _)| *other != index)
                                        .map(|(_, count)| count.load(Ordering::SeqCst));
                                    overlaps.fetch_add(others.sum(), Ordering::SeqCst);
                                    running[index].fetch_sub(1, Ordering::SeqCst);
                                }
                                seat.retire(1, 1);
                            });
                        });
                        let (_, parts) = seat.leave();
                        let done: u64 = parts.iter().map(|part| part.ops).sum();
                        assert_eq!(done, workers.iter().sum::<u64>());
                    });
                }
            });
            prop_assert_eq!(overlaps.into_inner(), 0);
        }
    }
}
