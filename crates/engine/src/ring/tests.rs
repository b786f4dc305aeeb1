//! The loop against a queue that does everything a kernel may do: take a part, refuse, reorder,
//! shorten, fail.

use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::block_worker::tests::{STORAGE_ERRORS, spec, worker};
use crate::clock::FastClock;
use crate::control::Control;
use crate::outcome::Op;
use crate::pace::{Eager, Scheduled};
use crate::pacing::Schedule;
use crate::recorder::{Merged, Recorder};
use stackrace_system::draw::Draw;

/// A queue by script.
struct Scripted {
    /// Steps that are pushed, not yet taken.
    batch: Vec<(usize, BlockStep)>,
    /// Steps that are taken, not yet complete.
    taken: Vec<(usize, BlockStep)>,
    /// Results that are complete, not yet reaped.
    done: Vec<(usize, i32)>,
    /// Most steps that are taken per turn; 0: everything.
    takes: usize,
    /// Most steps that complete per turn.
    completes: usize,
    /// Refusals before the next success.
    refuses: u32,
    /// The number of the operation that gets this result.
    odd: Option<(usize, i32)>,
    breaks: bool,
    pushed: usize,
    depth: usize,
    most: usize,
    clock: Option<(FastClock, Schedule)>,
    /// Duration of each turn.
    pause_ns: u64,
}

impl Scripted {
    fn new(depth: usize) -> Scripted {
        let (batch, taken, done) = (Vec::new(), Vec::new(), Vec::new());
        Scripted {
            batch,
            taken,
            done,
            takes: 0,
            completes: usize::MAX,
            refuses: 0,
            odd: None,
            breaks: false,
            pushed: 0,
            depth,
            most: 0,
            clock: None,
            pause_ns: 0,
        }
    }
}

impl Ring for Scripted {
    fn push(&mut self, slot: usize, step: &BlockStep) -> bool {
        if let Some((clock, schedule)) = &mut self.clock {
            assert!(
                clock.now_ns() >= schedule.next_ns(),
                "operation {} is early",
                self.pushed
            );
            schedule.advance();
        }
        let used = self.batch.iter().chain(&self.taken).map(|(slot, _)| *slot);
        let mut used = used.chain(self.done.iter().map(|(slot, _)| *slot));
        assert!(used.all(|other| other != slot), "slot {slot} is in use");
        self.batch.push((slot, *step));
        self.pushed += 1;
        let outstanding = self.batch.len() + self.taken.len() + self.done.len();
        self.most = self.most.max(outstanding);
        outstanding <= self.depth
    }

