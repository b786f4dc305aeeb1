//! What dead runs left behind on this machine: found by their journals, and removed.

use stackrace_base::unit::ShownPath;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::prepare::context::Context;
use crate::prepare::permission;
use crate::prepare::temporary;
use crate::prepare::undoing;
use stackrace_base::event::again;
use stackrace_base::failure::Failure;
use stackrace_base::owned::{OwnDir, OwnError};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_layers::stack;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{self, Host};
use stackrace_machine::journal::{self, GROUND, Journal, JournalError, Undo};

/// Fate of one thing that a dead run left.
pub enum Cleaned {
    /// The thing is there, and would be undone.
    Listed(String),
    /// The thing was there, and is removed.
    Undone(String),
    /// The thing could not be undone: what, and why.
    Failed(String, String),
    /// A journal was left alone: it belongs to a run that goes on.
    Live(String),
    /// A journal was left alone: it cannot be read, or asks for what its run did not create. What is
    /// wrong with which file, and what to do.
    Refused(String, String),
    /// A journal was left alone, as a command of its run still runs.
    Busy(PathBuf, String),
}

impl std::fmt::Display for Cleaned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listed(what) => write!(f, "would undo: {what}"),
            Self::Undone(what) => write!(f, "undone: {what}"),
            Self::Failed(what, why) => write!(f, "not undone: {what}: {why}"),
            Self::Live(why) => write!(f, "left alone: {why}"),
            Self::Refused(why, next) if next.is_empty() => write!(
                f,
                "left alone: {why}\n  next: mend that, then: {}",
                again(&["clean"])
            ),
            Self::Refused(why, next) => write!(f, "left alone: {why}\n  next: {next}"),
            Self::Busy(path, command) => {
                let path = path.shown();
                write!(
                    f,
                    "left alone: {path}: a command of its run is still running: {command}\n  next: wait until it has ended, or end it, then: {}",
                    again(&["clean"])
                )
            }
        }
    }
}

impl Cleaned {
    /// Returns true if something is left, also of a run that goes on: its directory is still needed.
    pub fn is_left_alone(&self) -> bool {
        self.is_left() || matches!(self, Self::Live(_))
    }

    /// Returns true if something is left that should not be.
    pub fn is_left(&self) -> bool {
        matches!(self, Self::Failed(..) | Self::Busy(..) | Self::Refused(..))
    }
}

/// Task of `clean` and its limits.
#[derive(Debug, Clone, Copy)]
pub struct Cleaning {
    /// True to only say what would be undone.
    pub list: bool,
    /// True if the user permits the commands with which studies take down what they set up.
    pub allow_commands: bool,
}

/// Undoes everything that dead runs left; or lists it, and changes nothing.
///
/// # Errors
/// The store cannot be read, or a journal cannot be written.
pub fn clean(context: &Context, cleaning: Cleaning) -> Result<Vec<Cleaned>, Failure> {
    let mut cleaned = Vec::new();
    for found in journals(context)? {
        match found {
            Ok(path) if cleaning.list => listed(context, &path, &mut cleaned),
            Ok(path) => {
                let allow = cleaning.allow_commands;
                undone(context, path, allow, &mut cleaned);
            }
            Err(refused) => cleaned.push(refused),
        }
    }
    Ok(cleaned)
}

/// Lists what would be undone of a journal.
fn listed(context: &Context, path: &Path, cleaned: &mut Vec<Cleaned>) {
    let looked = Journal::look(path).and_then(|journal| stack::check_all(&journal));
    let undos = match looked {
        Ok(undos) => undos,
        Err(error) => return cleaned.push(left_alone(path, &error)),
    };
    let digests = || undos.iter().filter_map(stack::command_digest);
    let commands = match digests().next() {
        Some(_) => undoing_commands(context, path),
        None => Vec::new(),
    };
    for undo in &undos {
        let mut text = undo.to_string();
        if let Some(digest) = stack::command_digest(undo) {
            // Before it is permitted, it should be read.
            let mut known = commands.iter().map(|(line, _)| line);
            let with = match known.find(|line| host::digest(line) == digest) {
                Some(line) => format!("`{line}`"),
                None => "a command of the study that its record does not hold".to_owned(),
            };
            text += &format!(" with {with}, if --allow-commands is given");
        }
        cleaned.push(Cleaned::Listed(text));
    }
}

/// The commands with which the study of a journal's run takes down what it set up, from the run's record.
fn undoing_commands(context: &Context, journal: &Path) -> Vec<(String, u32)> {
    let run = journal.parent().and_then(Path::file_name);
    let record = || {
        let store = context.look_into_store().ok()?;
        store.read(run?.to_str()?).ok()
    };
    record().map_or(Vec::new(), |record| permission::undoing_commands(&record))
}

