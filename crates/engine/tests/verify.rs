//! Verification on real files: each injected fault is found, at its place and by its name, and
//! where there is none there is no alarm.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[path = "fixtures/engines.rs"]
mod fixtures;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use fixtures::{engines, skipped};
use proptest::prelude::*;
use stackrace_engine::spec::{AccessPattern, Content, IoEngine, IoTarget, Pacing, Spec, Stop};
use stackrace_engine::verify::unit_bytes;
use stackrace_engine::{
    ContentLedger, Control, Op, PhaseEnd, PhaseOutcome, StartError, lay_out_verified, run,
    run_verified,
};

const BLOCK: u64 = 4096;
const SECTOR: u64 = 512;

/// Everything is read once, in order, in blocks of 4 KiB.
fn reading(targets: &[IoTarget]) -> Spec {
    let blocks: u64 = targets.iter().map(|target| target.bytes / BLOCK).sum();
    Spec {
        access: AccessPattern::Sequential,
        stop: Stop {
            ops: Some(blocks),
            time_ns: None,
        },
        engine: IoEngine::Sync,
        seed: 7,
        slice_ns: 1_000_000,
        ..Spec::reads(targets.to_vec(), BLOCK as u32)
    }
}

/// Every block is written once, in random order.
fn writing(targets: &[IoTarget]) -> Spec {
    Spec {
        access: AccessPattern::OncePerPass,
        read_share: 0.0,
        ..reading(targets)
    }
}

fn targets(directory: &Path, sizes: &[u64]) -> Vec<IoTarget> {
    let numbered = sizes.iter().enumerate();
    let target = |(number, bytes): (usize, &u64)| IoTarget {
        path: directory.join(format!("file-{number}")),
        bytes: *bytes,
    };
    numbered.map(target).collect()
}

fn ledger(spec: &Spec, seed: u64) -> ContentLedger {
    ContentLedger::new(&spec.targets, unit_bytes(spec), spec.content, seed).unwrap()
}

fn laid_out(ledger: &ContentLedger) {
    lay_out_verified(ledger, &Control::default()).unwrap();
}

fn outcome(spec: &Spec, ledger: &ContentLedger) -> PhaseOutcome {
    run_verified(spec, ledger, &Control::default()).unwrap()
}

fn done(spec: &Spec, ledger: &ContentLedger) -> PhaseOutcome {
    let outcome = outcome(spec, ledger);
    assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
    outcome
}

/// Four threads, sixteen operations each, of three sizes, most of them on the same few blocks.
fn crowded(targets: &[IoTarget], access: AccessPattern, ops: u64) -> Spec {
    Spec {
        block_sizes: vec![(4096, 4), (8192, 2), (65536, 1)],
        access,
        read_share: 0.5,
        threads: 4,
        queue_depth: 16,
        stop: Stop {
            ops: Some(ops),
            time_ns: None,
        },
        ..reading(targets)
    }
}

