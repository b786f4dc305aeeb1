//! A run goes on for longer than it was begun for: by rounds, by time, until it is decided. No figure
//! is asserted.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;

use crate::support::{Ground, Said};

/// Two sizes of a write, one of them four times the other, in a directory.
const STUDY: &str = study!(
    "Sizes",
    r#"size = ["1 MiB", "4 MiB"]"#,
    [r#"dir = { path = "data" }"#],
    [r#"name = "write"
sequential = { mode = "write", size = "{size}" }"#],
    3
);

fn begun() -> Ground {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("study.toml", STUDY);
    ground.stackrace(&["run", "study.toml", "--quiet"]).ended(0);
    ground
}

fn rounds(ground: &Ground) -> u64 {
    let said: Said = ground.stackrace(&["report", "last", "--format", "json"]);
    said.ended(0);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    report["verdict"]["rounds"].as_u64().unwrap()
}

fn resume_measures_as_many_more_rounds_as_asked() {
    let ground = begun();
    assert_eq!(rounds(&ground), 3);
    let resume = ["resume", "--quiet", "--rounds", "2"];
    ground.stackrace(&resume).ended(0);
    assert_eq!(rounds(&ground), 5);
    // What the run was begun for is done: without more being asked, nothing is measured.
    ground.stackrace(&["resume", "--quiet"]).ended(0);
    assert_eq!(rounds(&ground), 5);
}

/// What programs read is the same wherever it is asked for, and nothing stands beside it.
fn a_result_is_json_where_it_is_asked_for() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("study.toml", STUDY);
    let parsed = |words: &[&str]| {
        let said = ground.stackrace(words);
        said.ended(0);
        serde_json::from_str::<serde_json::Value>(&said.out).unwrap()
    };
    let [run, goes_on] = [&["run", "study.toml"][..], &["resume", "--rounds", "1"]].map(|words| {
        let json = parsed(&[words, &["--json"]].concat());
        let report = parsed(&["report", "last", "--json"]);
        assert_eq!(json["verdict"], report["verdict"], "{words:?}");
        assert_eq!(parsed(&["report", "last", "--format", "json"]), report);
        report["verdict"]["rounds"].as_u64().unwrap()
    });
    assert_eq!((run, goes_on), (3, 4));
    let said = ground.stackrace(&["published", "zfs-ashift", "--json"]);
    said.ended(0);
    serde_json::from_str::<serde_json::Value>(&said.out).unwrap();
    let both = ground.stackrace(&["run", "study.toml", "--json", "--events", "-"]);
    both.ended(2).err_has("cannot be used with");
}

/// A plan with the limits of the command line is that of the run with them.
fn a_plan_takes_the_limits_of_the_command_line() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("study.toml", STUDY);
    let said = ground.stackrace(&["plan", "study.toml", "--rounds", "7", "--time", "3 h"]);
    said.ended(0);
    assert!(said.out.contains("7 rounds"), "{}", said.out);
    assert!(said.out.contains("at most 3 h 00 min"), "{}", said.out);
    let wrong = ground.stackrace(&["plan", "study.toml", "--time", "1 ms"]);
    wrong.ended(2).err_has("is shorter than any round");
}

fn more_time_goes_on_beyond_the_rounds_of_the_study() {
    let ground = begun();
    let resume = ["resume", "--quiet", "--more-time", "3 s"];
    ground.stackrace(&resume).ended(0);
    assert!(rounds(&ground) > 3);
}

/// Two settings of reads that last 2 s each: a round is longer than a second wherever it runs.
const READS: &str = study!(
    "Depths",
    "depth = [1, 2]",
    [r#"dir = { path = "data" }"#],
    [r#"name = "read"
random = { mode = "read", size = "1 MiB", time = "2 s", queue-depth = "{depth}" }"#],
    3
);

fn a_time_that_is_typed_and_that_no_round_fits_is_refused_with_one_that_does() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("study.toml", READS);
    let said = ground.stackrace(&["run", "study.toml", "--time", "1s"]);
    said.ended(3);
    said.err_has("the first round alone takes at least 4 s, and the time allowed is 1 s");
    said.err_has("--time \"30 s\"");
    let short = ground.stackrace(&["run", "study.toml", "--time", "1ms"]);
    short.ended(2);
    short.err_has("--time 1ms is shorter than any round");
    short.err_has("write --time 1s or more");
}

fn a_run_takes_the_rounds_of_the_command_line() {
    let ground = begun();
    let run = ["run", "study.toml", "--quiet", "--rounds", "4"];
    ground.stackrace(&run).ended(0);
    assert_eq!(rounds(&ground), 4);
    let both = ["resume", "--rounds", "2", "--until-decided"];
    let said = ground.stackrace(&both);
    said.ended(2);
    said.err_has("--until-decided");
}

/// A margin of 100 % at 50 % confidence is decided soon, one way or the other.
fn a_run_that_is_decided_says_what_would_measure_more() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    let easy = "margin = \"100 %\"\nconfidence = \"50 %\"";
    let study = STUDY.replace("until = \"never\"", easy);
    let study = study.replace("rounds-at-most = 3", "rounds-at-most = 1000");
    ground.write("study.toml", study);
    ground.stackrace(&["run", "study.toml", "--quiet"]).ended(0);
    let decided = rounds(&ground);
    let said = format!("was decided after {decided} rounds: only --rounds N measures more");
    for more in [
        &["resume"][..],
        &["resume", "--more-time", "3 s"],
        &["resume", "--until-decided"],
    ] {
        let resumed = ground.stackrace(more);
        resumed.ended(0);
        resumed.err_has(&said);
        assert_eq!(rounds(&ground), decided);
    }
    let resumed = ground.stackrace(&["resume", "--rounds", "1"]);
    resumed.ended(0);
    resumed.err_has(&said);
    assert_eq!(rounds(&ground), decided + 1);
}

