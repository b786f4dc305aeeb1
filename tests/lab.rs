//! The lab for real: `cargo test --test lab -- --ignored`. Needs QEMU, and the image that
//! `stackrace lab build` makes; where one is missing, each test is ignored. The guests have
//! the default system, or the one that STACKRACE_LAB_SYSTEM names.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[expect(dead_code, reason = "the tests of whole runs use the rest")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stackrace::testing::{Kill, kill_changes, kill_standing, kills};
use stackrace_test_needs as needs;
use support::{Ground, Said};

/// ext4 and XFS on slow 512e disks of the lab; each round must find them empty.
const DISKS: &str = r#"
title = "ext4 or XFS in the lab"
[factors]
filesystem = ["ext4", "xfs"]
[[stack]]
lab-disks = { size = "400 MiB", physical-sector = 4096, rate = "60 MB", requests = 400 }
[[stack]]
"{filesystem}" = {}
[[workload]]
name = "small files"
files = { count = 50 }
[[workload]]
name = "streaming write"
sequential = { mode = "write", size = "8 MiB" }
[decide]
rounds-at-most = 3
at-most = "20 min"
until = "never"
"#;

/// A loop file inside the guest.
const LOOP: &str = r#"
title = "a loop device in the lab"
[factors]
block-size = ["4 KiB", "64 KiB"]
[[stack]]
loop = { size = "200 MiB", laid-out = "no" }
[[stack]]
ext4 = {}
[[workload]]
random = { mode = "write", size = "4 MiB", block-size = "{block-size}", time = "2 s" }
[decide]
rounds-at-most = 50
at-most = "20 min"
until = "never"
"#;

/// A mirror becomes a raidz1, and a disk is replaced; every file is verified by the workloads.
const MIGRATION: &str = r#"
title = "pools made by the workload"
[factors]
content = ["random", "zero"]
[[stack]]
lab-disks = { size = "256 MiB", count = 4, physical-sector = 4096 }
[[stack]]
bare = {}
[[workload]]
migrate-pool = { files = 50, directories = 5, content = "{content}" }
[[workload]]
mend-pool = { topology = "raidz1", files = 50, directories = 5, content = "{content}" }
[decide]
rounds-at-most = 1
at-most = "30 min"
until = "never"
"#;

/// One device and two; the options are read back from the superblock.
const BCACHEFS: &str = r#"
title = "bcachefs in the lab"
[factors]
devices = [1, 2]
[[stack]]
lab-disks = { size = "256 MiB", count = "{devices}" }
[[stack]]
bcachefs = { replicas = "{devices}", compression = "lz4", mkfs = ["--data_checksum=xxhash"], mount = ["noatime"] }
[[workload]]
files = { count = 20 }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;

/// DRBD and GFS2 on two guests, DLM between them.
const REPLICATED: &str = r#"
title = "two machines in the lab"
[factors]
stack = ["far", "torn", "copied", "shared"]
[[stack]]
lab-disks = { size = "300 MiB" }
[[stack]]
when = { stack = "far" }
drbd = { protocol = "A", delay = "5 ms", rate = "12.5 MB", net = ["max-buffers 8000"] }
[[stack]]
when = { stack = "torn" }
drbd = { protocol = "C", state = "disconnected" }
[[stack]]
when = { stack = "copied" }
drbd = { protocol = "C", state = "resyncing", disk = ["resync-rate 1M", "c-plan-ahead 0"] }
[[stack]]
when = { stack = "shared" }
drbd = { role = "dual" }
[[stack]]
when = { stack = "far" }
ext3 = {}
[[stack]]
when = { stack = "torn" }
ext3 = {}
[[stack]]
when = { stack = "copied" }
gfs2 = {}
[[stack]]
when = { stack = "shared" }
gfs2 = { lock = "dlm", mounted-on = 2 }
[[workload]]
files = { count = 20, fsync = true }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;

/// The same workloads from one machine and from both at once.
const BOTH: &str = r#"
title = "one file system, one machine or two"
[factors]
load = [1, 2]
[[stack]]
lab-disks = { size = "300 MiB", rate = "4 MB" }
[[stack]]
drbd = { role = "dual" }
[[stack]]
gfs2 = { lock = "dlm", mounted-on = 2, load-from = "{load}" }
[[workload]]
name = "small files"
files = { count = 10, fsync = true }
[[workload]]
name = "streaming write"
sequential = { mode = "write", size = "2 MiB" }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;

