//! Work that leaves nothing behind, with a journal of its own for as long as it takes.

use std::path::{Path, PathBuf};

use crate::prepare::context::{Context, entropy, unjournalled};
use stackrace_base::event;
use stackrace_base::failure::{Failure, FailureKind, INTERRUPTED};
use stackrace_base::owned::held::{HeldDir, with_real_names};
use stackrace_base::owned::{OwnDir, OwnError};
use stackrace_layers::stack;
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_machine::journal::{self, Journal, Undo};

/// Directory of the store for the journals of such work while it goes on.
pub const DIRECTORY: &str = "probes";

/// The end of a command that was interrupted before its run began.
pub fn interrupted(context: &Context) -> Failure {
    let mut words = vec!["stackrace".to_owned()];
    words.extend(context.command.iter().skip(1).cloned());
    let text = "interrupted before the first round: nothing was measured, and nothing is left";
    Failure::new(FailureKind::Remote(INTERRUPTED), text)
        .next(format!("to start again: {}", event::shell(&words)))
}

/// Does work that leaves nothing behind. Everything it creates has to be in the journal first: that
/// is undone before this returns, and found by `stackrace clean` if this process dies. The work is
/// given the journal and an id of its own.
///
/// # Errors
/// Those of the work; what could not be undone.
pub fn work<T>(
    context: &Context,
    host: &LocalHost,
    work: impl FnOnce(&Journal, &str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let id = format!("{:016x}", entropy());
    // Commands bear this id, by which `clean` finds those that outlive this process.
    host.belong_to(&id);
    let works = OwnDir::open_or_make(&context.store_dir()?)
        .and_then(|store| store.dir_or_make(DIRECTORY))
        .map_err(not_made)?;
    let dir = works.make_dir(&id).map_err(not_made)?;
    let journal = Journal::create(&dir.path().join(journal::FILE)).map_err(unjournalled)?;
    journal.draw(&id).map_err(unjournalled)?;
    let result = work(&journal, &id);
    // Also after a failure: the work may have created something before it.
    let undone = stack::undo_all(host, &journal).map_err(unjournalled)?;
    if let Some((what, why)) = undone.failed.first() {
        return Err(Failure::unable(format!("{what}: {why}")).next(event::again(&["clean"])));
    }
    drop(journal);
    // Only now: as long as something stands, the journal must be where `clean` finds it.
    works
        .remove_tree(&id)
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    result
}

/// A private directory in one of the user's, named `.stackrace-KIND-ID`: in the journal before it is
/// made, and held. `name` is what the user called the directory.
///
/// # Errors
/// Nothing can be made there.
pub fn private(
    host: &LocalHost,
    journal: &Journal,
    directory: &Path,
    kind: &str,
    id: &str,
    name: &str,
) -> Result<PrivateDir, Failure> {
    let refused = |error: &dyn std::fmt::Display| refused(name, error);
    // A journal names whole paths: it may be undone from anywhere.
    let directory = host.own_way_to(directory);
    let directory = directory.map_err(|error| refused(&error))?;
    if let Some(error) = host.closed(&directory) {
        return Err(refused(&error));
    }
    let private = directory.join(format!(".stackrace-{kind}-{id}"));
    let entry = journal.will(name, Undo::RemoveTree(private.clone()));
    if let Err(error) = &entry {
        return Err(Failure::internal(error.to_string()).next(error.next()));
    }
    host.create_dir(&private).map_err(|error| refused(&error))?;
    let made = entry.and_then(|id| journal.made(host, id));
    made.map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    let held = HeldDir::open(&private).map_err(|error| refused(&error))?;
    let path = held.path().join("work");
    host.create_dir(&path).map_err(|error| refused(&error))?;
    Ok(PrivateDir { path, _held: held })
}

/// The failure of a directory that cannot be worked in; `name` is what the user called it.
pub fn refused(name: &str, error: &dyn std::fmt::Display) -> Failure {
    let text = format!("{name} cannot be used: {error}");
    Failure::refused(with_real_names(&text))
        .next("choose a directory you may write to, with some free space")
}

/// A directory to work in that stays the same whatever happens to its name.
pub struct PrivateDir {
    /// Path in the directory that is held: that one's own path is a link, which workloads do not follow.
    path: PathBuf,
    _held: HeldDir,
}

impl PrivateDir {
    /// Its path, good as long as this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The failure of a directory that cannot be made in the store.
fn not_made(error: OwnError) -> Failure {
    let next = match error.next() {
        next if next.is_empty() => "name another place for results: --store DIR".to_owned(),
        next => next,
    };
    Failure::refused(error.to_string()).next(next)
}

/// The directory of such work, by its id.
pub fn dir(context: &Context, id: &str) -> Result<PathBuf, Failure> {
    Ok(context.store_dir()?.join(DIRECTORY).join(id))
}

/// The directories of all such work in the store, under way or dead.
pub fn dirs(context: &Context) -> Result<Vec<PathBuf>, Failure> {
    let works = OwnDir::open(&context.store_dir()?).and_then(|store| store.dir(DIRECTORY));
    let works = match works {
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        works => works.map_err(not_made)?,
    };
    let names = works.names().map_err(not_made)?.into_iter();
    Ok(names.map(|name| works.path().join(name)).collect())
}
