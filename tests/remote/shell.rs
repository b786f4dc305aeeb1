//! `--agent none`: an sshd whose world is BusyBox in a root directory of its own, without `/proc`, as a
//! system that nothing is known of.

use super::*;
use crate::support::quietly;
use std::os::unix::fs::symlink;

/// A program that takes longer than the clock there needs; BusyBox counts in steps of 10 ms.
const COMMANDS: &str = r#"
title = "on a machine with nothing but a shell"
[factors]
place = ["a", "b"]
[[stack]]
dir = { path = "/srv/{place}" }
[[workload]]
name = "write"
[workload.command]
prepare = "echo prepared > before"
run = "cat before && dd if=/dev/zero of=f bs=65536 count=8 2>/dev/null && sleep 1.1 && echo \"rate: 5.5 $STACKRACE_DIR\""
cleanup = "rm -f f"
metrics = ["rate=rate: ([0-9.]+)"]
units = ["MB/s"]
[decide]
compare = "place"
rounds-at-most = 3
until = "never"
"#;

/// The world of BusyBox, and an sshd that lets nothing else be done.
pub(crate) fn world() -> (Ground, Server, PathBuf) {
    needs::root();
    let busybox = needs::tool("busybox");
    let ground = Ground::new();
    let world = ground.make_dir("world");
    for directory in ["bin", "tmp", "dev", "srv/a", "srv/b"] {
        fs::create_dir_all(world.join(directory)).unwrap();
    }
    fs::copy(busybox, world.join("bin/busybox")).unwrap();
    let applets = tool("busybox", &["--list"]);
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", world.join("bin").join(applet)).unwrap();
    }
    let inside = world.to_str().unwrap().to_owned();
    let devices = format!(
        "mknod {inside}/dev/null c 1 3 && mknod {inside}/dev/zero c 1 5 && chmod 666 {inside}/dev/* && chmod 1777 {inside}/tmp"
    );
    tool("sh", &["-c", &devices]);
    if fs::write(world.join("dev/null"), "").is_err() {
        needs::skip("needs device files (a file system mounted nodev has none)");
    }
    let server = Server::start(&ground);
    let key = fs::read_to_string(ground.path().join("key.pub")).unwrap();
    let line = format!(
        "command=\"exec /usr/sbin/chroot {inside} /bin/sh -c \\\"$SSH_ORIGINAL_COMMAND\\\"\" {key}"
    );
    ground.write("authorized", line);
    (ground, server, world)
}

/// Everything of ours that is in the world.
fn left(world: &Path) -> Vec<String> {
    let found = tool("find", &[world.to_str().unwrap(), "-name", ".stackrace*"]);
    found.lines().map(str::to_owned).collect()
}

pub(super) fn a_study_runs_where_there_is_nothing_but_a_shell() {
    let (ground, server, world) = world();
    let study = ground.write("s.toml", COMMANDS);
    let study = study.to_str().unwrap();
    let to = server.to();
    let there = ["--on", &to, "--agent", "none"];
    let with = |words: &[&str]| stackrace(&ground, &[words, &there].concat());

    // What it would do, by the system's own commands.
    let plan = with(&["plan", study, "--time", "7 h"]);
    plan.ended(0);
    assert!(plan.out.contains("at most 7 h 00 min"), "{}", plan.out);
    assert!(
        plan.out.contains("$ mkdir /srv/a/.stackrace-"),
        "{}",
        plan.out
    );
    assert!(
        plan.out.contains("time -p there, in steps of 10.0 ms"),
        "{}",
        plan.out
    );

    // Commands of a study run nowhere without permission.
    with(&["run", study]).ended(3).err_has("--allow-commands");

    let run = with(&["run", study, "--allow-commands"]);
    run.ended(0);
    let log = log(&ground);
    let trials: Vec<&Value> = of_kind(&log, "trial");
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert_eq!(trial["metrics"][0], 5.5, "{trial}");
        // Above what the program slept: in its own directory, and timed there.
        assert!(trial["metrics"][1].as_f64().unwrap() >= 1.1, "{trial}");
        // What cannot be observed there is not invented.
        assert!(
            trial["metrics"][4].is_null()
                && trial["counted"]["devices"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
        );
    }
    let head = of_kind(&log, "run-started")[0].to_string();
    for said in [
        "not observed there",
        "in steps of 10.0 ms",
        "none: every command",
        // This world has no /proc.
        "a program that is stopped for a while",
    ] {
        assert!(head.contains(said), "{said}: {head}");
    }
    let set_up = of_kind(&log, "stack-set-up")[0].to_string();
    assert!(set_up.contains("not told by the system"), "{set_up}");
    let report = stackrace(&ground, &["report", "--all"]);
    let report = if report.code == Some(0) {
        report
    } else {
        stackrace(&ground, &["report"])
    };
    assert!(
        report.out.contains("without this program there")
            || report.out.contains("over its own shell"),
        "{}",
        report.out
    );
    with(&["clean"]).ended(0);
    assert_eq!(left(&world), [""; 0]);
}

