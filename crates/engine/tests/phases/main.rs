//! Whole phases on real files: what was asked for is what was done.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::Ordering;

use fixtures::{engines, skipped};
use stackrace_engine::files::{AtEnd, CurrentNames, FileSet, Pass, VisitOrder};
use stackrace_engine::spec::{AccessPattern, Content, IoEngine, IoTarget, Pacing, Spec, Stop};
use stackrace_engine::tree::{self, CopyMethod};
use stackrace_engine::{Control, Op, OpOutcome, PhaseEnd, PhaseOutcome, StartError, lay_out, run};

mod endings;
#[path = "../fixtures/engines.rs"]
mod fixtures;
mod passes;

const MIB: u64 = 1 << 20;

/// Reads of 4 KiB, uniformly at random, one thread, 1,000 of them.
fn spec(path: &Path, bytes: u64) -> Spec {
    Spec {
        stop: Stop {
            ops: Some(1_000),
            time_ns: None,
        },
        engine: IoEngine::Sync,
        seed: 7,
        slice_ns: 1_000_000,
        ..Spec::reads(
            vec![IoTarget {
                path: path.into(),
                bytes,
            }],
            4096,
        )
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A file of this many random bytes.
fn laid_out(directory: &Path, name: &str, bytes: u64) -> IoTarget {
    let target = IoTarget {
        path: directory.join(name),
        bytes,
    };
    lay_out(
        std::slice::from_ref(&target),
        Content::Random,
        1,
        &Control::default(),
    )
    .unwrap();
    target
}

fn done(spec: &Spec) -> PhaseOutcome {
    let outcome = run(spec, &Control::default()).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    consistent(&outcome);
    outcome
}

fn of(outcome: &PhaseOutcome, op: Op) -> &OpOutcome {
    outcome
        .ops
        .iter()
        .find(|o| o.op == op)
        .unwrap_or_else(|| panic!("no {} at all", op.name()))
}

fn count(outcome: &PhaseOutcome, op: Op) -> u64 {
    outcome
        .ops
        .iter()
        .find(|o| o.op == op)
        .map_or(0, |o| o.count)
}

/// What holds for every outcome.
fn consistent(outcome: &PhaseOutcome) {
    let work = outcome.ops.iter().filter(|o| o.op != Op::Fsync);
    let sums = work.fold((0, 0), |s, o| (s.0 + o.count, s.1 + o.bytes));
    let series = outcome
        .series
        .iter()
        .fold((0, 0), |s, x| (s.0 + x.ops, s.1 + x.bytes));
    assert_eq!(series, sums, "series and counters disagree");
    for op in &outcome.ops {
        assert_eq!(op.latency.len(), op.count);
        assert!(op.latency_sum_ns <= u128::from(op.count) * u128::from(op.latency.max()));
    }
    assert!(outcome.series.len() as u64 <= outcome.elapsed_ns / outcome.slice_ns + 1);
    finite(outcome);
    threads_add_up(outcome);
}

/// The whole is the sum of its threads; what closes a phase is no thread's.
fn threads_add_up(outcome: &PhaseOutcome) {
    for whole in &outcome.ops {
        let parts = outcome
            .threads
            .iter()
            .flat_map(|thread| &thread.ops)
            .filter(|p| p.op == whole.op);
        let parts: Vec<&OpOutcome> = parts.collect();
        let Some((first, others)) = parts.split_first() else {
            assert!(outcome.threads.is_empty() || whole.op == Op::Fsync);
            continue;
        };
        let mut sum = (*first).clone();
        for part in others {
            sum.count += part.count;
            sum.bytes += part.bytes;
            sum.latency_sum_ns += part.latency_sum_ns;
            sum.saturated += part.saturated;
            sum.latency.add(&part.latency).unwrap();
        }
        if whole.op == Op::Fsync {
            assert!(sum.count <= whole.count);
            continue;
        }
        assert_eq!(
            (sum.count, sum.bytes, sum.latency_sum_ns, sum.saturated),
            (
                whole.count,
                whole.bytes,
                whole.latency_sum_ns,
                whole.saturated
            )
        );
        assert_eq!(sum.latency, whole.latency);
    }
}

/// What is not a number cannot be put on record.
fn finite(outcome: &PhaseOutcome) {
    for fraction in [outcome.depth_achieved, outcome.clock_error] {
        assert!(fraction.is_finite() && fraction >= 0.0, "{fraction}");
    }
}

/// Runs a check for each engine that this kernel allows.
fn with_engines(check: impl Fn(IoEngine, u32)) {
    for (engine, queue_depth) in engines() {
        check(engine, queue_depth);
    }
}

#[test]
fn counts_are_exact_whatever_the_threads() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    with_engines(|engine, queue_depth| {
        for (threads, ops) in [(1, 1_000), (3, 1_001), (4, 3)] {
            let mut spec = spec(&target.path, MIB);
            (spec.engine, spec.queue_depth) = (engine, queue_depth);
            (spec.threads, spec.stop.ops) = (threads, Some(ops));
            let outcome = done(&spec);
            assert_eq!(of(&outcome, Op::Read).count, ops);
            assert_eq!(of(&outcome, Op::Read).bytes, ops * 4096);
            assert_eq!(outcome.short, 0);
            let stand_ins = if engine == IoEngine::Sync {
                queue_depth
            } else {
                1
            };
            let started = (threads * stand_ins) as usize;
            assert_eq!(outcome.threads.len(), if started > 1 { started } else { 0 });
            // A closed loop has neither a schedule to be late for nor a place to wait for.
            assert!(outcome.lateness.is_none() && outcome.unissued == 0);
            assert!(of(&outcome, Op::Read).service.is_none());
        }
    });
}

#[test]
fn the_mix_is_exact() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    with_engines(|engine, queue_depth| {
        let mut spec = spec(&target.path, MIB);
        (spec.engine, spec.queue_depth) = (engine, queue_depth);
        (spec.threads, spec.read_share, spec.stop.ops) = (3, 0.7, Some(2_000));
        let outcome = done(&spec);
        assert_eq!(
            (count(&outcome, Op::Read), count(&outcome, Op::Write)),
            (1_400, 600)
        );
    });
}

