//! Directories that cannot be compared or checked are refused, and nothing is touched.

use std::fs;

use crate::support::{Ground, Mounted, Said, tool};
use stackrace_test_needs as needs;

/// Runs the program, which has to refuse with a code and these words, and to touch nothing.
#[track_caller]
pub(super) fn refused(ground: &Ground, args: &[&str], code: i32, parts: &[&str]) {
    let said = ground.stackrace(args);
    said.ended(code);
    for part in parts {
        said.err_has(part);
    }
    assert_eq!(said.out, "");
    untouched(ground, &said);
}

#[track_caller]
pub(super) fn untouched(ground: &Ground, said: &Said) {
    if let Ok(mut runs) = fs::read_dir(ground.store().join("runs")) {
        assert!(runs.next().is_none(), "a run was made\n{}", said.err);
    }
    assert!(!ground.store().join("stackrace.db").exists());
    assert_eq!(ground.left(), [""; 0]);
    assert!(!said.err.contains("panicked"), "{}", said.err);
}

pub(super) fn directories_that_cannot_be_compared_are_refused() {
    let ground = Ground::new();
    let data = ground.make_dir("data");
    ground.write("file", "");
    let data = data.to_str().unwrap();
    let compare = |args: &[&str], code: i32, parts: &[&str]| {
        let args = [&["compare"], args].concat();
        refused(&ground, &args, code, parts);
        assert!(!ground.store().exists(), "the store was made");
    };
    compare(
        &["data", "missing"],
        3,
        &["missing: No such file or directory"],
    );
    compare(&["data", "file"], 3, &["/file is no directory"]);
    compare(&["data", "data/../data"], 3, &["/data is named twice"]);
    compare(&["data", data], 3, &["/data is named twice"]);
    compare(&["data", "/sys"], 3, &["/sys"]);
    compare(&["data", "/proc"], 3, &["/proc"]);
    compare(
        &["data", "/", "--for", "databse"],
        2,
        &[
            "there is no purpose \"databse\"",
            "did you mean \"database\"?",
        ],
    );
    compare(&["data", "/", "--time", "soon"], 2, &["--time: "]);
    compare(&["data", "/", "--size", "big"], 2, &["--size: "]);
}

pub(super) fn what_one_directory_cannot_be_asked_is_refused_with_the_nearest_choice() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("file", "");
    let check = |args: &[&str], code: i32, parts: &[&str]| {
        let args = [&["check"], args].concat();
        refused(&ground, &args, code, parts);
        assert!(!ground.store().exists(), "the store was made");
    };
    check(
        &["missing"],
        3,
        &[
            "missing: No such file or directory",
            "name an existing directory",
        ],
    );
    check(
        &["file"],
        3,
        &["/file is no directory", "name a directory on the storage"],
    );
    check(
        &["data", "--for", "etdc"],
        2,
        &["there is no purpose \"etdc\"", "did you mean \"etcd\"?"],
    );
    for (bound, parts) in [
        (
            "fsync latency p99",
            &["requires nothing", "write a metric, a sign and a bound"][..],
        ),
        ("<= 10 ms", &["requires nothing"]),
        (
            "fsync latency max <= 10 ms",
            &[
                "no workload measures \"fsync latency max\"",
                "did you mean \"fsync latency p",
            ],
        ),
        (
            "weather <= 10 ms",
            &["no workload measures", "there are: throughput, operations"],
        ),
        (
            "fsync latency p99 <= 10 MB/s",
            &["is no value in ns", "write it like \"10 ms\""],
        ),
        ("fsync latency p99 <= 10", &["write it like \"10 ms\""]),
        ("throughput >= 0 MB/s", &["above 0"]),
    ] {
        check(&["data", "--for", "etcd", "--require", bound], 2, parts);
    }
    let both = ["throughput <= 1 MB/s", "log append: throughput >= 2 MB/s"];
    let both = [
        &["data", "--for", "etcd"],
        &["--require", both[0], "--require", both[1]][..],
    ]
    .concat();
    check(
        &both,
        2,
        &["no storage can keep both", "leave one of them out"],
    );
}

pub(super) fn memory_is_not_compared_with_a_disk() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let shm = |line: &str| line.split(' ').skip(1).take(2).eq(["/dev/shm", "tmpfs"]);
    if !mounts.lines().any(shm) {
        needs::skip("needs a tmpfs at /dev/shm");
    }
    let ground = Ground::new();
    ground.make_dir("data");
    refused(
        &ground,
        &["compare", "data", "/dev/shm"],
        3,
        &["is tmpfs (memory, lost at power-off)", "--anyway"],
    );
    assert!(!ground.store().exists(), "the store was made");
}