/// dropbear, on routers and storage boxes, starts no session for a command without a terminal.
pub(super) fn a_shell_without_a_process_group_begins_one_or_is_refused_with_the_reason() {
    let (ground, server, world) = world();
    let inside = world.to_str().unwrap();
    let key = fs::read_to_string(ground.path().join("key.pub")).unwrap();
    // A child of the shell that sshd starts, in that one's group.
    let line = format!(
        "command=\"/usr/sbin/chroot {inside} /bin/sh -c \\\"$SSH_ORIGINAL_COMMAND\\\"; exit $?\" {key}"
    );
    ground.write("authorized", line);
    let study = ground.write("s.toml", COMMANDS);
    let to = server.to();
    let words = run_over_shell(study.to_str().unwrap(), &to);
    stackrace(&ground, &words).ended(0);
    assert_eq!(of_kind(&log(&ground), "trial").len(), 6);
    stackrace(&ground, &["clean", "--on", &to, "--agent", "none"]).ended(0);
    assert_eq!(left(&world), [""; 0]);

    fs::remove_file(world.join("bin/setsid")).unwrap();
    let refused = stackrace(&ground, &words);
    refused.ended(4).err_has("process group of its own");
    // The command of the advice is tried as it stands.
    let advice = refused.err.split("alone: ").nth(1).unwrap();
    let by_hand = advice
        .split("; where")
        .next()
        .unwrap()
        .replace("\n        ", " ");
    let said = quietly("sh", &["-c", &by_hand]);
    assert_eq!(said.stdout, b"", "{by_hand}");
    assert_eq!(left(&world), [""; 0]);
}

pub(super) fn what_a_shell_cannot_do_is_refused_before_anything_is_touched() {
    let (ground, server, world) = world();
    let to = server.to();
    let run = |text: &str| {
        let study = ground.write("s.toml", text);
        let words = run_over_shell(study.to_str().unwrap(), &to);
        stackrace(&ground, &words)
    };
    let engine = COMMANDS.split("[[workload]]").next().unwrap().to_owned()
        + "[[workload]]\nfiles = { count = 5 }\n[decide]\nrounds-at-most = 1\n";
    run(&engine)
        .ended(3)
        .err_has("the workload files (files) needs this program there");
    let zfs = COMMANDS.replace(
        "dir = { path = \"/srv/{place}\" }",
        "native = { file-system = \"zfs\", size = \"64 MiB\", directory = \"/srv/{place}\" }",
    );
    run(&zfs).err_has("zpool is not installed");
    // A machine without /dev/null says so, and not that it has no shell.
    let null = world.join("dev/null");
    fs::rename(&null, world.join("dev/away")).unwrap();
    run(COMMANDS).err_has("has no /dev/null");
    fs::rename(world.join("dev/away"), &null).unwrap();
    // What takes the outputs away is the study's, and not a connection that broke.
    let greedy = COMMANDS.replace("sleep 1.1", "rm -r /tmp/.stackrace-*");
    run(&greedy).err_has("what the program printed is gone from /tmp/.stackrace-");
    let lost = COMMANDS.replace("echo prepared > before", "rm -r $STACKRACE_DIR");
    run(&lost).err_has("is not there, or cannot be entered");
    // Too short for the clock there: a failed trial, not a figure.
    let short = COMMANDS
        .replace("sleep 1.1", "true")
        .replace("rate: 5.5", "rate: 6");
    let said = run(&short);
    said.err_has("the clock there counts in steps of 10.0 ms");
    let words = ["run", "s.toml", "--agent", "none", "--allow-commands"];
    stackrace(&ground, &words)
        .ended(2)
        .err_has("--agent none is for other machines");
    assert_eq!(left(&world), [""; 0]);
}

