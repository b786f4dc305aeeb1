//! Workers on devices that stall, fail and end early; [`Scripted`] is one of them.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::*;
use crate::clock::FastClock;
use crate::control::Control;
use crate::pace::{Eager, Scheduled};
use crate::pacing::Schedule;
use crate::shape::WorkerShare;
use crate::spec::{Content, IoEngine, IoTarget, Stop};
use crate::watch::spin_ns;
use stackrace_system::draw::Draw;
use stackrace_system::sleep_ns;

/// Errors that a device, file system, quota or server may return in the middle of a phase.
pub(crate) const STORAGE_ERRORS: [Errno; 9] = [
    Errno::IO,
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::STALE,
    Errno::ROFS,
    Errno::FBIG,
    Errno::TIMEDOUT,
    Errno::REMOTEIO,
    Errno::NODEV,
];

/// Operations of 4 KiB on one file.
pub(crate) fn spec(read_share: f64, ops: u64) -> Spec {
    Spec {
        read_share,
        content: Content::Zero,
        stop: Stop {
            ops: Some(ops),
            time_ns: None,
        },
        engine: IoEngine::Null,
        slice_ns: 1_000_000,
        ..Spec::reads(
            vec![IoTarget {
                path: "file".into(),
                bytes: 1 << 20,
            }],
            4096,
        )
    }
}

/// The only worker of a phase.
pub(crate) fn worker<'a>(
    spec: &Spec,
    clock: FastClock,
    control: &'a Control,
    halt: &'a AtomicBool,
) -> BlockWorker<'a> {
    BlockWorker {
        shape: OpSequence::new(spec, &WorkerShare::of_thread(0, 1)).unwrap(),
        recorder: Recorder::new(spec.slice_ns, &[Op::Read, Op::Write, Op::Fsync]),
        watch: PhaseWatch::new(clock, control, halt, spec.stop.time_ns, spin_ns(1)),
        cadence: Cadence::new(spec.durability, spec.targets.len()),
        left: spec.stop.ops.unwrap_or(u64::MAX),
        later: 0,
        again: None,
        outstanding_ns: 0,
        finish: Finish::Complete,
        failure: None,
    }
}

/// Stalls once, fails once, and checks that no operation is early.
struct Scripted {
    clock: FastClock,
    schedule: Schedule,
    issued: u64,
    stalls_at: u64,
    stall_ns: u64,
    fails_at: u64,
    sync_fails: bool,
    errno: Errno,
    short_at: u64,
}

impl Scripted {
    fn new(clock: FastClock, schedule: Schedule) -> Scripted {
        Scripted {
            clock,
            schedule,
            issued: 0,
            stalls_at: u64::MAX,
            stall_ns: 0,
            fails_at: u64::MAX,
            sync_fails: false,
            errno: Errno::IO,
            short_at: u64::MAX,
        }
    }
}

impl IoDevice for Scripted {
    fn issue(&mut self, step: &BlockStep) -> Result<u32, IoFailure> {
        assert!(
            self.clock.now_ns() >= self.schedule.next_ns(),
            "operation {} is early",
            self.issued
        );
        self.schedule.advance();
        let number = self.issued;
        self.issued += 1;
        if number == self.stalls_at {
            sleep_ns(self.stall_ns);
        }
        match number {
            number if number == self.fails_at => Err(self.errno.into()),
            number if number == self.short_at => Ok(step.size - 1),
            _ => Ok(step.size),
        }
    }
    fn sync(&mut self, _target: u32) -> Result<(), IoFailure> {
        if self.sync_fails {
            return Err(self.errno.into());
        }
        Ok(())
    }
}

/// The same clock as in a phase: timer slack could hide an early start.
fn precise_clock() -> FastClock {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).unwrap();
    FastClock::calibrated()
}

/// Every operation due during a stall is charged with the rest of it: of 100 due in a stall of
/// 100 ms, 90 wait 10 ms or more. Counted from the issue there is only one slow operation, and
/// so say the service times. None counts as late, because the queue had no free slot.
#[test]
fn a_stall_is_charged_to_everything_that_was_due() {
    let (control, halt) = (Control::default(), AtomicBool::new(false));
    let clock = precise_clock();
    let schedule = Schedule::fixed(1_000.0, 0, 1);
    let mut worker = worker(&spec(1.0, 150), clock, &control, &halt);
    worker.recorder = worker.recorder.open_loop();
    let mut device = Scripted {
        stalls_at: 20,
        stall_ns: 100_000_000,
        ..Scripted::new(clock, schedule.clone())
    };
    drive(&mut worker, &mut device, &mut Scheduled(schedule));
    let merged = Recorder::merge(vec![worker.recorder], 1_000);
    let latency = &merged.ops[0].latency;
    assert_eq!(latency.len(), 150);
    let waited = latency.count_between(10_000_000, u64::MAX);
    assert!(waited >= 90, "{waited}");
    assert!(latency.max() >= 99_000_000);
    // The device itself stalled once, not a hundred times.
    let service = merged.ops[0].service.as_ref().unwrap();
    assert_eq!(service.sum_ns, u128::from(worker.outstanding_ns));
    assert_eq!(service.histogram.len(), 150);
    assert!(service.sum_ns < merged.ops[0].latency_sum_ns / 10);
    let lateness = merged.lateness.unwrap();
    assert_eq!(lateness.histogram.len(), 150);
    assert!(lateness.sum_ns < merged.ops[0].latency_sum_ns / 10);
    // A response time is lateness plus queueing plus service.
    assert!(merged.ops[0].latency_sum_ns >= service.sum_ns + lateness.sum_ns);
}

