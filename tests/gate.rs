//! The exit code of a gate, on results whose figures are written down: nothing is timed.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use crate::support::Ground;
use serde_json::Value;

/// What dd says of a gigabyte in so many seconds.
fn dd(ground: &Ground, name: &str, seconds: &[f64]) -> Vec<String> {
    let files = seconds.iter().enumerate().map(|(at, seconds)| {
        let file = format!("{name}-{at}.txt");
        let rate = 1e3 / seconds;
        let text = format!(
            "1000+0 records in\n1000+0 records out\n1000000000 bytes (1.0 GB, 954 MiB) copied, {seconds} s, {rate:.1} MB/s\n"
        );
        ground.write(&file, text);
        format!("{name}={file}")
    });
    files.collect()
}

fn imported(sides: [(&str, &[f64]); 2]) -> Ground {
    let ground = Ground::new();
    let mut words = vec!["import".to_owned()];
    for (name, seconds) in sides {
        words.extend(dd(&ground, name, seconds));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    ground.stackrace(&words).ended(0);
    ground
}

const OLD: (&str, &[f64]) = ("old", &[10.0, 10.1, 9.9, 10.05]);

fn ci_systems_get_a_test_case_for_each_figure() {
    let written = |sides, more: &[&str], code| {
        let ground = imported(sides);
        let words = ["gate", "--worse-than", "5%", "--junit", "gate.xml"];
        ground.stackrace(&[&words[..], more].concat()).ended(code);
        std::fs::read_to_string(ground.path().join("gate.xml")).unwrap()
    };
    let worse = written([OLD, ("new", &[12.0, 12.1, 11.9, 12.05])], &[], 7);
    assert!(
        worse.contains("<testsuites name=\"stackrace\" tests=\"1\" failures=\"1\" errors=\"0\">"),
        "{worse}"
    );
    assert!(
        worse.contains("<failure message=\"more than 5 % worse: ratio 0.8"),
        "{worse}"
    );
    let wild = ("new", &[8.0, 12.0, 10.02, 11.0][..]);
    let open = written([OLD, wild], &[], 6);
    assert!(
        open.contains("<failure message=\"undecided: ratio"),
        "{open}"
    );
    let let_pass = written([OLD, wild], &["--undecided", "pass"], 0);
    assert!(
        let_pass.contains("<skipped message=\"undecided: ratio"),
        "{let_pass}"
    );
    let same = written([OLD, ("new", &[10.02, 9.95, 10.1, 9.98])], &[], 0);
    assert!(
        same.contains("failures=\"0\"") && same.contains("worse\"/>"),
        "{same}"
    );
}

fn the_exit_code_is_the_verdict() {
    let slower = imported([OLD, ("new", &[12.0, 12.1, 11.9, 12.05])]);
    let said = slower.stackrace(&["gate", "--worse-than", "5%"]);
    assert!(
        said.ended(7)
            .out
            .starts_with("WORSE: new is more than 5 % worse than old")
    );
    slower.stackrace(&["gate", "--worse-than", "30%"]).ended(0);
    let same = imported([OLD, ("new", &[10.02, 9.95, 10.1, 9.98])]);
    let said = same.stackrace(&["gate", "--worse-than", "5%", "--quiet"]);
    assert!(
        said.ended(0)
            .out
            .starts_with("PASSED: new is not more than 5 % worse than old")
    );
    assert!(said.out.contains("unpaired, not declared before)."));
    assert_eq!(said.out.matches("\n\n").count(), 0, "{}", said.out);
    let wild = imported([OLD, ("new", &[8.0, 12.0, 10.02, 11.0])]);
    let said = wild.stackrace(&["gate", "--worse-than", "5%"]);
    assert!(
        said.ended(6)
            .out
            .starts_with("UNDECIDED: new may be more than 5 % worse than old")
    );
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("how many more runs of each would decide cannot be told yet"),
        "{}",
        said.out
    );
    wild.stackrace(&["gate", "--worse-than", "5%", "--undecided", "pass"])
        .ended(0);
    let few = imported([OLD, ("new", &[20.0])]);
    few.stackrace(&["gate", "--worse-than", "5%"]).ended(6);
}

fn programs_and_summaries_get_the_same() {
    let ground = imported([OLD, ("new", &[12.0, 12.1, 11.9, 12.05])]);
    let said = ground.stackrace(&["gate", "--worse-than", "0.05", "--json"]);
    let gate: Value = serde_json::from_str(&said.ended(7).out).unwrap();
    assert_eq!(gate["outcome"], "worse");
    assert_eq!(gate["paired"], false);
    assert!(gate["answers"][0]["ratio"]["high"].as_f64().unwrap() < 0.95);
    let said = ground.stackrace(&["gate", "--worse-than", "5%", "--markdown"]);
    assert!(
        said.ended(7)
            .out
            .starts_with("# WORSE: new is more than 5 % worse")
    );
    assert!(
        said.out.contains("| figure | ratio | interval |"),
        "{}",
        said.out
    );
    for line in ground
        .stackrace(&["gate", "--worse-than", "5%"])
        .out
        .lines()
    {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn a_question_that_makes_no_sense_is_refused() {
    let ground = imported([OLD, ("new", &[10.01, 10.02, 10.03])]);
    let gate = |words: &[&str]| {
        let words: Vec<&str> = std::iter::once("gate")
            .chain(words.iter().copied())
            .collect();
        ground.stackrace(&words)
    };
    gate(&[]).ended(2).err_has("--worse-than");
    gate(&["--worse-than", "5 apples"])
        .ended(2)
        .err_has("--worse-than");
    gate(&["--worse-than", "120%"])
        .ended(2)
        .err_has("is out of range");
    gate(&["--worse-than", "5%", "--configuration", "knew"])
        .ended(2)
        .err_has("did you mean \"new\"?");
    gate(&[
        "--worse-than",
        "5%",
        "--configuration",
        "old",
        "--against",
        "old",
    ])
    .ended(2)
    .err_has("compared with itself");
    gate(&["--worse-than", "5%", "--workload", "reading"])
        .ended(2)
        .err_has("there is no workload \"reading\"");
    gate(&["--worse-than", "5%", "--metric", "speed"])
        .ended(2)
        .err_has("there is no metric \"speed\"");
    // The other way round.
    gate(&["--worse-than", "5%", "--configuration", "old"]).ended(0);
    // A kept run: the configuration of the same name.
    gate(&[
        "--worse-than",
        "5%",
        "--configuration",
        "new",
        "--baseline",
        "last",
    ])
    .ended(2)
    .err_has("compared with itself");
    gate(&[
        "--worse-than",
        "5%",
        "--configuration",
        "new",
        "--baseline",
        "last/old",
    ])
    .ended(0);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        ci_systems_get_a_test_case_for_each_figure,
        the_exit_code_is_the_verdict,
        programs_and_summaries_get_the_same,
        a_question_that_makes_no_sense_is_refused
    ]
}
