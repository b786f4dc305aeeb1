//! One entry of a tree, and what a list of entries must keep to.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::outcome::{Op, OpError};
use crate::worker_pool::refusal;

/// The kind of an entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A directory; what is in it are entries of their own.
    Directory,
    /// A regular file of so many bytes.
    File {
        /// Its size.
        bytes: u64,
    },
    /// A symbolic link.
    Symlink {
        /// The path it holds, which need not exist.
        target: PathBuf,
    },
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeEntry {
    /// Path, relative to the tree's root.
    pub path: PathBuf,
    /// A directory, a file or a link.
    pub kind: EntryKind,
    /// Permission bits (`0o7777`); meaningless for a symbolic link.
    pub mode: u32,
}

/// Bytes of all files of a tree together.
pub fn total_bytes(entries: &[TreeEntry]) -> u64 {
    let bytes = |entry: &TreeEntry| match entry.kind {
        EntryKind::File { bytes } => bytes,
        EntryKind::Directory | EntryKind::Symlink { .. } => 0,
    };
    entries.iter().map(bytes).fold(0, u64::saturating_add)
}

/// Each entry must lie in the root or in a directory listed before it: so no path leaves the root,
/// neither by `..` nor through a symbolic link of the list.
pub(super) fn check(entries: &[TreeEntry], root: &Path) -> Result<(), OpError> {
    let mut directories = HashSet::from([Path::new("")]);
    for entry in entries {
        let plain = entry
            .path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let listed = entry
            .path
            .parent()
            .is_some_and(|parent| directories.contains(parent));
        if !plain || !listed {
            let detail = "is not below a directory listed before it: nothing was built";
            return Err(refusal(
                Op::Create,
                &root.join(&entry.path),
                Errno::INVAL,
                detail,
            ));
        }
        if entry.kind == EntryKind::Directory {
            directories.insert(&entry.path);
        }
    }
    Ok(())
}