/// The direction is enough at first; then the size is asked for, too, however long it takes.
fn a_run_goes_on_until_the_size_is_known_as_well_as_asked() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    let easy = "margin = \"90 %\"\nconfidence = \"50 %\"\nprecision = \"direction\"";
    let study = STUDY.replace("until = \"never\"", easy);
    ground.write("study.toml", study);
    ground.stackrace(&["run", "study.toml", "--quiet"]).ended(0);
    let said = ground.stackrace(&["resume", "--within", "150 %"]);
    said.ended(2).err_has("--within 150 % is out of range");
    let said = ground.stackrace(&["resume", "--within", "10 %", "--quick"]);
    said.ended(2);
    said.err_has("--quick");
    let direction = rounds(&ground);
    let within = ["--within", "0.1 %", "--more-time", "3 s"];
    let said = ground.stackrace(&[&["resume", "--quiet"][..], &within].concat());
    said.ended(0);
    assert!(rounds(&ground) > direction);
    // Less is asked now than is known.
    let before = rounds(&ground);
    ground.stackrace(&["resume", "--quiet", "--quick"]).ended(0);
    assert_eq!(rounds(&ground), before);
}

fn what_there_was_no_time_for_is_in_the_report_of_what_was_measured() {
    let ground = Ground::new();
    ground.make_dir("data");
    let args = ["check", "data", "--for", "postgresql", "--time", "20 s"];
    let said = ground.stackrace(&[&args[..], &["--rounds", "1"]].concat());
    said.ended(0).err_has("there is time for");
    let page = ground.stackrace(&["report", "last", "--format", "json"]);
    let page: serde_json::Value = serde_json::from_str(&page.out).unwrap();
    // Before all that disturbed it: where room is short, the first note alone is shown.
    let first = page["notes"][0].as_str().unwrap();
    assert!(
        first.contains("there is time for") && first.contains("stackrace check"),
        "{first}"
    );
}

/// No storage keeps this bound.
const RATES: &str = study!(
    "Rates",
    "depth = [1, 2]",
    [r#"dir = { path = "data" }"#],
    [r#"name = "rate"
find-rate = { mode = "read", size = "1 MiB", bound = "p50 <= 1 ns", queue-depth = "{depth}", step = "20 ms", time = "400 ms", direct = false }"#],
    3
);

fn a_bound_that_no_rate_keeps_says_what_to_change_and_resume_that_it_measures_nothing() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("data")).unwrap();
    ground.write("study.toml", RATES);
    let said = ground.stackrace(&["run", "study.toml"]);
    said.ended(5);
    let all: Vec<&str> = said.out.split_whitespace().collect();
    let all = all.join(" ");
    assert!(
        all.contains("raise the bound (p50 <= …)") && all.contains("then begin anew: "),
        "{all}"
    );
    // The words are broken into lines, and the command stands whole.
    let mut lines = said.out.lines().map(str::trim_start);
    assert!(
        lines.any(|line| line.contains("stackrace run study.toml") && !line.contains("anew")),
        "{}",
        said.out
    );
    let before = rounds(&ground);
    let again = ground.stackrace(&["resume"]);
    again.ended(5).err_has("measures nothing more");
    assert_eq!(rounds(&ground), before);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        what_there_was_no_time_for_is_in_the_report_of_what_was_measured,
        a_bound_that_no_rate_keeps_says_what_to_change_and_resume_that_it_measures_nothing,
        resume_measures_as_many_more_rounds_as_asked,
        a_result_is_json_where_it_is_asked_for,
        a_plan_takes_the_limits_of_the_command_line,
        more_time_goes_on_beyond_the_rounds_of_the_study,
        a_time_that_is_typed_and_that_no_round_fits_is_refused_with_one_that_does,
        a_run_takes_the_rounds_of_the_command_line,
        a_run_that_is_decided_says_what_would_measure_more,
        a_run_goes_on_until_the_size_is_known_as_well_as_asked
    ]
}
