//! Whole runs of the real program: what it measures, keeps and leaves, whatever interrupts it.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

mod compare;
mod covered;
mod exchanged;
mod failing;
mod failures;
mod kills;
mod remounted;
mod signals;
mod taken;
mod together;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{Ground, Mounted, Said, tool};
use compare::*;
use covered::*;
use exchanged::*;
use failing::*;
use failures::*;
use kills::*;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use signals::*;
use stackrace::testing::{Kill, kill_changes, kill_standing, kills};
use stackrace_test_needs as needs;
use taken::*;
use together::*;

/// ext4 and XFS on loop devices: three rounds of two small workloads.
const SMALL: &str = study!(
    "ext4 or XFS, small",
    r#"filesystem = ["ext4", "xfs"]"#,
    [
        r#"loop = { size = "320 MiB", laid-out = "no" }"#,
        r#""{filesystem}" = {}"#
    ],
    [
        r#"name = "small files"
files = { count = 50 }"#,
        r#"name = "streaming write"
sequential = { mode = "write", size = "8 MiB" }"#
    ],
    3
);

/// The same with a phase that takes half a second, so that it can be met in the middle.
const SLOW: &str = study!(
    "ext4 or XFS, slow",
    r#"filesystem = ["ext4", "xfs"]"#,
    [
        r#"loop = { size = "320 MiB", laid-out = "no" }"#,
        r#""{filesystem}" = {}"#
    ],
    [r#"name = "random write"
random = { mode = "write", size = "4 MiB", access = "uniform", time = "2 s" }"#],
    3
);

/// A directory twice, with different block sizes; needs no root.
const DIRECTORY: &str = study!(
    "Block sizes in a directory",
    r#"block-size = ["4 KiB", "8 KiB"]"#,
    [r#"dir = { path = "data" }"#],
    [r#"name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = "10 ms" }"#],
    2
);

/// What a run has on record, read without the program's help.
struct Log(Vec<Value>);

impl Log {
    fn bytes(ground: &Ground) -> Vec<u8> {
        let runs = fs::read_dir(ground.store().join("runs"));
        let logs: Vec<PathBuf> = runs
            .into_iter()
            .flatten()
            .map(|run| run.unwrap().path().join("log.jsonl"))
            .collect();
        assert!(logs.len() < 2, "{logs:?}");
        logs.first()
            .map(|log| fs::read(log).unwrap_or_default())
            .unwrap_or_default()
    }

    /// Its whole lines.
    fn whole(ground: &Ground) -> Vec<u8> {
        let mut bytes = Self::bytes(ground);
        let end = bytes.iter().rposition(|&byte| byte == b'\n');
        bytes.truncate(end.map_or(0, |end| end + 1));
        bytes
    }

    fn of(ground: &Ground) -> Self {
        let text = String::from_utf8(Self::whole(ground)).unwrap();
        Self(
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        )
    }

    fn all(&self, event: &str) -> Vec<&Value> {
        self.0
            .iter()
            .filter(|line| line["event"] == event)
            .collect()
    }

    /// (round, configuration, workload) of the trials that ended so.
    fn trials(&self, state: &str) -> Vec<(u64, u64, u64)> {
        let number = |value: &Value| value.as_u64().unwrap();
        let mut trials: Vec<_> = self
            .all("trial")
            .into_iter()
            .filter(|trial| trial["ended"]["state"] == state)
            .map(|trial| {
                (
                    number(&trial["round"]),
                    number(&trial["configuration"]),
                    number(&trial["workload"]),
                )
            })
            .collect();
        trials.sort_unstable();
        trials
    }

    /// Errors of failed trials with the configuration's index.
    fn failures(&self) -> Vec<(u64, String)> {
        self.all("trial")
            .into_iter()
            .filter(|trial| trial["ended"]["state"] == "failed")
            .map(|trial| {
                let error = trial["ended"]["error"].as_str().unwrap().to_owned();
                (trial["configuration"].as_u64().unwrap(), error)
            })
            .collect()
    }

    /// Index of the configuration of this name.
    fn configuration(&self, part: &str) -> u64 {
        let configurations = self.0[0]["configurations"].as_array().unwrap();
        let at = |t: &Value| t["name"].as_str().unwrap().contains(part);
        configurations.iter().position(at).unwrap() as u64
    }

    fn ended(&self) -> &str {
        self.0.last().unwrap()["reason"]
            .as_str()
            .unwrap_or("not ended")
    }
}

/// Every trial of a design, once.
fn design(rounds: u64, configurations: u64, workloads: u64) -> Vec<(u64, u64, u64)> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        for configuration in 0..configurations {
            all.extend((0..workloads).map(|workload| (round, configuration, workload)));
        }
    }
    all
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test watches the program from outside"
)]
fn wait(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Starts the program in a process group of its own, as a shell does, and waits until its log is
/// as wanted.
#[track_caller]
fn start_until(ground: &Ground, args: &[&str], wanted: impl Fn(&Log) -> bool) -> Child {
    let mut child = ground
        .program(args)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !wanted(&Log::of(ground)) {
        if let Some(status) = child.try_wait().unwrap() {
            let said = Said::of(&child.wait_with_output().unwrap());
            panic!("ended too early: {status}\n{}\n{}", said.out, said.err);
        }
        wait(2);
    }
    child
}

/// Starts a slow run and waits until a phase of its second round has done something.
fn start_measuring(ground: &Ground) -> Child {
    let mut child = start_until(ground, &["run", "slow.toml"], measuring_in_round_two);
    until_measuring(&mut child, ground, 2);
    child
}

/// Waits until a phase of this round has done something.
fn until_measuring(child: &mut Child, ground: &Ground, round: u64) {
    while !is_measuring(ground, round) {
        assert!(child.try_wait().unwrap().is_none(), "ended too early");
        wait(2);
    }
}

/// Whether the run tells of a phase of this round that has done something; it tells of what it does
/// four times a second.
fn is_measuring(ground: &Ground, round: u64) -> bool {
    let runs = fs::read_dir(ground.store().join("runs"))
        .into_iter()
        .flatten();
    let told = runs
        .flatten()
        .find_map(|run| fs::read(run.path().join("now.json")).ok());
    // While it is written, half of it may be read.
    let Ok(now) = serde_json::from_slice::<Value>(&told.unwrap_or_default()) else {
        return false;
    };
    let is_phase = now["part"]
        .as_str()
        .is_some_and(|part| !["set up", "prepare", "settle"].contains(&part));
    now["round"] == round && is_phase && now["ops"].as_u64() > Some(0)
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Kills the program where it stands.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Whether a phase of the second round's first trial is under way: the settled stack was mounted
/// for the last time.
fn measuring_in_round_two(log: &Log) -> bool {
    let mut mounts = 0;
    let mut round = 0;
    for line in &log.0 {
        match line["event"].as_str().unwrap() {
            "round-started" => (round, mounts) = (line["round"].as_u64().unwrap(), 0),
            "stack-set-up" => mounts = 0,
            "command" if line["argv"][0] == "mount" => mounts += 1,
            _ => {}
        }
    }
    round == 2 && log.trials("complete").len() == 2 && mounts == 1
}

fn a_small_study_gives_a_verdict_and_leaves_nothing() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    ground.write("small.toml", SMALL);
    let said = ground.stackrace(&["run", "small.toml"]);
    said.ended(0);
    assert!(said.out.starts_with("VERDICT"), "{}", said.out);
    let log = Log::of(&ground);
    assert_eq!(log.trials("complete"), design(3, 2, 2));
    assert_eq!(log.all("round-finished").len(), 3);
    assert_eq!(log.all("checked").len(), 1);
    assert_eq!(log.ended(), "rounds");
    assert_eq!(ground.left(), [""; 0]);
    reports(&ground);
}

/// Every form of a report renders and says the same.
fn reports(ground: &Ground) {
    let report = |format: &str| {
        let said = ground.stackrace(&["report", "--format", format]);
        said.ended(0);
        said.out
    };
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let sentence = json["verdict"]["sentence"].as_str().unwrap().to_owned();
    assert!(sentence.contains("3 rounds"), "{sentence}");
    let folded = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for format in ["terminal", "markdown"] {
        assert!(folded(report(format)).contains(&sentence), "{format}");
    }
    let html = report("html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<svg"));
    let csv = report("csv");
    let trials = csv.lines().filter(|line| !line.starts_with('#')).count();
    // 3 rounds × 2 configurations × the metrics of both workloads, and the heading.
    assert!(trials > 12, "{csv}");
    let path = ground.path().join("report.html");
    let said = ground.stackrace(&["report", "--html", path.to_str().unwrap()]);
    said.ended(0);
    // No `assert_eq`: it would print both pages.
    assert!(
        fs::read_to_string(path).unwrap() == html,
        "the file differs from standard output"
    );
    let bad = ground.stackrace(&["report", "--format", "pdf"]);
    bad.ended(2).err_has("there is no report \"pdf\"");
}

