//! The order of requests is the one that was seen, documented, or reported.

use super::*;
use proptest::prelude::*;

fn plan(version: SysbenchVersion, mode: SysbenchMode) -> SysbenchPlan {
    SysbenchPlan {
        directory: "/nowhere".into(),
        mode,
        files: 3,
        total_bytes: 1_000_000,
        block_size: 4096,
        fsync_every: 0,
        events: 0,
        time_ns: None,
        slice_ns: 1,
        ..SysbenchPlan::of(version)
    }
}

fn ops(plan: &SysbenchPlan, count: usize) -> String {
    let source = RequestSource::new(plan);
    let mut draw = Draw::new(1, 1);
    let mut letters = String::new();
    for _ in 0..count {
        letters.push(match source.next(0, &mut draw) {
            None => break,
            Some(SysbenchRequest::Fsync { .. }) => 'F',
            Some(SysbenchRequest::Move(step)) => {
                source.completed(step.op);
                if step.op == Op::Read { 'R' } else { 'W' }
            }
        });
    }
    letters
}

/// The order that was seen in the system calls of sysbench 1.0.20.
#[test]
fn three_reads_come_with_two_writes() {
    let both = plan(SysbenchVersion::V1_0, SysbenchMode::RandomBoth);
    assert_eq!(ops(&both, 15), "RWRWRRWRWRRWRWR");
    let cadence = SysbenchPlan {
        fsync_every: 10,
        ..both
    };
    assert_eq!(ops(&cadence, 20), "RWRWRRWRWRFFFRWRWRRW");
}

/// The numbers that `lrand48` of the C library gives, unseeded and after `srand48(7)`.
#[test]
fn version_0_4_draws_from_the_generator_of_the_c_library() {
    let drawn = |seed| {
        let plan = SysbenchPlan {
            seed,
            ..plan(SysbenchVersion::V0_4, SysbenchMode::RandomRead)
        };
        let source = RequestSource::new(&plan);
        [(); 3].map(|()| (source.lrand48() * f64::from(0x3fff_ffff)).round() as u64)
    };
    assert_eq!(drawn(0), [0, 2_116_118, 89_401_895]);
    assert_eq!(drawn(7)[0], 572_184_555);
}

/// sysbench 1.0 has been reported to read from a file that does not exist where the number of files
/// does not divide the size; version 0.4 reads whole blocks.
#[test]
fn every_block_lies_in_a_file() {
    for version in [SysbenchVersion::V0_4, SysbenchVersion::V1_0] {
        let plan = plan(version, SysbenchMode::RandomRead);
        let source = RequestSource::new(&plan);
        let mut draw = Draw::new(3, 3);
        for _ in 0..20_000 {
            let Some(SysbenchRequest::Move(step)) = source.next(0, &mut draw) else {
                panic!("a read was due");
            };
            assert!(step.file < 3);
            assert!(step.bytes > 0 && step.offset + u64::from(step.bytes) <= plan.reach());
        }
    }
}

#[test]
fn version_0_4_ends_with_one_fsync_of_each_file() {
    let once = plan(SysbenchVersion::V0_4, SysbenchMode::SeqRewrite);
    let letters = ops(&once, 1_000);
    // 333,333 bytes are 82 blocks.
    assert_eq!(letters, "W".repeat(3 * 82) + "FFF");
    let limited = SysbenchPlan {
        events: 10,
        fsync_every: 5,
        ..plan(SysbenchVersion::V0_4, SysbenchMode::RandomWrite)
    };
    assert_eq!(ops(&limited, 100), "WWWWWFFFWWWWWFFF");
}

#[test]
fn two_threads_never_hold_one_block() {
    let plan = SysbenchPlan {
        validate: true,
        threads: 2,
        total_bytes: 3 * 4096,
        ..plan(SysbenchVersion::V1_0, SysbenchMode::RandomWrite)
    };
    let source = RequestSource::new(&plan);
    let mut draw = Draw::new(5, 5);
    let mut next = |thread| match source.next(thread, &mut draw) {
        Some(SysbenchRequest::Move(step)) => step.file,
        other => panic!("{other:?}"),
    };
    for _ in 0..200 {
        let first = next(0);
        assert_ne!(next(1), first);
        source.release(0);
        source.release(1);
    }
}

/// The cadence as it is documented, written the plain way.
fn oracle(writes: &[bool], every: u64, files: u64) -> String {
    let (mut done, mut dirty, mut letters) = (0u64, false, String::new());
    for &write in writes {
        if dirty && done.is_multiple_of(every) {
            letters.push_str(&"F".repeat(files as usize));
            dirty = false;
        }
        done += 1;
        dirty |= write;
        letters.push(if write { 'W' } else { 'R' });
    }
    letters
}

proptest! {
    #[test]
    fn the_cadence_in_one_word_is_the_one_that_is_documented(
        writes in proptest::collection::vec(any::<bool>(), 0..200),
        every in 1u64..9,
        files in 1u64..5,
    ) {
        let (mut cadence, mut letters, mut left) = (Cadence(0), String::new(), writes.iter());
        let mut next = left.next();
        while let Some(&write) = next {
            let (after, file) = cadence.next(write, every, files);
            cadence = after;
            if file.is_some() {
                letters.push('F');
            } else {
                letters.push(if write { 'W' } else { 'R' });
                next = left.next();
            }
        }
        prop_assert_eq!(letters, oracle(&writes, every, files));
    }
}
