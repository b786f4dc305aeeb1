//! `stackrace load` as the real program: directories, files, devices; what it prints and leaves.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{Ground, Mounted, Said, tool};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use stackrace_test_needs as needs;

/// The object a load printed, after it ended well.
#[track_caller]
fn loaded(ground: &Ground, args: &[&str]) -> Value {
    let said = ground.stackrace(&[&["load"], args, &["--json"]].concat());
    said.ended(0);
    assert_eq!(said.err, "");
    assert_eq!(ground.left(), [""; 0]);
    serde_json::from_str(&said.out).unwrap()
}

/// Names of the operations of a phase with how many there were and how many bytes they moved.
fn counts(phase: &Value) -> Vec<(&str, u64, u64)> {
    let ops = phase["ops"].as_array().unwrap().iter();
    ops.map(|op| {
        let number = |name: &str| op[name].as_u64().unwrap();
        (op["op"].as_str().unwrap(), number("count"), number("bytes"))
    })
    .collect()
}

fn metric(object: &Value, name: &str) -> Option<f64> {
    let metrics = object["metrics"].as_array().unwrap().iter();
    metrics
        .filter(|metric| metric["name"] == name)
        .find_map(|metric| metric["value"].as_f64())
}

/// A file of so many KiB, none of them a hole.
fn file(ground: &Ground, name: &str, kib: usize) -> String {
    let path = ground.write(name, "stackrace, 16 B\n".repeat(64 * kib));
    path.to_str().unwrap().to_owned()
}

fn a_directory_is_laid_out_measured_and_left_as_it_was() {
    let ground = Ground::new();
    let place = ground.make_dir("data");
    let object = loaded(
        &ground,
        &[
            "data",
            "random",
            "mode=mixed",
            "size=1MiB",
            "fsync-every=64",
            "read-share=25%",
        ],
    );
    assert_eq!(object["workload"], "random");
    assert_eq!(Path::new(object["place"].as_str().unwrap()), place);
    let phase = &object["phases"][0];
    assert_eq!(phase["ended"], "complete");
    assert_eq!(
        counts(phase),
        [
            ("read", 64, 64 << 12),
            ("write", 192, 192 << 12),
            ("fsync", 4, 0)
        ]
    );
    for name in ["elapsed_ns", "cpu_ns"] {
        assert!(phase[name].as_u64().unwrap() > 0, "{name}");
    }
    let times = &phase["ops"][0]["latency_ns"];
    for name in ["mean", "p50", "p90", "p95", "p99", "max"] {
        assert!(times[name].as_f64().unwrap() > 0.0, "{name}");
    }
    // Of 64 reads it would be the largest one under another name.
    assert_eq!(times["p99.9"], Value::Null);
    assert_eq!(
        (&phase["error"], &phase["offered_per_s"]),
        (&Value::Null, &Value::Null)
    );
    assert!(metric(&object, "operations").unwrap() > 0.0);
    assert_eq!(fs::read_dir(place).unwrap().count(), 0);
}

fn a_workload_of_several_phases_shows_each() {
    let ground = Ground::new();
    ground.make_dir("data");
    let object = loaded(&ground, &["data", "files", "count=20", "directories=2"]);
    let phases = object["phases"].as_array().unwrap();
    assert!(phases.len() >= 4, "{phases:?}");
    for phase in phases {
        assert_eq!(phase["ended"], "complete");
    }
    let said = ground.stackrace(&["load", "data", "files", "count=20"]);
    said.ended(0);
    assert_eq!(said.out.matches("complete after").count(), phases.len());
}

fn an_existing_file_is_only_read_and_needs_no_store() {
    let ground = Ground::new();
    let path = file(&ground, "some", 64);
    let before = (
        fs::read(&path).unwrap(),
        fs::metadata(&path).unwrap().modified().unwrap(),
    );
    let object = loaded(&ground, &[&path, "random", "mode=read", "block-size=1KiB"]);
    assert_eq!(counts(&object["phases"][0]), [("read", 64, 64 << 10)]);
    let object = loaded(
        &ground,
        &[
            &path,
            "sequential",
            "mode=read",
            "block-size=4KiB",
            "operations=5",
            "--cold",
        ],
    );
    assert_eq!(counts(&object["phases"][0]), [("read", 5, 5 << 12)]);
    let after = (
        fs::read(&path).unwrap(),
        fs::metadata(&path).unwrap().modified().unwrap(),
    );
    assert!(before == after, "the file was changed");
    assert!(!ground.store().exists(), "a store was made");
}