#[test]
fn where_nothing_is_wrong_there_is_no_alarm() {
    let hot = AccessPattern::HotCold {
        hot_range: 0.05,
        hot_ops: 0.9,
    };
    let accesses = [
        hot,
        AccessPattern::Uniform,
        AccessPattern::Sequential,
        AccessPattern::Zipf(1.1),
        AccessPattern::Pareto(0.2),
        AccessPattern::Normal(0.02),
    ];
    for engine in [IoEngine::Sync, IoEngine::Uring] {
        if !engines().iter().any(|(known, _)| *known == engine) {
            continue;
        }
        for direct in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let targets = targets(directory.path(), &[8 << 20, 0, (1 << 20) + 4096 + 100]);
            let content = Content::Shaped {
                ratio: if direct { 1.0 } else { 4.0 },
                duplicates: 0.0,
            };
            let reading = Spec {
                content,
                direct,
                engine,
                ..reading(&targets)
            };
            let ledger = ledger(&reading, 5);
            laid_out(&ledger);
            for access in accesses {
                let ops = if direct { 1_000 } else { 4_000 };
                let crowded = Spec {
                    content,
                    direct,
                    engine,
                    ..crowded(&targets, access, ops)
                };
                let mixed = match run_verified(&crowded, &ledger, &Control::default()) {
                    Err(error @ StartError::DirectRefused { .. }) => {
                        skipped("direct I/O", &error.to_string());
                        break;
                    }
                    mixed => mixed.unwrap(),
                };
                assert_eq!(
                    mixed.ended,
                    PhaseEnd::Complete,
                    "{access:?} {:?}",
                    mixed.error
                );
                // All that was read had been written, so all of it was checked.
                let read = mixed.ops.iter().find(|op| op.op == Op::Read).unwrap();
                assert_eq!((read.count, mixed.verified_bytes), (ops / 2, read.bytes));
            }
            let whole = done(&reading, &ledger);
            assert_eq!(whole.verified_bytes, (9 << 20) + 4096);
        }
    }
}

#[test]
fn each_block_once_with_think_time_and_open_loop_are_verified_too() {
    for (engine, queue_depth) in engines() {
        let directory = tempfile::tempdir().unwrap();
        let targets = targets(directory.path(), &[1 << 20]);
        let ledger = ledger(&reading(&targets), 5);
        let mut spec = writing(&targets);
        (spec.engine, spec.queue_depth, spec.threads) = (engine, queue_depth, 2);
        done(&spec, &ledger);
        spec.read_share = 0.5;
        spec.durability.fsync_every = std::num::NonZeroU64::new(10);
        for pacing in [
            Pacing::Closed {
                think_time_ns: 1_000,
            },
            Pacing::Fixed(50_000.0),
            Pacing::Poisson(50_000.0),
        ] {
            spec.pacing = pacing;
            assert_eq!(
                done(&spec, &ledger).verified_bytes,
                128 * BLOCK,
                "{pacing:?}"
            );
        }
        assert_eq!(done(&reading(&targets), &ledger).verified_bytes, 1 << 20);
    }
}

/// A phase without a ledger writes what it always wrote, and a verified one says so.
#[test]
fn what_was_written_without_verification_is_not_taken_for_verified() {
    for (engine, queue_depth) in engines() {
        let directory = tempfile::tempdir().unwrap();
        let targets = targets(directory.path(), &[64 * BLOCK]);
        let ledger = ledger(&reading(&targets), 5);
        laid_out(&ledger);
        let mut reading = reading(&targets);
        (reading.engine, reading.queue_depth) = (engine, queue_depth);
        done(&reading, &ledger);
        run(&writing(&targets), &Control::default()).unwrap();
        let error = outcome(&reading, &ledger).error.unwrap();
        let detail = &error.detail;
        assert!(
            detail.starts_with("not written by this run: "),
            "{engine:?}: {detail}"
        );
    }
}

#[test]
fn what_was_never_written_is_not_verified() {
    let directory = tempfile::tempdir().unwrap();
    let targets = targets(directory.path(), &[16 * BLOCK]);
    File::create(&targets[0].path)
        .unwrap()
        .set_len(16 * BLOCK)
        .unwrap();
    let ledger = ledger(&reading(&targets), 5);
    assert_eq!(done(&reading(&targets), &ledger).verified_bytes, 0);
    let mut writing = writing(&targets);
    writing.stop.ops = Some(5);
    assert_eq!(done(&writing, &ledger).verified_bytes, 0);
    assert_eq!(done(&reading(&targets), &ledger).verified_bytes, 5 * BLOCK);
}

