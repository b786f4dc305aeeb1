//! `--on HOST` for real: an sshd of the test's own on a free port of this machine, with keys and a
//! home of its own. Tests without sshd or ssh are ignored.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

pub(crate) mod added;
mod clients;
mod exchanged;
mod kills;
pub(crate) mod kubernetes;
mod mounts;
mod moved;
mod peers;
mod replayed;
mod schedulers;
mod shell;
mod taken;
mod together;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Ground, Said, tool};
use clients::*;
use exchanged::*;
use kills::*;
use mounts::*;
use moved::*;
use peers::*;
use replayed::*;
use rustix::process::{Pid, Signal, kill_process};
use schedulers::*;
use serde_json::Value;
use shell::*;
use stackrace_test_needs as needs;
use taken::*;
use together::*;

/// Two directories; only what the command line says makes it end.
const DIRECTORIES: &str = study!(
    "two directories elsewhere",
    r#"place = ["here", "there"]"#,
    [r#"dir = { path = "GROUND/{place}" }"#],
    ["files = { count = 5 }"],
    1
);

/// A loop device in the store there, for as long as it is left alone.
const LOOP: &str = study!(
    "a loop device elsewhere",
    r#"block-size = ["4 KiB", "64 KiB"]"#,
    [
        r#"loop = { size = "100 MiB", laid-out = "no" }"#,
        "ext4 = {}"
    ],
    [
        "files = { count = 5 }",
        r#"random = { mode = "write", size = "4 MiB", block-size = "{block-size}", time = "100 ms" }"#
    ],
    1000
);

/// Where Debian keeps it; an ordinary user's `PATH` leaves the directory out.
const SSHD: &str = "/usr/sbin/sshd";

/// An sshd of our own; what logs in there has the directory `home` of the ground.
struct Server {
    sshd: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// The words of an ssh that knows the server; `key` is a file of the ground.
fn ssh(ground: &Ground, key: &str) -> String {
    let here = ground.path().display();
    format!(
        "ssh -F none -i {here}/{key} -o IdentitiesOnly=yes -o IdentityAgent=none -o UserKnownHostsFile={here}/known"
    )
}

fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    free.local_addr().unwrap().port()
}

impl Server {
    /// Starts one. Skips the test where there is no sshd or where it would let this user do nothing.
    fn start(ground: &Ground) -> Self {
        if !Path::new(SSHD).exists() || !Path::new("/usr/bin/ssh").exists() {
            needs::skip("needs sshd and ssh (apt install openssh-server)");
        }
        needs::login_shell();
        // The directory it gives up its rights in; made at each start of the machine where sshd is
        // a service.
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let here = ground.path().to_str().unwrap();
        for key in ["host", "key", "other"] {
            let file = format!("{here}/{key}");
            tool(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &file],
            );
        }
        fs::copy(
            ground.path().join("key.pub"),
            ground.path().join("authorized"),
        )
        .unwrap();
        ground.make_dir("home");
        // A port that is free now may be taken when sshd binds to it.
        for _ in 0..5 {
            let port = free_port();
            ground.write(
                "sshd.conf",
                format!(
                    "Port {port}\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2\nListenAddress 127.0.0.3\nHostKey {here}/host\nAuthorizedKeysFile {here}/authorized\n\
                     StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nSetEnv HOME={here}/home\n"
                ),
            );
            let host = fs::read_to_string(ground.path().join("host.pub")).unwrap();
            ground.write(
                "known",
                format!("[127.0.0.1]:{port},[localhost]:{port} {host}"),
            );
            if let Some(sshd) = listening(ground, port) {
                return Self { sshd, port };
            }
        }
        panic!(
            "sshd does not start: {}",
            fs::read_to_string(ground.path().join("sshd.log")).unwrap()
        );
    }

    /// As `--on` is told: the user of this test, on this machine.
    fn to(&self) -> String {
        let user = tool("id", &["-un"]);
        format!("{}@127.0.0.1:{}", user.trim(), self.port)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is connected to is a process"
)]
fn listening(ground: &Ground, port: u16) -> Option<Child> {
    let [configuration, log] = ["sshd.conf", "sshd.log"].map(|name| ground.path().join(name));
    let mut sshd = Command::new(SSHD)
        .args(["-D", "-f"])
        .arg(configuration)
        .arg("-E")
        .arg(log)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if sshd.try_wait().unwrap().is_some() {
            return None;
        }
        pause();
    }
    Some(sshd)
}

