//! What a store finds in what is written: how far it compresses, and how much of it repeats.
//!
//! Compressors work on records, each by itself, as file systems do: 4 KiB (what a compressing
//! block device sees), 16 KiB, 128 KiB (btrfs, and ZFS unless told otherwise) and 1 MiB (large ZFS
//! records).
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::collections::HashSet;
use std::path::Path;

use stackrace_engine::content::{ContentPool, POOL_BYTES};
use stackrace_engine::files::{AtEnd, CurrentNames, FileSet, Pass, VisitOrder};
use stackrace_engine::spec::{AccessPattern, Content, IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::{Control, PhaseEnd, lay_out, run};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const RECORDS: [usize; 4] = [4 * KIB, 16 * KIB, 128 * KIB, MIB];

/// Size before over size after, each record by itself.
type Compressor = fn(&[u8]) -> usize;

const COMPRESSORS: [(&str, Compressor); 3] = [
    ("lz4", |record| lz4_flex::block::compress(record).len()),
    ("zstd -1", |record| {
        zstd::bulk::compress(record, 1).unwrap().len()
    }),
    ("zstd -3", |record| {
        zstd::bulk::compress(record, 3).unwrap().len()
    }),
];

fn achieved(bytes: &[u8], record: usize, compressor: Compressor) -> f64 {
    let after: usize = bytes.chunks(record).map(compressor).sum();
    bytes.len() as f64 / after as f64
}

fn shaped(ratio: f64, duplicates: f64) -> Content {
    Content::Shaped { ratio, duplicates }
}

/// That many bytes as a phase with one worker writes them.
fn stream(content: Content, block: usize, bytes: usize) -> Vec<u8> {
    let mut pool = ContentPool::new(content, 5, 0, 1, block..=block, POOL_BYTES).unwrap();
    (0..bytes / block)
        .flat_map(|_| pool.take(block).to_vec())
        .collect()
}

#[test]
fn content_compresses_as_asked_by_lz4_and_zstd_in_records_of_every_usual_size() {
    // Beyond a ratio of 10, what a compressor writes to say where the zeros are decides.
    for (ratio, tolerance) in [
        (1.1, 0.01),
        (1.5, 0.015),
        (2.0, 0.015),
        (3.0, 0.02),
        (4.0, 0.02),
        (10.0, 0.05),
    ] {
        let content = shaped(ratio, 0.0);
        let bytes = stream(content, 4 * KIB, 4 * MIB);
        for record in RECORDS {
            for (name, compressor) in COMPRESSORS {
                let found = achieved(&bytes, record, compressor);
                assert!(
                    (found / ratio - 1.0).abs() <= tolerance,
                    "asked {ratio}, {name} reached {found:.3} in records of {record}"
                );
            }
        }
    }
}

/// A store that counts in blocks of 4 KiB needs 16 of them for half of 128 KiB, not 17.
#[test]
fn what_is_to_halve_fits_into_half_the_blocks() {
    let content = shaped(2.0, 0.0);
    for record in stream(content, 128 * KIB, 4 * MIB).chunks(128 * KIB) {
        assert!(zstd::bulk::compress(record, 3).unwrap().len() <= 64 * KIB);
    }
}

#[test]
fn blocks_of_a_sector_compress_too() {
    let content = shaped(2.0, 0.0);
    let bytes = stream(content, 512, 4 * MIB);
    for (name, compressor) in COMPRESSORS {
        let found = achieved(&bytes, 128 * KIB, compressor);
        assert!(
            (found / 2.0 - 1.0).abs() <= 0.05,
            "{name} reached {found:.3}"
        );
    }
}

#[test]
fn random_content_does_not_compress_in_records_of_up_to_a_mebibyte() {
    let whole = stream(Content::Random, 4 * KIB, 8 * MIB);
    let unshaped = stream(shaped(1.0, 0.0), 128 * KIB, 8 * MIB);
    let files = files(Content::Random, 4, 4 * MIB, 4 * MIB).concat();
    for bytes in [&whole, &unshaped, &files] {
        for record in RECORDS {
            for (name, compressor) in COMPRESSORS {
                let found = achieved(bytes, record, compressor);
                assert!(
                    found <= 1.001,
                    "{name} reached {found:.4} in records of {record}"
                );
            }
        }
    }
}

/// The limit that is documented: beyond the pool's length, a window long enough finds it again.
#[test]
fn a_window_longer_than_the_pool_finds_it_again() {
    let bytes = stream(Content::Random, 128 * KIB, 16 * MIB);
    let window = |log| {
        let mut compressor = zstd::bulk::Compressor::new(3).unwrap();
        compressor
            .set_parameter(zstd::zstd_safe::CParameter::WindowLog(log))
            .unwrap();
        compressor
            .set_parameter(zstd::zstd_safe::CParameter::EnableLongDistanceMatching(
                true,
            ))
            .unwrap();
        bytes.len() as f64 / compressor.compress(&bytes).unwrap().len() as f64
    };
    assert!(window(21) <= 1.001, "within 2 MiB: {}", window(21));
    assert!(window(24) > 2.0, "within 16 MiB: {}", window(24));
}

/// Share of aligned grains that are copies of others.
fn copies(bytes: &[u8], grain: usize) -> f64 {
    let grains = bytes.chunks(grain);
    let (count, distinct) = (grains.len(), grains.collect::<HashSet<_>>().len());
    1.0 - distinct as f64 / count as f64
}

/// What several threads leave in one file, written once from end to end in blocks of this size.
fn written(path: &Path, content: Content, block: usize, engine: IoEngine) -> Vec<u8> {
    let bytes = 32 * MIB;
    let spec = Spec {
        access: AccessPattern::OncePerPass,
        read_share: 0.0,
        threads: 2,
        queue_depth: 2,
        content,
        stop: Stop {
            ops: Some((bytes / block) as u64),
            time_ns: None,
        },
        engine,
        seed: 7,
        ..Spec::reads(
            vec![IoTarget {
                path: path.into(),
                bytes: bytes as u64,
            }],
            block as u32,
        )
    };
    let outcome = run(&spec, &Control::default()).unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete);
    std::fs::read(path).unwrap()
}

