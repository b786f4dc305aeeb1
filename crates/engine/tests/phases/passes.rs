//! Phases that go over their data more than once.

use stackrace_engine::residency::{evict, resident_bytes};
use stackrace_engine::spec::{Again, Durability, Fresh};

use super::*;

/// Blocks of the file.
const BLOCKS: u64 = 256;
const BYTES: u64 = BLOCKS * 4096;

fn passes(target: IoTarget, ops: u64, fresh: Option<Fresh>) -> Spec {
    Spec {
        access: AccessPattern::OncePerPass,
        stop: Stop {
            ops: Some(ops),
            time_ns: None,
        },
        again: fresh.map(|fresh| Again { ops: BLOCKS, fresh }),
        ..spec(&target.path, target.bytes)
    }
}

#[test]
fn what_was_read_is_out_of_the_cache_before_it_comes_again() {
    // Not /tmp, which may be in memory.
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    for (engine, queue_depth) in engines() {
        let resident = |ops, fresh| {
            let target = laid_out(home.path(), "file", BYTES);
            evict(&target.path).unwrap();
            let spec = Spec {
                engine,
                queue_depth,
                ..passes(target.clone(), ops, fresh)
            };
            assert_eq!(of(&done(&spec), Op::Read).count, ops);
            resident_bytes(&target.path).unwrap().0
        };
        let (evicted, once) = (Some(Fresh::Evicted), 2 * BLOCKS);
        // Of several workers one may begin its last pass while others are at the end of theirs.
        if (engine, queue_depth) != (IoEngine::Sync, 4) {
            let whole = resident(once, evicted);
            assert_eq!(whole, BYTES, "the last pass is left alone");
        }
        assert!(resident(once + 1, evicted) < BYTES, "it was read before");
        assert_eq!(resident(once + 1, None), BYTES, "no drop was asked for");
    }
}

#[test]
fn each_pass_writes_a_new_file_and_what_it_wrote_is_synced() {
    let home = directory();
    let target = IoTarget {
        path: home.path().join("file"),
        bytes: BYTES,
    };
    let written = |ops, fsync_at_end| {
        let spec = Spec {
            access: AccessPattern::Sequential,
            read_share: 0.0,
            durability: Durability {
                fsync_at_end,
                ..Durability::default()
            },
            ..passes(target.clone(), ops, Some(Fresh::Anew))
        };
        let outcome = done(&spec);
        let length = std::fs::metadata(&target.path).unwrap().len();
        (
            count(&outcome, Op::Write),
            count(&outcome, Op::Fsync),
            length,
        )
    };
    assert_eq!(written(3 * BLOCKS, true), (3 * BLOCKS, 3, BYTES));
    // The third pass is cut short: nothing of the second is left behind it.
    assert_eq!(written(2 * BLOCKS + 4, true).2, 4 * 4096);
    assert_eq!(written(2 * BLOCKS, false), (2 * BLOCKS, 0, BYTES));
}

#[test]
fn passes_end_with_the_time() {
    let home = directory();
    let target = laid_out(home.path(), "file", BYTES);
    let mut spec = passes(target, 1, Some(Fresh::Evicted));
    spec.stop = Stop {
        ops: None,
        time_ns: Some(200_000_000),
    };
    let outcome = done(&spec);
    assert!(outcome.elapsed_ns >= 200_000_000);
    assert!(outcome.ops[0].count > BLOCKS, "a pass takes no such time");
}

#[test]
fn files_made_anew_are_of_one_thread() {
    let home = directory();
    let target = laid_out(home.path(), "file", BYTES);
    let spec = Spec {
        threads: 2,
        ..passes(target, BLOCKS, Some(Fresh::Anew))
    };
    let refused = run(&spec, &Control::default()).unwrap_err();
    assert!(matches!(refused, StartError::Spec { .. }), "{refused}");
}
