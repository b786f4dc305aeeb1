//! Workloads that are measured at the same time.

use super::*;

/// A database with a backup beside it, and alone; `once` or `each-round`.
fn study(provision: &str, backup: &str) -> String {
    format!(
        r#"title = "A backup beside a database"
together = ["database", "backup"]
[factors]
block-size = ["4 KiB", "8 KiB"]
[[stack]]
dir = {{ path = "data" }}
[[workload]]
name = "backup"
sequential = {{ mode = "read", size = "1 MiB", {backup} }}
[[workload]]
name = "alone"
random = {{ mode = "read", size = "1 MiB", block-size = "{{block-size}}", access = "uniform", time = "20 ms" }}
[[workload]]
name = "database"
command = {{ run = "sleep 0.2" }}
[decide]
rounds-at-most = 3
until = "never"
[trial]
provision = "{provision}"
remount = false
"#
    )
}

pub(crate) fn workloads_at_the_same_time_are_trials_of_their_own_that_end_with_the_first() {
    // Workload by workload, and configuration by configuration.
    for provision in ["once", "each-round"] {
        let ground = Ground::new();
        ground.make_dir("data");
        ground.write(
            "study.toml",
            study(provision, "passes = 0, time = \"10 s\""),
        );
        let said = ground.stackrace(&["run", "study.toml", "--allow-commands"]);
        said.ended(0);
        let log = Log::of(&ground);
        assert_eq!(log.failures(), []);
        assert_eq!(log.trials("complete"), design(3, 2, 3));
        for trial in log.all("trial") {
            let workload = trial["workload"].as_u64().unwrap();
            let beside = match workload {
                0 => serde_json::json!([2]),
                1 => Value::Null,
                _ => serde_json::json!([0]),
            };
            assert_eq!(trial["beside"]["workloads"], beside, "{trial}");
            let elapsed = trial["elapsed_ns"].as_u64().unwrap();
            // It was given ten seconds, and stopped with the command.
            assert!(
                workload != 0 || (150_000_000..9_000_000_000).contains(&elapsed),
                "{trial}"
            );
        }
        let report = ground.stackrace(&["report"]);
        report.ended(0);
        assert_eq!(ground.left(), [""; 0]);
    }
}

pub(crate) fn one_whose_own_time_is_shorter_goes_on_until_the_first_ends() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("study.toml", study("once", "passes = 0, time = \"10 ms\""));
    let said = ground.stackrace(&["run", "study.toml", "--allow-commands"]);
    said.ended(0);
    let log = Log::of(&ground);
    assert_eq!(log.failures(), []);
    let backups = log.all("trial").into_iter();
    let backups: Vec<_> = backups.filter(|trial| trial["workload"] == 0).collect();
    assert_eq!(backups.len(), 6);
    for trial in backups {
        assert!(
            trial["elapsed_ns"].as_u64().unwrap() > 150_000_000,
            "{trial}"
        );
    }
}

pub(crate) fn two_workloads_of_compare_are_measured_together_or_refused() {
    let ground = Ground::new();
    let (a, b) = (ground.make_dir("a"), ground.make_dir("b"));
    let [a, b] = [a.to_str().unwrap(), b.to_str().unwrap()];
    let with = |more: &[&str]| {
        let args = [
            "compare",
            a,
            b,
            "--print-study",
            "--with",
            "random mode=write size=1MiB time=1s",
        ];
        ground.stackrace(&[&args[..], more].concat())
    };
    let other = "random mode=read size=2MiB time=1s";
    let said = with(&["--with", other, "--together"]);
    said.ended(0);
    assert!(
        said.out.contains("together = [\"random\", \"random 2\"]"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("title = \"a or b for random beside random 2\""),
        "{}",
        said.out
    );
    with(&["--together"])
        .ended(2)
        .err_has("two workloads or more");
    with(&["--with", other]).ended(2).err_has("add --together");
    with(&["--with", "files count=5", "--together"])
        .ended(3)
        .err_has("has several parts");
    let clients = with(&["--with", other, "--together", "--clients", "ssh:x,y"]);
    clients.ended(2).err_has("--together is for one machine");
}
