//! Sets of files on real file systems: each file made, found, read and removed exactly once.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::fixtures::{counts, plain, set};
use crate::outcome::PhaseEnd;

#[path = "files_failure_tests.rs"]
mod failures;

fn by_one_thread(root: &Path) -> FileSet {
    FileSet {
        threads: 1,
        ..set(root)
    }
}

fn random(control: &Control) -> Pass<'_> {
    Pass {
        order: VisitOrder::Random,
        ..plain(control)
    }
}

fn durable(control: &Control) -> Pass<'_> {
    Pass {
        at_end: AtEnd::Durable,
        ..plain(control)
    }
}

#[test]
fn every_file_is_made_found_read_and_removed_exactly_once() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let set = set(home.path());
    let control = Control::default();
    let total = set.total_bytes();
    set.prepare().unwrap();

    let made = set.create(durable(&control)).unwrap();
    assert_eq!(made.ended, PhaseEnd::Complete, "{:?}", made.error);
    assert_eq!(counts(&made), [(Op::Fsync, 1, 0), (Op::Create, 500, total)]);
    let mut on_disk = HashSet::new();
    for (index, path) in set.paths().enumerate() {
        assert_eq!(
            path.metadata().unwrap().len(),
            set.size(index as u64),
            "{}",
            path.display()
        );
        on_disk.insert(path);
    }
    assert_eq!(on_disk.len(), 500);
    for directory in set.directory_paths() {
        for entry in std::fs::read_dir(directory).unwrap() {
            assert!(on_disk.remove(&entry.unwrap().path()), "an unexpected file");
        }
    }
    assert!(on_disk.is_empty());

    let seen = set.stat(random(&control)).unwrap();
    assert_eq!(counts(&seen), [(Op::Stat, 500, 0)]);
    let read = set.read(random(&control)).unwrap();
    assert_eq!(counts(&read), [(Op::Open, 500, total)]);
    let gone = set.unlink(plain(&control)).unwrap();
    assert_eq!(counts(&gone), [(Op::Unlink, 500, 0)]);
    assert_eq!(
        control.ops.load(Ordering::Relaxed),
        2001,
        "four phases and one fsync"
    );
    assert_eq!(control.bytes.load(Ordering::Relaxed), 2 * total);

    assert_eq!(ran(&set, FileSet::rmdir, plain(&control)), 3);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn the_same_seed_writes_the_same_bytes_with_any_number_of_threads() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = FileSet {
        threads: 1,
        size_max: 400_000,
        files: 60,
        ..set(one.path())
    }
    .keep(one);
    let two = FileSet {
        threads: 3,
        size_max: 400_000,
        files: 60,
        ..set(two.path())
    }
    .keep(two);
    for (set, _home) in [&one, &two] {
        set.prepare().unwrap();
        set.create(plain(&Control::default())).unwrap();
    }
    let mut whole = HashSet::new();
    for (left, right) in one.0.paths().zip(two.0.paths()) {
        assert_eq!(left.file_name(), right.file_name());
        let bytes = std::fs::read(left).unwrap();
        assert_eq!(bytes, std::fs::read(right).unwrap());
        whole.insert(bytes);
    }
    assert!(
        whole.len() > 55,
        "files differ from each other unless they are tiny"
    );
}

impl FileSet {
    fn keep(self, home: tempfile::TempDir) -> (FileSet, tempfile::TempDir) {
        (self, home)
    }
}

#[test]
fn more_directories_than_descriptors_work_alike() {
    let home = tempfile::tempdir().unwrap();
    let set = FileSet {
        directories: 700,
        files: 1500,
        size_max: 0,
        ..set(home.path())
    };
    set.prepare().unwrap();
    let control = Control::default();
    let made = set.create(plain(&control)).unwrap();
    assert_eq!(counts(&made), [(Op::Create, 1500, 0)]);
    assert!(set.paths().all(|path| path.is_file()));
    let gone = set.unlink(random(&control)).unwrap();
    assert_eq!(counts(&gone), [(Op::Unlink, 1500, 0)]);
    assert_eq!(ran(&set, FileSet::rmdir, plain(&control)), 700);
}

#[test]
fn a_missing_directory_is_named() {
    let set = set(Path::new("/nowhere/at/all"));
    for error in [
        set.prepare().unwrap_err(),
        set.create(plain(&Control::default())).unwrap_err(),
    ] {
        assert!(
            error
                .to_string()
                .contains("/nowhere/at/all failed: No such file"),
            "{error}"
        );
    }
    let home = tempfile::tempdir().unwrap();
    let set = FileSet {
        root: home.path().to_path_buf(),
        ..set
    };
    let error = set.stat(plain(&Control::default())).unwrap_err();
    assert_eq!(error.path, home.path().join("d000000"));
}