fn a_table_is_at_most_eighty_columns_wide() {
    let ground = Ground::new();
    let path = file(&ground, "some", 64);
    let args = [
        "load",
        &path,
        "random",
        "mode=read",
        "access=uniform",
        "rate=2000",
    ];
    let said = ground.stackrace(&[&args[..], &["operations=40", "arrivals=poisson"]].concat());
    said.ended(0);
    for word in [
        "operation",
        "read",
        "engine",
        "depth",
        "offered 2.00 k/s",
        "caches",
        "cpu",
    ] {
        assert!(said.out.contains(word), "no {word:?} in\n{}", said.out);
    }
    // The name of the ground is as long as the machine's temporary directory makes it.
    let lines = said.out.lines().filter(|line| !line.contains(&path));
    for line in lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

fn an_open_loop_says_what_it_offered() {
    let ground = Ground::new();
    let path = file(&ground, "some", 64);
    let args = [
        &path,
        "random",
        "mode=read",
        "access=uniform",
        "rate=3000",
        "operations=30",
    ];
    let object = loaded(&ground, &args);
    assert_eq!(object["phases"][0]["offered_per_s"], 3000.0);
    assert!(metric(&object, "offered load achieved").unwrap() > 0.0);
}

fn what_is_verified_is_read_back() {
    let ground = Ground::new();
    ground.make_dir("data");
    let object = loaded(
        &ground,
        &[
            "data",
            "sequential",
            "mode=write",
            "size=2MiB",
            "verify=true",
            "block-size=64KiB",
        ],
    );
    let phases = object["phases"].as_array().unwrap();
    assert_eq!(
        (&phases[0]["name"], &phases[1]["name"]),
        (&"write".into(), &"verify".into())
    );
    assert_eq!(counts(&phases[1]), [("read", 2, 2 << 20)]);
    assert_eq!(phases[1]["verified_bytes"], 2 << 20);
}

/// A loop device on a file of a ground, detached at the end.
struct Device(String);

impl Device {
    fn on(file: &str) -> Self {
        Self(
            tool("losetup", &["--find", "--show", file])
                .trim()
                .to_owned(),
        )
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        tool("losetup", &["--detach", &self.0]);
    }
}

fn a_block_device_is_only_read() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let path = file(&ground, "image", 256);
    let device = Device::on(&path);
    let before = fs::read(&path).unwrap();
    let object = loaded(
        &ground,
        &[
            &device.0,
            "random",
            "mode=read",
            "direct=true",
            "queue-depth=4",
        ],
    );
    assert_eq!(counts(&object["phases"][0]), [("read", 64, 64 << 12)]);
    let write = ground.stackrace(&["load", &device.0, "random", "mode=write"]);
    write
        .ended(3)
        .err_has("only ever read")
        .err_has("nothing was changed");
    assert!(before == fs::read(&path).unwrap(), "the device was changed");
}

fn a_mounted_device_is_read_without_harm() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let mounted = Mounted::ext4(&ground, "mnt", 16);
    let kept = mounted.path.join("kept");
    fs::write(&kept, "as it was").unwrap();
    let device = tool("findmnt", &["-no", "SOURCE", mounted.text()]);
    let args = [device.trim(), "sequential", "mode=read"];
    let object = loaded(&ground, &args);
    assert_eq!(counts(&object["phases"][0]), [("read", 16, 16 << 20)]);
    assert_eq!(fs::read_to_string(&kept).unwrap(), "as it was");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program has to run as another user"
)]
fn a_user_without_a_home_reads_what_is_readable() {
    use std::os::unix::fs::PermissionsExt;
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let path = file(&ground, "some", 64);
    fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = ground.path().join("stackrace");
    fs::copy(env!("CARGO_BIN_EXE_stackrace"), &program).unwrap();
    let as_user = |place: &str| {
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["load", place, "random", "mode=read", "size=64KiB", "--json"])
            .env_clear()
            .output();
        Said::of(&output.unwrap())
    };
    let said = as_user(&path);
    said.ended(0);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(counts(&object["phases"][0]), [("read", 16, 64 << 10)]);
    as_user(ground.path().to_str().unwrap())
        .ended(3)
        .err_has("Permission denied")
        .err_has("nothing was changed");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    as_user(&path).ended(3).err_has("Permission denied");
}