#[test]
fn a_ledger_of_other_files_or_blocks_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let both = targets(directory.path(), &[1 << 20, 1 << 20]);
    let ledger = ledger(&reading(&both), 5);
    let refused = |spec: Spec, word: &str| {
        let error = run_verified(&spec, &ledger, &Control::default()).unwrap_err();
        assert!(matches!(error, StartError::Spec { .. }), "{error:?}");
        assert!(error.to_string().contains(word), "{error}");
    };
    refused(reading(&both[..1]), "other files");
    let mut spec = reading(&both);
    spec.block_sizes.push((6144, 1));
    refused(
        spec,
        "multiples of 2048 bytes, in files verified in units of 4096",
    );
    let mut spec = writing(&both);
    spec.content = Content::Zero;
    refused(spec, "to write Zero");
    let mut spec = reading(&both);
    spec.engine = IoEngine::Null;
    refused(spec, "null engine");
    let mut spec = writing(&both);
    spec.engine = IoEngine::Update;
    refused(spec, "the update engine changes what it reads");
    // Nothing was touched.
    assert!(!both[0].path.exists());
}

/// A failed write is told as such, and leaves a ledger that can be used again.
#[test]
fn a_full_device_is_no_wrong_data() {
    for (engine, queue_depth) in engines() {
        let full = [IoTarget {
            path: "/dev/full".into(),
            bytes: 1 << 20,
        }];
        let mut spec = writing(&full);
        (spec.engine, spec.queue_depth) = (engine, queue_depth);
        let ledger = ledger(&spec, 5);
        for _ in 0..2 {
            let error = outcome(&spec, &ledger).error.unwrap();
            assert_eq!(error.errno, rustix::io::Errno::NOSPC.raw_os_error());
        }
        spec.read_share = 1.0;
        // It reads as zeros, of which nothing is known.
        assert_eq!(done(&spec, &ledger).verified_bytes, 0);
    }
}

/// What is done to the files behind the engine's back.
#[derive(Debug, Clone)]
enum Injury {
    FlipBit {
        bit: u64,
    },
    /// Two different blocks change places.
    Swap {
        block: u64,
        other: u64,
    },
    /// A block keeps what it held before the last write.
    KeepOld {
        block: u64,
    },
    /// Some but not all sectors of a block do.
    Tear {
        block: u64,
        from: u64,
        to: u64,
    },
    /// The last write of a sector stopped after so many bytes.
    TearSector {
        sector: u64,
        bytes: u64,
    },
    Truncate {
        bytes: u64,
    },
    Zero {
        block: u64,
    },
    /// A sector of the same place from files of another seed.
    Foreign {
        sector: u64,
    },
}

const FILE_BLOCKS: u64 = 24;
const BLOCKS: u64 = 2 * FILE_BLOCKS;
const FILE_BYTES: u64 = FILE_BLOCKS * BLOCK;

fn injury() -> impl Strategy<Value = Injury> {
    let sectors = BLOCKS * BLOCK / SECTOR;
    // Not all eight sectors: that is a whole block kept.
    let tear = (0..8u64, 1..8u64).prop_map(|(from, length)| (from, (from + length).min(8)));
    prop_oneof![
        (0..BLOCKS * BLOCK * 8).prop_map(|bit| Injury::FlipBit { bit }),
        (0..BLOCKS, 1..BLOCKS).prop_map(|(block, step)| Injury::Swap {
            block,
            other: (block + step) % BLOCKS
        }),
        (0..BLOCKS).prop_map(|block| Injury::KeepOld { block }),
        (0..BLOCKS, tear).prop_map(|(block, (from, to))| Injury::Tear { block, from, to }),
        // Within the header the rest is that of the old sector as well, but for the checksum.
        (0..sectors, 32..504u64).prop_map(|(sector, bytes)| Injury::TearSector { sector, bytes }),
        (0..FILE_BYTES).prop_map(|bytes| Injury::Truncate { bytes }),
        (0..BLOCKS).prop_map(|block| Injury::Zero { block }),
        (0..sectors).prop_map(|sector| Injury::Foreign { sector }),
    ]
}

