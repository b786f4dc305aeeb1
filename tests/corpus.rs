//! Every kept input of the fuzz targets through the check of its target, and what is near to it.
//!
//! `fuzz/` needs a nightly compiler and hours; this needs neither, so what was once found stays
//! found, and an input that no longer fits its format is noticed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the corpus has failed"
)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use stackrace::testing::{ALL, Check};

/// Changed inputs tried of each target.
const CHANGED: u32 = 96;
/// Longer inputs are tried as they are, but not changed: each costs as much as many short ones.
const CHANGED_BYTES_MAX: usize = 16 << 10;

fn fuzz() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz"))
}

/// The kept inputs of a target, in a fixed order.
fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut inputs: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(fuzz().join("corpus").join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

fn names(folder: &str) -> BTreeSet<String> {
    fs::read_dir(fuzz().join(folder))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            path.file_stem().unwrap().to_string_lossy().into_owned()
        })
        .collect()
}

/// A check nobody fuzzes, or a target without a corpus, would be a promise nobody keeps.
#[test]
fn every_check_has_a_target_and_a_corpus() {
    let checks: BTreeSet<String> = ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert!(ALL.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(names("fuzz_targets"), checks);
    assert_eq!(names("corpus"), checks);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in checks {
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "fuzz/Cargo.toml has no target {name}"
        );
        assert!(!corpus(&name).is_empty(), "{name} has no kept input");
    }
}

#[test]
fn every_kept_input_passes() {
    for (name, check) in ALL {
        for (path, data) in corpus(name) {
            let passed = catch_unwind(AssertUnwindSafe(|| check(&data)));
            assert!(passed.is_ok(), "{}: see the message above", path.display());
        }
    }
}

/// One change of an input.
#[derive(Debug, Clone)]
enum Change {
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    /// What follows a place is that of another input from another place on.
    Splice(usize, usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<usize>();
    prop_oneof![
        4 => (at, 1u8..).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => at.prop_map(Change::Cut),
        2 => (at, 0usize..64).prop_map(|(at, count)| Change::Remove(at, count)),
        2 => (at, 0usize..64).prop_map(|(at, count)| Change::Repeat(at, count)),
        2 => (at, at, at).prop_map(|(at, other, from)| Change::Splice(at, other, from)),
    ]
}

fn changed(mut data: Vec<u8>, changes: &[Change], others: &[Vec<u8>]) -> Vec<u8> {
    for change in changes {
        let length = data.len();
        let place = |at: usize| at % (length + 1);
        match *change {
            Change::Flip(at, bits) => {
                if let Some(byte) = data.get_mut(place(at)) {
                    *byte ^= bits;
                }
            }
            Change::Cut(at) => data.truncate(place(at)),
            Change::Remove(at, count) => {
                let at = place(at);
                data.drain(at..(at + count).min(length));
            }
            Change::Repeat(at, count) => {
                let at = place(at);
                let piece = data[at..(at + count).min(length)].to_vec();
                data.splice(at..at, piece);
            }
            Change::Splice(at, other, from) => {
                let other = &others[other % others.len()];
                data.truncate(place(at));
                data.extend_from_slice(&other[from % (other.len() + 1)..]);
            }
        }
    }
    data
}

fn near((name, check): &Check) {
    let inputs: Vec<Vec<u8>> = corpus(name)
        .into_iter()
        .map(|(_, data)| data)
        .filter(|data| data.len() <= CHANGED_BYTES_MAX)
        .collect();
    let strategy = (any::<usize>(), prop::collection::vec(change(), 1..6));
    let mut config = Config::with_cases(CHANGED);
    config.failure_persistence = None;
    let tried = TestRunner::new(config).run(&strategy, |(input, changes)| {
        check(&changed(
            inputs[input % inputs.len()].clone(),
            &changes,
            &inputs,
        ));
        Ok(())
    });
    if let Err(error) = tried {
        panic!("{name}: {error}");
    }
}

#[test]
fn what_is_near_to_a_kept_input_passes() {
    ALL.iter().for_each(near);
}
