//! The lab for real: `cargo test --test all -- --ignored lab::`. Needs QEMU, and the image that
//! `stackrace lab build` makes; where one is missing, each test is ignored. The guests have
//! the default system, or the one that STACKRACE_LAB_SYSTEM names. STACKRACE_KILLS names the stacks of the
//! tests of kills, where not all are wanted.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

mod added;
mod clients;
mod crash;
mod faults;
mod kills;
mod layers;
mod peers;
mod real_cuts;
mod trouble;
mod virtual_time;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::support::{Ground, Said};
use added::*;
use clients::*;
use crash::*;
use faults::*;
use kills::*;
use layers::*;
use peers::*;
use real_cuts::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stackrace::testing::{GuestsOverSsh, Kill, kill_changes, kill_standing, kills};
use stackrace_test_needs as needs;
use trouble::*;
use virtual_time::*;

/// ext4 and XFS on slow 512e disks of the lab; each round must find them empty.
const DISKS: &str = study!(
    "ext4 or XFS in the lab",
    r#"filesystem = ["ext4", "xfs"]"#,
    [
        r#"lab-disks = { size = "400 MiB", physical-sector = 4096, rate = "60 MB", requests = 400 }"#,
        r#""{filesystem}" = {}"#
    ],
    [
        r#"name = "small files"
files = { count = 50 }"#,
        r#"name = "streaming write"
sequential = { mode = "write", size = "8 MiB" }"#
    ],
    3
);

