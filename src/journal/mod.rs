//! What exists because of us, with how to undo it.
//!
//! An append-only file, one JSON object a line. An entry is on the disk *before* the thing it
//! speaks of is created, so that at every moment, a crash included, whatever exists outside the
//! record is named here. The opposite can happen (an entry without its thing), therefore every undo
//! is harmless when there is nothing to undo.
//!
//! The file is locked while a run lives; who can lock it may clean up after the dead one.
//!
//! Format 1: `{"journal":1}`, then `{"entry":3,"group":"r1-t0","undo":{"remove-file":"/a%20b"}}`
//! and `{"done":3}`. Paths are bytes: everything but printable ASCII, and `%`, is written as `%`
//! with two hexadecimal digits.

mod bytes;
mod devices;
mod peers;
mod undo;

pub(crate) use devices::{erase, partitions};
pub(crate) use peers::{BOOT, exported, named};
pub(crate) use undo::{undo_all, undo_entries, unmount, until_free};

use crate::appendlog::{AppendError, AppendLog, Durable, Reopened, sync_dir};
use crate::host::{Host, HostError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Version of the file's format.
pub(crate) const FORMAT: u32 = 1;

/// How one thing is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Undo {
    /// Remove a file.
    RemoveFile(#[serde(with = "bytes")] PathBuf),
    /// Remove an empty directory.
    RemoveDir(#[serde(with = "bytes")] PathBuf),
    /// Remove a directory whose name begins with `.stackrace-`, and all it holds; never through a
    /// link, never across a mount.
    RemoveTree(#[serde(with = "bytes")] PathBuf),
    /// Detach the loop devices that lie on a file.
    DetachLoop(#[serde(with = "bytes")] PathBuf),
    /// Unmount what is mounted at a directory.
    Unmount(#[serde(with = "bytes")] PathBuf),
    /// Wipe the signatures from a device, if they bear our mark.
    Blank {
        /// Which device, by a name that stays.
        #[serde(with = "bytes")]
        device: PathBuf,
        /// The UUID or label, chosen by us, that nobody else's signature bears.
        mark: String,
    },
    /// Stop the array (md) of this UUID, chosen by us.
    StopArray(String),
    /// Remove the volume group (LVM) of this name, chosen by us, with all it holds.
    RemoveVolumeGroup(String),
    /// Destroy the pool (ZFS) of this name, chosen by us.
    DestroyPool(String),
    /// Write a parameter of the kernel back, if it still is what we wrote.
    WriteBack {
        /// Its file.
        #[serde(with = "bytes")]
        file: PathBuf,
        /// What we wrote.
        ours: String,
        /// What it was before.
        before: String,
    },
    /// End the virtual machine that keeps its files in a directory.
    EndMachine(#[serde(with = "bytes")] PathBuf),
    /// Take down the replicated device (DRBD) of this name, chosen by us.
    DownReplica(String),
    /// Give the network card of this name its ordinary queue back.
    PlainLine(String),
    /// End the daemon of this name that bears a mark of ours, with all it began.
    EndServer {
        /// The name the kernel has of it.
        program: String,
        /// What is in its environment ([`crate::host::daemon::MARK`]), chosen by us.
        mark: String,
    },
    /// Export (NFS) a directory to a client no more.
    Unexport {
        /// Its address.
        client: String,
        /// Which.
        #[serde(with = "bytes")]
        directory: PathBuf,
    },
    /// End the kernel's NFS server, which did not run before.
    EndNfsServer {
        /// The kernel's own id of the time since the machine was started: when another one has
        /// begun, the server is somebody else's.
        boot: String,
    },
    /// In journals of before, written in the lab alone: end the daemons of this name.
    EndDaemon(String),
    /// In journals of before, written in the lab alone: export nothing any more and end the kernel's
    /// NFS server.
    EndNfs,
    /// Something on a peer.
    OnPeer {
        /// Its number then, from 2.
        node: usize,
        /// What it is called; empty in journals of before it was written: the number has to do.
        #[serde(default)]
        host: String,
        /// What.
        undo: Box<Undo>,
    },
}

impl Undo {
    /// The same on a peer of this number.
    pub(crate) fn on(node: usize, peer: &dyn Host, undo: Self) -> Self {
        Self::OnPeer {
            node,
            host: peer.name().to_owned(),
            undo: Box::new(undo),
        }
    }
}

/// The group of what everything else lies in: it is undone when nothing else is left.
pub(crate) const GROUND: &str = "ground";

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveFile(path) => write!(f, "remove the file {}", path.display()),
            Self::RemoveDir(path) => write!(f, "remove the directory {}", path.display()),
            Self::RemoveTree(path) => {
                write!(f, "remove {} and all it holds", path.display())
            }
            Self::DetachLoop(path) => {
                write!(f, "detach the loop device on {}", path.display())
            }
            Self::Unmount(path) => write!(f, "unmount {}", path.display()),
            Self::Blank { device, .. } => {
                write!(f, "wipe our signature from {}", device.display())
            }
            Self::StopArray(uuid) => write!(f, "stop the array {uuid}"),
            Self::RemoveVolumeGroup(name) => write!(f, "remove the volume group {name}"),
            Self::DestroyPool(name) => write!(f, "destroy the pool {name}"),
            Self::WriteBack { file, before, .. } => {
                write!(f, "write {before} back to {}", file.display())
            }
            Self::EndMachine(path) => {
                write!(f, "end the virtual machine in {}", path.display())
            }
            Self::DownReplica(name) => write!(f, "take down the replicated device {name}"),
            Self::PlainLine(card) => write!(f, "give {card} its ordinary queue back"),
            Self::EndServer { program, .. } | Self::EndDaemon(program) => {
                write!(f, "end {program}")
            }
            Self::Unexport { client, directory } => {
                write!(f, "export {} to {client} no more", directory.display())
            }
            Self::EndNfsServer { .. } | Self::EndNfs => f.write_str("end the NFS server"),
            Self::OnPeer { node, host, undo } if host.is_empty() => {
                write!(f, "{undo} on node{node}")
            }
            Self::OnPeer { host, undo, .. } => write!(f, "{undo} on {host}"),
        }
    }
}

/// Which entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EntryId(u64);

impl EntryId {
    /// Its number, from 1.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Which.
    #[serde(rename = "entry")]
    pub(crate) id: EntryId,
    /// What belongs together: within a group, an older entry is only undone when every newer one
    /// has been.
    pub(crate) group: String,
    /// How.
    pub(crate) undo: Undo,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Head { journal: u32 },
    Entry(Entry),
    Done { done: EntryId },
}

/// Why a journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalError {
    /// Another process holds it: its run is alive.
    Live {
        /// Which file.
        path: PathBuf,
    },
    /// A line in the middle cannot be understood.
    Broken {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// It was written by a newer program.
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The system refused something.
    System(HostError),
}

impl JournalError {
    /// What the user can do about it.
    pub(crate) fn next(&self) -> String {
        match self {
            Self::Live { .. } => "wait until that run has ended, or interrupt it".to_string(),
            Self::Broken { path, .. } => {
                format!("look at {} and undo what it names yourself", path.display())
            }
            Self::Newer { .. } => "use a newer stackrace".to_string(),
            Self::System(error) => error.next(),
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live { path } => {
                write!(f, "the run that writes {} is alive", path.display())
            }
            Self::Broken { path, line } => {
                write!(
                    f,
                    "{}:{line}: this line cannot be understood",
                    path.display()
                )
            }
            Self::Newer { path, format } => write!(
                f,
                "{} has format {format}; this program knows {FORMAT}",
                path.display()
            ),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JournalError {}

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
            .state()
            .append(&Line::Head { journal: FORMAT }, Durable::Yes)?;
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
                .state()
                .append(&Line::Head { journal: FORMAT }, Durable::Yes)?;
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
            id: EntryId(state.next),
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

impl State {
    fn append(&mut self, line: &Line, durable: Durable) -> Result<(), JournalError> {
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
/// The first line that cannot be understood, or a newer format.
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
            Line::Head { journal } if journal > FORMAT => {
                return Err(JournalError::Newer {
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

#[cfg(test)]
mod tests;
