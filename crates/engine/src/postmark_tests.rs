//! Counts and bytes are those the original prints for the same settings.

use std::path::Path;

use super::*;

const SLICE_NS: u64 = 100_000_000;

/// PostMark's own defaults.
fn defaults(directory: &Path) -> PostMarkPlan {
    PostMarkPlan {
        locations: vec![PostMarkLocation {
            path: directory.to_owned(),
            weight: 1,
        }],
        subdirectories: 0,
        files: 500,
        transactions: 500,
        size_low: 500,
        size_high: 10_000,
        read_block: 512,
        write_block: 512,
        buffered: true,
        bias_read: Some(5),
        bias_create: Some(5),
        seed: 42,
        at_end: AtEnd::Return,
    }
}

fn run(plan: &PostMarkPlan) -> (PostMarkOutcome, Vec<PostMarkProgress>) {
    let mut notices = Vec::new();
    let mut notice = |said| notices.push(said);
    let ran = plan
        .run(SLICE_NS, &Control::default(), &mut notice)
        .unwrap();
    (ran, notices)
}

fn count(ran: &PostMarkOutcome, stretch: usize, op: Op) -> u64 {
    let counts = &ran.outcome.stretches[stretch].counts;
    counts.iter().find(|(kind, _)| *kind == op).unwrap().1
}

/// Created alone, created mixed, read, appended, deleted mixed, deleted alone.
fn counts(ran: &PostMarkOutcome) -> [u64; 6] {
    [
        count(ran, 0, Op::Create),
        count(ran, 1, Op::Create),
        count(ran, 1, Op::Open),
        count(ran, 1, Op::Append),
        count(ran, 1, Op::Unlink),
        count(ran, 2, Op::Unlink),
    ]
}

/// Bytes read, bytes written.
fn bytes(ran: &PostMarkOutcome) -> (u64, u64) {
    let of = |op| {
        let found = ran.outcome.ops.iter().find(|kind| kind.op == op);
        found.map_or(0, |kind| kind.bytes)
    };
    (of(Op::Open), of(Op::Create) + of(Op::Append))
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn the_defaults_do_what_the_original_does() {
    let base = tempfile::tempdir().unwrap();
    let (ran, notices) = run(&defaults(base.path()));
    assert_eq!(
        ran.outcome.ended,
        PhaseEnd::Complete,
        "{:?}",
        ran.outcome.error
    );
    assert_eq!(counts(&ran), [500, 264, 243, 257, 236, 528]);
    let (read, written) = bytes(&ran);
    let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1_048_576.0);
    assert_eq!(
        (megabytes(read), megabytes(written)),
        ("1.36".into(), "4.45".into())
    );
    assert_eq!(ran.read_as_float, read as f32, "small sums are exact");
    assert_eq!(ran.written_as_float, written as f32);
    let tenths = notices
        .iter()
        .filter(|said| **said == PostMarkProgress::Tenth);
    assert_eq!(tenths.count(), 10);
    assert!(is_empty(base.path()));
}

/// The settings of the Phoronix test profile, with fewer transactions: subdirectories, no buffer.
#[test]
fn without_a_buffer_in_subdirectories_it_does_what_the_original_does() {
    let base = tempfile::tempdir().unwrap();
    let plan = PostMarkPlan {
        subdirectories: 10,
        transactions: 20_000,
        size_low: 5120,
        size_high: 65_536,
        read_block: 4096,
        write_block: 4096,
        buffered: false,
        ..defaults(base.path())
    };
    let (ran, _) = run(&plan);
    assert_eq!(
        ran.outcome.ended,
        PhaseEnd::Complete,
        "{:?}",
        ran.outcome.error
    );
    assert_eq!(counts(&ran), [500, 10_019, 9915, 10_040, 9981, 538]);
    // The terse report of 1.51 gives these sums over two seconds.
    assert_eq!(ran.read_as_float, 2.0 * 224_656_864.0);
    assert_eq!(ran.written_as_float, 2.0 * 236_050_000.0);
    assert!(is_empty(base.path()));
}