    fn submit(&mut self, _wait: Wait) -> Result<(), Errno> {
        if self.breaks {
            return Err(Errno::FAULT);
        }
        if self.refuses > 0 {
            self.refuses -= 1;
            return Err(Errno::AGAIN);
        }
        if self.pause_ns > 0 {
            sleep_ns(self.pause_ns);
        }
        let takes = if self.takes == 0 {
            self.batch.len()
        } else {
            self.takes
        };
        self.taken
            .extend(self.batch.drain(..takes.min(self.batch.len())));
        for _ in 0..self.completes {
            // Last in, first out: nothing completes in the order it was issued.
            let Some((slot, step)) = self.taken.pop() else {
                break;
            };
            let result = match &mut self.odd {
                Some((0, result)) => {
                    let result = *result;
                    self.odd = None;
                    result
                }
                Some((left, _)) => {
                    *left -= 1;
                    step.size as i32
                }
                None => step.size as i32,
            };
            self.done.push((slot, result));
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<(usize, i32)> {
        self.done.pop()
    }
}

struct Driven {
    drained: bool,
    merged: Merged,
    failure: Option<crate::block_worker::FailedOp>,
    finish: Finish,
}

fn driven(ring: &mut Scripted, reads: f64, ops: u64, every: Option<u64>) -> Driven {
    let (control, halt) = (Control::default(), AtomicBool::new(false));
    let mut spec = spec(reads, ops);
    spec.durability.fsync_every = every.and_then(NonZeroU64::new);
    let mut worker = worker(&spec, FastClock::calibrated(), &control, &halt);
    let mut flight = InFlight::new(ring.depth, 1);
    let drained = drive_ring(&mut worker, ring, &mut Eager, &mut flight);
    let merged = Recorder::merge(vec![worker.recorder], 1_000);
    Driven {
        drained,
        merged,
        failure: worker.failure,
        finish: worker.finish,
    }
}

fn count(merged: &Merged, op: Op) -> u64 {
    merged
        .ops
        .iter()
        .find(|o| o.op == op)
        .map_or(0, |o| o.count)
}

#[test]
fn every_operation_completes_once_however_the_queue_behaves() {
    for (takes, completes, refuses) in [
        (0, usize::MAX, 0),
        (1, 1, 3),
        (3, 2, 0),
        (2, 7, 1),
        (5, 1, 2),
    ] {
        for depth in [1, 2, 5, 8] {
            for every in [None, Some(1), Some(3)] {
                let mut ring = Scripted {
                    takes,
                    completes,
                    refuses,
                    ..Scripted::new(depth)
                };
                let result = driven(&mut ring, 0.5, 100, every);
                assert!(result.drained);
                assert_eq!(result.finish, Finish::Complete);
                assert_eq!(count(&result.merged, Op::Read), 50);
                assert_eq!(count(&result.merged, Op::Write), 50);
                assert_eq!(
                    count(&result.merged, Op::Fsync),
                    every.map_or(0, |every| 50 / every)
                );
                assert_eq!(ring.most, depth, "the queue was not kept full");
            }
        }
    }
}

#[test]
fn a_failure_lets_the_rest_complete_and_is_kept_whole() {
    let mut ring = Scripted {
        completes: 1,
        odd: Some((20, -5)),
        ..Scripted::new(8)
    };
    let result = driven(&mut ring, 0.0, 100, None);
    assert!(result.drained);
    assert_eq!(result.finish, Finish::Failed);
    let failure = result.failure.unwrap();
    assert_eq!((failure.op, failure.fault.errno), (Op::Write, 5));
    assert!(failure.offset.is_some());
    // Twenty before it, seven outstanding when it came.
    assert_eq!(count(&result.merged, Op::Write), 27);
    assert_eq!(ring.pushed, 28);
}

#[test]
fn short_and_empty_reads_are_told_apart() {
    let short = driven(
        &mut Scripted {
            odd: Some((3, 100)),
            ..Scripted::new(4)
        },
        1.0,
        10,
        None,
    );
    assert_eq!((short.merged.short, short.finish), (1, Finish::Complete));
    let empty = driven(
        &mut Scripted {
            odd: Some((3, 0)),
            ..Scripted::new(4)
        },
        1.0,
        10,
        None,
    );
    assert_eq!(empty.finish, Finish::Failed);
    assert_eq!(empty.failure.unwrap().fault, IoFailure::END_OF_FILE);
}

#[test]
fn a_broken_queue_is_not_waited_for() {
    let result = driven(
        &mut Scripted {
            breaks: true,
            ..Scripted::new(4)
        },
        1.0,
        10,
        None,
    );
    assert!(!result.drained);
    assert_eq!(
        result.failure.unwrap().fault.errno,
        Errno::FAULT.raw_os_error()
    );
}

#[test]
fn every_error_ends_the_phase_and_is_kept_whole() {
    for errno in STORAGE_ERRORS {
        let mut ring = Scripted {
            completes: 2,
            odd: Some((5, -errno.raw_os_error())),
            ..Scripted::new(4)
        };
        let result = driven(&mut ring, 0.0, 100, None);
        assert!(result.drained);
        let failure = result.failure.unwrap();
        assert_eq!((failure.op, failure.fault), (Op::Write, errno.into()));
        assert!(failure.offset.is_some());
        assert_eq!(result.finish, Finish::Failed);
        assert_eq!(
            count(&result.merged, Op::Write) as usize,
            ring.pushed - 1,
            "what had been issued was not kept"
        );
    }
}

/// Runs an open loop of 200 operations on this queue.
fn opened(ring: &mut Scripted, schedule: Schedule) -> Merged {
    let (control, halt) = (Control::default(), AtomicBool::new(false));
    // As in a phase: else sleeping too long could hide a start that is too early.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).unwrap();
    let clock = FastClock::calibrated();
    ring.clock = Some((clock, schedule.clone()));
    let mut worker = worker(&spec(1.0, 200), clock, &control, &halt);
    worker.recorder = worker.recorder.open_loop();
    let mut flight = InFlight::new(ring.depth, 1);
    let mut pace = Scheduled(schedule);
    assert!(drive_ring(&mut worker, ring, &mut pace, &mut flight));
    Recorder::merge(vec![worker.recorder], 1_000)
}

#[test]
fn no_operation_of_an_open_loop_is_early() {
    let poisson = Schedule::poisson(5_000.0, 1, Draw::new(1, 0));
    for schedule in [Schedule::fixed(5_000.0, 0, 1), poisson] {
        let mut ring = Scripted {
            completes: 2,
            ..Scripted::new(4)
        };
        opened(&mut ring, schedule);
        assert_eq!(ring.pushed, 200);
    }
}

/// All 200 are due at once, and no place is free for most of them: they wait, but they are not
/// late, and each is served as fast as the queue does it.
#[test]
fn waiting_for_a_place_is_neither_lateness_nor_service() {
    let mut ring = Scripted {
        completes: 1,
        pause_ns: 100_000,
        ..Scripted::new(4)
    };
    let merged = opened(&mut ring, Schedule::fixed(1e9, 0, 1));
    let (latency_ns, service) = (merged.ops[0].latency_sum_ns, &merged.ops[0].service);
    let service = service.as_ref().unwrap();
    let lateness = merged.lateness.unwrap();
    assert_eq!(
        (service.histogram.len(), lateness.histogram.len()),
        (200, 200)
    );
    // One completes every 100 us, and the last one came in last: 4 places serve what 200 wait for.
    assert!(
        latency_ns > 5 * service.sum_ns,
        "{latency_ns} {}",
        service.sum_ns
    );
    assert!(
        latency_ns > 5 * lateness.sum_ns,
        "{latency_ns} {}",
        lateness.sum_ns
    );
    assert!(latency_ns >= service.sum_ns + lateness.sum_ns);
}
