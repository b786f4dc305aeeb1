//! What the phases leave on disk and in their outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::Ordering;

use rustix::fs::OFlags;

use super::data_files::DataFiles;
use super::*;
use crate::outcome::PhaseEnd;

const SLICE_NS: u64 = 100_000_000;

/// A plan of 2 MiB and 1024 files in a directory of its own.
fn plan(directory: &Path, version: BonnieVersion) -> BonniePlan {
    BonniePlan {
        directory: directory.to_path_buf(),
        name: "Bonnie".to_owned(),
        version,
        bytes: 2 << 20,
        chunk: CHUNK,
        characters: 20_000,
        seeks: 500,
        seekers: version.seekers(),
        files: 1024,
        made: FileKind::Files { min: 0, max: 0 },
        directories: 1,
        file_chunk: CHUNK,
        fsync: false,
        direct: false,
        content: Content::Zero,
        seed: 7,
    }
}

fn run(plan: &BonniePlan, phase: Phase) -> PhaseOutcome {
    let outcome = plan.run(phase, SLICE_NS, &Control::default()).unwrap();
    assert_eq!(
        (outcome.ended, outcome.short),
        (PhaseEnd::Complete, 0),
        "{phase:?}: {:?}",
        outcome.error
    );
    outcome
}

fn count(outcome: &PhaseOutcome, op: Op) -> u64 {
    let of = outcome.ops.iter().find(|kind| kind.op == op);
    of.map_or(0, |kind| kind.count)
}

fn moved(outcome: &PhaseOutcome) -> u64 {
    outcome.ops.iter().map(|kind| kind.bytes).sum()
}

/// Names and sizes of all files, directories included in the names.
fn listed(plan: &BonniePlan) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let root = plan.file_directory();
    let mut homes = vec![root.clone()];
    while let Some(home) = homes.pop() {
        for entry in fs::read_dir(home).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_dir() {
                homes.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap();
            found.insert(name.to_str().unwrap().to_owned(), kind.len());
        }
    }
    found
}

#[test]
fn both_versions_go_through_their_data_as_often_as_the_originals() {
    for version in [BonnieVersion::V1_03, BonnieVersion::V2_00] {
        let room = tempfile::tempdir().unwrap();
        let plan = plan(room.path(), version);
        // 1.03 flushes nothing; 2.00 whenever it closes the file, once for each seeker.
        let (characters, flushes, seeker_flushes) = match version {
            BonnieVersion::V1_03 => (plan.bytes, 0, 0),
            BonnieVersion::V2_00 => (3 * CHUNK as u64, 1, 5),
        };
        let chunks = plan.bytes / CHUNK as u64;
        let phases = [
            (Phase::WriteCharacters, Op::Write, characters),
            (Phase::WriteBlocks, Op::Write, plan.bytes),
            (Phase::Rewrite, Op::Write, plan.bytes),
            (Phase::ReadCharacters, Op::Read, characters),
            (Phase::ReadBlocks, Op::Read, plan.bytes),
        ];
        for (phase, op, bytes) in phases {
            let outcome = run(&plan, phase);
            let found = (
                count(&outcome, op),
                moved(&outcome),
                count(&outcome, Op::Fsync),
            );
            assert_eq!(
                found,
                (bytes / CHUNK as u64, bytes, flushes),
                "{version:?} {phase:?}"
            );
            assert!(outcome.cpu_ns() > 0);
        }
        let outcome = run(&plan, Phase::Seeks);
        let (reads, updates) = (count(&outcome, Op::Read), count(&outcome, Op::Write));
        assert_eq!(reads + updates, 500);
        assert_eq!(count(&outcome, Op::Fsync), seeker_flushes);
        assert_eq!(outcome.threads.len(), version.seekers() as usize);
        match version {
            // The first of each seeker and every tenth after it.
            BonnieVersion::V1_03 => assert!((50..=53).contains(&updates), "{updates}"),
            BonnieVersion::V2_00 => assert!((25..=80).contains(&updates), "{updates}"),
        }
        let data = plan.data_files();
        assert_eq!(fs::metadata(&data[0]).unwrap().len(), plan.bytes);
        assert_eq!((data.len(), chunks), (1, 256));
        plan.remove_data().unwrap();
        assert_eq!(fs::read_dir(room.path()).unwrap().count(), 0);
    }
}

