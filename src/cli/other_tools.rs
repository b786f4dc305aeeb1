//! Options and commands of fio, sysbench, hyperfine and others, typed here: what they are called here.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use std::ffi::{OsStr, OsString};

/// What an option of other tools is here.
struct Elsewhere {
    /// Its names elsewhere, without dashes.
    typed: &'static [&'static str],
    /// Options that mean the same here; the first that the command has.
    options: &'static [&'static str],
    /// Where the command has none of them.
    otherwise: Otherwise,
}

/// What does the same where no option does.
enum Otherwise {
    /// A setting of a workload, with an example.
    Setting(&'static str, &'static str),
    /// Words that do it.
    Words(&'static str),
    /// Nothing does.
    Nothing,
}

use Otherwise::{Nothing, Setting, Words};

const fn option(typed: &'static [&'static str], options: &'static [&'static str]) -> Elsewhere {
    either(typed, options, Nothing)
}

const fn setting(
    typed: &'static [&'static str],
    (name, value): (&'static str, &'static str),
) -> Elsewhere {
    either(typed, &[], Setting(name, value))
}

const fn either(
    typed: &'static [&'static str],
    options: &'static [&'static str],
    otherwise: Otherwise,
) -> Elsewhere {
    Elsewhere {
        typed,
        options,
        otherwise,
    }
}

/// Names from the manuals of fio, sysbench, bonnie++, hyperfine and the Phoronix Test Suite, and near ones.
const ELSEWHERE: &[Elsewhere] = &[
    either(
        &[
            "runtime",
            "duration",
            "time-limit",
            "max-time",
            "timeout",
            "seconds",
            "limit",
            "t",
        ],
        &["time"],
        Setting("time", "5s"),
    ),
    option(
        &[
            "runs",
            "min-runs",
            "max-runs",
            "repeat",
            "repeats",
            "iterations",
            "count",
            "loops",
            "times-to-run",
            "r",
        ],
        &["rounds"],
    ),
    either(
        &["size", "filesize", "file-size", "file-total-size"],
        &["size"],
        Setting("size", "1GiB"),
    ),
    setting(
        &["bs", "blocksize", "block-size", "file-block-size"],
        ("block-size", "4KiB"),
    ),
    setting(
        &["iodepth", "io-depth", "depth", "queue-depth", "qd"],
        ("queue-depth", "16"),
    ),
    setting(
        &["numjobs", "num-jobs", "threads", "num-threads"],
        ("threads", "4"),
    ),
    setting(
        &["rw", "readwrite", "mode", "file-test-mode"],
        ("mode", "read"),
    ),
    setting(&["direct", "o-direct"], ("direct", "true")),
    setting(&["fsync", "file-fsync-freq"], ("fsync-every", "1")),
    setting(&["fdatasync"], ("data-only", "true")),
    setting(&["rwmixread", "read-share"], ("read-share", "70%")),
    setting(&["rate-iops", "iops", "rate"], ("rate", "1000")),
    setting(
        &["ioengine", "engine", "file-io-mode"],
        ("engine", "io_uring"),
    ),
    setting(&["nrfiles", "file-num"], ("files", "16")),
    setting(&["thinktime", "think-time"], ("think-time", "1ms")),
    option(&["randseed", "rand-seed", "random-seed"], &["seed"]),
    option(&["confidence-level", "level"], &["confidence"]),
    option(
        &["threshold", "tolerance", "minimum-effect", "effect-size"],
        &["margin"],
    ),
    option(&["precision", "max-error"], &["within"]),
    option(&["workload", "test", "tests", "benchmark"], &["with"]),
    option(&["scenario", "use-case"], &["for"]),
    option(&["host", "hosts", "remote", "target"], &["on"]),
    either(
        &["dry-run", "dryrun", "parse-only"],
        &["print-study"],
        Words("`stackrace plan` shows what a study would do, and touches nothing"),
    ),
    either(
        &[
            "output",
            "output-file",
            "o",
            "export-markdown",
            "export-html",
        ],
        &["output", "html"],
        Words("the result is kept: `stackrace report last` shows it"),
    ),
    either(
        &["export-json", "output-format"],
        &["json"],
        Words("the result is kept: `stackrace report last --json` prints it"),
    ),
    either(
        &["csv", "export-csv", "table", "tables"],
        &[],
        Words("the result is kept: `stackrace export last --table all -o DIR` writes it as tables"),
    ),
    either(
        &["require"],
        &["require"],
        Words("one directory: stackrace check DIR --require BOUND; several: [require] in a study"),
    ),
    either(
        &["directory", "filename", "path"],
        &[],
        Words("a directory stands alone, without an option: stackrace check DIR"),
    ),
];

/// Commands as other tools call them, and here.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["bench", "benchmark", "test", "measure", "batch-run"],
        "check",
    ),
    (&["race", "versus", "vs", "batch-benchmark"], "compare"),
    (
        &["list", "ls", "history", "results", "list-saved-results"],
        "runs",
    ),
    (&["start", "exec", "study"], "run"),
    (&["view", "open", "html", "result-file-to-html"], "report"),
    (&["info", "system-info", "diagnose"], "doctor"),
    (&["web", "server", "watch", "dashboard"], "serve"),
    (&["continue", "restart"], "resume"),
    (&["cleanup", "clear"], "clean"),
    (
        &[
            "studies",
            "workloads",
            "layers",
            "profiles",
            "purposes",
            "drives",
        ],
        "show",
    ),
];

