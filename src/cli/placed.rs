//! Every option at every place, alone and in pairs: it is refused with a reason, or the settings that the
//! command works with are other ones. Nothing is reached, started or touched.

use std::path::PathBuf;

use clap::{ArgAction, Command, FromArgMatches};
use tempfile::TempDir;

use super::args::{self, Arguments, CliVerb};
use super::events::EventCopy;
use super::setting::Setting;
use super::{plan, run, typed};
use stackrace_places::place::options::{
    AskedPlace, COMMANDS, OPTIONS, PLACES, as_markdown, has_row,
};
use stackrace_run::prepare::context::Context;
use stackrace_show::report::Screen;

const SIZES: &str = "[sizes]\ndata = { scaled = \"1 MiB\", full = \"2 MiB\" }\n";
const END: &str = "[decide]\nrounds-at-most = 3\nat-most = \"30 min\"\n";

/// A study that can be measured at a place; with a disk of the user's where one can be used.
fn study_for(place: AskedPlace) -> String {
    const DISK: &str = "devices = { ids = [\"ata-ONE_1\"], size = \"8 MiB\", model = \"ONE\" }\n\
        [[stack]]\next4 = {}\n";
    let stack = match place {
        AskedPlace::Clients => "dir = { path = \"/srv\" }\n",
        AskedPlace::Lab => "lab-disks = { size = \"1 GiB\" }\n[[stack]]\next4 = {}\n",
        AskedPlace::Virtual => {
            "lab-disks = { model = \"seagate-st3000dm001\", size = \"1 GiB\" }\n[[stack]]\next4 = {}\n"
        }
        _ => DISK,
    };
    let workload = match place {
        AskedPlace::RealCut => {
            "promises = { idiom = \"append-fdatasync\", operations = \"{n}\" }\n[crash]\ncuts = 2\n"
        }
        _ => "random = { mode = \"write\", size = \"{data}\", queue-depth = \"{n}\" }\n",
    };
    let sizes = if workload.contains("{data}") {
        SIZES
    } else {
        ""
    };
    format!(
        "title = \"t\"\n[factors]\nn = [20, 30]\n[[stack]]\n{stack}[[workload]]\n{workload}{sizes}{END}"
    )
}

/// The words that name a place for `run` and `plan`.
fn words_for(place: AskedPlace) -> &'static [&'static str] {
    match place {
        AskedPlace::Here => &[],
        AskedPlace::Ssh => &["--on", "one"],
        AskedPlace::Shell => &["--on", "one", "--agent", "none"],
        AskedPlace::Clients => &["--clients", "ssh:one,two"],
        AskedPlace::Lab | AskedPlace::Virtual => &["--lab"],
        AskedPlace::RealCut => &["--on", "one", "--cut", "off", "--restore", "on"],
    }
}

/// Studies in a directory, one for each place.
struct Studies(TempDir);

impl Studies {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for place in PLACES {
            let path = dir.path().join(format!("{place:?}.toml"));
            std::fs::write(path, study_for(place)).unwrap();
        }
        Self(dir)
    }

    /// Command lines that name a place, without further options.
    fn bases(&self, command: &str, place: AskedPlace) -> Vec<Vec<String>> {
        let study = self.0.path().join(format!("{place:?}.toml"));
        let study = study.to_string_lossy().into_owned();
        let named = words_for(place);
        let each = match command {
            "run" | "plan" => vec![[&[&*study][..], named].concat()],
            "clean" => vec![named.to_vec()],
            "compare" => {
                let plain = [&["/", "/tmp"], named].concat();
                vec![plain.clone(), [&plain[..], &["--", "true"]].concat()]
            }
            "check" => vec![vec!["/tmp"]],
            "load" => vec![vec!["/tmp", "random"]],
            // Where a run goes on is on record.
            _ => vec![vec!["last"]],
        };
        let whole = |words: Vec<&str>| {
            let words = ["stackrace", command].into_iter().chain(words);
            words.map(str::to_owned).collect()
        };
        each.into_iter().map(whole).collect()
    }
}

/// The options of a command as the parser has them, each with a value that is not its default; hidden ones are
/// variables of the environment.
fn options(command: &str, place: AskedPlace) -> Vec<(String, Vec<String>)> {
    let whole = args::command();
    let known = whole.find_subcommand(command).unwrap();
    let option = |arg: &clap::Arg| {
        let name = arg.get_long()?.to_owned();
        let mut words = vec![format!("--{name}")];
        if !matches!(arg.get_action(), ArgAction::SetTrue) {
            words.push(value(&name, place).to_owned());
        }
        Some((name, words))
    };
    let shown = known.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(option).collect()
}

