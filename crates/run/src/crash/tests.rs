//! Planted damage is named, and nothing else is.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use stackrace_engine::promises::content::PromisedContent;
use stackrace_engine::{Control, PhaseEnd};

use super::judge::judge;
use super::look::{Seen, of_rows};
use super::{Remains, check_nothing};
use stackrace_base::event::{CheckedPromises, LedgerLine, Loss, OperationKind, Promise, Promised};
use stackrace_load::programs::written;
use stackrace_load::workload::Place;
use stackrace_load::workload::promises::database::DatabaseKind;

const IDIOMS: [&str; 9] = [
    "overwrite-fsync",
    "overwrite-dsync",
    "append-fdatasync",
    "replace",
    "replace-no-dirsync",
    "create",
    "create-no-dirsync",
    "mail-queue",
    "append",
];

/// Checks what is in a directory, as after a cut.
fn check(directory: &Path, promised: &Promised, at_ns: u64) -> CheckedPromises {
    let remains = Remains::open(directory, promised, None);
    let checked = remains.check(at_ns);
    remains.close().unwrap();
    checked
}

/// Runs a workload of promises in a directory; its ledger.
fn promised(directory: &Path, settings: &str, seed: u64) -> Promised {
    let workload = written::workload(&format!("promises = {{ {settings} }}"))
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    let (control, ledger) = (Control::default(), OnceLock::new());
    let place = Place::alone(directory, seed, &ledger, &control);
    workload.prepare(&place).unwrap();
    let outcome = workload.measure(0, &place).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    Promised {
        round: 1,
        configuration: 0,
        workload: 0,
        seed,
        directory: directory.display().to_string(),
        lines: workload.promised(&place, &outcome),
    }
}

fn small(idiom: &str) -> String {
    format!(
        "idiom = \"{idiom}\", operations = 30, objects = 6, at-rest = 2, block-size = \"2 KiB\", threads = 2"
    )
}

/// Lines that are the newest of their place, and whose file is there.
fn newest(promised: &Promised) -> Vec<&LedgerLine> {
    let mut taken = HashSet::new();
    let mut lines: Vec<&LedgerLine> = Vec::new();
    for line in promised.lines.iter().rev() {
        // From the end: what was written last is what lies there.
        let first = taken.insert((line.object.as_str(), line.offset));
        let of_file = line.kind != OperationKind::AtRest || line.object.starts_with("at-rest");
        if first && of_file && line.kind != OperationKind::Remove {
            lines.push(line);
        }
    }
    lines.reverse();
    lines
}

/// Damage that can be done to an operation, and what it must be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Zeros in all of it.
    Zeroed,
    /// The file is gone.
    Removed,
    /// Zeros in one of its sectors.
    HalfZeroed,
    /// One bit of the operation is another.
    Flipped,
    /// An older generation lies there.
    Old,
    /// Content of another place lies there.
    Copied,
    /// Its content and that of another place have changed places.
    Exchanged,
}

const DAMAGES: [Damage; 7] = [
    Damage::Zeroed,
    Damage::Removed,
    Damage::HalfZeroed,
    Damage::Flipped,
    Damage::Old,
    Damage::Copied,
    Damage::Exchanged,
];

impl Damage {
    fn word(self) -> Loss {
        match self {
            Self::Zeroed | Self::Removed => Loss::Lost,
            Self::HalfZeroed | Self::Flipped => Loss::Torn,
            Self::Old => Loss::Stale,
            Self::Copied => Loss::Misplaced,
            Self::Exchanged => Loss::Swapped,
        }
    }

