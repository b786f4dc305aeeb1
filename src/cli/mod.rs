//! The command line: the only room that reads arguments and the environment and prints.

mod afp;
mod answer;
mod args;
mod check;
mod clean;
mod compare;
mod complete;
mod crash;
mod defaults;
mod diff;
mod doctor;
mod drive;
mod drive_card;
mod drives;
mod engine;
mod events;
mod export;
mod failure;
mod fault;
mod gallery;
mod gallery_site;
mod gate;
mod images;
mod import;
mod interrupt;
mod lab;
mod lab_add;
mod load;
mod man;
mod other_tools;
mod output;
#[cfg(test)]
mod placed;
mod plan;
mod progress;
mod published;
#[cfg_attr(not(feature = "postgresql"), path = "no_push.rs")]
mod push;
mod record;
mod report;
mod run;
mod runs;
mod serve;
mod setting;
mod show;
mod terminal;
mod trace;
mod variable;
mod verdict;
mod words;

use stackrace_base::unit::InWords;
use std::path::Path;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches, ValueEnum};
use rustix::fs::Mode;

use args::{Arguments, CliVerb, Colour, Common};
use defaults::Defaults;
use events::EventCopy;
use failure::Failure;
use setting::{Setting, default_store};
use terminal::{error, print, print_help, print_on};

use stackrace_base::event::{program_is, store_is_named};
use stackrace_load::tools::{self, ClassicTool, Console};
use stackrace_machine::host;
use stackrace_places::place::options::TypedOptions;
use stackrace_places::place::worker::StudyWorker;
use stackrace_remote::agent::program::Program;
use stackrace_remote::agent::worker;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::preflight::check_limits;
use stackrace_show::report::Screen;
use stackrace_study::study::excerpts_fit;

/// First steps, for one who typed the name alone. It is still a mistake (code 2): a script whose variable was empty
/// must not go on.
const BEGIN: &str = "\
Which storage should I choose, and how sure can I be?

  which directory is faster, in 2 min         stackrace compare DIR DIR
  is one directory enough, as for etcd        stackrace check DIR --for etcd
  comparisons that ship: RAID, ZFS, mounts    stackrace show studies
  one of them, in virtual machines            stackrace run STUDY --lab
  what fio and other tools printed            stackrace import FILE
  the last run again (in a browser: serve)    stackrace report
  what this machine can do, what is missing   stackrace doctor
  all commands                                stackrace --help
";

/// Runs the program with the arguments of its process, and gives its exit code.
pub(crate) fn main() -> ExitCode {
    // A limit on the size of files is an error that says so, and no sudden end.
    stackrace_system::limit::fail_beyond();
    // A TAB in the shell: nothing else is to be done or printed then.
    if complete::answer() {
        return ExitCode::SUCCESS;
    }
    let mut whole = args::whole();
    let typed = words::with_values(std::env::args_os());
    let done = match whole.try_get_matches_from_mut(typed) {
        Ok(matches) => {
            // Before anything is touched.
            let verb = matches.subcommand_name().unwrap_or_default();
            let works = works_on(verb, std::env::consts::OS)
                .and_then(|()| sees_the_kernel(verb, host::sees_the_kernel()));
            let measures = TOUCHES_STORAGE.contains(&verb) && verb != "clean";
            let allowed = works.and_then(|()| match measures {
                // A load starts few threads, and at once.
                true => check_limits(verb != "load"),
                false => Ok(()),
            });
            allowed.and_then(|()| dispatch(&whole, &matches))
        }
        Err(_) if std::env::args_os().len() == 1 => {
            error(BEGIN);
            Ok(2)
        }
        Err(said) => Ok(by_the_parser(said)),
    };
    let code = match (done, terminal::lost()) {
        (Ok(code), None) => code,
        // An answer that was lost is none, however the question ended.
        (Ok(_), Some(lost)) => failed(&lost),
        (Err(failure), lost) => {
            lost.iter().for_each(|lost| error(&lost.render()));
            failed(&failure)
        }
    };
    ExitCode::from(code)
}

/// Says what failed; gives its exit code.
fn failed(failure: &Failure) -> u8 {
    error(&failure.render());
    failure.exit_code()
}

