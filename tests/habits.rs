//! What makes the program easy to live with: `doctor`, `--events`.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;

use crate::support::Ground;
use serde_json::Value;

/// A directory twice, with different block sizes; needs no root and no time.
const QUICK: &str = study!(two block sizes: "Block sizes, quick", "10 ms", 3);

/// The log of the only run in a ground.
fn log(ground: &Ground) -> String {
    let runs = fs::read_dir(ground.path().join("store/runs")).unwrap();
    let dirs: Vec<_> = runs.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(dirs.len(), 1);
    fs::read_to_string(dirs[0].join("log.jsonl")).unwrap()
}

fn the_lines_of_a_run_are_copied_as_they_are() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("s.toml", QUICK);
    ground.write("events.jsonl", "of an earlier run\n");
    let said = ground.stackrace(&["run", "s.toml", "--events", "events.jsonl"]);
    assert!(said.ended(0).out.contains("VERDICT"), "{}", said.out);
    let copy = fs::read_to_string(ground.path().join("events.jsonl")).unwrap();
    assert_eq!(copy, log(&ground));
    // Of a resumed run all lines come, and on standard output nothing else.
    let said = ground.stackrace(&["resume", "--rounds", "4", "--events", "-"]);
    assert_eq!(said.ended(0).out, log(&ground));
    assert!(said.out.len() > copy.len());
    for line in said.out.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["event"].is_string(), "{line}");
    }
}

fn lines_that_cannot_be_written_are_refused_before_the_run() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("s.toml", QUICK);
    let said = ground.stackrace(&["run", "s.toml", "--events", "nowhere/events.jsonl"]);
    assert!(said.ended(3).err.contains("nowhere"), "{}", said.err);
    assert!(!ground.path().join("store/runs").exists());
}

fn every_layer_is_named_and_nothing_is_made() {
    let ground = Ground::new();
    let said = ground.stackrace(&["doctor", "--quick", "--json"]);
    let health: Value = serde_json::from_str(&said.ended(0).out).unwrap();
    let layers = health["layers"].as_array().unwrap();
    let dir = layers.iter().find(|one| one["layer"] == "dir").unwrap();
    // A directory needs nothing, on no machine.
    assert_eq!(dir["missing"], serde_json::json!([]));
    assert_eq!(dir["root"], false);
    assert!(layers.len() > 20, "{}", layers.len());
    assert!(health["store"]["free_bytes"].as_u64().unwrap() > 0);
    assert!(health["noise"].is_null() && health["left"] == serde_json::json!([]));
    assert_eq!(fs::read_dir(ground.path()).unwrap().count(), 0);
}

fn the_sentences_name_each_layer_once() {
    let ground = Ground::new();
    let text = ground.stackrace(&["doctor", "--quick"]);
    let text = &text.ended(0).out;
    let words = |word: &str| {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words.filter(|one| *one == word).count()
    };
    assert_eq!(words("tmpfs"), 1, "{text}");
    assert!(text.contains("left behind     nothing"), "{text}");
}

/// The program with the defaults of a ground and no other place for its runs.
#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is a process"
)]
fn bare(ground: &Ground) -> std::process::Command {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_stackrace"));
    program
        .env("XDG_CONFIG_HOME", ground.path().join("config"))
        .env("HOME", ground.path())
        .env_remove("STACKRACE_STORE");
    program
}

/// What `compare` of two directories would do, with a file of defaults.
fn study_with(ground: &Ground, defaults: &str, words: &[&str]) -> crate::support::Said {
    for dir in ["a", "b", "config/stackrace"] {
        fs::create_dir_all(ground.path().join(dir)).unwrap();
    }
    ground.write("config/stackrace/config.toml", defaults);
    let asked = [
        "compare",
        "a",
        "b",
        "--anyway",
        "--size",
        "1M",
        "--print-study",
    ];
    ground.stackrace(&[&asked[..], words].concat())
}

fn the_defaults_hold_where_the_command_line_says_nothing() {
    let ground = Ground::new();
    let defaults = "[compare]\nfor = \"mail\"\nmargin = \"7 %\"\n";
    // How many workloads fit depends on the machine; the purpose and the margin do not.
    let mail = study_with(&ground, defaults, &[]);
    for part in ["# Purpose: mail\n", "margin = \"0.07\"\n"] {
        assert!(mail.ended(0).out.contains(part), "{part}: {}", mail.out);
    }
    // What is typed comes first, also where it is what the program would do by itself.
    let general = study_with(&ground, defaults, &["--for", "general", "--margin", "5 %"]);
    for part in ["# Purpose: general\n", "margin = \"0.05\"\n"] {
        assert!(
            general.ended(0).out.contains(part),
            "{part}: {}",
            general.out
        );
    }
}

fn the_store_of_the_defaults_is_used_and_doctor_shows_it() {
    let ground = Ground::new();
    fs::create_dir_all(ground.path().join("config/stackrace")).unwrap();
    let own = ground.path().join("own");
    let line = format!("store = \"{}\"\n", own.display());
    ground.write("config/stackrace/config.toml", line);
    // Without `--store`, which comes first.
    let run = |words: &[&str]| {
        let mut program = bare(&ground);
        crate::support::Said::of(&program.args(words).output().unwrap())
    };
    assert!(run(&["runs"]).ended(0).out.contains("no runs"));
    assert!(!own.exists(), "what reads makes no store");
    let data = ground.make_dir("data");
    let data = data.to_str().unwrap();
    let load = [
        "load",
        data,
        "random",
        "mode=read",
        "size=1MiB",
        "time=10ms",
    ];
    run(&load).ended(0);
    assert!(own.is_dir());
    let said = run(&["doctor", "--quick"]);
    assert!(
        said.ended(0)
            .out
            .contains(&format!("store = {}", own.display())),
        "{}",
        said.out
    );
}

fn a_wrong_default_is_refused_by_every_command() {
    let ground = Ground::new();
    let said = study_with(&ground, "\ncolor = \"never\"\n", &[]);
    let err = &said.ended(3).err;
    assert!(
        err.contains("config.toml:2: there is no default \"color\""),
        "{err}"
    );
    assert!(err.contains("did you mean \"colour\"?"), "{err}");
    assert!(!ground.path().join("store").exists());
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        the_lines_of_a_run_are_copied_as_they_are,
        lines_that_cannot_be_written_are_refused_before_the_run,
        every_layer_is_named_and_nothing_is_made,
        the_sentences_name_each_layer_once,
        the_defaults_hold_where_the_command_line_says_nothing,
        the_store_of_the_defaults_is_used_and_doctor_shows_it,
        a_wrong_default_is_refused_by_every_command
    ]
}
