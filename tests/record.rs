//! `stackrace record` as the real program: planted calls, known shares, ends of every kind, refusals.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

mod whole;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Ground, Said, quietly};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stackrace_test_needs as needs;

/// Calls that are known to the last one: `os` of Python calls the kernel once for each.
pub(super) const PLANTED: &str = "
import os, sys
d = sys.argv[1]
f = os.open(d + '/f', os.O_RDWR | os.O_CREAT)
for i in range(40): os.pwrite(f, b'x' * 4096, i * 4096)
for i in range(25): os.pread(f, 4096, i * 4096)
for i in range(3): os.fsync(f)
os.close(f)
r, w = os.pipe()
if os.fork() == 0:
    g = os.open(d + '/g', os.O_WRONLY | os.O_CREAT)
    os.write(g, b'y' * 1000)
    os.fsync(g)
    os.close(g)
    os.write(w, b'.')
    os._exit(0)
os.read(r, 1)
os.wait()
os.mkdir(d + '/m')
os.rename(d + '/f', d + '/m/f')
os.stat(d + '/m/f')
";

/// Sleeps, computes and syncs; prints how long the syncs took, s.
const SHARES: &str = "
import os, sys, time
f = os.open(sys.argv[1] + '/f', os.O_RDWR | os.O_CREAT)
time.sleep(0.4)
end = time.process_time() + 0.3
while time.process_time() < end: pass
took = 0
while took < 0.3:
    os.pwrite(f, b'x' * 65536, 0)
    begin = time.monotonic()
    os.fsync(f)
    took += time.monotonic() - begin
print(took)
";

/// Writes for so many seconds, and says at the end that it was not disturbed.
const WRITES: &str = "
import os, sys, time
f = os.open(sys.argv[1] + '/f', os.O_RDWR | os.O_CREAT)
print('begun', flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    assert os.pwrite(f, b'x' * 4096, 0) == 4096
    time.sleep(0.0005)
print('unharmed')
";

pub(super) fn able() -> Ground {
    needs::root();
    needs::tool("python3");
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        needs::skip("needs a kernel that describes its types (/sys/kernel/btf/vmlinux)");
    }
    let ground = Ground::new();
    ground.make_dir("data");
    let tried = ground.stackrace(&["record", "--below", "data", "-o", "try.trace", "--", "true"]);
    if tried.code == Some(4) {
        needs::skip(format!(
            "needs a kernel that lets itself be looked at: {}",
            tried.err
        ));
    }
    tried.ended(0);
    ground
}

/// Records a program of Python in `data`, whatever that costs.
pub(super) fn recorded(ground: &Ground, program: &str, trace: &str) -> Said {
    let (python, data) = (python(), ground.path().join("data"));
    let data = data.to_str().unwrap();
    let words = [
        "record", "--below", "data", "--cost", "1000 %", "-o", trace, "--", &python, "-c", program,
        data,
    ];
    let said = ground.stackrace(&words);
    said.ended(0);
    said
}

/// The interpreter itself: what is called so may be a script that starts it, and other programs before it.
fn python() -> String {
    let said = quietly(
        "python3",
        &["-c", "import sys; print(sys.executable, end='')"],
    );
    String::from_utf8(said.stdout).unwrap()
}

fn info(ground: &Ground, trace: &str) -> Value {
    let said = ground.stackrace(&["trace", "info", trace, "--json"]);
    said.ended(0);
    serde_json::from_str(&said.out).unwrap()
}

/// Calls, failures and bytes of a class.
fn class(info: &Value, name: &str) -> (u64, u64, u64) {
    let classes = info["classes"].as_array().unwrap();
    let class = classes.iter().find(|class| class["class"] == name);
    let number = |what: &str| class.map_or(0, |class| class[what].as_u64().unwrap());
    (number("calls"), number("failed"), number("bytes"))
}

/// A program that writes below `data` for so many seconds, once it has begun.
#[expect(clippy::disallowed_methods, reason = "an application is a process")]
fn writing(ground: &Ground, seconds: &str) -> Child {
    let mut command = Command::new("python3");
    let data = ground.path().join("data");
    command.args(["-c", WRITES]).arg(data).arg(seconds);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut begun = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut begun).unwrap();
    child
}

