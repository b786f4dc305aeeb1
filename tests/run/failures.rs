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
    let failures = Log::of(&ground).failures();
    assert!(failures[0].1.contains("inodes"), "{failures:?}");
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    let said = ground.stackrace(&["resume"]);
    let left = ground.left();
    tool("umount", &[point.to_str().unwrap()]);
    said.ended(0);
    assert!(!said.out.contains("No verdict"), "{}", said.out);
    let log = Log::of(&ground);
    // The round in which it failed is measured again, too.
    assert_eq!(log.trials("complete"), design(4, 2, 1));
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

pub(crate) fn a_script_gets_the_time_that_its_study_gives_it() {
    needs::root();
    let ground = Ground::new();
    let study = |limit: &str, seconds: u32| {
        ground.write(
            "s.toml",
            format!(
                "title = \"t\"\n[[stack]]\nscript = {{ set-up = \"sleep {seconds}; mount -t tmpfs none $STACKRACE_MOUNT\", tear-down = \"! mountpoint -q $STACKRACE_MOUNT || umount $STACKRACE_MOUNT\", limit = \"{limit}\" }}\n\
                 [[workload]]\nfiles = {{ count = 10, size-max = \"1 KiB\" }}\n[decide]\nrounds-at-most = 1\n"
            ),
        );
        ground.stackrace(&["run", "s.toml", "--allow-commands"])
    };
    let said = study("1 s", 20);
    let all = (said.out + &said.err)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        all.contains("did not end within 1 s and was ended"),
        "{all}"
    );
    assert!(all.contains("raise the limit: limit = \"30 min\""), "{all}");
    study("30 min", 0).ended(0);
    let runs = fs::read_dir(ground.store().join("runs")).unwrap();
    let logs = runs.map(|run| fs::read_to_string(run.unwrap().path().join("log.jsonl")).unwrap());
    let logs: String = logs.collect();
    assert!(logs.contains("\"timeout\",\"1800\",\"sh\""), "{logs}");
    for wrong in ["0 s", "1.5 s", "2 d"] {
        study(wrong, 0)
            .ended(3)
            .err_has("1 s to 1 d, in whole seconds");
    }
}

pub(crate) fn a_script_that_fails_is_named_with_the_reason_in_the_verdict() {
    let ground = Ground::new();
    let line = "test 1 = {x} && mount -t tmpfs -o size=16m,mode=0700,noatime,nodev,nosuid,noexec none $STACKRACE_MOUNT";
    ground.write(
        "s.toml",
        format!(
            "title = \"t\"\n[factors]\nx = [2, 3]\n[[stack]]\nscript = {{ set-up = \"{line}\", tear-down = \"true\" }}\n\
             [[workload]]\nfiles = {{ count = 10, size-max = \"1 KiB\" }}\n[decide]\nrounds-at-most = 3\n"
        ),
    );
    let said = ground.stackrace(&["run", "s.toml", "--allow-commands"]);
    let verdict = said.out.split("\n\n").next().unwrap();
    let verdict = verdict.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        verdict.contains("failed with exit status 1: it printed nothing"),
        "{verdict}"
    );
    assert!(!verdict.contains("STACKRACE_MOUNT="), "{verdict}");
    let next = said.out.lines().filter(|line| line.starts_with("next "));
    let next: Vec<&str> = next.collect();
    assert!(
        matches!(next[..], [one] if one.ends_with("mend what made x=3 fail, then:")),
        "{}",
        said.out
    );
}

pub(crate) fn the_file_of_a_native_file_system_lies_on_the_disk_that_a_loop_device_lies_on() {
    needs::root();
    let ground = Ground::new();
    ground.write(
        "s.toml",
        "title = \"t\"\n[factors]\nby = [\"native\", \"loop\"]\n[[stack]]\nwhen = { by = \"native\" }\n\
         native = { file-system = \"ext4\", size = \"64 MiB\" }\n[[stack]]\nwhen = { by = \"loop\" }\n\
         loop = { size = \"64 MiB\" }\n[[stack]]\nwhen = { by = \"loop\" }\next4 = {}\n\
         [[workload]]\nfiles = { count = 10, size-max = \"1 KiB\" }\n[decide]\nrounds-at-most = 3\n",
    );
    ground
        .stackrace(&["run", "s.toml", "--rounds", "1"])
        .ended(0);
    let log = Log::of(&ground);
    let disks = log.all("stack-set-up").into_iter().map(|up| {
        let layers = up["layers"].as_array().unwrap().iter();
        let facts = layers.flat_map(|layer| layer["facts"].as_array().unwrap());
        let disks = facts.filter(|fact| fact["name"].as_str().unwrap().starts_with("disk "));
        disks.map(ToString::to_string).collect::<Vec<_>>()
    });
    let disks: Vec<Vec<String>> = disks.collect();
    assert!(
        matches!(&disks[..], [one, other] if one == other),
        "{disks:?}"
    );
}

pub(crate) fn a_set_up_that_does_not_end_is_named_after_ctrl_c_with_the_command_that_ends_it() {
    let ground = Ground::new();
    ground.write(
        "s.toml",
        "title = \"t\"\n[[stack]]\nscript = { set-up = \"sleep 1017\", tear-down = \"true\" }\n\
         [[workload]]\nfiles = { count = 10, size-max = \"1 KiB\" }\n[decide]\nrounds-at-most = 1\n",
    );
    let sleeps = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
        lines.filter(|line| line == b"sleep\x001017\x00").count()
    };
    let args = ["run", "s.toml", "--allow-commands"];
    let mut child = start_until(&ground, &args, |_| sleeps() == 1);
    let process = pid(&child);
    let interrupt = || rustix::process::kill_process(process, Signal::INT).unwrap();
    interrupt();
    let mut errors = child.stderr.take().unwrap();
    said_until(&mut errors, "stopping");
    let named = said_until(&mut errors, "has not ended yet");
    assert!(named.contains("sh -c sleep 1017"), "{named}");
    interrupt();
    let said = said_until(&mut errors, "\nstopped at once");
    assert!(!said.contains("stopping"), "{said}");
    // The advice works: what is typed ends the command, and `clean` has nothing to wait for.
    said_until(&mut errors, "to end it now: kill -- -");
    let group = said_until(&mut errors, "\n");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let group = Pid::from_raw(group.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::TERM).unwrap();
    while sleeps() > 0 {
        wait(10);
    }
    ground.stackrace(&["clean", "--allow-commands"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}
