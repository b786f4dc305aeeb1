//! How much of a file is in the page cache, and how to evict it.
//!
//! A cold cache must be verified: [`evict`] asks the kernel, [`resident_bytes`] shows whether it
//! complied. This covers file data only. Directory entries and inodes have their own caches, and
//! some file systems have their own data cache (ZFS: the ARC).
//!
//! Units: bytes.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use crate::calls::FUSE;
use crate::outcome::{Op, OpError};
use crate::tree::{EntryKind, scan, scan_as_listed};
use crate::worker_pool::fault;
use stackrace_system::extents::{self, Stored};
use stackrace_system::resident;
use stackrace_system::{Advice, fadvise, fdatasync, file_system_kind, syncfs};

fn open(path: &Path) -> Result<(OwnedFd, u64), OpError> {
    // NONBLOCK: opening a pipe must not hang.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = openat(CWD, path, flags, Mode::empty()).map_err(|e| fault(Op::Open, path, e))?;
    let about = fstat(&fd).map_err(|errno| fault(Op::Stat, path, errno))?;
    Ok((fd, u64::try_from(about.st_size).unwrap_or(0)))
}

/// True if a program serves the file system of a file or directory (FUSE); false where the system does not tell.
pub fn is_served_by_program(path: &Path) -> bool {
    let kind = open(path).map(|(fd, _)| file_system_kind(fd));
    matches!(kind, Ok(Ok(kind)) if kind == FUSE)
}

/// Number of bytes of a file that are in the page cache, and number of bytes it has.
///
/// A page counts with as many bytes as the file has in it. If the caller neither owns the file nor
/// may write to it, the kernel reports every page as resident (since Linux 5.2).
///
/// # Errors
/// The file cannot be opened or mapped.
pub fn resident_bytes(path: &Path) -> Result<(u64, u64), OpError> {
    let (fd, total) = open(path)?;
    let parts = resident::parts(&fd, total).map_err(|errno| fault(Op::Read, path, errno))?;
    let resident = parts.iter().map(|part| part.end - part.start).sum();
    Ok((resident, total))
}

/// Writes out a file's dirty pages and asks the kernel to drop it from the page cache.
///
/// Pages that other processes map or lock stay, and so do files on tmpfs.
///
/// # Errors
/// The file cannot be opened, or its data cannot be written out.
pub fn evict(path: &Path) -> Result<(), OpError> {
    let (fd, _) = open(path)?;
    // The kernel drops only clean pages.
    fdatasync(&fd).map_err(|errno| fault(Op::Fsync, path, errno))?;
    advise(path, &fd)
}

fn advise(path: &Path, fd: &OwnedFd) -> Result<(), OpError> {
    fadvise(fd, 0, None, Advice::DontNeed).map_err(|errno| fault(Op::Read, path, errno))
}

/// Evicts every file below a directory, as long as it may go on, and returns how many there were. Symbolic links are
/// not followed, mount points not entered.
///
/// # Errors
/// As [`evict`] and [`scan`]; files visited before stay evicted.
pub fn evict_tree(root: &Path, goes_on: &dyn Fn() -> bool) -> Result<u64, OpError> {
    let mut files = 0;
    // One sync for all: a journal commit for each of ten thousand files takes minutes.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let home = openat(CWD, root, flags, Mode::empty()).map_err(|e| fault(Op::Open, root, e))?;
    syncfs(&home).map_err(|errno| fault(Op::Fsync, root, errno))?;
    for entry in scan_as_listed(root)?.entries {
        // A million files take a minute, and who stops it must not wait for them.
        if !goes_on() {
            break;
        }
        if matches!(entry.kind, EntryKind::File { .. }) {
            let path = root.join(entry.path);
            advise(&path, &open(&path)?.0)?;
            files += 1;
        }
    }
    Ok(files)
}

/// Bytes in the page cache, and bytes in all, of the files below a directory.
///
/// At most `files_max` files are looked at, evenly spread over the tree: enough to tell a cold
/// start from a warm one without opening a million files. Both figures are of those files alone.
///
/// # Errors
/// As [`resident_bytes`] and [`scan`].
pub fn resident_bytes_below(root: &Path, files_max: usize) -> Result<(u64, u64), OpError> {
    let entries = scan(root)?.entries;
    let files: Vec<&std::path::PathBuf> = entries
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::File { .. }))
        .map(|entry| &entry.path)
        .collect();
    let step = files.len().div_ceil(files_max.max(1)).max(1);
    let mut sum = (0, 0);
    for path in files.into_iter().step_by(step) {
        let (resident, total) = resident_bytes(&root.join(path))?;
        sum.0 += resident;
        sum.1 += total;
    }
    Ok(sum)
}

/// How the files below a directory are stored, `files_max` of them at most. Symbolic links are not
/// followed, mount points not entered.
///
/// # Errors
/// A file cannot be opened, its file system does not tell ([`extents::of_file`]), or as [`scan`].
pub fn stored_below(root: &Path, files_max: usize) -> Result<Stored, OpError> {
    let mut sum = Stored::default();
    let entries = scan(root)?.entries;
    let files = entries
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::File { .. }));
    for entry in files.take(files_max) {
        let path = root.join(&entry.path);
        let stored = extents::of_file(&path).map_err(|errno| fault(Op::Stat, &path, errno))?;
        sum.add(stored);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size of a file that is not a multiple of the page size.
    const BYTES: usize = 3_000_001;

    #[test]
    fn a_file_on_disk_is_evicted_and_read_again_whole() {
        // Not /tmp, which may be in memory.
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = home.path().join("file");
        std::fs::write(&path, vec![7; BYTES]).unwrap();
        let whole = BYTES as u64;
        assert_eq!(
            resident_bytes(&path).unwrap(),
            (whole, whole),
            "just written"
        );
        evict(&path).unwrap();
        assert_eq!(resident_bytes(&path).unwrap(), (0, whole));
        std::fs::read(&path).unwrap();
        assert_eq!(resident_bytes(&path).unwrap(), (whole, whole));
    }

    #[test]
    fn a_tree_is_evicted_file_by_file() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let below = home.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let paths = [home.path().join("one"), below.join("two")];
        for path in &paths {
            std::fs::write(path, vec![7; BYTES]).unwrap();
        }
        std::os::unix::fs::symlink("/nowhere", below.join("link")).unwrap();
        assert_eq!(evict_tree(home.path(), &|| true).unwrap(), 2);
        for path in &paths {
            assert_eq!(resident_bytes(path).unwrap().0, 0);
        }
    }

    #[test]
    fn eviction_of_many_files_ends_when_it_is_asked_to() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        for name in 0..9 {
            std::fs::write(home.path().join(name.to_string()), b"x").unwrap();
        }
        let asked = std::cell::Cell::new(0);
        let goes_on = || asked.replace(asked.get() + 1) < 3;
        assert_eq!(evict_tree(home.path(), &goes_on).unwrap(), 3);
    }

    #[test]
    fn an_empty_file_has_nothing_and_a_missing_one_is_named() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("empty");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(resident_bytes(&path).unwrap(), (0, 0));
        let missing = home.path().join("missing");
        for error in [
            resident_bytes(&missing).unwrap_err(),
            evict(&missing).unwrap_err(),
            evict_tree(&missing, &|| true).unwrap_err(),
        ] {
            assert_eq!(error.path, missing);
            assert!(error.to_string().contains("No such file"), "{error}");
        }
    }
}