pub(super) fn a_name_that_is_no_text_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new();
    let name = OsStr::from_bytes(b"data-\xff");
    fs::create_dir(ground.path().join(name)).unwrap();
    let output = ground
        .program(&["compare", "/"])
        .arg(name)
        .output()
        .unwrap();
    let said = Said::of(&output);
    said.ended(3).err_has("is not UTF-8, and a study is text");
    untouched(&ground, &said);
}

pub(super) fn directories_that_cannot_take_the_data_are_refused() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.make_dir("data");
    let tight = Mounted::ext4(&ground, "tight", 16);
    let of_both = ["compare", "data", tight.text()];
    for (words, option, more) in [
        (&[][..], "--size ", &["--print-study"][..]),
        (&["--size", "1 GiB"], "--size ", &["--print-study"]),
        (
            &["--with", "random mode=write size=1GiB"],
            "size=",
            &["--rounds", "1"],
        ),
        (&["--", "true"], "--disk ", &["--rounds", "1"]),
    ] {
        let refused = ground.stackrace(&[&of_both, words].concat());
        refused
            .ended(3)
            .err_has("/tight has")
            .err_has("this comparison needs");
        untouched(&ground, &refused);
        // What is advised is taken.
        let advised = refused.err.split_once(option);
        let advised = advised.and_then(|(_, rest)| rest.split_whitespace().next());
        let advised = advised.unwrap_or_else(|| panic!("no {option} in {}", refused.err));
        let with = format!("random mode=write time=10ms size={advised}");
        let words = match option {
            "size=" => vec!["--with", &with],
            _ => vec![option.trim(), advised],
        };
        let own: &[&str] = if option == "--disk " {
            &["--", "true"]
        } else {
            &[]
        };
        let store = ["--store", "of what was taken"];
        let words = [&of_both, &words[..], more, &store, own].concat();
        ground.stackrace(&words).ended(0);
    }
    let small = Mounted::ext4(&ground, "small", 200);
    let args = ["compare", "data", small.text(), "--size", "1 GiB"];
    refused(
        &ground,
        &args,
        3,
        &["/small has", "this comparison needs", "--size"],
    );
    let fixed = Mounted::ext4(&ground, "fixed", 200);
    tool("mount", &["-o", "remount,ro", fixed.text()]);
    refused(
        &ground,
        &["compare", "data", fixed.text()],
        3,
        &["/fixed", "Read-only file system"],
    );
    for (directory, part) in [(&tight, "/tight has"), (&fixed, "Read-only file system")] {
        refused(&ground, &["check", directory.text()], 3, &[part]);
    }
    for directory in [&tight, &small, &fixed] {
        let names = fs::read_dir(&directory.path).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["lost+found"]);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program has to run as another user"
)]
pub(super) fn a_directory_one_may_not_write_to_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    const OTHER_USER: u32 = 65534;
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let (ours, theirs) = (
        ground.make_dir("ours"),
        Mounted::ext4(&ground, "theirs", 128),
    );
    chown(&theirs.path, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let store = ground.make_dir("store");
    chown(&store, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = ground.path().join("stackrace");
    // By another process: what a test beside this one starts must not hold it open for writing.
    tool(
        "cp",
        &[env!("CARGO_BIN_EXE_stackrace"), program.to_str().unwrap()],
    );
    let output = std::process::Command::new(needs::tool("setpriv"))
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .arg("compare")
        .args([&theirs.path, &ours])
        .arg("--store")
        .arg(&store)
        .current_dir(ground.path())
        .output()
        .unwrap();
    let said = Said::of(&output);
    said.ended(3)
        .err_has("/ours cannot be used")
        .err_has("Permission denied")
        .err_has("a directory you may write to");
    untouched(&ground, &said);
}

pub(super) fn memory_alone_and_two_names_of_one_directory_are_refused() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let memory = ground.make_dir("memory");
    tool("mount", &["-t", "tmpfs", "none", memory.to_str().unwrap()]);
    refused(
        &ground,
        &["check", "memory", "--for", "etcd"],
        3,
        &["/memory lies in memory (tmpfs)", "--anyway measures all"],
    );
    tool("umount", &[memory.to_str().unwrap()]);
    let (one, other) = (ground.make_dir("one"), ground.make_dir("other"));
    let other = other.to_str().unwrap();
    tool("mount", &["--bind", one.to_str().unwrap(), other]);
    refused(
        &ground,
        &["compare", "one", "other", "--anyway"],
        3,
        &["/one and ", "/other are two names of one directory"],
    );
    tool("umount", &[other]);
}
