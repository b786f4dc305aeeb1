//! Every idiom does what it notes, and notes what it does.

use super::content::SectorFound;
use super::*;
use crate::content::SECTOR;
use crate::outcome::PhaseEnd;

const IDIOMS: [Idiom; 9] = [
    Idiom::OverwriteFsync,
    Idiom::OverwriteDsync,
    Idiom::AppendFdatasync,
    Idiom::AppendPlain,
    Idiom::Replace,
    Idiom::ReplaceNoDirectorySync,
    Idiom::Create,
    Idiom::CreateNoDirectorySync,
    Idiom::MailQueue,
];

fn plan(root: &std::path::Path, idiom: Idiom) -> PromisesPlan {
    PromisesPlan {
        root: root.to_owned(),
        idiom,
        operations: 23,
        threads: 2,
        bytes: 1024,
        objects: 5,
        at_rest: 3,
        think_time_ns: 0,
        seed: 7,
    }
}

/// The newest record of each place, and what is found there, agree.
#[test]
fn what_is_noted_last_is_what_lies_there() {
    for idiom in IDIOMS {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(root.path(), idiom);
        let mut all = plan.lay_out().unwrap();
        let control = Control::default();
        let done = plan.run(100_000_000, &control, None).unwrap();
        assert_eq!(
            done.ended,
            PhaseEnd::Complete,
            "{idiom:?}: {:?}",
            done.error
        );
        let promised = done
            .promised
            .iter()
            .filter(|record| record.op == idiom.op());
        assert_eq!(promised.count(), 23, "{idiom:?}");
        assert!(done.promised.is_sorted_by_key(|record| record.begun_ns));
        all.extend(done.promised);
        // Later records of a place take the place of earlier ones.
        let mut sectors = std::collections::HashMap::new();
        for record in &all {
            assert!(record.acknowledged_ns.unwrap() >= record.begun_ns);
            if record.op == Op::Unlink {
                sectors.retain(|(object, _), _| *object != record.object);
            }
            for offset in (record.offset..record.offset + record.bytes).step_by(SECTOR) {
                sectors.insert((record.object.clone(), offset), record.generation);
            }
        }
        for ((object, offset), generation) in sectors {
            let bytes = std::fs::read(root.path().join(&object)).unwrap();
            let at = offset as usize;
            let mark = PromisedContent::mark(7, &object);
            let expected = SectorFound::Content {
                mark,
                offset,
                generation,
            };
            let found = SectorFound::of(&bytes[at..at + SECTOR]);
            assert_eq!(found, expected, "{idiom:?}: {object} at {offset}");
        }
    }
}

#[test]
fn the_same_seed_does_the_same_operations() {
    let run = || {
        let root = tempfile::tempdir().unwrap();
        let mut plan = plan(root.path(), Idiom::Replace);
        plan.threads = 1;
        plan.lay_out().unwrap();
        let records = plan
            .run(100_000_000, &Control::default(), None)
            .unwrap()
            .promised;
        let what = |record: PromiseRecord| (record.object, record.offset, record.generation);
        records.into_iter().map(what).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn an_operation_that_fails_is_noted_without_an_acknowledgement() {
    let root = tempfile::tempdir().unwrap();
    let mut plan = plan(root.path(), Idiom::Create);
    plan.threads = 1;
    plan.lay_out().unwrap();
    // In the way of the third file.
    std::fs::write(root.path().join("files/0-2"), "").unwrap();
    let done = plan.run(100_000_000, &Control::default(), None).unwrap();
    assert_eq!(done.ended, PhaseEnd::Failed);
    let acknowledged: Vec<bool> = done
        .promised
        .iter()
        .map(|record| record.acknowledged_ns.is_some())
        .collect();
    assert_eq!(acknowledged, [true, true, false]);
}

#[test]
fn a_database_that_refuses_ends_the_phase_with_its_words() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan(root.path(), Idiom::OverwriteFsync);
    let mut commits = 0;
    let mut commit = |_: u32, _: &[u8]| {
        commits += 1;
        match commits {
            3 => Err(CommitError {
                said: "database or disk is full".to_owned(),
                errno: Errno::NOSPC.raw_os_error(),
            }),
            _ => Ok(()),
        }
    };
    let name = |row| format!("db#{row}");
    let done = plan
        .run_transactions(100_000_000, &Control::default(), name, &mut commit, None)
        .unwrap();
    assert_eq!(done.promised.len(), 3);
    assert_eq!(done.promised[2].acknowledged_ns, None);
    let plan = PromisesPlan {
        idiom: Idiom::Database,
        ..plan
    };
    for (done, planned) in done.promised.iter().zip(plan.planned(name)) {
        assert_eq!(
            (&done.object, done.generation),
            (&planned.object, planned.generation)
        );
    }
    let error = done.error.unwrap();
    assert_eq!(error.errno, 28);
    let error = error.to_string();
    assert!(error.ends_with("database or disk is full"), "{error}");
}

#[test]
fn plans_that_make_no_sense_are_refused_before_anything_is_made() {
    let root = tempfile::tempdir().unwrap();
    let good = plan(root.path(), Idiom::Create);
    for (change, words) in [
        (
            (|plan| plan.bytes = 100) as fn(&mut PromisesPlan),
            "whole sectors",
        ),
        (|plan| plan.bytes = 0, "whole sectors"),
        (|plan| plan.bytes = 2 << 20, "at most 1 MiB"),
        (|plan| plan.operations = 0, "0 operations"),
        (|plan| plan.operations = 1_000_001, "must be 1 to 1000000"),
        (|plan| plan.threads = 0, "at least 1"),
        (|plan| plan.objects = 0, "at least 1"),
    ] {
        let mut wrong = good.clone();
        change(&mut wrong);
        let error = wrong.lay_out().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}

/// Counts what it is told, by thread.
#[derive(Default)]
struct Told(std::sync::Mutex<Vec<PromiseRecord>>);

impl Acknowledged for Told {
    fn begins(&self, _thread: u32) {}
    fn ended(&self, record: &PromiseRecord) {
        self.0.lock().unwrap().push(record.clone());
    }
}

/// Another machine that has the plan and hears of each operation has the ledger.
#[test]
fn each_thread_does_what_was_planned_and_tells_it_in_that_order() {
    for idiom in IDIOMS {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(root.path(), idiom);
        plan.lay_out().unwrap();
        let planned = plan.planned(|row| row.to_string());
        let told = Told::default();
        let control = Control::default();
        plan.run(100_000_000, &control, Some(&told)).unwrap();
        let told = told.0.into_inner().unwrap();
        for thread in 0..plan.threads {
            let of = |records: &[PromiseRecord]| -> Vec<(Op, String, u64, u64, u32)> {
                let here = records.iter().filter(|record| record.worker == thread);
                here.map(|r| (r.op, r.object.clone(), r.offset, r.bytes, r.generation))
                    .collect()
            };
            assert_eq!(of(&told), of(&planned), "{idiom:?}");
            assert!(!of(&planned).is_empty());
        }
    }
}