/// The index answers SQL of another program, and can be made again from the log.
#[expect(
    clippy::disallowed_methods,
    reason = "another program has to read the index"
)]
fn the_index_answers_sql_and_can_be_made_again() {
    if !cfg!(feature = "sqlite") {
        needs::skip("built without SQLite");
    }
    let sqlite = needs::tool("sqlite3");
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("dir.toml", DIRECTORY);
    ground.stackrace(&["run", "dir.toml"]).ended(0);
    let trials = || {
        let output = std::process::Command::new(&sqlite)
            .arg(ground.store().join("stackrace.db"))
            .arg("SELECT count(*), sum(round) FROM trials")
            .output();
        Said::of(&output.unwrap()).ended(0).out.clone()
    };
    // Two rounds of two configurations.
    assert_eq!(trials(), "4|6\n");
    fs::remove_file(ground.store().join("stackrace.db")).unwrap();
    ground.stackrace(&["reindex"]).ended(0);
    assert_eq!(trials(), "4|6\n");
}

/// Goes on with a killed run, and checks that nothing of what it had is lost or done twice.
#[track_caller]
fn resumes(ground: &Ground, before: &[u8], workloads: u64) {
    let said = ground.stackrace(&["resume"]);
    said.ended(0);
    let after = Log::bytes(ground);
    assert!(after.starts_with(before), "the log was not only added to");
    let log = Log::of(ground);
    assert_eq!(log.trials("complete"), design(3, 2, workloads));
    assert_eq!(log.all("run-resumed").len(), 1);
    assert_eq!(log.all("round-finished").len(), 3);
    assert_eq!(log.ended(), "rounds");
    assert_eq!(ground.left(), [""; 0]);
}