/// Two files as they were and as they are, and how to change them. Places count through both.
struct Files {
    paths: Vec<PathBuf>,
    old: Vec<u8>,
    foreign: Vec<u8>,
}

impl Files {
    fn read(&self) -> Vec<u8> {
        contents(&self.paths)
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let file = OpenOptions::new()
            .write(true)
            .open(&self.paths[(at / FILE_BYTES) as usize])
            .unwrap();
        file.write_all_at(bytes, at % FILE_BYTES).unwrap();
    }

    fn place(&self, at: u64) -> (PathBuf, u64) {
        (
            self.paths[(at / FILE_BYTES) as usize].clone(),
            at % FILE_BYTES,
        )
    }

    /// What is said about a place.
    fn said(&self, at: u64, detail: String) -> (PathBuf, u64, String) {
        let (path, offset) = self.place(at);
        (path, offset, detail)
    }

    fn old(&self, at: u64, bytes: u64) -> &[u8] {
        &self.old[at as usize..][..bytes as usize]
    }

    /// Does the injury. Returns the places it may be found at, and what is said then.
    fn injure(&self, injury: &Injury) -> Vec<(PathBuf, u64, String)> {
        let (at, detail) = match *injury {
            Injury::FlipBit { bit } => self.flip(bit),
            Injury::Swap { block, other } => return self.swap(block, other).to_vec(),
            Injury::KeepOld { block } => {
                self.write(block * BLOCK, self.old(block * BLOCK, BLOCK));
                let detail = "stale: generation 1 where generation 2 was written";
                (block * BLOCK, detail.to_owned())
            }
            Injury::Tear { block, from, to } => self.tear(block, from, to),
            Injury::TearSector { sector, bytes } => self.tear_sector(sector, bytes),
            Injury::Truncate { bytes } => return self.truncate(bytes),
            Injury::Zero { block } => {
                self.write(block * BLOCK, &[0; BLOCK as usize]);
                let detail = "zeros: 4096 bytes of them where generation 2 was written";
                (block * BLOCK, detail.to_owned())
            }
            Injury::Foreign { sector } => {
                let at = sector * SECTOR;
                self.write(at, &self.foreign[at as usize..][..SECTOR as usize]);
                let detail = format!(
                    "not written by this run: generation 2 was, but found is a sector of another \
                     run, of generation 1 for offset {}",
                    self.place(at).1
                );
                (at, detail)
            }
        };
        vec![self.said(at, detail)]
    }

    fn flip(&self, bit: u64) -> (u64, String) {
        let at = bit / 8;
        let was = self.read()[at as usize];
        let is = was ^ (1 << (bit % 8));
        self.write(at, &[is]);
        let within = at % SECTOR;
        let detail = format!(
            "1 bit differs, at byte {within} of the sector: expected {was:#04x}, found {is:#04x}"
        );
        (at - within, detail)
    }

    fn swap(&self, block: u64, other: u64) -> [(PathBuf, u64, String); 2] {
        let new = self.read();
        [(block, other), (other, block)].map(|(to, from)| {
            let bytes = &new[(from * BLOCK) as usize..][..BLOCK as usize];
            self.write(to * BLOCK, bytes);
            let (path, offset) = self.place(from * BLOCK);
            let of = if path == self.place(to * BLOCK).0 {
                String::new()
            } else {
                format!(" of {}", path.display())
            };
            let detail = format!(
                "misplaced: holds what belongs to offset {offset}{of} (generation 2) where \
                 generation 2 was written"
            );
            self.said(to * BLOCK, detail)
        })
    }

    fn tear(&self, block: u64, from: u64, to: u64) -> (u64, String) {
        let at = block * BLOCK + from * SECTOR;
        self.write(at, self.old(at, (to - from) * SECTOR));
        let runs = [(0, from, 2), (from, to, 1), (to, 8, 2)].into_iter();
        let runs = runs.filter(|(begin, end, _)| begin < end);
        let runs = runs.map(|(begin, end, generation)| {
            format!("sectors {begin}-{} are of generation {generation}", end - 1)
        });
        let detail = format!(
            "torn: of the 4096 bytes at {}, {}, where generation 2 was written",
            self.place(block * BLOCK).1,
            runs.collect::<Vec<_>>().join(", ")
        );
        (at, detail)
    }

