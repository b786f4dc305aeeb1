//! The command line: the only room that reads arguments and the environment and prints.

mod afp;
mod args;
mod bonnie;
mod clean;
mod compare;
mod diff;
mod engine;
mod execute;
mod export;
mod failure;
mod fault;
mod fio;
mod gate;
mod import;
mod in_step;
mod lab;
mod load;
mod on;
mod peers;
mod places;
mod plan;
mod postmark;
mod progress;
mod published;
mod report;
mod resume;
mod serve;
mod show;
mod sysbench;
mod verdict;

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{CommandFactory, Parser};

use args::{Arguments, Colour, Verb};
use failure::Failure;

pub(crate) use compare::compared;

use crate::agent::peer::Peer;
use crate::agent::relay::{self, Line};
use crate::host::local::{LocalHost, Sink};
use crate::record::Store;

/// What every verb needs.
struct Setting {
    /// Where runs are kept, as asked for.
    asked_store: Option<PathBuf>,
    quiet: bool,
    colour: bool,
    command: Vec<String>,
    /// What leads to the other machines of a stack, where somebody carries it.
    peers: Vec<Arc<Line>>,
    /// What this program is told besides; none: it reads standard input itself.
    told: Mutex<Option<Receiver<String>>>,
}

impl Setting {
    /// Where runs are kept. What keeps nothing needs no such place.
    fn store(&self) -> Result<PathBuf, Failure> {
        store_dir(self.asked_store.clone())
    }

    /// This machine with the peers it has; the sink is told of every command.
    fn host(&self, sink: Sink) -> LocalHost {
        let mut peers = crate::lab::peer::all(&sink);
        for line in &self.peers {
            let sink = Arc::clone(&sink);
            peers.push(Box::new(Peer::relayed(Arc::clone(line), sink)));
        }
        LocalHost::new(sink).with_peers(peers)
    }

    /// The lines this program is told on standard input.
    fn told(&self) -> Box<dyn Iterator<Item = String> + Send> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match told.take() {
            Some(told) => Box::new(told.into_iter()),
            None => Box::new(
                BufReader::new(std::io::stdin())
                    .lines()
                    .map_while(Result::ok),
            ),
        }
    }

    fn open_store(&self) -> Result<Store, Failure> {
        Store::open(&self.store()?)
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))
    }
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    // A limit on the size of files is an error that says so, and no sudden end.
    stackrace_engine::limit::fail_beyond();
    let arguments = Arguments::parse();
    match dispatch(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            error(&failure.render());
            ExitCode::from(failure.code)
        }
    }
}

/// Reads a command line (the words after the program's name) without doing anything.
pub(crate) fn understands<'a>(words: impl Iterator<Item = &'a [u8]>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let words = words.map(std::ffi::OsStr::from_bytes);
    Arguments::try_parse_from(std::iter::once("stackrace".as_ref()).chain(words)).is_ok()
}

fn dispatch(arguments: Arguments) -> Result<u8, Failure> {
    let (peers, told) = introduced(arguments.introduced.as_deref())?;
    let setting = Setting {
        asked_store: arguments.store,
        quiet: arguments.quiet,
        colour: match arguments.colour {
            Colour::Auto => {
                std::io::stdout().is_terminal()
                    && variable("NO_COLOR").is_none_or(|value| value.is_empty())
            }
            Colour::Always => true,
            Colour::Never => false,
        },
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        peers,
        told: Mutex::new(told),
    };
    match arguments.verb {
        Verb::Agent { verb } => on::there(verb),
        Verb::Bonnie(verb) => bonnie::exec(&setting, verb),
        Verb::Lab(verb) => lab::exec(&setting, verb.verb),
        Verb::Load(verb) => load::exec(&setting, verb),
        Verb::Compare(verb) => compare::exec(&setting, verb),
        Verb::Fio(verb) => fio::exec(verb),
        Verb::Run(verb) => execute::exec_run(&setting, verb),
        Verb::InStep(verb) => in_step::exec(&setting, verb),
        Verb::Resume(verb) => resume::exec(&setting, verb),
        Verb::Plan(verb) => plan::exec(&setting, verb),
        Verb::Postmark(verb) => postmark::exec(&setting, verb),
        Verb::Report(verb) => report::exec(&setting, verb),
        Verb::Verdict(verb) => verdict::exec(&setting, verb),
        Verb::Published(verb) => published::exec(&setting, &verb),
        Verb::Runs => report::list(&setting),
        Verb::Import(verb) => import::exec(&setting, verb),
        Verb::Diff(verb) => diff::exec(&setting, verb),
        Verb::Export(verb) => export::exec(&setting, &verb),
        Verb::Gate(verb) => gate::exec(&setting, &verb),
        Verb::Serve(verb) => serve::exec(&setting, verb),
        Verb::Clean(verb) => clean::exec(&setting, verb),
        Verb::Show(verb) => show::exec(verb),
        Verb::Reindex => report::reindex(&setting),
        Verb::Sysbench(verb) => sysbench::exec(verb),
        Verb::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "stackrace", &mut text);
            print(&String::from_utf8_lossy(&text));
            Ok(0)
        }
    }
}

fn store_dir(asked: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let dir = match (asked, variable("XDG_STATE_HOME"), variable("HOME")) {
        (Some(asked), _, _) => asked,
        (None, Some(state), _) if !state.is_empty() => PathBuf::from(state).join("stackrace"),
        (None, _, Some(home)) if !home.is_empty() => {
            PathBuf::from(home).join(".local/state/stackrace")
        }
        _ => {
            return Err(Failure::usage("no place for results: HOME is not set")
                .next("name one: --store DIR"));
        }
    };
    std::path::absolute(&dir).map_err(|error| Failure::usage(format!("{}: {error}", dir.display())))
}

/// The lines to the peers this program was told of, and what else it is told.
#[expect(
    clippy::type_complexity,
    reason = "both come at once, and are taken apart at once"
)]
fn introduced(text: Option<&str>) -> Result<(Vec<Arc<Line>>, Option<Receiver<String>>), Failure> {
    let Some(text) = text else {
        return Ok((Vec::new(), None));
    };
    let peers = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("--introduced: {error}")))?;
    let say = |line: &[u8]| {
        let mut out = std::io::stdout().lock();
        out.write_all(line).and_then(|()| out.flush())
    };
    let (lines, told) = relay::first(peers, BufReader::new(std::io::stdin()), say)
        .map_err(|error| Failure::internal(error.to_string()))?;
    Ok((lines, Some(told)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the room that reads the environment"
)]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Writes to standard output; a reader that has gone away ends the program quietly.
fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// Writes bytes to standard output, as [`print()`] does.
fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    if written.is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Writes a file beside its final name and renames it: an old one is never half overwritten.
fn write_file(path: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut name = path
        .file_name()
        .map(std::ffi::OsStr::to_os_string)
        .ok_or_else(|| Failure::usage(format!("{} is no file name", path.display())))?;
    name.push(".part");
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| Failure::internal(format!("cannot write {}: {error}", path.display())))
}

/// Writes to standard error; there is nobody left to tell if that fails.
fn error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
