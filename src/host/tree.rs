//! Removal of a directory of ours with all it holds.
//!
//! Walks by directory handles, never by names from the root, so that a directory cannot be swapped
//! for a link on the way. A link is removed, never followed. Another file system is never entered.

use super::{HostError, MountInfo};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// How the last name of everything begins that this program may remove as a tree.
pub(crate) const MARK: &str = ".stackrace-";

/// Deepest directory that is walked into; one handle is open for each.
const DEPTH_MAX: u32 = 256;

/// Whether a path may be removed as a tree: absolute, without `..`, last name marked as ours, no
/// mount on it or in it.
///
/// # Errors
/// [`HostError::NotOurs`], saying why.
pub(super) fn check(path: &Path, mounts: &[MountInfo]) -> Result<(), HostError> {
    let refuse = |why: String| {
        Err(HostError::NotOurs {
            path: path.to_path_buf(),
            why,
        })
    };
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return refuse("the path is not absolute and plain".to_string());
    }
    if !path
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(MARK.as_bytes()))
    {
        return refuse(format!("its name does not begin with {MARK}"));
    }
    match mounts
        .iter()
        .find(|mount| mount.mount_point.starts_with(path))
    {
        Some(mount) => refuse(format!(
            "{} is mounted at {}",
            mount.source.display(),
            mount.mount_point.display()
        )),
        None => Ok(()),
    }
}

/// Removes the tree; one that is not there is fine.
///
/// # Errors
/// As [`check`], and when the system refuses.
pub(super) fn remove(path: &Path, mounts: &[MountInfo]) -> Result<(), HostError> {
    check(path, mounts)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |error: std::io::Error| HostError::path("remove", path, error);
    let root = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(root) => root,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => return Err(failed(error.into())),
    };
    let device = rustix::fs::fstat(&root)
        .map_err(|error| failed(error.into()))?
        .st_dev;
    empty(root.as_fd(), device, DEPTH_MAX).map_err(failed)?;
    std::fs::remove_dir(path).map_err(failed)
}

fn empty(directory: BorrowedFd<'_>, device: u64, depth_left: u32) -> std::io::Result<()> {
    if depth_left == 0 {
        return Err(std::io::Error::other(format!(
            "it is deeper than {DEPTH_MAX} directories"
        )));
    }
    let mut names: Vec<CString> = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    for name in names {
        let found = match rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        // The name of a file goes from this directory, whatever device the file says it is on: an
        // overlay says that of the layer below. A file that is a mount point is busy.
        if rustix::fs::FileType::from_raw_mode(found.st_mode) != rustix::fs::FileType::Directory {
            rustix::fs::unlinkat(directory, &name, AtFlags::empty())?;
            continue;
        }
        if found.st_dev != device {
            return Err(std::io::Error::other(format!(
                "{} lies on another file system",
                name.to_string_lossy()
            )));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = rustix::fs::openat(directory, &name, flags, Mode::empty())?;
        if rustix::fs::fstat(&below)?.st_dev != device {
            return Err(std::io::Error::other("a directory was swapped on the way"));
        }
        empty(below.as_fd(), device, depth_left - 1)?;
        rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_as_ours_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let other = base.path().join("photos");
        std::fs::create_dir(&other).unwrap();
        assert!(matches!(
            remove(&other, &[]),
            Err(HostError::NotOurs { .. })
        ));
        assert!(matches!(
            remove(Path::new(".stackrace-relative"), &[]),
            Err(HostError::NotOurs { .. })
        ));
        let sly = base.path().join(".stackrace-a/../photos");
        assert!(matches!(remove(&sly, &[]), Err(HostError::NotOurs { .. })));
        assert!(other.exists());
    }

    #[test]
    fn a_link_is_removed_and_never_followed() {
        let base = tempfile::tempdir().unwrap();
        let precious = base.path().join("precious");
        std::fs::create_dir(&precious).unwrap();
        std::fs::write(precious.join("photo"), b"x").unwrap();
        let ours = base.path().join(".stackrace-t");
        std::fs::create_dir_all(ours.join("deep/er")).unwrap();
        std::fs::write(ours.join("deep/er/file"), b"x").unwrap();
        std::os::unix::fs::symlink(&precious, ours.join("deep/link")).unwrap();
        std::os::unix::fs::symlink("nowhere", ours.join("dangling")).unwrap();
        remove(&ours, &[]).unwrap();
        assert!(!ours.exists());
        assert!(precious.join("photo").exists());
        remove(&ours, &[]).unwrap();
    }

    #[test]
    fn a_marked_link_to_somewhere_else_is_not_entered() {
        let base = tempfile::tempdir().unwrap();
        let precious = base.path().join("precious");
        std::fs::create_dir(&precious).unwrap();
        std::fs::write(precious.join("photo"), b"x").unwrap();
        let link = base.path().join(".stackrace-link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(remove(&link, &[]).is_err());
        assert!(precious.join("photo").exists());
    }

    #[test]
    fn a_tree_with_a_mount_in_it_is_refused() {
        let mounts =
            super::super::mountinfo::parse(b"9 1 0:5 / /x/.stackrace-t/m rw - tmpfs tmpfs rw\n");
        let refused = check(Path::new("/x/.stackrace-t"), &mounts).unwrap_err();
        assert!(refused.to_string().contains("/x/.stackrace-t/m"));
        check(Path::new("/x/.stackrace-tt"), &mounts).unwrap();
    }
}
