//! What a run made, told apart from whatever is at its path later, and found again when it was moved.

use super::{MountInfo, identity, reading, tree};
use serde::{Deserialize, Serialize};
use stackrace_engine::system;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// So many names are looked at for something that was moved: a moment, also on a slow disk.
const NAMES_MAX: usize = 200_000;

/// A file, a directory or a mount as it was right after it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeThing {
    /// Device number of its file system: major, minor; it holds until the machine is started again.
    pub device: (u32, u32),
    /// Its number in the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// The number of the directory that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// When it was made, ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ns: Option<u64>,
    /// Of a mount, the kernel's number of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<u64>,
    /// The kind of its file system.
    pub file_system: String,
    /// The start of the machine in which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// Where something is that is not at the path that it was made at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// It does not exist any more.
    Gone,
    /// It has another path.
    MovedTo(PathBuf),
    /// Something is mounted here, over a directory above it.
    HiddenBy(PathBuf),
    /// Its file system is not mounted.
    NotMounted,
    /// There was too much to look at.
    NotKnown,
}

/// What tells one start of the machine from another.
fn boot() -> Option<String> {
    let text = reading::text(Path::new(identity::BOOT)).ok()?;
    Some(text.trim().to_owned())
}

fn number(about: &std::fs::Metadata) -> (u32, u32) {
    system::device_parts(about.dev())
}

fn made_ns(about: &std::fs::Metadata) -> Option<u64> {
    let made = about.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(made.as_nanos()).ok()
}

/// What is at a path, links not followed; none: nothing, or its numbers do not last.
pub(super) fn at(path: &Path, mounts: &[MountInfo]) -> Option<MadeThing> {
    let about = path.symlink_metadata().ok()?;
    let parent = path.parent()?.symlink_metadata().ok()?;
    let device = number(&about);
    let mount = mounts.iter().rev().find(|mount| mount.st_dev == device)?;
    identity::has_lasting_inodes(&mount.file_system).then(|| MadeThing {
        device,
        inode: Some(about.ino()),
        parent: Some(parent.ino()),
        made_ns: made_ns(&about),
        mount: None,
        file_system: mount.file_system.clone(),
        boot: boot(),
    })
}

/// A mount that was just made.
pub(crate) fn mounted(mount: &MountInfo) -> MadeThing {
    MadeThing {
        device: mount.st_dev,
        inode: None,
        parent: None,
        made_ns: None,
        // No real mount has the number 0.
        mount: Some(mount.id).filter(|id| *id != 0),
        file_system: mount.file_system.clone(),
        boot: boot(),
    }
}

/// Whether two paths end alike from the last name on that carries 16 random digits of a run.
pub(crate) fn is_same_name(a: &Path, b: &Path) -> bool {
    fn tail(path: &Path) -> Option<Vec<&OsStr>> {
        let names: Vec<&OsStr> = path.iter().collect();
        let ours = |name: &&OsStr| name.as_bytes().starts_with(tree::MARK.as_bytes());
        let from = names.iter().rposition(ours)?;
        Some(names[from..].to_vec())
    }
    tail(a).is_some_and(|a| Some(a) == tail(b))
}

impl MadeThing {
    /// Whether it was made since the machine was started, so that device numbers still hold.
    pub(crate) fn is_of_this_start(&self) -> bool {
        match (&self.boot, boot()) {
            (Some(then), Some(now)) => *then == now,
            _ => false,
        }
    }

    /// Whether what is seen now is the same.
    pub(crate) fn is(&self, now: &Self) -> bool {
        let numbered = self.boot != now.boot || self.device == now.device;
        // A disk that was away may have another number: number and nanosecond are enough.
        let same = match self.made_ns.zip(now.made_ns) {
            Some((then, now)) => then == now,
            None => numbered,
        };
        self.inode == now.inode && same
    }

    /// Whether a mount is the one that was made: it has its number, or its directory.
    pub(crate) fn is_mount(&self, mount: &MountInfo, point: &Path) -> bool {
        self.device == mount.st_dev
            && self.file_system == mount.file_system
            && (self.mount.is_some_and(|id| id == mount.id)
                || is_same_name(&mount.mount_point, point))
    }
}

