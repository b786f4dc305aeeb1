//! Phases on storage that fails, is full or stands still: what was asked, what the system said and
//! what was measured until then are all kept.
//!
//! The storage is real: loop devices and small file systems, most of which need root.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Output};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::Errno;
use stackrace_engine::clock::FastClock;
use stackrace_engine::spec::{AccessPattern, IoEngine, IoTarget, Pacing, Spec, Stop};
use stackrace_engine::{Control, Op, OpError, OpOutcome, PhaseEnd, PhaseOutcome, StartError, run};
use stackrace_test_needs as needs;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// Ways to do I/O: engine, queue depth, direct.
const WAYS: [(IoEngine, u32, bool); 6] = [
    (IoEngine::Sync, 1, false),
    (IoEngine::Sync, 1, true),
    (IoEngine::Sync, 4, false),
    (IoEngine::Uring, 1, false),
    (IoEngine::Uring, 16, false),
    (IoEngine::Uring, 16, true),
];

/// Sequential writes of 4 KiB, one thread, as many as fit.
fn spec(path: &Path, bytes: u64, (engine, queue_depth, direct): (IoEngine, u32, bool)) -> Spec {
    Spec {
        access: AccessPattern::Sequential,
        read_share: 0.0,
        queue_depth,
        direct,
        stop: Stop {
            ops: Some(bytes / 4096),
            time_ns: None,
        },
        engine,
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

#[expect(
    clippy::disallowed_methods,
    reason = "what the engine is pointed at is made by tools"
)]
fn tried(name: &str, args: &[&str]) -> Output {
    std::process::Command::new(name)
        .args(args)
        .output()
        .unwrap()
}