    /// Plants it in one operation's content; whether that is possible here.
    fn plant(self, directory: &Path, seed: u64, line: &LedgerLine, other: &LedgerLine) -> bool {
        let open = |line: &LedgerLine| {
            let path = directory.join(&line.object);
            let file = std::fs::File::options().read(true).write(true).open(path);
            file.unwrap()
        };
        let read = |line: &LedgerLine| {
            let mut bytes = vec![0; line.bytes as usize];
            open(line).read_exact_at(&mut bytes, line.offset).unwrap();
            bytes
        };
        let write = |line: &LedgerLine, bytes: &[u8]| {
            open(line).write_all_at(bytes, line.offset).unwrap();
        };
        // Through the file system, as an administrator would find it.
        let mut bytes = read(line);
        match self {
            Self::Zeroed => bytes.fill(0),
            Self::Removed => {
                std::fs::remove_file(directory.join(&line.object)).unwrap();
                return true;
            }
            Self::HalfZeroed => bytes[512..1024].fill(0),
            Self::Flipped => bytes[777] ^= 4,
            Self::Old => {
                if line.generation == 1 {
                    return false;
                }
                let content = PromisedContent::new(seed);
                content.fill(&mut bytes, &line.object, line.offset, line.generation - 1);
            }
            Self::Copied | Self::Exchanged => {
                if (&line.object, line.offset) == (&other.object, other.offset)
                    || line.bytes != other.bytes
                {
                    return false;
                }
                let theirs = read(other);
                if self == Self::Exchanged {
                    write(other, &bytes);
                }
                bytes = theirs;
            }
        }
        write(line, &bytes);
        true
    }
}

#[test]
fn what_nothing_happened_to_is_never_called_lost() {
    // A program built without SQLite refuses that idiom.
    let database: &[&str] = if cfg!(feature = "sqlite") {
        &["sqlite"]
    } else {
        &[]
    };
    for idiom in IDIOMS.iter().chain(database) {
        let directory = tempfile::tempdir().unwrap();
        let threads = if *idiom == "sqlite" {
            ", threads = 1"
        } else {
            ""
        };
        let settings = small(idiom).replace(", threads = 2", threads);
        let promised = promised(directory.path(), &settings, 5);
        // A cut long after the end: everything was acknowledged.
        let checked = check(directory.path(), &promised, u64::MAX);
        assert_eq!(checked.counts.all(), 0, "{idiom}: {:?}", checked.losses);
        assert_eq!(checked.unpromised_lost, 0, "{idiom}");
        let expected = if *idiom == "append" { 0 } else { 30 };
        assert_eq!(checked.promised, expected, "{idiom}");
    }
}

/// Each kind of damage, in each idiom: the operation is named, and in the right word.
#[test]
fn planted_damage_is_named_every_time() {
    let mut planted = 0;
    for idiom in &IDIOMS[..8] {
        for damage in DAMAGES {
            for which in [0, 7, 13] {
                let directory = tempfile::tempdir().unwrap();
                let seed = 11 + which as u64;
                let promised = promised(directory.path(), &small(idiom), seed);
                let lines = newest(&promised);
                let operations = lines
                    .iter()
                    .filter(|line| line.kind != OperationKind::AtRest);
                let operations: Vec<_> = operations.collect();
                let line = operations[which % operations.len()];
                let other = operations[(which + 1) % operations.len()];
                if !damage.plant(directory.path(), seed, line, other) {
                    continue;
                }
                // Counted, so that a test that plants nothing fails.
                planted += 1;
                let checked = check(directory.path(), &promised, u64::MAX);
                let why = format!("{idiom}, {damage:?}: {:?}", checked.losses);
                let found = checked.losses.iter().find(|loss| loss.ledger == **line);
                // Names and whole older files are not promised by all idioms.
                let excused = matches!(
                    (line.kind, line.promise, damage),
                    (OperationKind::Create, Promise::Fsync, Damage::Removed)
                        | (_, Promise::Rename, Damage::Old)
                );
                match excused {
                    true => assert_eq!((found, checked.unpromised_lost > 0), (None, true), "{why}"),
                    false => assert_eq!(found.map(|loss| loss.loss), Some(damage.word()), "{why}"),
                }
            }
        }
    }
    assert!(planted > 120, "only {planted} were planted");
}