#[test]
fn each_block_is_written_once_and_with_its_own_content() {
    with_engines(|engine, queue_depth| {
        let directory = directory();
        let path = directory.path().join("file");
        let blocks = 777;
        let mut spec = spec(&path, blocks * 4096);
        (spec.engine, spec.queue_depth, spec.threads) = (engine, queue_depth, 2);
        (spec.access, spec.read_share) = (AccessPattern::OncePerPass, 0.0);
        spec.stop.ops = Some(blocks);
        let outcome = done(&spec);
        assert_eq!(of(&outcome, Op::Write).bytes, blocks * 4096);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, blocks * 4096);
        let stamps: std::collections::HashSet<&[u8]> = bytes.chunks(512).map(|s| &s[..8]).collect();
        assert_eq!(
            stamps.len() as u64,
            blocks * 8,
            "{engine:?}: sectors repeat or were missed"
        );
    });
}

#[test]
fn a_write_that_reads_first_changes_one_byte_of_each_block_and_counts_as_one_operation() {
    let directory = directory();
    let blocks = 300;
    let target = laid_out(directory.path(), "file", blocks * 4096);
    let before = std::fs::read(&target.path).unwrap();
    for (queue_depth, read_share, writes) in [(1, 0.0, 300), (2, 0.5, 150)] {
        let mut spec = spec(&target.path, target.bytes);
        (spec.engine, spec.queue_depth) = (IoEngine::Update, queue_depth);
        (spec.access, spec.read_share) = (AccessPattern::OncePerPass, read_share);
        spec.stop.ops = Some(blocks);
        std::fs::write(&target.path, &before).unwrap();
        let outcome = done(&spec);
        assert_eq!(of(&outcome, Op::Write).bytes, writes * 4096);
        let after = std::fs::read(&target.path).unwrap();
        let changed = before.chunks(4096).zip(after.chunks(4096));
        let changed = changed.map(|(before, after)| {
            let pairs = before.iter().zip(after);
            pairs.filter(|(before, after)| before != after).count()
        });
        let changed: Vec<usize> = changed.collect();
        assert_eq!(changed.iter().sum::<usize>() as u64, writes);
        assert!(changed.iter().all(|bytes| *bytes <= 1));
    }
}

#[test]
fn a_write_that_reads_first_fails_where_the_file_has_no_block() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", 10 * 4096);
    let mut spec = spec(&target.path, 11 * 4096);
    (spec.engine, spec.access, spec.read_share) =
        (IoEngine::Update, AccessPattern::Sequential, 0.0);
    spec.stop.ops = Some(11);
    let outcome = run(&spec, &Control::default()).unwrap();
    let error = outcome.error.unwrap().to_string();
    assert!(error.contains("the file ends here"), "{error}");
}

