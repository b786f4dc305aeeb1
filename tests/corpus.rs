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

/// A check that is not fuzzed, or a target without a corpus, would promise what is not tested.
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

fn what_is_near_to_a_kept_input_passes() {
    ALL.iter().for_each(near);
}

/// Bytes a study's text may have.
const STUDY_MAX: usize = 256 << 10;
/// Most of them, and half of them, without what a study must have.
const MOST: usize = STUDY_MAX - 1000;
const HALF: usize = MOST / 2;
const STACK: &str = "[[stack]]\ntmpfs = { size = \"1 GiB\" }\n";
const WORK: &str = "[[workload]]\nsequential = { mode = \"read\", size = \"1 MiB\" }\n";

/// As many numbered pieces as there is room for.
fn many(room: usize, piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let piece = piece(number);
        if text.len() + piece.len() > room {
            break;
        }
        text.push_str(&piece);
    }
    text
}

/// Two factors that make about as many configurations as a study may have.
fn many_configurations() -> String {
    let levels = many(170, |n| format!("{n},"));
    format!("[factors]\na = [{levels}]\nb = [{levels}]\n")
}

fn long_factors() -> Vec<String> {
    let levels = many(HALF, |n| format!("{n},"));
    let same = "1,".repeat(HALF / 2);
    let factors = many(HALF, |n| format!("f{n} = [1]\n"));
    let unknown = many(HALF, |n| format!("p{n} = \"{{g{n}}}\", "));
    let (long, other) = ("x".repeat(HALF), "y".repeat(HALF - 100));
    let label = &long[..4000];
    let places = "{a}".repeat(HALF / 3);
    vec![
        format!("[factors]\na = [{levels}]\n{STACK}{WORK}"),
        format!("[factors]\na = [{same}]\n{STACK}{WORK}"),
        format!("[factors]\na = [{levels}]\n[[exclude]]\na = [{levels}]\n{STACK}{WORK}"),
        format!("[factors]\n{factors}{STACK}{WORK}"),
        format!("[factors]\n{factors}[[stack]]\ndir = {{ {unknown} }}\n{WORK}"),
        format!("[factors]\n{long} = [1]\n[[stack]]\ndir = {{ path = \"{{{other}}}\" }}\n{WORK}"),
        format!("[factors]\na = [\"{label}\"]\n[[stack]]\ndir = {{ path = \"{places}\" }}\n{WORK}"),
    ]
}

fn long_entries() -> Vec<String> {
    let factors = many_configurations();
    let settings = many(MOST, |n| format!("s{n} = 1, "));
    let words = many(HALF, |n| format!("[w{n}]\n"));
    let workloads = many(MOST, |n| {
        format!("[[workload]]\nname = \"{n}\"\ndelete-tree = {{ files = \"{{a}}\" }}\n")
    });
    let layers = STACK.repeat(HALF / STACK.len());
    let excluded = many(MOST, |n| {
        format!("[[exclude]]\na = {}\nb = {}\n", n % 60, n / 60 % 60)
    });
    vec![
        format!("{factors}[[stack]]\ntmpfs = {{ {settings} }}\n{WORK}"),
        format!("{STACK}{WORK}{words}"),
        format!("{factors}{STACK}{workloads}"),
        format!("{factors}{layers}{WORK}"),
        format!("{factors}{STACK}{WORK}{excluded}"),
    ]
}

fn long_forms() -> Vec<String> {
    let deep = "a.".repeat(HALF / 2);
    vec![
        format!("{deep}a = 1\n{STACK}{WORK}"),
        format!("[{deep}a]\n{STACK}{WORK}"),
        format!("title = {}\n{STACK}{WORK}", "[".repeat(HALF)),
        format!("title = {}\n{STACK}{WORK}", "{a=".repeat(HALF / 3)),
        format!("title = \"{}\"\n", "日".repeat(HALF / 3)),
        "x".repeat(HALF),
        "\0".repeat(STUDY_MAX),
        "\n=".repeat(HALF / 16),
    ]
}

fn check(name: &str) -> fn(&[u8]) {
    ALL.iter().find(|(other, _)| *other == name).unwrap().1
}

/// Texts as long as a study may be, each with something in it very often: what costs the square of
/// that, or takes memory for what is only announced, does not come to an end here.
fn a_long_study_is_answered() {
    for text in [long_factors(), long_entries(), long_forms()].concat() {
        assert!(text.len() <= STUDY_MAX);
        check("study")(text.as_bytes());
    }
}

/// The same for what a system says.
fn a_long_text_of_a_system_is_answered() {
    const LENGTH: usize = 1 << 20;
    let options: String = (0..LENGTH / 8).map(|n| format!("o{n},")).collect();
    let entries: String = (0..LENGTH / 100)
        .map(|n| format!("{{\"entry\":{n},\"group\":\"g\",\"undo\":{{\"remove-dir\":\"/a\"}}}}\n"))
        .collect();
    let done: String = (0..LENGTH / 200)
        .map(|n| format!("{{\"done\":{}}}\n", LENGTH - n))
        .collect();
    let disks: String = (0..LENGTH / 40)
        .map(|n| format!("1 1 vd{n} 1 1 1 1 1 1 1 1 1 1 1\n"))
        .collect();
    for (name, text) in [
        (
            "mountinfo",
            format!("1 1 0:1 / / {options} - ext4 /dev/vda {options}\n"),
        ),
        (
            "journal",
            "{\"journal\":3,\"run\":\"fuzzed\"}\n".to_owned() + &entries + &done,
        ),
        ("observe", disks.clone() + "\0" + &disks),
        ("stack", options.clone()),
        ("stack", "=1\n".repeat(LENGTH / 3)),
        ("unit", "9".repeat(LENGTH)),
        ("log", "{}\n".repeat(LENGTH / 3)),
        ("log", "[".repeat(LENGTH) + "\n"),
        ("command", "\x0fxxxx'xxxxxxxxxx".repeat(LENGTH / 16)),
        ("arguments", "plan\n".repeat(LENGTH / 5)),
    ] {
        check(name)(text.as_bytes());
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        every_check_has_a_target_and_a_corpus,
        every_kept_input_passes,
        what_is_near_to_a_kept_input_passes,
        a_long_study_is_answered,
        a_long_text_of_a_system_is_answered
    ]
}
