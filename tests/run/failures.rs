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

/// A directory that has room, and one in a file system without inodes for the files.
const TIGHT: &str = r#"
title = "Room or not"
[factors]
place = ["roomy", "tight"]
[[stack]]
dir = { path = "{place}" }
[[workload]]
name = "small files"
files = { count = 200 }
[decide]
rounds-at-most = 4
at-most = "10 min"
until = "never"
"#;

/// Mounts a new ext4 with so many inodes.
fn mount_with_inodes(ground: &Ground, inodes: &str) {
    let [image, point] = ["tight.img", "tight"].map(|name| ground.path().join(name));
    let [image, point] = [&image, &point].map(|path| path.to_str().unwrap());
    tool("mkfs.ext4", &["-q", "-F", "-N", inodes, image]);
    tool("mount", &["-o", "loop", image, point]);
}

pub(crate) fn a_directory_that_was_full_is_measured_again_by_resume_once_it_has_room() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.make_dir("roomy");
    let point = ground.make_dir("tight");
    let image = fs::File::create(ground.path().join("tight.img")).unwrap();
    image.set_len(32 << 20).unwrap();
    mount_with_inodes(&ground, "1024");
    let files = (0..900).map(|number| point.join(format!("{number}")));
    let files: Vec<PathBuf> = files.collect();
    files.iter().for_each(|file| fs::write(file, "").unwrap());
    ground.write("tight.toml", TIGHT);
    let said = ground.stackrace(&["run", "tight.toml"]);
    said.ended(5).err_has("No space left on device");
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    let said = ground.stackrace(&["resume"]);
    let left = ground.left();
    tool("umount", &[point.to_str().unwrap()]);
    said.ended(0);
    assert!(!said.out.contains("No verdict"), "{}", said.out);
    let log = Log::of(&ground);
    let tight = log.configuration("tight");
    let mut all = design(4, 2, 1);
    all.retain(|trial| *trial != (1, tight, 0));
    assert_eq!(log.trials("complete"), all);
    assert_eq!(left, [""; 0]);
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
