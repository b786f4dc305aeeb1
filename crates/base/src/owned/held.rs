//! A directory in which a workload works while other users may rename the directories above it.
//!
//! A workload opens files by path. If a directory on the path belongs to another user, that user
//! can replace any name in it by a link, and root would write behind the link. So the work's own
//! directory is opened once, and every path of the workload begins at that descriptor: the kernel
//! follows `/proc/self/fd/N` to the directory itself, wherever its name leads by then
//! (proc_pid_fd(5)).

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::AtFlags;

use super::error::OwnError;
use super::{DESCRIPTORS, OwnDir};

/// The directories that are held, by descriptor, with the paths that people know: where the kernel says
/// that one is now may be a name that another user gave it.
static HELD: Mutex<BTreeMap<RawFd, PathBuf>> = Mutex::new(BTreeMap::new());

/// A directory that is the caller's own, held open, with a path that only it can have.
#[derive(Debug)]
pub struct HeldDir {
    dir: OwnDir,
    path: PathBuf,
}

impl HeldDir {
    /// Holds a directory that was just made.
    ///
    /// # Errors
    /// It is not there, is a link or reached through one of another user's, is another user's, or
    /// others may write it: something else was put in its place.
    pub fn open(path: &Path) -> Result<Self, OwnError> {
        if !cfg!(target_os = "linux") {
            return Self::open_by_name(path);
        }
        let (parent, name) = OwnDir::around(path)?;
        let dir = match has_owners(&parent) {
            true => parent.dir(name)?.obeyed()?,
            false => parent.dir_of_any(&name)?,
        };
        let number = dir.handle.as_raw_fd();
        HELD.lock().insert(number, dir.path.clone());
        let path = PathBuf::from(format!("{DESCRIPTORS}{number}"));
        Ok(Self { dir, path })
    }

    /// Holds a directory where no path follows a descriptor: it keeps its name. For root, all directories
    /// above it must then be such that no other user can rename them.
    fn open_by_name(path: &Path) -> Result<Self, OwnError> {
        let dir = OwnDir::open(path)?;
        let path = dir.path.clone();
        Ok(Self { dir, path })
    }

    /// Its path for this process, good as long as it is held.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path as people and other machines know it.
    pub fn known_path(&self) -> &Path {
        &self.dir.path
    }

    /// Device (`MAJOR:MINOR`) and inode of a file in it, as losetup(8) prints them; no link is followed.
    ///
    /// # Errors
    /// It is not there.
    pub fn identity(&self, name: &str) -> Result<[String; 2], OwnError> {
        let found = rustix::fs::statat(self.dir.handle.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        let about =
            found.map_err(|errno| OwnError::system("look at", &self.dir.path.join(name), errno))?;
        let (major, minor) = (
            rustix::fs::major(about.st_dev),
            rustix::fs::minor(about.st_dev),
        );
        Ok([format!("{major}:{minor}"), about.st_ino.to_string()])
    }
}

/// Returns true if a file system keeps the owners that the system gives to files.
///
/// Over NFS root may be mapped to another user; SMB, 9P and FUSE say what they like; FAT, exFAT and NTFS
/// have the owner of their mount. There the owner of a directory says nothing about who made it.
fn has_owners(dir: &OwnDir) -> bool {
    // Numbers of statfs(2).
    const WITHOUT: [u64; 9] = [
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB 2 and newer
        0x0102_1997, // 9P
        0x6573_5546, // FUSE
        0x4d44,      // FAT
        0x2011_bab0, // exFAT
        0x5346_544e, // NTFS
        0x7366_746e, // NTFS3
    ];
    let kind = stackrace_system::file_system_kind(&dir.handle);
    kind.is_ok_and(|kind| !WITHOUT.contains(&kind.into()))
}

impl Drop for HeldDir {
    fn drop(&mut self) {
        // Before it is closed: the number may be another's at once.
        HELD.lock().remove(&self.dir.handle.as_raw_fd());
    }
}

/// A text for people: what is held has the path that they know.
pub fn with_real_names(text: &str) -> String {
    let held = HELD.lock();
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once(DESCRIPTORS) {
        told.push_str(before);
        let digits = from.find(|next: char| !next.is_ascii_digit());
        let (number, after) = from.split_at(digits.unwrap_or(from.len()));
        let path = number.parse().ok().and_then(|number| held.get(&number));
        match path {
            Some(path) => told.push_str(&path.to_string_lossy()),
            None => told.extend([DESCRIPTORS, number]),
        }
        rest = after;
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt, symlink};

    fn private(path: &Path) {
        fs::DirBuilder::new().mode(0o700).create(path).unwrap();
    }

    #[test]
    fn what_is_held_stays_the_same_directory_when_its_name_leads_elsewhere() {
        let base = tempfile::tempdir().unwrap();
        let [ours, away, others] = ["ours", "away", "others"].map(|name| base.path().join(name));
        private(&ours);
        private(&others);
        let held = HeldDir::open(&ours).unwrap();
        fs::rename(&ours, &away).unwrap();
        symlink(&others, &ours).unwrap();
        fs::write(held.path().join("data"), b"x").unwrap();
        assert!(away.join("data").exists() && !others.join("data").exists());
        // What opens below the store goes the same way.
        let (dir, name) = OwnDir::around(&held.path().join("data")).unwrap();
        dir.remove_file(name).unwrap();
        assert!(!away.join("data").exists());
    }

    #[test]
    fn a_link_and_a_directory_that_others_may_write_are_not_held() {
        let base = tempfile::tempdir().unwrap();
        let [open, link] = ["open", "link"].map(|name| base.path().join(name));
        fs::DirBuilder::new().mode(0o700).create(&open).unwrap();
        symlink(&open, &link).unwrap();
        assert!(matches!(HeldDir::open(&link), Err(OwnError::Link { .. })));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(&open, mode).unwrap();
        assert!(matches!(
            HeldDir::open(&open),
            Err(OwnError::Writable { .. })
        ));
    }

    /// Holds a directory by name, as on systems where no path follows a descriptor.
    #[test]
    fn a_directory_that_is_held_by_name_has_its_own_path() {
        let base = tempfile::tempdir().unwrap();
        let ours = base.path().join("ours");
        private(&ours);
        let held = HeldDir::open_by_name(&ours).unwrap();
        assert_eq!((held.path(), held.known_path()), (&*ours, &*ours));
        // Root does not work below a directory in which others could put another one.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(base.path(), mode).unwrap();
        let root = rustix::process::geteuid().is_root();
        assert_eq!(HeldDir::open_by_name(&ours).is_err(), root);
    }

    #[test]
    fn people_read_the_path_they_know() {
        let base = tempfile::tempdir().unwrap();
        let ours = base.path().join("ours");
        private(&ours);
        let held = HeldDir::open(&ours).unwrap();
        let text =
            |path: &Path| format!("cannot write {0}/data: no space; see {0}", path.display());
        assert_eq!(with_real_names(&text(held.path())), text(&ours));
        // Also when another user has given it another name, or removed it.
        fs::remove_dir(&ours).unwrap();
        assert_eq!(with_real_names(&text(held.path())), text(&ours));
        // Of nothing that is held, nothing is said.
        let none = "cannot write /proc/self/fd/987654/data";
        assert_eq!(with_real_names(none), none);
    }
}
