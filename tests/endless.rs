//! What has no end: devices, FIFOs, other machines. It is refused with its limit, and memory is not
//! taken by it. Every command runs with at most 2 GiB of address space.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Ground, Said};
use stackrace_test_needs as needs;

/// The same command, which gets no more memory than this.
#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is a process"
)]
fn limited(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 2097152; exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        shell.current_dir(dir);
    }
    shell.stdin(Stdio::null());
    shell
}

fn said(ground: &Ground, args: &[&str]) -> Said {
    Said::of(&limited(&ground.program(args)).output().unwrap())
}

/// An executable script in the ground.
fn script(ground: &Ground, name: &str, text: &str) -> String {
    let path = ground.write(name, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.into_os_string().into_string().unwrap()
}

fn an_endless_device_is_refused_with_the_limit_and_advice() {
    let ground = Ground::new();
    for (args, code, limit, advice) in stackrace_test_needs::attacks([
        (
            &["import", "/dev/zero"][..],
            3,
            "16 MiB",
            "give it the results alone",
        ),
        (
            &["plan", "/dev/zero"],
            3,
            "256 KiB",
            "check that it is the right file",
        ),
        (
            &["run", "/dev/zero"],
            3,
            "256 KiB",
            "check that it is the right file",
        ),
        (
            &["postmark", "/dev/zero"],
            3,
            "1 MiB",
            "name a file of PostMark commands",
        ),
    ]) {
        let said = said(&ground, args);
        said.ended(code);
        said.err_has(&format!("larger than {limit}"))
            .err_has(advice);
    }
    assert!(!ground.store().join("runs").exists());
}

fn an_endless_fifo_is_refused_and_a_short_one_is_read() {
    let ground = Ground::new();
    crate::support::tool("mkfifo", &[ground.path().join("fifo").to_str().unwrap()]);
    let import = |from: &str| {
        let script = format!("cat '{from}' > fifo & exec \"$@\"");
        let mut words: Vec<OsString> = vec!["-c".into(), script.into(), "sh".into()];
        let command = limited(&ground.program(&["import", "fifo"]));
        words.push(command.get_program().to_owned());
        words.extend(command.get_args().map(ToOwned::to_owned));
        shell(&ground, &words)
    };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    import("/dev/zero").ended(3).err_has("larger than 16 MiB");
    import(golden.join("dd/coreutils-two.txt").to_str().unwrap()).ended(0);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program under test is a process"
)]
fn shell(ground: &Ground, words: &[OsString]) -> Said {
    let mut shell = Command::new("sh");
    let shell = shell.args(words).current_dir(ground.path());
    Said::of(&shell.output().unwrap())
}

fn an_endless_line_at_postmarks_prompt_is_refused() {
    let ground = Ground::new();
    let mut command = limited(&ground.program(&["postmark"]));
    command.stdin(fs::File::open("/dev/zero").unwrap());
    let said = Said::of(&command.output().unwrap());
    said.ended(3)
        .err_has("a line is larger than 1 MiB")
        .err_has("one command a line");
}

fn a_machine_that_prints_a_line_without_end_is_given_up() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write(
        "study.toml",
        "title = \"T\"\n[factors]\nsize = [\"4 KiB\", \"8 KiB\"]\n[[stack]]\n\
         dir = { path = \"data\" }\n[[workload]]\nrandom = { mode = \"read\", time = \"1 s\", access = \"uniform\", size = \"1 MiB\", block-size = \"{size}\" }\n",
    );
    let greets = script(&ground, "greets", "exec cat /dev/zero");
    let complains = script(
        &ground,
        "complains",
        "head -c 300000000 /dev/zero >&2; echo; exit 255",
    );
    let plan = |ssh: &str| {
        said(
            &ground,
            &["plan", "study.toml", "--on", "far", "--ssh", ssh],
        )
    };
    plan(&greets).ended(4).err_has("a line is larger than");
    // Each control character is shown as a sign of three bytes.
    let said = plan(&complains);
    assert!(said.ended(4).err.chars().count() < 10_000);
}

fn postmark_obeys_no_file_that_another_user_can_write() {
    let ground = Ground::new();
    let file = ground.write(".pmrc", "!touch obeyed\nquit\n");
    let obeyed = ground.path().join("obeyed");
    let mode = |mode| fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o666);
    ground
        .stackrace(&["postmark"])
        .ended(3)
        .err_has("can be written by other users")
        .err_has("stackrace postmark .pmrc");
    if rustix::process::geteuid().is_root() {
        mode(0o644);
        std::os::unix::fs::chown(&file, Some(54_321), None).unwrap();
        ground
            .stackrace(&["postmark"])
            .ended(3)
            .err_has("stackrace postmark .pmrc");
        std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    }
    fs::rename(&file, ground.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &file).unwrap();
    ground
        .stackrace(&["postmark"])
        .ended(3)
        .err_has("is a link");
    assert!(!obeyed.exists());
    fs::remove_file(&file).unwrap();
    fs::rename(ground.path().join("elsewhere"), &file).unwrap();
    // One's own, and what was named, is obeyed.
    mode(0o644);
    ground.stackrace(&["postmark"]).ended(0);
    assert!(obeyed.exists());
    fs::remove_file(&obeyed).unwrap();
    mode(0o666);
    ground.stackrace(&["postmark", ".pmrc"]).ended(0);
    assert!(obeyed.exists());
}

/// A command of a shell that sets a limit; what is said then, and the way to raise it.
const LIMITS: [(&str, &str, &str); 5] = [
    ("ulimit -n 6", "files open at once", "ulimit -n"),
    ("ulimit -n 20", "files open at once", "ulimit -n"),
    ("ulimit -f 0", "write files of 0 bytes", "ulimit -f"),
    ("ulimit -f 100", "write files of", "ulimit -f"),
    (
        "prlimit --pid $$ --nproc=3",
        "threads cannot be started",
        "ulimit -u",
    ),
];

#[expect(
    clippy::disallowed_methods,
    reason = "a shell sets the limit for the program under test"
)]
fn a_limit_that_is_too_low_is_refused_before_anything_is_made() {
    needs::root();
    let ground = Ground::new();
    ground.make_dir("data");
    let load = ["load", "data", "sequential", "mode=write", "size=1MiB"];
    let compare = ["compare", "data", "data", "--anyway"];
    let run = ["run", "demo"];
    for ((limit, refused, next), words) in LIMITS
        .iter()
        .flat_map(|limit| [&load[..], &compare, &run].map(|words| (limit, words)))
    {
        let program = ground.program(words);
        // Limits on processes do not hold for root.
        let user = match limit.contains("nproc") {
            true => "setpriv --reuid=65534 --clear-groups",
            false => "",
        };
        let limited = Command::new("sh")
            .args(["-c", &format!("{limit}; exec {user} \"$0\" \"$@\"")])
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(ground.path())
            .output();
        let said = Said::of(&limited.unwrap());
        said.ended(3).err_has(refused).err_has(next);
        assert!(!ground.store().join("runs").exists(), "a run was begun");
        assert_eq!(ground.left(), [""; 0]);
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        a_limit_that_is_too_low_is_refused_before_anything_is_made,
        an_endless_device_is_refused_with_the_limit_and_advice,
        an_endless_fifo_is_refused_and_a_short_one_is_read,
        an_endless_line_at_postmarks_prompt_is_refused,
        a_machine_that_prints_a_line_without_end_is_given_up,
        postmark_obeys_no_file_that_another_user_can_write
    ]
}
