//! What stands on machines that have nothing but a shell: the journals are kept here, because nothing of
//! ours is there that could read one.
//!
//! They lie beside the runs and not among them: what they name exists on another machine, and undoing it
//! on this one would remove nothing and forget it.

use stackrace_base::unit::ShownPath;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use stackrace_base::failure::Failure;
use stackrace_base::owned::{OwnDir, OwnError};
use stackrace_layers::stack;
use stackrace_machine::host::{Host, HostError};
use stackrace_machine::journal::{self, GROUND, Journal, JournalError, Undo};
use stackrace_remote::agent::message::{Assignment, CleanAnswer};
use stackrace_remote::agent::shell::ShellHost;
use stackrace_run::prepare::clean::{Cleaned, left_alone, patiently};
use stackrace_run::prepare::context::{Context, entropy, unjournalled};
use stackrace_run::prepare::study_file;

/// Directory of the store in which they are.
const DIRECTORY: &str = "shells";

/// The file that says of which machine and which study a journal is.
const ABOUT: &str = "about.json";

/// Owner of a journal.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    /// The machine, as the user named it.
    host: String,
    /// What tells the machine from others that are reached by the same name; `None` in a journal of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Name of the file that the study was read from.
    name: String,
    /// The study: its commands may be needed to take down what it set up.
    study: String,
}

fn unkept(error: OwnError) -> Failure {
    Failure::refused(error.to_string()).next(error.next())
}

fn unable(error: HostError) -> Failure {
    Failure::unable(error.to_string()).next(error.next())
}

/// Keeps a journal for work on a machine, and a directory there; both are gone when everything that
/// the work made is. The work is given the journal, an id of its own, and the directory.
///
/// # Errors
/// Those of the work; what could not be undone.
pub fn work<T>(
    context: &Context,
    host: &ShellHost,
    assignment: &Assignment,
    work: impl FnOnce(&Journal, &str, &Path) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let id = format!("{:016x}", entropy());
    let all = OwnDir::open_or_make(&context.store_dir()?)
        .and_then(|store| store.dir_or_make(DIRECTORY))
        .map_err(unkept)?;
    let dir = all.make_dir(&id).map_err(unkept)?;
    let about = About {
        host: host.to().to_string(),
        machine: Some(host.machine().to_owned()),
        name: assignment.name.clone(),
        study: assignment.text.clone(),
    };
    let about = serde_json::to_vec(&about)
        .map_err(|error| Failure::internal(format!("{ABOUT} cannot be written: {error}")))?;
    // Durable before the journal, which says nothing of the machine that it is of.
    dir.replace(ABOUT, &about).map_err(unkept)?;
    let journal = Journal::create(&dir.path().join(journal::FILE)).map_err(unjournalled)?;
    let result = prepared(host, &journal, &id).and_then(|there| work(&journal, &id, &there));
    // Also after a failure, and where the line broke: it may be back.
    let undone = stack::undo_all(host, &journal).map_err(unjournalled)?;
    if let Some((what, why)) = undone.failed.first() {
        let text = format!("on {}: not undone: {what}: {why}", host.to());
        return result.and(Err(Failure::unable(text).next(host.cleaned_by())));
    }
    drop(journal);
    all.remove_tree(&id).map_err(unkept)?;
    result
}

/// The directory of this work there, in the journal before it is made.
fn prepared(host: &ShellHost, journal: &Journal, id: &str) -> Result<PathBuf, Failure> {
    let base = host.temporary().and_then(|base| host.own_way_to(&base));
    let there = base.map_err(unable)?.join(format!(".stackrace-{id}"));
    // Ids of things made there begin with it, so `clean` knows them as ours.
    journal.draw(id).map_err(unjournalled)?;
    let entry = journal.will(GROUND, Undo::RemoveTree(there.clone()));
    let entry = entry.map_err(unjournalled)?;
    host.create_dir(&there).map_err(unable)?;
    journal.made(host, entry).map_err(unjournalled)?;
    host.works_in(&there);
    Ok(there)
}

/// Undoes what dead runs left on a machine, or lists it; `allow` permits the commands of studies.
///
/// # Errors
/// The store cannot be read, or written.
pub fn clean(
    context: &Context,
    host: &ShellHost,
    list: bool,
    allow: bool,
) -> Result<CleanAnswer, Failure> {
    let mut answer = CleanAnswer::default();
    for ShellJournal { all, id, about } in kept(context)? {
        let path = all.path().join(&id).join(journal::FILE);
        let Some(about) = about else {
            let cleaned = of_nobody(&path);
            answer.left |= !cleaned.is_empty();
            answer.lines.extend(cleaned.iter().map(ToString::to_string));
            continue;
        };
        // Undone here, what a journal of another machine names would be forgotten and stay.
        if about.host != host.to().to_string() {
            continue;
        }
        let cleaned = match list {
            true => listed(&path),
            // One port or address may lead to several machines, one after the other.
            false
                if about
                    .machine
                    .as_deref()
                    .is_some_and(|one| one != host.machine()) =>
            {
                vec![of_another(&about)]
            }
            false => undone(host, &path, &about, allow),
        };
        answer.left |= cleaned.iter().any(Cleaned::is_left_alone);
        let gone = !list && !cleaned.iter().any(Cleaned::is_left_alone);
        answer.lines.extend(cleaned.iter().map(ToString::to_string));
        // With the directory goes the journal: it stays as long as one thing does.
        if gone {
            all.remove_tree(&id).map_err(unkept)?;
        }
    }
    Ok(answer)
}