#[test]
fn damage_to_data_at_rest_is_collateral_and_costs_no_operation() {
    for damage in [
        Damage::Zeroed,
        Damage::Removed,
        Damage::Flipped,
        Damage::HalfZeroed,
    ] {
        let directory = tempfile::tempdir().unwrap();
        let promised = promised(directory.path(), &small("append-fdatasync"), 3);
        let rest = &promised.lines[1];
        assert_eq!(rest.object, "at-rest/1");
        assert!(damage.plant(directory.path(), 3, rest, rest));
        let checked = check(directory.path(), &promised, u64::MAX);
        assert_eq!((checked.counts.collateral, checked.counts.all()), (1, 1));
        assert_eq!((checked.rpo_operations, checked.rpo_ns), (0, 0));
    }
}

#[test]
fn a_log_cut_short_loses_its_end_and_says_how_much_work_that_is() {
    let directory = tempfile::tempdir().unwrap();
    let settings = small("append-fdatasync").replace("threads = 2", "threads = 1");
    let promised = promised(directory.path(), &settings, 3);
    let file = std::fs::File::options()
        .write(true)
        .open(directory.path().join("log-0"))
        .unwrap();
    // One sector of the 26th record is left.
    file.set_len(25 * 2048 + 512).unwrap();
    let last = promised.lines.last().unwrap();
    let at_ns = last.acknowledged_ns.unwrap() + 5_000;
    let checked = check(directory.path(), &promised, at_ns);
    assert_eq!((checked.counts.torn, checked.counts.lost), (1, 4));
    assert_eq!(checked.counts.reordered, 0, "nothing after them survived");
    let first = checked.losses[0].ledger.acknowledged_ns.unwrap();
    assert_eq!((checked.rpo_operations, checked.rpo_ns), (5, at_ns - first));
    // A cut before they were acknowledged had promised none of them.
    let earlier = check(directory.path(), &promised, first - 1);
    assert_eq!((earlier.counts.all(), earlier.promised), (0, 25));
}

#[test]
fn a_later_operation_that_survived_makes_a_loss_reordered() {
    let directory = tempfile::tempdir().unwrap();
    let promised = promised(directory.path(), &small("create"), 3);
    // Two files at rest come first, so this is the ninth operation.
    let lost = &promised.lines[10];
    std::fs::remove_file(directory.path().join(&lost.object)).unwrap();
    let checked = check(directory.path(), &promised, u64::MAX);
    assert_eq!((checked.counts.lost, checked.counts.reordered), (1, 1));
    assert_eq!(checked.losses[0].found, "it is not there");
}

/// An overwrite in flight may be old, new, or in between; what was promised before it may not be
/// missing.
#[test]
fn an_overwrite_in_flight_is_no_loss() {
    let directory = tempfile::tempdir().unwrap();
    let promised = promised(directory.path(), &small("overwrite-fsync"), 3);
    let last = promised.lines.last().unwrap().clone();
    // It was begun, and is not acknowledged yet.
    let during = last.begun_ns;
    assert!(Damage::Flipped.plant(directory.path(), 3, &last, &last));
    let flipped = check(directory.path(), &promised, during);
    assert_eq!(flipped.counts.all(), 0, "{:?}", flipped.losses);
    assert!(Damage::Zeroed.plant(directory.path(), 3, &last, &last));
    // Zeros are neither the old nor the new.
    let zeroed = check(directory.path(), &promised, during);
    assert_eq!(zeroed.counts.all(), 1, "{:?}", zeroed.losses);
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_that_lost_its_last_commits_or_all_of_its_file_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let settings = "idiom = \"sqlite\", operations = 20, objects = 4";
    let first = promised(directory.path(), settings, 3);
    let path = directory.path().join("data.db");
    // The database as it was before: all rows in their first generation.
    let fresh = tempfile::tempdir().unwrap();
    let again = promised(fresh.path(), &settings.replace("20", "1"), 3);
    assert_eq!(again.lines.len(), first.lines.len() - 19);
    std::fs::copy(fresh.path().join("data.db"), &path).unwrap();
    let stale = check(directory.path(), &first, u64::MAX);
    assert!(stale.counts.stale >= 16, "{:?}", stale.counts);
    assert_eq!(stale.counts.all(), stale.counts.stale);
    // Cut off in the middle.
    let bytes = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(bytes / 2).unwrap();
    let torn = check(directory.path(), &first, u64::MAX);
    assert!(torn.counts.torn > 0, "{:?}", torn.counts);
    assert!(
        torn.losses
            .iter()
            .any(|loss| loss.found.starts_with("SQLite: "))
    );
    std::fs::remove_file(&path).unwrap();
    let lost = check(directory.path(), &first, u64::MAX);
    assert!(
        lost.counts.lost > 0 && lost.counts.torn == 0,
        "{:?}",
        lost.counts
    );
    assert!(!path.exists(), "looking for it made it");
}

