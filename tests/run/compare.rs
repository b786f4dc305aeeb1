//! `stackrace compare`.

use super::*;

/// `compare` for a few seconds; nothing may be left in the directories.
#[track_caller]
pub(crate) fn compared(ground: &Ground, said: &Said, directories: [&Mounted; 2]) {
    said.ended(0);
    assert!(said.out.starts_with("VERDICT"), "{}", said.out);
    let log = Log::of(ground);
    assert_eq!(log.failures(), []);
    let rounds = log.all("round-finished").len() as u64;
    assert!(rounds > 0);
    let workloads = log.0[0]["workloads"].as_array().unwrap().len() as u64;
    assert_eq!(log.trials("complete"), design(rounds, 2, workloads));
    assert_eq!(ground.left(), [""; 0]);
    for directory in directories {
        let names = fs::read_dir(&directory.path).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["lost+found"]);
    }
}

pub(crate) fn two_directories_are_compared_by_root() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let sides = [
        Mounted::ext4(&ground, "one", 256),
        Mounted::ext4(&ground, "two", 256),
    ];
    let args = [
        "compare",
        sides[0].text(),
        sides[1].text(),
        "--for",
        "files",
    ];
    let said = ground.stackrace(&[&args[..], &["--time", "20 s"]].concat());
    compared(&ground, &said, [&sides[0], &sides[1]]);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program has to run as another user"
)]
pub(crate) fn two_directories_are_compared_without_root() {
    use std::os::unix::fs::{PermissionsExt, chown};
    const OTHER_USER: u32 = 65534;
    needs::root_and_loop_devices();
    let ground = Ground::new();
    let sides = [
        Mounted::ext4(&ground, "one", 256),
        Mounted::ext4(&ground, "two", 256),
    ];
    let store = ground.make_dir("store");
    for dir in [&sides[0].path, &sides[1].path, &store] {
        chown(dir, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    }
    // Neither the ground nor where the program was built need be open to everybody.
    fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = ground.path().join("stackrace");
    fs::copy(env!("CARGO_BIN_EXE_stackrace"), &program).unwrap();
    let output = std::process::Command::new(needs::tool("setpriv"))
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args([
            "compare",
            sides[0].text(),
            sides[1].text(),
            "--for",
            "files",
        ])
        // Three rounds end well before the limit, which leaves room for a machine that is busy.
        .args(["--time", "60 s", "--rounds", "3", "--store"])
        .arg(&store)
        .current_dir(ground.path())
        .output()
        .unwrap();
    let said = Said::of(&output);
    compared(&ground, &said, [&sides[0], &sides[1]]);
    said.err_has("Without root, the file system's metadata stay in memory");
}

pub(crate) fn the_same_file_system_is_compared_only_where_one_insists() {
    let ground = Ground::new();
    let (one, two) = (ground.make_dir("one"), ground.make_dir("two"));
    let args = [
        "compare",
        one.to_str().unwrap(),
        two.to_str().unwrap(),
        "--time",
        "60 s",
        "--rounds",
        "3",
    ];
    let refused = ground.stackrace(&args);
    refused
        .ended(3)
        .err_has("are on the same file system")
        .err_has("nothing was changed");
    assert!(!ground.store().exists(), "the store was made");
    let said = ground.stackrace(&[&args[..], &["--anyway", "--for", "files"]].concat());
    said.ended(0).err_has("are on the same file system");
    let warned = Log::of(&ground);
    let warned = warned.all("warned");
    assert!(
        warned
            .iter()
            .any(|w| w["text"].as_str().unwrap().contains("same file system"))
    );
    assert_eq!(ground.left(), [""; 0]);
}

/// A CI system shows both beside the code.
fn pages_of_what_is_required(ground: &Ground, code: i32) {
    let both = ground.stackrace(&["gate", "--markdown", "--junit", "gate.xml"]);
    both.ended(code);
    assert!(
        both.out.starts_with("# ") && both.out.contains("## Required"),
        "{}",
        both.out
    );
    let xml = fs::read_to_string(ground.path().join("gate.xml")).unwrap();
    let counts = format!("tests=\"1\" failures=\"{}\"", u8::from(code != 0));
    assert!(
        xml.contains(&counts) && xml.contains("required at most"),
        "{xml}"
    );
}

/// The code of a check of one directory, three rounds of which meet a bound, miss it, or are too few.
pub(crate) fn one_directory_is_enough_or_not_or_that_is_not_certain_yet() {
    let asked = |words: &[&str], rounds: &str, (code, remark, answer): (i32, &str, &str)| {
        let ground = Ground::new();
        let data = ground.make_dir("data");
        let limits = ["--rounds", rounds, "--time", "30 s"];
        let said = ground.stackrace(&[words, &limits[..]].concat());
        said.ended(code).err_has(&format!("required: {remark}"));
        // Lines of the page are broken where the terminal ends.
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(answer), "{}", said.out);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
        // What nothing is required of is not measured.
        let workloads = &Log::of(&ground).0[0]["workloads"];
        assert_eq!(workloads.as_array().unwrap().len(), 1, "{workloads}");
        let gate = ground.stackrace(&["gate"]);
        gate.ended(code);
        let gate = gate.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(gate.contains(answer), "{gate}");
        let json = ground.stackrace(&["gate", "--json", "--undecided", "pass"]);
        json.ended(if code == 7 { 7 } else { 0 });
        let json: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(json["required"].as_array().unwrap().len(), 1, "{json}");
        pages_of_what_is_required(&ground, code);
    };
    let most = |bound: &str, rounds: &str, code: i32, answer: &str| {
        let bound = format!("fsync latency p50 <= {bound}");
        let words = ["check", "data", "--require", &bound];
        asked(&words, rounds, (code, &bound, answer));
    };
    most("1 h", "3", 0, "data meets it: fsync latency p50 ");
    most("1 ns", "3", 7, "data does not meet it: fsync latency p50 ");
    most("1 h", "2", 6, "No answer yet: 2 complete rounds");
    // Without a bound it is measured, beside modelled drives and its own past.
    let ground = Ground::new();
    ground.make_dir("data");
    for past in ["The first run that asks this", "than the run of 20"] {
        let args = ["check", "data", "--rounds", "3", "--time", "20 s"];
        let said = ground.stackrace(&args);
        said.ended(0)
            .err_has("no requirement is published for general");
        let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "streaming write: ",
            "3 complete rounds, nothing to compare it with.",
            "Models of bare drives",
            past,
        ] {
            assert!(flat.contains(part), "{}", said.out);
        }
    }
    // The same question without the word, and with the limit that others published.
    let published = "fsync latency p99 <= 10 ms (etcd's FAQ, https://";
    let words = ["compare", "data", "--for", "etcd"];
    asked(
        &words,
        "2",
        (6, published, "No answer yet: 2 complete rounds"),
    );
}

