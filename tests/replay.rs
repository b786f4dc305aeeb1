//! A recorded application, replayed by the real program: order, results, refusals.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;

use crate::record::{PLANTED, able, recorded};
use stackrace_test_needs as needs;

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
        a_recorded_application_is_replayed_with_its_order_and_its_results,
        a_replay_is_refused_before_anything_is_touched_where_it_could_not_be_like_the_application,
    ]
}