/// A ledger of transactions on three rows of PostgreSQL, all of which end in their third generation.
fn of_postgresql() -> Promised {
    let row = DatabaseKind::Postgresql;
    let lines = (0..9).map(|number: u32| LedgerLine {
        number: number.into(),
        worker: 0,
        kind: match number {
            0..3 => OperationKind::AtRest,
            _ => OperationKind::Transaction,
        },
        object: row.object(number % 3),
        offset: 0,
        bytes: 1024,
        generation: number / 3 + 1,
        promise: Promise::Commit,
        begun_ns: u64::from(number) * 10,
        acknowledged_ns: Some(u64::from(number) * 10 + 5),
    });
    Promised {
        round: 1,
        configuration: 0,
        workload: 0,
        seed: 7,
        directory: "/nowhere".to_owned(),
        lines: lines.collect(),
    }
}

#[test]
fn rows_of_a_database_are_judged_as_files_are() {
    let promised = of_postgresql();
    let kind = DatabaseKind::Postgresql;
    let content = |row: u32, generation: u32| {
        let mut bytes = vec![0; 1024];
        PromisedContent::new(7).fill(&mut bytes, &kind.object(row), 0, generation);
        bytes
    };
    let whole = || (0..3).map(|row| (row, content(row, 3))).collect::<Vec<_>>();
    let judged = |rows: Result<Vec<(u32, Vec<u8>)>, String>| {
        let seen = Seen::new(of_rows(&promised, kind, rows, true));
        judge(&promised, &seen, u64::MAX)
    };
    assert_eq!(judged(Ok(whole())).counts.all(), 0);
    let with_first = |bytes: Option<Vec<u8>>| {
        let mut rows = whole();
        match bytes {
            Some(bytes) => rows[0].1 = bytes,
            None => drop(rows.remove(0)),
        }
        judged(Ok(rows)).counts
    };
    let torn = [&content(0, 3)[..512], &content(0, 2)[512..]].concat();
    assert_eq!(with_first(Some(content(0, 2))).stale, 1);
    assert_eq!(with_first(Some(torn)).torn, 1);
    assert_eq!(with_first(Some(content(1, 3))).misplaced, 1);
    assert_eq!(with_first(None).lost, 1);
    // A server that does not start has nothing to show, in its own words.
    let refused = judged(Err(
        "it does not start; the end of its log: PANIC".to_owned()
    ));
    assert_eq!(refused.counts.all(), 3);
    let said = "PostgreSQL: it does not start; the end of its log: PANIC";
    assert!(refused.losses.iter().all(|loss| loss.found == said));
}

#[test]
fn a_cluster_of_which_nothing_is_left_is_lost_and_no_server_is_started() {
    let directory = tempfile::tempdir().unwrap();
    let promised = of_postgresql();
    let remains = Remains::open(directory.path(), &promised, None);
    assert_eq!(remains.refused(), None);
    assert_eq!(remains.check(u64::MAX).counts.lost, 3);
    remains.close().unwrap();
}