/// Btrfs keeps the quota of a subvolume to itself: its free space is that of the whole file system.
pub(crate) fn sizes_are_found_within_a_quota_that_the_free_space_does_not_show() {
    needs::root_and_loop_devices();
    needs::tool("mkfs.btrfs");
    let ground = Ground::new();
    let image = ground.path().join("image");
    let file = fs::File::create(&image).unwrap();
    file.set_len(600 << 20).unwrap();
    let image = image.to_str().unwrap();
    tool("mkfs.btrfs", &["-q", image]);
    let whole = Mounted {
        path: ground.make_dir("whole"),
    };
    tool("mount", &["-o", "loop", image, whole.text()]);
    let limited = format!("{}/limited", whole.text());
    tool("btrfs", &["subvolume", "create", &limited]);
    tool("btrfs", &["quota", "enable", whole.text()]);
    tool("btrfs", &["qgroup", "limit", "80M", &limited]);
    ground.make_dir("plain");
    let said = ground.stackrace(&[
        "compare",
        &limited,
        "plain",
        "--anyway",
        "--time",
        "40 s",
        "--print-study",
    ]);
    said.ended(0)
        .err_has("its quota refused ")
        .err_has("trials are sized for less");
    assert!(said.out.contains("[[workload]]"), "{}", said.out);
    // A trial that meets a quota says so, and how it is found out.
    let words = "random mode=write size=100MiB time=1s";
    let words: Vec<&str> = words.split(' ').collect();
    let said = ground.stackrace(&[&["load", &limited], &words[..]].concat());
    assert_ne!(said.code, Some(0));
    said.err_has("Disk quota exceeded")
        .err_has("raise the quota");
    assert_eq!(fs::read_dir(&limited).unwrap().count(), 0);
}
