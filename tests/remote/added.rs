//! Systems that the user adds to the lab, with a QEMU and a qemu-img of the test's own: its guest is an sshd at the port
//! that is to lead into it. `lab::` has the same with real guests.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// Two systems that were added, in a directory of each.
const SYSTEMS: &str = r#"
title = "two systems of the user's"
[factors]
system = ["one", "two"]
[[stack]]
dir = { path = "GROUND/here" }
[[workload]]
name = "write"
[workload.command]
run = "dd if=/dev/zero of=f bs=65536 count=8 2>/dev/null && sleep 1"
cleanup = "rm -f f"
[decide]
rounds-at-most = 3
until = "never"
"#;

/// A qemu-img that takes every file for a raw disk.
const QEMU_IMG: &str = r#"#!/bin/sh
case $1 in
info) echo '{"format": "raw", "virtual-size": 512}' ;;
dd) for word do case $word in if=*) from=${word#if=} ;; of=*) to=${word#of=} ;; esac; done
    head -c 512 "$from" >"$to" ;;
create) for word do to=$word; done; : >"$to" ;;
esac
"#;

/// A QEMU whose guest is an sshd.
const QEMU: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "QEMU of a test"; exit; }
port=$(echo "$*" | sed 's/.*hostfwd=tcp:127.0.0.1:\([0-9]*\)-.*/\1/')
echo $$ >>GROUND/guests
exec /usr/sbin/sshd -D -f GROUND/sshd.conf -E GROUND/guest.log -o Port=$port
"#;

/// The ground of such tests: a sector that a BIOS starts, and the programs.
struct Lab {
    ground: Ground,
    /// Makes keys and settings, and would be a machine of its own.
    _server: Server,
}

impl Lab {
    fn new() -> Self {
        let (ground, server) = with_directories();
        let lab = Self {
            ground,
            _server: server,
        };
        lab.ground.make_dir("programs");
        lab.program("qemu-img", QEMU_IMG);
        lab.program("qemu-system-x86_64", QEMU);
        let mut sector = [0; 1024];
        sector[..2].copy_from_slice(&[0xeb, 0xfe]);
        sector[510..512].copy_from_slice(&[0x55, 0xaa]);
        lab.ground.write("disk", sector);
        lab
    }

