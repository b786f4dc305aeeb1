//! The file of a journal: locked while its run lives, on the disk before anything is created.

use super::entry::{Entry, EntryId, Undo};
use super::error::{FORMAT, JournalError};
use crate::host::HostError;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
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
    file: Option<(File, PathBuf)>,
    next: u64,
    pending: Vec<Entry>,
}

impl Journal {
    /// Begins a journal and locks it.
    ///
    /// # Errors
    /// Also when the file exists.
    pub(crate) fn create(path: &Path) -> Result<Self, JournalError> {
        let failed = |error: std::io::Error| system("create", path, error);
        let file = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(failed)?;
        lock(&file, path)?;
        let journal = Self::with(Some((file, path.to_path_buf())), 1, Vec::new());
        journal
            .state()
            .append(&Line::Head { journal: FORMAT }, Durable::Yes)?;
        // The name of a new file is as volatile as its content until its directory is synced.
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            File::open(parent)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| system("sync", parent, error))?;
        }
        Ok(journal)
    }

    /// Goes on with a journal, and locks it. A last line that was torn by a crash is cut off: what
    /// it spoke of was not created yet.
    ///
    /// # Errors
    /// [`JournalError::Live`] when its run is alive.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |error: std::io::Error| system("open", path, error);
        let mut file = File::options()
            .read(true)
            .append(true)
            .open(path)
            .map_err(failed)?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        file.set_len(whole as u64).map_err(failed)?;
        bytes.truncate(whole);
        let (next, pending) = replay(&bytes, path)?;
        let journal = Self::with(Some((file, path.to_path_buf())), next, pending);
        if whole == 0 {
            journal
                .state()
                .append(&Line::Head { journal: FORMAT }, Durable::Yes)?;
        }
        Ok(journal)
    }

    /// A journal that is kept nowhere: for plans, which create nothing.
    pub(crate) fn nowhere() -> Self {
        Self::with(None, 1, Vec::new())
    }

    fn with(file: Option<(File, PathBuf)>, next: u64, pending: Vec<Entry>) -> Self {
        Self {
            state: Mutex::new(State {
                file,
                next,
                pending,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is about to be created; on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written: then nothing may be created.
    pub(crate) fn will(&self, group: &str, undo: Undo) -> Result<EntryId, JournalError> {
        let mut state = self.state();
        let entry = Entry {
            id: EntryId::new(state.next),
            group: group.to_string(),
            undo,
        };
        state.append(&Line::Entry(entry.clone()), Durable::Yes)?;
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
        let mut state = self.state();
        state.append(&Line::Done { done: id }, Durable::No)?;
        state.pending.retain(|entry| entry.id != id);
        Ok(())
    }

    /// What is still to be undone, newest first.
    pub(crate) fn pending(&self) -> Vec<Entry> {
        self.state().pending.iter().rev().cloned().collect()
    }
}

/// Unlocks by hand: a command just being started holds a copy of the file until its program is
/// loaded, and closing ours would leave the lock to it for that moment.
impl Drop for Journal {
    fn drop(&mut self) {
        if let Some((file, _)) = &self.state().file {
            // Closing the file follows and unlocks as well, if a moment later.
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
    }
}

enum Durable {
    Yes,
    No,
}

impl State {
    fn append(&mut self, line: &Line, durable: Durable) -> Result<(), JournalError> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        let failed = |error: std::io::Error| system("write to", path, error);
        let before = file.metadata().map_err(failed)?.len();
        let mut bytes = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        let written = file.write_all(&bytes).and_then(|()| match durable {
            Durable::Yes => file.sync_data(),
            Durable::No => Ok(()),
        });
        written.map_err(|error| {
            // A line written in part must not swallow the next one. If this fails as well, the
            // journal is read as broken later, which is true.
            let _ = file.set_len(before);
            failed(error)
        })
    }
}

fn system(what: &'static str, path: &Path, error: std::io::Error) -> JournalError {
    JournalError::System(HostError::path(what, path, error))
}

fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(JournalError::Live {
            path: path.to_path_buf(),
        }),
        Err(error) => Err(system("lock", path, error.into())),
    }
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
            Line::Head { journal } if journal != FORMAT => {
                return Err(JournalError::OtherFormat {
                    path: path.to_path_buf(),
                    format: journal,
                });
            }
            Line::Head { .. } => {}
            Line::Entry(entry) => {
                let after = entry.id.number().checked_add(1).ok_or_else(broken)?;
                next = next.max(after);
                pending.push(entry);
            }
            Line::Done { done } => pending.retain(|entry| entry.id != done),
        }
    }
    Ok((next, pending))
}