/// A generator without a processor for 50 ms causes every wait that follows, not only the
/// first: all 200 operations were due in the first 20 ms.
#[test]
fn operations_behind_a_late_one_are_late_too() {
    let (control, halt) = (Control::default(), AtomicBool::new(false));
    let clock = precise_clock();
    let schedule = Schedule::fixed(10_000.0, 0, 1);
    let mut worker = worker(&spec(1.0, 200), clock, &control, &halt);
    worker.recorder = worker.recorder.open_loop();
    let mut device = Scripted::new(clock, schedule.clone());
    sleep_ns(50_000_000);
    drive(&mut worker, &mut device, &mut Scheduled(schedule));
    let lateness = Recorder::merge(vec![worker.recorder], 1_000).lateness;
    let lateness = lateness.unwrap().histogram;
    assert_eq!(lateness.len(), 200);
    assert!(lateness.min() >= 1_000_000, "{}", lateness.min());
}

#[test]
fn no_operation_of_an_open_loop_is_early() {
    let poisson = Schedule::poisson(5_000.0, 1, Draw::new(1, 0));
    for schedule in [Schedule::fixed(5_000.0, 0, 1), poisson] {
        let (control, halt) = (Control::default(), AtomicBool::new(false));
        let clock = precise_clock();
        let mut worker = worker(&spec(0.5, 200), clock, &control, &halt);
        let mut device = Scripted::new(clock, schedule.clone());
        drive(&mut worker, &mut device, &mut Scheduled(schedule));
        assert_eq!(device.issued, 200);
    }
}

/// Each typical storage error ends the phase and names the operation, its offset and the errno;
/// earlier results are kept.
#[test]
fn every_error_ends_the_phase_and_is_kept_complete() {
    for errno in STORAGE_ERRORS {
        let (control, halt) = (Control::default(), AtomicBool::new(false));
        let clock = FastClock::calibrated();
        let mut worker = worker(&spec(0.0, 100), clock, &control, &halt);
        let seventh = worker.shape.clone().nth(7).unwrap();
        let mut device = Scripted {
            fails_at: 7,
            errno,
            ..Scripted::new(clock, Schedule::fixed(1e9, 0, 1))
        };
        drive(&mut worker, &mut device, &mut Eager);
        let failure = worker.failure.unwrap();
        assert_eq!(
            (failure.op, failure.target, failure.offset, failure.fault),
            (Op::Write, 0, Some(seventh.offset), errno.into())
        );
        assert_eq!((worker.finish, device.issued), (Finish::Failed, 8));
        assert!(halt.load(Ordering::Relaxed), "the others were not told");
        assert_eq!(worker.recorder.count(Op::Write), 7);
        let merged = Recorder::merge(vec![worker.recorder], 1_000);
        assert_eq!(merged.series.iter().map(|s| s.ops).sum::<u64>(), 7);
    }
}

#[test]
fn a_failed_fsync_is_reported_as_an_fsync() {
    let (control, halt) = (Control::default(), AtomicBool::new(false));
    let clock = FastClock::calibrated();
    let mut spec = spec(0.0, 100);
    spec.durability.fsync_every = NonZeroU64::new(3);
    let mut worker = worker(&spec, clock, &control, &halt);
    let mut device = Scripted {
        sync_fails: true,
        ..Scripted::new(clock, Schedule::fixed(1e9, 0, 1))
    };
    drive(&mut worker, &mut device, &mut Eager);
    let failure = worker.failure.unwrap();
    assert_eq!((failure.op, failure.offset), (Op::Fsync, None));
    assert_eq!(worker.recorder.count(Op::Write), 3);
    assert_eq!(worker.recorder.count(Op::Fsync), 0);
}

#[test]
fn a_short_operation_counts_with_what_it_moved() {
    for read_share in [0.0, 1.0] {
        let (control, halt) = (Control::default(), AtomicBool::new(false));
        let clock = FastClock::calibrated();
        let mut worker = worker(&spec(read_share, 10), clock, &control, &halt);
        let mut device = Scripted {
            short_at: 4,
            ..Scripted::new(clock, Schedule::fixed(1e9, 0, 1))
        };
        drive(&mut worker, &mut device, &mut Eager);
        let merged = Recorder::merge(vec![worker.recorder], 1_000);
        assert_eq!((merged.short, merged.ops[0].count), (1, 10));
        assert_eq!(merged.ops[0].bytes, 10 * 4096 - 1);
    }
}
