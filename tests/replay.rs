//! A recorded application, replayed by the real program: order, results, refusals.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::record::{PLANTED, able, recorded};
use crate::support::{Ground, quietly};
use stackrace_test_needs as needs;
use stackrace_trace::trace::{
    Code, Compiler, Ending, NameKey, Operation, ROOT, Recorded, StopReason, TraceOrigin,
    TraceWriter,
};

/// Processes that hand work to each other by a pipe and a futex, fork, wait, and use each other's files.
const HANDED: &str = "
import os, sys, threading
d = sys.argv[1]
os.chdir(d)
r, w = os.pipe()
for i in range(10):
    if os.fork() == 0:
        f = os.open('f%d' % i, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(f, b'y' * 1000)
        os.fsync(f)
        os.close(f)
        os.write(w, b'.')
        os._exit(0)
    os.read(r, 1)
    os.rename('f%d' % i, 'g%d' % i)
    os.wait()
turn = [threading.Event(), threading.Event()]
def other():
    for i in range(10):
        turn[0].wait(); turn[0].clear()
        assert len(os.read(os.open('g%d' % i, os.O_RDONLY), 5000)) == 1000
        os.unlink('g%d' % i)
        turn[1].set()
thread = threading.Thread(target=other)
thread.start()
for i in range(10):
    turn[0].set(); turn[1].wait(); turn[1].clear()
    try: os.stat('g%d' % i)
    except FileNotFoundError: os.mkdir('g%d' % i)
thread.join()
";

/// Processes that lock a file in turn, one of which finds it locked, and a link to it.
const LOCKED: &str = "
import fcntl, os, sys, time
os.chdir(sys.argv[1])
def opened(): return os.open('lock', os.O_RDWR | os.O_CREAT)
mine = opened()
os.symlink('lock', 'link')
fcntl.flock(mine, fcntl.LOCK_EX)
if os.fork() == 0:
    other = opened()
    try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB); sys.exit('it was free')
    except BlockingIOError: pass
    fcntl.flock(other, fcntl.LOCK_EX)
    os.pwrite(other, b'y' * 100, 100)
    os._exit(0)
time.sleep(0.2)
os.pwrite(mine, b'x' * 100, 0)
fcntl.flock(mine, fcntl.LOCK_UN)
os.wait()
fcntl.flock(mine, fcntl.LOCK_EX)
assert len(os.read(os.open('link', os.O_RDONLY), 500)) == 200
";

/// Threads that commit together: one makes the log durable for all that wrote until then.
const ADAPTS: &str = "
import os, sys, threading
log = os.open(sys.argv[1] + '/log', os.O_WRONLY | os.O_CREAT)
state = threading.Condition()
written = durable = 0
leading = False
def commit():
    global written, durable, leading
    with state:
        os.write(log, b'x' * 100)
        written += 1
        mine = written
        while durable < mine:
            if leading:
                state.wait()
                continue
            leading, until = True, written
            state.release()
            os.fsync(log)
            state.acquire()
            leading, durable = False, until
            state.notify_all()
def client():
    for i in range(50): commit()