/// Prints what the parser of the command line has to say: help that was asked for, or what is wrong.
/// Gives the exit code.
fn by_the_parser(mut said: clap::Error) -> u8 {
    words::keep_near(&mut said, &std::env::args_os().collect::<Vec<_>>());
    if let Some(failure) = words::below_zero(&said) {
        return failed(&failure);
    }
    if said.use_stderr() {
        // Words of the command line stand in it: without colours, so that they bring none.
        error(&said.render().to_string());
    } else {
        let colour = terminal::colours(typed_colour(std::env::args_os()), &std::io::stdout());
        print_help(&said.render(), colour);
    }
    u8::try_from(said.exit_code()).unwrap_or(1)
}

/// `--colour` among words that were not read to their end: `--help` ends the reading.
fn typed_colour(words: impl Iterator<Item = std::ffi::OsString>) -> Colour {
    let (mut typed, mut next_is_it) = (None, false);
    for word in words {
        let word = word.to_string_lossy();
        let (name, value) = word.split_once('=').unwrap_or((&word, ""));
        let named = matches!(name, "--colour" | "--color");
        if next_is_it || named && !value.is_empty() {
            let text = if next_is_it { &*word } else { value };
            typed = Colour::from_str(text, true).ok().or(typed);
        }
        next_is_it = named && value.is_empty();
    }
    typed.unwrap_or(Colour::Auto)
}

/// Reads a command line (the words after the program's name) without doing anything.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn understands<'a>(words: impl Iterator<Item = &'a [u8]>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let words = words.map(std::ffi::OsStr::from_bytes);
    let words = std::iter::once("stackrace".as_ref()).chain(words);
    match args::whole().try_get_matches_from(words) {
        Ok(_) => true,
        // `--help` ends the reading early, but is no mistake.
        Err(error) => error.kind() == clap::error::ErrorKind::DisplayHelp,
    }
}

/// Has advice name the store that the command line names.
fn name_store(matches: &ArgMatches, store: Option<&Path>) {
    let typed = matches.value_source("store") == Some(ValueSource::CommandLine);
    let verb = matches.subcommand();
    let from = verb.map(|(_, verb)| verb.try_get_one::<String>("from"));
    // Runs of a team lie in its database.
    let of_a_team = matches!(from, Some(Ok(Some(_))));
    if let (true, false, Some(store)) = (typed, of_a_team, store) {
        // Whole, so that what is advised works in any directory.
        store_is_named(&std::path::absolute(store).unwrap_or_else(|_| store.to_owned()));
    }
}

/// Tells what advice and refusals say in every room: the store and the program that were typed, and the width of what
/// they are printed to.
fn tell_all(matches: &ArgMatches, store: Option<&Path>) {
    name_store(matches, store);
    excerpts_fit(terminal::columns(&std::io::stderr()));
    // The one that works for another machine is not typed there.
    if matches.subcommand_name() != Some("agent")
        && let Ok(program) = std::env::current_exe()
    {
        let typed = words::as_carried_out(matches.subcommand_name(), std::env::args_os().skip(1));
        program_is(&program, typed);
    }
}

/// Refuses a store without a name: an empty variable would otherwise be reported without its own.
fn is_a_store(named: Option<&Path>) -> Result<(), Failure> {
    if !named.is_some_and(|dir| dir.as_os_str().is_empty()) {
        return Ok(());
    }
    let text = "the store is named without a word: --store, or STACKRACE_STORE, is empty";
    Err(Failure::usage(text).next("name a directory, or unset STACKRACE_STORE"))
}

