//! Storage that is exchanged on another machine while it is measured there, and directories of a run that
//! are renamed or hidden there: every accident at every place, by one table.

use std::os::unix::fs::symlink;

use super::*;
use crate::support::quietly;

/// Two directories, measured by this program.
const ENGINE: &str = study!(
    "two places",
    r#"place = ["one", "two"]"#,
    [r#"dir = { path = "GROUND/{place}" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", access = "uniform", time = "200 ms" }"#],
    4
);

/// The same by a command of the machine's own; BusyBox counts in steps of 10 ms.
const SHELL: &str = study!(
    "two places",
    r#"place = ["one", "two"]"#,
    [r#"dir = { path = "GROUND/{place}" }"#],
    [
        "[workload.command]\nrun = \"dd if=/dev/zero of=f bs=65536 count=8 2>/dev/null && sleep 1.1\""
    ],
    4
);

/// Where a run measures.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Elsewhere {
    /// Over SSH, with this program there.
    Agent,
    /// Over the machine's own shell.
    Shell,
    /// The same where no table of mounts is.
    BareShell,
    /// By two clients.
    Clients,
}

/// What happens to a directory that is measured.
#[derive(Debug, Clone, Copy)]
enum Accident {
    Unmounted,
    MountedOver,
    ReadOnly,
    Resynced,
    LinkInstead,
    Removed,
    Renamed,
    FileInstead,
}

impl Accident {
    const ALL: [Self; 8] = [
        Self::Unmounted,
        Self::MountedOver,
        Self::ReadOnly,
        Self::Resynced,
        Self::LinkInstead,
        Self::Removed,
        Self::Renamed,
        Self::FileInstead,
    ];

    /// Returns true if something is mounted that goes or comes.
    fn is_of_a_mount(self) -> bool {
        matches!(
            self,
            Self::Unmounted | Self::MountedOver | Self::ReadOnly | Self::Resynced
        )
    }
}

/// A place with two directories, and what reaches it.
struct Scene {
    ground: Ground,
    _server: Server,
    place: Elsewhere,
    /// What is said of the machine.
    machine: String,
    /// As the machine itself knows it, below which both are.
    base: PathBuf,
    on: Vec<String>,
}

fn mount_memory(point: &Path) {
    let point = point.to_str().unwrap();
    tool("mount", &["-t", "tmpfs", "-o", "size=64m", "memory", point]);
}

/// Whatever a test leaves mounted goes with it.
impl Drop for Scene {
    fn drop(&mut self) {
        for name in ["one", "two"] {
            for _ in 0..3 {
                quietly("umount", &["-l", self.base.join(name).to_str().unwrap()]);
            }
        }
    }
}

impl Scene {
    fn of(place: Elsewhere, memory: bool) -> Self {
        let (ground, server, base) = match place {
            Elsewhere::BareShell => {
                let (ground, server, world) = world();
                (ground, server, world.join("srv"))
            }
            _ => {
                let ground = Ground::new();
                let server = Server::start(&ground);
                let base = ground.path().to_path_buf();
                (ground, server, base)
            }
        };
        for name in ["one", "two"] {
            fs::create_dir(base.join(name)).unwrap();
            if memory {
                mount_memory(&base.join(name));
            }
        }
        let to = server.to();
        let seen = match place {
            Elsewhere::BareShell => "/srv",
            _ => base.to_str().unwrap(),
        };
        let text = match place {
            Elsewhere::Agent | Elsewhere::Clients => ENGINE,
            Elsewhere::Shell | Elsewhere::BareShell => SHELL,
        };
        ground.write("study.toml", text.replace("GROUND", seen));
        let (machine, on) = match place {
            Elsewhere::Agent => (to.clone(), vec!["--on".to_owned(), to]),
            Elsewhere::Shell | Elsewhere::BareShell => {
                let on = ["--on", &to, "--agent", "none"];
                (to.clone(), on.map(str::to_owned).to_vec())
            }
            Elsewhere::Clients => {
                let clients = know_clients(&ground, &server, 2);
                // Whichever of them sees it first.
                let machine = to.replace(&format!("1:{}", server.port), "");
                (machine, vec!["--clients".to_owned(), clients])
            }
        };
        Self {
            ground,
            _server: server,
            place,
            machine,
            base,
            on,
        }
    }

    fn words<'a>(&'a self, verb: &[&'a str]) -> Vec<&'a str> {
        let mut words = verb.to_vec();
        words.extend(self.on.iter().map(String::as_str));
        if matches!(self.place, Elsewhere::Shell | Elsewhere::BareShell) {
            words.push("--allow-commands");
        }
        words
    }

    /// Mounts an image in the place of the second memory.
    fn mount_image(&self) {
        let (image, point) = (self.base.join("two.img"), self.base.join("two"));
        let (image, point) = (image.to_str().unwrap(), point.to_str().unwrap());
        tool("umount", &[point]);
        fs::File::create(image).unwrap().set_len(256 << 20).unwrap();
        tool("mkfs.ext4", &["-q", "-F", image]);
        tool("mount", &["-o", "loop", image, point]);
    }

    /// The loop device that is mounted in the second place.
    fn loop_device(&self) -> String {
        let point = self.base.join("two");
        let told = tool("findmnt", &["-n", "-o", "SOURCE", point.to_str().unwrap()]);
        told.trim().to_owned()
    }

    /// Runs the study, and has something happen after its first round.
    fn run(&self, happens: impl FnOnce()) -> Said {
        let words = self.words(&["run", "study.toml"]);
        let mut command = program(&self.ground, &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        until(|| {
            let ended = child.try_wait().unwrap().is_some();
            ended || !of_kind(&log(&self.ground), "round-finished").is_empty()
        });
        happens();
        Said::of(&child.wait_with_output().unwrap())
    }

    fn resume(&self, more: &[&str]) -> Said {
        let words = match self.place {
            Elsewhere::Shell | Elsewhere::BareShell => &["resume", "--allow-commands"][..],
            _ => &["resume"],
        };
        stackrace(&self.ground, &[words, more].concat())
    }

    fn clean(&self) -> Said {
        let words: Vec<&str> = std::iter::once("clean")
            .chain(self.on.iter().map(String::as_str))
            .collect();
        stackrace(&self.ground, &words)
    }

    /// Rounds in which the second place has a complete trial.
    fn counted(&self) -> Vec<u64> {
        let log = log(&self.ground);
        let two = of_kind(&log, "trial")
            .into_iter()
            .filter(|trial| trial["configuration"] == 1 && trial["ended"]["state"] == "complete");
        two.map(|trial| trial["round"].as_u64().unwrap()).collect()
    }

    /// What is left of runs, but for the copy of the program.
    fn left(&self) -> Vec<String> {
        let mut left = self.ground.left();
        left.retain(|path| !path.contains("/bin/.stackrace-"));
        left
    }
}

/// What happens, and what is said of it.
fn happens(scene: &Scene, accident: Accident) {
    let two = scene.base.join("two");
    let path = two.to_str().unwrap();
    match accident {
        Accident::Unmounted => drop(tool("umount", &["-l", path])),
        Accident::MountedOver => mount_memory(&two),
        // Busy while a file is open for writing.
        Accident::ReadOnly => until(|| {
            let remounted = quietly("mount", &["-o", "remount,ro", path]);
            remounted.status.success()
        }),
        Accident::Resynced => drop(tool("mount", &["-o", "remount,sync", path])),
        Accident::LinkInstead => {
            fs::create_dir(scene.base.join("third")).unwrap();
            fs::rename(&two, scene.base.join("away")).unwrap();
            symlink("third", &two).unwrap();
        }
        // A trial makes something in it again until it notices.
        Accident::Removed => until(|| fs::remove_dir_all(&two).is_ok()),
        Accident::Renamed => fs::rename(&two, scene.base.join("away")).unwrap(),
        Accident::FileInstead => {
            fs::rename(&two, scene.base.join("away")).unwrap();
            fs::write(&two, "a file").unwrap();
        }
    }
}

fn mended(scene: &Scene, accident: Accident) -> bool {
    let two = scene.base.join("two");
    let path = two.to_str().unwrap();
    match accident {
        // Neither a new tmpfs nor a new directory is what was measured.
        Accident::Unmounted | Accident::Removed => return false,
        Accident::Renamed => fs::rename(scene.base.join("away"), &two).unwrap(),
        Accident::FileInstead => {
            fs::remove_file(&two).unwrap();
            fs::rename(scene.base.join("away"), &two).unwrap();
        }
        Accident::MountedOver => drop(tool("umount", &[path])),
        Accident::ReadOnly => drop(tool("mount", &["-o", "remount,rw", path])),
        Accident::Resynced => drop(tool("mount", &["-o", "remount,async", path])),
        Accident::LinkInstead => {
            fs::remove_file(&two).unwrap();
            fs::rename(scene.base.join("away"), &two).unwrap();
        }
    }
    true
}

/// What is said at each place.
fn reasons(place: Elsewhere, accident: Accident) -> Vec<&'static str> {
    // Where no mounts are shown, only the failure itself is seen.
    match (place, accident) {
        (Elsewhere::BareShell, Accident::ReadOnly) => return vec!["ead-only"],
        (Elsewhere::BareShell, Accident::Unmounted) => return vec!["was on tmpfs", "is now on"],
        (Elsewhere::BareShell, Accident::MountedOver) => {
            return vec!["was on tmpfs (id ", "is now on tmpfs (id "];
        }
        _ => {}
    }
    match accident {
        Accident::Unmounted => vec!["was on tmpfs (memory, device", "and is now on "],
        Accident::MountedOver => vec!["was on tmpfs (memory, device", "is now on tmpfs"],
        Accident::ReadOnly => vec!["was mounted writable and is now mounted read-only"],
        Accident::Resynced => vec!["/two was mounted without sync and is now mounted with sync"],
        Accident::LinkInstead => vec!["/two "],
        // A client may be at work in a directory below it.
        Accident::Removed | Accident::Renamed => vec!["/two", " was on ", "is not there any more"],
        Accident::FileInstead => vec!["/two", " was on ", "is a file now"],
    }
}

/// The second place is out, by the name of its machine, and counts again only when it is what it was.
fn is_out_after(place: Elsewhere, accident: Accident) {
    let scene = Scene::of(place, accident.is_of_a_mount());
    let said = scene.run(|| happens(&scene, accident));
    let context = format!("{place:?}, {accident:?}\n{}{}", said.out, said.err);
    let record = log(&scene.ground);
    let trials = of_kind(&record, "trial");
    let failed: Vec<_> = trials
        .iter()
        .filter(|trial| trial["ended"]["state"] == "failed")
        .collect();
    assert_eq!(failed.len(), 1, "{context}\n{failed:?}");
    assert_eq!(failed[0]["configuration"], 1, "{context}");
    let error = failed[0]["ended"]["error"].as_str().unwrap();
    for reason in reasons(place, accident) {
        assert!(
            error.contains(reason),
            "no {reason:?} in {error}\n{context}"
        );
    }
    if !(place == Elsewhere::BareShell && matches!(accident, Accident::ReadOnly)) {
        let on = match accident {
            // The same storage, mounted otherwise.
            Accident::ReadOnly | Accident::Resynced => "on ",
            _ => "the storage was exchanged on ",
        };
        // Clients are named with their user and port.
        let named = error.find(on).map(|at| &error[at + on.len()..]);
        let named = named.and_then(|rest| rest.split(" /").next());
        assert!(
            named.is_some_and(|name| name.contains(&scene.machine)),
            "{error}\n{context}"
        );
        let machine = failed[0]["exchanged"]["machine"].as_str().unwrap();
        assert!(machine.contains(&scene.machine), "{machine}");
    }
    // One of two is left: nothing is compared.
    assert_eq!(said.code, Some(ENDED), "{context}");
    let counted = scene.counted();
    let out_in = failed[0]["round"].as_u64().unwrap();
    assert!(counted.iter().all(|round| *round < out_in), "{context}");
    // Something else in its place is not what was measured, also for a run that goes on.
    let resumed = scene.resume(&[]);
    let context = format!("{context}\n--- resumed\n{}{}", resumed.out, resumed.err);
    assert_eq!(scene.counted(), counted, "{context}");
    let hidden = matches!(accident, Accident::ReadOnly | Accident::MountedOver);
    if place == Elsewhere::BareShell && hidden {
        // What is under a mount cannot be found where no mounts are shown.
        return;
    }
    if mended(&scene, accident) {
        // It may have used up its rounds.
        let resumed = scene.resume(&["--rounds", "1"]);
        let context = format!("{context}\n--- mended\n{}{}", resumed.out, resumed.err);
        assert_eq!(resumed.code, Some(0), "{context}");
        let last = scene.counted().last().copied();
        assert!(last.is_some_and(|round| round >= out_in), "{context}");
        scene.clean().ended(0);
        let mut left = scene.left();
        if place == Elsewhere::BareShell {
            // What was made a moment before its directory was moved was never seen at its place.
            left.retain(|name| name.contains("-taken-"));
        }
        assert_eq!(left, [""; 0], "{context}");
    }
}

/// The exit status of a run of which one configuration has failed, on whichever machine.
const ENDED: i32 = 5;

fn every_accident(place: Elsewhere) {
    needs::root();
    if place == Elsewhere::BareShell {
        // Here and not in a thread: a panic of a thread does not say what is missing.
        needs::tool("busybox");
    }
    // Side by side, each with directories and a server of its own: most of the time they wait.
    std::thread::scope(|scope| {
        // Where no mounts are shown, nothing says how a file system is mounted.
        let hidden = |accident: &Accident| {
            place == Elsewhere::BareShell && matches!(accident, Accident::Resynced)
        };
        for accident in Accident::ALL.into_iter().filter(|one| !hidden(one)) {
            scope.spawn(move || is_out_after(place, accident));
        }
    });
}

pub(super) fn storage_that_is_exchanged_on_another_machine_is_out() {
    every_accident(Elsewhere::Agent);
}

pub(super) fn storage_that_is_exchanged_where_only_a_shell_is_is_out() {
    every_accident(Elsewhere::Shell);
}

pub(super) fn storage_that_is_exchanged_where_no_mounts_are_shown_is_out() {
    every_accident(Elsewhere::BareShell);
}

pub(super) fn storage_that_is_exchanged_under_clients_is_out() {
    every_accident(Elsewhere::Clients);
}

/// A copy of its image, with its UUID and its numbers, takes the number of a loop device between a run and its resume:
/// before that the run holds the first one.
fn is_out_after_another_loop(place: Elsewhere) {
    let scene = Scene::of(place, true);
    scene.mount_image();
    scene.run(|| ()).ended(0);
    let (two, device, counted) = (scene.base.join("two"), scene.loop_device(), scene.counted());
    let copy = scene.base.join("copy.img");
    tool("umount", &[two.to_str().unwrap()]);
    fs::copy(scene.base.join("two.img"), &copy).unwrap();
    // The number is free for anybody until then, another test too: it gives it back.
    until(|| {
        quietly("losetup", &[&device, copy.to_str().unwrap()])
            .status
            .success()
    });
    tool("mount", &[&device, two.to_str().unwrap()]);
    let said = scene.resume(&["--rounds", "1"]);
    tool("umount", &[two.to_str().unwrap()]);
    quietly("losetup", &["-d", &device]);
    let context = format!("{place:?}\n{}{}", said.out, said.err);
    assert_eq!(said.code, Some(ENDED), "{context}");
    assert_eq!(scene.counted(), counted, "{context}");
    let told = format!("the storage was exchanged on {}", scene.machine);
    for part in [told.as_str(), "two.img", "and is now on ", "copy.img"] {
        assert!(context.contains(part), "no {part:?} in {context}");
    }
}

pub(super) fn a_copy_that_takes_the_loop_device_elsewhere_is_out() {
    needs::root_and_loop_devices();
    std::thread::scope(|scope| {
        // Where no mounts are shown nothing of a copy differs.
        for place in [Elsewhere::Agent, Elsewhere::Shell, Elsewhere::Clients] {
            scope.spawn(move || is_out_after_another_loop(place));
        }
    });
}