/// Proposes what an unknown option or command of a command line is called here.
///
/// `false` where no other tool has one of its name. A name that only looks alike (`--repeat` and `--replay`) is not
/// proposed beside it.
pub(super) fn propose(said: &mut clap::Error, root: &Command, words: &[OsString]) -> bool {
    if let Some(ContextValue::String(typed)) = said.get(ContextKind::InvalidSubcommand) {
        let found = COMMANDS.iter().find(|(names, _)| names.contains(&&**typed));
        let Some((_, here)) = found else { return false };
        let here = ContextValue::String((*here).to_owned());
        said.insert(ContextKind::SuggestedSubcommand, here);
        return true;
    }
    let Some(ContextValue::String(typed)) = said.get(ContextKind::InvalidArg) else {
        return false;
    };
    if said.kind() != clap::error::ErrorKind::UnknownArgument {
        return false;
    }
    let (verb, command) = asked(root, words);
    if verb == "check" && !typed.starts_with('-') {
        let several = "check looks at one directory; several: stackrace compare DIR DIR";
        return advise(said, several.to_owned());
    }
    let name = typed.trim_start_matches('-').replace('_', "-");
    let Some(found) = ELSEWHERE.iter().find(|one| one.typed.contains(&&*name)) else {
        return false;
    };
    let has = |option: &&&str| {
        let mut all = command.get_arguments();
        all.any(|one| one.get_long() == Some(**option))
    };
    let advice = match (found.options.iter().find(has), &found.otherwise) {
        (Some(option), _) => {
            let option = ContextValue::String(format!("--{option}"));
            said.insert(ContextKind::SuggestedArg, option);
            return true;
        }
        (None, Setting(name, value)) => as_setting(verb, name, value),
        (None, Words(words)) => (*words).to_owned(),
        (None, Nothing) => return false,
    };
    advise(said, advice)
}

/// Puts one piece of advice in the place of all that the parser has.
fn advise(said: &mut clap::Error, advice: String) -> bool {
    said.remove(ContextKind::SuggestedArg);
    said.remove(ContextKind::Usage);
    let advice = ContextValue::StyledStrs(vec![StyledStr::from(advice)]);
    said.insert(ContextKind::Suggested, advice);
    true
}

/// Where a command takes settings of a workload, and where all of them are listed.
fn as_setting(verb: &str, name: &str, value: &str) -> String {
    // As TOML has it: texts and amounts in quotes.
    let is_bare = value == "true" || value.parse::<u32>().is_ok();
    let quote = if is_bare { "" } else { "\"" };
    let where_it_stands = match verb {
        "load" => format!("without dashes: load DIR random … {name}={value}"),
        "compare" => format!("--with \"random … {name}={value}\""),
        _ => format!("in the study's file: {name} = {quote}{value}{quote}"),
    };
    format!("a setting of the workload, {where_it_stands}; all: stackrace show workloads random")
}

/// The command that a command line asks for, and its name; the program itself where there is none.
fn asked<'a>(root: &'a Command, words: &[OsString]) -> (&'a str, &'a Command) {
    let mut found = (root.get_name(), root);
    for word in words
        .iter()
        .skip(1)
        .take_while(|word| *word != OsStr::new("--"))
    {
        let next = word.to_str().and_then(|word| found.1.find_subcommand(word));
        if let Some(next) = next {
            found = (next.get_name(), next);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{args, words};
    use stackrace_load::workload::ALL;

    /// What is said of a command line that is wrong.
    fn said(line: &str) -> String {
        let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut said = args::whole().try_get_matches_from(&typed).unwrap_err();
        words::keep_near(&mut said, &typed);
        said.to_string()
    }

    #[test]
    fn options_of_other_tools_are_named_as_they_are_here() {
        for (line, proposed) in [
            ("s compare a b --runtime=5", "'--time'"),
            ("s run demo --max_time 5", "'--time'"),
            ("s compare a b --repeat 3", "'--rounds'"),
            ("s check a --iterations 3", "'--rounds'"),
            (
                "s compare a b --bs=4k",
                "--with \"random … block-size=4KiB\"",
            ),
            (
                "s load a random --iodepth=4",
                "load DIR random … queue-depth=16",
            ),
            (
                "s run demo --direct=1",
                "in the study's file: direct = true",
            ),
            ("s run demo --bs=4k", "block-size = \"4KiB\""),
            ("s load a random --size=1G", "load DIR random … size=1GiB"),
            ("s compare a b --export-json x", "'--json'"),
            ("s clean --export-json x", "report last --json"),
            ("s report --table all", "stackrace export last"),
            ("s check --directory a", "check DIR"),
            ("s compare a b -o x", "'--html'"),
            ("s run demo --dry-run", "stackrace plan"),
            ("s compare a b --require x", "check DIR --require BOUND"),
            ("s check a b", "stackrace compare DIR DIR"),
            ("s list", "'runs'"),
            ("s benchmark /tmp", "'check'"),
        ] {
            let said = said(line);
            assert!(said.contains(proposed), "{line}: {said}");
            assert_eq!(said.matches("tip:").count(), 1, "{line}: {said}");
        }
    }

    #[test]
    fn every_proposed_option_and_setting_exists() {
        let root = args::whole();
        let commands: Vec<&Command> = root.get_subcommands().collect();
        for (_, here) in COMMANDS {
            assert!(root.find_subcommand(here).is_some(), "{here}");
        }
        let random = ALL.iter().find(|kind| kind.name == "random").unwrap();
        for one in ELSEWHERE {
            for option in one.options {
                let mut options = commands.iter().flat_map(|command| command.get_arguments());
                assert!(
                    options.any(|arg| arg.get_long() == Some(*option)),
                    "--{option}"
                );
            }
            if let Setting(name, _) = one.otherwise {
                let mut all = random.settings.iter();
                assert!(all.any(|setting| setting.name == name), "{name}");
            }
        }
    }
}
