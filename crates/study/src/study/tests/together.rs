//! Workloads at the same time.

use super::super::design::Kinds;
use super::super::parse;
use super::all;

const STUDY: &str = r#"together = ["database", "backup"]
[factors]
n = [1, 2]
[[stack]]
dir = { path = "/srv/{n}" }
[[workload]]
name = "alone"
random = { mode = "read", size = "64 MiB", time = "1 s" }
[[workload]]
name = "database"
random = { mode = "read", size = "64 MiB", time = "2 s" }
[[workload]]
name = "backup"
sequential = { mode = "read", size = "128 MiB", passes = 0, time = "1 min" }
"#;

fn told(from: &str, to: &str) -> String {
    assert!(STUDY.contains(from), "{from}");
    let text = STUDY.replacen(from, to, 1);
    match parse("s.toml", text.as_bytes(), &Kinds::real()) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => all(&errors),
    }
}

#[test]
fn the_first_one_decides_when_all_end_and_each_is_a_workload_of_its_own() {
    let study = parse("s.toml", STUDY.as_bytes(), &Kinds::real());
    let study = study.unwrap_or_else(|errors| panic!("{}", all(&errors)));
    assert_eq!(study.at_once(1), [1, 2]);
    assert_eq!(study.at_once(2), [1, 2]);
    assert_eq!(study.at_once(0), [0]);
    assert!(study.ends_with_another(2) && !study.ends_with_another(1));
    let summaries: Vec<&str> = study
        .workload_heads
        .iter()
        .map(|it| it.summary.as_str())
        .collect();
    assert!(
        !summaries[0].contains("at the same time"),
        "{}",
        summaries[0]
    );
    assert!(
        summaries[1].ends_with("; at the same time as \"backup\""),
        "{}",
        summaries[1]
    );
    let ends = "; at the same time as \"database\", until \"database\" ends";
    assert!(summaries[2].ends_with(ends), "{}", summaries[2]);
    // Both lie on the disk at once, and the one before does not any more.
    assert_eq!(study.trial_disk_bytes(), 192 << 20);
}

#[test]
fn what_cannot_be_measured_at_once_is_refused_with_what_to_do() {
    let names = "[\"database\", \"backup\"]";
    for (from, to, why, next) in [
        (
            names,
            "[\"database\"]",
            "takes two workloads",
            "those beside it",
        ),
        (
            names,
            "[\"database\", \"database\"]",
            "named twice",
            "a [[workload]] of its own",
        ),
        (
            names,
            "[\"database\", \"backups\"]",
            "no workload named \"backups\"",
            "did you mean \"backup\"",
        ),
        (
            ", passes = 0",
            "",
            "does a fixed amount of work",
            "passes = 0",
        ),
        (
            ", passes = 0, time = \"1 min\"",
            "",
            "does a fixed amount of work",
            "name it first",
        ),
        (
            "time = \"1 min\"",
            "time = \"1 s\"",
            "would end after 1.00 s, before \"database\"",
            "time = \"2.00 s\"",
        ),
    ] {
        let said = told(from, to);
        assert!(said.contains(why) && said.contains(next), "{why}:\n{said}");
    }
}

#[test]
fn workloads_that_do_not_fit_together_are_refused_with_what_to_do() {
    for (from, to, why, next) in [
        (
            "sequential = { mode = \"read\", size = \"128 MiB\", passes = 0, time = \"1 min\" }",
            "files = { count = 10 }",
            "has several parts",
            "random",
        ),
        (
            "sequential = { mode = \"read\", size = \"128 MiB\", passes = 0, time = \"1 min\" }",
            "command = { run = \"true\" }",
            "fixed amount",
            "name it first",
        ),
        (
            "size = \"128 MiB\", passes",
            "size = \"64 MiB\", same-data = true, passes",
            "shares its data",
            "same-data",
        ),
        (
            "[factors]",
            "[trial]\nprecondition = \"snia\"\n[factors]",
            "brought to its steady state by one workload",
            "precondition",
        ),
    ] {
        let said = told(from, to);
        assert!(said.contains(why) && said.contains(next), "{why}:\n{said}");
    }
    // A command may be the first: what is beside it ends with it.
    assert_eq!(
        told(
            "random = { mode = \"read\", size = \"64 MiB\", time = \"2 s\" }",
            "command = { run = \"true\" }"
        ),
        "accepted"
    );
}
