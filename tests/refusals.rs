//! What is refused before anything is touched: the exit code, the place, the advice, and a store
//! that was not even made.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[path = "refusals/directories.rs"]
mod directories;
#[path = "refusals/options.rs"]
mod options;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ground, Mounted, Said};
use directories::{
    a_directory_one_may_not_write_to_is_refused, a_name_that_is_no_text_is_refused,
    directories_that_cannot_be_compared_are_refused,
    directories_that_cannot_take_the_data_are_refused,
    memory_alone_and_two_names_of_one_directory_are_refused, memory_is_not_compared_with_a_disk,
    refused, what_one_directory_cannot_be_asked_is_refused_with_the_nearest_choice,
};
use options::{
    a_command_that_clients_cannot_measure_together_is_refused_before_it_is_tried,
    data_beyond_all_numbers_are_refused_for_want_of_room,
    files_whose_names_promise_an_unknown_format_are_refused,
    options_that_a_place_would_ignore_are_refused, options_without_a_question_for_them_are_refused,
};
use stackrace_test_needs as needs;

/// A study that works, to be spoilt.
const GOOD: &str = r#"title = "Good"
[factors]
level = ["1 KiB", "2 KiB"]
[[stack]]
tmpfs = { size = "16 MiB" }
[[workload]]
files = { count = 10, size-max = "{level}" }
[decide]
rounds-at-most = 3
"#;

/// Spoils the study in one place and runs it.
#[track_caller]
fn spoilt(from: &str, to: &str, parts: &[&str]) {
    assert!(GOOD.contains(from));
    let ground = Ground::new();
    ground.write("study.toml", GOOD.replacen(from, to, 1));
    refused(&ground, &["run", "study.toml"], 3, parts);
    assert!(!ground.store().exists(), "the store was made");
}

/// What a plan of the study ends with: a file system in memory is mounted by root alone.
fn planned() -> i32 {
    match needs::is_root() {
        true => 0,
        false => 3,
    }
}

fn the_study_that_is_spoilt_is_good_before() {
    let ground = Ground::new();
    ground.write("study.toml", GOOD);
    ground.stackrace(&["plan", "study.toml"]).ended(planned());
}

fn permission_to_wipe_what_no_study_names_is_refused() {
    let ground = Ground::new();
    ground.write("none.toml", GOOD);
    let disks = "devices = { ids = [\"ata-ONE_1\", \"ata-TWO_2\"], size = \"8 MiB\", model = \"ONE\" }\n[[stack]]\nbtrfs = {}";
    ground.write(
        "disks.toml",
        GOOD.replace("tmpfs = { size = \"16 MiB\" }", disks),
    );
    for (study, id, advice) in [
        (
            "none.toml",
            "ata-ONE_1",
            "leave it out: the study names no disks",
        ),
        ("disks.toml", "ata-ONE_11", "did you mean ata-ONE_1?"),
        (
            "disks.toml",
            "/dev/disk/by-id/ata-TWO_2",
            "did you mean ata-TWO_2?",
        ),
        ("disks.toml", "sdb", "the study names ata-ONE_1, ata-TWO_2"),
    ] {
        let parts = ["the study names no disk of that id", id, advice];
        refused(&ground, &["run", study, "--wipe", id], 2, &parts);
    }
}

fn unknown_words_are_refused_with_their_place_and_the_nearest() {
    spoilt(
        "tmpfs",
        "tmpsf",
        &[
            "there is no layer \"tmpsf\"",
            "study.toml:5:1",
            "did you mean \"tmpfs\"?",
        ],
    );
    spoilt(
        "files",
        "flies",
        &[
            "there is no workload \"flies\"",
            "study.toml:7:1",
            "did you mean \"files\"?",
        ],
    );
    spoilt(
        "count",
        "cuont",
        &[
            "files has no setting \"cuont\"",
            "study.toml:7:11",
            "did you mean \"count\"?",
        ],
    );
    spoilt(
        "rounds-at-most",
        "rounds",
        &["study.toml:9:1", "rounds-at-most"],
    );
    spoilt("{level}", "{levle}", &["study.toml:7:", "levle", "level"]);
}

fn a_factor_that_nothing_uses_is_refused() {
    spoilt("{level}", "2 KiB", &["study.toml:3:1", "level"]);
}

fn a_million_configurations_are_refused() {
    let levels: Vec<String> = (1..=100).map(|level| level.to_string()).collect();
    let levels = levels.join(", ");
    let factors = format!("a = [{levels}]\nb = [{levels}]\nc = [{levels}]");
    spoilt(
        "level = [\"1 KiB\", \"2 KiB\"]",
        &factors,
        &["study.toml:", "1000000"],
    );
}

