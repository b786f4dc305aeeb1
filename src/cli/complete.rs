//! Completions of the shell, with values: studies, runs, purposes and what else is a list here.
//!
//! The shell asks this program on each TAB, so a run that has just ended is offered at once. Nothing
//! is written then: a store that does not exist yet is not made.

use stackrace_base::unit::InWords;
use std::collections::BTreeSet;

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use stackrace_drives::Card;

use super::args;
use super::defaults::Defaults;
use super::failure::Failure;
use super::images;
use super::setting::default_store;
use super::terminal::print;
use super::variable::variable;
use super::words::unknown;
use stackrace_base::event::Event;
use stackrace_layers::stack;
use stackrace_load::programs;
use stackrace_load::tools;
use stackrace_remote::lab::system;
use stackrace_results::record::Store;
use stackrace_results::tables::TableForm;
use stackrace_show::export;
use stackrace_show::gallery::MachinePart;
use stackrace_show::report;
use stackrace_study::purpose;
use stackrace_study::study;

/// The shell sets this variable to its name when it asks for words.
const ASKED: &str = "STACKRACE_COMPLETE";

/// Most runs that are offered, the newest first: a longer list helps less than one more letter.
const RUNS_MAX: usize = 50;

/// All values of an argument.
type Values = fn() -> Vec<CompletionCandidate>;

/// Which argument of which command takes which values.
const VALUES: &[(&[&str], &str, Values)] = &[
    (&["check"], "purpose", purposes),
    (&["compare"], "purpose", purposes),
    (&["compare"], "like", runs),
    (&["diff"], "a", runs),
    (&["diff"], "b", runs),
    (&["diff"], "more_a", runs),
    (&["diff"], "more_b", runs),
    (&["export"], "format", table_forms),
    (&["export"], "runs", runs),
    (&["export"], "table", tables),
    (&["gallery"], "without", machine_parts),
    (&["import"], "tool", importers),
    (&["load"], "workload", workloads),
    (&["plan"], "drives", drives),
    (&["plan"], "study", studies),
    (&["plan"], "systems", systems),
    (&["published"], "name", published),
    (&["push"], "runs", runs),
    (&["report"], "format", reports),
    (&["report"], "run", runs),
    (&["resume"], "run", runs),
    (&["run"], "drives", drives),
    (&["run"], "study", studies),
    (&["run"], "systems", systems),
    (&["runs", "rm"], "runs", runs),
    (&["runs", "tag"], "run", runs),
    (&["show"], "name", shown),
    (&["show"], "what", things),
    (&["verdict"], "runs", runs),
];

/// Everything that can be typed, with the values that the shell offers.
fn command() -> Command {
    VALUES.iter().fold(args::whole(), |all, value| {
        let (path, argument, values) = *value;
        offered(all, path, argument, values)
    })
}

/// The command with the values of one argument, some commands below it.
fn offered(command: Command, path: &[&str], argument: &str, values: Values) -> Command {
    match path.split_first() {
        // In place: `mut_arg` would put the argument behind all others.
        None => command.mut_args(|it| match it.get_id() == argument {
            true => it.add(ArgValueCandidates::new(values)),
            false => it,
        }),
        Some((name, path)) => {
            command.mut_subcommand(name, |below| offered(below, path, argument, values))
        }
    }
}

/// Answers the shell, and says whether it was the shell that asked.
pub(super) fn answer() -> bool {
    // Nearly always the variable is not set, and a command line with all values costs time.
    if variable(ASKED).is_none() {
        return false;
    }
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(ASKED)
        .try_complete(std::env::args_os(), here.as_deref())
        .unwrap_or_else(|error| error.exit())
}

/// Prints what a shell reads to have completions.
///
/// # Errors
/// There is no such shell.
pub(super) fn script(shell: &str) -> Result<(), Failure> {
    let shells = Shells::builtins();
    let Some(writer) = shells.completer(shell) else {
        let names: Vec<&str> = shells.names().collect();
        return Err(unknown("shell with completions", shell, &names));
    };
    let mut text = Vec::new();
    // By its name and not by its path: the script stays right when the program is moved or updated.
    writer
        .write_registration(ASKED, "stackrace", "stackrace", "stackrace", &mut text)
        .map_err(|error| {
            Failure::internal(format!(
                "completions for {shell}: {error}",
                error = error.in_words()
            ))
        })?;
    print(&String::from_utf8_lossy(&text));
    Ok(())
}

/// One value with what it is.
fn candidate(name: &str, help: &str) -> CompletionCandidate {
    let help = (!help.is_empty()).then(|| help.to_owned().into());
    CompletionCandidate::new(name).help(help)
}

