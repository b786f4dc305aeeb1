//! Every workload does what it says: run small on a real directory, counted exactly.

use std::collections::HashSet;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use stackrace_base::event::histogram::OPERATIONS_FOR_P999;
use stackrace_engine::tree::profile;
use stackrace_engine::{ContentLedger, Control, Op, PhaseEnd, PhaseOutcome};

mod one_place;
mod refusals;

use refusals::refused;

use super::*;
use crate::programs::written;

/// Makes the place where a workload is tried.
fn place<'a>(
    directory: &'a Path,
    seed: u64,
    ledger: &'a OnceLock<ContentLedger>,
    control: &'a Control,
) -> Place<'a> {
    Place {
        directory,
        bare: None,
        existing: None,
        cold: true,
        ledger,
        elsewhere: None,
        seat: None,
        seed,
        control,
    }
}

/// Runs the workload of one line of TOML and gives back its outcomes and metrics.
fn run(line: &str) -> (Vec<PhaseOutcome>, Vec<(String, Option<f64>)>) {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let workload = written::workload(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
    let control = Control::default();
    let ledger = OnceLock::new();
    let place = place(base.path(), 7, &ledger, &control);
    workload.prepare(&place).unwrap();
    let outcomes: Vec<PhaseOutcome> = (0..workload.phases().len())
        .map(|phase| workload.measure(phase, &place).unwrap())
        .collect();
    for outcome in &outcomes {
        assert_eq!(
            outcome.ended,
            PhaseEnd::Complete,
            "{line}: {:?}",
            outcome.error
        );
    }
    let names = workload.metrics().into_iter().map(|metric| metric.name);
    let values = workload.evaluate(&outcomes);
    assert_eq!(names.len(), values.len(), "{line}");
    (outcomes, names.zip(values).collect())
}

fn count(outcome: &PhaseOutcome, op: Op) -> u64 {
    metric::of(outcome, op).map_or(0, |entry| entry.count)
}

/// Workloads on bare devices, with pools of their own: tests/lab runs them.
const BARE: [&str; 2] = ["mend-pool", "migrate-pool"];

/// Other programs do their work, which may be missing here: src/programs/tests.rs tries them.
const PROGRAMS: [&str; 7] = [
    "build",
    "command",
    "command-promises",
    "fio",
    "git",
    "postgresql",
    "sqlite",
];

/// A recording is its work: `replay/tests.rs` writes some.
const RECORDED: [&str; 1] = [replay::REPLAY];

/// The original drops nothing between its phases, nor do those that are steps of one piece of work;
/// every other workload starts each one cold.
#[test]
fn only_bonnie_leaves_caches_alone_between_its_phases() {
    for kind in crate::programs::workloads() {
        let bare = BARE.contains(&kind.name);
        let workload = written::workload(kind.example).unwrap();
        assert!(workload.settles(0), "{}", kind.name);
        let settled = (1..workload.phases().len()).all(|phase| workload.settles(phase));
        assert_eq!(settled, kind.name != "bonnie++" && !bare, "{}", kind.name);
    }
}

#[test]
fn every_workload_reports_every_metric_it_names() {
    let lines = [
        "sequential = { mode = \"write\", size = \"2 MiB\" }",
        "sequential = { mode = \"rewrite\", size = \"2 MiB\", threads = 2 }",
        "sequential = { mode = \"read\", size = \"2 MiB\", queue-depth = 4 }",
        "random = { mode = \"read\", size = \"1 MiB\" }",
        "random = { mode = \"mixed\", size = \"1 MiB\", fsync-every = 8 }",
        "random = { mode = \"write\", size = \"1 MiB\", queue-depth = 4, access = \"zipf\", time = \"50 ms\" }",
        "random = { mode = \"mixed\", size = \"1 MiB\", files = 2, access = \"pareto\", skew = 0.3, block-sizes = \"4 KiB:3, 512 B\", align = 4096, think-time = \"10 us\", sync = \"dsync\", data-only = true, fsync-every = 9, duplicates = 0.1, operations = 200 }",
        "random = { mode = \"mixed\", size = \"1 MiB\", access = \"normal\", operations = 200, verify = true }",
        "random = { mode = \"read\", size = \"1 MiB\", access = \"hot\", hot-range = \"20 %\", hot-share = \"70 %\", operations = 100 }",
        "sequential = { mode = \"write\", size = \"1 MiB\", block-size = \"64 KiB\", preallocate = true, sync = \"sync\", verify = true, operations = 9 }",
        "fileio = { mode = \"seqwr\", size = \"1 MiB\", preallocate = true, data-only = true, think-time = \"1 us\", operations = 20, verify = true }",
        "fileio = { mode = \"seqwr\", size = \"1 MiB\", fsync-every = 1 }",
        "fileio = { mode = \"rndrw\", size = \"1 MiB\", files = 4, block-size = \"4 KiB\" }",
        "fileio = { mode = \"rndrw\", version = \"1.0\", size = \"1 MiB\", files = 4, operations = 300 }",
        "fileio = { mode = \"rndrw\", version = \"0.4\", size = \"1 MiB\", files = 4, operations = 300, ratio = 2, sync = \"dsync\", data-only = true }",
        "fileio = { mode = \"rndwr\", version = \"1.0\", size = \"1 MiB\", files = 4, operations = 30, io = \"mmap\", verify = true, rate = 10000, threads = 2 }",
        "fileio = { mode = \"rndrd\", version = \"1.0\", size = \"1 MiB\", files = 4, operations = 300, direct = true, fsync-at-end = false, content = \"zero\" }",
        "fileio = { mode = \"seqwr\", version = \"1.0\", size = \"1 MiB\", files = 4, operations = 30, merge = 4, fsync-each = true }",
        "fileio = { mode = \"seqrd\", version = \"0.4\", size = \"1 MiB\", files = 4 }",
        "files = { count = 40, directories = 3 }",
        "files = { count = 40, directories = 3, rename-to = \"next-directory\", phases = [\"mkdir\", \"create\", \"stat\", \"open-close\", \"read\", \"readdir\", \"rename\", \"link\", \"unlink\", \"rmdir\"] }",
        "\"bonnie++\" = { size = \"2 MiB\", files = 100, file-size-max = \"1 KiB\", directories = 2 }",
        "\"bonnie++\" = { version = \"1.03\", size = \"2 MiB\", files = 100, content = \"random\" }",
        "\"bonnie++\" = { size = \"2 MiB\", files = 0, fast = true, seeks = 100, seekers = 2 }",
        "\"bonnie++\" = { version = \"1.03\", size = \"0 B\", files = 50, links = \"hard\" }",
        "find-rate = { mode = \"read\", size = \"1 MiB\", bound = \"p50 <= 1 min\", direct = false, step = \"20 ms\" }",
        "copy-file = { size = \"1 MiB\" }",
        "postmark = { number = 40, transactions = 100 }",
        "postmark = { number = 40, transactions = 100, seed = 42, size-low = \"1 KiB\", size-high = \"2 KiB\", subdirectories = 3, read-block = \"4 KiB\", write-block = \"100 B\", buffering = false, bias-read = 3, bias-create = 6, sync-at-end = true }",
        "copy-tree = { files = 20, directories = 4, size-median = \"1 KiB\", as-rsync = true }",
        "delete-tree = { files = 20, directories = 4, size-median = \"1 KiB\" }",
        "delete-tree = { profile = \"mail\", scale = 0.001 }",
        "extract-tar = { profile = \"source-code\", scale = 0.005 }",
        "extract-tar = { files = 20, directories = 4, size-median = \"1 KiB\", sync-at-end = false }",
        "promises = { idiom = \"overwrite-fsync\", operations = 20, threads = 2 }",
        "promises = { idiom = \"overwrite-dsync\", operations = 20 }",
        "promises = { idiom = \"append-fdatasync\", operations = 20, block-size = \"512 B\" }",
        "promises = { idiom = \"append\", operations = 20, at-rest = 0 }",
        "promises = { idiom = \"replace\", operations = 20, objects = 3 }",
        "promises = { idiom = \"replace-no-dirsync\", operations = 20 }",
        "promises = { idiom = \"create\", operations = 20 }",
        "promises = { idiom = \"create-no-dirsync\", operations = 20, think-time = \"1 us\" }",
        "promises = { idiom = \"mail-queue\", operations = 20, objects = 5 }",
        #[cfg(feature = "sqlite")]
        "promises = { idiom = \"sqlite\", operations = 20 }",
        #[cfg(feature = "sqlite")]
        "promises = { idiom = \"sqlite\", operations = 20, journal = \"wal\", synchronous = \"normal\" }",
        "read-file = { size = \"1 MiB\", block-size = \"1000 B\" }",
        "shared-file = { size = \"1 MiB\", block-size = \"64 KiB\", layout = \"strided\", visits = \"next\" }",
        "read-file = { from = \"/proc/self/exe\", direct = true }",
        "stream-video = { size = \"4 MiB\", block-size = \"64 KiB\", loops = 2, direct = \"never\" }",
        "stream-video = { size = \"4 MiB\", block-size = \"64 KiB\", time = \"20 ms\", queue-depth = 2 }",
    ];
    every_kind_is_in(&lines);
    for line in lines {
        let (outcomes, values) = run(line);
        // Fast storage ends 10,000 operations even in 50 ms.
        let mut ops = outcomes.iter().flat_map(|outcome| &outcome.ops);
        let many = ops.any(|entry| entry.count >= OPERATIONS_FOR_P999);
        for (name, value) in values {
            let rare = name.ends_with("p99.9") && !line.contains("stream-video");
            let sound = value.is_some_and(|value| value.is_finite() && value > 0.0);
            let holds = if rare { many || value.is_none() } else { sound };
            assert!(holds, "{line}: {name} is {value:?}");
        }
    }
}

/// A kind that no line tries would go untested.
fn every_kind_is_in(lines: &[&str]) {
    for kind in crate::programs::workloads() {
        assert!(
            BARE.contains(&kind.name)
                || PROGRAMS.contains(&kind.name)
                || RECORDED.contains(&kind.name)
                || lines
                    .iter()
                    .any(|line| line.trim_start_matches('"').starts_with(kind.name)),
            "{} is not tried here",
            kind.name
        );
    }
}

#[test]
fn one_pass_touches_every_block_once_and_ends() {
    let (outcomes, _) =
        run("random = { mode = \"read\", size = \"1 MiB\", block-size = \"4 KiB\" }");
    assert_eq!(count(&outcomes[0], Op::Read), 256);
    let (outcomes, _) =
        run("sequential = { mode = \"write\", size = \"1 MiB\", block-size = \"64 KiB\" }");
    assert_eq!(count(&outcomes[0], Op::Write), 16);
    assert_eq!(count(&outcomes[0], Op::Fsync), 1);
}

#[test]
fn the_fsync_cadence_is_exact() {
    let (outcomes, _) = run(
        "random = { mode = \"write\", size = \"1 MiB\", block-size = \"4 KiB\", fsync-every = 16, fsync-at-end = false }",
    );
    assert_eq!(
        (
            count(&outcomes[0], Op::Write),
            count(&outcomes[0], Op::Fsync)
        ),
        (256, 16)
    );
}

#[test]
fn files_go_through_all_four_phases_and_are_gone() {
    let (outcomes, values) =
        run("files = { count = 30, directories = 2, size-min = \"1 KiB\", size-max = \"1 KiB\" }");
    let counts: Vec<u64> = [Op::Create, Op::Stat, Op::Open, Op::Unlink]
        .iter()
        .zip(&outcomes)
        .map(|(op, outcome)| count(outcome, *op))
        .collect();
    assert_eq!(counts, [30, 30, 30, 30]);
    assert_eq!(
        outcomes[2]
            .ops
            .iter()
            .find(|entry| entry.op == Op::Open)
            .unwrap()
            .bytes,
        30 * 1024
    );
    assert_eq!(values[0].0, "elapsed");
}

#[test]
fn every_phase_of_files_does_its_work_once_wherever_the_files_are_by_then() {
    let (outcomes, values) = run(
        "files = { count = 30, directories = 4, threads = 2, size-min = \"1 KiB\", size-max = \"1 KiB\", order = \"creation\", rename-to = \"next-directory\", phases = [\"mkdir\", \"create\", \"rename\", \"link\", \"stat\", \"readdir\", \"open-close\", \"read\", \"unlink\", \"rmdir\"] }",
    );
    let found: Vec<(Op, u64, u64)> = outcomes
        .iter()
        .flat_map(|outcome| &outcome.ops)
        .filter(|entry| entry.op != Op::Fsync)
        .map(|entry| (entry.op, entry.count, entry.bytes))
        .collect();
    let expected = [
        (Op::Mkdir, 4, 0),
        (Op::Create, 30, 30 * 1024),
        (Op::Rename, 30, 0),
        (Op::Link, 30, 0),
        (Op::Stat, 30, 0),
        (Op::Readdir, 4, 0),
        (Op::Open, 30, 0),
        (Op::Open, 30, 30 * 1024),
        (Op::Unlink, 60, 0),
        (Op::Rmdir, 4, 0),
    ];
    assert_eq!(found, expected);
    let flushed: Vec<u64> = outcomes.iter().map(|it| count(it, Op::Fsync)).collect();
    assert_eq!(
        flushed,
        [1, 1, 1, 1, 0, 0, 0, 0, 1, 1],
        "what changed is durable"
    );
    let names: HashSet<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names.len(),
        values.len(),
        "a metric's name stands twice: {values:?}"
    );
    assert!(names.contains("open-close latency p99") && names.contains("open latency p99"));
}

