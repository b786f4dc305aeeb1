//! What an entry of the journal says: how one thing is undone.

use super::bytes;
use super::layer::LayerUndo;
use crate::host::{Host, MadeThing};
use serde::{Deserialize, Serialize};
use stackrace_base::unit::ShownPath;
use std::fmt;
use std::path::PathBuf;

/// The way in which one thing is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// Remove a file that the run made.
    RemoveFile(#[serde(with = "bytes")] PathBuf),
    /// Remove an empty directory.
    RemoveDir(#[serde(with = "bytes")] PathBuf),
    /// Remove a directory whose name begins with `.stackrace-`, and all it holds; never through a
    /// link, never across a mount.
    RemoveTree(#[serde(with = "bytes")] PathBuf),
    /// Unmount what is mounted at a directory.
    Unmount(#[serde(with = "bytes")] PathBuf),
    /// Wipe the signatures from a device, if they bear our mark.
    Blank {
        /// The device, by a name that stays.
        #[serde(with = "bytes")]
        device: PathBuf,
        /// The UUID or label, chosen by us, that no other signature bears.
        mark: String,
    },
    /// Write a parameter of the kernel back, if it still is what we wrote.
    WriteBack {
        /// Path of the parameter's file.
        #[serde(with = "bytes")]
        file: PathBuf,
        /// The value that we wrote.
        ours: String,
        /// The value before.
        before: String,
    },
    /// End the virtual machine that keeps its files in a directory.
    EndMachine(#[serde(with = "bytes")] PathBuf),
    /// End the daemon of this name that bears a mark of ours, with all it began.
    EndProcess {
        /// The name the kernel has of it.
        program: String,
        /// The mark in its environment ([`crate::host::daemon::MARK`]), chosen by us.
        mark: String,
    },
    /// A thing that a layer undoes itself, by the words of its own tools.
    Layer(LayerUndo),
    /// A thing on a peer.
    OnPeer {
        /// Its number then, from 2.
        node: usize,
        /// Name of the peer.
        host: String,
        /// The step that is undone over there.
        undo: Box<Undo>,
    },
}

impl Undo {
    /// The same on a peer of this number.
    pub fn on(node: usize, peer: &dyn Host, undo: Self) -> Self {
        Self::OnPeer {
            node,
            host: peer.name().to_owned(),
            undo: Box::new(undo),
        }
    }
}

impl Undo {
    /// Changes the paths on the first machine that it names.
    pub(super) fn each_path(&mut self, change: &dyn Fn(&mut PathBuf)) {
        match self {
            Self::RemoveFile(path)
            | Self::RemoveDir(path)
            | Self::RemoveTree(path)
            | Self::Unmount(path)
            | Self::EndMachine(path) => change(path),
            Self::Layer(undo) => {
                for word in &mut undo.of {
                    let mut path = PathBuf::from(&*word);
                    if path.is_absolute() {
                        change(&mut path);
                        *word = path.into_os_string();
                    }
                }
            }
            // Those of another machine were not moved with this one's.
            Self::Blank { .. }
            | Self::WriteBack { .. }
            | Self::EndProcess { .. }
            | Self::OnPeer { .. } => {}
        }
    }
}

impl From<LayerUndo> for Undo {
    fn from(undo: LayerUndo) -> Self {
        Self::Layer(undo)
    }
}

/// The group of what everything else lies in: it is undone when nothing else is left.
pub const GROUND: &str = "ground";

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveFile(path) => write!(f, "remove the file {}", path.shown()),
            Self::RemoveDir(path) => write!(f, "remove the directory {}", path.shown()),
            Self::RemoveTree(path) => {
                write!(f, "remove {} and all it holds", path.shown())
            }
            Self::Unmount(path) => write!(f, "unmount {}", path.shown()),
            Self::Blank { device, .. } => {
                write!(f, "wipe our signature from {}", device.shown())
            }
            Self::WriteBack { file, before, .. } => {
                write!(f, "write {before} back to {}", file.shown())
            }
            Self::EndMachine(path) => {
                write!(f, "end the virtual machine in {}", path.shown())
            }
            Self::EndProcess { program, .. } => write!(f, "end {program}"),
            Self::Layer(undo) => undo.fmt(f),
            Self::OnPeer { host, undo, .. } => write!(f, "{undo} on {host}"),
        }
    }
}

/// An entry of a journal, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(u64);

impl EntryId {
    /// The entry of this number, from 1.
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number, from 1.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A line of a journal: something that exists because of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its number in the journal, from 1.
    #[serde(rename = "entry")]
    pub id: EntryId,
    /// The group it belongs to: within a group, an older entry is only undone when every newer one
    /// has been.
    pub group: String,
    /// The step that undoes it.
    pub undo: Undo,
    /// The thing that was made, where that is known; a line of its own says it.
    #[serde(skip)]
    pub thing: Option<MadeThing>,
}
