//! Directories that another user swaps for links while a workload of root runs in them.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ground, Said};
use stackrace_test_needs as needs;

/// A user who is not root.
const MALLORY: u32 = 54_321;

/// Each workload that writes, small.
const WRITERS: &str = study!(
    "Writers",
    r#"size = ["1 MiB", "2 MiB"]
[trial]
provision = "once""#,
    [r#"dir = { path = "home/bench" }"#],
    [
        r#"random = { mode = "write", size = "{size}", time = "20 ms" }"#,
        r#"sequential = { mode = "write", size = "1 MiB" }"#,
        r#"files = { count = 50 }"#,
        r#"copy-file = { size = "1 MiB" }"#,
        r#"copy-tree = { files = 20 }"#,
        r#"delete-tree = { files = 20 }"#,
        r#"extract-tar = { profile = "source-code", scale = 0.001 }"#,
        r#"read-file = { size = "1 MiB" }"#,
        r#"stream-video = { size = "9 MB", loops = 1 }"#,
        r#"postmark = { number = 20, transactions = 20 }"#,
        r#""bonnie++" = { version = "2.00", size = "1 MiB", files = 16 }"#,
        r#"fileio = { mode = "rndrw", size = "1 MiB", time = "20 ms" }"#
    ],
    3
);

/// Every path below a directory with what tells a file from another: kind, size, change, content.
fn all_below(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        let content = match about.is_file() {
            true => fs::read(&path).unwrap(),
            false => Vec::new(),
        };
        let changed = (about.mtime(), about.mtime_nsec(), about.ctime_nsec());
        all.push(format!("{} {changed:?} {content:?}", path.display()));
        if about.is_dir() {
            all.extend(all_below(&path));
        }
    }
    all.sort();
    all
}

/// Puts a link to `precious` in the place of a name for a moment; false: it was gone.
fn swap(name: &Path, precious: &Path, aside: &Path) -> bool {
    let [link, away] = ["link", "away"].map(|part| aside.join(part));
    symlink(precious, &link).unwrap();
    lchown(&link, Some(MALLORY), None).unwrap();
    if fs::rename(name, &away).is_err() {
        fs::remove_file(&link).unwrap();
        return false;
    }
    fs::rename(&link, name).unwrap();
    std::thread::park_timeout(Duration::from_millis(10));
    // What the program removed meanwhile is made again by nothing here.
    let _ = fs::remove_file(name);
    fs::rename(&away, name).unwrap();
    true
}

/// While workloads run, the owner of the directory above swaps it, and what they work in, for links.
fn a_directory_swapped_while_workloads_run_leads_no_write_elsewhere() {
    needs::root();
    let ground = Ground::new();
    fs::set_permissions(ground.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let home = ground.make_dir("home");
    let (bench, aside) = (home.join("bench"), home.join("aside"));
    for dir in [&bench, &aside] {
        fs::create_dir(dir).unwrap();
        chown(dir, Some(MALLORY), None).unwrap();
    }
    chown(&home, Some(MALLORY), None).unwrap();
    let precious = ground.make_dir("precious");
    // Where a workload would find what it left itself.
    for workload in 0..12 {
        let dir = precious.join(format!(".stackrace-{workload}"));
        fs::create_dir(&dir).unwrap();
        for name in ["data", "data.0", "file", "source", "copy"] {
            fs::write(dir.join(name), "photo").unwrap();
        }
    }
    let before = all_below(&precious);
    ground.write("writers.toml", WRITERS);
    let mut child = ground
        .program(&["run", "writers.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut swaps = 0;
    while child.try_wait().unwrap().is_none() {
        let inside = fs::read_dir(&bench).unwrap();
        let mut names: Vec<PathBuf> = inside.map(|entry| entry.unwrap().path()).collect();
        // What is swapped while it is made or removed fails at once: here it is worked in.
        names.retain(|name| name.join(".stackrace-0").exists());
        if names.len() == 2 {
            names.push(bench.clone());
        }
        for name in names {
            swaps += usize::from(swap(&name, &precious, &aside));
            std::thread::park_timeout(Duration::from_millis(30));
        }
    }
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_eq!(all_below(&precious), before, "{}{}", said.out, said.err);
    assert!(swaps > 20, "only {swaps} swaps: {}{}", said.out, said.err);
    let runs = fs::read_dir(ground.store().join("runs")).unwrap();
    let dir = runs.map(|run| run.unwrap().path()).next().unwrap();
    let log = fs::read_to_string(dir.join("log.jsonl")).unwrap();
    let complete = log.matches(r#""state":"complete""#).count();
    assert!(
        complete > 0,
        "no trial was complete: {}{}",
        said.out,
        said.err
    );
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(fs::read_dir(&bench).unwrap().count(), 0);
    assert_eq!(all_below(&precious), before);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![a_directory_swapped_while_workloads_run_leads_no_write_elsewhere,]
}
