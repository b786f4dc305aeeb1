//! `stackrace postmark` beside the original, where that is installed: what it prints, the files it
//! makes, the system calls it issues; and what it leaves behind.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Ground, Said};
use rustix::process::{Pid, Signal};
use stackrace_test_needs as needs;

/// Runs a program in a directory with something on its standard input.
fn told(mut command: Command, input: &str) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that has ended does not read; what it said shows that.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Said::of(&child.wait_with_output().unwrap())
}

#[expect(clippy::disallowed_methods, reason = "the original is a process")]
fn original(ground: &Ground, args: &[&str]) -> Command {
    let mut command = Command::new("postmark");
    command.args(args).current_dir(ground.path());
    command
}

fn ours(ground: &Ground, args: &[&str]) -> Command {
    ground.program(&[&["postmark"], args].concat())
}

/// A report without what depends on time: rates, and data per second.
fn counted(text: &str) -> String {
    let line = |line: &str| match line.split_once(" per second)") {
        Some((before, _)) => before[..before.rfind('(').unwrap()].to_owned(),
        None if line.contains("seconds total") => String::new(),
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    for line in &mut lines {
        if line.contains("seconds of transactions") {
            line.clear();
        }
    }
    lines.join("\n")
}

/// Both on the same configuration: the same words, the same counts, nothing left.
#[track_caller]
fn same(ground: &Ground, configuration: &str) {
    let config = ground.write("pm.cfg", configuration);
    let config = config.to_str().unwrap();
    let theirs = told(original(ground, &[config]), "");
    let our = told(ours(ground, &[config]), "");
    our.ended(0);
    assert_eq!(counted(&our.out), counted(&theirs.out), "{configuration}");
    assert_eq!(our.err, theirs.err, "{configuration}");
    assert_eq!(ground.left(), [""; 0]);
}

/// Numbers that follow from a seed, for arbitrary configurations.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

fn random_configuration(numbers: &mut Numbers, ground: &Path) -> String {
    let mut text = String::new();
    let mut set = |line: String| text.push_str(&format!("set {line}\n"));
    let low = 1 + numbers.below(6000);
    match numbers.below(4) {
        0 => set(format!("size {low}")),
        _ => set(format!("size {low} {}", low + numbers.below(30_000))),
    }
    set(format!("number {}", 1 + numbers.below(150)));
    set(format!("seed {}", 1 + numbers.below(1 << 30)));
    set(format!("transactions {}", 10 + numbers.below(600)));
    let blocks = [1, 100, 512, 4096, 5000, 16_384, 70_000];
    for what in ["read", "write"] {
        set(format!("{what} {}", blocks[numbers.below(7) as usize]));
    }
    set(format!("buffering {}", numbers.below(2) == 0));
    for what in ["read", "create"] {
        if numbers.below(2) == 0 {
            set(format!("bias {what} {}", numbers.below(12) as i64 - 1));
        }
    }
    set(format!("subdirectories {}", 1 + numbers.below(6)));
    for (number, name) in (0..numbers.below(4)).zip(["a", "b", "c"]) {
        let plus = if number == 0 { "" } else { "+" };
        let weight = 1 + numbers.below(5);
        set(format!(
            "location {plus}{}/{name} {weight}",
            ground.display()
        ));
    }
    text + "show\nrun\nset seed 99\nrun\nquit\n"
}

fn whatever_is_set_both_do_the_same() {
    needs::tool("postmark");
    let ground = Ground::new();
    for name in ["a", "b", "c"] {
        ground.make_dir(name);
    }
    for seed in 0..25 {
        let configuration = random_configuration(&mut Numbers(seed), ground.path());
        same(&ground, &configuration);
    }
}

fn whatever_is_typed_both_say_the_same() {
    needs::tool("postmark");
    let ground = Ground::new();
    let file = ground.write(".pmrc", "set number 77\nhelp run\nexit\n?\n");
    // Others could not have written it, whatever the umask is.
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    let _ = ground.write("more", "set seed 5\nquit\nset seed 6\n");
    let typed = "show\n?\n? run\nhelp\nhelp set r\nhelp zzz\n\n show\nset\nset foo\nset size 0\n\
        set size 9 3\nset size  5 7\nset size 5a 7b\nset number\nset number 12x\nset numberx 7\n\
        set seed 3000000000\nset transactions 0\nset read 7000\nset write 2000000\n\
        set buffering maybe\nset buffering false\nset bias\nset bias read 11\nset bias read x\n\
        set bias create -1\nset report foo\nset subdirectories 0\nset subdirectories 1\nshow\n\
        set location\nset location /x 0\nset location +/y 3\nset location -/z\n\
        set location -/x\nset subdirectories 4\nset size 1048576\nshow\nload\nload nowhere\n\
        load more\nshow\nshow kept\n!echo from the shell; pwd\n!cat kept\n!false\nexit now\nexit\n";
    let run = |command: Command| {
        let _ = fs::remove_file(ground.path().join("kept"));
        told(command, typed)
    };
    let theirs = run(original(&ground, &[]));
    let our = run(ours(&ground, &[]));
    our.ended(0);
    // The original's shell and the original itself write to the same file, each when it likes.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(|it| it.replace("pm>", "")).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    };
    assert_eq!(sorted(&our.out), sorted(&theirs.out));
    assert_eq!(our.err, theirs.err);
}

/// How often each system call was made on files, by the kernel's names.
fn calls(ground: &Ground, name: &str, command: &Command, input: &str) -> BTreeMap<String, u64> {
    let log = ground.path().join(name);
    let mut strace = strace(&log);
    strace
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(ground.path());
    let _ = told(strace, input);
    let text = fs::read_to_string(log).unwrap();
    let mut counts = BTreeMap::new();
    // `% time  seconds  usecs/call  calls  [errors]  syscall`
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, calls, .., name] = words[..]
            && let Ok(calls) = calls.parse()
        {
            counts.insert(name.to_owned(), calls);
        }
    }
    counts
}

