//! How a phase fails, stops, and keeps to its arrivals.

use super::*;

#[test]
fn a_full_device_is_reported_whole() {
    with_engines(|engine, queue_depth| {
        let mut spec = spec(Path::new("/dev/full"), MIB);
        (spec.engine, spec.queue_depth) = (engine, queue_depth);
        (spec.access, spec.read_share, spec.threads) = (AccessPattern::Sequential, 0.5, 1);
        let outcome = run(&spec, &Control::default()).unwrap();
        assert_eq!(outcome.ended, PhaseEnd::Failed);
        let error = outcome.error.as_ref().unwrap();
        assert_eq!(error.errno, rustix::io::Errno::NOSPC.raw_os_error());
        assert_eq!(
            (error.op, error.path.as_path()),
            (Op::Write, Path::new("/dev/full"))
        );
        assert!(
            error
                .offset
                .is_some_and(|offset| offset < MIB && offset % 4096 == 0)
        );
        assert_eq!(count(&outcome, Op::Write), 0);
        // What was measured before it failed is kept.
        consistent(&outcome);
    });
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let directory = directory();
    laid_out(directory.path(), "file", 40_960);
    with_engines(|engine, queue_depth| {
        // The phase was told of more than there is: eleven blocks and a half.
        let mut spec = spec(&directory.path().join("file"), MIB);
        (spec.engine, spec.access) = (engine, AccessPattern::Sequential);
        spec.queue_depth = if engine == IoEngine::Uring {
            queue_depth
        } else {
            1
        };
        let outcome = run(&spec, &Control::default()).unwrap();
        assert_eq!(outcome.ended, PhaseEnd::Failed);
        assert_eq!(count(&outcome, Op::Read), 10, "{engine:?} {queue_depth}");
        let error = outcome.error.unwrap();
        assert_eq!(error.offset, Some(40_960));
        assert!(
            error.to_string().ends_with(
                "at offset 40960: the file ends here: it is shorter than the phase was told"
            ),
            "{error}"
        );
    });
}

#[test]
fn a_short_read_is_counted() {
    let directory = directory();
    laid_out(directory.path(), "file", 10_000);
    with_engines(|engine, queue_depth| {
        let mut spec = spec(&directory.path().join("file"), 12_288);
        (spec.engine, spec.queue_depth, spec.access) =
            (engine, queue_depth, AccessPattern::Sequential);
        spec.stop.ops = Some(3);
        let outcome = done(&spec);
        assert_eq!((outcome.short, of(&outcome, Op::Read).bytes), (1, 10_000));
    });
}

#[test]
fn a_stop_ends_the_phase_and_keeps_what_was_measured() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    with_engines(|engine, queue_depth| {
        let mut spec = spec(&target.path, MIB);
        (spec.engine, spec.queue_depth, spec.threads) = (engine, queue_depth, 2);
        spec.stop = Stop {
            ops: None,
            time_ns: Some(3_600_000_000_000),
        };
        let control = Control::default();
        let outcome = std::thread::scope(|scope| {
            let phase = scope.spawn(|| run(&spec, &control));
            while control.ops.load(Ordering::Relaxed) < 1_000 {
                std::thread::yield_now();
            }
            control.stop.store(true, Ordering::Relaxed);
            phase.join().unwrap().unwrap()
        });
        assert_eq!(outcome.ended, PhaseEnd::Stopped);
        consistent(&outcome);
        assert_eq!(
            control.ops.load(Ordering::Relaxed),
            of(&outcome, Op::Read).count
        );
        assert_eq!(
            control.bytes.load(Ordering::Relaxed),
            of(&outcome, Op::Read).bytes
        );
    });
}

#[test]
fn a_stop_reaches_a_worker_that_waits() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    with_engines(|engine, queue_depth| {
        for pacing in [
            Pacing::Fixed(0.001),
            Pacing::Closed {
                think_time_ns: 3_600_000_000_000,
            },
        ] {
            let mut spec = spec(&target.path, MIB);
            (spec.engine, spec.queue_depth, spec.pacing) = (engine, queue_depth, pacing);
            let control = Control::default();
            let outcome = std::thread::scope(|scope| {
                let phase = scope.spawn(|| run(&spec, &control));
                while control.ops.load(Ordering::Relaxed) < 1 {
                    std::thread::yield_now();
                }
                control.stop.store(true, Ordering::Relaxed);
                phase.join().unwrap().unwrap()
            });
            assert_eq!(outcome.ended, PhaseEnd::Stopped, "{engine:?} {pacing:?}");
        }
    });
}

/// An open loop never issues early: in `time` it issues no more than were due, and all of them
/// completed no earlier than intended (else their latency would have been cut off at zero).
#[test]
fn an_open_loop_offers_what_was_asked() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    with_engines(|engine, queue_depth| {
        for threads in [1, 3] {
            let mut spec = spec(&target.path, MIB);
            (spec.engine, spec.queue_depth, spec.threads) = (engine, queue_depth, threads);
            spec.pacing = Pacing::Fixed(2_000.0);
            spec.stop = Stop {
                ops: None,
                time_ns: Some(200_000_000),
            };
            let outcome = done(&spec);
            let read = of(&outcome, Op::Read);
            assert!(read.count <= 400, "issued early");
            assert!(outcome.elapsed_ns >= 200_000_000);
            assert_eq!(
                read.count + outcome.unissued,
                400,
                "not all are accounted for"
            );
            let (service, lateness) = (
                read.service.as_ref().unwrap(),
                outcome.lateness.as_ref().unwrap(),
            );
            assert_eq!(service.histogram.len(), read.count);
            assert_eq!(lateness.histogram.len(), read.count);
            assert!(service.sum_ns + lateness.sum_ns <= read.latency_sum_ns);
            spec.stop = Stop {
                ops: Some(100),
                time_ns: None,
            };
            let outcome = done(&spec);
            // The hundredth operation is due 99 gaps after the start.
            assert!(outcome.elapsed_ns >= 99 * 500_000, "{}", outcome.elapsed_ns);
            assert_eq!(of(&outcome, Op::Read).count, 100);
        }
    });
}