fn what_is_no_study_is_refused() {
    spoilt("[factors]", "[factors", &["study.toml:2:9"]);
    let ground = Ground::new();
    ground.write("binary.toml", b"title = \"\xff\"\n");
    refused(
        &ground,
        &["run", "binary.toml"],
        3,
        &["binary.toml is not UTF-8 text", "line 1"],
    );
    ground.write("empty.toml", "");
    refused(&ground, &["run", "empty.toml"], 3, &["empty.toml"]);
    let missing = ["cannot read the study missing.toml", "No such file", "demo"];
    refused(&ground, &["run", "missing.toml"], 3, &missing);
    refused(
        &ground,
        &["run", "."],
        3,
        &["cannot read the study .: Is a directory"],
    );
    assert!(!ground.store().exists(), "the store was made");
}

fn words_of_mkfs_that_are_not_on_the_list_are_refused() {
    for words in needs::attacks([
        r#"["/dev/sda"]"#,
        r#"["-F", "/dev/null"]"#,
        r#"["-J", "device=/dev/sda"]"#,
        r#"["-l", "/etc/passwd"]"#,
        r#"["-z", "undo"]"#,
        r#"["-d", "directory"]"#,
        r#"["file"]"#,
    ]) {
        let study =
            format!("loop = {{ size = \"64 MiB\" }}\n[[stack]]\next4 = {{ mkfs = {words} }}");
        spoilt(
            "tmpfs = { size = \"16 MiB\" }",
            &study,
            &["study.toml:7:", "is no word that a study may give to mkfs"],
        );
    }
}

/// The device something is mounted from.
fn device(mounted: &Mounted) -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let of = |line: &&str| line.split(' ').nth(1) == Some(mounted.text());
    let line = mounts.lines().find(of).unwrap();
    PathBuf::from(line.split(' ').next().unwrap())
}

/// A study on loop devices whose files are to lie in a directory.
#[track_caller]
fn loop_in(ground: &Ground, directory: &Path, parts: &[&str]) {
    let study = GOOD.replace(
        "tmpfs = { size = \"16 MiB\" }",
        &format!(
            "loop = {{ size = \"16 MiB\", directory = \"{}\" }}\n[[stack]]\next4 = {{}}",
            directory.display()
        ),
    );
    ground.write("study.toml", study);
    refused(ground, &["run", "study.toml"], 3, parts);
}

fn disks_are_not_made_where_no_directory_is() {
    needs::root_and_loop_devices();
    let ground = Ground::new();
    loop_in(
        &ground,
        Path::new("/dev/null"),
        &["/dev/null is not a directory"],
    );
    let link = ground.path().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    loop_in(&ground, &link, &["link is not a directory"]);
    let mounted = Mounted::ext4(&ground, "mounted", 16);
    let device = device(&mounted);
    loop_in(
        &ground,
        &device,
        &[&format!("{} is not a directory", device.display())],
    );
    loop_in(
        &ground,
        &ground.path().join("missing"),
        &["missing does not exist"],
    );
    assert!(!ground.store().exists(), "the store was made");
}

fn a_missing_directory_is_refused_before_the_race() {
    let dir = |path: &str| format!("dir = {{ path = \"{path}\" }}");
    let tmpfs = "tmpfs = { size = \"16 MiB\" }";
    spoilt(
        tmpfs,
        &dir("/nonexistent/data"),
        &["/nonexistent/data does not exist"],
    );
    spoilt(
        tmpfs,
        &dir("study.toml"),
        &["study.toml is not a directory"],
    );
}

/// A study in virtual time: data in MiB, seconds of the second workload.
fn in_virtual_time(data: u32, seconds: u64, drives: &str) -> String {
    format!(
        r#"title = "Virtual"
[factors]
filesystem = ["ext4", "xfs"]
[[stack]]
lab-disks = {drives}
[[stack]]
"{{filesystem}}" = {{}}
[[workload]]
sequential = {{ mode = "write", size = "{data} MiB" }}
[[workload]]
random = {{ mode = "read", size = "{data} MiB", access = "uniform", time = "{seconds} s" }}
[decide]
compare = "filesystem"
at-most = "1000 h"
"#
    )
}

const ONE_DISK: &str = r#"{ model = "seagate-st3000dm001", size = "64 GiB" }"#;

#[track_caller]
fn refused_in_virtual_time(study: &str, code: i32, args: &[&str], parts: &[&str]) {
    let ground = Ground::new();
    ground.write("study.toml", study);
    refused(
        &ground,
        &[&["run", "study.toml", "--lab"], args].concat(),
        code,
        parts,
    );
}