/// Names alone.
fn bare<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<CompletionCandidate> {
    names.into_iter().map(|name| candidate(name, "")).collect()
}

fn studies() -> Vec<CompletionCandidate> {
    // Files of the user's own are offered by the shell itself, where no name fits.
    bare(study::SHIPPED.iter().map(|(name, _)| *name))
}

fn drives() -> Vec<CompletionCandidate> {
    // Files of cards are offered by the shell itself, where no name fits.
    let cards = Card::all_shipped();
    cards
        .map(|card| candidate(card.model(), card.name()))
        .collect()
}

fn systems() -> Vec<CompletionCandidate> {
    let made = system::ALL.iter().map(|system| system.name.to_owned());
    let all: Vec<String> = made.chain(images::added()).collect();
    bare(all.iter().map(String::as_str))
}

fn machine_parts() -> Vec<CompletionCandidate> {
    bare(MachinePart::ALL.map(MachinePart::word))
}

fn purposes() -> Vec<CompletionCandidate> {
    let all = purpose::ALL.iter();
    all.map(|one| candidate(one.name, one.summary)).collect()
}

fn runs() -> Vec<CompletionCandidate> {
    let mut all = bare(["last"]);
    let named = variable("STACKRACE_STORE").map(Into::into);
    // A file that is refused by commands is no reason for an error on a TAB.
    let own = || Defaults::read().ok()?.store();
    let Some(dir) = named.or_else(own).or_else(default_store) else {
        return all;
    };
    let Ok(store) = Store::look(&dir) else {
        return all;
    };
    let ids = store.ids().unwrap_or_default();
    for id in ids.iter().rev().take(RUNS_MAX) {
        // The first line alone: a log can be long, and a TAB must not wait for it.
        let title = match store.first_line(id).map(|line| line.event) {
            Ok(Event::RunStarted(head)) => head.title,
            _ => String::new(),
        };
        all.extend(store.tags(id).iter().map(|tag| candidate(tag, &title)));
        all.push(candidate(id, &title));
    }
    // One tag can be on several runs.
    unique(all)
}

fn workloads() -> Vec<CompletionCandidate> {
    let all = programs::workloads().iter();
    all.map(|kind| candidate(kind.name, kind.summary)).collect()
}

fn importers() -> Vec<CompletionCandidate> {
    bare(tools::importers().iter().map(|importer| importer.name))
}

fn tables() -> Vec<CompletionCandidate> {
    let all = export::ALL.iter();
    all.map(|table| candidate(table.name, table.summary))
        .chain([candidate("all", "every table, in a directory")])
        .collect()
}

fn table_forms() -> Vec<CompletionCandidate> {
    bare(TableForm::ALL.map(TableForm::name))
}

fn reports() -> Vec<CompletionCandidate> {
    let all = report::ALL.iter();
    all.map(|form| candidate(form.name, form.summary)).collect()
}

fn published() -> Vec<CompletionCandidate> {
    bare(stackrace_judge::published::ALL.iter().map(|card| card.name))
}

fn things() -> Vec<CompletionCandidate> {
    let all = super::show::THINGS.into_iter();
    all.map(|(word, is)| candidate(word, is)).collect()
}

/// Names that `show` shows in full: which list is meant is not known here, so all of them are offered.
fn shown() -> Vec<CompletionCandidate> {
    let layers = stack::ALL.iter();
    let layers = layers.map(|kind| candidate(kind.name, kind.summary));
    let all = [workloads(), purposes(), studies(), drives()];
    let all = all.into_iter().flatten();
    // One word can be a workload and a purpose.
    unique(all.chain(layers))
}

/// Each value once, at its first place.
fn unique(all: impl IntoIterator<Item = CompletionCandidate>) -> Vec<CompletionCandidate> {
    let mut known = BTreeSet::new();
    let new = |one: &CompletionCandidate| known.insert(one.get_value().to_owned());
    all.into_iter().filter(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_with_values_is_there() {
        let all = command();
        all.clone().debug_assert();
        for (path, argument, _) in VALUES {
            let command = path.iter().fold(&all, |command, name| {
                command.find_subcommand(name).expect(name)
            });
            let mut arguments = command.get_arguments();
            let found = arguments.find(|it| it.get_id() == argument);
            let offers = found.and_then(|it| it.get::<ArgValueCandidates>());
            assert!(offers.is_some(), "{path:?} {argument}");
        }
    }

    #[test]
    fn no_list_of_values_is_empty_and_none_offers_a_value_twice() {
        for (path, argument, values) in VALUES {
            let mut names: Vec<_> = values()
                .iter()
                .map(|value| value.get_value().to_owned())
                .collect();
            assert!(!names.is_empty(), "{path:?} {argument}");
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all, "{path:?} {argument}");
        }
    }
}