/// What trials were preceded by: round, workload, bytes written over.
fn worn_in(log: &Log) -> Vec<(u64, u64, u64)> {
    let trials = log.all("trial").into_iter();
    let preceded = trials.filter_map(|trial| Some((trial, trial.get("preconditioned")?)));
    let mut found: Vec<_> = preceded
        .map(|(trial, before)| {
            let passes = before["passes"].as_array().unwrap();
            assert!(passes.iter().all(|pass| pass.as_f64().unwrap() > 0.0));
            assert!(before["elapsed_ns"].as_u64().unwrap() > 0);
            // Whether such short passes are level is chance; what follows from it is not.
            let steady = before["steady"].as_bool().unwrap();
            let few = if steady { 5 } else { 25 };
            assert!((few..=25).contains(&passes.len()), "{before}");
            let number = |value: &Value| value.as_u64().unwrap();
            let (round, workload) = (number(&trial["round"]), number(&trial["workload"]));
            (round, workload, number(&before["written_bytes"]))
        })
        .collect();
    found.sort_unstable();
    found
}

fn a_directory_is_preconditioned_in_every_round() {
    let ground = Ground::new();
    let data = ground.make_dir("data");
    let text = format!("{DIRECTORY}[trial]\nprecondition = \"snia\"\n");
    ground.write("study.toml", text);
    let plan = ground.stackrace(&["plan", "study.toml"]);
    plan.ended(0);
    assert!(
        plan.out.contains("in each round: each stack"),
        "{}",
        plan.out
    );
    ground.stackrace(&["run", "study.toml"]).ended(0);
    let log = Log::of(&ground);
    assert_eq!(log.trials("complete"), design(2, 2, 1));
    let both = |round| [(round, 0, 2 << 20); 2];
    assert_eq!(worn_in(&log), [both(1), both(2)].concat());
    assert_eq!(ground.left(), [""; 0]);
    assert_eq!(fs::read_dir(data).unwrap().count(), 0);
    let page = ground.stackrace(&["report", "--format", "html"]);
    assert!(
        page.out
            .contains("2 MiB were written from beginning to end")
    );
}

