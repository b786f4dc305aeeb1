//! Figures that a program prints: compared, doubted, and told with what it says against them.

use crate::support::Ground;
use serde_json::Value;

pub(super) fn directories_are_compared_with_a_command_and_its_figures() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let said = ground.stackrace(&[
        "compare",
        "a",
        "b",
        "--anyway",
        "--rounds",
        "3",
        "--prepare",
        "echo 5 > figure",
        "--metric",
        "speed=speed ([0-9]+)",
        "--unit",
        "MB/s",
        "--",
        "sh",
        "-c",
        "test $PWD -ef {dir} && echo speed $(cat figure)",
    ]);
    said.ended(0);
    let export = ground.stackrace(&["report", "last", "--format", "json"]);
    export.ended(0);
    let report: Value = serde_json::from_str(&export.out).unwrap();
    assert!(report.to_string().contains("\"speed\""), "{report}");
    let failing = ground.stackrace(&["compare", "a", "b", "--anyway", "--", "echo no >&2; exit 7"]);
    failing.ended(3);
    assert!(
        failing.err.contains("exit status 7; it said last: no"),
        "{}",
        failing.err
    );
    let missing = ground.stackrace(&["compare", "a", "b", "--anyway", "--", "no-such", "program"]);
    missing.ended(3);
    assert!(
        missing.err.contains("no-such is not installed"),
        "{}",
        missing.err
    );
    let one = ["compare", "a", "b", "--anyway", "--rounds", "3", "--with"];
    let said = ground.stackrace(&[&one[..], &["files count=20 size-max=8KiB"]].concat());
    said.ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

pub(super) fn what_a_tool_says_against_its_figures_stands_in_the_report() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let root = env!("CARGO_MANIFEST_DIR");
    let printed = format!("cat {root}/tests/golden/fio/fio-3.25_10.98k_normal.txt");
    let figure = ["--parse", "fio", "--metric", "operations", "--unit", "op/s"];
    let compare = ["compare", "a", "b", "--anyway", "--rounds", "3"];
    let words = [&compare[..], &figure, &["--", &printed]].concat();
    ground.stackrace(&words).ended(0);
    let said = ground.stackrace(&["report", "--format", "markdown"]);
    for part in ["fio printed IOPS=10.0k", "the first of 6 trials"] {
        assert!(said.ended(0).out.contains(part), "{part}: {}", said.out);
    }
}

/// Equal whole numbers are no proof of "no difference": the last digit of 12 is 8 %, and no number of rounds
/// changes that.
pub(super) fn a_comparison_of_coarse_figures_ends_and_says_why() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let compare = |printed: &str, more: &[&str]| {
        let metric = ["--metric", "rate=rate=([0-9.,]+)", "--unit", "MB/s"];
        let start = ["compare", "a", "b", "--anyway", "--until-decided"];
        ground.stackrace(&[&start[..], more, &metric, &["--", "echo", printed]].concat())
    };
    let coarse = compare("rate=12 MB/s", &[]);
    coarse.ended(0);
    assert!(
        coarse.out.contains("cannot be told apart"),
        "{}",
        coarse.out
    );
    for words in [
        "the figures have 2 digits",
        "1 in the last is 8.3 %",
        "More rounds do not help",
        "ended: resolution",
    ] {
        let said = coarse.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words}: {said}");
    }
    let export = ground.stackrace(&["report", "last", "--format", "json"]);
    export.ended(0);
    let report: Value = serde_json::from_str(&export.out).unwrap();
    let compared = &report["verdict"]["overall"][0];
    assert_eq!(compared["too_coarse"], true, "{compared}");
    assert!(
        compared["resolution"].as_f64().unwrap() > 0.08,
        "{compared}"
    );
    // What is asked must not be answered by an interval narrower than the digits.
    let gate = ground.stackrace(&["gate", "last", "--worse-than", "5%"]);
    gate.ended(6);
    assert!(gate.out.contains("known to 8.7 % only"), "{}", gate.out);
    let fine = compare("rate=12.00 MB/s", &[]);
    fine.ended(0);
    assert!(
        fine.out.contains("No difference larger than 0.09 %"),
        "{}",
        fine.out
    );
    let part = ground.stackrace(&[
        "compare",
        "a",
        "b",
        "--anyway",
        "--metric",
        "rate=rate=([0-9]+)",
        "--",
        "echo",
        "rate=2.93",
    ]);
    assert!(part.err.contains("only a part of \"2.93\""), "{}", part.err);
    assert_eq!(ground.left(), [""; 0]);
}