/// Stored runs compare with new ones.
#[test]
fn files_without_a_word_about_phases_measure_what_they_always_did() {
    let names: Vec<String> = run("files = { count = 10 }")
        .1
        .into_iter()
        .map(|it| it.0)
        .collect();
    let expected = [
        "elapsed",
        "create",
        "create latency p99",
        "stat",
        "stat latency p99",
        "read",
        "open latency p99",
        "unlink",
        "unlink latency p99",
    ];
    assert_eq!(names, expected);
}

/// 100 writes and a burst, 92 writes, and each file once more at the end: what sysbench 1.0.20 does
/// of 320 events with 128 files.
#[test]
fn fileio_with_a_version_does_what_sysbench_does() {
    let (outcomes, _) = run(
        "fileio = { mode = \"rndwr\", version = \"1.0\", size = \"32 MiB\", operations = 320, time = \"1 h\" }",
    );
    let counts = [Op::Write, Op::Fsync].map(|op| count(&outcomes[0], op));
    assert_eq!(counts, [192, 256]);
    for (words, why) in [
        ("think-time = \"1 us\"", "sysbench has no think-time"),
        ("backlog = 3", "only io = \"async\" has a backlog"),
        ("merge = 3", "only sequential requests merge"),
        (
            "fsync-each = true, fsync-every = 3",
            "each write is synced by itself",
        ),
        ("io = \"async\", verify = true", "nothing can be validated"),
        (
            "verify = true, content = \"zero\"",
            "what is verified is random",
        ),
    ] {
        let line = "fileio = { mode = \"rndwr\", version = \"1.0\", size = \"1 MiB\", files = 2,";
        refused(&format!("{line} {words} }}"), why);
    }
    let rate =
        "fileio = { mode = \"rndwr\", version = \"0.4\", size = \"1 MiB\", files = 2, rate = 5 }";
    refused(rate, "sysbench 0.4 has no rate");
    let merge = "fileio = { mode = \"seqwr\", size = \"1 MiB\", merge = 3 }";
    refused(merge, "belongs to the requests of sysbench itself");
}