#[test]
fn a_sequential_write_fills_the_files_in_order_with_the_bytes_of_its_pool() {
    let directory = directory();
    let targets: Vec<IoTarget> = [10_000, 0, 8_192]
        .into_iter()
        .enumerate()
        .map(|(i, bytes)| IoTarget {
            path: directory.path().join(format!("{i}")),
            bytes,
        })
        .collect();
    let mut spec = spec(&targets[0].path, 0);
    spec.targets = targets.clone();
    (spec.access, spec.read_share, spec.stop.ops) = (AccessPattern::Sequential, 0.0, Some(4));
    done(&spec);
    let mut pool =
        stackrace_engine::content::ContentPool::new(Content::Random, 7, 0, 1, 4096..=4096, 4 << 20)
            .unwrap();
    let mut expected = || [pool.take(4096).to_vec(), pool.take(4096).to_vec()].concat();
    let (first, third) = (expected(), expected());
    assert_eq!(std::fs::read(&targets[0].path).unwrap(), first);
    assert_eq!(std::fs::read(&targets[1].path).unwrap(), b"");
    assert_eq!(std::fs::read(&targets[2].path).unwrap(), third);
}

#[test]
fn fsyncs_follow_their_cadence() {
    with_engines(|engine, queue_depth| {
        let directory = directory();
        let path = directory.path().join("file");
        for (every, writes, expected) in [(1, 50, 50), (7, 50, 7), (100, 50, 0)] {
            let mut spec = spec(&path, MIB);
            (spec.engine, spec.read_share, spec.stop.ops) = (engine, 0.0, Some(writes));
            // One worker: the cadence is each worker's own.
            spec.queue_depth = if engine == IoEngine::Uring {
                queue_depth
            } else {
                1
            };
            spec.durability.fsync_every = NonZeroU64::new(every);
            let outcome = done(&spec);
            assert_eq!(of(&outcome, Op::Write).count, writes);
            assert_eq!(
                count(&outcome, Op::Fsync),
                expected,
                "{engine:?}, every {every}"
            );
            spec.durability.fsync_at_end = true;
            spec.durability.data_only = true;
            assert_eq!(count(&done(&spec), Op::Fsync), expected + 1);
        }
    });
}

/// The flag moves time into the writes, and changes neither what is done nor how much is
/// outstanding: one operation per worker.
#[test]
fn an_fsync_counts_into_its_write_where_asked() {
    let directory = directory();
    let path = laid_out(directory.path(), "file", MIB).path;
    let pacings = [
        Pacing::Closed { think_time_ns: 0 },
        Pacing::Closed { think_time_ns: 1 },
        Pacing::Fixed(50_000.0),
    ];
    for (pacing, threads) in pacings.into_iter().zip([1, 3, 1]) {
        let mut spec = spec(&path, MIB);
        (spec.read_share, spec.stop.ops) = (0.5, Some(200));
        (spec.pacing, spec.threads) = (pacing, threads);
        spec.durability.fsync_every = Some(NonZeroU64::MIN);
        let apart = done(&spec);
        spec.durability.fsync_in_write = true;
        let joint = done(&spec);
        for outcome in [&apart, &joint] {
            assert_eq!(of(outcome, Op::Read).count, 100);
            assert_eq!(of(outcome, Op::Write).count, 100);
            assert_eq!(of(outcome, Op::Write).bytes, 100 * 4096);
            assert_eq!(of(outcome, Op::Fsync).count, 100);
            assert!(outcome.depth_achieved <= f64::from(threads));
        }
        let (write, fsync) = (of(&joint, Op::Write), of(&joint, Op::Fsync));
        assert!(
            write.latency_sum_ns >= fsync.latency_sum_ns,
            "{} ns of writes hold {} ns of fsyncs",
            write.latency_sum_ns,
            fsync.latency_sum_ns
        );
        // Each write is at least as long as its own fsync, so the shortest and the longest are.
        assert!(write.latency.min() >= fsync.latency.min());
        assert!(write.latency.max() >= fsync.latency.max());
    }
}