#[expect(clippy::disallowed_methods, reason = "another process has to get on")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// The program with the server's key.
fn program(ground: &Ground, args: &[&str]) -> Command {
    let mut command = ground.program(args);
    command.env("STACKRACE_SSH", ssh(ground, "key"));
    command
}

fn stackrace(ground: &Ground, args: &[&str]) -> Said {
    Said::of(&program(ground, args).output().unwrap())
}

/// Every line of every run of the ground's store.
fn log(ground: &Ground) -> Vec<Value> {
    let runs = fs::read_dir(ground.store().join("runs")).into_iter();
    let logs = runs.flatten().flatten().map(|run| run.path());
    let text = logs.map(|run| fs::read_to_string(run.join("log.jsonl")).unwrap_or_default());
    let text: String = text.collect();
    // The last line may be on its way.
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn of_kind<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["event"] == kind).collect()
}

/// Copies of the program on the other side.
fn copies(ground: &Ground) -> Vec<PathBuf> {
    let copies = fs::read_dir(ground.path().join("home/.cache/stackrace/bin"));
    let copies = copies.into_iter().flatten().flatten();
    copies.map(|copy| copy.path().join("stackrace")).collect()
}

/// Processes with all of these words in their command lines, and the ground's path.
fn processes(ground: &Ground, words: &[&str]) -> Vec<i32> {
    let here = ground.path().to_str().unwrap();
    let ids = fs::read_dir("/proc").unwrap().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(here) && words.iter().all(|word| line.contains(word))
    })
    .collect()
}

/// How often something is looked at that has to come about: for ten minutes, on a busy machine.
const LOOKS_MAX: u32 = 12_000;

/// Waits until something is so.
#[track_caller]
fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if so() {
            return;
        }
        pause();
    }
    panic!("it does not come about");
}

/// A ground with two directories and the study of them, and a server.
fn with_directories() -> (Ground, Server) {
    let ground = Ground::new();
    let server = Server::start(&ground);
    ground.make_dir("here");
    ground.make_dir("there");
    let study = DIRECTORIES.replace("GROUND", ground.path().to_str().unwrap());
    ground.write("study.toml", study);
    (ground, server)
}

fn a_study_goes_from_start_to_verdict_on_another_machine() {
    let (ground, server) = with_directories();
    let to = server.to();
    let planned = stackrace(&ground, &["plan", "study.toml", "--on", &to]);
    planned.ended(0);
    assert!(planned.out.contains(&format!("on {to}")), "{}", planned.out);
    assert!(planned.out.contains("mkdir"), "{}", planned.out);
    let copied = copies(&ground);
    assert_eq!(copied.len(), 1);
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let first = inode(&copied[0]);

    let asked = ["--seed", "7", "--margin", "3 %", "--confidence", "90 %"];
    let words = ["run", "study.toml", "--at-most", "9 min", "--on", &to];
    let said = stackrace(&ground, &[&words[..], &asked].concat());
    said.ended(0);
    assert!(said.out.contains("1 of at most 1 round"), "{}", said.out);
    assert_eq!(inode(&copies(&ground)[0]), first, "it was copied again");
    let log = log(&ground);
    assert_eq!(of_kind(&log, "trial").len(), 2);
    assert_eq!(of_kind(&log, "run-ended")[0]["reason"], "rounds");
    let head = &log[0];
    assert_eq!(head["seed"], 7);
    assert_eq!(head["decide"]["margin"], 0.03);
    assert_eq!(head["decide"]["confidence"], 0.9);
    assert_eq!(head["decide"]["time_max_ns"], 540_000_000_000_u64, "{head}");
    let facts = head["environment"].as_array().unwrap();
    let over = facts.iter().find(|fact| fact["name"] == "over ssh");
    assert_eq!(over.unwrap()["value"], *to);
    assert!(stackrace(&ground, &["report", "last"]).code == Some(0));
    assert_eq!(
        ground.left().len(),
        1,
        "the copy alone: {:?}",
        ground.left()
    );

    let missing = fs::read_to_string(ground.path().join("study.toml")).unwrap();
    ground.write(
        "missing.toml",
        missing.replace("/{place}", "/nowhere-{place}"),
    );
    let refused = stackrace(&ground, &["run", "missing.toml", "--on", &to]);
    refused
        .ended(3)
        .err_has(&to)
        .err_has("nowhere-here does not exist");

    let listed = stackrace(&ground, &["clean", "--on", &to, "--list"]);
    listed.ended(0);
    assert!(
        listed.out.contains("would remove: the program's copy"),
        "{}",
        listed.out
    );
    assert_eq!(copies(&ground).len(), 1);
    stackrace(&ground, &["clean", "--on", &to]).ended(0);
    assert_eq!(ground.left(), Vec::<String>::new());
    // What cleaning itself needs there is nothing that was left.
    for more in [&[][..], &["--list"]] {
        let again = stackrace(&ground, &[&["clean", "--on", &to], more].concat());
        assert_eq!(again.ended(0).out, "nothing to clean\n");
        assert_eq!(ground.left(), Vec::<String>::new());
    }
}