#[test]
fn a_set_that_makes_no_sense_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let good = set(home.path());
    for bad in [
        FileSet {
            directories: 0,
            ..good.clone()
        },
        FileSet {
            directories: DIRECTORIES_MAX + 1,
            ..good.clone()
        },
        FileSet {
            files: 0,
            ..good.clone()
        },
        FileSet {
            threads: 0,
            ..good.clone()
        },
        FileSet {
            size_min: 30_000,
            ..good.clone()
        },
    ] {
        assert_eq!(
            bad.prepare().unwrap_err().errno,
            Errno::INVAL.raw_os_error()
        );
    }
}

#[test]
fn a_failing_operation_ends_the_phase_and_keeps_what_was_measured() {
    let home = tempfile::tempdir().unwrap();
    let set = by_one_thread(home.path());
    let control = Control::default();
    set.prepare().unwrap();
    set.create(plain(&control)).unwrap();
    let victim = set.path(100, NameKind::Made);
    std::fs::remove_file(&victim).unwrap();
    let seen = set.stat(plain(&control)).unwrap();
    assert_eq!(seen.ended, PhaseEnd::Failed);
    assert_eq!(counts(&seen), [(Op::Stat, 100, 0)]);
    let error = seen.error.unwrap();
    assert_eq!(
        (error.path, error.errno),
        (victim, Errno::NOENT.raw_os_error())
    );

    std::fs::write(set.path(100, NameKind::Made), b"x").unwrap();
    let read = set.read(plain(&control)).unwrap();
    let error = read.error.unwrap();
    assert!(error.detail.contains("holds 1 bytes"), "{error}");
    let again = set.create(durable(&control)).unwrap();
    assert_eq!(again.error.unwrap().errno, Errno::EXIST.raw_os_error());
    assert!(again.ops.is_empty(), "no flush after a failure");
}

#[test]
fn stop_ends_a_phase_before_its_first_operation() {
    let home = tempfile::tempdir().unwrap();
    let set = set(home.path());
    set.prepare().unwrap();
    let control = Control::default();
    control.stop.store(true, Ordering::Relaxed);
    let made = set.create(durable(&control)).unwrap();
    assert_eq!(made.ended, PhaseEnd::Stopped);
    assert!(made.ops.is_empty());
}

type Run = fn(&FileSet, Pass<'_>) -> Result<PhaseOutcome, OpError>;

/// Runs a phase that must succeed, and gives back how often it did its one operation.
fn ran(set: &FileSet, run: Run, pass: Pass<'_>) -> u64 {
    let outcome = run(set, pass).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    let [(_, count, 0)] = counts(&outcome)[..] else {
        panic!("{:?}", counts(&outcome));
    };
    assert_eq!(outcome.ops[0].latency.len(), count);
    count
}

/// Runs a phase that must fail, and gives back its error.
fn failed(set: &FileSet, run: Run, pass: Pass<'_>) -> OpError {
    let outcome = run(set, pass).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Failed);
    outcome.error.unwrap()
}

/// All names below the root, and how many links each has.
fn on_disk(root: &Path) -> HashMap<PathBuf, u64> {
    let mut found = HashMap::new();
    for home in std::fs::read_dir(root).unwrap() {
        for entry in std::fs::read_dir(home.unwrap().path()).unwrap() {
            let entry = entry.unwrap();
            found.insert(entry.path(), entry.metadata().unwrap().nlink());
        }
    }
    found
}