/// The machines on which something was left, each once.
///
/// # Errors
/// The store cannot be read.
pub fn hosts(context: &Context) -> Result<Vec<String>, Failure> {
    let mut hosts: Vec<String> = kept(context)?
        .into_iter()
        .filter_map(|kept| Some(kept.about?.host))
        .collect();
    hosts.sort();
    hosts.dedup();
    Ok(hosts)
}

/// What is said of a journal whose machine is not the one that answers to its name.
fn of_another(about: &About) -> Cleaned {
    let why = format!(
        "{} is another machine now than the one that something stands on ({})",
        about.host,
        about.machine.as_deref().unwrap_or_default()
    );
    let next = "name that one: --ssh with its port, or with its own -F FILE".to_owned();
    Cleaned::Refused(why, next)
}

/// What is said of a journal of which the machine is not known: nothing, if all that it names is gone.
fn of_nobody(path: &Path) -> Vec<Cleaned> {
    // One that was killed before it said what it is has made nothing yet.
    let listed = listed(path);
    // One that goes on removes what it made itself.
    let lives = |one: &Cleaned| matches!(one, Cleaned::Live(_));
    if listed.iter().all(lives) {
        return listed;
    }
    let each: Vec<String> = listed.iter().map(ToString::to_string).collect();
    let why = format!(
        "{}: it is not known on which machine this stands: {}",
        path.shown(),
        each.join("; ")
    );
    let next = "remove it there by hand, then the directory with this journal here".to_owned();
    vec![Cleaned::Refused(why, next)]
}

/// A journal that is kept.
struct ShellJournal {
    /// The directory of all of them.
    all: Arc<OwnDir>,
    id: String,
    /// What it belongs to, where that can be read.
    about: Option<About>,
}

/// Returns all that are kept.
fn kept(context: &Context) -> Result<Vec<ShellJournal>, Failure> {
    let all = OwnDir::open(&context.store_dir()?)
        .and_then(OwnDir::obeyed)
        .and_then(|store| store.dir(DIRECTORY))
        .and_then(OwnDir::obeyed);
    let all = match all {
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        all => Arc::new(all.map_err(unkept)?),
    };
    let mut kept = Vec::new();
    for name in all.names().map_err(unkept)? {
        let id = name.to_string_lossy().into_owned();
        let bytes = all
            .dir(&name)
            .and_then(OwnDir::obeyed)
            .and_then(|dir| dir.read_all(ABOUT));
        let about = bytes
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let all = Arc::clone(&all);
        kept.push(ShellJournal { all, id, about });
    }
    Ok(kept)
}

fn listed(path: &Path) -> Vec<Cleaned> {
    let looked = Journal::look(path).and_then(|journal| stack::check_all(&journal));
    match looked {
        Ok(undos) => undos
            .iter()
            .map(|undo| Cleaned::Listed(undo.to_string()))
            .collect(),
        Err(error) if error.is_missing() => Vec::new(),
        Err(error) => vec![left_alone(path, &error)],
    }
}

fn undone(host: &ShellHost, path: &Path, about: &About, allow: bool) -> Vec<Cleaned> {
    let live = |opened: &Result<Journal, _>| matches!(opened, Err(JournalError::Live { .. }));
    let journal = match patiently(|| Journal::open(path), live) {
        Ok(journal) => journal,
        Err(error) if error.is_missing() => return Vec::new(),
        Err(error) => return vec![left_alone(path, &error)],
    };
    let mut entries = journal.pending().into_iter();
    let ground = entries.find_map(|entry| match (&*entry.group, entry.undo) {
        (GROUND, Undo::RemoveTree(there)) => Some(there),
        _ => None,
    });
    if let Some(there) = ground {
        host.works_in(&there);
        // A program that still runs could make anew what is undone here.
        match host.outlive("") {
            Ok(None) => {}
            Ok(Some(left)) => return vec![Cleaned::Busy(there, left)],
            Err(error) => {
                return vec![Cleaned::Failed(
                    there.shown().to_string(),
                    error.to_string(),
                )];
            }
        }
    }
    if let Some(commands) = host.user_commands() {
        let study = study_file::parse(&about.name, about.study.as_bytes());
        commands.know(
            study.map_or(Vec::new(), |study| study.undoing_commands()),
            allow,
        );
    }
    let report = match stack::undo_all(host, &journal) {
        Ok(report) => report,
        Err(error) => return vec![left_alone(path, &error)],
    };
    let undone = report
        .undone
        .iter()
        .map(|undone| Cleaned::Undone(undone.to_string()));
    let failed = report.failed.iter();
    let failed = failed.map(|(what, why)| Cleaned::Failed(what.to_string(), why.clone()));
    undone.chain(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a power cut leaves it that came before the file with the machine's name was written.
    #[test]
    fn a_journal_whose_machine_is_not_known_is_told_while_it_names_something() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(journal::FILE);
        drop(Journal::create(&path).unwrap());
        assert!(of_nobody(&path).is_empty());
        let journal = Journal::open(&path).unwrap();
        journal.draw("0123456789abcdef").unwrap();
        let there = PathBuf::from("/tmp/.stackrace-0123456789abcdef");
        let entry = journal.will(GROUND, Undo::RemoveTree(there)).unwrap();
        drop(journal);
        let said = of_nobody(&path);
        assert!(said[0].is_left_alone());
        assert!(
            said[0].to_string().contains("on which machine"),
            "{}",
            said[0]
        );
        Journal::open(&path).unwrap().done(entry).unwrap();
        assert!(of_nobody(&path).is_empty());
    }
}