    fn program(&self, name: &str, text: &str) {
        let here = self.ground.path().to_str().unwrap();
        let path = self
            .ground
            .write(&format!("programs/{name}"), text.replace("GROUND", here));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let here = self.ground.path().to_str().unwrap();
        let mut command = program(&self.ground, args);
        command
            .env(
                "PATH",
                format!("{here}/programs:/usr/sbin:/usr/bin:/sbin:/bin"),
            )
            .env("XDG_CACHE_HOME", format!("{here}/cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        Said::of(&self.command(args).output().unwrap())
    }

    fn add(&self, name: &str, image: &str) -> Said {
        let user = tool("id", &["-un"]);
        self.run(&["lab", "add", name, image, "--login", user.trim()])
    }

    /// What is kept of systems, whole or not.
    fn kept(&self) -> Vec<String> {
        let added = fs::read_dir(self.ground.path().join("cache/stackrace/lab/added"));
        let names = added
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Guests that run.
    fn guests(&self) -> usize {
        let ids = fs::read_to_string(self.ground.path().join("guests")).unwrap_or_default();
        let here = self.ground.path().to_str().unwrap();
        let runs = |id: &&str| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(here)
        };
        ids.lines().filter(runs).count()
    }

    fn study(&self, name: &str, text: &str) {
        let here = self.ground.path().to_str().unwrap();
        self.ground.write(name, text.replace("GROUND", here));
    }
}

fn a_system_that_was_added_is_measured_and_leaves_nothing() {
    let lab = Lab::new();
    for name in ["one", "two"] {
        let added = lab.add(name, "disk");
        added
            .ended(0)
            .err_has(&format!("run STUDY --lab --system {name}"));
        assert!(added.out.starts_with(name), "{}", added.out);
    }
    assert_eq!(lab.kept(), ["one", "two"]);
    assert_eq!(lab.guests(), 0);
    let listed = lab.run(&["lab", "list"]).ended(0).out.clone();
    assert_eq!(listed.matches(", added, ").count(), 2, "{listed}");

    lab.study("s.toml", SYSTEMS);
    let plan = lab.run(&["plan", "s.toml", "--lab"]);
    plan.ended(0);
    assert!(plan.out.contains("on one and two"), "{}", plan.out);
    assert!(plan.out.contains("$ mkdir"), "{}", plan.out);
    let outside = lab.run(&["run", "s.toml", "--allow-commands"]);
    outside.ended(3).err_has("--lab");
    lab.run(&["run", "s.toml", "--lab"])
        .ended(3)
        .err_has("--allow-commands");
    lab.run(&["run", "s.toml", "--lab", "--allow-commands"])
        .ended(0);
    let log = log(&lab.ground);
    assert_eq!(of_kind(&log, "trial").len(), 6);
    let head = of_kind(&log, "run-started")[0].to_string();
    for said in ["lab image on one", "none: every command", "\"lab\""] {
        assert!(head.contains(said), "{said}: {head}");
    }
    let report = lab
        .run(&["report", "--format", "json"])
        .ended(0)
        .out
        .clone();
    let report: Value = serde_json::from_str(&report).unwrap();
    let compared = &report["verdict"]["overall"][0];
    let mut names = [compared["a"].as_str(), compared["b"].as_str()];
    names.sort_unstable();
    assert_eq!(names, [Some("one"), Some("two")]);
    assert_eq!(lab.guests(), 0);
    lab.run(&["clean"]).ended(0);
    assert_eq!(lab.ground.left(), Vec::<String>::new());

    let removed = lab.run(&["lab", "clean", "--system", "one"]);
    removed.ended(0);
    assert!(removed.out.contains("removed one"), "{}", removed.out);
    assert_eq!(lab.kept(), ["two"]);
    let gone = lab.run(&["run", "s.toml", "--lab", "--allow-commands"]);
    gone.ended(3).err_has("no system \"one\"");
}

fn a_run_that_was_killed_goes_on_with_the_same_image_alone() {
    let lab = Lab::new();
    for name in ["one", "two"] {
        lab.add(name, "disk").ended(0);
    }
    lab.study("s.toml", SYSTEMS);
    let mut command = lab.command(&["run", "s.toml", "--lab", "--allow-commands"]);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| of_kind(&log(&lab.ground), "trial").len() >= 2);
    run.kill().unwrap();
    run.wait().unwrap();
    let before = log(&lab.ground);
    // An sshd is no QEMU, and is not ended as one; `lab::` has real ones.
    let ids = fs::read_to_string(lab.ground.path().join("guests")).unwrap();
    for id in ids
        .lines()
        .filter_map(|id| id.parse().ok())
        .filter_map(Pid::from_raw)
    {
        let _ = kill_process(id, Signal::KILL);
    }
    // What stood in a guest goes with it; these are directories of this machine.
    for left in lab.ground.left() {
        if !Path::new(&left).starts_with(lab.ground.store()) {
            fs::remove_dir_all(left).unwrap();
        }
    }
    lab.run(&["clean"]).ended(0);

    // Another image under the same name is another system.
    lab.run(&["lab", "clean", "--system", "two"]).ended(0);
    let mut other = fs::read(lab.ground.path().join("disk")).unwrap();
    other[600] = 1;
    lab.ground.write("other", other);
    lab.add("two", "other").ended(0);
    let refused = lab.run(&["resume", "--allow-commands"]);
    refused.ended(3).err_has("was begun on the image two-");
    lab.run(&["lab", "clean", "--system", "two"]).ended(0);
    lab.add("two", "disk").ended(0);
    lab.run(&["resume", "--allow-commands"]).ended(0);
    let after = log(&lab.ground);
    assert_eq!(after[..before.len()], before, "what was kept has changed");
    assert_eq!(of_kind(&after, "run-resumed").len(), 1);
    assert_eq!(of_kind(&after, "trial").len(), 6);
    assert_eq!(lab.guests(), 0);
    assert_eq!(lab.ground.left(), Vec::<String>::new());
}

fn an_image_that_is_of_no_use_is_refused_with_the_reason_and_not_kept() {
    let lab = Lab::new();
    lab.add("Not a name", "disk")
        .ended(4)
        .err_has("cannot be the name of a system");
    lab.add("debian-13", "disk")
        .ended(4)
        .err_has("the lab makes debian-13 itself");
    lab.add("a", "nowhere")
        .ended(4)
        .err_has("nowhere: No such file");
    lab.ground.write("packed", b"\xfd7zXZ\0 and so on");
    lab.add("a", "packed").ended(4).err_has("unxz --keep");
    lab.ground.write("text", "a letter");
    lab.add("a", "text")
        .ended(4)
        .err_has("its first sector is not that of a disk");
    let mut sector = [0; 512];
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    lab.ground.write("arm", sector);
    lab.add("a", "arm")
        .ended(4)
        .err_has("UEFI alone or for another processor");
    lab.add("a", ".").ended(4).err_has("it is no file");
    lab.program("qemu-img", "#!/bin/sh\necho '{\"format\": \"vmdk\"}'\n");
    lab.add("a", "disk")
        .ended(4)
        .err_has("qemu-img convert -O qcow2");
    let linked = r#"{"format": "qcow2", "backing-filename": "/etc/passwd"}"#;
    lab.program("qemu-img", &format!("#!/bin/sh\necho '{linked}'\n"));
    lab.add("a", "disk")
        .ended(4)
        .err_has("the rest is in another file, /etc/passwd");
    lab.program("qemu-img", QEMU_IMG);

    // Nothing in it starts; then it lets no user in.
    lab.program(
        "qemu-system-x86_64",
        "#!/bin/sh\necho No bootable device\nexit 1\n",
    );
    lab.add("a", "disk")
        .ended(4)
        .err_has("ended by itself")
        .err_has("No bootable device");
    lab.program("qemu-system-x86_64", QEMU);
    lab.ground.write("authorized", "");
    let denied = lab.add("a", "disk");
    denied
        .ended(4)
        .err_has("without a password")
        .err_has("authorized_keys");
    let key = fs::read_to_string(lab.ground.path().join("key.pub")).unwrap();
    lab.ground.write("authorized", key);
    assert_eq!(lab.kept(), Vec::<String>::new());
    assert_eq!(lab.guests(), 0);

    lab.add("a", "disk").ended(0);
    lab.add("a", "disk")
        .ended(4)
        .err_has("lab clean --system a");
    assert_eq!(lab.kept(), ["a"]);
    assert_eq!(lab.ground.left(), Vec::<String>::new());
}

/// The same study on one system, of two amounts.
fn single() -> String {
    let study = SYSTEMS.replace("system = [\"one\", \"two\"]", "bytes = [8, 9]");
    study.replace("count=8", "count={bytes}")
}

fn what_a_system_that_was_added_cannot_do_is_refused_before_a_guest_starts() {
    let lab = Lab::new();
    lab.add("one", "disk").ended(0);
    fs::remove_file(lab.ground.path().join("guests")).unwrap();
    let refused = |text: &str, words: &[&str]| {
        lab.study("s.toml", text);
        let said = lab.run(&[&["run", "s.toml", "--lab", "--allow-commands"], words].concat());
        assert_ne!(said.code, Some(0), "{}", said.out);
        said.err
    };
    let mixed = refused(&SYSTEMS.replace("\"two\"", "\"debian-13\""), &[]);
    assert!(
        mixed.contains("one was added and is measured over its own shell"),
        "{mixed}"
    );
    let unknown = refused(SYSTEMS, &[]);
    assert!(unknown.contains("there is no system \"two\""), "{unknown}");
    let single = single();
    let engine = single
        .split("[[workload]]")
        .next()
        .unwrap()
        .replace("here", "{bytes}")
        + "[[workload]]\nfiles = { count = 5 }\n[decide]\nrounds-at-most = 1\n";
    let engine = refused(&engine, &["--system", "one"]);
    assert!(
        engine.contains("one was added and has nothing but a shell"),
        "{engine}"
    );
    let modelled = single.replace(
        "dir = { path = \"GROUND/here\" }",
        "lab-disks = { model = \"seagate-st3000dm001\", size = \"1 GiB\" }\n[[stack]]\next4 = {}",
    );
    let modelled = refused(&modelled, &["--system", "one"]);
    assert!(modelled.contains("runs in real time alone"), "{modelled}");
    let disks = single.replace(
        "dir = { path = \"GROUND/here\" }",
        "lab-disks = { size = \"1 GiB\" }\n[[stack]]\next4 = {}",
    );
    let disks = refused(&disks, &["--system", "one"]);
    assert!(
        disks.contains("the layer lab-disks needs this program there"),
        "{disks}"
    );
    let shell = lab.run(&["lab", "shell", "--system", "one", "--", "true"]);
    shell.ended(3).err_has("run STUDY --lab --system one");
    assert_eq!(lab.guests(), 0);
    assert!(
        !lab.ground.path().join("guests").exists(),
        "a guest was started"
    );
}

fn an_image_that_changed_since_it_was_added_is_refused_with_what_removes_it() {
    let lab = Lab::new();
    lab.add("one", "disk").ended(0);
    let kept = lab.ground.path().join("cache/stackrace/lab/added/one/disk");
    fs::write(kept, "other").unwrap();
    lab.study("s.toml", &single());
    let damaged = lab.run(&[
        "run",
        "s.toml",
        "--lab",
        "--system",
        "one",
        "--allow-commands",
    ]);
    damaged
        .err_has("is not what was added")
        .err_has("lab clean --system one");
    lab.run(&["lab", "clean", "--system", "one"]).ended(0);
    assert_eq!(lab.kept(), Vec::<String>::new());
}

pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_system_that_was_added_is_measured_and_leaves_nothing,
        a_run_that_was_killed_goes_on_with_the_same_image_alone,
        an_image_that_is_of_no_use_is_refused_with_the_reason_and_not_kept,
        what_a_system_that_was_added_cannot_do_is_refused_before_a_guest_starts,
        an_image_that_changed_since_it_was_added_is_refused_with_what_removes_it,
    ]
}