fn a_machine_that_is_not_reached_is_named_with_the_words_of_ssh() {
    let ground = Ground::new();
    let server = Server::start(&ground);
    let to = server.to();
    let plan = |to: &str, ssh: &str| {
        let mut command = ground.program(&["plan", "demo", "--on", to]);
        Said::of(&command.args(["--ssh", ssh]).output().unwrap())
    };
    let known = ssh(&ground, "key");
    let closed = format!("root@127.0.0.1:{}", free_port());
    plan(&closed, &known)
        .ended(4)
        .err_has("Connection refused")
        .err_has("see that sshd runs there");
    plan("root@no-such-host.invalid", &known)
        .ended(4)
        .err_has("cannot reach root@no-such-host.invalid")
        .err_has("Could not resolve");
    plan(&to, &ssh(&ground, "other"))
        .ended(4)
        .err_has("Permission denied")
        .err_has("ssh-copy-id");
    plan(&to, &known.replace("/known", "/unknown"))
        .ended(4)
        .err_has("Host key verification failed")
        .err_has("connect once by hand");
    plan(&to, "no-such-ssh").ended(4).err_has("no-such-ssh");
    plan(&to, " ").ended(2);
    plan("--on=-oProxyCommand=true", &known).ended(2);
    assert!(copies(&ground).is_empty());
}

/// A file system in memory instead of the home there.
struct Small<'a>(&'a Ground);

impl<'a> Small<'a> {
    fn mounted(ground: &'a Ground, options: &str) -> Self {
        let home = ground.path().join("home");
        let home = home.to_str().unwrap();
        tool("mount", &["-t", "tmpfs", "-o", options, "tmpfs", home]);
        Self(ground)
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let home = self.0.path().join("home");
        tool("umount", &["-l", home.to_str().unwrap()]);
    }
}

fn a_machine_on_which_the_program_cannot_be_is_refused() {
    let ground = Ground::new();
    needs::root_and_loop_devices();
    let server = Server::start(&ground);
    let to = server.to();
    for (options, words) in [
        ("size=1m", ["cannot copy this program", "No space left"]),
        ("size=2g,noexec", ["does not run", "Permission denied"]),
    ] {
        let _home = Small::mounted(&ground, options);
        let said = stackrace(&ground, &["plan", "demo", "--on", &to]);
        said.ended(4).err_has(words[0]).err_has(words[1]);
        let home = ground.path().join("home");
        let left = tool("find", &[home.to_str().unwrap(), "-type", "f"]);
        assert_eq!(left, "", "{options}");
    }
}

fn a_damaged_copy_is_copied_again() {
    let ground = Ground::new();
    let server = Server::start(&ground);
    let to = server.to();
    stackrace(&ground, &["plan", "demo", "--on", &to]).ended(0);
    let copy = copies(&ground).remove(0);
    // It may still be in use for a moment.
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "#!/bin/sh\necho whatever\n").unwrap();
    tool("chmod", &["700", copy.to_str().unwrap()]);
    stackrace(&ground, &["plan", "demo", "--on", &to]).ended(0);
    let whole = fs::metadata(env!("CARGO_BIN_EXE_stackrace")).unwrap().len();
    assert_eq!(fs::metadata(&copy).unwrap().len(), whole);
}