/// Each of that many new files, made by several threads.
fn files(content: Content, count: u64, size_min: usize, size_max: usize) -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let set = FileSet {
        root: directory.path().into(),
        directories: 4,
        files: count,
        size_min: size_min as u64,
        size_max: size_max as u64,
        threads: 3,
        fsync_each: false,
        content,
        seed: 7,
        names: CurrentNames::default(),
    };
    set.prepare().unwrap();
    let outcome = set
        .create(Pass {
            order: VisitOrder::Creation,
            at_end: AtEnd::Return,
            slice_ns: 100_000_000,
            control: &Control::default(),
        })
        .unwrap();
    assert_eq!(outcome.ended, PhaseEnd::Complete);
    set.paths()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

#[test]
fn the_asked_share_of_blocks_are_copies_whatever_the_block_and_the_threads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for engine in [IoEngine::Sync, IoEngine::Auto] {
        for block in [4 * KIB, 16 * KIB, 128 * KIB] {
            for share in [0.25, 0.8] {
                let content = shaped(1.5, share);
                let bytes = written(&path, content, block, engine);
                // As large as the block, or an aligned part of it.
                for grain in [4 * KIB, 16 * KIB, 128 * KIB] {
                    let found = copies(&bytes, grain);
                    if grain <= block {
                        assert!(
                            (found - share).abs() <= 0.02,
                            "{engine:?}, blocks of {block}, asked {share}: {found:.3} at {grain}"
                        );
                    } else if share <= 0.5 {
                        // The limit that is documented: larger grains hold copies and others.
                        assert!(
                            found <= 0.1,
                            "{engine:?}, blocks of {block}, asked {share}: {found:.3} at {grain}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_asked_share_of_files_are_copies_whatever_their_number_and_size() {
    // The share is one of units of 128 KiB: where units are of many lengths, one of bytes only
    // about.
    for (count, least, most, tolerance) in [
        (2_000, 4 * KIB, 4 * KIB, 0.01),
        (1_000, KIB, 256 * KIB, 0.04),
        (2, 20 * MIB, 20 * MIB, 0.02),
    ] {
        for share in [0.25, 0.8] {
            let content = shaped(1.5, share);
            let files = files(content, count, least, most);
            for grain in [4 * KIB, 16 * KIB, 128 * KIB] {
                // A file's last grain is a copy only if another file ends there, too.
                let whole = |file: &[u8]| file.len() / grain * grain;
                let bytes: Vec<u8> = files
                    .iter()
                    .flat_map(|file| &file[..whole(file)])
                    .copied()
                    .collect();
                if bytes.len() < 300 * grain {
                    continue; // Too few to have a share.
                }
                let found = copies(&bytes, grain);
                assert!(
                    (found - share).abs() <= tolerance,
                    "{count} files of {least} to {most}, asked {share}: {found:.3} at {grain}"
                );
            }
        }
    }
}

#[test]
fn laid_out_files_compress_and_repeat_as_asked() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let target = IoTarget {
        path: file.path().into(),
        bytes: 64 * MIB as u64,
    };
    let content = shaped(3.0, 0.5);
    lay_out(&[target], content, 7, &Control::default()).unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    for grain in [4 * KIB, 128 * KIB, MIB] {
        let found = copies(&bytes, grain);
        assert!((found - 0.5).abs() <= 0.02, "{found:.3} at {grain}");
    }
    for (name, compressor) in COMPRESSORS {
        let found = achieved(&bytes, 128 * KIB, compressor);
        assert!(
            (found / 3.0 - 1.0).abs() <= 0.02,
            "{name} reached {found:.3}"
        );
    }
}