#[test]
fn every_phase_does_its_work_on_each_file_or_directory_once() {
    use RenameTo::{NextDirectory, SameDirectory};
    // One thread and several; directories with descriptors of their own and without.
    let cases = [
        (VisitOrder::Creation, SameDirectory, 1, 3),
        (VisitOrder::Random, NextDirectory, 4, 3),
        (VisitOrder::Random, NextDirectory, 3, DESCRIPTORS_MAX + 1),
    ];
    for (order, rename_to, threads, directories) in cases {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let control = Control::default();
        let pass = Pass {
            order,
            ..plain(&control)
        };
        let mut set = FileSet {
            threads,
            directories,
            size_max: 0,
            files: 700,
            ..set(home.path())
        };
        set.names.rename_to = rename_to;
        let all = u64::from(directories);
        assert_eq!(ran(&set, FileSet::mkdir, pass), all);
        assert_eq!(ran(&set, FileSet::create, pass), 700);
        assert_eq!(ran(&set, FileSet::readdir, pass), all);
        assert_eq!(ran(&set, FileSet::open_close, pass), 700);
        let made: HashSet<PathBuf> = set.paths().collect();

        assert_eq!(ran(&set, FileSet::rename, pass), 700);
        set.names.renamed = true;
        let renamed: HashSet<PathBuf> = set.paths().collect();
        assert!(made.is_disjoint(&renamed));
        assert_eq!(
            on_disk(home.path()).into_keys().collect::<HashSet<_>>(),
            renamed
        );
        for run in [FileSet::stat as Run, FileSet::open_close, FileSet::read] {
            assert_eq!(ran(&set, run, pass), 700);
        }
        assert_eq!(ran(&set, FileSet::readdir, pass), all);

        assert_eq!(ran(&set, FileSet::link, pass), 700);
        set.names.linked = true;
        let linked = on_disk(home.path());
        assert_eq!(linked.len(), 1400);
        assert!(linked.values().all(|links| *links == 2));
        assert_eq!(ran(&set, FileSet::readdir, pass), all);

        assert_eq!(ran(&set, FileSet::unlink, pass), 1400);
        assert!(on_disk(home.path()).is_empty());
        assert_eq!(ran(&set, FileSet::rmdir, pass), all);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}

#[test]
fn files_renamed_twice_have_the_names_they_were_made_with() {
    let home = tempfile::tempdir().unwrap();
    let mut set = set(home.path());
    let control = Control::default();
    set.prepare().unwrap();
    set.create(plain(&control)).unwrap();
    assert_eq!(ran(&set, FileSet::rename, random(&control)), 500);
    set.names.renamed = true;
    assert_eq!(ran(&set, FileSet::rename, random(&control)), 500);
    set.names.renamed = false;
    let read = set.read(plain(&control)).unwrap();
    assert_eq!(counts(&read), [(Op::Open, 500, set.total_bytes())]);
}

#[test]
fn what_changes_something_can_be_made_durable() {
    let home = tempfile::tempdir().unwrap();
    let mut set = set(home.path());
    let control = Control::default();
    let mut flushed = |run: Run, op: Op, count: u64| {
        let outcome = run(&set, durable(&control)).unwrap();
        assert_eq!(counts(&outcome), [(Op::Fsync, 1, 0), (op, count, 0)]);
        set.names.renamed |= op == Op::Rename;
        set.names.linked |= op == Op::Link;
    };
    flushed(FileSet::mkdir, Op::Mkdir, 3);
    flushed(
        |set, pass| {
            FileSet {
                size_max: 0,
                ..set.clone()
            }
            .create(pass)
        },
        Op::Create,
        500,
    );
    flushed(FileSet::rename, Op::Rename, 500);
    flushed(FileSet::link, Op::Link, 500);
    flushed(FileSet::unlink, Op::Unlink, 1000);
    flushed(FileSet::rmdir, Op::Rmdir, 3);
}

proptest! {
    #[test]
    fn entries_expected_of_directories_are_those_of_the_files(
        files in 1u64..2000,
        directories in 1u32..300,
        renamed: bool,
        next: bool,
        linked: bool,
    ) {
        let rename_to = if next { RenameTo::NextDirectory } else { RenameTo::SameDirectory };
        let names = CurrentNames { rename_to, renamed, linked };
        let set = FileSet { files, directories, names, ..set(Path::new("/")) };
        let mut found = vec![0u64; directories as usize];
        for index in 0..files {
            found[set.directory(index, set.present()) as usize] += 1;
            if linked {
                found[set.directory(index, NameKind::Linked) as usize] += 1;
            }
        }
        let expected: Vec<u64> = (0..directories).map(|at| set.names_in(at)).collect();
        prop_assert_eq!(expected, found);
    }

    #[test]
    fn the_random_order_visits_each_exactly_once(count in 1u64..3000, seed: u64) {
        let order = Permutation::new(count, seed);
        let visited: HashSet<u64> = (0..count).map(|position| order.apply(position)).collect();
        prop_assert_eq!(visited.len() as u64, count);
        prop_assert!(visited.iter().all(|&index| index < count));
    }

    #[test]
    fn sizes_stay_within_their_limits(min in 0u64..1 << 20, more in 0u64..1 << 30, index: u64) {
        let set = FileSet { size_min: min, size_max: min + more, ..set(Path::new("/")) };
        prop_assert!((min..=min + more).contains(&set.size(index)));
    }
}