fn the_machine_can_be_a_factor() {
    let (ground, server) = with_directories();
    // The same machine twice, by two names.
    let machines = [server.to(), server.to().replace("127.0.0.1", "localhost")];
    let on = ["--on", &machines[0], "--on", &machines[1]];
    let planned = stackrace(&ground, &[&["plan", "study.toml"][..], &on].concat());
    planned.ended(0);
    for machine in &machines {
        let on = format!("on {machine}\n");
        assert!(planned.out.contains(&on), "{}", planned.out);
    }
    let said = stackrace(&ground, &[&["run", "study.toml"][..], &on].concat());
    said.ended(0);
    let log = log(&ground);
    let head = &log[0];
    assert_eq!(head["factors"], serde_json::json!(["place", "host"]));
    assert_eq!(of_kind(&log, "trial").len(), 2 * 2);
    let facts = head["environment"].as_array().unwrap();
    for machine in &machines {
        let name = format!("over ssh on {machine}");
        let fact = facts.iter().find(|fact| fact["name"] == *name);
        assert_eq!(fact.unwrap()["value"], **machine, "{facts:?}");
    }
    stackrace(&ground, &[&["clean"][..], &on].concat()).ended(0);
    assert_eq!(ground.left(), Vec::<String>::new());
}

/// Killed in the middle, it goes on: every place of the design is filled once.
fn a_study_is_tried_on_two_hosts_and_goes_on_after_a_kill() {
    let ground = Ground::new();
    let server = Server::start(&ground);
    for name in ["here", "there"] {
        ground.make_dir(name);
    }
    let study = DIRECTORIES.replace("GROUND", ground.path().to_str().unwrap());
    ground.write("study.toml", study.replace("most = 1\n", "most = 20\n"));
    let to = server.to();
    let mut command = program(&ground, &["run", "study.toml", "--on", &to, "--on", "here"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    until(|| {
        assert_eq!(run.try_wait().unwrap(), None, "it has ended");
        of_kind(&log(&ground), "trial").len() >= 3
    });
    run.kill().unwrap();
    run.wait().unwrap();
    until(|| processes(&ground, WORKER).is_empty());
    let before = log(&ground);
    assert!(of_kind(&before, "run-ended").is_empty());
    stackrace(&ground, &["resume"]).ended(0);
    let log = log(&ground);
    assert_eq!(log[..before.len()], before[..], "what was kept has changed");
    let trials = of_kind(&log, "trial");
    let places = trials.iter().map(|trial| {
        assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        ["round", "configuration"].map(|word| trial[word].as_u64().unwrap())
    });
    let places: std::collections::BTreeSet<_> = places.collect();
    assert_eq!((places.len(), trials.len()), (80, 80));
    let head = &log[0];
    assert_eq!(head["factors"], serde_json::json!(["place", "host"]));
    let facts = head["environment"].as_array().unwrap();
    let names: Vec<&str> = facts.iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"kernel"), "one kernel: {names:?}");
    let over = format!("over ssh on {to}");
    assert!(names.contains(&&*over), "{names:?}");
    stackrace(&ground, &["clean", "--on", &to]).ended(0);
    stackrace(&ground, &["clean"]).ended(0);
    assert_eq!(ground.left(), Vec::<String>::new());
}

/// One configuration, measured for long enough to be stopped in the middle.
const LONG: &str = r#"
title = "stopped elsewhere"
[factors]
block-size = ["4 KiB", "8 KiB"]
[[stack]]
dir = { path = "GROUND/there" }
[[workload]]
name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = "3 s" }
[decide]
rounds-at-most = 1
at-most = "10 min"
until = "never"
"#;

/// What the run says that it does now.
fn part(ground: &Ground) -> Option<String> {
    let mut runs = fs::read_dir(ground.store().join("runs")).ok()?;
    let now = fs::read(runs.next()?.ok()?.path().join("now.json")).ok()?;
    let now: Value = serde_json::from_slice(&now).ok()?;
    Some(now["part"].as_str()?.to_owned())
}