/// A share of what is replicated: a client and two machines for the storage.
const SERVED: &str = r#"
title = "a share on replicated storage"
[factors]
share = ["nfs", "smb"]
[[stack]]
lab-disks = { size = "128 MiB", rate = "8 MB" }
[[stack]]
drbd = { protocol = "C", delay = "5 ms" }
[[stack]]
ext3 = {}
[[stack]]
"{share}" = { delay = "15 ms" }
[[workload]]
files = { count = 10, fsync = true }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;

/// Shares, served by the peer and by the same machine.
const SHARED: &str = r#"
title = "shares in the lab"
[factors]
server = ["peer", "same"]
share = ["nfs 3", "nfs 4", "smb"]
[[stack]]
lab-disks = { size = "128 MiB" }
[[stack]]
ext4 = {}
[[stack]]
when = { share = "nfs 3" }
nfs = { version = "3", export = "async", server = "{server}" }
[[stack]]
when = { share = "nfs 4" }
nfs = { version = "4", server = "{server}" }
[[stack]]
when = { share = "smb" }
smb = { server = "{server}", options = ["strict sync = yes"] }
[[workload]]
files = { count = 20, fsync = true }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;
/// Disks with a latency, in each kind of sectors; long enough for a fault.
const SLOW: &str = r#"
title = "disks that take their time"
[factors]
sectors = ["512e", "4Kn"]
[[stack]]
when = { sectors = "512e" }
lab-disks = { size = "128 MiB", physical-sector = 4096, latency = "20 ms" }
[[stack]]
when = { sectors = "4Kn" }
lab-disks = { size = "128 MiB", logical-sector = 4096, latency = "20 ms" }
[[stack]]
ext4 = {}
[[workload]]
random = { mode = "read", size = "1 MiB", block-size = "4 KiB", direct = true, time = "3 s" }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;
/// Replicated to a machine that loses its power; long enough for that.
const FOR_TWO: &str = r#"
title = "a machine that comes back"
[factors]
protocol = ["A", "B", "C"]
[[stack]]
lab-disks = { size = "64 MiB", latency = "20 ms" }
[[stack]]
drbd = { protocol = "{protocol}" }
[[stack]]
ext4 = {}
[[workload]]
random = { mode = "read", size = "4 MiB", block-size = "4 KiB", direct = true, time = "60 s" }
[decide]
rounds-at-most = 1
at-most = "20 min"
until = "never"
"#;
/// netatalk with its database in its three places, on a peer and on the same machine.
const AFP: &str = r#"
title = "AFP in the lab"
[factors]
server = ["peer", "same"]
cnid = ["volume", "disk", "tmpfs"]
[[stack]]
lab-disks = { size = "128 MiB" }
[[stack]]
ext4 = {}
[[stack]]
when = { cnid = "volume" }
afp = { server = "{server}", options = ["ea = none"] }
[[stack]]
when = { cnid = "disk" }
afp = { server = "{server}", cnid = "disk", cnid-size = "64 MiB", cnid-requests = 200 }
[[stack]]
when = { cnid = "tmpfs" }
afp = { server = "{server}", cnid = "tmpfs", cnid-size = "16 MiB" }
[[workload]]
files = { count = 20, fsync = true }
[[workload]]
copy-tree = { files = 20, directories = 3, as-rsync = true }
[[workload]]
random = { mode = "mixed", size = "1 MiB", time = "1 s", verify = true }
[decide]
rounds-at-most = 1
at-most = "30 min"
until = "never"
"#;

/// Every shape of md, LVM and F2FS; then of ZFS.
const ARRAYS: &str = include_str!("lab/arrays.toml");
const POOLS: &str = include_str!("lab/pools.toml");

/// What makes guests machines that node1 asks over SSH; what is done there with three of them.
const SSH: &str = include_str!("lab/ssh.sh");
const PEERS: &str = concat!(include_str!("lab/ssh.sh"), include_str!("lab/peers.sh"));