/// Nothing in a study is interpreted on the way: quotes, dollars and line breaks arrive as they are.
pub(super) fn a_killed_run_is_put_away_and_goes_on() {
    let (ground, server, world) = world();
    let to = server.to();
    let odd = "/srv/it's $(touch /srv/broken) `x`";
    fs::create_dir_all(world.join(&odd[1..])).unwrap();
    let text = COMMANDS
        .replace(
            "place = [\"a\", \"b\"]",
            &format!("place = [\"/srv/a\", {odd:?}]"),
        )
        .replace("path = \"/srv/{place}\"", "path = \"{place}\"")
        .replace("sleep 1.1", "(sleep 300 & echo $! > /srv/pid) && sleep 1.4");
    let study = ground.write("s.toml", text);
    let study = study.to_str().unwrap();
    let words = run_over_shell(study, &to);
    let mut running = program(&ground, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // In the second round at least.
    until(|| trials_until_now(&ground) >= 3);
    until(|| left(&world).len() > 1);
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(!world.join("srv/broken").exists());
    assert_ne!(left(&world), [""; 0]);
    // Here it is told where something is left.
    let here = stackrace(&ground, &["clean"]);
    assert!(
        here.out
            .contains(&format!("stackrace clean --on {to} --agent none")),
        "{}",
        here.out
    );
    // Another machine that answers to the name has nothing of it, and the journal stays.
    fs::create_dir_all(world.join("etc")).unwrap();
    let id = world.join("etc/machine-id");
    fs::write(&id, "0123456789abcdef0123456789abcdef\n").unwrap();
    let before = left(&world);
    let another = stackrace(&ground, &["clean", "--on", &to, "--agent", "none"]);
    let said = format!("{}{}", another.out, another.err);
    assert!(said.contains("is another machine now"), "{said}");
    assert_eq!(left(&world), before);
    fs::remove_file(&id).unwrap();
    stackrace(&ground, &["resume", "--allow-commands"]).ended(0);
    assert_eq!(of_kind(&log(&ground), "run-ended").len(), 1);
    stackrace(&ground, &["clean", "--on", &to, "--agent", "none"]).ended(0);
    assert_eq!(left(&world), [""; 0]);
    // What a program left running has ended with it.
    let pid = fs::read_to_string(world.join("srv/pid")).unwrap();
    until(|| !Path::new("/proc").join(pid.trim()).exists());
}

/// Trials that are on record; the run may not be there yet.
fn trials_until_now(ground: &Ground) -> usize {
    match ground.store().join("runs").is_dir() {
        true => of_kind(&log(ground), "trial").len(),
        false => 0,
    }
}

/// The words that run a study on a machine without this program there.
fn run_over_shell<'a>(study: &'a str, to: &'a str) -> [&'a str; 7] {
    [
        "run",
        study,
        "--on",
        to,
        "--agent",
        "none",
        "--allow-commands",
    ]
}

/// A command that takes long the first time; `go` in the storage makes it short.
fn long(ground: &Ground, server: &Server) -> String {
    let wait = format!(
        "echo begun >&2; if [ -f /srv/go ]; then sleep 1.1; else sleep {}; fi",
        server.port
    );
    let text = COMMANDS
        .replace("sleep 1.1", &wait)
        .replace("most = 3", "most = 1");
    let study = ground.write("long.toml", text);
    study.to_str().unwrap().to_owned()
}

/// Processes with this in their command line that are no ssh of this side.
fn there(words: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is = |id: &i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(words) && !line.contains("BatchMode")
    };
    ids.filter(is).collect()
}

/// What a measured command of [`long`] shows as, once it runs.
fn begun(server: &Server) -> String {
    let sleeping = format!("sleep {}", server.port);
    until(|| there(&sleeping).iter().any(|id| is_alone(*id, &sleeping)));
    sleeping
}

/// Whether a process is this command, and not a shell with it among its words.
fn is_alone(id: i32, command: &str) -> bool {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim_end() == command
}

/// The journals of such runs that are kept on this side.
fn journals(ground: &Ground) -> usize {
    let kept = fs::read_dir(ground.store().join("shells"));
    kept.map_or(0, Iterator::count)
}

