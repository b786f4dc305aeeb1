//! Marks in the directories that a run measures on a machine that has nothing but a shell, so that two
//! runs over shells notice each other: nothing of ours is there that could hold a lock.
//!
//! A mark is an empty directory. The journal names it before it is made, so that it goes with the run, and
//! `clean` removes that of a run that was killed.

use stackrace_base::event::shell;
use stackrace_base::unit::ShownPath;
use std::path::PathBuf;

use stackrace_base::failure::Failure;
use stackrace_machine::host::Host;
use stackrace_machine::journal::{Journal, Undo};

use stackrace_run::prepare::context::unjournalled;

/// Beginning of the names of marks; the id of the run's work follows.
const MARK: &str = ".stackrace-taken-";

/// The group of the journal's entries.
const GROUP: &str = "taken";

/// A sentence on each directory that bears another run's mark.
pub fn others(host: &dyn Host, directories: &[PathBuf]) -> Vec<String> {
    let marked = directories.iter().filter_map(|directory| {
        // One that is not there is refused elsewhere, with its reason.
        let names = host.list(directory).ok()?;
        let mut names = names.iter().map(|name| name.to_string_lossy());
        let mark = names.find(|name| name.starts_with(MARK))?;
        let path = directory.shown();
        // Where no mounts are shown, a mark that a mount has hidden stays behind.
        Some(format!(
            "another run of stackrace measures in {path}: each would slow down the other (where none does any more, remove its mark: {}, or {})",
            host.cleaned_by(),
            shell(&["rmdir".as_ref(), directory.join(&*mark).as_os_str()]),
        ))
    });
    marked.collect()
}

/// Leaves marks for others; `id` is that of the run's work there, which the journal knows.
///
/// # Errors
/// The journal cannot be written.
pub fn leave(
    host: &dyn Host,
    journal: &Journal,
    directories: &[PathBuf],
    id: &str,
) -> Result<(), Failure> {
    for directory in directories {
        // What cannot be used fails when its stack is set up, with its reason.
        let Ok(directory) = host.own_way_to(directory) else {
            continue;
        };
        let mark = directory.join(format!("{MARK}{id}"));
        let entry = journal
            .will(GROUP, Undo::RemoveDir(mark.clone()))
            .map_err(unjournalled)?;
        let kept = match host.create_dir(&mark) {
            Ok(()) => journal.made(host, entry),
            Err(_) => journal.done(entry),
        };
        kept.map_err(unjournalled)?;
    }
    Ok(())
}