#[test]
fn it_ends_where_no_file_is_left() {
    let base = tempfile::tempdir().unwrap();
    let plan = PostMarkPlan {
        transactions: 5000,
        bias_read: None,
        bias_create: Some(3),
        seed: 7,
        ..defaults(base.path())
    };
    let (ran, notices) = run(&plan);
    assert!(ran.out_of_files);
    let said = |wanted| notices.iter().filter(|said| **said == wanted).count();
    assert_eq!(
        (
            said(PostMarkProgress::Tenth),
            said(PostMarkProgress::OutOfFiles)
        ),
        (3, 1)
    );
    let [alone, mixed, read, appended, deleted, left] = counts(&ran);
    assert_eq!((alone + mixed, read, appended, left), (deleted, 0, 0, 0));
}

/// The weights of locations decide; a durable end is one flush per stretch and location.
#[test]
fn locations_are_chosen_by_weight_and_flushed_if_asked() {
    let base = tempfile::tempdir().unwrap();
    let location = |(name, weight)| {
        let path = base.path().join(name);
        std::fs::create_dir(&path).unwrap();
        PostMarkLocation { path, weight }
    };
    let plan = PostMarkPlan {
        locations: [("a", 3), ("b", 1)].map(location).to_vec(),
        files: 400,
        transactions: 20,
        at_end: AtEnd::Durable,
        ..defaults(base.path())
    };
    let mut in_a = 0;
    let mut notice = |said| {
        if said == PostMarkProgress::Transacting {
            in_a = std::fs::read_dir(base.path().join("a")).unwrap().count();
        }
    };
    let ran = plan
        .run(SLICE_NS, &Control::default(), &mut notice)
        .unwrap();
    assert!(
        (270..330).contains(&in_a),
        "{in_a} of 400 in three quarters"
    );
    let flushed = ran.outcome.ops.iter().find(|kind| kind.op == Op::Fsync);
    assert_eq!(flushed.unwrap().count, 6);
}

#[test]
fn what_is_in_the_way_is_not_overwritten() {
    let base = tempfile::tempdir().unwrap();
    let way = base.path().join("3");
    std::fs::write(&way, "mine").unwrap();
    let (ran, _) = run(&defaults(base.path()));
    assert_eq!(ran.outcome.ended, PhaseEnd::Failed);
    let error = ran.outcome.error.unwrap();
    assert_eq!((error.op, &error.path), (Op::Create, &way));
    assert_eq!(std::fs::read(&way).unwrap(), b"mine");
}

#[test]
fn a_stop_is_obeyed() {
    let base = tempfile::tempdir().unwrap();
    let control = Control::default();
    let mut notice = |said| {
        let stop = said == PostMarkProgress::Transacting;
        control
            .stop
            .store(stop, std::sync::atomic::Ordering::Relaxed);
    };
    let ran = defaults(base.path())
        .run(SLICE_NS, &control, &mut notice)
        .unwrap();
    assert_eq!(ran.outcome.ended, PhaseEnd::Stopped);
    assert_eq!(ran.outcome.stretches.len(), 1);
}

#[test]
fn a_plan_that_makes_no_sense_touches_nothing() {
    let base = tempfile::tempdir().unwrap();
    let plan = defaults(base.path());
    for wrong in [
        PostMarkPlan {
            locations: Vec::new(),
            ..plan.clone()
        },
        PostMarkPlan {
            files: 0,
            ..plan.clone()
        },
        PostMarkPlan {
            size_low: 20_000,
            ..plan.clone()
        },
        PostMarkPlan {
            read_block: 0,
            ..plan.clone()
        },
    ] {
        wrong
            .run(SLICE_NS, &Control::default(), &mut |_| ())
            .unwrap_err();
    }
    assert!(is_empty(base.path()));
}