/// Undoes what a journal names.
fn undone(context: &Context, path: PathBuf, allow: bool, cleaned: &mut Vec<Cleaned>) {
    // No run goes on in whose record these commands could be. One for each journal: no run may use the
    // commands of another's study.
    let host = &Arc::new(context.host(Arc::new(|_| ())));
    let live = |opened: &Result<Journal, _>| matches!(opened, Err(JournalError::Live { .. }));
    let journal = match patiently(|| Journal::open(&path), live) {
        Ok(journal) => Arc::new(journal),
        Err(error) => return cleaned.push(left_alone(&path, &error)),
    };
    // A command that still runs could make anew what is undone here.
    if let Err(command) = outlive(host, &path, &journal) {
        return cleaned.push(Cleaned::Busy(path, command));
    }
    if journal
        .pending()
        .iter()
        .any(|entry| stack::command_digest(&entry.undo).is_some())
        && let Some(commands) = host.user_commands()
    {
        commands.know(undoing_commands(context, &path), allow);
    }
    let report = match undoing::undo_all(host, &journal) {
        Ok(report) => report,
        Err(error) => return cleaned.push(left_alone(&path, &error)),
    };
    let undone = report.undone.iter();
    cleaned.extend(undone.map(|undone| Cleaned::Undone(undone.to_string())));
    let failed = report.failed.into_iter();
    cleaned.extend(failed.map(|(what, why)| Cleaned::Failed(what.to_string(), why)));
}

/// Says why nothing of a journal is undone.
pub fn left_alone(path: &Path, error: &JournalError) -> Cleaned {
    let why = match error {
        JournalError::Live { .. } => return Cleaned::Live(error.to_string()),
        JournalError::Foreign(_) => format!("{}: {error}", path.shown()),
        _ => error.to_string(),
    };
    Cleaned::Refused(why, error.next())
}

/// Number of attempts to get a lock; `LOCK_PAUSE` lies between two of them.
const LOCK_TRIES: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Tries for a lock again for a moment: a command that a killed run was just starting holds a copy
/// of its files until the command's program is loaded.
pub fn patiently<T>(lock: impl Fn() -> T, held: impl Fn(&T) -> bool) -> T {
    for _ in 1..LOCK_TRIES {
        let tried = lock();
        if !held(&tried) {
            return tried;
        }
        SystemClock.sleep(LOCK_PAUSE);
    }
    lock()
}

/// Waits for the commands of the dead run that wrote a journal, here and on its peers.
///
/// # Errors
/// The command that does not end.
pub fn outlive(host: &LocalHost, path: &Path, journal: &Journal) -> Result<(), String> {
    let wait = |host: &dyn Host, directory: Option<&Path>| {
        let run = directory.and_then(Path::file_name).and_then(OsStr::to_str);
        // A machine that does not answer fails again when something is to be undone there.
        let command = run.and_then(|run| host.outlive(run).ok().flatten());
        command.map_or(Ok(()), Err)
    };
    wait(host, path.parent())?;
    // The entry that removes a peer's directory names it, and the name is the id by which commands
    // are found there.
    for entry in journal.pending() {
        if let (
            GROUND,
            Undo::OnPeer {
                host: name, undo, ..
            },
        ) = (&*entry.group, &entry.undo)
            && let Undo::RemoveTree(directory) = &**undo
            && let Ok(peer) = journal::named(host, name)
        {
            wait(peer, Some(directory))?;
        }
    }
    Ok(())
}

/// Returns true if a dead run left something on one of these machines.
///
/// # Errors
/// The store cannot be read.
pub fn is_left_on(context: &Context, peers: &[&str]) -> Result<bool, Failure> {
    let of_peer = |undo: &Undo| match undo {
        Undo::OnPeer { host, .. } => peers.contains(&&**host),
        _ => false,
    };
    let dead = journals(context)?;
    let mut dead = dead
        .iter()
        .flatten()
        // A journal that cannot be read is told of by `clean`.
        .filter_map(|path| Journal::look(path).ok());
    Ok(dead.any(|journal| journal.pending().iter().any(|entry| of_peer(&entry.undo))))
}

/// Every journal in the store: those of runs and those of work that leaves nothing. In the place of
/// what is not the user's own: why it is left alone.
fn journals(context: &Context) -> Result<Vec<Result<PathBuf, Cleaned>>, Failure> {
    let refused = |error: &OwnError| Cleaned::Refused(error.to_string(), error.next());
    let dir = context.store_dir()?;
    let store = match OwnDir::open(&dir).and_then(OwnDir::obeyed) {
        // No run was ever kept here.
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        store => store.map_err(|error| Failure::refused(error.to_string()).next(error.next()))?,
    };
    let mut journals = Vec::new();
    for kind in ["runs", temporary::DIRECTORY] {
        let all = match store.dir(kind).and_then(OwnDir::obeyed) {
            Err(error) if error.is_missing() => continue,
            Err(error) => {
                journals.push(Err(refused(&error)));
                continue;
            }
            Ok(all) => all,
        };
        let names = all
            .names()
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
        for name in names {
            match all.dir(&name).and_then(OwnDir::obeyed) {
                Ok(one) if one.has(journal::FILE) => {
                    journals.push(Ok(one.path().join(journal::FILE)));
                }
                // A file beside the runs, or a run that goes just now.
                Ok(_) | Err(OwnError::System { .. }) => {}
                Err(error) => journals.push(Err(refused(&error))),
            }
        }
    }
    Ok(journals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_alone_has_a_command_to_do_next() {
        let told = Cleaned::Refused("Read-only file system".to_owned(), String::new()).to_string();
        assert!(
            told.ends_with("next: mend that, then: stackrace clean"),
            "{told}"
        );
        let busy = Cleaned::Busy("/j".into(), "sleep 9 (process 4711)".to_owned()).to_string();
        assert!(
            busy.contains("still running: sleep 9 (process 4711)\n  next: wait until it has ended"),
            "{busy}"
        );
    }
}