/// A recorder of an application, once it has begun.
fn recording(ground: &Ground, application: &Child, trace: &str, out: Stdio) -> Child {
    let process = application.id().to_string();
    let mut command =
        ground.program(&["record", "--below", "data", "--pid", &process, "-o", trace]);
    let mut recorder = command.stderr(Stdio::piped()).stdout(out).spawn().unwrap();
    until_begun(&mut recorder);
    recorder
}

/// Waits until a recording has begun, which takes its file some operations later.
fn until_begun(recorder: &mut Child) {
    let mut line = Vec::new();
    let mut byte = [0];
    let from = recorder.stderr.as_mut().unwrap();
    while std::io::Read::read(from, &mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let said = String::from_utf8_lossy(&line);
    assert!(said.starts_with("recording calls"), "{said}");
}

#[track_caller]
fn is_unharmed(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("unharmed"));
}

/// Programs of ours in the kernel.
fn in_the_kernel() -> usize {
    let ours = [
        "call_begins",
        "call_ends",
        "woken",
        "forked",
        "ended",
        "switched",
    ];
    let all = aya::programs::loaded_programs().flatten();
    all.filter(|program| {
        program
            .name_as_str()
            .is_some_and(|name| ours.contains(&name))
    })
    .count()
}

/// The kernel takes programs out a moment after their process is gone.
#[track_caller]
fn nothing_stays_in_the_kernel() {
    for _ in 0..LOOKS_MAX {
        if in_the_kernel() == 0 {
            return;
        }
        pause(50);
    }
    panic!("{} programs stay", in_the_kernel());
}

/// Looks at the kernel's list until nothing is left: 20 s.
const LOOKS_MAX: u32 = 400;

#[expect(
    clippy::disallowed_methods,
    reason = "a test watches the program from outside"
)]
fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

fn every_planted_call_is_recorded_and_no_other() {
    let ground = able();
    let said = recorded(&ground, PLANTED, "app.trace");
    for part in [
        "0 of ",
        "Names are hashed",
        "next: stackrace show trace app.trace",
    ] {
        assert!(said.out.contains(part), "{}", said.out);
    }
    let info = info(&ground, "app.trace");
    assert_eq!(class(&info, "write"), (41, 0, 40 * 4096 + 1000));
    assert_eq!(class(&info, "read"), (25, 0, 25 * 4096));
    assert_eq!(class(&info, "sync"), (4, 0, 0));
    assert_eq!(class(&info, "open, close"), (4, 0, 0));
    assert_eq!(class(&info, "change names"), (2, 0, 0));
    assert_eq!(class(&info, "look"), (1, 0, 0));
    assert_eq!(
        (&info["forks"], &info["ending"]["lost"]),
        (&1.into(), &0.into())
    );
    assert_eq!(info["ending"]["unresolved"], 0);
    // In memory no device has anything to do.
    if let Some(device) = info["ending"]["device"].as_object() {
        assert!(
            device["written_bytes"].as_u64().unwrap() >= 41 * 4096,
            "{info}"
        );
        assert_ne!(device["flushes"].as_u64(), Some(0), "{info}");
    }
    let shown = ground.stackrace(&["show", "trace", "app.trace"]);
    shown.ended(0);
    assert!(
        shown
            .out
            .contains("% of the critical path; no storage makes this more than"),
        "{}",
        shown.out
    );
    // No name is in it: neither of the files nor of the directory.
    let bytes = fs::read(ground.path().join("app.trace")).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"/data/"));
    let cut = ground.stackrace(&[
        "trace",
        "cut",
        "app.trace",
        "--from",
        "1 ms",
        "-o",
        "part.trace",
    ]);
    cut.ended(0);
    ground.stackrace(&["trace", "info", "part.trace"]).ended(0);
    nothing_stays_in_the_kernel();
}

fn the_critical_path_has_the_shares_that_were_planted() {
    let ground = able();
    let said = recorded(&ground, SHARES, "app.trace");
    let synced: f64 = said.out.lines().next().unwrap().parse().unwrap();
    let info = info(&ground, "app.trace");
    let seconds = |name: &str| info["path"][name].as_f64().unwrap() / 1e9;
    let (storage, outside) = (seconds("storage"), seconds("outside"));
    assert!(
        (storage / synced - 1.0).abs() < 0.15,
        "{storage} of {synced}: {info}"
    );
    assert!((0.39..0.6).contains(&outside), "{info}");
    assert!(seconds("processor") >= 0.28, "{info}");
    let all: f64 = [
        "storage",
        "processor",
        "queued",
        "pages",
        "other-files",
        "outside",
    ]
    .map(seconds)
    .iter()
    .sum();
    let at_most = info["at-most"].as_f64().unwrap();
    let stays = seconds("processor") + outside + seconds("other-files");
    assert!(
        (at_most - all / stays).abs() < 1e-6 && at_most > 1.0,
        "{info}"
    );
}