/// Written over once for all workloads, and only while the stacks are new.
fn loop_devices_that_stand_are_preconditioned_once() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    // Up to a hundred passes: without settling they are quick.
    let text = format!(
        "{SMALL}[trial]\nprecondition = \"snia\"\nprovision = \"once\"\nremount = false\ndrop-caches = false\n"
    );
    ground.write("study.toml", text);
    ground.stackrace(&["run", "study.toml"]).ended(0);
    let log = Log::of(&ground);
    assert_eq!(log.trials("complete"), design(3, 2, 2));
    let (first, second) = ((1, 0, 16 << 20), (1, 1, 0));
    assert_eq!(worn_in(&log), [first, first, second, second]);
    assert_eq!(ground.left(), [""; 0]);
}

/// If the time did not suffice for a verdict, the report says how much more it takes.
fn a_run_that_had_too_little_time_says_how_it_goes_on() {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = DIRECTORY.replace("\"10 ms\"", "\"1 s\"");
    let study = study.replace("at-most = 2", "at-most = 5");
    ground.write("dir.toml", study.replace("30 min", "4 s"));
    let said = ground.stackrace(&["run", "dir.toml"]);
    assert_eq!(Log::of(&ground).all("run-ended")[0]["reason"], "time");
    let run = said
        .ended(0)
        .out
        .lines()
        .find_map(|line| line.strip_prefix("run     "));
    let (run, store) = (run.unwrap(), ground.store());
    let next = format!(
        "next     stackrace resume {run} --store {} --until-decided",
        store.display()
    );
    assert!(said.out.contains(&next), "{}", said.out);
}

fn an_ended_run_is_resumed_to_the_same_verdict() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("dir.toml", DIRECTORY);
    let first = ground.stackrace(&["run", "dir.toml", "--quiet"]);
    first.ended(0);
    let trials = Log::of(&ground).trials("complete");
    assert_eq!(trials, design(2, 2, 1));
    let again = ground.stackrace(&["resume", "--quiet"]);
    assert_eq!(again.ended(0).out, first.out);
    assert_eq!(Log::of(&ground).trials("complete"), trials);
    assert_eq!(ground.left(), [""; 0]);
    let unknown = ground.stackrace(&["resume", "1999"]);
    unknown.ended(2).err_has("1999").err_has("next: ");
}

fn a_live_run_is_neither_resumed_nor_cleaned_by_another() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("dir.toml", DIRECTORY.replace("10 ms", "20 s"));
    let raised = |log: &Log| !log.all("stack-set-up").is_empty();
    let child = start_until(&ground, &["run", "dir.toml"], raised);
    let second = ground.stackrace(&["resume"]);
    let clean = ground.stackrace(&["clean"]);
    let standing = ground.left();
    let said = interrupt(child);
    second.ended(3).err_has("another process");
    clean.ended(0);
    assert!(
        clean.out.contains("left alone: the run that writes"),
        "{}",
        clean.out
    );
    assert!(!standing.is_empty(), "clean removed what a live run uses");
    said.ended(130);
    assert_eq!(ground.left(), [""; 0]);
    assert_eq!(Log::of(&ground).failures(), []);
}

