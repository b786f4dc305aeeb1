//! Work that leaves nothing behind, with a journal of its own for as long as it takes.

use std::path::PathBuf;

use super::context::{Context, entropy};
use crate::failure::Failure;
use crate::host::local::LocalHost;
use crate::journal::Journal;
use crate::stack;

/// Where in the store the journals of such work are while it goes on.
pub(super) const DIRECTORY: &str = "probes";

/// Does work that leaves nothing behind. Everything it creates has to be in the journal first: that
/// is undone before this returns, and found by `stackrace clean` if this process dies. The work is
/// given the journal and an id of its own.
///
/// # Errors
/// Those of the work; what could not be undone.
pub(crate) fn work<T>(
    context: &Context,
    host: &LocalHost,
    work: impl FnOnce(&Journal, &str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let id = format!("{:016x}", entropy());
    host.belong_to(&id);
    let dir = dir(context, &id)?;
    std::fs::create_dir_all(&dir).map_err(|error| {
        Failure::refused(format!("cannot make {}: {error}", dir.display()))
            .next("name another place for results: --store DIR")
    })?;
    let journal = Journal::create(&dir.join("journal.jsonl"))
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    journal
        .draw(&id)
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    let result = work(&journal, &id);
    // Also after a failure: the work may have created something before it.
    let undone = stack::undo_all(host, &journal)
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    if let Some((what, why)) = undone.failed.first() {
        return Err(Failure::unable(format!("{what}: {why}")).next("stackrace clean"));
    }
    drop(journal);
    // Only now: as long as something stands, the journal must be where `clean` finds it.
    std::fs::remove_dir_all(&dir)
        .map_err(|error| Failure::internal(format!("cannot remove {}: {error}", dir.display())))?;
    result
}

/// The directory of such work, by its id.
pub(crate) fn dir(context: &Context, id: &str) -> Result<PathBuf, Failure> {
    Ok(context.store_dir()?.join(DIRECTORY).join(id))
}

/// The directories of all such work in the store, under way or dead.
pub(crate) fn dirs(context: &Context) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(context.store_dir()?.join(DIRECTORY));
    Ok(entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect())
}