#[expect(clippy::disallowed_methods, reason = "strace is a process")]
fn strace(log: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(log);
    strace
}

/// The same calls but for what each program does once, whatever the configuration: the difference
/// between a long and a short run.
fn both_make_the_same_system_calls() {
    needs::tool("postmark");
    needs::tool("strace");
    let ground = Ground::new();
    for buffering in ["true", "false"] {
        let input = |files: u32, transactions: u32| {
            format!(
                "set number {files}\nset transactions {transactions}\nset size 512 20000\n\
                 set write 700\nset buffering {buffering}\nset report terse\nrun\nquit\n"
            )
        };
        let (long, short) = (input(200, 1000), input(50, 10));
        let more = |command: &dyn Fn() -> Command| {
            // The first run of all makes the store.
            calls(&ground, "first", &command(), &short);
            let long = calls(&ground, "long", &command(), &long);
            let short = calls(&ground, "short", &command(), &short);
            let of = |counts: &BTreeMap<String, u64>, names: &[&str]| -> i64 {
                let found = names.iter().filter_map(|name| counts.get(*name));
                found.sum::<u64>() as i64
            };
            [
                &["open", "openat"][..],
                &["close"],
                &["read"],
                &["write"],
                &["unlink", "unlinkat"],
                &["lseek"],
                &["fstat", "newfstatat"],
            ]
            .map(|names| of(&long, names) - of(&short, names))
        };
        let theirs = more(&|| original(&ground, &[]));
        let our = more(&|| ours(&ground, &[]));
        assert!(theirs[0] > 1000, "{theirs:?}");
        assert_eq!(
            our, theirs,
            "open, close, read, write, unlink, lseek, fstat"
        );
    }
}