    fn tear_sector(&self, sector: u64, bytes: u64) -> (u64, String) {
        let (new, at) = (self.read(), sector * SECTOR);
        let old = self.old(at + bytes, SECTOR - bytes);
        self.write(at + bytes, old);
        // Equal bytes of the two belong to either.
        let pairs = new[(at + bytes) as usize..].iter().zip(old);
        let equal = pairs.take_while(|(new, old)| new == old).count() as u64;
        let detail = format!(
            "torn: bytes 0-{} of the sector are of generation 2, the rest of generation 1, where \
             generation 2 was written",
            bytes + equal - 1
        );
        (at, detail)
    }

    fn truncate(&self, bytes: u64) -> Vec<(PathBuf, u64, String)> {
        let file = OpenOptions::new().write(true).open(&self.paths[0]).unwrap();
        file.set_len(bytes).unwrap();
        let detail = format!("truncated: the file must hold {FILE_BYTES} bytes, and holds {bytes}");
        // Several operations at once find the end in any order.
        let first = bytes / SECTOR * SECTOR;
        let later = (bytes.next_multiple_of(BLOCK)..FILE_BYTES).step_by(BLOCK as usize);
        let places = std::iter::once(first).chain(later);
        places.map(|at| self.said(at, detail.clone())).collect()
    }
}

fn contents(paths: &[PathBuf]) -> Vec<u8> {
    paths
        .iter()
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Files written twice, injured, and read again by each engine.
fn is_found(injury: &Injury, content: Content, engines: &[(IoEngine, u32)]) {
    let directory = tempfile::tempdir().unwrap();
    let targets = targets(directory.path(), &[FILE_BYTES, FILE_BYTES]);
    let mut spec = reading(&targets);
    spec.content = content;
    let paths: Vec<PathBuf> = targets.iter().map(|target| target.path.clone()).collect();
    laid_out(&ledger(&spec, 6));
    let foreign = contents(&paths);
    let ledger = ledger(&spec, 5);
    laid_out(&ledger);
    let old = contents(&paths);
    let writing = Spec {
        content,
        ..writing(&targets)
    };
    done(&writing, &ledger);
    assert_eq!(done(&spec, &ledger).verified_bytes, BLOCKS * BLOCK);
    let files = Files {
        paths,
        old,
        foreign,
    };
    let possible = files.injure(injury);
    for (engine, queue_depth) in engines {
        (spec.engine, spec.queue_depth) = (*engine, *queue_depth);
        let outcome = outcome(&spec, &ledger);
        assert_eq!(
            outcome.ended,
            PhaseEnd::Failed,
            "{engine:?}: {injury:?} was not found"
        );
        let error = outcome.error.unwrap();
        assert_eq!((error.op, error.errno), (Op::Read, 0));
        let found = (error.path, error.offset.unwrap(), error.detail);
        assert!(
            possible.contains(&found),
            "{engine:?} {queue_depth} {injury:?}: {found:?}, not one of {possible:?}"
        );
        if *queue_depth == 1 {
            assert_eq!(found, possible.iter().min().unwrap().clone());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_injury_is_found_at_its_place_and_by_its_name(injury in injury(), compressible: bool) {
        let content = if compressible {
            Content::Shaped { ratio: 2.0, duplicates: 0.0 }
        } else {
            Content::Random
        };
        // Of compressible data the last bytes of every sector are zero.
        let injury = match injury {
            Injury::TearSector { sector, bytes } if compressible => {
                Injury::TearSector { sector, bytes: bytes.min(248) }
            }
            other => other,
        };
        is_found(&injury, content, &engines());
    }
}
