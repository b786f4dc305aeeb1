//! Files that the user names for results, through the whole program; and a record on a full disk.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ground, Mounted, Said, tool};
use rustix::fs::{FallocateFlags, fallocate};
use stackrace_test_needs as needs;

/// A user who is not root.
const MALLORY: u32 = 54_321;

/// Work in a directory that takes a moment.
const STUDY: &str = study!(
    "Small",
    r#"block-size = ["4 KiB", "8 KiB"]"#,
    [r#"dir = { path = "data" }"#],
    [r#"random = { mode = "write", size = "1 MiB", block-size = "{block-size}", time = "TIME" }"#],
    8
);

/// Commands that write to a file; its name comes last.
const WRITERS: [&[&str]; 3] = [
    &["report", "--html"],
    &["report", "--format", "markdown", "--output"],
    &["export", "-o"],
];

/// A ground with a finished run.
fn finished() -> Ground {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("study.toml", STUDY.replace("TIME", "10 ms"));
    ground.stackrace(&["run", "study.toml"]).ended(0);
    ground
}

/// Each command, once with this name.
fn each(ground: &Ground, name: &str, mut judge: impl FnMut(&Said)) {
    for words in needs::attacks(WRITERS) {
        let said = ground.stackrace(&[words, &[name]].concat());
        judge(&said);
    }
    let names = fs::read_dir(ground.path()).unwrap();
    let part = names
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().ends_with(".part"));
    assert!(part.is_none(), "{part:?} is left");
}

fn a_device_is_written_to_and_stays_a_device() {
    needs::root();
    let ground = finished();
    let device = ground.path().join("null");
    tool("mknod", &[device.to_str().unwrap(), "c", "1", "3"]);
    symlink("null", ground.path().join("link")).unwrap();
    for name in ["null", "link"] {
        each(&ground, name, |said| {
            said.ended(0);
            let found = fs::symlink_metadata(&device).unwrap();
            assert!(found.file_type().is_char_device(), "{found:?}");
            assert!(ground.path().join("link").is_symlink());
        });
    }
}

fn a_disk_is_never_written_as_a_report() {
    needs::root();
    let ground = finished();
    let disk = ground.path().join("disk");
    // The number of no driver: only its kind matters.
    tool("mknod", &[disk.to_str().unwrap(), "b", "255", "255"]);
    each(&ground, "disk", |said| {
        said.ended(3)
            .err_has("is neither a file, a pipe nor a character device");
        let found = fs::symlink_metadata(&disk).unwrap();
        assert!(found.file_type().is_block_device(), "{found:?}");
    });
}

#[expect(clippy::disallowed_methods, reason = "a FIFO needs a reader")]
fn a_fifo_gets_the_bytes_and_stays_a_fifo() {
    let ground = finished();
    let fifo = ground.path().join("fifo");
    tool("mkfifo", &[fifo.to_str().unwrap()]);
    for words in needs::attacks(WRITERS) {
        let mut reader = std::process::Command::new("cat")
            .arg(&fifo)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        ground.stackrace(&[words, &["fifo"]].concat()).ended(0);
        let is_fifo = fs::metadata(&fifo).unwrap().file_type().is_fifo();
        if !is_fifo {
            // It would wait for ever.
            reader.kill().unwrap();
        }
        assert!(is_fifo, "{words:?}");
        let got = reader.wait_with_output().unwrap();
        assert!(!got.stdout.is_empty(), "{words:?}");
    }
}

fn standard_output_has_two_names() {
    let ground = finished();
    for name in ["-", "/dev/stdout"] {
        each(&ground, name, |said| {
            said.ended(0);
            assert!(said.out.len() > 100, "{}", said.out);
        });
    }
    assert!(Path::new("/dev/stdout").is_symlink());
    assert!(!ground.path().join("-").exists());
}

fn what_is_not_the_callers_file_is_refused_and_stays() {
    needs::root();
    let ground = finished();
    let theirs = ground.write("theirs", "theirs");
    chown(&theirs, Some(MALLORY), None).unwrap();
    symlink("theirs", ground.path().join("link")).unwrap();
    symlink("nowhere", ground.path().join("dangling")).unwrap();
    for (name, why) in [
        ("theirs", "belongs to another user"),
        ("link", "belongs to another user"),
        ("dangling", "is a link to a file that does not exist"),
        ("missing/file", "cannot write missing/file"),
    ] {
        each(&ground, name, |said| {
            said.ended(3).err_has(why);
            assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
            assert_eq!(fs::metadata(&theirs).unwrap().uid(), MALLORY);
            assert!(!ground.path().join("nowhere").exists());
        });
    }
}

fn a_page_that_cannot_be_written_is_refused_before_the_run() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("study.toml", STUDY.replace("TIME", "10 ms"));
    symlink("nowhere", ground.path().join("dangling")).unwrap();
    for (name, code) in
        needs::attacks([("data", 3), ("dangling", 3), ("missing/page", 3), ("-", 2)])
    {
        ground
            .stackrace(&["run", "study.toml", "--html", name])
            .ended(code);
        assert!(!ground.store().join("runs").exists(), "{name}: a run began");
    }
}