/// A value that an option takes.
fn value(option: &str, place: AskedPlace) -> &'static str {
    match option {
        // Another clock than that of the place.
        "clock" if place != AskedPlace::Virtual => "virtual",
        "agent" => "none",
        "arrivals" => "open",
        "back-within" | "more-time" | "time" | "trial-time" => "7 min",
        "better" => "lower",
        "clients" => "ssh:three,four",
        "clock" => "real",
        "confidence" => "99 %",
        "drive" => "seagate-st3000dm001",
        "find-rate" => "p99 <= 5 ms",
        "for" => "files",
        "html" => "page.html",
        "margin" | "within" => "3 %",
        "memory" | "size" | "disk" => "2 GiB",
        "metric" => "a=b",
        "nodes-allocated" => "node1",
        "on" | "peer" => "other",
        "jobs" | "processes" | "rounds" | "seed" => "2",
        "system" => "debian-12",
        "wipe" => "ata-ONE_1",
        "with" => "git",
        // Commands, files and names: any word will do.
        _ => "word",
    }
}

/// Settings that the command would work with; `None` if it is refused.
fn settings(parser: &mut Command, words: &[String], place: AskedPlace) -> Option<String> {
    // One parser for all: to make it takes longer than to read a line with it.
    let matches = parser.try_get_matches_from_mut(words).ok()?;
    let verb = Arguments::from_arg_matches(&matches).unwrap().verb;
    let setting = Setting {
        session: Context {
            store: Some(PathBuf::from("/nowhere")),
            command: Vec::new(),
            peers: Vec::new(),
            one_kernel: false,
            named_by: Vec::new(),
        },
        typed: typed(parser, &matches),
        events: EventCopy::default(),
        quiet: true,
        screen: Screen::default(),
        colour: false,
        error_colour: false,
    };
    match verb {
        CliVerb::Run(verb) => {
            let (study, place) = run::asked(&setting, &verb).ok()?;
            let asked = place.described(&study).ok()?;
            let (output, decide) = (&verb.output, verb.deciding.decide);
            let rules = (&study.decide, study.seed, &study.text);
            Some(format!("{asked} {rules:?} {output:?} {decide}"))
        }
        CliVerb::Plan(verb) => {
            let (study, place, memory_bytes) = plan::asked(&setting, &verb).ok()?;
            let there = (&verb.there, &verb.systems, verb.json);
            let rules = (&study.decide, &study.text);
            Some(format!("{place:?} {rules:?} {memory_bytes} {there:?}"))
        }
        verb => {
            // Those of `resume` are on record, and the place of `load` is this machine.
            let place = match &verb {
                CliVerb::Clean(verb) => {
                    AskedPlace::of_machines(&args::machines(&verb.there), false)
                }
                CliVerb::Compare(verb) if args::clients(&verb.clients).started.is_some() => {
                    AskedPlace::Clients
                }
                CliVerb::Check(_) | CliVerb::Compare(_) => AskedPlace::Here,
                _ => place,
            };
            setting.typed.check(place).ok()?;
            // What it is given it works with, as it was read.
            Some(format!("{verb:?}"))
        }
    }
}

/// A command line with more options, in front of whatever a command of the user's may take for its own.
fn with(base: &[String], options: &[&[String]]) -> Vec<String> {
    let (head, rest) = base.split_at(2);
    [head, &options.concat(), rest].concat()
}

#[test]
fn every_option_of_every_command_that_works_at_a_place_is_in_the_table_and_no_other() {
    let whole = args::command();
    let mut known = Vec::new();
    for (command, _) in COMMANDS {
        let arguments = whole.find_subcommand(command).unwrap().get_arguments();
        for name in arguments.filter_map(clap::Arg::get_long) {
            assert!(
                has_row(command, name),
                "{command} --{name}: where is it used?"
            );
            known.push(name);
        }
    }
    for row in OPTIONS {
        assert!(known.contains(&row.name), "no command has --{}", row.name);
    }
}

/// Never used with the studies here: they name a place, go with another option, or mean nothing there.
fn is_never_alone(command: &str, name: &str) -> bool {
    let named = [
        "clients", "cut", "restore", "peer", "unit", "better", "together", "home", "arrivals",
    ]
    .contains(&name);
    named
        || (command, name) == ("clean", "processes")
        || (command, name) == ("resume", "back-within")
}

#[test]
fn every_option_is_used_or_refused_at_every_place() {
    let studies = Studies::new();
    let mut parser = args::command();
    for (command, places) in COMMANDS {
        let mut never = Vec::new();
        for &place in places {
            for base in studies.bases(command, place) {
                let plain = settings(&mut parser, &base, place);
                assert!(plain.is_some(), "{base:?} is refused without an option");
                for (name, words) in options(command, place) {
                    let given = settings(&mut parser, &with(&base, &[&words]), place);
                    assert_ne!(given, plain, "{command} --{name} at {place:?} is ignored");
                    never.push((name, given.is_none()));
                }
            }
        }
        for (name, _) in options(command, AskedPlace::Here) {
            let refused = never
                .iter()
                .filter(|(one, _)| *one == name)
                .all(|(_, no)| *no);
            assert!(
                !refused || is_never_alone(command, &name),
                "{command} --{name} is refused everywhere"
            );
        }
    }
}

