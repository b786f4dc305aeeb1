//! The tree as it was before the recording.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use stackrace_engine::spec::Content;
use stackrace_engine::tree::{self, EntryKind, TreeEntry};
use stackrace_trace::trace::{self, KeptEntry, Names, ROOT};

use crate::workload::kind::{Place, WorkloadError, trouble, trouble_at};

/// Where links of the tree lead: their real targets are not recorded, and none leads out of the directory.
const NOWHERE: &str = "nowhere";
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
}

impl KeptTree {
    /// Adds an entry; what is no directory, file or link is left out.
    pub(super) fn add(&mut self, names: &Names, entry: &KeptEntry) {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(
            path(names, entry.path).as_bytes(),
        ));
        // Small files are kept within directories or inodes by some, and count as no blocks there.
        let stored = match entry.stored.saturating_add(HOLE_MIN) < entry.size {
            true => entry.stored,
            false => entry.size,
        };
        let (kind, mode) = match entry.kind {
            trace::EntryKind::Directory => (EntryKind::Directory, 0o755),
            trace::EntryKind::File => (EntryKind::File { bytes: stored }, 0o644),
            trace::EntryKind::Link => {
                let target = NOWHERE.into();
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
pub(super) fn path(names: &Names, mut name: u32) -> CString {
    let mut parts: Vec<&[u8]> = Vec::new();
    while name != ROOT
        && let Some((parent, part)) = names.last(name)
    {
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
    CString::new(path).unwrap_or_default()
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