fn dispatch(whole: &Command, matches: &ArgMatches) -> Result<u8, Failure> {
    let common = Common::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let defaults = match matches.subcommand_name() {
        // On another machine it does what it is told from here.
        Some("agent") => Defaults::default(),
        _ => Defaults::read()?,
    };
    is_a_store(common.store.as_deref())?;
    tell_all(matches, common.store.as_deref());
    let colour = defaults.colour(common.colour, matches);
    let setting = Setting {
        session: Context {
            named_by: Vec::new(),
            store: common.store.or(defaults.store()).or_else(default_store),
            command: std::env::args_os()
                // For the record only; nothing is opened by these words.
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            peers: Vec::new(),
            one_kernel: false,
        },
        quiet: common.quiet,
        typed: typed(whole, matches),
        events: EventCopy::default(),
        screen: Screen {
            width: terminal::columns(&std::io::stdout()),
        },
        colour: terminal::colours(colour, &std::io::stdout()),
        error_colour: terminal::colours(colour, &std::io::stderr()),
    };
    if let Some((name, words)) = matches.subcommand()
        && let Some(tool) = tools::ALL.iter().find(|tool| tool.name == name)
    {
        // Before the verbs: a tool reads all words itself, those of `--help`, too.
        return run_tool(&setting, tool, words);
    }
    let arguments = Arguments::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    match arguments.verb {
        CliVerb::Agent { verb } => agent(verb),
        CliVerb::Lab(verb) => lab::exec(&setting, verb.verb),
        CliVerb::Load(verb) => load::exec(&setting, verb),
        CliVerb::Check(verb) => check::exec(&setting, verb),
        CliVerb::Compare(verb) => compare::exec(&setting, defaults.compare(*verb, matches)),
        CliVerb::Run(verb) => run::exec(&setting, *verb),
        CliVerb::Resume(verb) => run::resume(&setting, verb),
        CliVerb::Plan(verb) => plan::exec(&setting, verb),
        CliVerb::Report(verb) => report::exec(&setting, verb),
        CliVerb::Verdict(verb) => verdict::exec(&setting, verb),
        CliVerb::Published(verb) => published::exec(&setting, &verb),
        CliVerb::Runs(verb) => runs::exec(&setting, &verb),
        CliVerb::Import(verb) => import::exec(&setting, verb),
        CliVerb::Diff(verb) => diff::exec(&setting, verb),
        CliVerb::Export(verb) => export::exec(&setting, &verb),
        CliVerb::Push(verb) => push::exec(&setting, &verb),
        CliVerb::Gate(verb) => gate::exec(&setting, &verb),
        CliVerb::Serve(verb) => serve::exec(&setting, verb),
        CliVerb::Gallery(verb) => gallery::exec(verb),
        CliVerb::Clean(verb) => clean::exec(&setting, verb),
        CliVerb::Doctor(verb) => doctor::exec(&setting, verb, &defaults),
        CliVerb::Show(verb) => show::exec(&setting, verb),
        CliVerb::Crash(verb) => crash::exec(&setting, &verb),
        CliVerb::Drive(verb) => drive::exec(&setting, &verb),
        CliVerb::Record(verb) => record::exec(&setting, verb),
        CliVerb::Trace(verb) => trace::exec(&verb),
        CliVerb::Reindex => report::reindex(&setting),
        CliVerb::Completions { shell } => complete::script(&shell).map(|()| 0),
        CliVerb::Man { directory } => man::exec(directory.as_deref()),
    }
}

/// The options of the command that were typed: neither defaults nor what a variable of the environment says.
fn typed(whole: &Command, matches: &ArgMatches) -> TypedOptions {
    let Some((command, words)) = matches.subcommand() else {
        return TypedOptions::default();
    };
    let of_command = whole.find_subcommand(command).into_iter();
    let options = of_command.flat_map(Command::get_arguments);
    let typed = options.filter(|option| {
        let source = words.value_source(option.get_id().as_str());
        // Those of all commands are none of this one, though the parser has laid them there.
        source == Some(ValueSource::CommandLine) && !option.is_global_set()
    });
    TypedOptions {
        command: command.to_owned(),
        names: typed
            .filter_map(clap::Arg::get_long)
            .map(str::to_owned)
            .collect(),
    }
}

/// Does what a classic tool does.
fn run_tool(setting: &Setting, tool: &ClassicTool, words: &ArgMatches) -> Result<u8, Failure> {
    (tool.command.run)(
        words,
        &Console {
            print,
            print_on,
            error,
            entropy: stackrace_run::prepare::context::entropy,
            catch_interrupt: interrupt::catch_interrupt,
            temporary: &|host, work| {
                stackrace_run::prepare::temporary::work(&setting.session, host, |journal, id| {
                    work(journal, id)
                })
            },
            quiet: setting.quiet,
        },
    )
}

