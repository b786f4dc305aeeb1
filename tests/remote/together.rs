//! Workloads that are measured at the same time, on another machine.

use super::*;

pub(super) fn workloads_at_the_same_time_are_measured_on_another_machine() {
    let (ground, server) = with_directories();
    let here = ground.path().to_str().unwrap();
    let alone = DIRECTORIES.replace("GROUND", here);
    let two = r#"name = "backup"
sequential = { mode = "read", size = "1 MiB", passes = 0, time = "10 s" }
[[workload]]
name = "database"
random = { mode = "read", size = "1 MiB", access = "uniform", time = "200 ms" }"#;
    let study = alone.replace("files = { count = 5 }", two);
    ground.write(
        "both.toml",
        format!("together = [\"database\", \"backup\"]\n{study}"),
    );
    stackrace(&ground, &["run", "both.toml", "--on", &server.to()]).ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        // The backup was given ten seconds, and stopped with the database.
        let beside = 1 - trial["workload"].as_u64().unwrap();
        assert_eq!(trial["beside"]["workloads"], serde_json::json!([beside]));
        assert!(trial["elapsed_ns"].as_u64().unwrap() < 9_000_000_000);
    }
}