#[test]
fn an_fsync_in_a_write_needs_plain_calls_and_one_fsync_per_write() {
    let directory = directory();
    let mut spec = spec(&directory.path().join("file"), MIB);
    (spec.read_share, spec.queue_depth, spec.stop.ops) = (0.0, 4, Some(10));
    spec.durability.fsync_in_write = true;
    for every in [None, NonZeroU64::new(2)] {
        spec.durability.fsync_every = every;
        let error = run(&spec, &Control::default()).unwrap_err();
        assert!(matches!(error, StartError::Spec { .. }), "{error:?}");
        assert!(error.to_string().contains("follows"), "{error}");
    }
    spec.durability.fsync_every = Some(NonZeroU64::MIN);
    spec.engine = IoEngine::Uring;
    let error = run(&spec, &Control::default()).unwrap_err();
    assert!(matches!(error, StartError::Spec { .. }), "{error:?}");
    assert!(error.next().contains("use the sync engine"), "{error}");
    spec.engine = IoEngine::Auto;
    let outcome = done(&spec);
    assert_eq!(outcome.engine, "sync");
    assert!(
        outcome.engine_why.contains("part of its latency"),
        "{}",
        outcome.engine_why
    );
}

#[test]
fn only_written_files_are_synced_by_the_cadence() {
    let directory = directory();
    let targets = [
        laid_out(directory.path(), "a", MIB),
        laid_out(directory.path(), "b", MIB),
    ];
    with_engines(|engine, queue_depth| {
        let mut spec = spec(&targets[0].path, MIB);
        spec.targets = targets.to_vec();
        (spec.engine, spec.queue_depth) = (
            engine,
            if engine == IoEngine::Uring {
                queue_depth
            } else {
                1
            },
        );
        (spec.access, spec.read_share) = (AccessPattern::Sequential, 0.0);
        spec.durability.fsync_every = NonZeroU64::new(64);
        // The first four cadences lie in the first file, the last four in the second.
        spec.stop.ops = Some(512);
        // Around the change of files, a ring completes writes to both in any order.
        let most = if spec.queue_depth > 1 { 10 } else { 8 };
        let syncs = count(&done(&spec), Op::Fsync);
        assert!(
            (8..=most).contains(&syncs),
            "{engine:?} {queue_depth}: {syncs}"
        );
    });
}

#[test]
fn a_read_phase_never_syncs() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    let mut spec = spec(&target.path, MIB);
    spec.durability.fsync_at_end = true;
    spec.durability.fsync_every = NonZeroU64::new(1);
    assert_eq!(count(&done(&spec), Op::Fsync), 0);
}

#[test]
fn think_time_is_taken() {
    let directory = directory();
    let target = laid_out(directory.path(), "file", MIB);
    with_engines(|engine, queue_depth| {
        let mut spec = spec(&target.path, MIB);
        (spec.engine, spec.queue_depth) = (engine, queue_depth);
        spec.pacing = Pacing::Closed {
            think_time_ns: 1_000_000,
        };
        spec.stop.ops = Some(u64::from(queue_depth) * 10);
        let outcome = done(&spec);
        // Each place in the queue thinks nine times.
        assert!(outcome.elapsed_ns >= 9_000_000);
        // Thinking is not waiting for the device.
        assert!(
            outcome.depth_achieved < f64::from(queue_depth) * 0.9,
            "{}",
            outcome.depth_achieved
        );
    });
}

#[test]
fn direct_io_works_where_the_file_system_has_it() {
    // Not /tmp, which may be in memory; the target directory may belong to another user.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .or_else(|_| tempfile::tempdir_in("/var/tmp"))
        .unwrap();
    let target = laid_out(directory.path(), "file", MIB);
    let mut engines = engines();
    engines.extend([(IoEngine::Auto, 1), (IoEngine::Auto, 8)]);
    for (engine, queue_depth) in engines {
        let mut spec = spec(&target.path, MIB);
        (spec.engine, spec.queue_depth, spec.direct) = (engine, queue_depth, true);
        (spec.read_share, spec.stop.ops) = (0.5, Some(100));
        match run(&spec, &Control::default()) {
            Err(error @ (StartError::DirectRefused { .. } | StartError::Ring { .. })) => {
                skipped(&format!("direct I/O, {engine:?}"), &error.to_string());
            }
            Err(error) => panic!("{error}"),
            Ok(outcome) => {
                consistent(&outcome);
                assert_eq!(count(&outcome, Op::Read) + count(&outcome, Op::Write), 100);
                println!(
                    "{engine:?} {queue_depth}: {} ({})",
                    outcome.engine, outcome.engine_why
                );
            }
        }
    }
}

