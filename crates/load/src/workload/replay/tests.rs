//! Traces that are written down: replayed, counted, refused.

mod refused;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use stackrace_engine::{ContentLedger, Control, Op, PhaseEnd, PhaseOutcome};
use stackrace_trace::trace::{
    Code, Compiler, Ending, EntryKind, KeptEntry, NO_FOLLOW, NameKey, Operation, ROOT, Recorded,
    ResidentRange, StopReason, TraceOrigin, TraceWriter,
};

use crate::programs::written;
use crate::workload::{Place, Workload, WorkloadError};

const MS: u64 = 1_000_000;

/// A trace that is written down, with the names `dir`, `dir/file` and `new`.
pub(crate) struct WrittenTrace {
    pub(crate) origin: TraceOrigin,
    pub(crate) ending: Ending,
    pub(crate) operations: Vec<Operation>,
    resident: Vec<ResidentRange>,
    compiler: Compiler,
    pub(crate) dir: u32,
    pub(crate) file: u32,
    pub(crate) new: u32,
}

impl WrittenTrace {
    pub(crate) fn new() -> Self {
        let recorded = Recorded {
            directories: vec![b"/data".to_vec()],
            device: 1,
            subvolumes: false,
            above: Vec::new(),
            began: 0,
            architecture: 0,
        };
        let mut compiler = Compiler::new(recorded, NameKey([7; 32]));
        let dir = compiler.entry(ROOT, b"dir", 1, true).unwrap();
        let file = compiler.entry(dir, b"file", 2, false).unwrap();
        let new = compiler.entry(ROOT, b"new", 3, false).unwrap();
        let origin = TraceOrigin {
            program: "test".to_owned(),
            kernel: "6.12".to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            file_system: "ext4".to_owned(),
            processors: 2,
            cost_limit: 500,
            cut: false,
        };
        let ending = Ending {
            stopped: Some(StopReason::Ended),
            events: 1000,
            processor_ns: 1_000_000_000,
            ..Ending::default()
        };
        let operations = Vec::new();
        Self {
            origin,
            ending,
            operations,
            resident: Vec::new(),
            compiler,
            dir,
            file,
            new,
        }
    }

    /// Adds a call.
    pub(crate) fn call(
        &mut self,
        code: Code,
        thread: u32,
        start: u64,
        with: impl FnOnce(&mut Operation),
    ) {
        let mut operation = Operation {
            duration: MS / 10,
            ..Operation::of(code, thread, start)
        };
        with(&mut operation);
        self.operations.push(operation);
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let names = self.compiler.names();
        let entry = |path, kind, size| KeptEntry {
            path,
            kind,
            size,
            stored: size,
            target: 0,
        };
        let entries = [
            entry(self.dir, EntryKind::Directory, 0),
            entry(self.file, EntryKind::File, 100_000),
        ];
        let mut writer = TraceWriter::new(Vec::new(), &self.origin).unwrap();
        writer.tree(names, &entries).unwrap();
        writer.resident(&self.resident).unwrap();
        let mut threads = 0;
        for operation in &self.operations {
            let other = match operation.code {
                Code::Fork | Code::Wake => operation.result as u32,
                _ => 0,
            };
            threads = threads.max(operation.thread + 1).max(other + 1);
            writer.push(names, *operation).unwrap();
        }
        let ending = Ending {
            operations: self.operations.len() as u64,
            threads: threads.into(),
            ..self.ending.clone()
        };
        writer.finish(names, &ending).unwrap()
    }

    fn kept(&self, base: &Path) -> PathBuf {
        let path = base.join("app.trace");
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }

    /// A thread that forks another one, which makes a file and wakes the first; that one then removes it.
    pub(crate) fn forking() -> Self {
        let mut trace = Self::new();
        let (file, new) = (trace.file, trace.new);
        trace.call(Code::Begin, 0, 0, |begin| begin.duration = 0);
        trace.call(Code::Open, 0, MS, |open| {
            (open.handle, open.path, open.result) = (1, file, 3)
        });
        trace.call(Code::ReadAt, 0, 2 * MS, |read| {
            (read.handle, read.offset, read.length, read.result) = (1, 90_000, 20_000, 10_000);
        });
        trace.call(Code::Fork, 0, 3 * MS, |fork| fork.result = 1);
        trace.call(Code::Open, 1, 5 * MS, |open| {
            (open.handle, open.path, open.result) = (2, new, 3);
            (open.flags, open.length) = (0o102, 0o644);
        });
        trace.call(Code::Write, 1, 6 * MS, |write| {
            (write.handle, write.length, write.result) = (2, 5000, 5000);
        });
        trace.call(Code::Fsync, 1, 7 * MS, |sync| sync.handle = 2);
        trace.call(Code::Wake, 1, 8 * MS, |wake| wake.result = 0);
        trace.call(Code::Close, 1, 9 * MS, |close| close.handle = 2);
        trace.call(Code::Other, 0, 4 * MS, |wait| {
            (wait.duration, wait.blocked, wait.cause) = (5 * MS, 4 * MS, 2);
        });
        trace.call(Code::Unlink, 0, 10 * MS, |unlink| unlink.path = new);
        trace.call(Code::Stat, 1, 11 * MS, |stat| {
            (stat.path, stat.result) = (new, -2)
        });
        trace.call(Code::Exit, 0, 12 * MS, |_| {});
        trace
    }
}

fn line(trace: &Path) -> String {
    format!("replay = {{ trace = \"{}\" }}", trace.display())
}