/// Chunk k of the blocks differs from the one before it in one byte, which goes round; rewriting
/// increments one byte of each chunk the same way.
#[test]
fn the_data_are_those_of_the_originals() {
    let room = tempfile::tempdir().unwrap();
    for version in [BonnieVersion::V1_03, BonnieVersion::V2_00] {
        let plan = BonniePlan {
            chunk: 256,
            ..plan(room.path(), version)
        };
        run(&plan, Phase::WriteCharacters);
        let data = fs::read(&plan.data_files()[0]).unwrap();
        let counting = data
            .iter()
            .enumerate()
            .all(|(i, byte)| usize::from(*byte) == (i % 256) & 0x7f);
        assert!(counting, "{version:?}");
        run(&plan, Phase::WriteBlocks);
        run(&plan, Phase::Rewrite);
        let data = fs::read(&plan.data_files()[0]).unwrap();
        let mut expected = vec![0u8; 256];
        for (number, chunk) in data.chunks(256).enumerate() {
            expected[number % 256] += 1;
            let mut rewritten = expected.clone();
            rewritten[number % 256] += 1;
            assert!(chunk == rewritten, "{version:?}: chunk {number}");
        }
    }
}

#[test]
fn other_content_takes_the_place_of_zeros_where_it_is_asked_for() {
    let room = tempfile::tempdir().unwrap();
    let plan = BonniePlan {
        content: Content::Random,
        made: FileKind::Files {
            min: 4096,
            max: 4096,
        },
        ..plan(room.path(), BonnieVersion::V1_03)
    };
    let zeros = |path: &Path| {
        let data = fs::read(path).unwrap();
        data.iter().filter(|byte| **byte == 0).count() as f64 / data.len() as f64
    };
    for phase in [Phase::WriteCharacters, Phase::WriteBlocks] {
        run(&plan, phase);
        assert!(zeros(&plan.data_files()[0]) < 0.02, "{phase:?}");
    }
    run(&plan, Phase::CreateSequential);
    let first = fs::read_dir(plan.file_directory()).unwrap().next().unwrap();
    assert!(zeros(&first.unwrap().path()) < 0.05);
}

/// Tickets of 2.00 are even where they ask for an update, and so are the chunks.
#[test]
fn version_2_updates_even_chunks_alone_and_the_byte_of_the_chunks_number() {
    let room = tempfile::tempdir().unwrap();
    let plan = plan(room.path(), BonnieVersion::V2_00);
    run(&plan, Phase::WriteBlocks);
    let before = fs::read(&plan.data_files()[0]).unwrap();
    run(&plan, Phase::Seeks);
    let after = fs::read(&plan.data_files()[0]).unwrap();
    let mut changed = 0;
    let chunks = before.chunks(CHUNK).zip(after.chunks(CHUNK));
    for (number, (before, after)) in chunks.enumerate() {
        if before == after {
            continue;
        }
        changed += 1;
        assert_eq!(number % 2, 0, "an odd chunk was updated");
        let differ: Vec<usize> = (0..CHUNK).filter(|&i| before[i] != after[i]).collect();
        assert_eq!(differ, [number]);
    }
    assert!(changed > 20, "{changed}");
}

#[test]
fn more_tickets_than_a_pipe_holds_are_all_taken() {
    let room = tempfile::tempdir().unwrap();
    let plan = BonniePlan {
        seeks: 40_000,
        seekers: 2,
        ..plan(room.path(), BonnieVersion::V2_00)
    };
    run(&plan, Phase::WriteBlocks);
    let outcome = run(&plan, Phase::Seeks);
    assert_eq!(
        count(&outcome, Op::Read) + count(&outcome, Op::Write),
        40_000
    );
    let control = Control::default();
    control.stop.store(true, Ordering::Relaxed);
    let stopped = plan.run(Phase::Seeks, SLICE_NS, &control).unwrap();
    assert_eq!(stopped.ended, PhaseEnd::Stopped);
}

