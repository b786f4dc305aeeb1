//! Commands that a study gives: data until the user permits them.

use crate::prepare::study_file;
use stackrace_base::failure::Failure;
use stackrace_results::record::Record;
use stackrace_study::study::Study;

/// Number of commands that a refusal shows at most.
const SHOWN_MAX: usize = 12;

/// Refuses a study that gives commands which the user has not permitted.
///
/// # Errors
/// It gives some: they are named.
pub fn check(study: &Study, allowed: bool) -> Result<(), Failure> {
    let commands = study.commands();
    if allowed || commands.is_empty() {
        return Ok(());
    }
    let shown = commands.iter().take(SHOWN_MAX);
    let mut lines: Vec<String> = shown.map(line).collect();
    if commands.len() > SHOWN_MAX {
        lines.push(format!("  and {} more", commands.len() - SHOWN_MAX));
    }
    Err(Failure::refused(format!(
        "this study gives commands, which would run with your rights:\n{}",
        lines.join("\n")
    ))
    .next("read them, then say the same with --allow-commands"))
}

/// Refuses a study whose layers run commands on a machine that is not the one it was permitted on.
///
/// # Errors
/// A layer gives commands.
pub fn check_here(study: &Study) -> Result<(), Failure> {
    if !study.layers_have_commands() {
        return Ok(());
    }
    Err(Failure::refused(
        "the commands of a layer run on this machine alone: another one would hold what they set up, \
         and not the record that says how it is taken down",
    )
    .next("run stackrace on the machine that mounts the storage, without --on, --peer, --clients and --lab"))
}

/// Lists the commands that `clean` and `resume` need of a study to take down what its commands set up; none where the
/// study cannot be read any more.
pub fn undoing_commands(record: &Record) -> Vec<(String, u32)> {
    let study = study_file::parse(&record.head.study_name, record.head.study.as_bytes());
    study.map_or(Vec::new(), |study| study.undoing_commands())
}

/// Writes the commands for a plan; empty where it gives none.
pub fn text(study: &Study) -> String {
    let commands = study.commands();
    if commands.is_empty() {
        return String::new();
    }
    let lines = commands.iter().map(|one| line(one) + "\n");
    format!(
        "\nCommands that the study gives (it runs with --allow-commands only)\n{}",
        lines.collect::<String>()
    )
}

fn line((place, command): &(String, String)) -> String {
    // A command may be a script of many lines: each is indented, so that none looks like our words.
    format!("  {place}: {}", command.trim_end().replace('\n', "\n    "))
}