/// Runs a tool that has to succeed and returns what it said.
fn tool(name: &str, args: &[&str]) -> String {
    let output = tried(name, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {args:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A directory on a disk, not in memory.
fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("stackrace-test-")
        .tempdir_in("/var/tmp")
        .unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A loop device over a file of this many bytes.
struct Loop {
    device: PathBuf,
}

impl Loop {
    fn over(file: &Path, bytes: u64) -> Loop {
        fs::File::create(file).unwrap().set_len(bytes).unwrap();
        let device = tool("losetup", &["--find", "--show", text(file)]).into();
        Loop { device }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        tried("losetup", &["--detach", text(&self.device)]);
    }
}

/// A mounted file system; gone when this is.
struct Mounted {
    at: TempDir,
    _device: Option<Loop>,
}

impl Mounted {
    /// In memory, with room for this many bytes.
    fn tmpfs(bytes: u64) -> Mounted {
        let at = directory();
        let size = format!("size={bytes}");
        tool(
            "mount",
            &["-t", "tmpfs", "-o", &size, "none", text(at.path())],
        );
        let _device = None;
        Mounted { at, _device }
    }

    /// ext4 on a loop device over a file in `home`.
    fn ext4(home: &Path, bytes: u64) -> Mounted {
        let at = directory();
        let device = Loop::over(&home.join("image"), bytes);
        tool("mkfs.ext4", &["-q", text(&device.device)]);
        tool("mount", &[text(&device.device), text(at.path())]);
        let _device = Some(device);
        Mounted { at, _device }
    }

    fn file(&self) -> PathBuf {
        self.at.path().join("file")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed may have left it frozen.
        tried("fsfreeze", &["--unfreeze", text(self.at.path())]);
        // A ring lets go of its files a moment after it is closed.
        tried("umount", &["--lazy", text(self.at.path())]);
    }
}

fn of(outcome: &PhaseOutcome, op: Op) -> Option<&OpOutcome> {
    outcome.ops.iter().find(|kind| kind.op == op)
}

fn count(outcome: &PhaseOutcome, op: Op) -> u64 {
    of(outcome, op).map_or(0, |kind| kind.count)
}

/// Runs a phase that has to fail on its way; none: it cannot even begin on this file system.
fn failed(spec: &Spec) -> Option<(PhaseOutcome, OpError)> {
    let outcome = match run(spec, &Control::default()) {
        // Some file systems have no direct I/O at all: then there is nothing to fail.
        Err(StartError::DirectRefused { .. }) => return None,
        // Rings come last: the other ways were tried by then.
        Err(error @ StartError::Ring { .. }) => needs::skip(error),
        other => other.unwrap(),
    };
    assert_eq!(outcome.ended, PhaseEnd::Failed, "{spec:?}");
    let error = outcome.error.clone().unwrap();
    assert_eq!(error.path, spec.targets[0].path);
    assert!(outcome.elapsed_ns > 0);
    // Everything that completed is in the counters, the histograms and the series alike.
    let work = outcome.ops.iter().filter(|kind| kind.op != Op::Fsync);
    let (ops, bytes) = work.fold((0, 0), |s, kind| (s.0 + kind.count, s.1 + kind.bytes));
    let series = outcome.series.iter();
    assert_eq!(
        series.fold((0, 0), |s, x| (s.0 + x.ops, s.1 + x.bytes)),
        (ops, bytes)
    );
    assert!(
        outcome
            .ops
            .iter()
            .all(|kind| kind.latency.len() == kind.count)
    );
    Some((outcome, error))
}

/// A loop device whose file lost its second half reads its first, and then says EIO.
fn a_device_that_lost_its_end_says_eio() {
    needs::root_and_loop_devices();
    for way in WAYS {
        let home = directory();
        let image = home.path().join("image");
        let device = Loop::over(&image, 4 * MIB);
        let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
        file.set_len(2 * MIB).unwrap();
        let mut spec = spec(&device.device, 4 * MIB, way);
        spec.read_share = 1.0;
        let Some((outcome, error)) = failed(&spec) else {
            continue;
        };
        assert_eq!(
            (error.op, error.errno),
            (Op::Read, Errno::IO.raw_os_error()),
            "{way:?}"
        );
        let offset = error.offset.unwrap();
        assert!((2 * MIB..4 * MIB).contains(&offset), "{way:?}: {offset}");
        let (_, depth, _) = way;
        if depth == 1 {
            assert_eq!(
                (offset, count(&outcome, Op::Read)),
                (2 * MIB, 512),
                "{way:?}"
            );
        }
        let words = format!(
            "read of {} at offset {offset} failed: Input/output error",
            device.device.display()
        );
        assert_eq!(error.to_string(), words);
    }
}

fn a_full_file_system_says_enospc() {
    needs::root_and_loop_devices();
    for way in WAYS {
        let home = directory();
        for full in [Mounted::tmpfs(2 * MIB), Mounted::ext4(home.path(), 8 * MIB)] {
            let spec = spec(&full.file(), 16 * MIB, way);
            let Some((outcome, error)) = failed(&spec) else {
                continue;
            };
            let errno = Errno::NOSPC.raw_os_error();
            assert_eq!((error.op, error.errno), (Op::Write, errno), "{way:?}");
            assert!(
                error.offset.unwrap() < 8 * MIB + 64 * 4096,
                "{way:?}: {error}"
            );
            let written = of(&outcome, Op::Write).unwrap();
            assert!(
                (MIB..8 * MIB).contains(&written.bytes),
                "{way:?}: {}",
                written.bytes
            );
        }
    }
}

/// What is left of a file system takes a part of a block, which is short, before it is full.
fn the_last_write_into_a_full_file_system_is_short() {
    needs::root_and_loop_devices();
    for way in [WAYS[0], WAYS[3]] {
        let full = Mounted::tmpfs(MIB);
        let mut spec = spec(&full.file(), 4 * MIB, way);
        spec.block_sizes = vec![(3 * 16_384, 1)];
        let Some((outcome, error)) = failed(&spec) else {
            continue;
        };
        assert_eq!(error.errno, Errno::NOSPC.raw_os_error());
        let written = of(&outcome, Op::Write).unwrap();
        assert_eq!(outcome.short, 1, "{way:?}");
        assert_eq!((written.count, written.bytes), (22, MIB), "{way:?}");
    }
}

fn a_file_too_large_for_its_file_system_says_efbig() {
    needs::root_and_loop_devices();
    let home = directory();
    let small = Mounted::ext4(home.path(), 8 * MIB);
    for way in WAYS {
        let mut spec = spec(&small.file(), 32 * TIB, way);
        (spec.access, spec.stop.ops) = (AccessPattern::Uniform, Some(100));
        let Some((_, error)) = failed(&spec) else {
            continue;
        };
        let errno = Errno::FBIG.raw_os_error();
        assert_eq!((error.op, error.errno), (Op::Write, errno), "{way:?}");
        // Blocks of 1 KiB, as so small a file system has them: files of up to 4 TiB.
        assert!(error.offset.unwrap() >= 4 * TIB - 4096, "{way:?}: {error}");
    }
}

/// A device that can store less than it promised: buffered writes succeed, and it is the fsync
/// that fails; a direct write fails itself.
fn what_a_device_cannot_keep_is_an_error_of_the_fsync() {
    needs::root_and_loop_devices();
    for (way, every) in WAYS
        .into_iter()
        .flat_map(|way| [(way, None), (way, NonZeroU64::new(64))])
    {
        let thin = Mounted::tmpfs(2 * MIB);
        let device = Loop::over(&thin.file(), 8 * MIB);
        let mut spec = spec(&device.device, 8 * MIB, way);
        spec.durability.fsync_every = every;
        spec.durability.fsync_at_end = true;
        let Some((outcome, error)) = failed(&spec) else {
            continue;
        };
        let said = Errno::from_raw_os_error(error.errno);
        assert!(matches!(said, Errno::NOSPC | Errno::IO), "{way:?}: {error}");
        let (_, _, direct) = way;
        if direct {
            assert_eq!(error.op, Op::Write, "{way:?}: {error}");
        } else if every.is_none() {
            assert_eq!(
                (error.op, error.offset),
                (Op::Fsync, None),
                "{way:?}: {error}"
            );
            assert_eq!(count(&outcome, Op::Write), 2_048);
        }
        assert!(count(&outcome, Op::Write) > 0);
    }
}

fn preallocated_blocks_are_there_before_the_first_write() {
    let home = directory();
    let mut spec = spec(&home.path().join("file"), 4 * MIB, WAYS[0]);
    (spec.preallocate, spec.stop.ops) = (true, Some(1));
    match run(&spec, &Control::default()) {
        Err(error @ StartError::Preallocate { .. }) => needs::skip(error),
        other => {
            assert_eq!(count(&other.unwrap(), Op::Write), 1);
            let file = fs::metadata(&spec.targets[0].path).unwrap();
            assert_eq!(file.len(), 4 * MIB);
            assert!(file.blocks() * 512 >= 4 * MIB, "{} sectors", file.blocks());
        }
    }
    // What is only read is not touched.
    spec.targets[0].bytes = 8 * MIB;
    spec.read_share = 1.0;
    run(&spec, &Control::default()).unwrap();
    assert_eq!(fs::metadata(&spec.targets[0].path).unwrap().len(), 4 * MIB);
}

fn what_cannot_be_preallocated_says_why() {
    let mut spec = spec(Path::new("/dev/full"), MIB, WAYS[0]);
    spec.preallocate = true;
    let error = run(&spec, &Control::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot reserve 1048576 bytes for /dev/full: No such device"
    );
    assert!(error.next().starts_with("leave preallocation out"));
    needs::root_and_loop_devices();
    let small = Mounted::tmpfs(MIB);
    (spec.targets[0].path, spec.targets[0].bytes) = (small.file(), 2 * MIB);
    let error = run(&spec, &Control::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("No space left on device"),
        "{error}"
    );
    assert!(error.next().starts_with("free some space"));
    let device = Loop::over(&small.at.path().join("image"), MIB);
    spec.targets[0].path.clone_from(&device.device);
    spec.targets[0].bytes = MIB;
    let error = run(&spec, &Control::default()).unwrap_err();
    assert!(
        error.to_string().ends_with("Operation not supported"),
        "{error}"
    );
    assert!(error.next().starts_with("leave preallocation out"));
}

/// Operations per second of an open loop.
const RATE: u64 = 1_000;
/// Operations of it before the file system is frozen, and after it is thawed.
const AROUND: u64 = 200;
const FROZEN: Duration = Duration::from_millis(300);
/// What is called a long wait, ns.
const LONG_NS: u64 = 100_000_000;

/// Freezes a file system while a phase runs on it. Returns for how long it certainly was, ns.
#[expect(clippy::disallowed_methods, reason = "the stall has to last")]
fn freeze(at: &Path, control: &Control) -> u64 {
    let passed = |ops| {
        while control.ops.load(Ordering::Relaxed) < ops {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let clock = FastClock::calibrated();
    passed(AROUND);
    tool("fsfreeze", &["--freeze", text(at)]);
    let frozen_ns = clock.now_ns();
    std::thread::sleep(FROZEN);
    let until_ns = clock.now_ns();
    tool("fsfreeze", &["--unfreeze", text(at)]);
    // All that fell due meanwhile, and then some.
    passed(control.ops.load(Ordering::Relaxed) + (until_ns - frozen_ns) / 1_000_000 + AROUND);
    control.stop.store(true, Ordering::Relaxed);
    until_ns - frozen_ns
}

/// A file system that stands still owes every operation that fell due meanwhile what was left of
/// the stall. How many those are follows from the stall's length alone.
fn a_frozen_file_system_is_charged_to_everything_that_fell_due() {
    needs::root_and_loop_devices();
    for (engine, queue_depth) in [(IoEngine::Sync, 1), (IoEngine::Uring, 8)] {
        let home = directory();
        let mounted = Mounted::ext4(home.path(), 64 * MIB);
        let mut spec = spec(&mounted.file(), 16 * MIB, (engine, queue_depth, false));
        spec.pacing = Pacing::Fixed(RATE as f64);
        spec.stop = Stop {
            ops: None,
            time_ns: Some(3_600_000_000_000),
        };
        let control = Control::default();
        let (outcome, frozen_ns) = std::thread::scope(|scope| {
            let phase = scope.spawn(|| run(&spec, &control));
            let frozen_ns = freeze(mounted.at.path(), &control);
            (phase.join().unwrap(), frozen_ns)
        });
        let outcome = match outcome {
            Err(error @ StartError::Ring { .. }) => needs::skip(error),
            other => other.unwrap(),
        };
        assert_eq!(outcome.ended, PhaseEnd::Stopped, "{:?}", outcome.error);
        let written = of(&outcome, Op::Write).unwrap();
        let long = written.latency.count_between(LONG_NS + 1, u64::MAX);
        let owed = (frozen_ns - LONG_NS) * RATE / 1_000_000_000;
        assert!(
            long >= owed * 9 / 10,
            "{engine:?}: {long} of {owed} in {frozen_ns} ns"
        );
        // The storage itself was seen to take long only by what was outstanding. (Should the
        // machine stall a few more operations for reasons of its own, that is no matter here.)
        let service = written.service.as_ref().unwrap();
        let served_long = service.histogram.count_between(LONG_NS + 1, u64::MAX);
        assert!(
            (1..=long / 5).contains(&served_long),
            "{engine:?}: {served_long} of {long}"
        );
        assert_eq!(service.histogram.len(), written.count);
    }
}

fn main() -> ExitCode {
    needs::run(vec![needs::group(
        "faults",
        needs::tests![
            a_device_that_lost_its_end_says_eio,
            a_full_file_system_says_enospc,
            the_last_write_into_a_full_file_system_is_short,
            a_file_too_large_for_its_file_system_says_efbig,
            what_a_device_cannot_keep_is_an_error_of_the_fsync,
            preallocated_blocks_are_there_before_the_first_write,
            what_cannot_be_preallocated_says_why,
            a_frozen_file_system_is_charged_to_everything_that_fell_due,
        ],
    )])
}