#[test]
fn a_position_goes_on_in_the_next_file() {
    let room = tempfile::tempdir().unwrap();
    let plan = BonniePlan {
        bytes: FILE_BYTES + (1 << 20),
        ..plan(room.path(), BonnieVersion::V1_03)
    };
    let names: Vec<_> = plan
        .data_files()
        .iter()
        .map(|p| p.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["Bonnie.000", "Bonnie.001"]);
    let mut data = DataFiles::with(&plan, OFlags::RDWR | OFlags::CREATE, Op::Create, 2).unwrap();
    for number in 0..3 {
        data.write(&[number; CHUNK]).unwrap();
        data.advance().unwrap();
    }
    let held: Vec<_> = plan
        .data_files()
        .iter()
        .map(|path| fs::read(path).unwrap())
        .collect();
    assert_eq!(held[0], [[0; CHUNK], [1; CHUNK]].concat());
    assert_eq!(held[1], [2; CHUNK]);
}

#[test]
fn every_file_is_made_found_and_removed() {
    for version in [BonnieVersion::V1_03, BonnieVersion::V2_00] {
        for (directories, fsync, all) in [(1, false, 1024u64), (3, false, 1024), (3, true, 40)] {
            let room = tempfile::tempdir().unwrap();
            let plan = BonniePlan {
                made: FileKind::Files { min: 10, max: 500 },
                file_chunk: 256,
                directories,
                fsync,
                files: all,
                ..plan(room.path(), version)
            };
            let syncs = u64::from(version == BonnieVersion::V2_00);
            for (create, stat, delete) in [
                (
                    Phase::CreateSequential,
                    Phase::StatSequential,
                    Phase::DeleteSequential,
                ),
                (Phase::CreateRandom, Phase::StatRandom, Phase::DeleteRandom),
            ] {
                let created = run(&plan, create);
                assert_eq!(
                    (count(&created, Op::Create), count(&created, Op::Fsync)),
                    (all, syncs)
                );
                let files = listed(&plan);
                assert_eq!(files.len() as u64, all);
                assert!(files.values().all(|size| (10..=500).contains(size)));
                assert_eq!(files.values().sum::<u64>(), moved(&created));
                let looked = run(&plan, stat);
                assert_eq!(
                    (count(&looked, Op::Stat), moved(&looked)),
                    (all, moved(&created))
                );
                let deleted = run(&plan, delete);
                let homes = if directories > 1 {
                    u64::from(directories) + 1
                } else {
                    1
                };
                assert_eq!(
                    (count(&deleted, Op::Unlink), count(&deleted, Op::Rmdir)),
                    (all, homes)
                );
                assert!(!plan.file_directory().exists());
            }
        }
    }
}

#[test]
fn names_and_directories_are_those_of_the_originals() {
    let room = tempfile::tempdir().unwrap();
    let old = BonniePlan {
        directories: 5,
        ..plan(room.path(), BonnieVersion::V1_03)
    };
    let new = BonniePlan {
        version: BonnieVersion::V2_00,
        ..old.clone()
    };
    for (plan, style, number_at) in [
        (&old, names::NameStyle::Sequential, 6..13),
        (&new, names::NameStyle::Sequential, 6..16),
    ] {
        let names = names::names(plan, style);
        let text = names[1023].text().to_str().unwrap();
        let expected = if plan.version == BonnieVersion::V1_03 {
            "0001023"
        } else {
            "00000003ff"
        };
        assert_eq!((&text[..6], &text[number_at]), ("00004/", expected));
        // 1024 files in 5 directories are 204 each; one more in each but the last.
        let held: Vec<_> = (0..5)
            .map(|d| names.iter().filter(|n| n.directory == d).count())
            .collect();
        assert_eq!(held, [205, 205, 205, 205, 204]);
        let lengths: BTreeSet<_> = names.iter().map(|n| n.text().count_bytes()).collect();
        let shortest = if plan.version == BonnieVersion::V1_03 {
            13
        } else {
            16
        };
        assert_eq!(lengths.len(), 13, "0 to 12 random characters");
        assert_eq!(lengths.first(), Some(&shortest));
    }
    let random = names::names(&new, names::NameStyle::Random);
    assert!(
        random[1023]
            .text()
            .to_str()
            .unwrap()
            .ends_with("00000003ff")
    );
    // Every order holds every name once, and they differ.
    let set = |names: &[names::FileName]| {
        names
            .iter()
            .map(|n| n.text().to_owned())
            .collect::<BTreeSet<_>>()
    };
    let (stat, delete) = (names::for_stat(&new), names::for_delete(&new));
    assert_eq!(set(&stat), set(&random));
    assert_eq!(set(&delete), set(&random));
    let first = |names: &[names::FileName]| {
        names[..8]
            .iter()
            .map(|n| n.text().to_owned())
            .collect::<Vec<_>>()
    };
    assert_ne!(first(&stat), first(&random));
    assert_ne!(first(&stat), first(&delete));
}