#[test]
fn a_mix_keeps_its_share() {
    let (outcomes, _) = run(
        "fileio = { mode = \"rndrw\", size = \"4 MiB\", files = 2, block-size = \"4 KiB\", ratio = 3.0 }",
    );
    let (reads, writes) = (
        count(&outcomes[0], Op::Read),
        count(&outcomes[0], Op::Write),
    );
    assert_eq!(reads + writes, 1024);
    assert!(reads.abs_diff(768) <= 8, "{reads} reads of 1024 at 3 to 1");
}

#[test]
fn an_interrupt_ends_a_phase() {
    let workload = written::workload(
        "random = { mode = \"write\", size = \"1 MiB\", access = \"uniform\", time = \"1 h\" }",
    )
    .unwrap();
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let control = Control::default();
    let ledger = OnceLock::new();
    let place = place(base.path(), 1, &ledger, &control);
    workload.prepare(&place).unwrap();
    control.stop.store(true, Ordering::SeqCst);
    assert_eq!(
        workload.measure(0, &place).unwrap().ended,
        PhaseEnd::Stopped
    );
}

#[test]
fn what_is_verified_is_read_back_whole_and_a_wrong_byte_fails_it() {
    let (outcomes, _) = run(
        "random = { mode = \"mixed\", size = \"1 MiB\", files = 2, verify = true, fsync-at-end = false }",
    );
    let reads = count(&outcomes[0], Op::Read);
    assert_eq!(outcomes[0].verified_bytes, reads * 4096);
    assert_eq!(outcomes[1].verified_bytes, 1 << 20);

    let workload =
        written::workload("sequential = { mode = \"write\", size = \"1 MiB\", verify = true }")
            .unwrap();
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let control = Control::default();
    let ledger = OnceLock::new();
    let place = place(base.path(), 3, &ledger, &control);
    workload.prepare(&place).unwrap();
    assert_eq!(
        workload.measure(0, &place).unwrap().ended,
        PhaseEnd::Complete
    );
    let file = std::fs::File::options()
        .write(true)
        .open(base.path().join("data.0"))
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 512 * 777 + 100).unwrap();
    let outcome = workload.measure(1, &place).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.offset, Some(512 * 777));
    assert!(error.to_string().contains("data.0"), "{error}");
}