fn a_run_is_resumed_where_it_was_begun() {
    let ground = Ground::new();
    ground.make_dir("data");
    let elsewhere = ground.make_dir("elsewhere");
    ground.write("dir.toml", DIRECTORY.replace("10 ms", "300 ms"));
    let raised = |log: &Log| log.all("stack-set-up").len() == 2;
    kill(start_until(&ground, &["run", "dir.toml"], raised));
    let said = ground
        .program(&["resume", "--html", "r.html"])
        .current_dir(&elsewhere)
        .output();
    Said::of(&said.unwrap()).ended(0);
    assert_eq!(Log::of(&ground).trials("complete"), design(2, 2, 1));
    assert!(elsewhere.join("r.html").exists());
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    let mut tests = needs::tests![
        a_run_that_goes_on_notices_another_one_in_its_directories,
        one_directory_alone_is_measured_by_one_run_at_a_time,
        workloads_at_the_same_time_are_trials_of_their_own_that_end_with_the_first,
        one_whose_own_time_is_shorter_goes_on_until_the_first_ends,
        two_workloads_of_compare_are_measured_together_or_refused,
        a_small_study_gives_a_verdict_and_leaves_nothing,
        the_index_answers_sql_and_can_be_made_again,
        a_directory_is_preconditioned_in_every_round,
        loop_devices_that_stand_are_preconditioned_once,
        a_run_that_had_too_little_time_says_how_it_goes_on,
        interrupted_it_lowers_what_stands_and_says_the_verdict_so_far,
        interrupted_at_any_moment_it_lowers_what_stands,
        what_a_killed_run_occupies_is_not_in_the_way_of_its_resumption,
        an_ended_run_is_resumed_to_the_same_verdict,
        a_live_run_is_neither_resumed_nor_cleaned_by_another,
        a_run_is_resumed_where_it_was_begun,
        two_directories_are_compared_by_root,
        two_directories_are_compared_without_root,
        the_same_file_system_is_compared_only_where_one_insists,
        sizes_are_found_within_a_quota_that_the_free_space_does_not_show,
        one_directory_is_enough_or_not_or_that_is_not_certain_yet,
        a_full_disk_fails_its_trial_and_no_other,
        a_directory_that_was_full_is_measured_again_by_resume_once_it_has_room,
        storage_that_hangs_is_named_and_keeps_neither_ctrl_c_nor_clean,
        the_second_ctrl_c_ends_the_command_while_storage_hangs_with_and_without_a_terminal,
        a_command_is_ended_stopped_and_killed_by_the_number_that_its_caller_knows,
        job_control_reaches_the_process_that_works,
        a_run_whose_terminal_is_gone_goes_on_to_its_end,
        a_run_that_leads_its_session_is_stopped_cleanly_by_the_end_of_its_terminal,
        one_wish_may_arrive_as_several_signals,
        a_log_that_is_cut_while_the_run_goes_on_ends_it_without_a_verdict,
        a_disk_that_fails_in_a_trial_fails_that_trial_alone_and_is_measured_once_mended,
        a_directory_that_vanishes_leaves_the_race,
        a_script_that_fails_is_named_with_the_reason_in_the_verdict,
        a_set_up_that_does_not_end_is_named_after_ctrl_c_with_the_command_that_ends_it,
        a_script_gets_the_time_that_its_study_gives_it,
        the_file_of_a_native_file_system_lies_on_the_disk_that_a_loop_device_lies_on,
        commands_that_outlive_their_run_are_waited_for,
        storage_that_is_unmounted_between_rounds_is_out_and_comes_back_with_resume,
        storage_that_is_mounted_over_is_out,
        a_loop_device_whose_number_a_copy_of_its_image_took_is_out,
        a_loop_device_that_is_given_up_under_its_mount_is_the_same_storage,
        an_image_that_is_cut_off_under_its_mount_is_out,
        a_mirror_that_loses_a_disk_in_mid_trial_fails_and_says_so,
        a_share_that_goes_away_is_out_and_another_of_its_server_is_not_it,
        storage_that_becomes_read_only_is_said_to_be_so,
        a_directory_that_another_one_replaces_is_out,
        a_directory_that_a_file_replaces_is_said_to_be_a_file,
        a_directory_that_a_link_replaces_is_out,
        storage_that_is_mounted_over_before_its_first_trial_is_out,
        a_file_of_the_data_that_another_one_is_mounted_over_is_out,
        a_file_that_another_one_is_mounted_over_fails_a_load,
        a_program_of_ones_own_is_not_timed_on_exchanged_storage,
        sizes_that_were_found_on_exchanged_storage_are_not_used,
        a_store_that_was_moved_has_all_results_and_is_cleaned_where_it_is,
        disks_whose_directory_was_moved_are_not_called_gone,
        disks_that_a_mount_hides_are_not_called_gone,
        a_program_that_renames_its_directory_leaves_nothing_unsaid,
        after_a_power_cut_nothing_is_there_that_the_journal_calls_undone,
    ];
    tests.extend(kills::tests());
    tests.extend(remounted::tests());
    tests
}