fn a_trial_whose_worker_was_stopped_does_not_count_and_is_measured_again() {
    let ground = Ground::new();
    let server = Server::start(&ground);
    ground.make_dir("there");
    ground.write(
        "study.toml",
        LONG.replace("GROUND", ground.path().to_str().unwrap()),
    );
    let to = server.to();
    let mut command = program(&ground, &["run", "study.toml", "--on", &to]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    until(|| {
        assert_eq!(run.try_wait().unwrap(), None, "it has ended");
        part(&ground).is_some_and(|part| !["set up", "prepare", "settle"].contains(&&*part))
    });
    let mut workers = processes(&ground, WORKER);
    let ssh = processes(&ground, &["BatchMode"]);
    workers.retain(|id| !ssh.contains(id));
    assert_eq!(workers.len(), 1);
    signal(workers[0], Signal::STOP);
    for _ in 0..25 {
        pause();
    }
    signal(workers[0], Signal::CONT);
    let said = Said::of(&run.wait_with_output().unwrap());
    said.ended(0)
        .err_has("does not count: the program was stopped for")
        .err_has("it is measured again");
    let log = log(&ground);
    let trials = of_kind(&log, "trial");
    let states: Vec<&str> = trials
        .iter()
        .map(|trial| trial["ended"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["interrupted", "complete", "complete"]);
    stackrace(&ground, &["clean", "--on", &to]).ended(0);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        storage_that_is_exchanged_on_another_machine_is_out,
        storage_that_is_exchanged_where_only_a_shell_is_is_out,
        storage_that_is_exchanged_where_no_mounts_are_shown_is_out,
        storage_that_is_exchanged_under_clients_is_out,
        a_copy_that_takes_the_loop_device_elsewhere_is_out,
        disks_on_another_machine_that_are_not_at_their_path_are_not_called_gone,
        a_workers_store_that_is_not_at_its_path_is_cleaned_where_it_is,
        what_clients_made_is_not_called_gone_when_it_is_not_at_its_path,
        the_store_of_the_first_client_that_is_not_at_its_path_is_cleaned_where_it_is,
        two_runs_in_the_same_directories_on_another_machine_are_refused,
        nodes_of_a_slurm_allocation_are_clients,
        a_drained_node_goes_on_and_one_that_goes_down_ends_the_run_by_name,
        hosts_of_a_host_file_are_clients_of_open_mpi,
        clients_are_reached_before_anything_is_tried,
        clients_measure_one_storage_at_the_same_time,
        clients_that_make_no_sense_are_refused_before_anything_is_touched,
        a_directory_that_is_other_storage_on_one_client_is_refused,
        the_number_of_clients_can_be_a_factor,
        a_client_that_is_killed_ends_the_run_by_name_and_the_run_can_go_on,
        clients_end_by_themselves_when_the_coordinator_is_killed,
        a_study_goes_from_start_to_verdict_on_another_machine,
        a_replay_over_ssh_is_held_against_its_home_there,
        a_replay_is_refused_where_its_trace_is_not_and_by_clients,
        workloads_at_the_same_time_are_measured_on_another_machine,
        a_machine_that_is_not_reached_is_named_with_the_words_of_ssh,
        a_machine_on_which_the_program_cannot_be_is_refused,
        a_damaged_copy_is_copied_again,
        after_any_kill_results_are_kept_and_nothing_is_left,
        the_machine_can_be_a_factor,
        a_study_is_tried_on_two_hosts_and_goes_on_after_a_kill,
        a_trial_whose_worker_was_stopped_does_not_count_and_is_measured_again,
        peers_that_make_no_sense_are_refused_with_what_to_say,
        what_a_peer_lacks_is_said_with_its_name_before_anything_is_touched,
        what_a_dead_run_left_on_a_peer_is_removed_with_the_peer_named,
        a_shell_without_a_process_group_begins_one_or_is_refused_with_the_reason,
        a_study_runs_where_there_is_nothing_but_a_shell,
        what_a_shell_cannot_do_is_refused_before_anything_is_touched,
        a_killed_run_is_put_away_and_goes_on,
        a_program_that_is_stopped_is_noticed_over_a_shell_where_the_system_shows_it,
        a_connection_that_breaks_ends_what_ran_there_and_the_run_can_go_on,
        a_program_that_is_stopped_ends_over_there,
        two_machines_with_a_shell_alone_are_compared,
        a_file_system_is_made_by_the_machines_own_commands,
    ]
}