#[test]
fn of_two_options_neither_is_ignored() {
    let studies = Studies::new();
    let mut parser = args::command();
    for (command, places) in COMMANDS {
        for &place in places {
            let options = options(command, place);
            for base in studies.bases(command, place) {
                let mut alone: Vec<Option<String>> = Vec::new();
                for (_, words) in &options {
                    alone.push(settings(&mut parser, &with(&base, &[words]), place));
                }
                for (one, (first, words)) in options.iter().enumerate() {
                    for (other, (second, more)) in options.iter().enumerate().skip(one + 1) {
                        let both = settings(&mut parser, &with(&base, &[words, more]), place);
                        // On modelled drives, that the clock is virtual is said twice.
                        if [first.as_str(), second] == ["drive", "clock"] {
                            continue;
                        }
                        let what = format!("{command} --{first} --{second} at {place:?}");
                        for (of, ignored) in [(one, second), (other, first)] {
                            let same = both.is_some() && both == alone[of];
                            assert!(!same, "{what}: --{ignored} is ignored");
                        }
                    }
                }
            }
        }
    }
}

/// All commands and their own, each with the words that lead to it.
fn all_commands(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    // Each has a "help" of its own, with the same commands again.
    let own = command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help");
    for inner in own {
        let words = [words, &[inner.get_name().to_owned()]].concat();
        all_commands(inner, &words, found);
        found.push((words, inner.clone()));
    }
}

/// The command with a word for each of its arguments.
fn with_arguments(words: &[String], command: &Command) -> Vec<String> {
    // One that is not needed beside some option is needed without it.
    let needed = command.get_positionals().filter(|arg| !arg.is_last_set());
    let needed = needed.map(|arg| {
        let known = arg.get_possible_values();
        known
            .first()
            .map_or("1", |value| value.get_name())
            .to_owned()
    });
    let options = command.get_arguments().filter(|arg| arg.is_required_set());
    let options = options.filter_map(clap::Arg::get_long).flat_map(|long| {
        let word = value(long, AskedPlace::Here);
        [format!("--{long}"), word.to_owned()]
    });
    words.iter().cloned().chain(options).chain(needed).collect()
}

/// clap lets an option stand without the one that it requires where that conflicts with something given.
#[test]
fn an_option_that_needs_another_is_refused_without_it_whatever_else_is_given() {
    let studies = Studies::new();
    let (mut parser, mut all) = (args::command(), Vec::new());
    parser.build();
    all_commands(&parser, &["stackrace".to_owned()], &mut all);
    let mut seen = Vec::new();
    for (words, command) in all {
        let name = words[1].clone();
        let placed = words.len() == 2 && COMMANDS.iter().any(|(known, _)| *known == name);
        let base = match placed {
            true => studies.bases(&name, AskedPlace::Here).remove(0),
            false => with_arguments(&words, &command),
        };
        // Some take words that are not made up here; those looked for are named at the end.
        if parser.try_get_matches_from_mut(&base).is_err() {
            continue;
        }
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let options: Vec<(String, Vec<String>)> = shown
            .filter_map(|arg| Some((arg.get_long()?, arg)))
            .map(|(long, arg)| {
                let flag = !arg.get_action().takes_values();
                let known = arg.get_possible_values();
                let word = known.first().map_or_else(
                    || value(long, AskedPlace::Here).to_owned(),
                    |value| value.get_name().to_owned(),
                );
                let words = [format!("--{long}"), word];
                (long.to_owned(), words[..2 - usize::from(flag)].to_vec())
            })
            .collect();
        let insert = |more: &[&[String]]| {
            let (head, rest) = base.split_at(words.len());
            [head, &more.concat(), rest].concat()
        };
        for (first, one) in &options {
            let alone = parser.try_get_matches_from_mut(insert(&[one]));
            let Err(refused) = alone else { continue };
            let context = refused.get(clap::error::ContextKind::InvalidArg);
            let (clap::error::ErrorKind::MissingRequiredArgument, Some(needed)) =
                (refused.kind(), context)
            else {
                continue;
            };
            seen.push(first.clone());
            let needed = needed.to_string();
            for (second, other) in &options {
                let both = insert(&[one, other]);
                let taken = match placed {
                    true => settings(&mut parser, &both, AskedPlace::Here).is_some(),
                    false => parser.try_get_matches_from_mut(&both).is_ok(),
                };
                assert!(
                    !taken || first == second || needed.contains(&format!("--{second}")),
                    "{name} --{first} --{second} is taken without {needed}"
                );
            }
        }
    }
    for option in ["prepare", "unit", "disk", "anyway", "studies", "length"] {
        assert!(
            seen.iter().any(|seen| seen == option),
            "--{option}: {seen:?}"
        );
    }
}

#[test]
fn the_documentation_has_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/remote.md");
    let documented = std::fs::read_to_string(page).unwrap();
    let table = as_markdown();
    assert!(
        documented.contains(&table),
        "docs/remote.md lacks:\n{table}"
    );
}