fn a_recorder_that_is_killed_leaves_the_application_and_the_kernel_alone() {
    let ground = able();
    for _ in needs::attacks(0..5) {
        let application = writing(&ground, "2");
        let mut recorder = recording(&ground, &application, "killed.trace", Stdio::null());
        assert!(in_the_kernel() > 0);
        pause(300);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        nothing_stays_in_the_kernel();
        is_unharmed(application);
        let shown = ground.stackrace(&["show", "trace", "killed.trace"]);
        shown.ended(2).err_has("the recorder was killed");
        fs::remove_file(ground.path().join("killed.trace")).unwrap();
    }
}

fn what_was_recorded_is_kept_at_ctrl_c_and_when_the_target_is_gone() {
    let ground = able();
    for (interrupted, trace) in [(true, "int.trace"), (false, "gone.trace")] {
        let application = writing(&ground, "1.5");
        let mut recorder = recording(&ground, &application, trace, Stdio::null());
        pause(500);
        if interrupted {
            let id = Pid::from_child(&recorder);
            kill_process(id, Signal::INT).unwrap();
        }
        is_unharmed(application);
        assert!(recorder.wait().unwrap().success());
        let info = info(&ground, trace);
        let stopped = if interrupted { "interrupted" } else { "ended" };
        assert_eq!(info["ending"]["stopped"], stopped);
        assert!(class(&info, "write").0 > 20, "{info}");
        nothing_stays_in_the_kernel();
    }
}

/// Else it would be waited for until the time is over: its end is not told a second time.
fn an_application_that_has_ended_already_ends_its_recording() {
    let ground = able();
    // It has ended, and its exit code was not asked for yet.
    #[expect(clippy::disallowed_methods, reason = "an application is a process")]
    let mut ended = Command::new("true").spawn().unwrap();
    let stat = format!("/proc/{}/stat", ended.id());
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        pause(10);
    }
    let process = ended.id().to_string();
    let said = ground.stackrace(&[
        "record", "--below", "data", "--pid", &process, "--time", "10 min",
    ]);
    ended.wait().unwrap();
    said.ended(0);
    assert_eq!(info(&ground, "app.trace")["ending"]["stopped"], "ended");
}

fn a_disk_that_fills_up_ends_the_recording_and_keeps_it() {
    let ground = able();
    let full = ground.make_dir("full");
    let mounted = |size: &str| {
        let size = format!("size={size}");
        quietly(
            "mount",
            &["-t", "tmpfs", "-o", &size, "none", full.to_str().unwrap()],
        )
    };
    assert!(mounted("32m").status.success());
    let refused = ground.stackrace(&[
        "record",
        "--below",
        "data",
        "-o",
        "full/app.trace",
        "--",
        "true",
    ]);
    let unmounted = quietly("umount", &[full.to_str().unwrap()]);
    assert!(unmounted.status.success());
    refused.ended(4).err_has("stay free in any case");
    assert!(mounted("140m").status.success());
    let application = writing(&ground, "2");
    let recorder = recording(&ground, &application, "full/app.trace", Stdio::piped());
    fs::write(full.join("filler"), vec![1; 100 << 20]).unwrap();
    let said = Said::of(&recorder.wait_with_output().unwrap());
    is_unharmed(application);
    let shown = ground.stackrace(&["show", "trace", "full/app.trace"]);
    quietly("umount", &[full.to_str().unwrap()]);
    said.ended(0);
    assert!(
        said.out.contains("hardly any space is left"),
        "{}",
        said.out
    );
    shown.ended(0);
}