/// `stackrace agent`: this program on another machine.
fn agent(verb: args::AgentVerb) -> Result<u8, Failure> {
    match verb {
        args::AgentVerb::Serve(serving) => worker::stdio(StudyWorker::default(), serving.silence()),
        args::AgentVerb::Hash => {
            let program = Program::own().map_err(|error| Failure::internal(error.in_words()))?;
            print(&format!("{}\n", program.hash));
        }
    }
    Ok(0)
}

/// Commands that raise stacks and measure them, which needs Linux's mounts, devices and `/proc`.
const LINUX_ALONE: [&str; 7] = [
    "agent", "check", "compare", "lab", "record", "resume", "run",
];

/// Commands with calls to storage that may not return.
const TOUCHES_STORAGE: [&str; 6] = ["check", "clean", "compare", "load", "resume", "run"];

/// Takes no right from this user on what is made: a store that its own user cannot read has lost its runs.
pub(crate) fn keep_own_rights() {
    let mask = rustix::process::umask(Mode::RWXU);
    let _ = rustix::process::umask(mask - Mode::RWXU);
}

/// Puts a process in front of this one, where a command touches storage: storage that hangs must hold neither a terminal
/// nor a script. The number of the process that works is in `now.json`, for those who stop or watch it.
pub(crate) fn stay_free() {
    let mut words = std::env::args_os().skip(1);
    if words.any(|word| TOUCHES_STORAGE.iter().any(|verb| word == *verb)) {
        stackrace_system::front::put_in_front(interrupt::explain);
    }
}

/// Refuses a command that cannot work on this system, before anything is touched.
fn works_on(verb: &str, system: &str) -> Result<(), Failure> {
    if system == "linux" || !LINUX_ALONE.contains(&verb) {
        return Ok(());
    }
    let what = format!("stackrace {verb} works on Linux alone, and this is {system}");
    Err(Failure::unable(what).next(
        "run it on a Linux machine; here, `stackrace load` puts a workload on a directory, and \
         `stackrace report` shows runs (docs/platforms.md)",
    ))
}

/// Refuses a command that cannot work where `/proc` is not mounted, before anything is touched: nothing would tell it
/// what is mounted, which processes there are, and which file is open.
fn sees_the_kernel(verb: &str, sees: bool) -> Result<(), Failure> {
    let needs = LINUX_ALONE.contains(&verb) || ["clean", "load", "plan"].contains(&verb);
    if sees || !needs {
        return Ok(());
    }
    let what = format!("stackrace {verb} needs /proc, and it is not mounted");
    Err(Failure::unable(what).next(host::MOUNT_PROC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_proc_only_what_needs_none_goes_on() {
        for verb in ["run", "compare", "clean", "load", "plan"] {
            let refused = sees_the_kernel(verb, false).unwrap_err();
            assert_eq!(refused.exit_code(), 4);
            assert!(refused.render().contains("mount -t proc proc /proc"));
            sees_the_kernel(verb, true).unwrap();
        }
        sees_the_kernel("report", false).unwrap();
    }

    #[test]
    fn options_of_all_commands_are_not_counted_as_typed_for_one() {
        let mut whole = args::whole();
        let words = "stackrace load /tmp random --seed 2 --quiet --store /tmp";
        let matches = whole.try_get_matches_from_mut(words.split(' ')).unwrap();
        let typed = typed(&whole, &matches);
        assert_eq!(
            (typed.command.as_str(), typed.names),
            ("load", vec!["seed".to_owned()])
        );
    }

    #[test]
    fn what_needs_linux_is_refused_elsewhere_by_name() {
        let commands = args::whole();
        for verb in LINUX_ALONE {
            assert!(commands.find_subcommand(verb).is_some(), "{verb}");
            works_on(verb, "linux").unwrap();
            let refused = works_on(verb, "freebsd").unwrap_err().render();
            assert!(refused.contains("this is freebsd"), "{refused}");
            assert!(refused.contains("stackrace load"), "{refused}");
        }
        works_on("load", "freebsd").unwrap();
        works_on("report", "netbsd").unwrap();
    }
}
