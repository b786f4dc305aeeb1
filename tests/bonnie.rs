//! `stackrace bonnie++` as the real program: what it prints, what the original's own tools make of
//! it, what it leaves and what it refuses.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Ground, Said};
use rustix::process::{Pid, Signal};
use stackrace_test_needs as needs;

/// The program with options of bonnie++; as root, it says so.
fn command(ground: &Ground, options: &[&str]) -> Command {
    let mut command = ground.program(&[]);
    command.arg("bonnie++");
    if needs::is_root() {
        command.args(["-u", "root"]);
    }
    command.args(options);
    command
}

fn bonnie(ground: &Ground, options: &[&str]) -> Said {
    Said::of(&command(ground, options).output().unwrap())
}

/// Options of a run that takes a moment.
const SHORT: [&str; 10] = ["-r", "0", "-s", "4", "-n", "1", "-m", "host", "-d", "data"];

fn both_versions_print_what_the_originals_do_and_leave_nothing() {
    for (version, lines, fields, said) in [
        (None, 11, 50, "Writing a byte at a time...done\n"),
        (Some("1.03"), 9, 27, "Writing with putc()...done\n"),
    ] {
        let ground = Ground::new();
        let data = ground.make_dir("data");
        let mut options = SHORT.to_vec();
        options.extend(["--too-fast", "0"]);
        options.extend(
            version
                .into_iter()
                .flat_map(|version| ["--version", version]),
        );
        let run = bonnie(&ground, &options);
        run.ended(0).err_has(said);
        run.err_has("done...done...done...\n");
        run.err_has("Delete files in random order...done.\n");
        assert_eq!(run.out.lines().count(), lines, "{}", run.out);
        let csv = run.out.lines().last().unwrap();
        assert_eq!(csv.split(',').count(), fields, "{csv}");
        assert!(!csv.contains("++"), "{csv}");
        assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
        assert_eq!(ground.left(), [""; 0]);
    }
}

fn several_runs_are_csv_alone_under_a_header() {
    let ground = Ground::new();
    ground.make_dir("data");
    let run = bonnie(
        &ground,
        &[&SHORT[..], &["-q", "-f", "-x2", "-z", "5"]].concat(),
    );
    run.ended(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(
        lines[0].starts_with("format_version,") && lines.len() == 3,
        "{}",
        run.out
    );
    for line in &lines[1..] {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[..6], ["1.98", "2.00a", "host", "1", "5", "4M"]);
        assert_eq!(
            (fields[9], fields[10]),
            ("", ""),
            "characters were left out"
        );
    }
    assert_eq!(run.err, "");
}

/// Whether a tool that comes with bonnie++ 2.00 understands our lines as it does the original's: its
/// output has these fields of the line, and these words.
fn understood_by(tool: &str, fields: &[usize], words: &[&str]) {
    let tool = needs::tool(tool);
    let ground = Ground::new();
    ground.make_dir("data");
    let options = [&SHORT[..], &["-q", "--too-fast", "0", "-n", "1:100:10:3"]].concat();
    let csv = bonnie(&ground, &options).out;
    let columns: Vec<&str> = csv.trim().split(',').collect();
    let file = ground.write("line.csv", &csv);
    #[expect(clippy::disallowed_methods, reason = "what reads our output is a tool")]
    let output = Command::new(tool)
        .stdin(fs::File::open(file).unwrap())
        .output()
        .unwrap();
    let said = Said::of(&output);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for part in fields
        .iter()
        .map(|field| columns[*field])
        .chain(words.iter().copied())
    {
        assert!(
            said.out.contains(part),
            "no {part:?} of {csv} in\n{}",
            said.out
        );
    }
}

fn bon_csv2html_reads_the_csv() {
    understood_by("bon_csv2html", &[26, 28, 36, 48], &["host"]);
}

fn bon_csv2txt_reads_the_csv() {
    understood_by("bon_csv2txt", &[26, 48], &["host", "1:100:10:3"]);
}

fn what_the_original_refuses_is_refused_before_anything_is_made() {
    let ground = Ground::new();
    for (options, said) in [
        (
            &["-s", "16", "-r", "1000"][..],
            "File size should be double RAM for good results, RAM is 1000M.",
        ),
        (
            &["-s", "0", "-n", "100000", "-r", "1"],
            "When testing 100000K of files in 1 MiB of RAM",
        ),
        (
            &["-d", "nowhere", "-s", "16", "-r", "0"],
            "Can't change to directory \"nowhere\".",
        ),
        (
            &["-u", "no-such-user", "-s", "16", "-r", "0"],
            "Can't find user no-such-user",
        ),
        (&["-p", "3"], "-p: several processes"),
    ] {
        bonnie(&ground, options).ended(1).err_has(said);
    }
    let help = bonnie(&ground, &["--help"]);
    help.ended(0);
    assert!(help.out.contains("--version 1.03|2.00"));
    if needs::is_root() {
        let run = Said::of(
            &ground
                .program(&[])
                .args(["bonnie++", "-s", "0"])
                .output()
                .unwrap(),
        );
        run.ended(1)
            .err_has("You must use the \"-u\" switch when running as root.");
    }
    assert!(!ground.store().exists());
}

/// With -u the work is done without root's rights.
fn another_user_may_not_write_where_only_root_may() {
    needs::root();
    let ground = Ground::new();
    ground.make_dir("data");
    let options = [&["-u", "65534:65534"], &SHORT[..]].concat();
    bonnie(&ground, &options)
        .ended(1)
        .err_has("Permission denied");
    assert_eq!(ground.left(), [""; 0]);
}

/// Ends a run in the middle of creating files by a signal; gives back its exit code.
fn ended_by(ground: &Ground, signal: Signal) -> Option<i32> {
    let options = ["-q", "-r", "0", "-s", "0", "-n", "64", "-b", "-d", "data"];
    let mut child = command(ground, &options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while ground.left().is_empty() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
    child.wait().unwrap().code()
}

fn an_interrupt_removes_the_files() {
    let ground = Ground::new();
    ground.make_dir("data");
    assert_eq!(ended_by(&ground, Signal::INT), Some(130));
    assert_eq!(ground.left(), [""; 0]);
}

fn clean_removes_what_a_killed_run_left() {
    let ground = Ground::new();
    let data = ground.make_dir("data");
    assert_eq!(ended_by(&ground, Signal::KILL), None);
    assert!(!ground.left().is_empty());
    ground.stackrace(&["clean"]).ended(0);
    assert_eq!(ground.left(), [""; 0]);
    assert_eq!(fs::read_dir(data).unwrap().count(), 0);
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        both_versions_print_what_the_originals_do_and_leave_nothing,
        several_runs_are_csv_alone_under_a_header,
        bon_csv2html_reads_the_csv,
        bon_csv2txt_reads_the_csv,
        what_the_original_refuses_is_refused_before_anything_is_made,
        another_user_may_not_write_where_only_root_may,
        an_interrupt_removes_the_files,
        clean_removes_what_a_killed_run_left,
    ]
}
