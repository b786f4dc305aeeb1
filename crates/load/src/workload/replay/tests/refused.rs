//! Traces that a replay would not be like.

use super::*;

#[test]
fn a_trace_that_a_replay_would_not_be_like_is_refused_with_the_reason() {
    let other = |change: &dyn Fn(&mut WrittenTrace)| {
        let mut trace = WrittenTrace::forking();
        change(&mut trace);
        refused(&trace)
    };
    let why = other(&|trace| trace.origin.architecture = "riscv64".to_owned());
    assert!(
        why.contains("it was recorded on riscv64, and this machine is "),
        "{why}"
    );
    // Who puts results together reads it all the same: the figures follow from it.
    let base = tempfile::tempdir().unwrap();
    let mut elsewhere = WrittenTrace::forking();
    elsewhere.origin.architecture = "riscv64".to_owned();
    let found = workload(&elsewhere.kept(base.path()));
    let here = workload(&WrittenTrace::forking().kept(base.path()));
    assert_eq!(found.metrics().len(), here.metrics().len());
    assert!(found.recorded().is_some());
    let why = other(&|trace| trace.origin.cut = true);
    assert!(why.contains("it is a part of a trace"), "{why}");
    let why = other(&|trace| trace.ending.lost = 2);
    assert!(why.contains("2 of 1,000 events were lost"), "{why}");
    let why = other(&|trace| trace.ending.unresolved = 1);
    assert!(why.contains("1 threads or names"), "{why}");
    let why = other(&|trace| trace.call(Code::Ring, 0, 13 * MS, |ring| ring.duration = 90 * MS));
    assert!(
        why.contains("of its time on storage can be replayed"),
        "{why}"
    );
    let why = other(&|trace| trace.call(Code::SyncMap, 0, 13 * MS, |sync| sync.duration = 90 * MS));
    assert!(why.contains("msync"), "{why}");
    let why = other(&|trace| {
        trace.call(Code::Map, 0, 13 * MS, |map| {
            (map.handle, map.length, map.flags) = (1, 8 << 20, 3 | 1 << 32);
        });
    });
    assert!(why.contains("writes through a mapping of 8 MiB"), "{why}");
    let why = other(&|trace| {
        trace.call(Code::WriteAt, 1, 13 * MS, |write| {
            (write.handle, write.length, write.result, write.flags) = (2, 10, 10, 2);
        });
    });
    assert!(why.contains("RWF_DSYNC"), "{why}");
    let why = other(&|trace| trace.call(Code::SyncFs, 0, 90_000_000 * MS, |_| {}));
    assert!(why.contains("at most 24 h are replayed"), "{why}");
    let why = other(&|trace| trace.operations.clear());
    assert!(why.contains("it has no call that can be replayed"), "{why}");
}

#[test]
fn few_bytes_with_many_of_paths_are_refused() {
    let mut trace = WrittenTrace::forking();
    let mut at = ROOT;
    for _ in 0..15 {
        at = trace.compiler.entry(at, &[b'a'; 250], 9, true).unwrap();
    }
    for number in 0..150_000_u32 {
        let name = number.to_string();
        let path = trace
            .compiler
            .entry(at, name.as_bytes(), 10, false)
            .unwrap();
        trace.call(Code::Stat, 0, 13 * MS, |stat| {
            (stat.path, stat.result) = (path, -2);
        });
    }
    let why = refused(&trace);
    assert!(why.contains("its paths have more than 512 MiB"), "{why}");
}
