//! Removes a directory that stackrace made, with everything in it.
//!
//! Walks by directory handles, never by names from the root, so that a directory cannot be swapped
//! for a link on the way. A link is removed, never followed. Another file system is never entered.

use super::{HostError, MountInfo};
use stackrace_base::owned::{OwnDir, OwnError};
use stackrace_base::unit::ShownPath;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Word for what [`in_parent`] tries, in errors.
const REMOVE: &str = "remove";

/// Beginning of the last name of everything that this program may remove as a tree.
pub(super) const MARK: &str = ".stackrace-";

/// Checks that a path may be removed as a tree: absolute, without `..`, last name marked as ours,
/// no mount on it or in it.
///
/// # Errors
/// [`HostError::NotOurs`], saying why.
pub fn check(path: &Path, mounts: &[MountInfo]) -> Result<(), HostError> {
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
            mount.source.shown(),
            mount.mount_point.shown()
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
    in_parent(path, OwnDir::remove_tree)
}

/// Removes what has a name, from the directory it lies in, which is held open: no link of another
/// user's on the way leads elsewhere. Where that directory is gone, so is what was in it.
///
/// # Errors
/// The way leads through such a link; the system refuses.
pub(super) fn in_parent(
    path: &Path,
    remove: impl FnOnce(&OwnDir, OsString) -> Result<(), OwnError>,
) -> Result<(), HostError> {
    let removed = OwnDir::around(path).and_then(|(parent, name)| {
        remove(&parent, name)?;
        // Otherwise the journal could say that it is gone, and a power cut would bring it back.
        match parent.sync() {
            // A directory of the kernel's own is on no disk (fsync(2)).
            Err(OwnError::System { source, .. })
                if source.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) =>
            {
                Ok(())
            }
            synced => synced,
        }
    });
    match removed {
        Err(error) if error.is_missing() => Ok(()),
        removed => removed.map_err(|error| refused(REMOVE, path, error)),
    }
}

/// Makes what has a name in the directory it lies in, which is held open, as [`in_parent`] removes it.
///
/// # Errors
/// As [`in_parent`]; that directory is gone.
pub(super) fn make_in_parent<T>(
    what: &'static str,
    path: &Path,
    make: impl FnOnce(&OwnDir, OsString) -> Result<T, OwnError>,
) -> Result<T, HostError> {
    let made = OwnDir::around(path).and_then(|(parent, name)| make(&parent, name));
    made.map_err(|error| refused(what, path, error))
}

/// The error that something of a path was not done. Where what failed is something else, such as to open a directory on the
/// way, the error says that: it is not what was to be made or removed.
pub(super) fn refused(what: &'static str, path: &Path, error: OwnError) -> HostError {
    match error {
        OwnError::System {
            tried,
            path: at,
            source,
        } => {
            let what = if path.starts_with(&at) && at != path {
                tried
            } else {
                what
            };
            HostError::path(what, &at, source)
        }
        // What was to be made is not to be removed: its error may not advise that.
        error if what == REMOVE => HostError::NotOurs {
            path: path.to_path_buf(),
            why: error.to_string(),
        },
        error => HostError::path(what, path, std::io::Error::other(error)),
    }
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
    fn what_is_not_made_is_not_said_to_be_left() {
        let base = tempfile::tempdir().unwrap();
        let link = base.path().join("link");
        std::os::unix::fs::symlink(base.path(), &link).unwrap();
        let refused = refused("hold", &link, OwnError::Link { path: link.clone() });
        let said = format!("{refused}; {}", refused.next());
        assert!(
            said.starts_with("cannot hold ") && said.contains("is a link"),
            "{said}"
        );
        assert!(!said.contains("remove"), "{said}");
    }

    #[test]
    fn a_directory_on_the_way_that_cannot_be_opened_is_not_said_to_be_what_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let above = base.path().join("a".repeat(300));
        let said = remove(&above.join(".stackrace-t"), &[])
            .unwrap_err()
            .to_string();
        assert!(said.contains(&format!("{}: ", above.display())), "{said}");
        assert!(!said.contains("remove"), "{said}");
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
