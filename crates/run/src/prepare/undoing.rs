//! What a journal names, undone without waiting for ever: each group of entries on a thread of its own, which is
//! left behind if the storage below it does not answer. The other groups go on.

use stackrace_base::event::again;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use stackrace_base::time::{Clock, SystemClock};
use stackrace_engine::waits::{StorageWait, storage_waits, this_thread};
use stackrace_layers::stack;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::journal::{Entry, EntryId, GROUND, Journal, JournalError, UndoReport};

/// Time between two looks at a thread that undoes something.
const LOOK: Duration = Duration::from_millis(500);
/// Time after which such a call is given up, ns. The entry stays in the journal, so that nothing is lost.
const GIVEN_UP_NS: u64 = 10_000_000_000;

/// Undoes everything that is pending in a journal.
///
/// # Errors
/// As [`stack::undo_all`]. What does not answer is in the report, among what was not undone.
pub(super) fn undo_all(
    host: &Arc<LocalHost>,
    journal: &Arc<Journal>,
) -> Result<UndoReport, JournalError> {
    // All of it before the first entry is undone: a file that was edited is not obeyed in part.
    stack::check_all(journal)?;
    let mut report = UndoReport::default();
    for entries in in_groups(journal.pending()) {
        let ids = entries.iter().map(|entry| entry.id).collect();
        let why = match entries.iter().all(|entry| entry.group == GROUND) {
            true if !report.failed.is_empty() => "what stands on it could not be undone".to_owned(),
            _ => match undo(host, journal, ids) {
                Ok(done) => {
                    let done = done?;
                    report.undone.extend(done.undone);
                    report.failed.extend(done.failed);
                    continue;
                }
                Err(wait) => {
                    format!(
                        "{wait} does not return; once that storage answers: {}",
                        again(&["clean"])
                    )
                }
            },
        };
        let left = entries.into_iter().map(|entry| (entry.undo, why.clone()));
        report.failed.extend(left);
    }
    Ok(report)
}

/// Entries by their groups, in the order of their first ones. What all groups stand on comes last.
fn in_groups(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let (ground, others): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.group == GROUND);
    let mut groups: Vec<Vec<Entry>> = Vec::new();
    for entry in others {
        match groups
            .iter_mut()
            .find(|group| group[0].group == entry.group)
        {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups.extend((!ground.is_empty()).then_some(ground));
    groups
}

/// Undoes entries on a thread; the error is the call that does not return.
fn undo(
    host: &Arc<LocalHost>,
    journal: &Arc<Journal>,
    ids: Vec<EntryId>,
) -> Result<Result<UndoReport, JournalError>, StorageWait> {
    let (send, done) = mpsc::channel();
    let (send_number, number) = mpsc::channel();
    let (its_host, its_journal, its_ids) = (Arc::clone(host), Arc::clone(journal), ids.clone());
    let started = std::thread::Builder::new().spawn(move || {
        // One that was given up has no listener any more.
        let _ = send_number.send(this_thread());
        let _ = send.send(stack::undo_entries(&*its_host, &its_journal, &its_ids));
    });
    let here = || Ok(stack::undo_entries(&**host, journal, &ids));
    if started.is_err() {
        // A limit on threads: it is done all the same, and may wait.
        return here();
    }
    let thread = number.recv().unwrap_or_default();
    let mut watched: Option<(StorageWait, u64)> = None;
    loop {
        match done.recv_timeout(LOOK) {
            Ok(report) => return Ok(report),
            Err(RecvTimeoutError::Timeout) => {}
            // The thread ended with a panic, which has said so: once more, where it is seen.
            Err(RecvTimeoutError::Disconnected) => return here(),
        }
        let now = SystemClock.now_ns();
        let wait = storage_waits()
            .into_iter()
            .find(|wait| wait.same.0 == thread);
        watched = match (wait, watched.take()) {
            (Some(wait), Some((known, since))) if wait == known => {
                if now.saturating_sub(since) >= GIVEN_UP_NS {
                    return Err(known);
                }
                Some((known, since))
            }
            (wait, _) => wait.map(|wait| (wait, now)),
        };
    }
}