/// A loop file inside the guest.
const LOOP: &str = study!(
    "a loop device in the lab",
    r#"block-size = ["4 KiB", "64 KiB"]"#,
    [
        r#"loop = { size = "200 MiB", laid-out = "no" }"#,
        "ext4 = {}"
    ],
    [r#"random = { mode = "write", size = "4 MiB", block-size = "{block-size}", time = "2 s" }"#],
    50
);

/// A mirror becomes a raidz1, and a disk is replaced; every file is verified by the workloads.
const MIGRATION: &str = study!(
    "pools made by the workload",
    r#"content = ["random", "zero"]"#,
    [
        r#"lab-disks = { size = "256 MiB", count = 4, physical-sector = 4096 }"#,
        "bare = {}"
    ],
    [
        r#"migrate-pool = { files = 50, directories = 5, content = "{content}" }"#,
        r#"mend-pool = { topology = "raidz1", files = 50, directories = 5, content = "{content}" }"#
    ],
    1
);

/// One device and two; the options are read back from the superblock.
const BCACHEFS: &str = study!(
    "bcachefs in the lab",
    "devices = [1, 2]",
    [
        r#"lab-disks = { size = "256 MiB", count = "{devices}" }"#,
        r#"bcachefs = { replicas = "{devices}", compression = "lz4", mkfs = ["--data_checksum=xxhash"], mount = ["noatime"] }"#
    ],
    ["files = { count = 20 }"],
    1
);

/// DRBD and GFS2 on two guests, DLM between them.
const REPLICATED: &str = study!(
    "two machines in the lab",
    r#"stack = ["far", "torn", "copied", "shared"]"#,
    [
        r#"lab-disks = { size = "300 MiB" }"#,
        r#"when = { stack = "far" }
drbd = { protocol = "A", delay = "5 ms", rate = "12.5 MB", net = ["max-buffers 8000"] }"#,
        r#"when = { stack = "torn" }
drbd = { protocol = "C", state = "disconnected" }"#,
        r#"when = { stack = "copied" }
drbd = { protocol = "C", state = "resyncing", disk = ["resync-rate 1M", "c-plan-ahead 0"] }"#,
        r#"when = { stack = "shared" }
drbd = { role = "dual" }"#,
        r#"when = { stack = "far" }
ext3 = {}"#,
        r#"when = { stack = "torn" }
ext3 = {}"#,
        r#"when = { stack = "copied" }
gfs2 = {}"#,
        r#"when = { stack = "shared" }
gfs2 = { lock = "dlm", mounted-on = 2 }"#
    ],
    ["files = { count = 20, fsync = true }"],
    1
);

/// The same workloads from one machine and from both at once.
const BOTH: &str = study!(
    "one file system, one machine or two",
    "load = [1, 2]",
    [
        r#"lab-disks = { size = "300 MiB", rate = "4 MB" }"#,
        r#"drbd = { role = "dual" }"#,
        r#"gfs2 = { lock = "dlm", mounted-on = 2, load-from = "{load}" }"#
    ],
    [
        r#"name = "small files"
files = { count = 10, fsync = true }"#,
        r#"name = "streaming write"
sequential = { mode = "write", size = "2 MiB" }"#
    ],
    1
);

/// A share of what is replicated: a client and two machines for the storage.
const SERVED: &str = study!(
    "a share on replicated storage",
    r#"share = ["nfs", "smb"]"#,
    [
        r#"lab-disks = { size = "128 MiB", rate = "8 MB" }"#,
        r#"drbd = { protocol = "C", delay = "5 ms" }"#,
        "ext3 = {}",
        r#""{share}" = { delay = "15 ms" }"#
    ],
    ["files = { count = 10, fsync = true }"],
    1
);

/// Shares, served by the peer and by the same machine.
const SHARED: &str = study!(
    "shares in the lab",
    r#"server = ["peer", "same"]
share = ["nfs 3", "nfs 4", "smb"]"#,
    [
        r#"lab-disks = { size = "128 MiB" }"#,
        "ext4 = {}",
        r#"when = { share = "nfs 3" }
nfs = { version = "3", export = "async", server = "{server}" }"#,
        r#"when = { share = "nfs 4" }
nfs = { version = "4", server = "{server}" }"#,
        r#"when = { share = "smb" }
smb = { server = "{server}", options = ["strict sync = yes"] }"#
    ],
    ["files = { count = 20, fsync = true }"],
    1
);
/// Disks with a latency, in each kind of sectors; long enough for a fault.
const SLOW: &str = study!(
    "disks that take their time",
    r#"sectors = ["512e", "4Kn"]"#,
    [
        r#"when = { sectors = "512e" }
lab-disks = { size = "128 MiB", physical-sector = 4096, latency = "20 ms" }"#,
        r#"when = { sectors = "4Kn" }
lab-disks = { size = "128 MiB", logical-sector = 4096, latency = "20 ms" }"#,
        "ext4 = {}"
    ],
    [
        r#"random = { mode = "read", size = "1 MiB", block-size = "4 KiB", direct = true, time = "3 s" }"#
    ],
    1
);
/// Replicated to a machine that loses its power; long enough for that.
const FOR_TWO: &str = study!(
    "a machine that comes back",
    r#"protocol = ["A", "B", "C"]"#,
    [
        r#"lab-disks = { size = "64 MiB", latency = "20 ms" }"#,
        r#"drbd = { protocol = "{protocol}" }"#,
        "ext4 = {}"
    ],
    [
        r#"random = { mode = "read", size = "4 MiB", block-size = "4 KiB", direct = true, time = "60 s" }"#
    ],
    1
);
/// netatalk with its database in its three places, on a peer and on the same machine.
const AFP: &str = study!(
    "AFP in the lab",
    r#"server = ["peer", "same"]
cnid = ["volume", "disk", "tmpfs"]"#,
    [
        r#"lab-disks = { size = "128 MiB" }"#,
        "ext4 = {}",
        r#"when = { cnid = "volume" }
afp = { server = "{server}", options = ["ea = none"] }"#,
        r#"when = { cnid = "disk" }
afp = { server = "{server}", cnid = "disk", cnid-size = "64 MiB", cnid-requests = 200 }"#,
        r#"when = { cnid = "tmpfs" }
afp = { server = "{server}", cnid = "tmpfs", cnid-size = "16 MiB" }"#
    ],
    [
        "files = { count = 20, fsync = true }",
        "copy-tree = { files = 20, directories = 3, as-rsync = true }",
        r#"random = { mode = "mixed", size = "1 MiB", time = "1 s", verify = true }"#
    ],
    1
);

/// Every shape of md, LVM and F2FS; then of ZFS.
const ARRAYS: &str = include_str!("arrays.toml");
const WANTED: &str = include_str!("wanted.toml");
const POOLS: &str = include_str!("pools.toml");

/// How node1 asks other guests over SSH; what is done there with three of them.
const SSH: &str = include_str!("ssh.sh");
const MANY: &str = include_str!("clients.sh");
const PEERS: &str = concat!(include_str!("ssh.sh"), include_str!("peers.sh"));

/// The system of the guests.
#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
fn system() -> String {
    std::env::var("STACKRACE_LAB_SYSTEM").unwrap_or_else(|_| "debian-13".to_string())
}

/// Where images are kept. Skips the test without QEMU or without an image of the kind (`zfs`: with
/// ZFS modules; `postgresql`: with PostgreSQL).
#[expect(clippy::disallowed_methods, reason = "as the program itself looks")]
fn cache(kind: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(&path);
    if !dirs.any(|dir| dir.join("qemu-system-x86_64").exists()) {
        needs::skip("needs qemu-system-x86_64 (apt install qemu-system-x86)");
    }
    let system = system();
    let name = match kind {
        "zfs" | "postgresql" => format!("{kind}-"),
        _ => format!("{system}-"),
    };
    let listed = Ground::new().stackrace(&["lab", "list"]).out;
    // A column of systems, as wide as the longest name, and one of what was built for them.
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(system.as_str());
        rest.is_some_and(|rest| rest.starts_with("  ") && rest.trim_start().starts_with(&name))
    };
    let image = listed.lines().find(is_it);
    let Some(dir) = image.and_then(|line| line.rsplit(", ").next()) else {
        needs::skip(format!(
            "needs the lab's {kind} (stackrace lab build --system {system} --zfs --postgresql)"
        ));
    };
    Path::new(dir).parent().unwrap().to_path_buf()
}

