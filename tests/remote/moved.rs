//! Directories of a run on another machine that are renamed, or hidden by a mount, while it goes on: what
//! is in them is found by what it is, or it is said where it is and what cleans it.

use super::*;
use crate::support::quietly;

/// A stack on loop devices, in the store there or in a directory of the user's.
const LOOPS: &str = study!(
    "on loop devices",
    r#"filesystem = ["ext4", "ext2"]"#,
    [
        r#"loop = { size = "32 MiB", laid-out = "no" DIRECTORY }"#,
        r#""{filesystem}" = {}"#
    ],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "1 s" }"#],
    6
);

/// The same by the machine's own commands.
const NATIVE: &str = study!(
    "by its own commands",
    r#"size = ["32 MiB", "40 MiB"]"#,
    [r#"native = { file-system = "ext4", size = "{size}", directory = "GROUND/disks" }"#],
    ["[workload.command]\nrun = \"dd if=/dev/zero of=f bs=65536 count=16 2>/dev/null && sleep 1\""],
    6
);

/// Two directories, as clients measure them.
const BY_CLIENTS: &str = study!(
    "two directories by clients",
    r#"place = ["one", "two"]"#,
    [r#"dir = { path = "GROUND/{place}" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "1 s" }"#],
    6
);

/// What happens to a directory.
#[derive(Debug, Clone, Copy)]
enum Hiding {
    Renamed,
    MountedOver,
}

impl Hiding {
    fn happens(self, directory: &Path) {
        match self {
            Self::Renamed => fs::rename(directory, directory.with_extension("away")).unwrap(),
            Self::MountedOver => {
                let point = directory.to_str().unwrap();
                drop(tool(
                    "mount",
                    &["-t", "tmpfs", "-o", "size=64m", "over", point],
                ));
            }
        }
    }

    fn ends(self, directory: &Path) {
        match self {
            Self::Renamed => fs::rename(directory.with_extension("away"), directory).unwrap(),
            Self::MountedOver => drop(tool("umount", &[directory.to_str().unwrap()])),
        }
    }

    fn said(self) -> &'static str {
        match self {
            Self::Renamed => "was moved to",
            Self::MountedOver => "is hidden: something is mounted at",
        }
    }
}

/// What a test mounted over something, which goes with it however it ends.
struct Shown(PathBuf);

impl Drop for Shown {
    fn drop(&mut self) {
        quietly("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

/// Starts a run, waits until a stack stands in its second round, and has something happen then.
fn standing(ground: &Ground, words: &[&str], happens: impl FnOnce()) -> Said {
    let mut command = program(ground, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    until(|| {
        let ended = child.try_wait().unwrap().is_some();
        ended || of_kind(&log(ground), "stack-set-up").len() >= 3
    });
    happens();
    Said::of(&child.wait_with_output().unwrap())
}

/// What is left of runs, but for the copy of the program.
fn left(ground: &Ground) -> Vec<String> {
    let mut left = ground.left();
    left.retain(|path| !path.contains("/bin/.stackrace-"));
    left
}

pub(super) fn disks_on_another_machine_that_are_not_at_their_path_are_not_called_gone() {
    needs::root_and_loop_devices();
    for hiding in [Hiding::Renamed, Hiding::MountedOver] {
        for shell in [false, true] {
            let ground = Ground::new();
            let server = Server::start(&ground);
            let to = server.to();
            let disks = ground.make_dir("disks");
            let _shown = Shown(disks.clone());
            let directory = format!(r#", directory = "{}""#, disks.display());
            let here = ground.path().to_str().unwrap();
            let text = match shell {
                false => LOOPS.replace("DIRECTORY", &directory),
                true => NATIVE.replace("GROUND", here),
            };
            ground.write("s.toml", text);
            let mut on = vec!["--on", &*to];
            if shell {
                on.extend(["--agent", "none"]);
            }
            let mut run = [&["run", "s.toml"], &on[..]].concat();
            if shell {
                run.push("--allow-commands");
            }
            let said = standing(&ground, &run, || hiding.happens(&disks));
            let context = format!("{hiding:?}, shell: {shell}\n{}{}", said.out, said.err);
            assert_ne!(said.code, Some(0), "{context}");
            let cleaning = format!("stackrace clean {}", on.join(" "));
            for part in ["it is not gone", hiding.said(), &cleaning] {
                assert!(said.err.contains(part), "no {part:?} in\n{context}");
            }
            let clean = [&["clean"], &on[..]].concat();
            let cleaned = stackrace(&ground, &clean);
            let told = format!("{}{}", cleaned.out, cleaned.err);
            assert_eq!(cleaned.code, Some(4), "{context}\n{told}");
            let then = format!("then: {cleaning}");
            for part in ["it is not gone", hiding.said(), &then] {
                assert!(told.contains(part), "no {part:?} in\n{told}\n{context}");
            }
            hiding.ends(&disks);
            stackrace(&ground, &clean).ended(0);
            assert_eq!(left(&ground), [""; 0], "{context}");
        }
    }
}

pub(super) fn a_workers_store_that_is_not_at_its_path_is_cleaned_where_it_is() {
    needs::root_and_loop_devices();
    for hiding in [Hiding::Renamed, Hiding::MountedOver] {
        let ground = Ground::new();
        let server = Server::start(&ground);
        let to = server.to();
        ground.write("s.toml", LOOPS.replace("DIRECTORY", ""));
        let stores = ground.path().join("home/.local/state/stackrace");
        let _shown = Shown(stores.clone());
        let run = ["run", "s.toml", "--on", &to];
        let said = standing(&ground, &run, || hiding.happens(&stores));
        let context = format!("{hiding:?}\n{}{}", said.out, said.err);
        assert_ne!(said.code, Some(0), "{context}");
        match hiding {
            // Found by what it is, nothing is left to be said.
            Hiding::Renamed => assert_eq!(left(&ground), [""; 0], "{context}"),
            Hiding::MountedOver => {
                let cleaning = format!("then: stackrace clean --on {to}");
                for part in [hiding.said(), &cleaning] {
                    assert!(said.err.contains(part), "no {part:?} in\n{context}");
                }
                hiding.ends(&stores);
                stackrace(&ground, &["clean", "--on", &to]).ended(0);
                assert_eq!(left(&ground), [""; 0], "{context}");
            }
        }
        let begun = of_kind(&log(&ground), "round-finished").len();
        assert!(begun >= 1, "what was measured is on record\n{context}");
    }
}

pub(super) fn what_clients_made_is_not_called_gone_when_it_is_not_at_its_path() {
    needs::root();
    for hiding in [Hiding::Renamed, Hiding::MountedOver] {
        let ground = Ground::new();
        let server = Server::start(&ground);
        let clients = know_clients(&ground, &server, 2);
        let both = ["one", "two"].map(|name| ground.make_dir(name));
        let _shown = both.clone().map(Shown);
        let here = ground.path().to_str().unwrap();
        ground.write("s.toml", BY_CLIENTS.replace("GROUND", here));
        let by = ["--clients", &*clients];
        // Whichever of both stands then.
        let said = standing(&ground, &[&["run", "s.toml"], &by[..]].concat(), || {
            both.iter().for_each(|directory| hiding.happens(directory));
        });
        let context = format!("{hiding:?}\n{}{}", said.out, said.err);
        assert_ne!(said.code, Some(0), "{context}");
        let cleaning = format!("then: stackrace clean --clients {clients}");
        for part in ["it is not gone", hiding.said(), &cleaning] {
            assert!(said.err.contains(part), "no {part:?} in\n{context}");
        }
        // A trial on something else fails, and says both.
        let failed = log(&ground);
        let failed = of_kind(&failed, "trial").into_iter();
        let errors = failed.filter_map(|trial| trial["ended"]["error"].as_str());
        let errors: Vec<_> = errors.map(str::to_owned).collect();
        let told = |error: &String| {
            error.contains(" was on ") && error.contains("the storage was exchanged on ")
        };
        assert!(
            !errors.is_empty() && errors.iter().all(told),
            "{errors:?}\n{context}"
        );
        let clean = [&["clean"], &by[..]].concat();
        let cleaned = stackrace(&ground, &clean);
        let told = format!("{}{}", cleaned.out, cleaned.err);
        assert_eq!(cleaned.code, Some(4), "{context}\n{told}");
        for part in ["it is not gone", hiding.said(), &cleaning] {
            assert!(told.contains(part), "no {part:?} in\n{told}\n{context}");
        }
        both.iter().for_each(|directory| hiding.ends(directory));
        stackrace(&ground, &clean).ended(0);
        assert_eq!(left(&ground), [""; 0], "{context}");
    }
}

pub(super) fn the_store_of_the_first_client_that_is_not_at_its_path_is_cleaned_where_it_is() {
    for hiding in [Hiding::Renamed, Hiding::MountedOver] {
        if matches!(hiding, Hiding::MountedOver) {
            needs::root();
        }
        let ground = Ground::new();
        let server = Server::start(&ground);
        let clients = know_clients(&ground, &server, 2);
        for name in ["one", "two"] {
            ground.make_dir(name);
        }
        let here = ground.path().to_str().unwrap();
        ground.write("s.toml", BY_CLIENTS.replace("GROUND", here));
        let stores = ground.path().join("home/.local/state/stackrace");
        let _shown = Shown(stores.clone());
        let by = ["--clients", &*clients];
        let said = standing(&ground, &[&["run", "s.toml"], &by[..]].concat(), || {
            hiding.happens(&stores);
        });
        let context = format!("{hiding:?}\n{}{}", said.out, said.err);
        match hiding {
            // Found by what it is, nothing is left to be said.
            Hiding::Renamed => assert_eq!(left(&ground), [""; 0], "{context}"),
            Hiding::MountedOver => {
                let cleaning = format!("then: stackrace clean --clients {clients}");
                for part in [hiding.said(), &cleaning] {
                    assert!(said.err.contains(part), "no {part:?} in\n{context}");
                }
                hiding.ends(&stores);
                stackrace(&ground, &["clean", "--clients", &clients]).ended(0);
                assert_eq!(left(&ground), [""; 0], "{context}");
            }
        }
        let rounds = of_kind(&log(&ground), "round-finished").len();
        assert!(rounds >= 1, "what was measured is on record\n{context}");
    }
}
