//! `--agent none`: an sshd whose world is BusyBox in a root directory of its own, without `/proc`, as a
//! system that nothing is known of.

use super::*;
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
fn world() -> (Ground, Server, PathBuf) {
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
    let plan = with(&["plan", study]);
    plan.ended(0);
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

pub(super) fn what_a_shell_cannot_do_is_refused_before_anything_is_touched() {
    let (ground, server, world) = world();
    let to = server.to();
    let run = |text: &str| {
        let study = ground.write("s.toml", text);
        let words = [
            "run",
            study.to_str().unwrap(),
            "--on",
            &to,
            "--agent",
            "none",
            "--allow-commands",
        ];
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
    let greedy = COMMANDS.replace("sleep 1.1", "rm -r /tmp/.stackrace-shell-*");
    run(&greedy).err_has("what the program printed is gone from /tmp/.stackrace-shell-");
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
    let words = [
        "run",
        study,
        "--on",
        &to,
        "--agent",
        "none",
        "--allow-commands",
    ];
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
