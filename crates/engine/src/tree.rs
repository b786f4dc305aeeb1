//! Trees of directories, files and symbolic links: generate, scan, build, copy, extract and delete
//! them.
//!
//! A tree is a list of [`TreeEntry`], parents before children. It comes from a [`TreeShape`] (invented,
//! the same for the same seed), from a [`profile`] (invented after real ones) or from [`scan`] (learnt
//! from a real directory); [`build()`] makes it, [`archive()`] puts it into a tar archive.
//! [`copy_tree()`], [`copy_file`], [`delete_tree`], [`extract_tar`] and [`read_file`] are what is
//! measured, one thread doing one call after the other as `cp`, `rsync`, `rm`, `tar` and `dd` do.
//!
//! Nothing here follows a symbolic link or crosses a mount point.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, readlinkat};

use crate::outcome::{Op, OpError};
use crate::worker_pool::fault;
use stackrace_system::statx;
use walk::{Descent, Walk, WalkStep};

mod archive;
mod build;
mod copy;
mod copy_tree;
mod delete;
mod entry;
mod extract;
mod invent;
pub mod profile;
mod read;
mod walk;

pub use archive::archive;
pub use build::{Fill, build};
pub use copy::{COPY_BUFFER_BYTES, CopyMethod, RSYNC_BUFFER_BYTES, copy_file};
pub use copy_tree::{CopyStyle, copy_tree};
pub use delete::delete_tree;
pub use entry::{EntryKind, TreeEntry, total_bytes};
pub use extract::{RECORD_BYTES, extract_tar};
pub use invent::{SizeDistribution, TreeShape};
pub use read::read_file;
pub use walk::DEPTH_MAX;

/// The entries that [`scan`] found, and what it left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The tree, sorted by path, parents before children. Hard links are files of their own;
    /// holes of sparse files count as bytes.
    pub entries: Vec<TreeEntry>,
    /// Devices, sockets and pipes, which are left out.
    pub skipped_special: u64,
    /// Mount points and subvolumes, which stand in `entries` as empty directories.
    pub skipped_mounts: u64,
}

/// Learns the tree below a real directory: shape, sizes, modes, link targets, no content.
///
/// Symbolic links are not followed, mount points not entered.
///
/// # Errors
/// Something cannot be read: an incomplete scan is an error.
pub fn scan(root: &Path) -> Result<Scan, OpError> {
    let mut found = scan_as_listed(root)?;
    // Directories list their entries in no order.
    found.entries.sort();
    Ok(found)
}

/// The same in the order in which directories list their entries: to sort many thousands takes longer than
/// to find them.
pub(crate) fn scan_as_listed(root: &Path) -> Result<Scan, OpError> {
    let mut walk = Walk::open(root, Op::Readdir)?;
    let mut found = Scan {
        entries: Vec::new(),
        skipped_special: 0,
        skipped_mounts: 0,
    };
    walk.read().map_err(|errno| walk.here(Op::Readdir, errno))?;
    loop {
        match walk.next()? {
            WalkStep::Done => break,
            WalkStep::Leave => walk.leave(),
            WalkStep::Entry(kind) => scan_one(&mut walk, kind, root, &mut found)?,
        }
    }
    Ok(found)
}

fn scan_one(walk: &mut Walk, kind: FileType, root: &Path, found: &mut Scan) -> Result<(), OpError> {
    let (parent, name) = walk.current();
    let about = statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, walk::PLACE)
        .map_err(|errno| fault(Op::Stat, &walk.current_path(), errno))?;
    let kind = match kind {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File {
            bytes: about.stx_size,
        },
        FileType::Symlink => {
            let target = readlinkat(parent, name, Vec::new())
                .map_err(|errno| fault(Op::Stat, &walk.current_path(), errno))?;
            EntryKind::Symlink {
                target: OsStr::from_bytes(target.to_bytes()).into(),
            }
        }
        _ => {
            found.skipped_special += 1;
            return Ok(());
        }
    };
    let path = walk.current_path();
    let path = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
    // The permissions alone: the rest of the word is the kind.
    let mode = u32::from(about.stx_mode) & 0o7777;
    let is_directory = kind == EntryKind::Directory;
    found.entries.push(TreeEntry { path, kind, mode });
    if is_directory {
        match walk.descend(Op::Readdir)? {
            Descent::Elsewhere(_) => found.skipped_mounts += 1,
            Descent::Entered => {
                walk.read().map_err(|errno| walk.here(Op::Readdir, errno))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tree_tests.rs"]
pub(crate) mod tests;
