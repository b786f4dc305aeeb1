//! The file of a journal: locked while its run lives, on the disk before anything is created.

use super::entry::{Entry, EntryId, Undo};
use super::error::{FORMAT, JournalError};
use crate::appendlog::{AppendError, AppendLog, Durable, Reopened, sync_dir};
use crate::host::HostError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum JournalLine {
    Head { journal: u32 },
    Entry(Entry),
    Done { done: EntryId },
}

/// The journal of one run.
pub(crate) struct Journal {
    state: Mutex<State>,
}

struct State {
    /// None: a plan, nothing is kept.
    file: Option<(AppendLog, PathBuf)>,
    next: u64,
    pending: Vec<Entry>,
}

impl Journal {
    /// Begins a journal and locks it.
    ///
    /// # Errors
    /// Also when the file exists.
    pub(crate) fn create(path: &Path) -> Result<Self, JournalError> {
        let file = AppendLog::create(path).map_err(|error| refused(error, path))?;
        let journal = Self::with(Some((file, path.to_path_buf())), 1, Vec::new());
        journal
            .state
            .lock()
            .append(&JournalLine::Head { journal: FORMAT }, Durable::Yes)?;
        let parent = path.parent();
        if let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) {
            sync_dir(parent).map_err(|error| system("sync", parent, error))?;
        }
        Ok(journal)
    }

    /// Goes on with a journal, and locks it. A last line that was torn by a crash is cut off: what
    /// it spoke of was not created yet.
    ///
    /// # Errors
    /// [`JournalError::Live`] when its run is alive.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let Reopened {
            log: mut file,
            whole,
            torn,
        } = AppendLog::open(path).map_err(|error| refused(error, path))?;
        let (next, pending) = replay(&whole, path)?;
        // A whole line that cannot be read may be an entry: to forget it would leave behind what it
        // speaks of. Only what has no line break was never told to be kept.
        if torn.contains(&b'\n') {
            return Err(JournalError::Broken {
                path: path.to_path_buf(),
                line: whole.iter().filter(|&&byte| byte == b'\n').count() + 1,
            });
        }
        if !torn.is_empty() {
            file.cut_torn().map_err(|error| refused(error, path))?;
        }
        let journal = Self::with(Some((file, path.to_path_buf())), next, pending);
        if whole.is_empty() {
            journal
                .state
                .lock()
                .append(&JournalLine::Head { journal: FORMAT }, Durable::Yes)?;
        }
        Ok(journal)
    }

    /// A journal that is kept nowhere: for plans, which create nothing.
    pub(crate) fn nowhere() -> Self {
        Self::with(None, 1, Vec::new())
    }

    fn with(file: Option<(AppendLog, PathBuf)>, next: u64, pending: Vec<Entry>) -> Self {
        Self {
            state: Mutex::new(State {
                file,
                next,
                pending,
            }),
        }
    }

    /// Says what is about to be created; on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written: then nothing may be created.
    pub(crate) fn will(&self, group: &str, undo: Undo) -> Result<EntryId, JournalError> {
        let mut state = self.state.lock();
        let entry = Entry {
            id: EntryId::new(state.next),
            group: group.to_string(),
            undo,
        };
        state.append(&JournalLine::Entry(entry.clone()), Durable::Yes)?;
        state.next += 1;
        let id = entry.id;
        state.pending.push(entry);
        Ok(id)
    }

    /// Says that an entry has been undone, or that what it speaks of was never created.
    ///
    /// Not synced: if it is lost, undoing again is harmless.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn done(&self, id: EntryId) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        state.append(&JournalLine::Done { done: id }, Durable::No)?;
        state.pending.retain(|entry| entry.id != id);
        Ok(())
    }

    /// What is still to be undone, newest first.
    pub(crate) fn pending(&self) -> Vec<Entry> {
        self.state.lock().pending.iter().rev().cloned().collect()
    }
}

impl State {
    fn append(&mut self, line: &JournalLine, durable: Durable) -> Result<(), JournalError> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        let mut bytes =
            serde_json::to_vec(line).map_err(|error| system("write to", path, error.into()))?;
        bytes.push(b'\n');
        file.append(&bytes, durable)
            .map_err(|error| refused(error, path))
    }
}

/// The error of the file as one of the journal.
fn refused(error: AppendError, path: &Path) -> JournalError {
    match error {
        AppendError::Locked => JournalError::Live {
            path: path.to_path_buf(),
        },
        AppendError::System { tried, source } => system(tried, path, source),
        AppendError::Broken => system("write to", path, std::io::Error::other(error)),
    }
}

fn system(what: &'static str, path: &Path, error: std::io::Error) -> JournalError {
    JournalError::System(HostError::path(what, path, error))
}

/// The number of the next entry, and what is still to be undone, oldest first. `path` is named in
/// messages only.
///
/// # Errors
/// The first line that cannot be understood, or another format.
pub(crate) fn replay(bytes: &[u8], path: &Path) -> Result<(u64, Vec<Entry>), JournalError> {
    let mut next = 1;
    let mut pending: Vec<Entry> = Vec::new();
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    for (index, line) in lines.enumerate() {
        let broken = || JournalError::Broken {
            path: path.to_path_buf(),
            line: index + 1,
        };
        match serde_json::from_slice(line).map_err(|_| broken())? {
            JournalLine::Head { journal } if journal != FORMAT => {
                return Err(JournalError::OtherFormat {
                    path: path.to_path_buf(),
                    format: journal,
                });
            }
            JournalLine::Head { .. } => {}
            JournalLine::Entry(entry) => {
                let after = entry.id.number().checked_add(1).ok_or_else(broken)?;
                next = next.max(after);
                pending.push(entry);
            }
            JournalLine::Done { done } => pending.retain(|entry| entry.id != done),
        }
    }
    Ok((next, pending))
}
