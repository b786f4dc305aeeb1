//! The command line: the only room that reads arguments and the environment and prints.

mod afp;
mod answer;
mod args;
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
mod gate;
mod images;
mod import;
mod interrupt;
mod lab;
mod load;
mod man;
mod output;
mod plan;
mod progress;
mod published;
#[cfg_attr(not(feature = "postgresql"), path = "no_push.rs")]
mod push;
mod report;
mod run;
mod runs;
mod serve;
mod setting;
mod show;
mod terminal;
mod variable;
mod verdict;
mod words;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};

use args::{Arguments, CliVerb, Colour, Common};
use defaults::Defaults;
use events::EventCopy;
use failure::Failure;
use setting::{Setting, default_store};
use terminal::{error, print, print_on};
use variable::variable;

use crate::session::worker::StudyWorker;
use crate::session::{self, Context};
use stackrace_load::tools::{self, ClassicTool, Console};
use stackrace_places::agent::program::Program;
use stackrace_places::agent::worker;
use stackrace_show::report::Screen;

/// Runs the program with the arguments of its process, and gives its exit code.
pub(crate) fn main() -> ExitCode {
    // A limit on the size of files is an error that says so, and no sudden end.
    stackrace_engine::limit::fail_beyond();
    // A TAB in the shell: nothing else is to be done or printed then.
    if complete::answer() {
        return ExitCode::SUCCESS;
    }
    let matches = Arguments::whole().get_matches();
    // Before anything is touched.
    let verb = matches.subcommand_name().unwrap_or_default();
    let works = works_on(verb, std::env::consts::OS);
    match works.and_then(|()| dispatch(&matches)) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            error(&failure.render());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Reads a command line (the words after the program's name) without doing anything.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn understands<'a>(words: impl Iterator<Item = &'a [u8]>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let words = words.map(std::ffi::OsStr::from_bytes);
    let words = std::iter::once("stackrace".as_ref()).chain(words);
    match Arguments::whole().try_get_matches_from(words) {
        Ok(_) => true,
        // `--help` ends the reading early, but is no mistake.
        Err(error) => error.kind() == clap::error::ErrorKind::DisplayHelp,
    }
}

fn dispatch(matches: &ArgMatches) -> Result<u8, Failure> {
    let common = Common::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let defaults = match matches.subcommand_name() {
        // On another machine it does what it is told from here.
        Some("agent") => Defaults::default(),
        _ => Defaults::read()?,
    };
    let setting = Setting {
        session: Context {
            store: common.store.or(defaults.store()).or_else(default_store),
            command: std::env::args_os()
                // For the record only; nothing is opened by these words.
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            peers: Vec::new(),
            one_kernel: false,
        },
        quiet: common.quiet,
        events: EventCopy::default(),
        screen: Screen {
            width: terminal::columns(&std::io::stdout()),
            colour: match defaults.colour(common.colour, matches) {
                Colour::Auto => {
                    std::io::stdout().is_terminal()
                        // no-color.org: set to anything but nothing.
                        && variable("NO_COLOR").is_none_or(|value| value.is_empty())
                }
                Colour::Always => true,
                Colour::Never => false,
            },
        },
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
        CliVerb::Compare(verb) => compare::exec(&setting, defaults.compare(verb, matches)),
        CliVerb::Run(verb) => run::exec(&setting, verb),
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
        CliVerb::Clean(verb) => clean::exec(&setting, verb),
        CliVerb::Doctor(verb) => doctor::exec(&setting, verb, &defaults),
        CliVerb::Show(verb) => show::exec(verb),
        CliVerb::Crash(verb) => crash::exec(&setting, &verb),
        CliVerb::Drive(verb) => drive::exec(&verb),
        CliVerb::Reindex => report::reindex(&setting),
        CliVerb::Completions { shell } => complete::script(&shell).map(|()| 0),
        CliVerb::Man { directory } => man::exec(directory.as_deref()),
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
            variable,
            entropy: session::entropy,
            catch_interrupt: interrupt::catch_interrupt,
            temporary: &|host, work| {
                session::temporary::work(&setting.session, host, |journal, id| work(journal, id))
            },
            quiet: setting.quiet,
        },
    )
}

/// `stackrace agent`: this program on another machine.
fn agent(verb: args::AgentVerb) -> Result<u8, Failure> {
    match verb {
        args::AgentVerb::Serve(serving) => worker::stdio(StudyWorker, serving.silence()),
        args::AgentVerb::Hash => {
            let program = Program::own().map_err(|error| Failure::internal(error.to_string()))?;
            print(&format!("{}\n", program.hash));
        }
    }
    Ok(0)
}

/// Commands that raise stacks and measure them, which needs Linux's mounts, devices and `/proc`.
const LINUX_ALONE: [&str; 5] = ["agent", "compare", "lab", "resume", "run"];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_linux_is_refused_elsewhere_by_name() {
        let commands = Arguments::whole();
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
