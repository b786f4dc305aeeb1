//! A run of one's own beside a published study, and a study at its two sizes; needs no root.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use crate::support::Ground;
use serde_json::Value;

/// The words of the netatalk study in a directory: small files, made to last or not.
const OWN: &str = r#"
title = "Small files, made to last or not"
[sizes]
count = { scaled = 20, full = 40 }
[factors]
database = [{ label = "on the volume", value = true }, { label = "on tmpfs", value = false }]
[[stack]]
dir = { path = "data" }
[[workload]]
name = "postmark"
postmark = { number = 100, transactions = "{count}", sync-at-end = "{database}" }
[decide]
compare = "database"
rounds-at-most = 3
at-most = "10 min"
until = "never"
"#;

fn ran(args: &[&str]) -> Ground {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("own.toml", OWN);
    ground.stackrace(args).ended(0);
    assert_eq!(ground.left(), [""; 0]);
    ground
}

fn a_run_stands_beside_a_published_study() {
    let ground = ran(&["run", "own.toml", "--quiet"]);
    let said = ground.stackrace(&["report", "--beside-published=netatalk-cnid", "-f", "json"]);
    let page: Value = serde_json::from_str(&said.ended(0).out).unwrap();
    let rows = page["beside_published"]["rows"].as_array().unwrap();
    let create = rows
        .iter()
        .find(|row| row["own_on"] == "postmark: files created")
        .unwrap();
    assert_eq!(create["own"], "on tmpfs against on the volume");
    assert_eq!(create["published"], "tmp against default");
    // Of XFS and ext4, which are not varied here: 16/6 and 82/14.
    assert_eq!(create["published_count"], 2);
    let mean = (16.0_f64 / 6.0 * 82.0 / 14.0).sqrt();
    assert!((create["published_ratio"].as_f64().unwrap() - mean).abs() < 1e-9);
    let (low, high) = (&create["ratio"]["low"], &create["ratio"]["high"]);
    let inside = (low.as_f64().unwrap()..=high.as_f64().unwrap()).contains(&mean);
    assert_eq!(create["inside"], inside);
    for form in ["terminal", "markdown", "html"] {
        let said = ground.stackrace(&["report", "--beside-published=netatalk-cnid", "-f", form]);
        assert!(
            said.ended(0).out.contains("on tmpfs against on the volume"),
            "{form}"
        );
    }
    let said = ground.stackrace(&["report", "--beside-published"]);
    said.ended(2)
        .err_has("own.toml is named after no published study")
        .err_has("zfs-ashift");
    let said = ground.stackrace(&["report", "--beside-published=zfs", "-f", "json"]);
    said.ended(2).err_has("there is no published study \"zfs\"");
    let said = ground.stackrace(&["report", "--beside-published=zfs-ashift", "-f", "csv"]);
    said.ended(2).err_has("nothing stands beside it");
}

fn full_size_is_run_and_on_record() {
    let ground = ran(&["run", "own.toml", "--full", "--quiet"]);
    let said = ground.stackrace(&["report", "-f", "json"]);
    let page: Value = serde_json::from_str(&said.ended(0).out).unwrap();
    let summary = page["run"]["workloads"][0]["summary"].as_str().unwrap();
    assert!(summary.contains("40"), "{summary}");
    assert!(
        page["run"]["study"]
            .as_str()
            .unwrap()
            .starts_with("scale = \"full\"\n")
    );
    ground.stackrace(&["resume", "--quiet"]).ended(0);
    // What is wrong is told with the lines of the file, not of what --full makes of it.
    ground.write("wrong.toml", OWN.replace("sync-at-end", "sink-at-end"));
    let said = ground.stackrace(&["plan", "wrong.toml", "--full"]);
    let line = 1 + OWN
        .lines()
        .position(|line| line.contains("sync-at-end"))
        .unwrap();
    said.ended(3).err_has(&format!("wrong.toml:{line}"));
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        a_run_stands_beside_a_published_study,
        full_size_is_run_and_on_record
    ]
}
