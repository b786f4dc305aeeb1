//! What every tool has, and what its command is given.

use stackrace_base::event::LeftBehind;
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};

use crate::workload::WorkloadKind;
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::printed::Importer;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::Journal;

/// A classic benchmark, with everything this program has of it.
pub struct ClassicTool {
    /// The word after `stackrace`.
    pub name: &'static str,
    /// Command that stands in its place on a command line.
    pub command: ToolCommand,
    /// Its work in a study, where it has any.
    pub workload: Option<WorkloadKind>,
    /// Importer that reads its output.
    pub importer: Importer,
}

/// A command that takes the options of a tool, does what it does and prints what it prints.
pub struct ToolCommand {
    /// Adds its arguments and its help to a command of its name.
    pub arguments: fn(Command) -> Command,
    /// Runs the command with the words it was given. The result is the exit code.
    pub run: fn(&ArgMatches, &Console<'_>) -> Result<u8, Failure>,
}

/// The id of the argument that takes all words.
const WORDS: &str = "words";

/// A command that leaves every word to the tool, `--help` too.
pub(super) fn raw_command(command: Command, about: &'static str, words: &'static str) -> Command {
    let words = Arg::new(WORDS)
        .help(words)
        .value_name("WORDS")
        .num_args(0..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true);
    // The tools have options of clap's names (-h, -V) with other meanings.
    command.disable_help_flag(true).about(about).arg(words)
}

/// The words of a [`raw_command`] as they were typed.
pub(super) fn raw_words(matches: &ArgMatches) -> Vec<String> {
    let words = matches.get_many(WORDS).unwrap_or_default();
    words.cloned().collect()
}

/// Work with a journal: everything it makes is undone before [`Console::temporary`] returns.
pub(super) type JournaledWork<'a> = dyn FnMut(&Journal, &str) -> Result<(), Failure> + 'a;

/// Means that the command line gives to a command: the only way out of this room to a terminal, to
/// the environment and to the store.
#[derive(Clone, Copy)]
pub struct Console<'a> {
    /// Prints on standard output; a reader that has gone away ends the program.
    pub print: fn(&str),
    /// Prints on standard output, whether or not it is read: for the middle of a run, whose files
    /// would be left behind.
    pub print_on: fn(&str),
    /// Prints on standard error.
    pub error: fn(&str),
    /// A random number for a seed, different each time.
    pub entropy: fn() -> u64,
    /// Lets the first Ctrl-C raise the interrupt and say what then happens, the second end the
    /// program and say what is left.
    pub catch_interrupt: fn(&Arc<Interrupt>, &'static str, LeftBehind) -> Result<(), Failure>,
    /// Does work that leaves nothing behind, with a journal and an id of its own.
    pub temporary: &'a (dyn Fn(&LocalHost, &mut JournaledWork<'_>) -> Result<(), Failure> + Sync),
    /// Set if no progress is wanted.
    pub quiet: bool,
}

impl Console<'_> {
    /// Prints on standard output, without the parentheses that calling a field needs.
    pub fn print(&self, text: &str) {
        (self.print)(text);
    }

    /// Prints on standard error, likewise.
    pub fn error(&self, text: &str) {
        (self.error)(text);
    }
}
