//! Which options of a job could reach beyond the directory of its trial. A job is input, not an order: it may come
//! from anywhere, and fio does what it says, as root, to any file or device.
//!
//! No option may name a place outside, also none that this fio does not know yet: a path is told by how it is
//! written. Engines are allowed by name: one that is not known here may send its blocks anywhere. The options that run a
//! command or change the machine are a finite list, from fio's manual (3.33 to 3.41).

use super::language::{JobFault, JobOption, JobSection};

/// Options whose value is no path whatever stands in it: words for people, and commands, which are told apart.
const NO_PATHS: &[&str] = &["description", "exec_prerun", "exec_postrun"];
/// Options that have fio run a command.
const COMMANDS: &[&str] = &["exec_prerun", "exec_postrun"];
/// Options that do more than work in a directory, each with what they do and what to do instead.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "opendir",
        "works on files that exist, and the directory of a trial is empty",
        "name files with filename, or let fio make them",
    ),
    (
        "fill_device",
        "writes until the storage is full",
        "give a size",
    ),
    ("fill_fs", "writes until the storage is full", "give a size"),
    (
        "ioscheduler",
        "changes the scheduler of the machine's disk",
        "leave it out, and set it before the comparison",
    ),
    (
        "cgroup",
        "makes a control group of the machine",
        "leave it out",
    ),
    (
        "daemonize",
        "leaves fio running behind the trial",
        "leave it out",
    ),
    (
        "server",
        "has fio listen on the network",
        "leave it out; --on HOST measures another machine",
    ),
    (
        "client",
        "has other machines work",
        "leave it out; --on HOST measures another machine",
    ),
    (
        "remote-config",
        "has other machines work",
        "leave it out; --on HOST measures another machine",
    ),
];
/// Engines that work on files of a directory, or on nothing.
const ENGINES: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "io_uring",
    "posixaio",
    "mmap",
    "splice",
    "null",
    "cpuio",
    "falloc",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "filerename",
    "dircreate",
    "dirstat",
    "dirdelete",
    "fileoperations",
    "e4defrag",
    "libpmem",
    "pmemblk",
    "solarisaio",
];

/// Adds what is wrong in a section; returns the commands that it gives, as fio hands them to a shell.
pub(super) fn check(section: &JobSection<'_>, faults: &mut Vec<JobFault>) -> Vec<String> {
    // The files of a job begin with its name.
    if let Some(why) = outside(section.name) {
        faults.push(JobFault::at(
            section.line,
            format!("the job's files would begin with [{}]: {why}", section.name),
            "give the job a plain name",
        ));
    }
    let mut commands = Vec::new();
    for option in &section.own {
        if let Some(fault) = fault(option) {
            faults.push(fault);
        }
        if COMMANDS.contains(&option.name.as_str()) {
            commands.push(option.whole.to_owned());
        }
    }
    commands
}

/// Refuses a job of a file that gives commands, whose name would be more of them: fio writes it behind each, for sh.
pub(super) fn check_name(section: &JobSection<'_>, faults: &mut Vec<JobFault>) {
    let name = section.value("name").unwrap_or(section.name);
    if !name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "._-+@".contains(c))
    {
        faults.push(JobFault::at(
            section.line,
            format!("fio would write the name \"{name}\" behind each command, for sh"),
            "give the job a plain name",
        ));
    }
}

fn fault(option: &JobOption<'_>) -> Option<JobFault> {
    let (name, line) = (option.name.as_str(), option.line);
    let at = |what: String, next: &str| Some(JobFault::at(line, what, next));
    if let Some((_, what, next)) = REFUSED.iter().find(|(refused, ..)| *refused == name) {
        // A flag that is off does nothing.
        let off = option.value == "0";
        return (!off).then(|| JobFault::at(line, format!("{name} {what}"), *next));
    }
    if name == "ioengine" && !ENGINES.contains(&option.value) {
        let what = format!(
            "ioengine={} may work beyond the directory of the trial",
            option.value
        );
        let next = format!("take one that works on its files: {}", ENGINES.join(", "));
        return at(what, &next);
    }
    if NO_PATHS.contains(&name) {
        return None;
    }
    let elsewhere = |one: &str| !matches!(one.trim().trim_end_matches('/'), "." | "");
    let why = match (name, option.value) {
        // fio makes none, and the directory of a trial is empty.
        ("directory", value) if outside(value).is_none() && value.split(':').any(elsewhere) => {
            Some("there is no such directory in that of the trial")
        }
        ("filename", "-") => Some("that is no file, and no storage"),
        // As fio reads it, and as it is written: a version that knows no comments there must not get elsewhere.
        (_, value) => outside(value).or_else(|| outside(option.whole)),
    }?;
    at(
        format!("{name}={}: {why}", option.value),
        "leave the path out: fio starts in the directory of the trial, which is on the storage that is compared",
    )
}

/// Why a value names a place outside of the directory that it is used in; none: it does not. Several paths have
/// colons between them, others stand behind one or in quotes.
fn outside(value: &str) -> Option<&'static str> {
    let mut pieces = value.split([':', ',', '|', '\'', '"']);
    pieces.find_map(|piece| {
        // fio takes a backslash off what it escapes.
        let piece = piece.replace('\\', "");
        let piece = piece.trim();
        let up = piece.split('/').any(|part| part.trim() == "..");
        match piece.starts_with(['/', '~']) {
            true => Some("that is outside of the directory of the trial"),
            false => up.then_some("that is above the directory of the trial"),
        }
    })
}
