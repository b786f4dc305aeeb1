//! A run whose program is stopped in the middle of a trial: the trial is named, does not count, and is
//! measured again.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ground, Said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stackrace_test_needs as needs;

const STUDY: &str = study!(two block sizes: "Stopped", "2 s", 1);

/// What the only run is doing.
fn now(ground: &Ground) -> Option<Value> {
    let run = run_dir(ground)?;
    serde_json::from_slice(&fs::read(run.join("now.json")).ok()?).ok()
}

/// The same, as soon as it is whole.
fn until_told(ground: &Ground) -> Value {
    loop {
        match now(ground) {
            Some(told) => return told,
            None => wait(2),
        }
    }
}

fn run_dir(ground: &Ground) -> Option<PathBuf> {
    let mut runs = fs::read_dir(ground.store().join("runs")).ok()?;
    Some(runs.next()?.unwrap().path())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test watches the program from outside"
)]
fn wait(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn a_trial_that_was_stopped_does_not_count_and_is_measured_again() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write("study.toml", STUDY);
    let mut command = ground.program(&["run", study.to_str().unwrap()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    // In the middle of the measured part of the first trial.
    while !now(&ground).is_some_and(|now| now["ops"].as_u64() > Some(0) && now["part"] != "prepare")
    {
        wait(20);
    }
    // The process that works is behind the one that was started.
    let told = until_told(&ground);
    let pid = Pid::from_raw(i32::try_from(told["pid"].as_i64().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    wait(2500);
    kill_process(pid, Signal::CONT).unwrap();
    let said = Said::of(&running.wait_with_output().unwrap());
    said.ended(0)
        .err_has("does not count: the program was stopped for")
        .err_has("it is measured again");

    let log = fs::read_to_string(run_dir(&ground).unwrap().join("log.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let trials: Vec<Value> = lines
        .filter(|line: &Value| line["event"] == "trial")
        .collect();
    let ended: Vec<&str> = trials
        .iter()
        .map(|trial| {
            trial["ended"]["state"]
                .as_str()
                .or(trial["ended"].as_str())
                .unwrap()
        })
        .collect();
    assert_eq!(ended, ["interrupted", "complete", "complete"]);
    assert!(trials[0]["counted"]["paused_ns"].as_u64() > Some(1_000_000_000));
    assert!(
        trials[0]["notes"][0]
            .as_str()
            .unwrap()
            .contains("does not count")
    );
    for trial in &trials[1..] {
        assert_eq!(trial["counted"]["paused_ns"], 0);
    }
    // The report says it too.
    let report = ground.stackrace(&["report", "--format", "markdown"]);
    assert!(
        report.ended(0).out.contains("the program was stopped for"),
        "{}",
        report.out
    );
}

/// The shell starts the program that works, waits for it, and could go on by itself.
fn a_trial_whose_program_alone_was_stopped_does_not_count_and_names_it() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = ground.write(
        "study.toml",
        "title = \"Stopped\"\n[[stack]]\ndir = { path = \"data\" }\n\
         [[workload]]\ncommand = { run = \"sleep 2.0917; true\" }\n[decide]\nrounds-at-most = 1\n",
    );
    let mut command = ground.program(&["run", study.to_str().unwrap(), "--allow-commands"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    let works = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.find(|number: &i32| {
            let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            line == b"sleep\x002.0917\x00"
        })
    };
    let number = loop {
        match works() {
            Some(number) => break number,
            None => wait(5),
        }
    };
    let program = Pid::from_raw(number).unwrap();
    kill_process(program, Signal::STOP).unwrap();
    wait(4000);
    kill_process(program, Signal::CONT).unwrap();
    let said = Said::of(&running.wait_with_output().unwrap());
    said.ended(0)
        .err_has(&format!(
            "does not count: sleep 2.0917 (process {number}) was stopped for"
        ))
        .err_has("it is measured again");
    let log = fs::read_to_string(run_dir(&ground).unwrap().join("log.jsonl")).unwrap();
    let complete = r#""ended":{"state":"complete"}"#;
    let trials = log.lines().filter(|line| line.contains(complete));
    assert_eq!(trials.count(), 1, "{log}");
}

/// Processes whose environment names a directory.
fn within(directory: &Path) -> Vec<u32> {
    let name = directory.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let inside = |number: &u32| {
        let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(name)
    };
    numbers.filter(inside).collect()
}

fn a_lab_build_that_is_interrupted_ends_its_tools_and_leaves_nothing() {
    needs::root();
    for tool in ["mmdebstrap", "mksquashfs", "xz"] {
        needs::tool(tool);
    }
    let ground = Ground::new();
    let cache = ground.make_dir("cache");
    let mut command = ground.program(&["lab", "build"]);
    command.env("XDG_CACHE_HOME", &cache).stdout(Stdio::piped());
    let mut building = command.stderr(Stdio::piped()).spawn().unwrap();
    // The program itself, and tools that it started.
    while within(&cache).len() < 2 {
        assert_eq!(building.try_wait().unwrap(), None, "it ended by itself");
        wait(5);
    }
    let pid = Pid::from_raw(i32::try_from(building.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let said = Said::of(&building.wait_with_output().unwrap());
    said.ended(130).err_has("interrupted: nothing was built");
    assert_eq!(within(&cache), [0; 0]);
    let left = fs::read_dir(cache.join("stackrace/lab")).unwrap();
    assert_eq!(left.count(), 0);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        a_trial_that_was_stopped_does_not_count_and_is_measured_again,
        a_trial_whose_program_alone_was_stopped_does_not_count_and_names_it,
        a_lab_build_that_is_interrupted_ends_its_tools_and_leaves_nothing,
    ]
}