#[test]
fn an_open_loop_is_asked_for_its_response_times_first() {
    let (_, values) = run(
        "random = { mode = \"read\", size = \"1 MiB\", access = \"uniform\", rate = 5000, operations = 50 }",
    );
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "read latency p99",
            "operations",
            "throughput",
            "read latency p50",
            "read latency p95",
            "read latency p99.9",
            "offered load achieved",
            "read service time p50",
            "read service time p95",
            "read service time p99",
        ]
    );
    // 50 operations at 5000 a second cannot take less than 49 gaps of 0.2 ms.
    let achieved = values[6].1.unwrap();
    assert!((0.0..=103.0).contains(&achieved), "{achieved}");
}

/// Counts PostMark prints for its own defaults.
#[test]
fn postmark_counts_what_postmark_counts() {
    let (outcomes, values) = run("postmark = { seed = 42 }");
    let counts = [Op::Create, Op::Open, Op::Append, Op::Unlink].map(|op| count(&outcomes[0], op));
    assert_eq!(counts, [764, 243, 257, 764]);
    let value = |name: &str| values.iter().find(|(head, _)| head == name).unwrap().1;
    let seconds = value("transaction time").unwrap();
    let transactions = value("transactions").unwrap() * seconds;
    assert!((transactions - 500.0).abs() < 1e-6, "{transactions}");
    let other = run("postmark = {}").0;
    assert_ne!(
        count(&other[0], Op::Create),
        764,
        "the trial's seed is another"
    );
}

