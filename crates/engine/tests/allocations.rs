//! Nothing is allocated between the first and the last reading of the clock.
//!
//! Proved by counting: a phase ten times as long allocates exactly as often. And what it allocates grows with threads
//! and depth by bounded amounts. Alone in its file, with one test, because the count is the whole process's.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use stackrace_engine::files::{AtEnd, CurrentNames, FileSet, Pass, VisitOrder};
use stackrace_engine::spec::{
    AccessPattern, Content, Durability, IoEngine, IoTarget, Pacing, Spec, Stop,
};
use stackrace_engine::{
    ContentLedger, Control, OpError, PhaseEnd, PhaseOutcome, StartError, io_uring_allowed, lay_out,
    lay_out_verified, run, run_verified,
};
use stackrace_test_needs as needs;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        BYTES.fetch_add(layout.size() as u64, Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        BYTES.fetch_add(size as u64, Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of one phase with this many operations.
fn allocations(spec: &Spec, ledger: Option<&ContentLedger>, ops: u64) -> Result<u64, StartError> {
    let mut spec = spec.clone();
    spec.stop.ops = Some(ops);
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    let control = Control::default();
    let outcome = match ledger {
        Some(ledger) => run_verified(&spec, ledger, &control)?,
        None => run(&spec, &control)?,
    };
    let after = ALLOCATIONS.load(Ordering::SeqCst);
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    Ok(after - before)
}

fn spec(targets: Vec<IoTarget>) -> Spec {
    Spec {
        block_sizes: vec![(4096, 3), (8192, 1)],
        read_share: 0.5,
        threads: 2,
        durability: Durability {
            // So often that each worker of the shortest phase syncs: what is merged afterwards
            // has one histogram for each kind of operation and worker.
            fsync_every: NonZeroU64::new(10),
            ..Durability::default()
        },
        content: Content::Shaped {
            ratio: 2.0,
            duplicates: 0.3,
        },
        stop: Stop::default(),
        engine: IoEngine::Null,
        slice_ns: 100_000,
        ..Spec::reads(targets, 4096)
    }
}

/// Allocations of each phase over a set with this many files and directories.
fn allocations_of_files(
    root: &Path,
    (files, directories): (u64, u32),
    size_max: u64,
) -> Result<Vec<u64>, OpError> {
    let mut set = FileSet {
        root: root.to_path_buf(),
        directories,
        files,
        size_min: 0,
        size_max,
        threads: 2,
        fsync_each: false,
        content: Content::Random,
        names: CurrentNames::default(),
        seed: 1,
    };
    let control = Control::default();
    let pass = Pass {
        order: VisitOrder::Random,
        at_end: AtEnd::Durable,
        slice_ns: 100_000,
        control: &control,
    };
    let count = |set: &FileSet, run: fn(&FileSet, Pass<'_>) -> Result<PhaseOutcome, OpError>| {
        let before = ALLOCATIONS.load(Ordering::SeqCst);
        let outcome = run(set, pass)?;
        let after = ALLOCATIONS.load(Ordering::SeqCst);
        assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
        Ok(after - before)
    };
    let mut counts = vec![
        count(&set, FileSet::mkdir)?,
        count(&set, FileSet::create)?,
        count(&set, FileSet::stat)?,
        count(&set, FileSet::open_close)?,
        count(&set, FileSet::read)?,
        count(&set, FileSet::readdir)?,
        count(&set, FileSet::rename)?,
    ];
    set.names.renamed = true;
    counts.push(count(&set, FileSet::link)?);
    set.names.linked = true;
    counts.extend([count(&set, FileSet::unlink)?, count(&set, FileSet::rmdir)?]);
    Ok(counts)
}

fn the_number_of_operations_does_not_change_the_number_of_allocations() {
    let directory = tempfile::tempdir().unwrap();
    let targets: Vec<IoTarget> = (0..3)
        .map(|i| IoTarget {
            path: directory.path().join(i.to_string()),
            bytes: 1 << 20,
        })
        .collect();
    lay_out(&targets, Content::Random, 1, &Control::default()).unwrap();
    let mut engines = vec![
        (IoEngine::Null, 1),
        (IoEngine::Sync, 1),
        (IoEngine::Sync, 4),
    ];
    let ring = io_uring_allowed();
    if ring.is_ok() {
        engines.push((IoEngine::Uring, 8));
    }
    let accesses = [
        AccessPattern::Sequential,
        AccessPattern::Uniform,
        AccessPattern::Zipf(1.1),
        AccessPattern::Pareto(0.2),
        AccessPattern::Normal(0.1),
        AccessPattern::HotCold {
            hot_range: 0.1,
            hot_ops: 0.9,
        },
    ];
    let pacings = [
        Pacing::Closed { think_time_ns: 0 },
        Pacing::Closed {
            think_time_ns: 10_000,
        },
        Pacing::Fixed(50_000.0),
        Pacing::Poisson(50_000.0),
    ];
    let content = Content::Shaped {
        ratio: 2.0,
        duplicates: 0.0,
    };
    let ledger = ContentLedger::new(&targets, 4096, content, 1).unwrap();
    lay_out_verified(&ledger, &Control::default()).unwrap();
    // Verified first: what the other phases write is not stamped.
    for ledger in [Some(&ledger), None] {
        for (engine, queue_depth) in engines.iter().copied() {
            if ledger.is_some() && engine == IoEngine::Null {
                continue;
            }
            let combinations = accesses.iter().map(|access| (*access, pacings[0]));
            let combinations =
                combinations.chain(pacings.iter().map(|p| (AccessPattern::Uniform, *p)));
            for (access, pacing) in combinations {
                let mut spec = spec(targets.clone());
                (spec.engine, spec.queue_depth) = (engine, queue_depth);
                (spec.access, spec.pacing) = (access, pacing);
                if ledger.is_some() {
                    spec.content = content;
                }
                allocates_nothing(&spec, ledger);
            }
        }
    }
    files_allocate_nothing(directory.path());
    memory_grows_by_little(&targets, ring.is_ok());
    if let Err(error) = ring {
        needs::skip(format!("all but the ring: {error}"));
    }
}

fn main() -> ExitCode {
    needs::run(vec![needs::group(
        "allocations",
        needs::tests![the_number_of_operations_does_not_change_the_number_of_allocations],
    )])
}

/// Bytes that a thread may add: 563 KiB of room for its time series, 262 KiB for the histogram that is kept of it.
const THREAD_BYTES: u64 = 900 << 10;
/// Bytes that an operation in flight may add, beside its buffer.
const IN_FLIGHT_BYTES: u64 = 512;

/// Allocations of phases that read, by threads and, of a ring, by depth.
fn memory_grows_by_little(targets: &[IoTarget], ring: bool) {
    let bytes = |engine: IoEngine, threads: u32, queue_depth: u32| {
        let mut spec = Spec {
            engine,
            threads,
            queue_depth,
            ..Spec::reads(targets.to_vec(), 4096)
        };
        spec.stop.ops = Some(1_000);
        let before = BYTES.load(Ordering::SeqCst);
        run(&spec, &Control::default()).unwrap();
        BYTES.load(Ordering::SeqCst) - before
    };
    let (few, many) = (bytes(IoEngine::Sync, 2, 1), bytes(IoEngine::Sync, 8, 1));
    assert!(many <= few + 6 * THREAD_BYTES, "{few} and {many} bytes");
    if ring {
        let (few, deep) = (bytes(IoEngine::Uring, 2, 1), bytes(IoEngine::Uring, 2, 64));
        let most = few + 2 * 63 * IN_FLIGHT_BYTES;
        assert!(deep <= most, "{few} and {deep} bytes");
    }
}

/// Phases over files. Their set-up opens each directory while there are few, and none where there are
/// many, so directories are few and alike, or many.
fn files_allocate_nothing(root: &Path) {
    for size_max in [0, 10_000] {
        for (few, many) in [((100, 4), (1_000, 4)), ((100, 600), (1_000, 1_200))] {
            let few = allocations_of_files(root, few, size_max).unwrap();
            let many = allocations_of_files(root, many, size_max).unwrap();
            assert_eq!(few, many, "a phase over files allocates while measuring");
        }
    }
}

fn allocates_nothing(spec: &Spec, ledger: Option<&ContentLedger>) {
    // The first phase also pays for what is set up once per process or thread.
    allocations(spec, ledger, 100).unwrap();
    let (few, many) = (
        allocations(spec, ledger, 300).unwrap(),
        allocations(spec, ledger, 3_000).unwrap(),
    );
    let (engine, access, pacing) = (spec.engine, spec.access, spec.pacing);
    assert_eq!(
        few,
        many,
        "{engine:?} {access:?} {pacing:?}, verified: {}: allocates while measuring",
        ledger.is_some()
    );
}
