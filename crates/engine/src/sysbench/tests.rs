//! Counts of the original, and what it leaves on disk.

#[path = "../../tests/fixtures/sysbench.rs"]
mod fixtures;

use super::*;
use crate::outcome::PhaseEnd;
use fixtures::{carry_out, counts, plan};
use std::path::Path;

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

#[test]
fn plain_calls_and_mappings_do_the_same_work() {
    let base = tempfile::tempdir().unwrap();
    for transfer in [Transfer::Sync, Transfer::Mmap] {
        let plan = SysbenchPlan {
            transfer,
            events: 30,
            fsync_every: 10,
            ..plan(base.path(), SysbenchMode::RandomBoth)
        };
        let (reads, writes, fsyncs) = counts(&carry_out(&plan).outcome.ops);
        assert_eq!((reads, writes, fsyncs), (13, 9, 12), "{transfer:?}");
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
fn live_counters_add_up_to_the_outcome() {
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