/// The system of the guests.
#[expect(clippy::disallowed_methods, reason = "the test's own setting")]
fn system() -> String {
    std::env::var("STACKRACE_LAB_SYSTEM").unwrap_or_else(|_| "debian-13".to_string())
}

/// Where images are kept. Skips the test without QEMU or without an image of the kind (`zfs`: with
/// ZFS modules).
#[expect(clippy::disallowed_methods, reason = "as the program itself looks")]
fn cache(kind: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(&path);
    if !dirs.any(|dir| dir.join("qemu-system-x86_64").exists()) {
        needs::skip("needs qemu-system-x86_64 (apt install qemu-system-x86)");
    }
    let system = system();
    let begin = match kind {
        "zfs" => format!("{system}  zfs-"),
        _ => format!("{system}  {system}-"),
    };
    let listed = Ground::new().stackrace(&["lab", "list"]).out;
    let image = listed.lines().find(|line| line.starts_with(&begin));
    let Some(dir) = image.and_then(|line| line.rsplit(", ").next()) else {
        needs::skip(format!(
            "needs the lab's {kind} (stackrace lab build --system {system} --zfs)"
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

fn a_race_of_two_systems_goes_on_after_a_kill() {
    cache("image");
    let listed = Ground::new().stackrace(&["lab", "list"]).out;
    if listed.contains("not built") {
        needs::skip("needs the images of both systems");
    }
    let ground = Ground::new();
    ground.write("study.toml", SYSTEMS);
    ground
        .stackrace(&["run", "study.toml"])
        .ended(3)
        .err_has("--lab");
    let mut command = ground.program(&["run", "study.toml", "--lab"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, "five trials", || {
        of_kind(&log(&ground), "trial").len() >= 5
    });
    program.kill().unwrap();
    program.wait().unwrap();
    ground.stackrace(&["clean"]).ended(0);
    let before = log(&ground);
    assert!(of_kind(&before, "run-ended").is_empty());
    let said = ground.stackrace(&["resume"]);
    said.ended(0);
    assert!(said.out.contains("newer against older"), "{}", said.out);
    let log = log(&ground);
    assert_eq!(log[..before.len()], before[..], "what was kept has changed");
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

fn whoever_is_killed_what_was_measured_is_kept_and_nothing_else() {
    cache("image");
    for victim in ["guest", "program", "nobody"] {
        let ground = Ground::new();
        ground.write("study.toml", LOOP);
        let mut command = ground.program(&["run", "study.toml", "--lab", "--system", &system()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = command.spawn().unwrap();
        until(&mut program, "three trials", || {
            of_kind(&log(&ground), "trial").len() >= 3
        });
        let signal = |id: u32, signal: Signal| {
            kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
        };
        match victim {
            "guest" => {
                let machines = machines(&ground);
                assert_eq!(machines.len(), 1);
                signal(u32::try_from(machines[0]).unwrap(), Signal::KILL);
            }
            "program" => program.kill().unwrap(),
            _ => signal(program.id(), Signal::INT),
        }
        let status = program.wait().unwrap();
        let kept = log(&ground);
        assert!(of_kind(&kept, "trial").len() >= 3, "{victim}");
        let ended = of_kind(&kept, "run-ended");
        match victim {
            "guest" => {
                assert_eq!(status.code(), Some(5));
                assert_eq!(ended[0]["reason"], "failed");
            }
            "program" => {
                assert!(ended.is_empty());
                assert!(!ground.left().is_empty(), "its files wait for clean");
                let cleaned = ground.stackrace(&["clean"]);
                assert_eq!(cleaned.code, Some(0), "{}", cleaned.out);
            }
            _ => {
                assert_eq!(status.code(), Some(130));
                assert_eq!(ended[0]["reason"], "interrupted");
            }
        }
        assert!(machines(&ground).is_empty(), "{victim}");
        assert_eq!(ground.left(), Vec::<String>::new(), "{victim}");
        assert!(ground.stackrace(&["report", "last"]).code == Some(0));
    }
}

/// Runs a study of one round in the lab, and returns the log, what was raised as text by configuration.
fn one_round(study: &str, configurations: usize) -> (Ground, Vec<String>) {
    let ground = Ground::new();
    ground.write("study.toml", study);
    let outside = ground.stackrace(&["run", "study.toml"]);
    assert_eq!(outside.code, Some(4), "{}", outside.err);
    assert!(outside.err.contains("--lab"), "{}", outside.err);
    let said = ground.stackrace(&["run", "study.toml", "--lab", "--system", &system()]);
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    assert!(!log.is_empty(), "{}{}", said.out, said.err);
    let workloads = log[0]["workloads"].as_array().unwrap().len();
    assert_eq!(
        trials.len(),
        configurations * workloads,
        "{}{}",
        said.out,
        said.err
    );
    for trial in trials {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
    assert_eq!(of_kind(&log, "stack-torn-down").len(), configurations);
    let mut raised: Vec<(u64, String)> = of_kind(&log, "stack-set-up")
        .iter()
        .map(|raised| {
            (
                raised["configuration"].as_u64().unwrap(),
                raised.to_string(),
            )
        })
        .collect();
    raised.sort();
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
    (ground, raised.into_iter().map(|(_, text)| text).collect())
}

fn replicated_devices_are_what_was_asked_on_two_machines() {
    cache("image");
    let (_ground, raised) = one_round(REPLICATED, 4);
    for (raised, words) in raised.iter().zip([
        [
            "lab-disks on node2",
            "line to the peer",
            "8000",
            "Primary/Secondary",
        ],
        ["StandAlone", "Primary/Unknown", "ext3", "UpToDate/"],
        [
            "SyncSource",
            "UpToDate/Inconsistent",
            "lock_nolock",
            "under way",
        ],
        [
            "Primary/Primary",
            "lock_dlm",
            "2 of 2 machines",
            "Connected",
        ],
    ]) {
        for word in words {
            assert!(raised.contains(word), "{word}: {raised}");
        }
    }
}

fn two_machines_load_one_file_system_at_once() {
    cache("image");
    let (ground, raised) = one_round(BOTH, 2);
    assert!(raised[0].contains("1 of 2 machines") && raised[1].contains("2 of 2 machines"));
    let log = log(&ground);
    let heads = log[0]["workloads"].as_array().unwrap();
    for trial in of_kind(&log, "trial") {
        let heads = heads[trial["workload"].as_u64().unwrap() as usize]["metrics"].clone();
        let others = trial["others"].as_array().cloned().unwrap_or_default();
        assert_eq!(
            others.len() as u64,
            trial["configuration"].as_u64().unwrap()
        );
        let names: Vec<&str> = heads
            .as_array()
            .unwrap()
            .iter()
            .map(|head| head["name"].as_str().unwrap())
            .collect();
        let mut sums = 0;
        for (at, name) in names.iter().enumerate() {
            let Some(of_one) = name.strip_suffix(", all nodes") else {
                continue;
            };
            let of_one = names.iter().position(|name| *name == of_one).unwrap();
            let value = |list: &Value, at: usize| list[at].as_f64().unwrap();
            let each = others.iter().map(|other| value(&other["metrics"], of_one));
            let sum = value(&trial["metrics"], of_one) + each.sum::<f64>();
            assert!(
                (value(&trial["metrics"], at) / sum - 1.0).abs() < 1e-9,
                "{name}"
            );
            sums += 1;
        }
        assert!(sums > 0);
        for other in &others {
            assert_eq!(other["host"], "node2");
            assert!(other["elapsed_ns"].as_u64().unwrap() > 0);
            assert!(
                trial["notes"][0]
                    .as_str()
                    .unwrap()
                    .starts_with("node2 did the same")
            );
        }
    }
}

fn shares_are_served_by_a_peer_and_by_the_same_machine() {
    cache("image");
    let (_ground, raised) = one_round(SHARED, 6);
    for (number, raised) in raised.iter().enumerate() {
        assert_eq!(raised.contains("ext4 on node2"), number < 3, "{raised}");
        assert_eq!(raised.contains("line to the peer"), number < 3, "{raised}");
        let words = ["vers=3", "vers=4.2", "vers=3.1.1"][number % 3];
        assert!(raised.contains(words), "{words}: {raised}");
    }
}

/// The guests are used as machines like any other, from node1 by its user: one stack over two of
/// them, also where neither is the one he sits at; and what is killed is cleaned.
fn one_stack_stands_on_two_machines_over_ssh() {
    cache("image");
    let ground = Ground::new();
    let words = ["lab", "shell", "--system", &system(), "--nodes", "3", "--"];
    let said = ground.stackrace(&[&words[..], &["bash", "-c", PEERS]].concat());
    said.ended(0);
    let part = |name: &str| {
        let mut parts = said.out.split("\n== ");
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
        part.unwrap_or_else(|| panic!("no part {name}: {}{}", said.out, said.err))
    };
    for (run, peer) in [("here and node2", 2), ("node2 and node3", 3)] {
        let text = part(run);
        assert!(text.contains("1 complete round"), "{text}");
        assert!(text.contains("code 0\n"), "{text}");
        let log: Vec<Value> = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(text.contains("\ncomplete 2\n"), "{text}");
        let raised = of_kind(&log, "stack-set-up");
        assert_eq!(raised.len(), 2, "{text}");
        for raised in raised {
            let raised = raised.to_string();
            let loops = format!("loop on root@10.77.0.{peer}");
            for words in [
                &*loops,
                "UpToDate/UpToDate",
                "line to the peer\"",
                "B/s, one TCP",
            ] {
                assert!(raised.contains(words), "{words}: {raised}");
            }
        }
        let environment = log[0]["environment"].to_string();
        let over = format!("root@10.77.0.{peer}=10.77.0.{peer}");
        assert!(environment.contains(&over), "{environment}");
        assert_eq!(part(&format!("{run}, stands")).trim(), "");
    }
    for (study, stack) in [
        ("shares", ["loop on root@10.77.0.2", "nfs", "smb"]),
        ("gfs2", ["loop on root@10.77.0.2", "drbd", "gfs2"]),
    ] {
        let text = part(study);
        assert!(text.contains("code 0\n"), "{text}");
        let complete = if study == "shares" { 2 } else { 1 };
        assert!(text.contains(&format!("\ncomplete {complete}")), "{text}");
        for layer in stack {
            let raised = format!("\"layer\":\"{layer}\"");
            assert!(text.contains(&raised), "{layer}: {text}");
        }
        assert_eq!(part(&format!("{study}, stands")).trim(), "");
    }
    kills_are_cleaned(&part);
    // The one whose keeper was killed; where its peer is, is on record.
    let resumed = part("resumed");
    assert!(resumed.contains("code 0\n"), "{resumed}");
    assert_eq!(part("resumed, stands").trim(), "");
    let warned = part("line killed");
    assert!(
        warned.contains("next: stackrace clean --peer root@10.77.0.3"),
        "{warned}"
    );
}

/// What is left when somebody was killed is found on both machines, and removed by who names both.
fn kills_are_cleaned<'a>(part: &dyn Fn(&str) -> &'a str) {
    for (victim, code) in [("all", 137), ("line", 5), ("keeper", 137)] {
        let killed = part(&format!("{victim} killed"));
        assert!(killed.contains(&format!("code {code}\n")), "{killed}");
        let left = part(&format!("{victim} killed, stands"));
        // Who is not killed lowers what it can.
        assert!(left.contains(".stackrace-peer-"), "{victim}: {left}");
        let device = left.contains("role:") && left.contains("/dev/loop");
        assert!(device || victim != "all", "{left}");
        let cleaned = part(&format!("{victim} cleaned"));
        for words in [
            "add --peer root@10.77.0.3",
            "belongs to a run whose first machine is another",
            "codes 4 4 0",
        ] {
            assert!(cleaned.contains(words), "{victim}: {words}: {cleaned}");
        }
        assert_eq!(
            part(&format!("{victim} cleaned, stands")).trim(),
            "",
            "{victim}"
        );
    }
}

/// The shortest of the round trips that were measured, ms, in the order of the layers.
fn round_trips(raised: &str) -> Vec<f64> {
    let said = raised.split("shortest of 20 round trips ").skip(1);
    said.map(|text| text.split(" ms").next().unwrap().parse().unwrap())
        .collect()
}

fn a_peer_serves_what_is_replicated_to_a_third_machine() {
    cache("image");
    let (_ground, raised) = one_round(SERVED, 2);
    for raised in &raised {
        for words in [
            "lab-disks on node2",
            "lab-disks on node3",
            "drbd on node2",
            "ext3 on node2",
            "Primary/Secondary",
        ] {
            assert!(raised.contains(words), "{words}: {raised}");
        }
        // Of the line between the servers, then of that to the client: each has its own delay.
        let [servers, client] = round_trips(raised)[..] else {
            panic!("two lines are measured: {raised}");
        };
        assert!(servers >= 10.0, "{servers} ms: {raised}");
        assert!(client >= 30.0, "{client} ms: {raised}");
    }
}

fn netatalk_keeps_its_database_in_three_places() {
    cache("image");
    if system() == "debian-12" {
        needs::skip("Debian 12 has no netatalk");
    }
    let (_ground, raised) = one_round(AFP, 6);
    for (number, raised) in raised.iter().enumerate() {
        assert_eq!(raised.contains("ext4 on node2"), number < 3, "{raised}");
        assert_eq!(raised.contains("line to the peer"), number < 3, "{raised}");
        // The words of a fact, which say what was seen.
        let seen = raised.split("CNID database in").nth(1).unwrap();
        let kind = ["ext4 on /dev/", "ext4 on /dev/", "tmpfs on tmpfs"][number % 3];
        let seen = &seen[..seen.len().min(60)];
        assert!(seen.contains(kind), "{kind}: {seen}");
    }
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

/// Faults on request that are on record.
fn faults(log: &[Value]) -> Vec<&str> {
    let warned = of_kind(log, "warned").into_iter();
    warned
        .filter_map(|warned| warned["text"].as_str()?.strip_prefix("fault on request: "))
        .collect()
}

/// The trial that another machine was missing from fails; the rest of the round has it again.
fn a_fault_of_a_peer_that_comes_back_costs_one_trial() {
    cache("image");
    let ground = Ground::new();
    ground.write("study.toml", FOR_TWO);
    let mut command = ground.program(&["run", "study.toml", "--lab", "--system", &system()]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, "a stack stands", || {
        !of_kind(&log(&ground), "stack-set-up").is_empty()
    });
    for what in ["cut", "on"] {
        let said = ground.stackrace(&["lab", "fault", "power", "2", what]);
        assert_eq!(said.code, Some(0), "{}", said.err);
    }
    let status = program.wait().unwrap();
    let log = log(&ground);
    let ends: Vec<&Value> = of_kind(&log, "trial")
        .iter()
        .map(|trial| &trial["ended"])
        .collect();
    assert_eq!(ends.len(), 3);
    let why = ends[0]["error"].as_str().unwrap_or_default();
    assert!(why.starts_with("node2: "), "{}", ends[0]);
    assert_eq!(status.code(), Some(5));
    for end in &ends[1..] {
        assert_eq!(end["state"], "complete", "{end}");
    }
    assert_eq!(
        of_kind(&log, "stack-torn-down").len(),
        3,
        "all of it is gone"
    );
    let [cut, on] = faults(&log)[..] else {
        panic!("{:?}", faults(&log));
    };
    assert_eq!((cut, on), ("node2 lost its power", "node2 has power again"));
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}

/// What a run meets is on its record, and a machine can be asked while it runs.
fn a_fault_on_request_happens_and_is_on_record() {
    cache("image");
    let ground = Ground::new();
    let none = ground.stackrace(&["lab", "fault", "power", "1", "cut"]);
    assert_eq!(none.code, Some(4), "{}", none.err);
    assert!(
        none.err.contains("no machine of the lab runs"),
        "{}",
        none.err
    );
    let study = SLOW.replace("\"3 s\"", "\"600 s\"");
    ground.write("study.toml", &study);
    let mut command = ground.program(&["run", "study.toml", "--lab"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().unwrap();
    until(&mut program, "a stack stands", || {
        !of_kind(&log(&ground), "stack-set-up").is_empty()
    });
    let wrong = ground.stackrace(&["lab", "fault", "disk", "1", "disk-0", "fail"]);
    assert_eq!(wrong.code, Some(4), "{}", wrong.err);
    let serials: Vec<&str> = wrong.err.split([' ', ',', '\n']).collect();
    let serials = serials
        .iter()
        .filter(|word| word.starts_with("disk-") && word.len() > 8);
    let serials: Vec<&&str> = serials.collect();
    assert_eq!(serials.len(), 2, "{}", wrong.err);
    for serial in serials {
        let said = ground.stackrace(&["lab", "fault", "disk", "1", serial, "fail"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.contains("fails from now on"), "{}", said.out);
    }
    until(&mut program, "the trial failed", || {
        of_kind(&log(&ground), "trial")
            .iter()
            .any(|trial| trial["ended"]["state"] == "failed")
    });
    let alone = ground.stackrace(&["lab", "fault", "link", "1", "cut"]);
    assert!(alone.err.contains("no network"), "{}", alone.err);
    let gone = ground.stackrace(&["lab", "fault", "power", "1", "cut"]);
    assert_eq!(gone.code, Some(0), "{}", gone.err);
    assert_eq!(program.wait().unwrap().code(), Some(5));
    let log = log(&ground);
    let told = faults(&log);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("every request to disk-"), "{told:?}");
    assert_eq!(told[2], "node1 lost its power");
    assert!(machines(&ground).is_empty());
    assert_eq!(ground.left(), Vec::<String>::new());
}

fn zfs_pools_of_every_layout_can_be_made_by_hand() {
    cache("zfs");
    let ground = Ground::new();
    let script = "set -e; modprobe zfs; disks=$(grep -l disk- /sys/block/*/serial | cut -d/ -f4); \
        set -- $disks; \
        for layout in \"\" mirror raidz; do \
        zpool create -f -o ashift=12 pool $layout /dev/$1 /dev/$2 /dev/$3; \
        dd if=/dev/urandom of=/pool/file bs=1M count=8 2>/dev/null; zpool scrub -w pool; \
        zpool status -x pool; zpool destroy pool; done";
    let disk = ["--disk", "256 MiB"];
    let mut command = ground.program(&[]);
    command
        .args(["lab", "shell", "--system", &system()])
        .args(disk)
        .args(disk)
        .args(disk);
    let said = Said::of(&command.args(["--", "sh", "-c", script]).output().unwrap());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert_eq!(said.out.matches("is healthy").count(), 3, "{}", said.out);
}

/// In a guest that the program takes for any machine: kill -9 before and after every command by which
/// a stack is raised, used and lowered.
fn killed_before_and_after_every_command_of_a_stack_nothing_is_left() {
    cache("zfs");
    killed_at_every_command(&[], kills(1, &system()));
}

/// The same of stacks over two machines: at the first one's commands everything is killed there, at the
/// peer's the program there.
fn killed_at_every_command_of_either_machine_nothing_is_left() {
    cache("image");
    killed_at_every_command(&["--peer", "root@10.77.0.2"], kills(2, &system()));
}

/// One by one takes hours under emulation: two at a time, in fresh guests for each stack.
#[expect(clippy::print_stderr, reason = "what is done is said at once")]
fn killed_at_every_command(peer: &[&str], stacks: Vec<Kill>) {
    let at_stack = |stack: &Kill| {
        let ground = Ground::new();
        let mut command = ground.program(&["lab", "shell", "--system", &system()]);
        // In a guest, /tmp is memory.
        let base = "/tmp/kills";
        let kills = include_str!("lab/kills.sh");
        let declared = format!(
            "CHANGES='{}'\nSTANDING=$(cat <<'END'\n{}END\n)\n",
            kill_changes(),
            kill_standing()
        );
        let script = match peer.is_empty() {
            true => format!("{declared}{kills}"),
            false => format!("SHIMS={base}/shims\n{SSH}{declared}{kills}"),
        };
        if !peer.is_empty() {
            command.args(["--nodes", "2"]);
        }
        command.args(["--memory", "1536 MiB", "--", "bash", "-c", &script]);
        command.args(["kills.sh", "/kit/stackrace", base]);
        Said::of(
            &command
                .args(peer)
                .args([stack.name, &stack.toml])
                .output()
                .unwrap(),
        )
    };
    let left = Mutex::new(stacks);
    let failed = Mutex::new(Vec::new());
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some(stack) = { left.lock().unwrap().pop() } {
                    let said = at_stack(&stack);
                    eprint!("{}", said.out);
                    if said.code != Some(0) || !said.out.contains(", nothing was left") {
                        let said = format!("{}: {}{}", stack.name, said.out, said.err);
                        failed.lock().unwrap().push(said);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.concat());
}

/// Runs a study in the lab: each configuration must be raised, described, used and lowered.
fn every_configuration(study: &str, memory: &str, described: &[&str]) {
    let ground = Ground::new();
    ground.write("study.toml", study);
    let said = ground.stackrace(&[
        "run",
        "study.toml",
        "--lab",
        "--system",
        &system(),
        "--memory",
        memory,
    ]);
    let log = log(&ground);
    for trial in of_kind(&log, "trial") {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
    }
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let configurations = log[0]["configurations"].as_array().unwrap().len();
    let workloads = log[0]["workloads"].as_array().unwrap().len();
    let rounds = of_kind(&log, "round-finished").len();
    assert!(rounds > 0);
    for (kind, count) in [
        ("stack-set-up", configurations * rounds),
        ("stack-torn-down", configurations * rounds),
        ("trial", configurations * workloads * rounds),
    ] {
        assert_eq!(of_kind(&log, kind).len(), count, "{kind}");
    }
    let raised: Vec<String> = of_kind(&log, "stack-set-up")
        .iter()
        .map(|event| event.to_string())
        .collect();
    for words in described {
        assert!(raised.iter().any(|one| one.contains(words)), "{words}");
    }
    assert_eq!(ground.left(), Vec::<String>::new());
}

fn arrays_volumes_and_f2fs_stand_on_disks_of_the_lab() {
    cache("image");
    every_configuration(ARRAYS, "512 MiB", &["raid10", "thin-pool", "extra_attr"]);
}

fn bcachefs_stands_on_disks_of_the_lab() {
    if system() == "debian-12" {
        needs::skip("the kernel of Debian 12 has no bcachefs");
    }
    cache("image");
    let words = ["\"data_replicas\",\"value\":\"2\"", "xxhash", "lz4"];
    every_configuration(BCACHEFS, "512 MiB", &words);
}

fn pools_datasets_and_volumes_of_zfs_stand_on_disks_of_the_lab() {
    cache("zfs");
    every_configuration(
        POOLS,
        "1280 MiB",
        &["raidz3", "draid2", "gzip-9", "special"],
    );
}

fn a_mirror_becomes_a_raidz1_and_a_disk_is_replaced() {
    cache("zfs");
    every_configuration(MIGRATION, "1280 MiB", &["bare"]);
}

fn main() -> ExitCode {
    needs::run_if_asked(
        "starts virtual machines: cargo test --test lab -- --ignored",
        needs::tests![
            a_study_on_disks_of_the_lab_goes_from_start_to_verdict,
            a_race_of_two_systems_goes_on_after_a_kill,
            whoever_is_killed_what_was_measured_is_kept_and_nothing_else,
            replicated_devices_are_what_was_asked_on_two_machines,
            two_machines_load_one_file_system_at_once,
            shares_are_served_by_a_peer_and_by_the_same_machine,
            one_stack_stands_on_two_machines_over_ssh,
            a_peer_serves_what_is_replicated_to_a_third_machine,
            netatalk_keeps_its_database_in_three_places,
            two_guests_have_a_network_and_survive_what_is_done_to_them,
            disks_take_as_long_as_declared_whatever_their_sectors,
            a_fault_of_a_peer_that_comes_back_costs_one_trial,
            a_fault_on_request_happens_and_is_on_record,
            zfs_pools_of_every_layout_can_be_made_by_hand,
            killed_before_and_after_every_command_of_a_stack_nothing_is_left,
            killed_at_every_command_of_either_machine_nothing_is_left,
            arrays_volumes_and_f2fs_stand_on_disks_of_the_lab,
            bcachefs_stands_on_disks_of_the_lab,
            pools_datasets_and_volumes_of_zfs_stand_on_disks_of_the_lab,
            a_mirror_becomes_a_raidz1_and_a_disk_is_replaced,
        ],
    )
}