#[test]
fn a_file_system_that_cannot_be_mounted_keeps_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let promised = promised(directory.path(), &small("create"), 3);
    let checked = check_nothing(&promised, u64::MAX);
    assert_eq!(checked.rpo_operations, 30);
    assert_eq!(checked.counts.collateral, 2);
    let why = "the file system could not be mounted";
    assert!(checked.losses.iter().all(|loss| loss.found == why));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever lies there, and whenever the power went: numbers agree with each other.
    #[test]
    fn any_damage_at_any_instant_is_counted_consistently(
        idiom in 0..IDIOMS.len(),
        damages in proptest::collection::vec((0..DAMAGES.len(), 0..40usize, 0..40usize), 0..6),
        share in 0.0..1.1f64,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let promised = promised(directory.path(), &small(IDIOMS[idiom]), 9);
        let lines = newest(&promised);
        for (damage, line, other) in damages {
            let (line, other) = (lines[line % lines.len()], lines[other % lines.len()]);
            let there = |line: &LedgerLine| {
                std::fs::metadata(directory.path().join(&line.object))
                    .is_ok_and(|about| about.len() >= line.offset + line.bytes)
            };
            // Damage before may have removed them.
            if there(line) && there(other) {
                DAMAGES[damage].plant(directory.path(), 9, line, other);
            }
        }
        let begun = promised.lines.iter().map(|line| line.begun_ns);
        let (first, last) = (begun.clone().find(|ns| *ns > 0).unwrap(), begun.max().unwrap());
        let at_ns = first + ((last - first) as f64 * share) as u64;
        let checked = check(directory.path(), &promised, at_ns);
        prop_assert_eq!(checked.losses.len() as u64, checked.counts.all().min(100));
        prop_assert_eq!(
            checked.rpo_operations + checked.counts.collateral
                + checked.losses.iter().filter(|loss| {
                    loss.ledger.kind == OperationKind::AtRest && loss.loss != Loss::Collateral
                }).count() as u64,
            checked.counts.all()
        );
        prop_assert!(checked.rpo_operations <= checked.promised);
        prop_assert!(checked.rpo_ns <= at_ns);
        for loss in &checked.losses {
            prop_assert!(loss.ledger.acknowledged_ns.unwrap() <= at_ns);
            prop_assert!(loss.ledger.promise != Promise::None);
        }
        prop_assert_eq!(check(directory.path(), &promised, at_ns), checked);
    }
}

#[test]
fn what_the_check_does_not_find_was_lost_and_nothing_else() {
    let at = tempfile::tempdir().unwrap();
    let own = written::workload("command-promises = { run = \"for i in $(seq 100); do echo $i >> log; echo done $i; sleep 0.05; done; sleep 100\", acknowledged = \"done ([0-9]+)\", check = \"cat log\", found = \"^([0-9]+)$\", operations = 5 }").unwrap();
    let (ledger, control) = (OnceLock::new(), Control::default());
    let place = Place::alone(at.path(), 7, &ledger, &control);
    let outcome = own.measure(0, &place).unwrap();
    let lines = own.promised(&place, &outcome);
    assert_eq!(lines.len(), 5);
    assert!(own.evaluate(&[outcome])[0].is_some());
    let last_ns = lines[4].acknowledged_ns.unwrap();
    let promised = Promised {
        round: 1,
        configuration: 0,
        workload: 0,
        seed: 7,
        directory: String::new(),
        lines,
    };
    let lost = |at_ns: u64| {
        let found = own.found_after_cut(at.path()).unwrap();
        let checked = Remains::open(at.path(), &promised, found).check(at_ns);
        checked.losses.len()
    };
    assert_eq!(lost(last_ns), 0);
    // As a cut would leave it: two of five operations are gone.
    std::fs::write(at.path().join("log"), "1\n2\n3\n").unwrap();
    assert_eq!(lost(last_ns), 2);
    // A cut before they were acknowledged had promised none of them.
    let third_ns = promised.lines[2].acknowledged_ns.unwrap();
    assert_eq!(lost(third_ns), 0);
    // A check that fails says that all is damaged.
    std::fs::remove_file(at.path().join("log")).unwrap();
    assert_eq!(lost(last_ns), 5);
}