#[test]
fn links_lead_to_the_first_file() {
    for (made, links) in [(FileKind::HardLinks, 1024), (FileKind::SymbolicLinks, 1)] {
        let room = tempfile::tempdir().unwrap();
        let plan = BonniePlan {
            made,
            ..plan(room.path(), BonnieVersion::V2_00)
        };
        run(&plan, Phase::CreateSequential);
        let names = names::names(&plan, names::NameStyle::Sequential);
        let first = plan
            .file_directory()
            .join(names[0].text().to_str().unwrap());
        use std::os::unix::fs::MetadataExt;
        assert_eq!(fs::metadata(&first).unwrap().nlink(), links);
        run(&plan, Phase::StatSequential);
        run(&plan, Phase::DeleteSequential);
    }
    let room = tempfile::tempdir().unwrap();
    let plan = BonniePlan {
        made: FileKind::SymbolicLinks,
        directories: 2,
        ..plan(room.path(), BonnieVersion::V2_00)
    };
    let refused = plan.run(Phase::CreateSequential, SLICE_NS, &Control::default());
    assert!(refused.unwrap_err().detail.contains("lead nowhere"));
    assert!(!plan.file_directory().exists());
}

/// A call on a file in a shared table, or in two tables, costs a tenth more: the kernel locks it.
#[test]
fn the_file_of_a_phase_of_one_thread_is_in_no_table_but_its_own() {
    let room = tempfile::tempdir().unwrap();
    let plan = BonniePlan {
        characters: 16 << 20,
        bytes: 16 << 20,
        ..plan(room.path(), BonnieVersion::V2_00)
    };
    let data = &plan.data_files()[0];
    let open_here = || {
        let listed = fs::read_dir("/proc/thread-self/fd").unwrap();
        let links = listed.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        links.filter(|link| link == data).count()
    };
    let control = Control::default();
    let outcome = std::thread::scope(|scope| {
        let phase = scope.spawn(|| plan.run(Phase::WriteCharacters, SLICE_NS, &control));
        while control.ops.load(Ordering::Relaxed) == 0 && !phase.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(open_here(), 0);
        control.stop.store(true, Ordering::Relaxed);
        phase.join().unwrap().unwrap()
    });
    // Else the file was looked for when it was closed.
    assert_eq!(outcome.ended, PhaseEnd::Stopped);
    let kept = fs::File::open(data).unwrap();
    assert_eq!(open_here(), 1, "{kept:?} is not found where it is open");
}

/// A failure says where it was, and all that was done until then stays in the outcome.
#[test]
fn a_failure_names_operation_and_file() {
    let room = tempfile::tempdir().unwrap();
    let plan = plan(room.path(), BonnieVersion::V2_00);
    let error = plan
        .run(Phase::ReadBlocks, SLICE_NS, &Control::default())
        .unwrap_err();
    assert_eq!(
        (error.op, error.path),
        (Op::Open, plan.data_files()[0].clone())
    );
    run(&plan, Phase::CreateRandom);
    let gone = names::for_stat(&plan)[100];
    let gone = plan.file_directory().join(gone.text().to_str().unwrap());
    fs::remove_file(&gone).unwrap();
    let outcome = plan
        .run(Phase::StatRandom, SLICE_NS, &Control::default())
        .unwrap();
    assert_eq!(
        (outcome.ended, count(&outcome, Op::Stat)),
        (PhaseEnd::Failed, 100)
    );
    assert_eq!(outcome.error.unwrap().path, gone);
}

#[test]
fn the_same_seed_gives_the_same_names_and_another_one_does_not() {
    let plan = plan(Path::new("/"), BonnieVersion::V2_00);
    let first = |plan: &BonniePlan| {
        names::names(plan, names::NameStyle::Random)[5]
            .text()
            .to_owned()
    };
    assert_eq!(first(&plan), first(&plan.clone()));
    assert_ne!(
        first(&plan),
        first(&BonniePlan {
            seed: 8,
            ..plan.clone()
        })
    );
}