/// The golden outputs, without the original.
fn reference_outputs_are_printed_again() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/postmark");
    for name in ["151_default", "151_phoronix", "151_bias", "151_help"] {
        let printed = fs::read_to_string(golden.join(format!("{name}.txt"))).unwrap();
        let ground = Ground::new();
        let here = ground.path().to_str().unwrap();
        let commands = printed.lines().filter_map(|line| line.strip_prefix("#   "));
        let commands: String = commands.map(|line| line.to_owned() + "\n").collect();
        ground.make_dir("place");
        let place = format!("{here}/place");
        let config = ground.write("pm.cfg", commands.replace("/srv/test", &place));
        let mut command = ours(&ground, &[config.to_str().unwrap()]);
        command.current_dir(&place);
        let said = told(command, "");
        said.ended(0);
        let report = |text: &str| {
            let after = text.split_once("configuration from file").unwrap().1;
            let body = after.split_once('\n').unwrap().1;
            counted(body.trim_end_matches("rc=0\n").trim_end())
        };
        let expected = report(&printed.replace("/srv/test", &place));
        assert_eq!(report(&said.out), expected, "{name}");
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for another process")]
fn interrupted(ground: &Ground) -> Child {
    let config = ground.write(
        "pm.cfg",
        "set number 20000\nset transactions 100000000\nrun\n",
    );
    let mut command = ours(ground, &[config.to_str().unwrap()]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while ground.left().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn an_interrupted_run_leaves_nothing() {
    let ground = Ground::new();
    let child = interrupted(&ground);
    signal(&child, Signal::INT);
    let said = Said::of(&child.wait_with_output().unwrap());
    said.ended(130);
    assert!(said.err.contains("stopping"), "{}", said.err);
    assert!(!said.out.contains("Time:"), "{}", said.out);
    assert_eq!(ground.left(), [""; 0]);
}

fn what_a_killed_run_left_is_found() {
    let ground = Ground::new();
    let child = interrupted(&ground);
    signal(&child, Signal::KILL);
    let _ = child.wait_with_output().unwrap();
    assert!(!ground.left().is_empty());
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

fn a_run_that_cannot_be_is_said_and_the_next_line_is_obeyed() {
    let ground = Ground::new();
    let config = "set location /nonexistent\nrun\nset report terse\nshow\nquit\n";
    let config = ground.write("pm.cfg", config);
    let said = told(ours(&ground, &[config.to_str().unwrap()]), "");
    said.ended(3);
    assert!(said.err.contains("/nonexistent"), "{}", said.err);
    assert!(
        said.out.ends_with("Report format is terse.\n"),
        "{}",
        said.out
    );
    let said = told(ours(&ground, &["no-such-file"]), "");
    said.ended(3);
    assert!(said.err.contains("no-such-file"), "{}", said.err);
}

fn the_users_own_files_are_left_alone_and_real_time_is_told() {
    let ground = Ground::new();
    let mine = ground.write("1", "mine");
    let said = told(
        ours(&ground, &["--real-time"]),
        "set number 5\nset transactions 9\nset bias create 5\nrun report\nquit",
    );
    said.ended(0);
    assert_eq!(fs::read_to_string(mine).unwrap(), "mine");
    let report = fs::read_to_string(ground.path().join("report")).unwrap();
    assert!(report.starts_with("Time:\n"), "{report}");
    assert!(said.err.contains("In real time:"), "{}", said.err);
    assert!(said.err.contains("append latency"), "{}", said.err);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        whatever_is_set_both_do_the_same,
        whatever_is_typed_both_say_the_same,
        both_make_the_same_system_calls,
        reference_outputs_are_printed_again,
        an_interrupted_run_leaves_nothing,
        what_a_killed_run_left_is_found,
        a_run_that_cannot_be_is_said_and_the_next_line_is_obeyed,
        the_users_own_files_are_left_alone_and_real_time_is_told,
    ]
}