/// Takes all the room that there is.
fn fill(file: &Path) {
    let file = fs::File::create(file).unwrap();
    let mut at = 0;
    for piece in [64 << 20, 1 << 20, 4096] {
        while fallocate(&file, FallocateFlags::empty(), at, piece).is_ok() {
            at += piece;
        }
    }
}

fn log(ground: &Ground) -> Option<PathBuf> {
    let mut runs = fs::read_dir(ground.store().join("runs")).ok()?;
    Some(runs.next()?.ok()?.path().join("log.jsonl"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test watches the program from outside"
)]
fn a_record_on_a_full_disk_keeps_its_lines_and_goes_on_once_there_is_room() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    // From 512 MiB on a block is a page: where a line does not fit, half of it is written.
    let store = Mounted::ext4(&ground, "store", 600);
    ground.make_dir("data");
    ground.write("study.toml", STUDY.replace("TIME", "300 ms"));
    let mut command = ground.program(&["run", "study.toml"]);
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = running.spawn().unwrap();
    let text = || log(&ground).and_then(|log| fs::read_to_string(log).ok());
    while !text().is_some_and(|text| text.contains("\"round-finished\"")) {
        assert!(running.try_wait().unwrap().is_none(), "ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    let filler = store.path.join("filler");
    fill(&filler);
    let said = Said::of(&running.wait_with_output().unwrap());
    assert_ne!(said.code, Some(0), "{}", said.out);
    said.err_has("the disk is full")
        .err_has("free space where the store is");
    assert!(!said.err.contains("panicked"), "{}", said.err);
    let kept = text().unwrap();
    assert!(kept.ends_with('\n'), "half a line is left");
    for line in kept.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    fs::remove_file(filler).unwrap();
    ground.stackrace(&["resume"]).ended(0);
    let text = text().unwrap();
    assert!(text.starts_with(&kept), "a line was lost");
    assert!(text.contains("\"run-ended\""));
    assert_eq!(ground.left(), [""; 0]);
}

fn a_plan_for_pods_is_one_document_for_programs() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("study.toml", STUDY.replace("TIME", "10 ms"));
    let pods = ["plan", "study.toml", "--clients", "kubernetes:meter"];
    let said = ground.stackrace(&[&pods[..], &["--json"]].concat());
    said.ended(0);
    let plan: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let manifest = plan["kubernetes_manifest"].as_str().unwrap();
    assert!(manifest.contains("kind: Job"), "{manifest}");
    let text = ground.stackrace(&pods);
    assert!(text.ended(0).out.contains(manifest), "{}", text.out);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_device_is_written_to_and_stays_a_device,
        a_disk_is_never_written_as_a_report,
        a_fifo_gets_the_bytes_and_stays_a_fifo,
        standard_output_has_two_names,
        what_is_not_the_callers_file_is_refused_and_stays,
        a_page_that_cannot_be_written_is_refused_before_the_run,
        a_record_on_a_full_disk_keeps_its_lines_and_goes_on_once_there_is_room,
        a_plan_for_pods_is_one_document_for_programs,
    ]
}