#[test]
fn what_cannot_begin_says_why() {
    let refused = |change: &dyn Fn(&mut Spec)| {
        let mut spec = spec(Path::new("/nonexistent/file"), MIB);
        change(&mut spec);
        run(&spec, &Control::default()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|_| ()),
        "cannot open /nonexistent/file: No such file or directory"
    );
    assert_eq!(refused(&|spec| spec.targets.clear()), "no file to work on");
    assert_eq!(
        refused(&|spec| spec.stop = Stop::default()),
        "the phase would never end"
    );
    assert_eq!(
        refused(&|spec| spec.threads = 0),
        "0 threads with queue depth 1"
    );
    assert_eq!(
        refused(&|spec| spec.pacing = Pacing::Fixed(0.0)),
        "0 operations per second"
    );
    assert_eq!(
        refused(&|spec| {
            spec.targets[0].path = "/dev/null".into();
            (spec.threads, spec.queue_depth) = (100, 100);
        }),
        "100 threads with queue depth 100 are 10000 threads here, each with one operation outstanding: too many"
    );
}

#[test]
fn a_layout_that_does_not_fit_says_where() {
    let target = IoTarget {
        path: "/dev/full".into(),
        bytes: MIB,
    };
    let error = lay_out(&[target], Content::Random, 1, &Control::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "laying out files: write of /dev/full at offset 0 failed: \
        No space left on device"
    );
    assert_eq!(
        error.next(),
        "free some space, or lower the size of the working set"
    );
}

#[test]
fn a_layout_writes_what_was_asked_and_can_be_stopped() {
    let directory = directory();
    let control = Control::default();
    let target = IoTarget {
        path: directory.path().join("file"),
        bytes: 2 * MIB + 1_234,
    };
    lay_out(std::slice::from_ref(&target), Content::Random, 1, &control).unwrap();
    let bytes = std::fs::read(&target.path).unwrap();
    assert_eq!(bytes.len() as u64, target.bytes);
    assert_eq!(control.bytes.load(Ordering::Relaxed), target.bytes);
    let stamps: std::collections::HashSet<&[u8]> =
        bytes.chunks(512).map(|s| &s[..8.min(s.len())]).collect();
    assert_eq!(stamps.len(), bytes.len().div_ceil(512));

    control.stop.store(true, Ordering::Relaxed);
    let other = IoTarget {
        path: directory.path().join("other"),
        bytes: MIB,
    };
    lay_out(std::slice::from_ref(&other), Content::Random, 1, &control).unwrap();
    assert_eq!(std::fs::read(&other.path).unwrap(), b"");
}

#[test]
fn the_generator_knows_its_own_cost() {
    let cost = stackrace_engine::self_cost(200_000);
    println!("null engine: {cost:.1} ns per operation");
    assert!(cost > 0.0);
}

/// Phases of every kind that were told to stop before they began.
#[test]
fn a_phase_that_hardly_began_has_numbers_all_the_same() {
    let directory = directory();
    let home = directory.path();
    let target = laid_out(home, "file", MIB);
    let control = Control::default();
    control.stop.store(true, Ordering::Relaxed);
    let set = FileSet {
        root: home.to_path_buf(),
        directories: 1,
        files: 10,
        size_min: 0,
        size_max: 10,
        threads: 2,
        fsync_each: false,
        content: Content::Random,
        names: CurrentNames::default(),
        seed: 1,
    };
    set.prepare().unwrap();
    let tree = set.directory_paths().next().unwrap();
    let method = CopyMethod::Classic { buffer_bytes: 4096 };
    let (to, end) = (home.join("copy"), AtEnd::Return);
    let pass = Pass {
        order: VisitOrder::Creation,
        at_end: end,
        slice_ns: 1,
        control: &control,
    };
    for outcome in [
        run(&spec(&target.path, MIB), &control).unwrap(),
        set.create(pass).unwrap(),
        tree::copy_file(&target.path, &to, method, end, 1, &control).unwrap(),
        tree::delete_tree(&tree, end, 1, &control).unwrap(),
    ] {
        assert_eq!(outcome.ended, PhaseEnd::Stopped, "{}", outcome.engine_why);
        consistent(&outcome);
    }
    let mut empty = spec(&target.path, MIB);
    (empty.engine, empty.stop.ops) = (IoEngine::Null, Some(0));
    assert_eq!(done(&empty).ops.len(), 0);
}
