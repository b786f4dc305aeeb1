//! Requests through a ring, and the original sysbench, where the machine has them.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[path = "fixtures/sysbench.rs"]
mod fixtures;

use std::path::Path;
use std::process::{Command, ExitCode};

use fixtures::{carry_out, counts, plan};
use stackrace_engine::spec::{IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::sysbench::{SysbenchMode, SysbenchPlan, Transfer};
use stackrace_engine::{Control, PhaseEnd, io_uring_allowed, run};
use stackrace_test_needs as needs;

fn io_uring() {
    if let Err(error) = io_uring_allowed() {
        needs::skip(error);
    }
}

/// The file was never written to: no probe finds data, and what decides is the depth of the queue.
fn a_queue_too_deep_for_threads_becomes_a_ring() {
    io_uring();
    let chosen = |threads: u32, queue_depth: u32| {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let target = IoTarget {
            path: file.path().into(),
            bytes: 16 << 20,
        };
        let spec = Spec {
            read_share: 0.0,
            stop: Stop {
                ops: Some(4096),
                time_ns: None,
            },
            engine: IoEngine::Auto,
            direct: true,
            threads,
            queue_depth,
            ..Spec::reads(vec![target], 4096)
        };
        let outcome = run(&spec, &Control::default()).unwrap();
        assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
        (outcome.engine, outcome.engine_why)
    };
    let (few, why) = chosen(2, 32);
    assert_eq!(few, "sync", "{why}");
    let (many, why) = chosen(16, 128);
    assert_eq!(many, "io_uring", "{why}");
    assert!(why.contains("2048 threads"), "{why}");
}

/// 14 reads, 8 writes and 8 fsyncs of the cadence: seen with sysbench 1.0.20 and a backlog of 8,
/// for the mix follows completions, and those are seen when the backlog is full.
fn a_backlog_does_the_same_work() {
    io_uring();
    let base = tempfile::tempdir().unwrap();
    let plan = SysbenchPlan {
        transfer: Transfer::Async { backlog: 8 },
        events: 30,
        fsync_every: 10,
        ..plan(base.path(), SysbenchMode::RandomBoth)
    };
    let (reads, writes, fsyncs) = counts(&carry_out(&plan).outcome.ops);
    assert_eq!((reads + writes, fsyncs), (22, 12));
}

/// What sysbench itself says of the same work.
#[expect(clippy::disallowed_methods, reason = "the original is a process")]
fn original(directory: &Path, words: &[&str]) -> ([f64; 3], u64) {
    let run = |command: &str| {
        let mut program = Command::new("sysbench");
        program.current_dir(directory).arg("fileio");
        program.args(["--file-num=4", "--file-total-size=1M", "--time=0"]);
        program.args(words).arg(command).output().unwrap()
    };
    if !words.contains(&"--file-test-mode=seqwr") {
        run("prepare");
    }
    let text = String::from_utf8(run("run").stdout).unwrap();
    let number = |label: &str| -> f64 {
        let line = text.lines().find(|line| line.trim().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {text}"));
        let word = line.split_whitespace().last().unwrap();
        word.trim_end_matches('s').parse().unwrap()
    };
    let rates = [number("reads/s"), number("writes/s"), number("fsyncs/s")];
    (rates, number("total number of events") as u64)
}

/// The same counts as the installed sysbench 1.0: it prints rates, of which any two are in the ratio
/// of the counts.
#[expect(clippy::disallowed_methods, reason = "the original is a process")]
fn the_installed_sysbench_counts_the_same() {
    let theirs = tempfile::tempdir_in("/var/tmp").unwrap();
    let ours = tempfile::tempdir_in("/var/tmp").unwrap();
    let version = Command::new(needs::tool("sysbench"))
        .arg("--version")
        .output();
    if !version.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).starts_with("sysbench 1.0")) {
        needs::skip("needs sysbench 1.0");
    }
    let modes = [
        ("seqwr", SysbenchMode::SeqWrite),
        ("seqrewr", SysbenchMode::SeqRewrite),
        ("seqrd", SysbenchMode::SeqRead),
        ("rndrd", SysbenchMode::RandomRead),
        ("rndwr", SysbenchMode::RandomWrite),
        ("rndrw", SysbenchMode::RandomBoth),
    ];
    for (name, mode) in modes {
        for (every, merged) in [(100, 0), (7, 0), (0, 3)] {
            let words = [
                format!("--file-test-mode={name}"),
                format!("--file-fsync-freq={every}"),
                format!("--file-merged-requests={merged}"),
                "--events=700".to_owned(),
            ];
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let original = original(theirs.path(), &words);
            let run = carry_out(&SysbenchPlan {
                fsync_every: every,
                merged,
                events: 700,
                ..plan(ours.path(), mode)
            });
            let (reads, writes, fsyncs) = counts(&run.outcome.ops);
            let events: u64 = run.threads[0].iter().map(|it| it.count).sum();
            assert_eq!(events, original.1, "{words:?}");
            let all = original.0.iter().sum::<f64>() / (reads + writes + fsyncs) as f64;
            let theirs = original.0.map(|rate| (rate / all).round() as u64);
            assert_eq!([reads, writes, fsyncs], theirs, "{words:?}");
        }
    }
}

fn main() -> ExitCode {
    needs::run(vec![needs::group(
        "machine",
        needs::tests![
            a_backlog_does_the_same_work,
            a_queue_too_deep_for_threads_becomes_a_ring,
            the_installed_sysbench_counts_the_same,
        ],
    )])
}
