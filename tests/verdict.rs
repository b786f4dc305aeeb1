//! `stackrace verdict` through the whole program: own runs asked afterwards, imported ones asked
//! for more than they carry. No figure is asserted, only what is said of it.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::Path;

use crate::support::{Ground, Said};

fn ended(said: Said) -> String {
    said.ended(0);
    said.out
}

/// As one line: where lines are broken depends on the figures.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Two factors in a directory, as fast as it goes.
const STUDY: &str = r#"
title = "Block sizes and threads"
[factors]
block-size = ["4 KiB", "8 KiB"]
threads = [1, 2]
[[stack]]
dir = { path = "data" }
[[workload]]
name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", threads = "{threads}", access = "uniform", time = "10 ms" }
[decide]
compare = "block-size"
rounds-at-most = 3
at-most = "10 min"
until = "never"
"#;

fn an_own_run_is_asked_what_its_study_did_not_ask() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("study.toml", STUDY);
    ended(ground.stackrace(&["run", "study.toml"]));
    let said = ended(ground.stackrace(&["report", "last", "--format", "markdown"]));
    for part in [
        "Effects of the factors",
        "| threads 2 against 1 |",
        "| block-size 8 KiB against 4 KiB, threads 2 compared with 1 |",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let own = flat(&ended(ground.stackrace(&["verdict"])));
    assert!(
        own.contains("8 KiB") && !own.contains("Chosen after the run"),
        "{own}"
    );
    let asked = [
        "verdict",
        "last",
        "--factor",
        "threads",
        "--metric",
        "throughput",
    ];
    let page = ended(ground.stackrace(&asked));
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
    let said = flat(&page);
    for part in [
        "Chosen after the run, so exploratory",
        "2 against 1",
        "random write, throughput:",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let json = [&asked[..], &["--json"]].concat();
    let json: serde_json::Value = serde_json::from_str(&ended(ground.stackrace(&json))).unwrap();
    assert_eq!(json[0]["chosen_after"], true);
    assert_eq!(
        (&json[0]["family"], &json[0]["checked_at"]),
        (&1.into(), &3.into())
    );
    assert!(json[0]["comparisons"][0]["ratio"]["low"].is_number());
    let said = ground.stackrace(&["verdict", "last", "--factor", "thread"]);
    said.ended(2);
    said.err_has("did you mean \"threads\"? There are: block-size, threads");
    let said = ground.stackrace(&["verdict", "last", "--margin", "0"]);
    said.ended(2);
    said.err_has("--margin 0 is out of range");
}

fn single_imported_figures_get_a_ratio_and_no_interval() {
    let ground = Ground::new();
    let golden = "tests/golden/fio/fio-3.39_seqread_normal.txt";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    let text = fs::read_to_string(path).unwrap();
    // One latency differs: with the very same figures it would be one run.
    let other = text.replace("99.00th=[ 3032]", "99.00th=[ 3064]");
    ground.write("one.txt", text);
    ground.write("two.txt", other);
    ended(ground.stackrace(&["import", "old=one.txt", "new=two.txt"]));
    let asked = [
        "verdict",
        "last",
        "--compare",
        "old,new",
        "--metric",
        "operations",
    ];
    let said = flat(&ended(ground.stackrace(&asked)));
    for part in [
        "new is 1.00 x as fast as old; one run each, so no interval.",
        "Imported, not measured here",
        "there is no verdict",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(
        !said.contains("faster") && !said.contains("confidence"),
        "{said}"
    );
}

fn the_metric_that_decides_can_be_chosen_and_has_to_be_there() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let compare = |with: &str, metric: &str| {
        ground.stackrace(&[
            "compare", "a", "b", "--anyway", "--rounds", "3", "--with", with, "--metric", metric,
        ])
    };
    let said = compare("random mode=read size=4MiB", "p99 of read latency");
    said.ended(0);
    assert!(
        said.out.contains("random, p99 of read latency"),
        "{}",
        said.out
    );
    let said = compare("random mode=read size=1MiB", "read latency p99.9");
    said.ended(3);
    assert!(
        said.err.contains("256 operations, and p99.9 takes 10,000"),
        "{}",
        said.err
    );
    // Only the storage tells how many there are; it was "too few rounds for an interval".
    let some = "random mode=read size=1MiB access=uniform rate=200 time=300ms";
    let said = compare(some, "read latency p99.9");
    said.ended(5);
    assert!(said.out.contains("takes 10,000 operations"), "{}", said.out);
    assert!(said.out.contains(": let it measure more"), "{}", said.out);
    let said = compare("random mode=read size=1MiB", "read latency p98");
    said.ended(3);
    assert!(said.err.contains("did you mean"), "{}", said.err);
    assert_eq!(ground.left(), [""; 0]);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        the_metric_that_decides_can_be_chosen_and_has_to_be_there,
        an_own_run_is_asked_what_its_study_did_not_ask,
        single_imported_figures_get_a_ratio_and_no_interval
    ]
}