fn what_costs_too_much_is_no_longer_recorded() {
    let ground = able();
    let said = ground.stackrace(&[
        "record", "--below", "data", "--cost", "1 %", "--", "python3", "-c",
        "import os\nf = os.open('data/f', os.O_RDWR | os.O_CREAT)\nfor i in range(3000000): os.pread(f, 1, 0)",
    ]);
    said.ended(0);
    assert!(
        said.out.contains("recording cost more than 1.0 % of"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("goes on without being recorded"),
        "{}",
        said.out
    );
    nothing_stays_in_the_kernel();
}

fn what_cannot_be_recorded_is_refused_and_leaves_no_file() {
    let ground = able();
    fs::write(ground.path().join("plain"), "").unwrap();
    let cases: [(&[&str], i32, &str); 7] = [
        (
            &["--below", "plain", "--pid", "1"],
            2,
            "--below plain is no directory",
        ),
        (
            &["--below", "data", "--pid", "4000000000"],
            2,
            "there is no process 4000000000",
        ),
        (
            &["--below", "data", "--unit", "no-such-unit"],
            2,
            "no process of a unit no-such-unit runs",
        ),
        (&["--below", "nothing", "--pid", "1"], 2, "--below nothing"),
        (
            &["--below", "data", "-o", "data/x.trace", "--", "true"],
            2,
            "would be recorded too",
        ),
        (
            &["--below", "data", "--", "no-such-program"],
            2,
            "no-such-program",
        ),
        (&["--below", "data"], 2, "--pid"),
    ];
    for (words, code, part) in cases {
        let said = ground.stackrace(&[&["record"], words].concat());
        said.ended(code).err_has(part);
        assert!(!ground.path().join("app.trace").exists(), "{words:?}");
    }
    let taken = ground.stackrace(&["record", "--below", "data", "-o", "try.trace", "--", "true"]);
    taken.ended(3).err_has("is there already");
}

fn a_command_that_a_signal_ends_is_not_said_to_go_on() {
    let ground = able();
    let words = ["record", "--below", "data", "--", "sh", "-c", "kill -9 $$"];
    let said = ground.stackrace(&words);
    said.ended(0);
    assert!(said.out.contains("ended by signal 9"), "{}", said.out);
    assert!(!said.out.contains("goes on"), "{}", said.out);
}

fn without_rights_it_is_refused_with_what_to_do() {
    needs::root();
    let setpriv = needs::tool("setpriv");
    let ground = Ground::new();
    let data = ground.make_dir("data");
    let program = ground.program(&["record", "--below", data.to_str().unwrap(), "--", "true"]);
    let words: Vec<&str> = program
        .get_args()
        .map(|word| word.to_str().unwrap())
        .collect();
    let all = [
        &[
            "--bounding-set=-all",
            "--inh-caps=-all",
            program.get_program().to_str().unwrap(),
        ],
        &words[..],
    ]
    .concat();
    let output = quietly(setpriv.to_str().unwrap(), &all);
    let said = Said::of(&output);
    // Not the name alone: sudo does not look where the tests' program lies.
    let as_root = format!("sudo {} record", env!("CARGO_BIN_EXE_stackrace"));
    said.ended(4).err_has(&as_root);
}

fn the_compiled_kernel_side_is_that_of_its_source() {
    for tool in ["clang", "llvm-strip"] {
        needs::tool(tool);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/capture/bpf");
    let built = tempfile::tempdir().unwrap();
    let script = folder.join("build.sh");
    let done = quietly(script.to_str().unwrap(), &[built.path().to_str().unwrap()]);
    if !done.status.success() {
        needs::skip("needs the headers of libbpf (libbpf-dev)");
    }
    for name in ["recorder-x86.o", "recorder-arm64.o"] {
        let kept = fs::read(folder.join(name)).unwrap();
        let new = fs::read(built.path().join(name)).unwrap();
        assert!(
            kept == new,
            "{name} differs: crates/capture/bpf/build.sh crates/capture/bpf"
        );
    }
}

pub(super) fn tests() -> Vec<needs::Test> {
    let more = whole::tests();
    let own = needs::tests![
        every_planted_call_is_recorded_and_no_other,
        the_critical_path_has_the_shares_that_were_planted,
        a_recorder_that_is_killed_leaves_the_application_and_the_kernel_alone,
        what_was_recorded_is_kept_at_ctrl_c_and_when_the_target_is_gone,
        an_application_that_has_ended_already_ends_its_recording,
        a_disk_that_fills_up_ends_the_recording_and_keeps_it,
        what_costs_too_much_is_no_longer_recorded,
        what_cannot_be_recorded_is_refused_and_leaves_no_file,
        a_command_that_a_signal_ends_is_not_said_to_go_on,
        without_rights_it_is_refused_with_what_to_do,
        the_compiled_kernel_side_is_that_of_its_source,
    ];
    own.into_iter().chain(more).collect()
}