#[test]
fn a_profile_is_copied_whole_and_files_are_counted_as_files() {
    let (outcomes, values) = run("copy-tree = { profile = \"source-code\", scale = 0.005 }");
    let copies = count(&outcomes[0], Op::Copy);
    let rate = values.iter().find(|(name, _)| name == "files").unwrap().1;
    let expected = copies as f64 * 1e9 / outcomes[0].elapsed_ns as f64;
    assert_eq!(rate, Some(expected), "directories and renames are no files");
    let (entries, _) = profile::by_name("source-code").unwrap().tree(0.005, 7);
    let made = copies + count(&outcomes[0], Op::Mkdir);
    assert_eq!(made, entries.len() as u64 + 1, "and the root");
}

/// Files that the user names are read and left as they were; the same archive again gives the same
/// files.
#[test]
fn a_real_archive_and_a_real_tree_are_only_read() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let tree = home.path().join("tree");
    std::fs::create_dir_all(tree.join("below")).unwrap();
    std::fs::write(tree.join("below/file"), vec![1; 5000]).unwrap();
    let archive = home.path().join("a.tar");
    let entries = stackrace_engine::tree::scan(&tree).unwrap().entries;
    let fill = stackrace_engine::spec::Content::Random.into();
    stackrace_engine::tree::archive(&entries, &archive, &fill, 1, &Control::default()).unwrap();
    let before = std::fs::read(&archive).unwrap();
    let (outcomes, _) = run(&format!(
        "extract-tar = {{ from = \"{}\" }}",
        archive.display()
    ));
    assert_eq!(
        (
            count(&outcomes[0], Op::Mkdir),
            count(&outcomes[0], Op::Create)
        ),
        (1, 1)
    );
    assert_eq!(std::fs::read(&archive).unwrap(), before);
    let (outcomes, _) = run(&format!(
        "delete-tree = {{ from = \"{}\" }}",
        tree.display()
    ));
    assert_eq!(
        (
            count(&outcomes[0], Op::Unlink),
            count(&outcomes[0], Op::Rmdir)
        ),
        (1, 2)
    );
    assert_eq!(
        std::fs::read(tree.join("below/file")).unwrap(),
        vec![1; 5000]
    );
}

