//! Counts of the original, and what it leaves on disk.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::outcome::PhaseEnd;

fn plan(directory: &Path, mode: SysbenchMode) -> SysbenchPlan {
    SysbenchPlan {
        directory: directory.to_owned(),
        mode,
        files: 4,
        total_bytes: 1 << 20,
        time_ns: None,
        slice_ns: 1_000_000,
        ..SysbenchPlan::of(SysbenchVersion::V1_0)
    }
}

fn carry_out(plan: &SysbenchPlan) -> SysbenchOutcome {
    let control = Control::default();
    if plan.mode != SysbenchMode::SeqWrite {
        plan.prepare(&control, &mut |_, _| ()).unwrap();
    }
    let run = plan.run(&control, None).unwrap();
    assert_eq!(
        run.outcome.ended,
        PhaseEnd::Complete,
        "{:?}",
        run.outcome.error
    );
    run
}

fn counts(ops: &[OpOutcome]) -> (u64, u64, u64) {
    let count = |op| ops.iter().find(|it| it.op == op).map_or(0, |it| it.count);
    (count(Op::Read), count(Op::Write), count(Op::Fsync))
}

/// The counts sysbench 0.4.12 and 1.0.20 have been seen to make, one thread.
#[test]
fn counts_are_those_of_the_original() {
    let base = tempfile::tempdir().unwrap();
    let full = SysbenchPlan {
        files: 128,
        total_bytes: 32 << 20,
        ..plan(base.path(), SysbenchMode::RandomBoth)
    };
    let old = SysbenchPlan {
        version: SysbenchVersion::V0_4,
        events: 2_000,
        ..full.clone()
    };
    assert_eq!(counts(&carry_out(&old).outcome.ops), (1_200, 800, 2_560));
    let write = SysbenchPlan {
        mode: SysbenchMode::RandomWrite,
        ..old.clone()
    };
    assert_eq!(counts(&carry_out(&write).outcome.ops), (0, 2_000, 2_560));
    let rewrite = SysbenchPlan {
        mode: SysbenchMode::SeqRewrite,
        ..old.clone()
    };
    assert_eq!(counts(&carry_out(&rewrite).outcome.ops), (0, 2_048, 128));
    let read = SysbenchPlan {
        mode: SysbenchMode::SeqRead,
        ..old
    };
    assert_eq!(counts(&carry_out(&read).outcome.ops), (2_048, 0, 0));
    let new = SysbenchPlan {
        events: 320,
        mode: SysbenchMode::RandomWrite,
        ..full
    };
    let run = carry_out(&new);
    assert_eq!(counts(&run.outcome.ops), (0, 192, 256));
    assert_eq!(
        counts(&run.threads[0]),
        (0, 192, 128),
        "the end is no event"
    );
}

/// 35 reads, 5 writes, 20 fsyncs as events: seen with sysbench 1.0.20.
#[test]
fn a_burst_needs_a_write_since_the_last_one() {
    let base = tempfile::tempdir().unwrap();
    let rare = SysbenchPlan {
        events: 60,
        ratio: 7.0,
        fsync_every: 3,
        ..plan(base.path(), SysbenchMode::RandomBoth)
    };
    assert_eq!(counts(&carry_out(&rare).threads[0]), (35, 5, 20));
}

/// 14 reads, 8 writes and 8 fsyncs of the cadence: seen with sysbench 1.0.20 and a backlog of 8,
/// for the mix follows completions, and those are seen when the backlog is full.
#[test]
fn every_way_to_move_bytes_does_the_same_work() {
    let base = tempfile::tempdir().unwrap();
    for transfer in [
        Transfer::Sync,
        Transfer::Mmap,
        Transfer::Async { backlog: 8 },
    ] {
        let plan = SysbenchPlan {
            transfer,
            events: 30,
            fsync_every: 10,
            ..plan(base.path(), SysbenchMode::RandomBoth)
        };
        if transfer == (Transfer::Async { backlog: 8 }) && crate::io_uring_allowed().is_err() {
            println!("skipped: io_uring is not allowed here");
            continue;
        }
        let (reads, writes, fsyncs) = counts(&carry_out(&plan).outcome.ops);
        assert_eq!((reads + writes, fsyncs), (22, 12), "{transfer:?}");
        if transfer != (Transfer::Async { backlog: 8 }) {
            assert_eq!((reads, writes), (13, 9), "{transfer:?}");
        }
    }
}