/// What is measured when the connection breaks does not count; nothing of it goes on there.
pub(super) fn a_connection_that_breaks_ends_what_ran_there_and_the_run_can_go_on() {
    let (ground, server, world) = world();
    let to = server.to();
    let study = long(&ground, &server);
    let words = run_over_shell(&study, &to);
    let mut running = program(&ground, &words);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = running.spawn().unwrap();
    let sleeping = begun(&server);
    // The sshd of that one connection: the parent of the shell that measures.
    let work = left(&world).into_iter().find(|path| path.contains("/tmp/"));
    let work = work.unwrap().rsplit('/').next().unwrap().to_owned();
    let shells = there(&format!("stackrace-works-in-{work}"));
    let parents = shells.iter().map(|id| parent(*id)).collect::<Vec<_>>();
    let session = parents.iter().find(|id| !shells.contains(id)).unwrap();
    signal(*session, Signal::KILL);
    let said = Said::of(&running.wait_with_output().unwrap());
    said.err_has(&to).err_has("the connection ended");
    until(|| there(&sleeping).is_empty());
    assert_eq!(left(&world), [""; 0]);
    assert_eq!(journals(&ground), 0);
    let before = log(&ground);
    let trial = of_kind(&before, "trial")[0].to_string();
    assert!(
        trial.contains("interrupted") && trial.contains("the connection ended"),
        "{trial}"
    );
    fs::write(world.join("srv/go"), "").unwrap();
    stackrace(&ground, &["resume", "--allow-commands"]).ended(0);
    let log = log(&ground);
    let trials = of_kind(&log, "trial").into_iter();
    let complete = trials.filter(|trial| trial["ended"]["state"] == "complete");
    assert_eq!(complete.count(), 2);
    assert_eq!(left(&world), [""; 0]);
}

/// The number of a process's parent.
fn parent(id: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.unwrap().trim().parse().unwrap()
}

