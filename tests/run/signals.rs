//! Signals to a command, of which two processes are there: the one that its caller knows, and the one that works.

use super::*;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal, as its two sides: that of the window, and that of the programs.
fn terminal() -> (fs::File, fs::File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = fs::File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    (master.into(), slave)
}

/// Starts a command whose standard input is a terminal, whose other side is given back.
fn start_at_terminal(ground: &Ground, args: &[&str]) -> (Child, fs::File) {
    let (window, slave) = terminal();
    let mut program = ground.program(args);
    program.stdin(slave).stdout(Stdio::piped());
    (program.stderr(Stdio::piped()).spawn().unwrap(), window)
}

/// The process behind the one that was started.
pub(super) fn behind(child: &Child) -> Pid {
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let children = fs::read_to_string(path).unwrap();
    let number = children.split_whitespace().next().expect("one works");
    Pid::from_raw(number.parse().unwrap()).unwrap()
}

/// Starts a command with a terminal, or without one as cron and ssh do.
pub(super) fn start(ground: &Ground, args: &[&str], terminal: bool) -> (Child, Option<fs::File>) {
    if terminal {
        let (child, other_side) = start_at_terminal(ground, args);
        return (child, Some(other_side));
    }
    let mut program = ground.program(args);
    program.stdin(Stdio::null()).stdout(Stdio::piped());
    (program.stderr(Stdio::piped()).spawn().unwrap(), None)
}

pub(crate) fn one_wish_may_arrive_as_several_signals() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("slow.toml", SLOW);
    let child = start_measuring(&ground);
    // As `timeout` has it: to the process, then to its group.
    rustix::process::kill_process(pid(&child), Signal::TERM).unwrap();
    let said = rustix::process::kill_process_group(pid(&child), Signal::TERM);
    said.unwrap();
    let said = interrupt(child);
    said.ended(130)
        .err_has("stopping: what stands is torn down");
    assert!(!said.err.contains("stopped at once"), "{}", said.err);
    assert!(said.out.starts_with("VERDICT"), "{}", said.out);
    assert_eq!(ground.left(), [""; 0]);
}

/// The state of a process as the kernel has it: `T` is stopped.
fn state(process: Pid) -> String {
    let stat = format!("/proc/{}/stat", process.as_raw_nonzero());
    let stat = fs::read_to_string(stat).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

pub(crate) fn a_command_is_ended_stopped_and_killed_by_the_number_that_its_caller_knows() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let (child, _terminal) = start(&ground, &["run", "no-such-study.toml"], true);
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_ne!(said.code, Some(0), "{}", said.err);
    said.err_has("no-such-study");
    ground.make_dir("data");
    let words = "load data random mode=read size=4MiB passes=0 time=100s";
    let words: Vec<&str> = words.split(' ').collect();
    for terminal in [true, false] {
        let started = || {
            let (child, terminal) = start(&ground, &words, terminal);
            while fs::read_dir(ground.path().join("data")).unwrap().count() == 0 {
                wait(10);
            }
            let works = behind(&child);
            (child, works, terminal)
        };
        // Asked to end: what works is told, and cleans up.
        let (child, _, _terminal) = started();
        rustix::process::kill_process(pid(&child), Signal::TERM).unwrap();
        child.wait_with_output().unwrap();
        assert_eq!(ground.left(), [""; 0]);
        // Killed, either of them: the other one goes, too.
        let (mut child, works, _terminal) = started();
        rustix::process::kill_process(pid(&child), Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        ground.stackrace(&["clean"]).ended(0);
        while rustix::process::test_kill_process(works).is_ok() {
            wait(10);
        }
        let (child, works, _terminal) = started();
        rustix::process::kill_process(works, Signal::KILL).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(9));
        // What was killed cannot say it; the process in front does.
        let said = Said::of(&output);
        said.err_has("stackrace was killed (SIGKILL)")
            .err_has("stackrace clean");
        ground.stackrace(&["clean"]).ended(0);
        assert_eq!(ground.left(), [""; 0]);
    }
}

pub(crate) fn job_control_reaches_the_process_that_works() {
    let ground = Ground::new();
    ground.make_dir("data");
    let words = "load data random mode=read size=4MiB passes=0 time=100s";
    let words: Vec<&str> = words.split(' ').collect();
    // A job of its own, as a shell makes one.
    let mut program = ground.program(&words);
    program.process_group(0).stdin(Stdio::null());
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().unwrap();
    while fs::read_dir(ground.path().join("data")).unwrap().count() == 0 {
        wait(10);
    }
    let (process, works) = (pid(&child), behind(&child));
    // The whole job, and the process that the shell knows.
    for whole in [true, false] {
        let signal = |signal| match whole {
            true => rustix::process::kill_process_group(process, signal).unwrap(),
            false => rustix::process::kill_process(process, signal).unwrap(),
        };
        signal(Signal::TSTP);
        while [state(process), state(works)] != ["T", "T"] {
            wait(10);
        }
        signal(Signal::CONT);
        // The one in front waits for signals again.
        while state(process) != "S" || state(works) == "T" {
            wait(10);
        }
    }
    rustix::process::kill_process(process, Signal::INT).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(130).err_has("what was measured follows");
    assert_eq!(ground.left(), [""; 0]);
}

/// A directory twice, for three rounds of some seconds, after the last of which the answer is told.
const SECONDS: &str = study!(
    "Block sizes, for seconds",
    r#"block-size = ["4 KiB", "8 KiB"]"#,
    [r#"dir = { path = "data" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = "1 s" }"#],
    3
);

/// What a run says on standard output whose window, which it draws in, is closed in the first round.
fn without_its_window(ground: &Ground, mut program: Command) -> Said {
    ground.make_dir("data");
    ground.write("seconds.toml", SECONDS);
    let (mut window, slave) = terminal();
    program.stdin(slave.try_clone().unwrap()).stderr(slave);
    // Elsewhere the live view is not drawn.
    program.env("TERM", "xterm").stdout(Stdio::piped());
    let child = program.spawn().unwrap();
    // The run alone has the terminal.
    drop(program);
    while !is_measuring(ground, 1) {
        // A window that takes nothing would hold the run up; the view is drawn four times a second.
        assert_ne!(window.read(&mut [0; 4096]).unwrap(), 0);
    }
    drop(window);
    Said::of(&child.wait_with_output().unwrap())
}

/// After `disown`, and where nothing else says that the window was closed.
pub(crate) fn a_run_whose_terminal_is_gone_goes_on_to_its_end() {
    let ground = Ground::new();
    let said = without_its_window(&ground, ground.program(&["run", "seconds.toml"]));
    said.ended(0);
    assert!(said.out.starts_with("VERDICT"), "{}", said.out);
    assert_eq!(ground.left(), [""; 0]);
}

/// The kernel tells the leader of a session alone, which is the process in front.
#[expect(clippy::disallowed_methods, reason = "setsid starts the program")]
pub(crate) fn a_run_that_leads_its_session_is_stopped_cleanly_by_the_end_of_its_terminal() {
    let ground = Ground::new();
    let own = ground.program(&["run", "seconds.toml"]);
    // Who runs the tests may ignore hang-ups (nohup), and that is inherited.
    let mut program = Command::new("env");
    program.args(["--default-signal=HUP", "setsid", "--ctty"]);
    program.arg(own.get_program());
    program.args(own.get_args()).current_dir(ground.path());
    let said = without_its_window(&ground, program);
    said.ended(130);
    assert_eq!(ground.left(), [""; 0]);
}
