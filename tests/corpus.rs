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

/// Texts as long as a study may be, each made so that something in them is there very often: what
/// costs the square of it, or takes memory for what it only announces, does not come to an end
/// here.
fn long_studies() -> Vec<(&'static str, String)> {
    const LENGTH: usize = 256 << 10;
    const STACK: &str = "[[stack]]\ntmpfs = { size = \"1 GiB\" }\n";
    const WORK: &str = "[[workload]]\nsequential = { mode = \"read\", size = \"1 MiB\" }\n";
    let many = |room: usize, piece: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for number in 0.. {
            let piece = piece(number);
            if text.len() + piece.len() > room {
                break;
            }
            text.push_str(&piece);
        }
        text
    };
    let rest = LENGTH - STACK.len() - WORK.len() - 100;
    let half = rest / 2;
    let levels = many(half, &|n| format!("{n},"));
    let long = "x".repeat(half);
    let deep = "a.".repeat(half / 2);
    let two_of_64 = format!(
        "[factors]\na = [{}]\nb = [{}]\n",
        many(170, &|n| format!("{n},")),
        many(170, &|n| format!("{n},"))
    );
    vec![
        (
            "levels",
            format!("[factors]\na = [{levels}]\n{STACK}{WORK}"),
        ),
        (
            "same levels",
            format!("[factors]\na = [{}]\n{STACK}{WORK}", "1,".repeat(half / 2)),
        ),
        (
            "factors",
            format!(
                "[factors]\n{}{STACK}{WORK}",
                many(rest, &|n| format!("f{n}=[1]\n"))
            ),
        ),
        (
            "long words",
            format!(
                "[factors]\n{long} = [1]\n[[stack]]\ndir = {{ path = \"{{y{}}}\" }}\n{WORK}",
                &long[1..half - 50]
            ),
        ),
        (
            "placeholders",
            format!(
                "[factors]\na = [\"{}\"]\n[[stack]]\ndir = {{ path = \"{}\" }}\n{WORK}",
                &long[..900],
                "{a}".repeat(half / 3)
            ),
        ),
        (
            "unknown factors",
            format!(
                "[factors]\n{}\n[[stack]]\ndir = {{ {} }}\n{WORK}",
                many(half, &|n| format!("f{n}=[1]\n")),
                many(half, &|n| format!("p{n}=\"{{g{n}}}\",")).trim_end_matches(',')
            ),
        ),
        (
            "unknown settings",
            format!(
                "{two_of_64}[[stack]]\ntmpfs = {{ {} }}\n{WORK}",
                many(rest - 600, &|n| format!("s{n}=1,")).trim_end_matches(',')
            ),
        ),
        (
            "unknown words",
            format!("{STACK}{WORK}{}", many(half, &|n| format!("[w{n}]\n"))),
        ),
        (
            "workloads",
            format!(
                "{two_of_64}{STACK}{}",
                many(rest - 600, &|n| format!(
                    "[[workload]]\nname=\"{n}\"\ndelete-tree={{files={{a}},directories=1}}\n"
                ))
            ),
        ),
        (
            "layers",
            format!("{two_of_64}{}{WORK}", STACK.repeat(rest / STACK.len() / 2)),
        ),
        (
            "exclusions",
            format!(
                "{two_of_64}{STACK}{WORK}{}",
                many(rest - 600, &|n| format!(
                    "[[exclude]]\na={}\nb={}\n",
                    n % 60,
                    n / 60 % 60
                ))
            ),
        ),
        (
            "selected levels",
            format!("[factors]\na = [{levels}]\n[[exclude]]\na = [{levels}]\n{STACK}{WORK}"),
        ),
        ("dotted", format!("{deep}a = 1\n{STACK}{WORK}")),
        ("dotted in a table", format!("[{deep}a]\n{STACK}{WORK}")),
        (
            "nested lists",
            format!("title = {}\n{STACK}{WORK}", "[".repeat(half)),
        ),
        (
            "nested tables",
            format!("title = {}\n{STACK}{WORK}", "{a=".repeat(half / 3)),
        ),
        ("one line", long.clone()),
        ("no letters", "\0".repeat(LENGTH)),
        ("a line each", "\n=".repeat(half / 16)),
        (
            "wide letters",
            format!("title = \"{}\"\n", "日".repeat(half / 3)),
        ),
    ]
}

fn check(name: &str) -> fn(&[u8]) {
    ALL.iter().find(|(other, _)| *other == name).unwrap().1
}

#[test]
fn a_long_study_is_answered() {
    for (what, text) in long_studies() {
        check("study")(text.as_bytes());
    }
}

#[test]
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
        ("journal", entries + &done),
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