/// It may be the version of something: the verdict itself says so, whatever the interval.
pub(super) fn a_printed_figure_that_never_moves_is_doubted_in_the_verdict() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let prints = "case $PWD in */a/*) echo rate=10.0000 MB/s;; *) echo rate=12.0000 MB/s;; esac";
    let metric = "rate=rate=([0-9.,]+)";
    let said = ground.stackrace(&[
        "compare", "a", "b", "--anyway", "--metric", metric, "--unit", "MB/s", "--", "sh", "-c",
        prints,
    ]);
    said.ended(0);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    // Before it stands what the command is called.
    let doubt = ": 12.0 MB/s against 10.0 MB/s; 95 % confidence, 3 rounds; but a and b each have the same figure to \
                 the last digit every time, as no measurement has.";
    assert!(words.contains("b is 1.20 x as fast as a in sh"), "{words}");
    assert!(words.contains(doubt), "{words}");
    let report = ground.stackrace(&["report", "last", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    let notes = report["verdict"]["notes"].to_string();
    assert!(notes.contains("and not a version or a setting"), "{notes}");
}

/// The same command, and not the same work: what the tool says of its settings tells.
pub(super) fn figures_of_other_work_are_not_compared() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let prints = "case $STACKRACE_DIR in */b/*) n=8;; *) n=4;; esac; printf '%s+0 records in\\n%s+0 records out\\n%s bytes copied, 2.5 s, %s B/s\\n' $n $n $((n * 1024)) $((n * 1024 * 2 / 5))";
    let said = ground.stackrace(&[
        "compare", "a", "b", "--anyway", "--parse", "dd", "--", "sh", "-c", prints,
    ]);
    let words = format!("{} {}", said.out, said.err);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!words.contains("as fast"), "{words}");
    // Either is the first, as the order is drawn.
    let either = ["bytes=8192 instead of 4096", "bytes=4096 instead of 8192"];
    assert!(either.iter().any(|both| words.contains(both)), "{words}");
}

/// Another process measures after `resume`: it knows the first run from the record alone.
pub(super) fn figures_of_other_work_are_not_compared_after_resume_either() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    ground.write("blocks", "4");
    let blocks = ground.path().join("blocks");
    let prints = format!(
        "n=$(cat {}); printf '%s+0 records in\\n%s+0 records out\\n%s bytes copied, 2.5 s, %s B/s\\n' $n $n $((n * 1024)) $((n * 1024 * 2 / 5))",
        blocks.display()
    );
    let compared = [
        "compare", "a", "b", "--anyway", "--rounds", "3", "--parse", "dd", "--", "sh", "-c",
        &prints,
    ];
    ground.stackrace(&compared).ended(0);
    let resume = ["resume", "--rounds", "1", "--allow-commands"];
    ground.stackrace(&resume).ended(0);
    ground.write("blocks", "8");
    let said = ground.stackrace(&resume);
    said.ended(5);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("bytes=8192 instead of 4096"), "{words}");
}

/// `time` of bash prints on standard error, and what it says is a figure of its own.
pub(super) fn the_times_that_a_tool_prints_are_compared() {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    let timed = "printf '\\nreal\\t0m1.250s\\nuser\\t0m0.000s\\nsys\\t0m0.000s\\n' >&2";
    let said = ground.stackrace(&[
        "compare", "a", "b", "--anyway", "--rounds", "3", "--parse", "time", "--metric", "elapsed",
        "--", "sh", "-c", timed,
    ]);
    assert!(said.out.contains("1.25 s"), "{} {}", said.out, said.err);
}