#[test]
fn sequential_requests_merge_and_stop_at_the_end_of_a_file() {
    let base = tempfile::tempdir().unwrap();
    let merged = SysbenchPlan {
        merged: 5,
        events: 20,
        ..plan(base.path(), SysbenchMode::SeqRewrite)
    };
    let run = carry_out(&merged);
    // 80, 80, 80 and 16 KiB of each file of 256.
    assert_eq!(run.threads[0][0].bytes, 5 * (256 << 10));
}

#[test]
fn threads_share_one_cursor_and_each_syncs_all_files_at_the_end() {
    let base = tempfile::tempdir().unwrap();
    for transfer in [Transfer::Sync, Transfer::Mmap] {
        let new = SysbenchPlan {
            transfer,
            threads: 3,
            events: 64,
            fsync_every: 0,
            ..plan(base.path(), SysbenchMode::SeqWrite)
        };
        let run = carry_out(&new);
        assert_eq!(counts(&run.outcome.ops), (0, 64, 12));
        for file in 0..4 {
            let bytes = std::fs::metadata(new.path(file)).unwrap().len();
            assert_eq!(bytes, 256 << 10, "{transfer:?}: one pass writes all of it");
        }
    }
}

#[test]
fn an_fsync_after_each_write_is_in_its_latency() {
    let base = tempfile::tempdir().unwrap();
    let each = SysbenchPlan {
        fsync_each: true,
        events: 30,
        ..plan(base.path(), SysbenchMode::RandomBoth)
    };
    let run = carry_out(&each);
    assert_eq!(counts(&run.outcome.ops), (18, 12, 12));
    let of = |op| run.outcome.ops.iter().find(|it| it.op == op).unwrap();
    assert!(of(Op::Write).latency_sum_ns > of(Op::Fsync).latency_sum_ns);
}

#[test]
fn what_is_validated_is_found_when_it_is_wrong() {
    let base = tempfile::tempdir().unwrap();
    for transfer in [Transfer::Sync, Transfer::Mmap] {
        let mixed = SysbenchPlan {
            transfer,
            validate: true,
            threads: 3,
            events: 500,
            ..plan(base.path(), SysbenchMode::RandomBoth)
        };
        carry_out(&mixed);
        let read = SysbenchPlan {
            mode: SysbenchMode::SeqRead,
            events: 64,
            threads: 1,
            ..mixed
        };
        carry_out(&read);
        let file = std::fs::File::options()
            .write(true)
            .open(read.path(2))
            .unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"wrong", 40_000).unwrap();
        let run = read.run(&Control::default(), None).unwrap();
        assert_eq!(run.outcome.ended, PhaseEnd::Failed);
        let error = run.outcome.error.unwrap();
        assert_eq!((error.offset, error.path), (Some(32_768), read.path(2)));
        read.clean_up().unwrap();
    }
}

#[test]
fn files_are_kept_and_grow_in_version_1_and_begin_anew_in_0_4() {
    let base = tempfile::tempdir().unwrap();
    let control = Control::default();
    let made = |plan: &SysbenchPlan| {
        let mut made = Vec::new();
        let bytes = plan
            .prepare(&control, &mut |what, _| made.push(what))
            .unwrap()
            .bytes;
        (made, bytes)
    };
    let small = SysbenchPlan {
        files: 3,
        total_bytes: 1_000_000,
        ..plan(base.path(), SysbenchMode::RandomRead)
    };
    // 325 KB each, in whole blocks.
    assert_eq!(made(&small), (vec![FilePreparation::Created; 3], 1_032_192));
    let larger = SysbenchPlan {
        files: 4,
        total_bytes: 1_500_000,
        ..small.clone()
    };
    let grown = [
        vec![FilePreparation::Extended; 3],
        vec![FilePreparation::Created],
    ]
    .concat();
    assert_eq!(made(&larger), (grown, 475_136));
    assert_eq!(made(&larger), (vec![FilePreparation::Reused; 4], 0));
    let old = SysbenchPlan {
        version: SysbenchVersion::V0_4,
        ..small
    };
    assert_eq!(made(&old), (vec![FilePreparation::Created; 3], 1_032_192));
    let short = larger.run(&control, None).unwrap_err();
    assert!(
        short.to_string().contains("test_file.0 holds 344064"),
        "{short}"
    );
}