threads = [threading.Thread(target=client) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
";

/// Threads of which each makes a log of its own durable, in turns: as many syncs on any storage.
const STEADY: &str = "
import os, sys, threading
turn = threading.Lock()
def client(n):
    log = os.open(sys.argv[1] + '/log%d' % n, os.O_WRONLY | os.O_CREAT)
    for i in range(50):
        with turn:
            os.write(log, b'x' * 100)
            os.fsync(log)
threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
";

fn a_program_that_adapts_to_its_storage_is_named_and_not_judged_by_its_elapsed_time() {
    let ground = able();
    for directory in ["a", "b"] {
        ground.make_dir(directory);
    }
    for (program, trace, adapts) in [
        (ADAPTS, "adapts.trace", true),
        (STEADY, "steady.trace", false),
    ] {
        // Who waits for whose sync is up to the scheduler: a busy machine may leave each thread its own.
        let info = (0..5).find_map(|_| {
            let _ = fs::remove_file(ground.path().join(trace));
            recorded(&ground, program, trace);
            let info = ground.stackrace(&["trace", "info", trace, "--json"]);
            let told: serde_json::Value = serde_json::from_str(&info.out).unwrap();
            (told["shared-syncs"].as_u64() > Some(20) || !adapts).then_some(info)
        });
        let info = info.unwrap();
        let words = [
            "compare", "a", "b", "--anyway", "--replay", trace, "--rounds", "3",
        ];
        let said = ground.stackrace(&words);
        said.ended(0);
        let all = ground.stackrace(&["report", "--format", "markdown"]).out;
        let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
        let named =
            all.contains("syncs of the recorded application were shared by several threads");
        assert_eq!(named, adapts, "{}: {all}", info.out);
        let by_latency = all.contains("so fsync latency p99 is compared, and not the elapsed time");
        assert_eq!(by_latency, adapts, "{all}");
    }
}

fn a_recorded_application_is_replayed_with_its_order_and_its_results() {
    let ground = able();
    for (program, trace) in [
        (PLANTED, "planted.trace"),
        (HANDED, "handed.trace"),
        (LOCKED, "locked.trace"),
    ] {
        recorded(&ground, program, trace);
        let replayed = ground.stackrace(&["load", "data", "replay", &format!("trace={trace}")]);
        // One result of so few would be too many.
        replayed.ended(0);
        assert!(!replayed.out.contains("results differ"), "{}", replayed.out);
        assert!(
            replayed.out.contains("replay, complete after"),
            "{}",
            replayed.out
        );
    }
}

/// A trace that was recorded for the tests. Skips the test on another architecture, whose flags of calls differ.
pub(super) fn kept(name: &str) -> PathBuf {
    if std::env::consts::ARCH != "x86_64" {
        needs::skip("needs an x86-64 machine, as the trace was recorded on one");
    }
    let traces = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces");
    traces.join(format!("{name}.trace"))
}

/// In memory a sync takes a thousandth of what it took when it was recorded; `tests/lab` has the slow disk.
fn handed_work_keeps_its_order_and_its_results_on_storage_that_is_much_faster() {
    let (trace, ground) = (kept("handed"), Ground::new());
    needs::root();
    let memory = ground.make_dir("memory");
    let memory = memory.to_str().unwrap();
    assert!(
        quietly("mount", &["-t", "tmpfs", "none", memory])
            .status
            .success()
    );
    let trace = format!("trace={}", trace.display());
    let tries: Vec<_> = needs::attacks(0..5)
        .map(|_| ground.stackrace(&["load", "memory", "replay", &trace]))
        .collect();
    assert!(quietly("umount", &[memory]).status.success());
    for said in tries {
        said.ended(0);
        assert!(!said.out.contains("results differ"), "{}", said.out);
    }
}

fn sqlite_git_and_postgresql_are_replayed_without_a_result_that_differs() {
    for name in ["sqlite", "git", "postgresql"] {
        let (trace, ground) = (kept(name), Ground::new());
        ground.make_dir("data");
        let trace = format!("trace={}", trace.display());
        let said = ground.stackrace(&["load", "data", "replay", &trace]);
        said.ended(0);
        assert!(said.out.contains("replay, complete after"), "{}", said.out);
        assert!(!said.out.contains("results differ"), "{name}: {}", said.out);
    }
}

fn the_template_for_an_application_of_ones_own_is_planned_beside_its_trace() {
    needs::root_and_loop_devices();
    needs::tool("mkfs.xfs");
    needs::tool("mkfs.btrfs");
    let ground = Ground::new();
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("studies/templates");
    let template = fs::read(studies.join("my-application.toml")).unwrap();
    ground.write("my-application.toml", template);
    let missing = ground.stackrace(&["plan", "my-application.toml"]);
    missing.ended(3);
    assert!(
        missing.out.contains("app.trace: No such file"),
        "{}",
        missing.out
    );
    ground.write("app.trace", fs::read(kept("sqlite")).unwrap());
    let said = ground.stackrace(&["plan", "my-application.toml"]);
    said.ended(0);
    assert!(said.out.contains("my application"), "{}", said.out);
}

/// A program that made a file durable, which took half a minute where it was recorded.
pub(super) fn slow() -> Vec<u8> {
    let recorded = Recorded {
        directories: vec![b"/data".to_vec()],
        device: 1,
        subvolumes: false,
        above: Vec::new(),
        began: 0,
        architecture: 0,
    };
    let mut compiler = Compiler::new(recorded, NameKey([7; 32]));
    let file = compiler.entry(ROOT, b"file", 1, false).unwrap();
    let origin = TraceOrigin {
        program: "test".to_owned(),
        kernel: "6.12".to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        file_system: "ext4".to_owned(),
        processors: 2,
        cost_limit: 500,
        cut: false,
    };
    let operation = |code, start| Operation {
        duration: 1_000_000,
        handle: 1,
        ..Operation::of(code, 0, start)
    };
    let operations = [
        Operation {
            handle: 0,
            duration: 0,
            ..operation(Code::Begin, 0)
        },
        Operation {
            path: file,
            flags: 0o102,
            length: 0o644,
            ..operation(Code::Open, 0)
        },
        Operation {
            length: 5000,
            result: 5000,
            ..operation(Code::Write, 1_000_000)
        },
        Operation {
            duration: 30_000_000_000,
            ..operation(Code::Fsync, 2_000_000)
        },
    ];
    let names = compiler.names();
    let mut writer = TraceWriter::new(Vec::new(), &origin).unwrap();
    writer.tree(names, &[]).unwrap();
    for operation in &operations {
        writer.push(names, *operation).unwrap();
    }
    let ending = Ending {
        stopped: Some(StopReason::Ended),
        events: 3,
        operations: operations.len() as u64,
        threads: 1,
        processor_ns: 1_000_000,
        ..Ending::default()
    };
    writer.finish(names, &ending).unwrap()
}

fn a_replay_that_is_not_like_its_application_at_home_ends_the_run_without_a_verdict() {
    let ground = Ground::new();
    for directory in ["a", "b"] {
        ground.make_dir(directory);
    }
    ground.write("app.trace", slow());
    let compare = |more: &[&str]| {
        let words = ["compare", "a", "b", "--anyway", "--replay", "app.trace"];
        ground.stackrace(&[&words, more].concat())
    };
    let unlike = "No verdict: the replay of replay on a is not like the application: it takes 0.0";
    let said = compare(&["--home", "a"]);
    said.ended(5);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let out = words(&said.out);
    for part in [
        unlike,
        "record the application again",
        "3 of at most 200 rounds",
    ] {
        assert!(out.contains(part), "{part}: {}", said.out);
    }
    // The study that it wrote says the same.
    let study = compare(&["--home", "a", "--print-study"]).out;
    assert!(study.contains("home = \"a\""), "{study}");
    ground.write("own.toml", &study);
    let said = ground.stackrace(&["run", "own.toml"]);
    said.ended(5);
    assert!(words(&said.out).contains(unlike), "{}", said.out);
    // Without a home it is compared, and how like the application it is stays open.
    let said = compare(&["--rounds", "3", "--json"]);
    said.ended(0);
    assert!(
        said.out.contains("this replay is, is not known"),
        "{}",
        said.out
    );
}

fn a_replay_is_refused_before_anything_is_touched_where_it_could_not_be_like_the_application() {
    let ground = able();
    for directory in ["a", "b"] {
        ground.make_dir(directory);
    }
    recorded(&ground, PLANTED, "app.trace");
    let cut = [
        "trace",
        "cut",
        "app.trace",
        "--from",
        "1 ms",
        "-o",
        "part.trace",
    ];
    ground.stackrace(&cut).ended(0);
    let whole = fs::read(ground.path().join("app.trace")).unwrap();
    ground.write("short.trace", &whole[..whole.len() - 9]);
    let compare = |more: &[&str]| {
        let words = ["compare", "a", "b", "--anyway", "--replay"];
        ground.stackrace(&[&words, more].concat())
    };
    for (more, reason) in [
        (&["part.trace"][..], "it is a part of a trace"),
        (&["short.trace"], "it ends in the middle"),
        (&["gone.trace"], "No such file or directory"),
        (
            &["app.trace", "--home", "data"],
            "--home data is not compared",
        ),
        (
            &["app.trace", "--clients", "ssh:one,two"],
            "is for one machine",
        ),
    ] {
        let said = compare(more);
        assert_ne!(said.code, Some(0), "{more:?}: {}", said.out);
        said.err_has(reason);
    }
    let study = compare(&["app.trace", "--print-study"]);
    study.ended(0);
    for part in ["replay = {", "trace = ", "digest = "] {
        assert!(study.out.contains(part), "{}", study.out);
    }
    for directory in ["a", "b"] {
        let left = fs::read_dir(ground.path().join(directory)).unwrap().count();
        assert_eq!(left, 0, "{directory}");
    }
}

pub(super) fn tests() -> Vec<needs::Test> {
    needs::tests![
        handed_work_keeps_its_order_and_its_results_on_storage_that_is_much_faster,
        sqlite_git_and_postgresql_are_replayed_without_a_result_that_differs,
        the_template_for_an_application_of_ones_own_is_planned_beside_its_trace,
        a_replay_that_is_not_like_its_application_at_home_ends_the_run_without_a_verdict,
        a_program_that_adapts_to_its_storage_is_named_and_not_judged_by_its_elapsed_time,
        a_recorded_application_is_replayed_with_its_order_and_its_results,
        a_replay_is_refused_before_anything_is_touched_where_it_could_not_be_like_the_application,
    ]
}