fn log(ground: &Ground) -> Vec<Value> {
    let runs = fs::read_dir(ground.store().join("runs")).into_iter();
    let logs = runs.flatten().flatten().map(|run| run.path());
    let text = logs.map(|run| fs::read_to_string(run.join("log.jsonl")).unwrap_or_default());
    let text: String = text.collect();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

fn of_kind<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["event"] == kind).collect()
}

/// QEMU processes whose command line names this ground.
fn machines(ground: &Ground) -> Vec<i32> {
    let here = ground.path().to_str().unwrap();
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let program = line.split('\0').next().unwrap_or_default();
        program.contains("qemu-system-") && line.contains(here)
    })
    .collect()
}

/// Waits until something is so; the program under test may not end before.
fn until(program: &mut Child, what: &str, so: impl Fn() -> bool) {
    while !so() {
        if let Some(status) = program.try_wait().unwrap() {
            panic!("ended ({status}) before {what}");
        }
        pause();
    }
}

/// Starts a run, kills it as soon as its log has `lines` lines of a kind, cleans up and resumes it.
/// Nothing that was kept may change, and nothing may be left standing. The log at the end.
fn killed_and_resumed(ground: &Ground, args: &[&str], kind: &str, lines: usize) -> Vec<Value> {
    let mut command = ground.program(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, &format!("{lines} lines of {kind}"), || {
        of_kind(&log(ground), kind).len() >= lines
    });
    program.kill().unwrap();
    program.wait().unwrap();
    let before = log(ground);
    assert!(of_kind(&before, "run-ended").is_empty());
    ground.stackrace(&["clean"]).ended(0);
    ground.stackrace(&["resume"]).ended(0);
    let mut after = log(ground);
    let rest = after.split_off(before.len());
    assert_eq!(after, before, "what was kept has changed");
    after.extend(rest);
    assert!(machines(ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
    after
}

#[expect(clippy::disallowed_methods, reason = "another process has to get on")]
fn pause() {
    thread::sleep(Duration::from_millis(100));
}

fn a_study_on_disks_of_the_lab_goes_from_start_to_verdict() {
    cache("image");
    let ground = Ground::new();
    ground.write("study.toml", DISKS);
    let outside = ground.stackrace(&["run", "study.toml"]);
    assert_eq!(outside.code, Some(4), "{}", outside.err);
    assert!(outside.err.contains("--lab"), "{}", outside.err);
    let said = ground.stackrace(&["run", "study.toml", "--lab", "--system", &system()]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let log = log(&ground);
    assert_eq!(of_kind(&log, "trial").len(), 2 * 2 * 3);
    assert_eq!(of_kind(&log, "round-finished").len(), 3);
    assert_eq!(of_kind(&log, "run-ended")[0]["reason"], "rounds");
    let facts = log[0]["environment"].as_array().unwrap();
    let fact = |name: &str| facts.iter().find(|fact| fact["name"] == name);
    assert!(
        fact("lab").unwrap()["value"]
            .as_str()
            .unwrap()
            .contains("QEMU")
    );
    assert!(fact("lab boot").is_some() && fact("lab command").is_some());
    assert!(
        of_kind(&log, "warned")[0]["text"]
            .as_str()
            .unwrap()
            .contains("lab")
    );
    let raised = of_kind(&log, "stack-set-up")[0].to_string();
    assert!(raised.contains("physical sector 4096 B"), "{raised}");
    assert_eq!(ground.left(), Vec::<String>::new());
    assert!(machines(&ground).is_empty());
}

/// Two kernels, and one round more than can be done before the program is killed.
const SYSTEMS: &str = r#"
title = "two systems of the lab"
[factors]
filesystem = ["ext4"]
system = [{ label = "older", value = "debian-12" }, { label = "newer", value = "debian-13" }]
[[stack]]
lab-disks = { size = "300 MiB", rate = "60 MB" }
[[stack]]
"{filesystem}" = {}
[[workload]]
files = { count = 20 }
[[workload]]
sequential = { mode = "write", size = "4 MiB" }
[decide]
compare = "system"
rounds-at-most = 3
at-most = "30 min"
until = "never"
"#;

/// Leaves the test where one of these systems has no image.
fn systems(names: &[&str]) {
    cache("image");
    let listed = Ground::new().stackrace(&["lab", "list"]).out;
    let missing = |name: &&&str| {
        let mut lines = listed.lines();
        lines.any(|line| line.split_whitespace().next() == Some(name) && line.contains("not built"))
    };
    if let Some(name) = names.iter().find(missing) {
        needs::skip(format!("needs the image of {name}"));
    }
}

fn a_race_of_two_systems_goes_on_after_a_kill() {
    systems(&["debian-12", "debian-13"]);
    let ground = Ground::new();
    ground.write("study.toml", SYSTEMS);
    ground
        .stackrace(&["run", "study.toml"])
        .ended(3)
        .err_has("--lab");
    let log = killed_and_resumed(&ground, &["run", "study.toml", "--lab"], "trial", 5);
    // The words of the answer depend on the figures; what was compared does not.
    let report = ground.stackrace(&["report", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.ended(0).out).unwrap();
    let compared = &report["verdict"]["overall"][0];
    assert_eq!([&compared["b"], &compared["a"]], ["newer", "older"]);
    assert_eq!(of_kind(&log, "run-resumed").len(), 1);
    // Every place of the design is filled once: nothing was lost, nothing done again.
    let trials = of_kind(&log, "trial");
    let places = trials.iter().map(|trial| {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        ["round", "configuration", "workload"].map(|word| trial[word].as_u64().unwrap())
    });
    let places: std::collections::BTreeSet<_> = places.collect();
    assert_eq!((places.len(), trials.len()), (12, 12));
    let facts = log[0]["environment"].as_array().unwrap();
    let fact = |name: &str| {
        let fact = facts.iter().find(|fact| fact["name"] == name);
        fact.map_or("", |fact| fact["value"].as_str().unwrap())
    };
    assert!(fact("kernel on older").starts_with("Linux 6.1."));
    assert!(fact("kernel on newer").starts_with("Linux 6.12."));
    assert!(fact("lab").contains("QEMU"), "what is common is said once");
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}

fn two_guests_have_a_network_and_survive_what_is_done_to_them() {
    let cache = cache("image");
    let ground = Ground::new();
    let program = Path::new(env!("CARGO_BIN_EXE_stackrace"));
    stackrace::testing::two_nodes(&system(), program, &cache, ground.path()).unwrap();
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}

fn disks_take_as_long_as_declared_whatever_their_sectors() {
    cache("image");
    let (ground, raised) = one_round(SLOW, 2);
    for (raised, sectors) in raised.iter().zip(["512 B", "4096 B"]) {
        let sectors = format!("logical sector {sectors}, physical sector 4096 B");
        for words in [&*sectors, "at least 20.0 ms a request", "latency of vd"] {
            assert!(raised.contains(words), "{words}: {raised}");
        }
    }
    for trial in of_kind(&log(&ground), "trial") {
        let read = &trial["phases"][0]["operations"][0];
        let shortest = read["latency_ns_min"].as_u64().unwrap();
        assert!(shortest >= 20_000_000, "{shortest} ns: {trial}");
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_study_on_disks_of_the_lab_goes_from_start_to_verdict,
        a_race_of_two_systems_goes_on_after_a_kill,
        two_systems_of_the_user_go_from_an_image_to_a_verdict_and_on_after_a_kill,
        a_file_system_of_the_added_systems_own_goes_from_start_to_verdict,
        an_image_that_does_not_start_or_lets_no_user_in_is_refused_with_its_last_words,
        the_log_does_not_depend_on_the_number_of_jobs,
        workloads_at_the_same_time_are_measured_in_virtual_time,
        a_guest_records_an_application_and_replays_a_trace_of_this_machine,
        handed_work_keeps_its_order_and_its_results_on_drives_much_slower_and_faster,
        two_machines_in_one_kernel_have_the_line_that_was_declared,
        a_killed_run_in_virtual_time_goes_on_as_if_nothing_had_happened,
        declared_faults_happen_in_a_guest,
        systems_race_in_virtual_time_among_them_xen_and_an_older_kernel,
        the_same_seed_loses_the_same,
        a_killed_run_of_cuts_goes_on_and_loses_none_of_them,
        the_power_of_a_real_machine_is_cut_and_its_promises_are_checked,
        a_disk_that_ignores_flushes_is_found_by_cutting_its_power,
        a_postgresql_server_comes_back_after_cuts_the_same_way_each_time,
        after_any_kill_results_are_kept_and_nothing_else,
        replicated_devices_are_what_was_asked_on_two_machines,
        two_machines_load_one_file_system_at_once,
        many_clients_measure_one_nfs_server,
        a_trial_in_which_the_whole_machine_stood_still_does_not_count,
        a_shell_in_a_guest_that_is_told_to_end_leaves_no_guest,
        storage_that_stops_is_taken_away_or_is_used_up_is_named_and_nothing_is_lost,
        shares_are_served_by_a_peer_and_by_the_same_machine,
        one_stack_stands_on_two_machines_over_ssh,
        a_peer_serves_what_is_replicated_to_a_third_machine,
        netatalk_keeps_its_database_in_three_places,
        two_guests_have_a_network_and_survive_what_is_done_to_them,
        disks_take_as_long_as_declared_whatever_their_sectors,
        a_fault_of_a_peer_that_comes_back_costs_one_trial,
        an_array_that_loses_a_member_is_another_storage,
        a_pool_that_loses_a_disk_is_another_storage,
        a_server_that_goes_away_in_mid_trial_fails_it,
        a_fault_on_request_happens_and_is_on_record,
        zfs_pools_of_every_layout_can_be_made_by_hand,
        killed_before_and_after_every_command_of_a_stack_nothing_is_left,
        killed_at_every_command_of_either_machine_nothing_is_left,
        arrays_volumes_and_f2fs_stand_on_disks_of_the_lab,
        what_people_put_on_their_disks_stands_in_the_lab,
        bcachefs_stands_on_disks_of_the_lab,
        pools_datasets_and_volumes_of_zfs_stand_on_disks_of_the_lab,
        a_mirror_becomes_a_raidz1_and_a_disk_is_replaced,
    ]
}
