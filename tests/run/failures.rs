//! Trials that fail: a full disk, a directory that vanishes.

use super::*;

/// Two sizes of inode tables: one has not enough inodes for the files.
const FULL: &str = study!(
    "Enough inodes or not",
    r#"inodes = [ { label = "few", value = "64" }, { label = "many", value = "2048" } ]"#,
    [
        r#"loop = { size = "32 MiB" }"#,
        r#"ext4 = { mkfs = ["-N", "{inodes}"] }"#
    ],
    [r#"name = "small files"
files = { count = 200 }"#],
    3
);

pub(crate) fn a_full_disk_fails_its_trial_and_no_other() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("full.toml", FULL);
    let said = ground.stackrace(&["run", "full.toml"]);
    said.ended(5).err_has("No space left on device");
    let log = Log::of(&ground);
    let (few, many) = (log.configuration("few"), log.configuration("many"));
    let failures = log.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    let (configuration, error) = &failures[0];
    assert_eq!(*configuration, few);
    assert!(
        error.contains("No space left on device") && error.contains("/.stackrace-"),
        "{error}"
    );
    assert_eq!(log.trials("complete"), [(1, many, 0)]);
    assert_eq!(log.ended(), "failed");
    assert_eq!(ground.left(), [""; 0]);
    let report = ground.stackrace(&["report"]);
    assert!(
        report.ended(0).out.contains("No space left on device"),
        "{}",
        report.out
    );
}

/// Three directories, of which one will not stay.
const VANISHING: &str = study!(
    "Three directories",
    r#"directory = ["one", "two", "three"]"#,
    [r#"dir = { path = "{directory}" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "100 ms" }"#],
    3
);

pub(crate) fn a_directory_that_vanishes_leaves_the_race() {
    let ground = Ground::new();
    for name in ["one", "two", "three"] {
        ground.make_dir(name);
    }
    ground.write("vanishing.toml", VANISHING);
    let first_round = |log: &Log| !log.all("round-finished").is_empty();
    let child = start_until(&ground, &["run", "vanishing.toml"], first_round);
    fs::rename(ground.path().join("two"), ground.path().join("gone")).unwrap();
    fs::remove_dir_all(ground.path().join("gone")).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(5);
    assert!(!said.err.contains("panicked"), "{}", said.err);
    let log = Log::of(&ground);
    let failures = log.failures();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].0, log.configuration("two"));
    assert!(failures[0].1.contains("two"), "{failures:?}");
    // The trial under way at that moment may still end well: its file is open.
    let failed_in = (2..=3).find(|round| {
        let trials = log.trials("failed");
        trials.contains(&(*round, failures[0].0, 0))
    });
    let failed_in = failed_in.unwrap();
    let mut others = design(3, 3, 1);
    others
        .retain(|(round, configuration, _)| *round < failed_in || *configuration != failures[0].0);
    assert_eq!(log.trials("complete"), others);
    assert_eq!(log.ended(), "rounds");
    assert_eq!(ground.left(), [""; 0]);
}