fn workload(trace: &Path) -> Box<dyn Workload> {
    written::workload(&line(trace)).unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn replay(workload: &dyn Workload) -> Result<PhaseOutcome, WorkloadError> {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let control = Control::default();
    let ledger: OnceLock<ContentLedger> = OnceLock::new();
    let place = Place::alone(base.path(), 7, &ledger, &control);
    workload.prepare(&place)?;
    workload.measure(0, &place)
}

/// Why a trace is refused.
fn refused(trace: &WrittenTrace) -> String {
    let base = tempfile::tempdir().unwrap();
    let path = trace.kept(base.path());
    let host = stackrace_machine::host::local::LocalHost::new(std::sync::Arc::new(|_| ()));
    let found = workload(&path);
    let why = found.refused_on(&host).expect("it was not refused");
    // Nor is anything laid out where it was not asked for before.
    assert!(replay(&*found).is_err());
    why
}

#[test]
fn forks_wakes_and_names_are_replayed_in_their_order_with_no_result_that_differs() {
    let base = tempfile::tempdir().unwrap();
    let path = WrittenTrace::forking().kept(base.path());
    let workload = workload(&path);
    let outcome = replay(&*workload).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    let results = outcome.replayed.clone().unwrap();
    assert_eq!((results.calls, results.differing), (8, 0), "{results:?}");
    assert!(outcome.told.is_empty(), "{:?}", outcome.told);
    // Computing and the wake take as long as they did: the open of thread 1 comes 5 ms after the start.
    assert!(outcome.elapsed_ns >= 8 * MS, "{}", outcome.elapsed_ns);
    let recorded = workload.recorded().unwrap();
    assert_eq!(recorded.elapsed_ns, 12 * MS + MS / 10);
    let read = recorded.operations.iter().find(|of| of.op == "read");
    assert_eq!(read.unwrap().ns, MS / 10);
}

#[test]
fn a_server_that_starts_a_process_for_each_request_is_replayed_in_few_threads() {
    // More than a replay has threads: each makes the file that the one before it removed.
    let children = 6_000;
    let mut trace = WrittenTrace::new();
    let new = trace.new;
    trace.call(Code::Begin, 0, 0, |begin| begin.duration = 0);
    for child in 1..=children {
        // 100 us each, one after the other.
        let at = u64::from(child) * MS / 10;
        let short = |operation: &mut Operation| operation.duration = 1_000;
        trace.call(Code::Fork, 0, at, |fork| {
            short(fork);
            fork.result = child.into();
        });
        trace.call(Code::Open, child, at + 10_000, |open| {
            short(open);
            (open.handle, open.path, open.result) = (child, new, 3);
            (open.flags, open.length) = (0o302, 0o644);
        });
        trace.call(Code::Close, child, at + 20_000, |close| {
            short(close);
            close.handle = child;
        });
        trace.call(Code::Unlink, child, at + 30_000, |unlink| {
            short(unlink);
            unlink.path = new;
        });
        trace.call(Code::Exit, child, at + 40_000, short);
        // One that ends wakes who waits for it.
        trace.call(Code::Wake, child, at + 41_000, |wake| {
            short(wake);
            wake.result = 0;
        });
    }
    let base = tempfile::tempdir().unwrap();
    let outcome = replay(&*workload(&trace.kept(base.path()))).unwrap();
    let results = outcome.replayed.unwrap();
    assert_eq!(
        (results.calls, results.differing),
        (18_000, 0),
        "{results:?}"
    );
}

#[test]
fn threads_that_live_at_the_same_time_are_refused_if_they_are_too_many() {
    let mut trace = WrittenTrace::forking();
    for child in 2..4_200 {
        trace.call(Code::Fork, 0, 13 * MS, |fork| fork.result = child.into());
        trace.call(Code::SyncFs, child, 14 * MS, |_| {});
    }
    let why = refused(&trace);
    assert!(why.contains("more than 4,096 of its threads"), "{why}");
}

#[test]
fn what_recording_took_is_no_time_of_the_application() {
    let base = tempfile::tempdir().unwrap();
    let mut trace = WrittenTrace::forking();
    // 1000 events; each thread has 6 steps.
    trace.ending.cost_ns = 1000 * MS / 10;
    let workload = workload(&trace.kept(base.path()));
    replay(&*workload).unwrap();
    let recorded = workload.recorded().unwrap();
    assert_eq!(recorded.elapsed_ns, 12 * MS + MS / 10 - 6 * MS / 10);
}

#[test]
fn what_a_replay_takes_is_the_tree_and_what_it_adds() {
    let base = tempfile::tempdir().unwrap();
    let cost = workload(&WrittenTrace::forking().kept(base.path())).cost();
    assert_eq!((cost.prepare_bytes, cost.disk_bytes), (100_000, 105_000));
    assert_eq!((cost.files, cost.measured_bytes), (3, Some(15_000)));
    // What failed is tried again, where it may not fail.
    for code in [Code::Allocate, Code::Write] {
        let mut fails = WrittenTrace::forking();
        fails.call(code, 1, 13 * MS, |fails| {
            (fails.handle, fails.length, fails.result) = (2, 1 << 30, -28);
        });
        let cost = workload(&fails.kept(base.path())).cost();
        assert!(cost.disk_bytes >= 100_000 + (1 << 30), "{code:?}");
    }
    // A trace that says that it writes far behind everything is refused for lack of room, not tried.
    let mut huge = WrittenTrace::forking();
    huge.call(Code::Allocate, 0, 13 * MS, |allocate| {
        (allocate.handle, allocate.length) = (2, 1 << 50);
    });
    assert_eq!(
        workload(&huge.kept(base.path())).cost().disk_bytes,
        100_000 + (1 << 50)
    );
}

#[test]
fn a_replay_whose_results_differ_has_failed_and_says_where() {
    let base = tempfile::tempdir().unwrap();
    let mut trace = WrittenTrace::forking();
    let new = trace.new;
    trace.call(Code::Stat, 0, 13 * MS, |stat| stat.path = new);
    let found = workload(&trace.kept(base.path()));
    let error = replay(&*found).unwrap_err().said;
    let expected = "the replay is not like the application: 1 of 9 results differ from the recorded ones; the first: stat of ";
    assert!(error.starts_with(expected), "{error}");
    let ends = "gave No such file or directory, recorded was 0";
    assert!(error.contains(ends), "{error}");
}

#[test]
fn a_trace_that_is_cut_off_or_another_one_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("app.trace");
    let host = stackrace_machine::host::local::LocalHost::new(std::sync::Arc::new(|_| ()));
    let why = |path: &Path| workload(path).refused_on(&host).unwrap();
    assert!(why(&path).contains("No such file"), "{}", why(&path));
    let bytes = WrittenTrace::forking().bytes();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(
        why(&path).contains("it ends in the middle"),
        "{}",
        why(&path)
    );
    std::fs::write(&path, &bytes).unwrap();
    let digest = super::digest(&path).unwrap();
    let with = |digest: &str| {
        let line = format!(
            "replay = {{ trace = \"{}\", digest = \"{digest}\" }}",
            path.display()
        );
        written::workload(&line).map(drop)
    };
    assert!(with(&digest).is_ok());
    let refused = with("00").unwrap_err().to_string();
    assert!(
        refused.contains("is another trace than the study names"),
        "{refused}"
    );
}