fn data_that_neither_a_guest_nor_the_disk_below_it_can_keep_are_refused() {
    // The file of a guest ends at 64 GiB, whatever is free here.
    let one = r#"{ model = "seagate-st16000nm001g", size = "1 TiB" }"#;
    let study = in_virtual_time(80 << 10, 4, one);
    let parts = [
        "80 GiB",
        "640 MiB in its memory",
        "this machine's disk",
        "--jobs 1",
    ];
    refused_in_virtual_time(&study, 3, &[], &parts);
    // Both disks of a mirror keep them.
    let two = r#"{ model = "seagate-st16000nm001g", size = "1 TiB", count = 2 }
[[stack]]
md = { raid = 1 }"#;
    let study = in_virtual_time(40 << 10, 4, two);
    refused_in_virtual_time(&study, 3, &[], &["80 GiB", "this machine's disk"]);
}

fn days_of_virtual_time_are_refused_with_what_makes_them_fewer() {
    let study = in_virtual_time(16, 30_000, ONE_DISK);
    let parts = ["of virtual time", "3 rounds", "shorten the workloads' time"];
    refused_in_virtual_time(&study, 3, &[], &parts);
}

/// What two machines in one kernel cannot do is refused by the plan and by the run, with what can.
fn what_needs_two_kernels_is_refused_in_virtual_time() {
    let dlm = r#"title = "Two kernels"
[factors]
mounted = [1, 2]
[[stack]]
lab-disks = { model = "hitachi-hds721010kla330", size = "2 GiB" }
[[stack]]
drbd = { role = "dual" }
[[stack]]
gfs2 = { lock = "dlm", mounted-on = "{mounted}" }
[[workload]]
files = { count = 10 }
"#;
    let replicated = dlm
        .replace(
            "drbd = { role = \"dual\" }",
            "drbd = { delay = \"{mounted} ms\" }",
        )
        .replace(
            "gfs2 = { lock = \"dlm\", mounted-on = \"{mounted}\" }",
            "ext4 = {}\n[[stack]]\nnfs = {}",
        );
    for (study, why) in [
        (dlm, "gfs2 with lock = \"dlm\" needs two kernels"),
        (&replicated, "needs 3 machines, and two fit into one kernel"),
    ] {
        for verb in ["plan", "run"] {
            let ground = Ground::new();
            ground.write("study.toml", study);
            let args = [verb, "study.toml", "--lab"];
            refused(&ground, &args, 3, &[why, "--clock real"]);
        }
    }
}

/// The text without its line breaks: where they fall is not what is tested.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn a_plan_for_virtual_time_says_what_it_costs_here() {
    let ground = Ground::new();
    ground.write("study.toml", in_virtual_time(16, 4, ONE_DISK));
    let said = ground.stackrace(&["plan", "study.toml", "--lab"]);
    said.ended(0);
    for part in [
        "of virtual time",
        "wall expected",
        "2 guests a round",
        "room for 640 MiB in its memory",
        "on this machine's disk",
    ] {
        assert!(unwrapped(&said.out).contains(part), "{part}: {}", said.out);
    }
    let more = ["plan", "study.toml", "--lab", "--memory", "2 GiB"];
    let said = ground.stackrace(&more);
    assert!(
        said.out.contains("room for 1.6 GiB in its memory"),
        "{}",
        said.out
    );
    ground.write("real.toml", GOOD);
    let said = ground.stackrace(&["plan", "real.toml", "--lab"]);
    said.ended(0);
    assert!(!said.out.contains("wall    "), "{}", said.out);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        data_that_neither_a_guest_nor_the_disk_below_it_can_keep_are_refused,
        days_of_virtual_time_are_refused_with_what_makes_them_fewer,
        a_plan_for_virtual_time_says_what_it_costs_here,
        what_needs_two_kernels_is_refused_in_virtual_time,
        the_study_that_is_spoilt_is_good_before,
        permission_to_wipe_what_no_study_names_is_refused,
        options_that_a_place_would_ignore_are_refused,
        options_without_a_question_for_them_are_refused,
        data_beyond_all_numbers_are_refused_for_want_of_room,
        a_command_that_clients_cannot_measure_together_is_refused_before_it_is_tried,
        files_whose_names_promise_an_unknown_format_are_refused,
        unknown_words_are_refused_with_their_place_and_the_nearest,
        a_factor_that_nothing_uses_is_refused,
        a_million_configurations_are_refused,
        what_is_no_study_is_refused,
        words_of_mkfs_that_are_not_on_the_list_are_refused,
        disks_are_not_made_where_no_directory_is,
        a_missing_directory_is_refused_before_the_race,
        directories_that_cannot_be_compared_are_refused,
        what_one_directory_cannot_be_asked_is_refused_with_the_nearest_choice,
        memory_is_not_compared_with_a_disk,
        a_name_that_is_no_text_is_refused,
        directories_that_cannot_take_the_data_are_refused,
        memory_alone_and_two_names_of_one_directory_are_refused,
        a_directory_one_may_not_write_to_is_refused,
    ]
}