/// Looks for something that is not at its path.
pub(super) fn find(thing: &MadeThing, path: &Path, mounts: &[MountInfo]) -> Whereabouts {
    let own: Vec<&MountInfo> = match thing.is_of_this_start() {
        true => mounts
            .iter()
            .filter(|mount| mount.st_dev == thing.device)
            .collect(),
        // After another start its file system may have another number: the one at its path is meant.
        false => around(path, mounts).into_iter().collect(),
    };
    if own.is_empty() {
        // What was in memory is gone with its file system.
        return match identity::is_in_memory(&thing.file_system) {
            true => Whereabouts::Gone,
            false => Whereabouts::NotMounted,
        };
    }
    if let Some(over) = covering(thing, path, mounts) {
        return Whereabouts::HiddenBy(over);
    }
    // Renamed where it was, or moved with a directory above it: the nearest places first.
    let mut left = NAMES_MAX;
    let near = path.ancestors().skip(1).find(|above| above.is_dir());
    let near = near.filter(|near| is_on(near, &own)).map(Path::to_path_buf);
    let roots = own.iter().map(|mount| mount.mount_point.clone());
    let mut whole = true;
    for root in near.into_iter().chain(roots) {
        match below(&root, thing, &mut left) {
            Ok(Some(found)) => return Whereabouts::MovedTo(found),
            Ok(None) => {}
            Err(()) => whole = false,
        }
    }
    let parent = path
        .parent()
        .and_then(|parent| parent.symlink_metadata().ok());
    let same_parent = parent.is_some_and(|parent| Some(parent.ino()) == thing.parent);
    match whole || same_parent {
        // Its directory is there, and it is not in it: it was removed.
        true => Whereabouts::Gone,
        false => Whereabouts::NotKnown,
    }
}

/// The mount that a path lies on, by its place in the table.
fn around<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let holds = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    holds.max_by_key(|mount| mount.mount_point.components().count())
}

fn is_on(path: &Path, mounts: &[&MountInfo]) -> bool {
    let Ok(about) = path.symlink_metadata() else {
        return false;
    };
    mounts.iter().any(|mount| mount.st_dev == number(&about))
}

/// Where something is mounted over a directory above it.
fn covering(thing: &MadeThing, path: &Path, mounts: &[MountInfo]) -> Option<PathBuf> {
    if !thing.is_of_this_start() {
        return None;
    }
    let seen = around(path, mounts)?;
    let own = mounts.iter().find(|mount| mount.st_dev == thing.device)?;
    // The mount that is seen at its path is another one, and lies at or below its own.
    let covers = seen.st_dev != thing.device && seen.mount_point.starts_with(&own.mount_point);
    covers.then(|| seen.mount_point.clone())
}

/// Looks below a directory, on its file system alone.
///
/// # Errors
/// There was too much to look at.
fn below(root: &Path, thing: &MadeThing, left: &mut usize) -> Result<Option<PathBuf>, ()> {
    let Ok(device) = root.symlink_metadata().map(|about| about.dev()) else {
        return Ok(None);
    };
    // Breadth first: what was moved is rarely far away.
    let mut open = VecDeque::from([root.to_path_buf()]);
    while let Some(directory) = open.pop_front() {
        // What this user may not read was not moved by this user, and is nothing to remove.
        let Ok(names) = std::fs::read_dir(&directory) else {
            continue;
        };
        for name in names.flatten() {
            *left = left.checked_sub(1).ok_or(())?;
            let Ok(about) = name.metadata() else {
                continue;
            };
            if about.dev() != device {
                continue;
            }
            let same = Some(about.ino()) == thing.inode
                && made_ns(&about)
                    .zip(thing.made_ns)
                    .is_none_or(|(now, then)| now == then);
            if same {
                return Ok(Some(name.path()));
            }
            if about.is_dir() {
                open.push_back(name.path());
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::local::LocalHost;
    use super::super::{Host, Whereabouts};
    use std::sync::Arc;

    #[test]
    fn what_was_renamed_or_moved_with_its_directory_is_found_and_what_was_removed_is_gone() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (above, away) = (base.join("above"), base.join("away"));
        let path = above.join("d");
        std::fs::create_dir_all(&path).unwrap();
        let thing = host.thing_at(&path).unwrap();
        assert!(thing.is(&host.thing_at(&path).unwrap()));
        std::fs::rename(&path, above.join("e")).unwrap();
        let found = host.find_thing(&thing, &path);
        assert_eq!(found, Whereabouts::MovedTo(above.join("e")));
        std::fs::rename(above.join("e"), &path).unwrap();
        std::fs::rename(&above, &away).unwrap();
        let found = host.find_thing(&thing, &path);
        assert_eq!(found, Whereabouts::MovedTo(away.join("d")));
        std::fs::remove_dir(away.join("d")).unwrap();
        std::fs::rename(&away, &above).unwrap();
        assert_eq!(host.find_thing(&thing, &path), Whereabouts::Gone);
    }

    #[test]
    fn another_directory_with_the_same_name_is_not_the_same_thing() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("d");
        std::fs::create_dir(&path).unwrap();
        let thing = host.thing_at(&path).unwrap();
        std::fs::rename(&path, base.path().join("e")).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(!thing.is(&host.thing_at(&path).unwrap()));
    }
}
