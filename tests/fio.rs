//! Job files of fio, done by the fio that is installed.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::process::Stdio;

use crate::support::{Ground, Said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stackrace_test_needs as needs;

/// Two jobs, one after the other, on files that fio names.
const JOB: &str = "; small, and the same work each time\n[global]\nioengine=psync\nsize=${SIZE}\n\n[random]\nrw=randwrite\nbs=4k\nfsync=16\n\n[whole]\nstonewall\nrw=read\nbs=64k\n";

/// A ground with two directories and a job file.
fn ground(job: &str) -> Ground {
    let ground = Ground::new();
    ground.make_dir("a");
    ground.make_dir("b");
    ground.write("job.fio", job);
    ground
}

/// Compares both directories with the job, and more words.
fn compare(ground: &Ground, more: &[&str]) -> Said {
    let words = ["compare", "a", "b", "--anyway", "--fio", "job.fio"];
    let mut program = ground.program(&[&words[..], more].concat());
    Said::of(&program.env("SIZE", "1m").output().unwrap())
}

/// A study of both directories, of which nothing but the job file is told.
fn study(settings: &str) -> String {
    format!(
        "title = \"t\"\n[factors]\nn = [\"a\", \"b\"]\n[[stack]]\ndir = {{ path = \"{{n}}\" }}\n[[workload]]\nname = \"w\"\nfio = {{ job = \"job.fio\"{settings} }}\n[decide]\nrounds-at-most = 1\n"
    )
}

fn every_figure_of_a_job_is_compared_in_two_directories() {
    needs::tool("fio");
    let ground = ground(JOB);
    let compared = compare(&ground, &["--rounds", "3"]);
    compared.ended(0);
    let report = ground.stackrace(&["report", "last", "--format", "json"]);
    report.ended(0);
    for figure in [
        "random: operations",
        "random: write latency p99",
        "random: fsync latency mean",
        "whole: throughput",
    ] {
        assert!(report.out.contains(figure), "{figure}");
    }
    let log = log(&ground);
    assert!(
        log.contains("fio-3."),
        "the version of fio is not on record"
    );
    // What the environment said is part of the record, and so is the job.
    assert!(log.contains("size=1m"), "the job is not on record");
    assert_eq!(ground.left(), [""; 0]);
    // The file is not needed any more.
    fs::remove_file(ground.path().join("job.fio")).unwrap();
    ground.stackrace(&["resume", "--rounds", "1"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

/// The log of the only run.
fn log(ground: &Ground) -> String {
    let runs = fs::read_dir(ground.store().join("runs")).unwrap();
    let mut runs = runs.map(|run| run.unwrap().path().join("log.jsonl"));
    fs::read_to_string(runs.find(|log| log.exists()).unwrap()).unwrap()
}

fn a_study_finds_its_job_file_beside_it() {
    needs::tool("fio");
    let ground = ground(&JOB.replace("${SIZE}", "1m"));
    ground.make_dir("studies");
    fs::rename(
        ground.path().join("job.fio"),
        ground.path().join("studies/job.fio"),
    )
    .unwrap();
    ground.write("studies/s.toml", study(""));
    ground.stackrace(&["plan", "studies/s.toml"]).ended(0);
    ground.stackrace(&["run", "studies/s.toml"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
}

fn one_load_shows_the_figures_of_the_job() {
    needs::tool("fio");
    let ground = ground("[x]\nrw=randread\nsize=1m\n");
    let loaded = ground.stackrace(&["load", "a", "fio", "job=job.fio", "--json"]);
    loaded.ended(0);
    let loaded: Value = serde_json::from_str(&loaded.out).unwrap();
    let metrics = loaded["metrics"].as_array().unwrap();
    assert_eq!(metrics[0]["name"], "operations");
    assert!(metrics[0]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(ground.left(), [""; 0]);
}

fn a_job_that_leaves_its_directory_is_refused_untouched() {
    let ground = ground("");
    let victim = ground.write("victim", "mine");
    for (line, option) in [
        (4, "filename=/dev/sda"),
        (4, "directory=/tmp"),
        (4, "exec_prerun=touch ran"),
        (4, "include other"),
        (4, "ioengine=net"),
        (4, &format!("filename={}", victim.display())),
    ] {
        let job = format!("[x]\nrw=write\nsize=4k\n{option}\n");
        ground.write("job.fio", job);
        let refused = compare(&ground, &[]);
        refused.ended(3);
        let named = refused.err.contains(&format!("job.fio:{line}: "));
        let command = option.starts_with("exec") && refused.err.contains("touch ran");
        assert!(named || command, "{option}: {}", refused.err);
        assert!(!ground.store().join("runs").exists(), "{option}");
        ground.write("s.toml", study(""));
        ground.stackrace(&["run", "s.toml"]).ended(3);
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    assert_eq!(ground.left(), [""; 0]);
}

fn a_job_that_fio_refuses_is_refused_in_its_words_before_anything_is_measured() {
    needs::tool("fio");
    let ground = ground("[x]\nrw=write\nsize=4k\nno_such_option=1\n");
    ground.write("s.toml", study(""));
    let refused = ground.stackrace(&["run", "s.toml"]);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.err.contains("Bad option <no_such_option=1>"),
        "{}",
        refused.err
    );
    assert!(!ground.store().join("runs").exists());
}

fn a_job_without_an_end_and_one_that_fails_are_failed_trials() {
    needs::tool("fio");
    let ground = ground("[x]\nrw=randread\nsize=64k\ntime_based\nruntime=1h\n");
    let load = |more: &[&str]| {
        let words = ["load", "a", "fio", "job=job.fio"];
        ground.stackrace(&[&words[..], more].concat())
    };
    let endless = load(&["time-limit=1s"]);
    endless.ended(5);
    assert!(
        endless.err.contains("did not end within"),
        "{}",
        endless.err
    );
    ground.write(
        "job.fio",
        "[x]\nrw=read\nfilename=missing\nallow_file_create=0\nsize=4k\n",
    );
    let failed = load(&[]);
    failed.ended(5);
    assert!(failed.err.contains("exit status"), "{}", failed.err);
    ground.write("job.fio", "[x]\nrw=write\nsize=64k\ncreate_only=1\n");
    let nothing = load(&[]);
    nothing.ended(5);
    assert!(nothing.err.contains("moved nothing"), "{}", nothing.err);
    assert_eq!(ground.left(), [""; 0]);
}

fn ctrl_c_ends_fio_with_all_its_jobs() {
    needs::tool("fio");
    let ground =
        ground("[x]\nrw=randread\nsize=64k\ntime_based\nruntime=1h\nnumjobs=3\ngroup_reporting\n");
    let mut program = ground.program(&["load", "a", "fio", "job=job.fio", "time-limit=1h"]);
    let mut child = program
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The parent and three jobs, each of which makes a session of its own.
    while working_in(&ground) < 4 {
        assert!(child.try_wait().unwrap().is_none(), "the load is over");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert_eq!(working_in(&ground), 0);
    assert_eq!(ground.left(), [""; 0]);
}

/// How many processes of fio work in this ground.
fn working_in(ground: &Ground) -> usize {
    let here = format!("STACKRACE_DIR={}", ground.path().display());
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&here) && name == "fio\n"
    })
    .count()
}

fn a_missing_fio_is_refused_untouched_with_what_to_install() {
    let ground = ground("[x]\nrw=write\nsize=4k\n");
    ground.make_dir("empty");
    let mut program = ground.program(&["compare", "a", "b", "--anyway", "--fio", "job.fio"]);
    let refused = Said::of(
        &program
            .env("PATH", ground.path().join("empty"))
            .output()
            .unwrap(),
    );
    assert_ne!(refused.code, Some(0));
    refused.err_has("fio is not installed").err_has("fio");
    assert!(!ground.store().join("runs").exists());
}

fn what_took_the_place_of_the_imitation_is_said() {
    let said = Ground::new().stackrace(&["fio", "--name=x", "job.fio"]);
    assert_ne!(said.code, Some(0));
    assert!(said.err.contains("--fio JOB.fio"), "{}", said.err);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        every_figure_of_a_job_is_compared_in_two_directories,
        a_study_finds_its_job_file_beside_it,
        one_load_shows_the_figures_of_the_job,
        a_job_that_leaves_its_directory_is_refused_untouched,
        a_job_that_fio_refuses_is_refused_in_its_words_before_anything_is_measured,
        a_job_without_an_end_and_one_that_fails_are_failed_trials,
        ctrl_c_ends_fio_with_all_its_jobs,
        a_missing_fio_is_refused_untouched_with_what_to_install,
        what_took_the_place_of_the_imitation_is_said,
    ]
}