/// However a program is stopped, it ends over there, with what it began.
pub(super) fn a_program_that_is_stopped_ends_over_there() {
    let (ground, server, world) = world();
    let to = server.to();
    let study = long(&ground, &server);
    let run = |study: &str| {
        let words = run_over_shell(study, &to);
        let mut command = program(&ground, &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // Ctrl-C.
    let running = run(&study);
    let sleeping = begun(&server);
    signal(i32::try_from(running.id()).unwrap(), Signal::INT);
    let said = Said::of(&running.wait_with_output().unwrap());
    assert!(said.out.contains("interrupted"), "{}{}", said.out, said.err);
    assert!(there(&sleeping).is_empty());
    assert_eq!((left(&world), journals(&ground)), (Vec::new(), 0));
    // A time that is over.
    let text = fs::read_to_string(&study).unwrap();
    let text = text.replace("cleanup =", "time-limit = \"1 s\"\ncleanup =");
    let limited = ground.write("limited.toml", text);
    let said = run(limited.to_str().unwrap()).wait_with_output().unwrap();
    Said::of(&said).err_has(
        "did not end within 1 s and was ended: allow more (time-limit in a study, --trial-time of compare); it said last: begun",
    );
    assert!(there(&sleeping).is_empty());
    assert_eq!((left(&world), journals(&ground)), (Vec::new(), 0));
    // Killed: what it made there stays until `clean`.
    let mut running = run(&study);
    begun(&server);
    running.kill().unwrap();
    running.wait().unwrap();
    until(|| there(&sleeping).is_empty());
    let clean = ["clean", "--on", &to, "--agent", "none"];
    let listed = stackrace(&ground, &[&clean[..], &["--list"]].concat());
    assert!(listed.out.contains(".stackrace-"), "{}", listed.out);
    assert_ne!(left(&world), [""; 0]);
    stackrace(&ground, &clean).ended(0);
    assert_eq!((left(&world), journals(&ground)), (Vec::new(), 0));
}

pub(super) fn two_machines_with_a_shell_alone_are_compared() {
    let (ground, server, world) = world();
    let study = ground.write("s.toml", COMMANDS.replace("most = 3", "most = 1"));
    // The same machine twice, by two names.
    let machines = [server.to(), server.to().replace("127.0.0.1", "localhost")];
    let on = [
        "--on",
        &machines[0],
        "--on",
        &machines[1],
        "--agent",
        "none",
    ];
    let run = ["run", study.to_str().unwrap(), "--allow-commands"];
    stackrace(&ground, &[&run[..], &on].concat()).ended(0);
    let log = log(&ground);
    assert_eq!(log[0]["factors"], serde_json::json!(["place", "host"]));
    assert_eq!(of_kind(&log, "trial").len(), 2 * 2);
    let facts = log[0]["environment"].to_string();
    assert!(facts.contains("none: every command"), "{facts}");
    assert_eq!((left(&world), journals(&ground)), (Vec::new(), 0));
}

/// Layers that the machine's own commands make; two sizes of each.
const MADE_THERE: &str = r#"
title = "file systems by the machine's own commands"
[factors]
size = ["32 MiB", "64 MiB"]
[[stack]]
LAYER
[[workload]]
[workload.command]
run = "dd if=/dev/zero of=f bs=65536 count=16 2>/dev/null && sleep 0.2"
[decide]
rounds-at-most = 1
until = "never"
"#;

/// A Linux with all its tools, and nothing of this program on it.
pub(super) fn a_file_system_is_made_by_the_machines_own_commands() {
    needs::root_and_loop_devices();
    needs::tool("mkfs.ext4");
    let ground = Ground::new();
    let server = Server::start(&ground);
    let to = server.to();
    let directory = ground.make_dir("there");
    let native = format!(
        "native = {{ file-system = \"ext4\", size = \"{{size}}\", directory = \"{}\" }}",
        directory.display()
    );
    let script = r#"[stack.script]
set-up = "mount -t tmpfs -o size=64m none $STACKRACE_MOUNT"
tear-down = "! mountpoint -q $STACKRACE_MOUNT || umount $STACKRACE_MOUNT"
describe = "echo asked for: {size}""#;
    for (layer, kind) in [(&*native, "ext4"), (script, "asked for")] {
        let study = ground.write("made.toml", MADE_THERE.replace("LAYER", layer));
        let study = study.to_str().unwrap();
        let words = run_over_shell(study, &to);
        stackrace(&ground, &words).ended(0);
        let log = log(&ground);
        // The runs are listed in no order.
        let set_up = of_kind(&log, "stack-set-up");
        assert!(
            set_up.iter().any(|line| line.to_string().contains(kind)),
            "{set_up:?}"
        );
        for trial in of_kind(&log, "trial") {
            assert_eq!(trial["ended"]["state"], "complete", "{trial}");
        }
        // Far below what the oldest systems take.
        let told = of_kind(&log, "command");
        let told: Vec<String> = told.iter().map(|line| line.to_string()).collect();
        let words = told.iter().flat_map(|line| line.split(['"', ' ', '\'']));
        let ours: Vec<&str> = words
            .filter(|word| word.starts_with('/') && word.ends_with("-mnt"))
            .collect();
        assert!(
            !ours.is_empty() && ours.iter().all(|path| path.len() <= 60),
            "{ours:?}"
        );
        assert_eq!((ground.left(), journals(&ground)), (Vec::new(), 0));
    }
}

/// The shell that starts the program waits for it, and is not stopped itself.
pub(super) fn a_program_that_is_stopped_is_noticed_over_a_shell_where_the_system_shows_it() {
    let ground = Ground::new();
    let server = Server::start(&ground);
    let to = server.to();
    let data = ground.make_dir("data");
    let here = data.to_str().unwrap();
    let study = format!(
        "title = \"Stopped\"\n[[stack]]\ndir = {{ path = \"{here}\" }}\n[[workload]]\ncommand = {{ run = \"\"\"\n\
         if [ -e {here}/before ]; then exec sleep 1.1; fi; echo > {here}/before\n\
         sleep 4.0917 & p=$!; sleep 0.3; kill -STOP $p; sleep 3.5; kill -CONT $p; wait $p\"\"\" }}\n[decide]\nrounds-at-most = 1\n"
    );
    let study = ground.write("s.toml", study);
    let words = run_over_shell(study.to_str().unwrap(), &to);
    let said = stackrace(&ground, &words);
    said.ended(0)
        .err_has("does not count: sleep (process ")
        .err_has("was stopped for")
        .err_has("it is measured again");
    let log = log(&ground);
    let head = of_kind(&log, "run-started")[0].to_string();
    assert!(!head.contains("a program that is stopped"), "{head}");
    let trials = of_kind(&log, "trial");
    assert_eq!(trials.len(), 2);
    // Two looks at least, a second apart, fell into 3.5 s.
    let paused = trials[0]["counted"]["paused_ns"].as_u64().unwrap();
    assert!(paused >= 1_000_000_000, "{paused}");
    assert!(trials[1]["counted"]["paused_ns"].is_null(), "{}", trials[1]);
}