#[test]
fn of_an_application_that_waits_for_others_latency_is_judged_and_not_the_elapsed_time() {
    let base = tempfile::tempdir().unwrap();
    let first = |trace: &WrittenTrace, more: &str| {
        let line = line(&trace.kept(base.path())).replace(" }", &format!("{more} }}"));
        let workload = written::workload(&line).unwrap_or_else(|refusal| panic!("{refusal}"));
        workload.metrics()[0].name.clone()
    };
    let mut trace = WrittenTrace::forking();
    assert_eq!(first(&trace, ""), "elapsed");
    assert!(first(&trace, ", arrivals = \"open\"").ends_with(" latency p99"));
    trace.call(Code::Other, 0, 13 * MS, |wait| {
        (wait.duration, wait.blocked) = (20 * MS, 20 * MS)
    });
    trace.call(Code::Fsync, 1, 14 * MS, |sync| {
        (sync.handle, sync.duration) = (2, 3 * MS)
    });
    trace.call(Code::Exit, 0, 40 * MS, |_| {});
    assert_eq!(first(&trace, ""), "fsync latency p99");
}

#[test]
fn what_clients_ask_for_arrives_when_it_did_and_a_late_answer_counts_from_then() {
    let base = tempfile::tempdir().unwrap();
    let mut trace = WrittenTrace::new();
    let file = trace.file;
    trace.call(Code::Begin, 0, 0, |begin| begin.duration = 0);
    // It computes past the moment when the request comes: 30 ms, where it waited until 20 ms.
    trace.call(Code::Stat, 0, 30 * MS, |stat| stat.path = file);
    trace.call(Code::Other, 0, 31 * MS, |wait| {
        (wait.duration, wait.blocked) = (2 * MS, 2 * MS)
    });
    trace.operations[2].start = 18 * MS;
    trace.call(Code::Open, 0, 34 * MS, |open| {
        (open.handle, open.path, open.result) = (1, file, 3)
    });
    let path = trace.kept(base.path());
    let line = line(&path).replace(" }", ", arrivals = \"open\" }");
    let outcome = replay(&*written::workload(&line).ok().unwrap()).unwrap();
    let opened = outcome
        .ops
        .iter()
        .find(|entry| entry.op == Op::Open)
        .unwrap();
    assert!(opened.latency.max() >= 9 * MS, "{}", opened.latency.max());
}

/// Two open files of one file, each of another thread.
fn opened_twice() -> WrittenTrace {
    let mut trace = WrittenTrace::new();
    let file = trace.file;
    trace.call(Code::Begin, 0, 0, |begin| begin.duration = 0);
    trace.call(Code::Fork, 0, MS, |fork| fork.result = 1);
    for thread in [0, 1] {
        trace.call(Code::Open, thread, 2 * MS, |open| {
            (open.handle, open.path, open.result) = (thread + 1, file, 3);
        });
    }
    trace
}

/// `flock` as it is asked for: exclusive, at once or never, given up.
const EXCLUSIVE: u64 = 2;
const AT_ONCE: u64 = 4;
const GIVE_UP: u64 = 8;

#[test]
fn locks_of_whole_files_are_taken_and_refused_in_the_recorded_order() {
    let base = tempfile::tempdir().unwrap();
    let mut trace = opened_twice();
    let lock = |flags, result| {
        move |lock: &mut Operation| {
            let handle = lock.thread + 1;
            (lock.handle, lock.flags, lock.result) = (handle, flags, result);
        }
    };
    trace.call(Code::LockWhole, 0, 3 * MS, lock(EXCLUSIVE, 0));
    let busy = lock(EXCLUSIVE | AT_ONCE, -i64::from(libc_again()));
    trace.call(Code::LockWhole, 1, 4 * MS, busy);
    // It computes for 20 ms with the lock.
    trace.call(Code::LockWhole, 0, 24 * MS, lock(GIVE_UP, 0));
    trace.call(Code::LockWhole, 1, 5 * MS, |waits| {
        lock(EXCLUSIVE, 0)(waits);
        (waits.duration, waits.blocked) = (20 * MS, 20 * MS - MS / 10);
    });
    // The lock goes with the last use of its open file, without a call.
    trace.call(Code::Fsync, 1, 26 * MS, |sync| sync.handle = 2);
    trace.call(Code::Close, 1, 27 * MS, |close| close.handle = 2);
    trace.call(Code::LockWhole, 0, 28 * MS, lock(EXCLUSIVE | AT_ONCE, 0));
    let workload = workload(&trace.kept(base.path()));
    let outcome = replay(&*workload).unwrap();
    let results = outcome.replayed.clone().unwrap();
    assert_eq!((results.calls, results.differing), (9, 0), "{results:?}");
    // Waiting for the other one is no time of the call.
    let recorded = workload.recorded().unwrap();
    let look = recorded.operations.iter().find(|of| of.op == "stat");
    assert_eq!(look.unwrap().ns, 5 * MS / 10);
}

