//! What a recording must not leave out, and what would be left out is refused.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{able, class, info, pause, python, recorded};
use crate::support::{Said, quietly};
use stackrace_test_needs as needs;

/// Starts and ends more processes than the kernel side has places for, and writes in the last one.
const FORKS: &str = "
import os, sys
for i in range(18000):
    if os.fork() == 0: os._exit(0)
    os.wait()
if os.fork() == 0:
    os.write(os.open(sys.argv[1] + '/last', os.O_WRONLY | os.O_CREAT), b'x' * 100)
    os._exit(0)
os.wait()
";

/// Names of every kind: by a descriptor alone, of a pipe, through a link out of the directory.
const NAMES: &str = "
import os, sys
d = sys.argv[1]
f = os.open(d + '/new', os.O_RDWR | os.O_CREAT)
os.write(f, b'x' * 100)
os.utime(f)
os.close(f)
p = os.open(d + '/pipe', os.O_RDWR)
os.write(p, b'.' * 10)
os.read(p, 10)
for i in range(5):
    os.rename(d + '/out/a', d + '/out/b')
    os.rename(d + '/out/b', d + '/out/a')
os.write(os.open(d + '/out/made', os.O_WRONLY | os.O_CREAT), b'z' * 10)
";

/// Goes into another root and stays there.
const JAILED: &str = "
import os, sys, time
os.chroot(sys.argv[1])
print('begun', flush=True)
time.sleep(60)
";

fn processes_that_ended_make_room_for_others() {
    let ground = able();
    recorded(&ground, FORKS, "app.trace");
    let info = info(&ground, "app.trace");
    assert_eq!(info["ending"]["not_followed"], 0, "{info}");
    assert_eq!(class(&info, "write"), (1, 0, 100));
}

fn a_command_keeps_its_language() {
    let ground = able();
    let words = [
        "record",
        "--below",
        "data",
        "--",
        "sh",
        "-c",
        "echo in $LC_ALL",
    ];
    let mut program = ground.program(&words);
    let said = Said::of(&program.env("LC_ALL", "de_DE.UTF-8").output().unwrap());
    said.ended(0);
    assert!(said.out.contains("in de_DE.UTF-8"), "{}", said.out);
}

fn names_lead_where_they_lead_for_the_application() {
    let ground = able();
    let at = |name: &str| ground.path().join(name);
    ground.make_dir("away");
    ground.make_dir("copy");
    fs::write(at("away/a"), "").unwrap();
    std::os::unix::fs::symlink(at("away"), at("data/out")).unwrap();
    std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
    assert!(
        quietly("mkfifo", &[at("data/pipe").to_str().unwrap()])
            .status
            .success()
    );
    let (python, link) = (python(), at("link"));
    let link = link.to_str().unwrap();
    // The directory as the application calls it, by a link.
    let words = [
        "record", "--below", link, "--cost", "1000 %", "--", &python, "-c", NAMES, link,
    ];
    ground.stackrace(&words).ended(0);
    let info = info(&ground, "app.trace");
    assert_eq!(class(&info, "write"), (1, 0, 100));
    assert_eq!(class(&info, "read"), (0, 0, 0));
    // Its times; the renames are elsewhere.
    assert_eq!(class(&info, "change names"), (1, 0, 0));
    let ending = &info["ending"];
    assert_eq!(
        (&ending["unresolved"], &ending["elsewhere"]),
        (&0.into(), &1.into())
    );
    let shown = ground.stackrace(&["show", "trace", "app.trace"]).out;
    for part in ["lead: 1 link;", "on the file system: 1 file;"] {
        assert!(shown.contains(part), "{shown}");
    }
    let replayed = ground.stackrace(&["load", "copy", "replay", "trace=app.trace"]);
    replayed.ended(0);
    assert!(!replayed.out.contains("results differ"), "{}", replayed.out);
}

/// Makes its data durable when it is asked to end, as a database does.
const LAST: &str = "
import os, signal, sys, time
f = os.open(sys.argv[1] + '/f', os.O_RDWR | os.O_CREAT)
def last(*_):
    time.sleep(0.3)
    os.fsync(f)
    os._exit(0)
signal.signal(signal.SIGINT, last)
os.write(f, b'x' * 100)
time.sleep(60)
";

fn the_last_calls_of_a_command_that_ends_by_the_same_ctrl_c_are_recorded() {
    let ground = able();
    let (python, data) = (python(), ground.path().join("data"));
    let data = data.to_str().unwrap();
    let words = [
        "record", "--below", "data", "--cost", "1000 %", "--", &python, "-c", LAST, data,
    ];
    let mut program = ground.program(&words);
    std::os::unix::process::CommandExt::process_group(&mut program, 0);
    let recorder = program.stdout(Stdio::piped()).spawn().unwrap();
    let file = ground.path().join("data/f");
    while fs::metadata(&file).map_or(0, |about| about.len()) == 0 {
        pause(10);
    }
    kill_process_group(Pid::from_child(&recorder), Signal::INT).unwrap();
    let said = Said::of(&recorder.wait_with_output().unwrap());
    said.ended(0);
    assert!(!said.out.contains("goes on"), "{}", said.out);
    assert_eq!(class(&info(&ground, "app.trace"), "sync"), (1, 0, 0));
}

fn a_part_that_finds_no_room_says_so_of_its_own_file() {
    let ground = able();
    let told = recorded(&ground, super::PLANTED, "my app.trace");
    let next = "next: stackrace show trace 'my app.trace'";
    assert!(told.out.contains(next), "{}", told.out);
    let full = ground.make_dir("full");
    let full = full.to_str().unwrap();
    let mounted = quietly("mount", &["-t", "tmpfs", "-o", "size=4k", "none", full]);
    assert!(mounted.status.success());
    fs::write(ground.path().join("full/filler"), [1; 4096]).unwrap();
    let cut = |to: &'static str| {
        let span = ["--from", "0 ms", "--to", to, "-o", "full/part.trace"];
        ground.stackrace(&[&["trace", "cut", "my app.trace"], &span[..]].concat())
    };
    let (said, empty) = (cut("1 min"), cut("0 ms"));
    assert!(quietly("umount", &[full]).status.success());
    said.ended(4)
        .err_has("-o full/part.trace: No space left on device")
        .err_has("next: free space there");
    empty.ended(2).err_has("--to is not behind --from");
}

#[expect(clippy::disallowed_methods, reason = "an application is a process")]
fn an_application_that_sees_other_directories_is_refused() {
    let ground = able();
    let jail = ground.make_dir("jail");
    let mut command = Command::new("python3");
    command.args(["-c", JAILED]).arg(jail);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut begun = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut begun).unwrap();
    let process = child.id().to_string();
    let said = ground.stackrace(&["record", "--below", "data", "--pid", &process]);
    child.kill().unwrap();
    child.wait().unwrap();
    said.ended(4)
        .err_has("is in a container, or in another root");
    assert!(!ground.path().join("app.trace").exists());
}

pub(super) fn tests() -> Vec<needs::Test> {
    needs::tests![
        processes_that_ended_make_room_for_others,
        a_command_keeps_its_language,
        names_lead_where_they_lead_for_the_application,
        the_last_calls_of_a_command_that_ends_by_the_same_ctrl_c_are_recorded,
        a_part_that_finds_no_room_says_so_of_its_own_file,
        an_application_that_sees_other_directories_is_refused,
    ]
}