/// Starts a load that would take an hour and waits until its data are laid out and it runs.
#[track_caller]
fn begun(ground: &Ground, place: &str, args: &[&str]) -> Child {
    let common = [
        "load",
        place,
        "random",
        "access=uniform",
        "time=1h",
        "--json",
    ];
    let mut child = ground
        .program(&[&common[..], args].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if runs(&child) {
            wait(100);
            return child;
        }
        wait(50);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the phase did not begin");
}

/// Whether the thread that does the I/O of a phase is there, in the process behind the one that was started.
fn runs(child: &Child) -> bool {
    let below = format!("/proc/{0}/task/{0}/children", child.id());
    let below = fs::read_to_string(below).unwrap_or_default();
    let of = |id: &str| fs::read_dir(format!("/proc/{id}/task")).into_iter();
    let mut names = below
        .split_whitespace()
        .flat_map(of)
        .flatten()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.any(|name| name.trim() == "engine")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test waits for the program it drives"
)]
fn wait(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

fn an_interrupt_shows_what_was_measured_and_leaves_nothing() {
    let ground = Ground::new();
    ground.make_dir("data");
    let path = file(&ground, "some", 64);
    for (place, args) in [
        ("data", &["mode=write", "size=1MiB"][..]),
        (&path, &["mode=read"]),
    ] {
        let child = begun(&ground, place, args);
        rustix::process::kill_process(pid(&child), Signal::INT).unwrap();
        let said = Said::of(&child.wait_with_output().unwrap());
        said.ended(130).err_has("what was measured follows");
        let object: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(object["phases"][0]["ended"], "stopped");
        assert!(counts(&object["phases"][0])[0].1 > 0);
        assert_eq!(ground.left(), [""; 0]);
    }
}

fn clean_removes_what_a_killed_load_left() {
    let ground = Ground::new();
    let place = ground.make_dir("data");
    let mut child = begun(&ground, "data", &["mode=write", "size=1MiB"]);
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left().len(), 1, "a load that lives is left alone");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ground.left().len(), 1);
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
    assert_eq!(fs::read_dir(place).unwrap().count(), 0);
}

fn a_phase_that_fails_is_shown_with_its_error() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let path = file(&ground, "image", 256);
    let device = Device::on(&path);
    // The second half of the device is gone: reads there fail.
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(128 << 10)
        .unwrap();
    let args = [
        "load",
        &device.0,
        "sequential",
        "mode=read",
        "block-size=4KiB",
        "direct=true",
    ];
    let said = ground.stackrace(&[&args[..], &["--json"]].concat());
    said.ended(5);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    let phase = &object["phases"][0];
    assert_eq!(phase["ended"], "failed");
    assert_eq!(counts(phase), [("read", 32, 128 << 10)]);
    let error = phase["error"].as_str().unwrap();
    assert!(
        error.contains(&device.0) && error.contains("131072"),
        "{error}"
    );
    let said = ground.stackrace(&args);
    said.ended(5);
    assert!(said.out.contains("failed     read of "), "{}", said.out);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a shell sets the limit for the program under test"
)]
fn a_limit_on_the_size_of_files_is_an_error_that_says_so() {
    let ground = Ground::new();
    ground.make_dir("data");
    let program = ground.program(&["load", "data", "sequential", "mode=write", "size=2MiB"]);
    // 2048 units of 512 bytes.
    let limited = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 2048; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(ground.path())
        .output();
    let said = Said::of(&limited.unwrap());
    said.ended(5);
    let all = format!("{}{}", said.out, said.err);
    // Where a line is broken depends on the length of the path.
    let all: Vec<&str> = all.split_whitespace().collect();
    let all = all.join(" ");
    assert!(
        all.contains("File too large") && all.contains("1048576 bytes (ulimit -f)"),
        "{all}"
    );
    // The file by the name that the user knows.
    assert!(!all.contains("/proc/"), "{all}");
    assert_eq!(ground.left(), [""; 0]);
}

/// Each of these has to be refused with a code and a word before anything is touched.
#[track_caller]
fn refused(ground: &Ground, cases: &[(&[&str], i32, &str)]) {
    for (args, code, word) in cases {
        let said = ground.stackrace(&[&["load"], *args].concat());
        said.ended(*code).err_has(word);
        assert_eq!(said.out, "", "{args:?}");
        assert!(!ground.store().exists(), "{args:?}: the store was made");
        assert_eq!(ground.left(), [""; 0]);
    }
}

