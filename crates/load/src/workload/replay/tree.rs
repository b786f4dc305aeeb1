//! The tree as it was before the recording.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use stackrace_engine::spec::Content;
use stackrace_engine::tree::{self, EntryKind, TreeEntry};
use stackrace_trace::trace::{self, KeptEntry, Names, ROOT};

use crate::workload::kind::{Place, WorkloadError, trouble, trouble_at};

/// Where links lead that led elsewhere than below their own directory.
const NOWHERE: &CStr = c"nowhere";
/// Fewest bytes that make a hole.
const HOLE_MIN: u64 = 64 << 10;

/// A tree, with files that have holes.
#[derive(Debug, Default)]
pub(super) struct KeptTree {
    entries: Vec<TreeEntry>,
    /// Files with holes, and their sizes.
    sparse: Vec<(PathBuf, u64)>,
    /// Bytes that are stored.
    pub(super) bytes: u64,
    /// What whole paths of all entries take in memory.
    pub(super) path_bytes: usize,
}

impl KeptTree {
    /// Adds an entry; what is no directory, file or link is left out.
    pub(super) fn add(&mut self, names: &Names, entry: &KeptEntry) {
        self.path_bytes += names.length(entry.path) + names.length(entry.target);
        let path = PathBuf::from(OsStr::from_bytes(path(names, entry.path).as_bytes()));
        // Small files are kept within directories or inodes by some, and count as no blocks there.
        let stored = match entry.stored.saturating_add(HOLE_MIN) < entry.size {
            true => entry.stored,
            false => entry.size,
        };
        let (kind, mode) = match entry.kind {
            trace::EntryKind::Directory => (EntryKind::Directory, 0o755),
            trace::EntryKind::File => (EntryKind::File { bytes: stored }, 0o644),
            trace::EntryKind::Link => {
                let target = link_target(names, entry.path, entry.target);
                let target = OsStr::from_bytes(target.as_bytes()).into();
                (EntryKind::Symlink { target }, 0o777)
            }
            trace::EntryKind::Other => return,
        };
        if matches!(kind, EntryKind::File { .. }) {
            self.bytes = self.bytes.saturating_add(stored);
            if stored < entry.size {
                self.sparse.push((path.clone(), entry.size));
            }
        }
        self.entries.push(TreeEntry { path, kind, mode });
    }

    /// How many entries there are.
    pub(super) fn entries(&self) -> u64 {
        self.entries.len() as u64
    }
}

/// A name as a path below the directory.
pub(super) fn path(names: &Names, name: u32) -> CString {
    below(names, ROOT, name).unwrap_or_default()
}

/// What a link leads to, as it is written into it: below the directory that it stands in, so that wherever it is moved
/// to it never leads out of the directory of the trial.
pub(super) fn link_target(names: &Names, link: u32, target: u32) -> CString {
    let parent = names.last(link).map(|(parent, _)| parent);
    let target = parent.and_then(|parent| below(names, parent, target));
    target.unwrap_or_else(|| NOWHERE.to_owned())
}

/// A name as a path from a directory that it stands in; none: it does not.
fn below(names: &Names, from: u32, mut name: u32) -> Option<CString> {
    let mut parts: Vec<&[u8]> = Vec::new();
    while name != from {
        let (parent, part) = names.last(name)?;
        parts.push(part);
        name = parent;
    }
    // They were found from the last one on.
    parts.reverse();
    // No part of a trace has a zero byte: its reader refuses it.
    let path = match parts.is_empty() {
        true => b".".to_vec(),
        false => parts.join(&b'/'),
    };
    CString::new(path).ok()
}

/// Makes the tree in the directory of a trial.
pub(super) fn lay_out(kept: &KeptTree, place: &Place<'_>) -> Result<(), WorkloadError> {
    let root = place.directory;
    let fill = Content::Random.into();
    tree::build(&kept.entries, root, &fill, place.seed, place.control).map_err(trouble)?;
    // What was stored is written; the rest of these files is a hole.
    for (path, size) in &kept.sparse {
        let path = root.join(path);
        let file = std::fs::File::options().write(true).open(&path);
        let sized = file.and_then(|file| file.set_len(*size));
        sized.map_err(|error| trouble_at(&path, error))?;
    }
    Ok(())
}