/// Each writing makes a new file, each reading reads all of it, and a frame is one operation.
#[test]
fn video_is_streamed_frame_by_frame() {
    let line = "stream-video = { size = \"1 MiB\", block-size = \"64 KiB\", loops = 2, direct = \"never\" }";
    let (outcomes, values) = run(line);
    for (phase, outcome) in outcomes.iter().enumerate() {
        let op = [Op::Write, Op::Read][phase % 2];
        assert_eq!(count(outcome, op), 16);
        // Without O_DIRECT each frame is flushed, and the file once more at the end.
        let flushes = if op == Op::Write { 17 } else { 0 };
        assert_eq!(count(outcome, Op::Fsync), flushes);
    }
    let value = |name: &str| {
        values
            .iter()
            .find(|(head, _)| head == name)
            .unwrap()
            .1
            .unwrap()
    };
    assert_eq!(value("asked of a format's rate"), 120.0);
    // Shorter than a second, a phase is one window; it ends with the last frame's slice of 2 ms.
    let bytes = 2.0 * 1_048_576.0;
    let elapsed: u64 = [0, 2]
        .iter()
        .map(|phase: &usize| outcomes[*phase].elapsed_ns)
        .sum();
    assert_eq!(value("write throughput"), bytes * 1e9 / elapsed as f64);
}