#[test]
fn a_plan_that_makes_no_sense_is_refused() {
    let base = Path::new("/nonexistent");
    let usual = plan(base, SysbenchMode::RandomRead);
    let queued = Transfer::Async { backlog: 1 };
    for wrong in [
        SysbenchPlan {
            files: 0,
            ..usual.clone()
        },
        SysbenchPlan {
            total_bytes: 3,
            ..usual.clone()
        },
        SysbenchPlan {
            block_size: 0,
            ..usual.clone()
        },
        SysbenchPlan {
            merged: u32::MAX,
            ..usual.clone()
        },
        SysbenchPlan {
            validate: true,
            block_size: 12,
            ..usual.clone()
        },
        SysbenchPlan {
            validate: true,
            transfer: queued,
            ..usual.clone()
        },
        SysbenchPlan {
            transfer: Transfer::Async { backlog: 0 },
            ..usual.clone()
        },
    ] {
        let error = wrong.run(&Control::default(), None).unwrap_err();
        assert!(matches!(error, StartError::Spec { .. }), "{error}");
    }
    let missing = usual.run(&Control::default(), None).unwrap_err();
    assert!(matches!(missing, StartError::Open { .. }), "{missing}");
}

/// A queue of arrivals never runs ahead of the clock, and an interrupt ends it.
#[test]
fn an_open_loop_waits_for_its_arrivals() {
    let base = tempfile::tempdir().unwrap();
    let open = SysbenchPlan {
        rate: Some(20_000.0),
        threads: 2,
        events: 400,
        ..plan(base.path(), SysbenchMode::RandomRead)
    };
    let run = carry_out(&open);
    assert_eq!(counts(&run.outcome.ops).0, 400);
    // 400 gaps of 50 us on average: a tenth of that would be no schedule at all.
    assert!(run.outcome.elapsed_ns > 2_000_000);
}

#[test]
fn what_is_watched_adds_up() {
    let base = tempfile::tempdir().unwrap();
    let (watched, live) = (
        SysbenchPlan {
            events: 320,
            ..plan(base.path(), SysbenchMode::RandomWrite)
        },
        LiveCounters::default(),
    );
    watched
        .prepare(&Control::default(), &mut |_, _| ())
        .unwrap();
    watched.run(&Control::default(), Some(&live)).unwrap();
    let seen = live.take();
    // 100 writes and a burst of 4, three times, and 8 writes; 4 at the end.
    assert_eq!((seen.written_bytes >> 14, seen.fsyncs), (308, 16));
    assert_eq!(seen.latencies.iter().sum::<u64>(), 320);
    assert_eq!(live.take().latencies.iter().sum::<u64>(), 0);
}

/// What sysbench itself says of the same work.
#[expect(clippy::disallowed_methods, reason = "the original is a process")]
fn original(directory: &Path, words: &[&str]) -> Option<([f64; 3], u64)> {
    let run = |command: &str| {
        let mut program = Command::new("sysbench");
        program.current_dir(directory).arg("fileio");
        program.args(["--file-num=4", "--file-total-size=1M", "--time=0"]);
        program.args(words).arg(command).output()
    };
    if !words.contains(&"--file-test-mode=seqwr") {
        run("prepare").ok()?;
    }
    let text = String::from_utf8(run("run").ok()?.stdout).unwrap();
    let number = |label: &str| -> f64 {
        let line = text.lines().find(|line| line.trim().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {text}"));
        let word = line.split_whitespace().last().unwrap();
        word.trim_end_matches('s').parse().unwrap()
    };
    let rates = [number("reads/s"), number("writes/s"), number("fsyncs/s")];
    Some((rates, number("total number of events") as u64))
}

/// The same counts as the installed sysbench 1.0: it prints rates, of which any two are in the ratio
/// of the counts.
#[test]
#[expect(clippy::disallowed_methods, reason = "the original is a process")]
fn the_installed_sysbench_counts_the_same() {
    let theirs = tempfile::tempdir_in("/var/tmp").unwrap();
    let ours = tempfile::tempdir_in("/var/tmp").unwrap();
    let version = Command::new("sysbench").arg("--version").output();
    if !version.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).starts_with("sysbench 1.0")) {
        println!("skipped: sysbench 1.0 is not installed");
        return;
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
            let original = original(theirs.path(), &words).unwrap();
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