fn places_that_do_not_fit_are_refused() {
    let ground = Ground::new();
    ground.make_dir("data");
    let path = file(&ground, "some", 64);
    ground.write("empty", "");
    let random = |word| [path.as_str(), "random", "mode=read", word];
    let rewrite = [
        path.as_str(),
        "sequential",
        "mode=rewrite",
        "block-size=4KiB",
    ];
    let fileio = [path.as_str(), "fileio", "mode=rndrd", "files=1"];
    refused(
        &ground,
        &[
            (
                &["nowhere", "random", "mode=read"],
                3,
                "nowhere: No such file",
            ),
            (&["empty", "random", "mode=read"], 3, "it is empty"),
            (
                &["/dev/null", "random", "mode=read"],
                3,
                "neither a directory, a file nor a block device",
            ),
            (&[&path, "random", "mode=write"], 3, "only ever read"),
            (&random("files=2"), 3, "cannot be several files"),
            (&random("verify=true"), 3, "cannot be verified"),
            (&random("size=1MiB"), 3, "holds 64 KiB"),
            (&rewrite, 3, "only ever read"),
            (&fileio, 3, "files it makes itself"),
            (&[&path, "files", "count=3"], 3, "files it makes itself"),
            (
                &["data", "random", "mode=read", "size=900TiB"],
                3,
                "this needs 900 TiB",
            ),
        ],
    );
}

fn words_that_make_no_sense_are_refused() {
    let ground = Ground::new();
    ground.make_dir("data");
    let random = |word| ["data", "random", "mode=read", "size=1MiB", word];
    let twice = ["data", "random", "mode=read", "mode=write"];
    let both = [
        "data",
        "random",
        "mode=read",
        "size=1MiB",
        "--warm",
        "--cold",
    ];
    refused(
        &ground,
        &[
            (&["data", "random", "mode=read"], 2, "random needs \"size\""),
            (
                &["data", "randon", "mode=read"],
                2,
                "did you mean \"random\"",
            ),
            (
                &["data", "random", "mode=reed"],
                2,
                "mode cannot be \"reed\"",
            ),
            (&["data", "random", "mode"], 2, "\"mode\" is no setting"),
            (&twice, 2, "given twice"),
            (&both, 2, "cannot be used"),
            (&random("depth=3"), 2, "queue-depth"),
            (&random("rate=x"), 2, "rate takes a number"),
            (&random("sync=dsync"), 2, "nothing is written"),
        ],
    );
}

fn the_engine_is_measured_here_and_now() {
    let ground = Ground::new();
    let said = ground.stackrace(&["show", "engine", "--json"]);
    said.ended(0);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert!(object["generator_ns_per_operation"].as_f64().unwrap() > 0.0);
    assert!(["tsc", "monotonic"].contains(&object["clock"].as_str().unwrap()));
    let content = object["content"].as_array().unwrap();
    assert!(content.len() > 3);
    assert!(
        content
            .iter()
            .all(|rate| rate["bytes_per_second"].as_f64().unwrap() > 0.0)
    );
    let ring = &object["io_uring"];
    assert_eq!(ring["available"].as_bool().unwrap(), ring["why"].is_null());
    let said = ground.stackrace(&["show", "engine"]);
    said.ended(0);
    for word in ["kernel", "generator", "clock", "io_uring", "content"] {
        assert!(
            said.out.lines().any(|line| line.starts_with(word)),
            "{}",
            said.out
        );
    }
    ground
        .stackrace(&["show", "layers", "--json"])
        .ended(2)
        .err_has("--json works only with engine");
    assert!(!ground.store().exists(), "a store was made");
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_directory_is_laid_out_measured_and_left_as_it_was,
        a_workload_of_several_phases_shows_each,
        an_existing_file_is_only_read_and_needs_no_store,
        a_table_is_at_most_eighty_columns_wide,
        an_open_loop_says_what_it_offered,
        what_is_verified_is_read_back,
        a_block_device_is_only_read,
        a_mounted_device_is_read_without_harm,
        a_user_without_a_home_reads_what_is_readable,
        an_interrupt_shows_what_was_measured_and_leaves_nothing,
        clean_removes_what_a_killed_load_left,
        a_phase_that_fails_is_shown_with_its_error,
        a_limit_on_the_size_of_files_is_an_error_that_says_so,
        places_that_do_not_fit_are_refused,
        words_that_make_no_sense_are_refused,
        the_engine_is_measured_here_and_now,
    ]
}
