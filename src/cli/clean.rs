//! `stackrace clean`: what dead runs left behind is found by their journals and removed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Setting;
use super::args::Clean;
use super::failure::{self, Failure};
use crate::host::Host;
use crate::host::local::LocalHost;
use crate::journal::{self, GROUND, Journal, JournalError, Undo};
use crate::stack;
use crate::time::{Clock, SystemClock};

pub(super) fn exec(setting: &Setting, verb: Clean) -> Result<u8, Failure> {
    if !verb.there.on.is_empty() || !verb.there.peers.is_empty() {
        return super::on::clean(setting, &verb);
    }
    let host = setting.host(Arc::new(|_| ()));
    let mut text = String::new();
    let mut left = 0;
    for path in journals(setting)? {
        let live = |opened: &Result<Journal, _>| matches!(opened, Err(JournalError::Live { .. }));
        let journal = match patiently(|| Journal::open(&path), live) {
            Ok(journal) => journal,
            Err(error) => {
                text.push_str(&format!("left alone: {error}\n"));
                continue;
            }
        };
        if verb.list {
            for entry in journal.pending() {
                text.push_str(&format!("would undo: {}\n", entry.undo));
            }
            continue;
        }
        if let Err(command) = outlive(&host, &path, &journal) {
            left += 1;
            text.push_str(&format!(
                "left alone: {} as `{command}` is still running\n",
                path.display()
            ));
            continue;
        }
        let report = stack::undo_all(&host, &journal)
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
        for undone in &report.undone {
            text.push_str(&format!("undone: {undone}\n"));
        }
        for (what, why) in &report.failed {
            left += 1;
            text.push_str(&format!("not undone: {what}: {why}\n"));
        }
    }
    if text.is_empty() {
        text.push_str(&format!("{NOTHING}\n"));
    }
    super::print(&text);
    Ok(if left > 0 { failure::CANNOT } else { 0 })
}

/// Said where there is nothing to be done.
pub(super) const NOTHING: &str = "nothing to clean";

/// How often, and with what pause, a lock is tried for.
const LOCK_TRIES: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Tries for a lock again for a moment: a command that a killed run was just starting holds a copy
/// of its files until the command's program is loaded.
pub(super) fn patiently<T>(lock: impl Fn() -> T, held: impl Fn(&T) -> bool) -> T {
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
pub(super) fn outlive(host: &LocalHost, path: &Path, journal: &Journal) -> Result<(), String> {
    let wait = |host: &dyn Host, directory: Option<&Path>| {
        let run = directory.and_then(Path::file_name).and_then(OsStr::to_str);
        // What cannot be looked at cannot be undone either, which is told then.
        let command = run.and_then(|run| host.outlive(run).ok().flatten());
        command.map_or(Ok(()), Err)
    };
    wait(host, path.parent())?;
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

/// Does work that leaves nothing, with a journal of its own, in which everything created has to be
/// said first: it is undone before this returns, and found by `stackrace clean` if it never does.
/// The work is given the journal and an id nobody else has.
///
/// # Errors
/// Those of the work; what could not be undone.
pub(super) fn passing<T>(
    setting: &Setting,
    host: &LocalHost,
    work: impl FnOnce(&Journal, &str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let id = format!("{:016x}", super::execute::entropy());
    host.belong_to(&id);
    let dir = passing_dir(setting, &id)?;
    std::fs::create_dir_all(&dir).map_err(|error| {
        Failure::refused(format!("cannot make {}: {error}", dir.display()))
            .next("name another place for results: --store DIR")
    })?;
    let journal = Journal::create(&dir.join("journal.jsonl"))
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    let result = work(&journal, &id);
    let undone = stack::undo_all(host, &journal)
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    if let Some((what, why)) = undone.failed.first() {
        return Err(Failure::new(failure::CANNOT, format!("{what}: {why}")).next("stackrace clean"));
    }
    drop(journal);
    // Nothing is left to undo: the journal has done its work.
    std::fs::remove_dir_all(&dir)
        .map_err(|error| Failure::internal(format!("cannot remove {}: {error}", dir.display())))?;
    result
}

/// Where in the store the journals of work that leaves nothing are while it goes on.
const PASSING: &str = "probes";

/// The directory of work that leaves nothing, by its id.
pub(super) fn passing_dir(setting: &Setting, id: &str) -> Result<PathBuf, Failure> {
    Ok(setting.store()?.join(PASSING).join(id))
}

/// The directories in the store of work that leaves nothing, under way or dead.
pub(super) fn passing_dirs(setting: &Setting) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(setting.store()?.join(PASSING));
    Ok(entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect())
}

/// Whether something of a dead run is left on one of these machines.
pub(super) fn is_left_on(setting: &Setting, peers: &[&str]) -> Result<bool, Failure> {
    let of_peer = |undo: &Undo| match undo {
        Undo::OnPeer { host, .. } => peers.contains(&&**host),
        _ => false,
    };
    let dead = journals(setting)?;
    let mut dead = dead.iter().filter_map(|path| Journal::open(path).ok());
    Ok(dead.any(|journal| journal.pending().iter().any(|entry| of_peer(&entry.undo))))
}

/// Every journal in the store: those of runs and those of work that leaves nothing.
fn journals(setting: &Setting) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    let store = setting.store()?;
    for kind in ["runs", PASSING] {
        let Ok(entries) = std::fs::read_dir(store.join(kind)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(|error| {
                Failure::internal(format!(
                    "cannot list {}: {error}",
                    store.join(kind).display()
                ))
            })?;
            let journal = entry.path().join("journal.jsonl");
            if journal.is_file() {
                paths.push(journal);
            }
        }
    }
    paths.sort();
    Ok(paths)
}
