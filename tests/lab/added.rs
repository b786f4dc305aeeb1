//! Systems that the user adds, in real guests: Debian with its own kernel, and BusyBox with dropbear alone. Root makes
//! their images once with `tests/lab/added.sh DIR`; STACKRACE_LAB_ADDED names that directory, and without it each test
//! is ignored.

use super::*;
use std::process::Command;

/// Both systems, in a directory that both images have.
const TWO: &str = r#"
title = "two systems of the user's"
[factors]
system = ["debian", "busybox"]
[[stack]]
dir = { path = "/srv/a" }
[[workload]]
name = "write"
[workload.command]
run = "for i in 1 2 3 4; do dd if=/dev/zero of=f$i bs=65536 count=16 2>/dev/null; done; sleep 1"
cleanup = "rm -f f*"
[decide]
rounds-at-most = 3
until = "never"
"#;

/// A file system of Debian's own.
const NATIVE: &str = r#"
title = "a file system of the system's own"
[factors]
size = ["64 MiB", "96 MiB"]
[[stack]]
native = { file-system = "ext4", size = "{size}" }
[[workload]]
name = "write"
[workload.command]
run = "dd if=/dev/zero of=f bs=65536 count=64 2>/dev/null && sleep 1"
cleanup = "rm -f f"
[decide]
rounds-at-most = 3
until = "never"
"#;

/// A ground whose cache has the systems of these names.
struct Added {
    ground: Ground,
    images: PathBuf,
}

impl Added {
    #[expect(clippy::disallowed_methods, reason = "the test's own setting")]
    fn new(names: &[(&str, &str)]) -> Self {
        let Some(images) = std::env::var_os("STACKRACE_LAB_ADDED") else {
            needs::skip("needs images (tests/lab/added.sh DIR), and STACKRACE_LAB_ADDED=DIR");
        };
        for tool in ["qemu-system-x86_64", "qemu-img", "ssh"] {
            needs::tool(tool);
        }
        let added = Self {
            ground: Ground::new(),
            images: PathBuf::from(images),
        };
        for (name, image) in names {
            added
                .run(&["lab", "add", name, &added.image(image)])
                .ended(0);
        }
        added
    }

    fn image(&self, name: &str) -> String {
        self.images.join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let key = self.image("key");
        let mut command = self.ground.program(args);
        command
            .env("XDG_CACHE_HOME", self.ground.path().join("cache"))
            .env(
                "STACKRACE_SSH",
                format!("ssh -F none -i {key} -o IdentitiesOnly=yes -o IdentityAgent=none"),
            );
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        Said::of(&self.command(args).output().unwrap())
    }

    fn nothing_is_left(&self) {
        assert!(machines(&self.ground).is_empty());
        assert_eq!(self.ground.left(), Vec::<String>::new());
    }
}

pub(super) fn two_systems_of_the_user_go_from_an_image_to_a_verdict_and_on_after_a_kill() {
    let added = Added::new(&[("debian", "debian.qcow2"), ("busybox", "busybox.img")]);
    added.nothing_is_left();
    let listed = added.run(&["lab", "list"]);
    for name in ["debian", "busybox"] {
        let line = listed
            .out
            .lines()
            .find(|line| line.starts_with(&format!("{name}  ")));
        assert!(line.unwrap().contains("Linux 6."), "{}", listed.out);
    }
    added.ground.write("two.toml", TWO);
    let words = ["run", "two.toml", "--lab", "--allow-commands"];
    let mut command = added.command(&words);
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(&mut run, "three trials", || {
        of_kind(&log(&added.ground), "trial").len() >= 3
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let before = log(&added.ground);
    assert_eq!(machines(&added.ground).len(), 2);
    added.run(&["clean"]).ended(0);
    added.nothing_is_left();
    let resumed = added.run(&["resume", "--allow-commands"]);
    resumed.ended(0);
    assert!(
        resumed.out.contains("3 of at most 3 rounds"),
        "{}",
        resumed.out
    );
    let after = log(&added.ground);
    assert_eq!(after[..before.len()], before, "what was kept has changed");
    assert_eq!(of_kind(&after, "trial").len(), 6);
    added.nothing_is_left();
}

pub(super) fn a_file_system_of_the_added_systems_own_goes_from_start_to_verdict() {
    let added = Added::new(&[("debian", "debian.qcow2")]);
    added.ground.write("native.toml", NATIVE);
    let words = ["--lab", "--system", "debian"];
    let plan = added.run(&[&["plan", "native.toml"], &words[..]].concat());
    plan.ended(0);
    assert!(plan.out.contains("mkfs.ext4"), "{}", plan.out);
    let run = added.run(&[&["run", "native.toml", "--allow-commands"], &words[..]].concat());
    run.ended(0);
    assert_eq!(of_kind(&log(&added.ground), "trial").len(), 6);
    added.nothing_is_left();
}

pub(super) fn an_image_that_does_not_start_or_lets_no_user_in_is_refused_with_its_last_words() {
    let added = Added::new(&[]);
    let refused = |name: &str| {
        let said = added.run(&["lab", "add", "a", name]);
        said.ended(4);
        added.nothing_is_left();
        said.err
    };
    let locked = refused(&added.image("locked.img"));
    assert!(
        locked.contains("does not let root in without a password"),
        "{locked}"
    );
    let silent = refused(&added.image("silent.img"));
    assert!(
        silent.contains("nothing there listens on port 22"),
        "{silent}"
    );
    // A program that says that there is no system (INT 18h), and nothing else.
    let mut sector = [0; 512];
    sector[..2].copy_from_slice(&[0xcd, 0x18]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    let path = added.ground.write("nothing", sector);
    let nothing = refused(path.to_str().unwrap());
    assert!(nothing.contains("ended by itself"), "{nothing}");
    assert!(nothing.contains("bootable"), "{nothing}");
    let empty = added.run(&["lab", "list"]);
    assert!(!empty.out.contains("added"), "{}", empty.out);
}