#[test]
fn who_asks_for_the_end_of_a_file_waits_for_who_moved_it_by_another_open_file() {
    let base = tempfile::tempdir().unwrap();
    let mut trace = opened_twice();
    for open in &mut trace.operations[2..] {
        open.flags = 2;
    }
    // Thread 0 computes for 20 ms before it makes the file longer, and thread 1 asks right after that.
    trace.call(Code::WriteAt, 0, 22 * MS, |write| {
        (write.handle, write.offset, write.length, write.result) = (1, 100_000, 5000, 5000);
    });
    for (code, length, result) in [(Code::Seek, 0, 105_000), (Code::ReadAt, 9000, 5000)] {
        trace.call(code, 1, 22 * MS + MS / 2, |asks| {
            (asks.handle, asks.length, asks.result, asks.blocked) = (2, length, result, MS);
            (asks.offset, asks.flags) = match code {
                Code::Seek => (0, 2),
                _ => (100_000, 0),
            };
            asks.gap_blocked = 21 * MS;
        });
    }
    let outcome = replay(&*workload(&trace.kept(base.path()))).unwrap();
    let results = outcome.replayed.unwrap();
    assert_eq!((results.calls, results.differing), (5, 0), "{results:?}");
}

/// The error of a lock that is not free, as the kernel numbers it.
fn libc_again() -> i32 {
    rustix::io::Errno::WOULDBLOCK.raw_os_error()
}

#[test]
fn a_link_is_followed_below_its_directory_as_recorded_and_leads_else_nowhere() {
    let base = tempfile::tempdir().unwrap();
    let mut trace = WrittenTrace::new();
    let (file, new, dir) = (trace.file, trace.new, trace.dir);
    let up = trace.compiler.entry(dir, b"up", 4, false).unwrap();
    trace.call(Code::Begin, 0, 0, |begin| begin.duration = 0);
    trace.call(Code::SymLink, 0, MS, |link| {
        (link.path, link.second) = (new, file)
    });
    trace.call(Code::Open, 0, 2 * MS, |open| {
        (open.handle, open.path, open.result) = (1, new, 3)
    });
    trace.call(Code::ReadAt, 0, 3 * MS, |read| {
        (read.handle, read.offset, read.length, read.result) = (1, 99_990, 100, 10);
    });
    // Moved higher up it would lead out of the directory: it leads nowhere.
    trace.call(Code::SymLink, 0, 4 * MS, |link| {
        (link.path, link.second) = (up, new)
    });
    trace.call(Code::Open, 0, 5 * MS, |open| {
        (open.path, open.result) = (up, -2);
    });
    // The link is there; what it leads to is not.
    trace.call(Code::Stat, 0, 6 * MS, |look| {
        (look.path, look.flags) = (up, NO_FOLLOW)
    });
    trace.call(Code::Stat, 0, 7 * MS, |look| {
        (look.path, look.result) = (up, -2);
    });
    let outcome = replay(&*workload(&trace.kept(base.path()))).unwrap();
    let results = outcome.replayed.unwrap();
    assert_eq!((results.calls, results.differing), (7, 0), "{results:?}");
}

#[test]
fn what_was_in_memory_when_it_was_recorded_is_in_memory_when_the_clock_starts() {
    let kept = tempfile::tempdir().unwrap();
    let mut trace = WrittenTrace::forking();
    trace.resident = vec![ResidentRange {
        path: trace.file,
        offset: 8192,
        length: 16384,
    }];
    let workload = workload(&trace.kept(kept.path()));
    // Not /tmp, which may be in memory.
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let (control, ledger) = (Control::default(), OnceLock::new());
    let place = Place::alone(base.path(), 7, &ledger, &control);
    workload.prepare(&place).unwrap();
    stackrace_engine::residency::evict_tree(base.path(), &|| true).unwrap();
    workload.warm(&place).unwrap();
    let (resident, _) = stackrace_engine::residency::resident_bytes_below(base.path(), 9).unwrap();
    assert_eq!(resident, 16384);
}
