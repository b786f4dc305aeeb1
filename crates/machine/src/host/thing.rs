//! What a run made, told apart from whatever is at its path later, and found again when it was moved.

use super::{MountInfo, identity, tree};
use serde::{Deserialize, Serialize};
use stackrace_base::event::is_in_memory;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Most names looked at for something that was moved: a moment, also on a slow disk.
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
    /// Time at which it was made, ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ns: Option<u64>,
    /// The kernel's number of a mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<u64>,
    /// The kind of its file system.
    pub file_system: String,
    /// The start of the machine in which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// Place of a thing that is not at the path that it was made at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whereabouts {
    /// The thing does not exist any more.
    Gone,
    /// Its new path.
    MovedTo(PathBuf),
    /// The mount point, over a directory above it, that hides it.
    HiddenBy(PathBuf),
    /// Its file system is not mounted.
    NotMounted,
    /// The search ended early: there was too much to look at.
    NotKnown,
}

/// Numbers of a thing at a path as a machine tells them, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenThing {
    /// Device number of its file system: major, minor; 0 and 0 if the system has no table with such
    /// numbers.
    pub device: (u32, u32),
    /// Its number in the file system.
    pub inode: u64,
    /// Time at which it was made, ns since 1970; `None` if it is not known.
    pub made_ns: Option<u64>,
}

/// Too much was below a directory to look at all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

/// No table of mounts has this number.
const UNNUMBERED: (u32, u32) = (0, 0);

impl SeenThing {
    fn of(about: &std::fs::Metadata) -> Self {
        let made = about.created().ok();
        let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        Self {
            device: stackrace_system::device_parts(about.dev()),
            inode: about.ino(),
            made_ns: made.and_then(|made| u64::try_from(made.as_nanos()).ok()),
        }
    }
}

/// Reads what is at a path of this machine; `None` if nothing is.
pub(super) fn seen_here(path: &Path) -> Option<SeenThing> {
    Some(SeenThing::of(&path.symlink_metadata().ok()?))
}

/// The few reads by which something is found again, on whatever machine it is.
pub trait ThingReads {
    /// The numbers of what is at a path, links not followed; `None` if nothing is there.
    fn seen_at(&self, path: &Path) -> Option<SeenThing>;
    /// Path of a thing below a directory, on the directory's file system; `left` is how many names
    /// may be looked at, and becomes less.
    ///
    /// # Errors
    /// There was too much to look at.
    fn seen_below(
        &self,
        root: &Path,
        thing: &MadeThing,
        left: &mut usize,
    ) -> Result<Option<PathBuf>, TooMuch>;
    /// Returns true if it is a directory, links followed.
    fn leads_on(&self, path: &Path) -> bool;
    /// Every mount; `None` if it cannot be told.
    fn table(&self) -> Option<Vec<MountInfo>>;
    /// Kind of the file system that a path lies on, where no mounts are shown; `None` if that cannot be
    /// told either.
    fn kind_at(&self, _path: &Path) -> Option<String> {
        None
    }
    /// Text that tells the present start of the machine from others.
    fn boot(&self) -> Option<String>;
}

/// The same as the kernel's file says it.
pub fn boot_of(text: &str) -> String {
    text.trim().to_owned()
}

/// The thing at a path, links not followed; `None` if there is nothing, or its numbers do not last.
pub fn at(host: &dyn ThingReads, path: &Path) -> Option<MadeThing> {
    let seen = host.seen_at(path)?;
    let parent = host.seen_at(path.parent()?)?;
    let file_system = match (host.table(), seen.device) {
        (None, _) => host.kind_at(path)?,
        (Some(mounts), UNNUMBERED) => around(path, &mounts)?.file_system.clone(),
        (Some(mounts), device) => {
            let mut last_first = mounts.iter().rev();
            let mount = last_first.find(|mount| mount.st_dev == device)?;
            mount.file_system.clone()
        }
    };
    identity::has_lasting_inodes(&file_system).then(|| MadeThing {
        device: seen.device,
        inode: Some(seen.inode),
        parent: Some(parent.inode),
        made_ns: seen.made_ns,
        mount: None,
        file_system,
        boot: host.boot(),
    })
}

/// A mount that was just made.
pub(crate) fn mounted(mount: &MountInfo, boot: Option<String>) -> MadeThing {
    MadeThing {
        device: mount.st_dev,
        inode: None,
        parent: None,
        made_ns: None,
        // No real mount has the number 0.
        mount: Some(mount.id).filter(|id| *id != 0),
        file_system: mount.file_system.clone(),
        boot,
    }
}

/// Returns true if two paths end alike from the last name on that carries 16 random digits of a run.
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
    /// Returns true if it was made since the machine was started, so that device numbers still hold.
    pub(crate) fn is_of_this_start(&self, boot: Option<String>) -> bool {
        match (&self.boot, boot) {
            (Some(then), Some(now)) => *then == now && self.device != UNNUMBERED,
            _ => false,
        }
    }

    /// Returns true if the thing that is seen now is the same.
    pub fn is(&self, now: &Self) -> bool {
        let numbered = self.boot != now.boot || self.device == now.device;
        // A disk that was away may have another number: number and nanosecond are enough.
        let same = match self.made_ns.zip(now.made_ns) {
            Some((then, now)) => then == now,
            None => numbered,
        };
        self.inode == now.inode && same
    }

    /// Returns true if something of the same file system is the same.
    pub fn is_seen(&self, seen: &SeenThing) -> bool {
        let times = seen.made_ns.zip(self.made_ns);
        Some(seen.inode) == self.inode && times.is_none_or(|(now, then)| now == then)
    }

    /// Returns true if a mount is the one that was made: it has its number, or its directory.
    pub(crate) fn is_mount(&self, mount: &MountInfo, point: &Path) -> bool {
        self.device == mount.st_dev
            && self.file_system == mount.file_system
            && (self.mount.is_some_and(|id| id == mount.id)
                || is_same_name(&mount.mount_point, point))
    }
}

/// Looks for something that is not at its path. It works on any machine by the few reads that its host has.
pub fn find(host: &dyn ThingReads, thing: &MadeThing, path: &Path) -> Whereabouts {
    let Some(mounts) = host.table() else {
        return find_above(host, thing, path);
    };
    let numbered = thing.is_of_this_start(host.boot());
    let own: Vec<&MountInfo> = match numbered {
        true => mounts
            .iter()
            .filter(|mount| mount.st_dev == thing.device)
            .collect(),
        // After another start its file system may have another number: the one at its path is meant.
        false => around(path, &mounts).into_iter().collect(),
    };
    if own.is_empty() {
        // What was in memory is gone with its file system.
        return match is_in_memory(&thing.file_system) {
            true => Whereabouts::Gone,
            false => Whereabouts::NotMounted,
        };
    }
    if numbered && let Some(over) = covering(thing, path, &mounts) {
        return Whereabouts::HiddenBy(over);
    }
    // Renamed where it was, or moved with a directory above it: the nearest places first.
    let mut left = NAMES_MAX;
    let near = path.ancestors().skip(1).find(|above| host.leads_on(above));
    let is_own = |near: &&Path| {
        let seen = host.seen_at(near);
        seen.is_some_and(|seen| own.iter().any(|mount| mount.st_dev == seen.device))
    };
    let near = near.filter(is_own).map(Path::to_path_buf);
    let roots = own.iter().map(|mount| mount.mount_point.clone());
    let mut whole = true;
    for root in near.into_iter().chain(roots) {
        match host.seen_below(&root, thing, &mut left) {
            Ok(Some(found)) => return Whereabouts::MovedTo(found),
            Ok(None) => {}
            Err(TooMuch) => whole = false,
        }
    }
    let parent = path.parent().and_then(|parent| host.seen_at(parent));
    let same_parent = parent.is_some_and(|parent| Some(parent.inode) == thing.parent);
    // Without numbers of file systems, another one may hide it.
    match (whole && thing.device != UNNUMBERED) || same_parent {
        // Its directory is there, and it is not in it: it was removed.
        true => Whereabouts::Gone,
        false => Whereabouts::NotKnown,
    }
}

/// Looks where no mounts are shown: below the directories on its path that are on its file system, the
/// nearest and then the first of them.
fn find_above(host: &dyn ThingReads, thing: &MadeThing, path: &Path) -> Whereabouts {
    let device = Some(thing.device).filter(|device| *device != UNNUMBERED);
    let above = path.ancestors().skip(1);
    let seen: Vec<(&Path, bool)> = above
        .filter_map(|above| Some((above, Some(host.seen_at(above)?.device) == device)))
        .collect();
    let others = seen.iter().take_while(|(_, own)| !own).count();
    let own: Vec<&Path> = seen[others..]
        .iter()
        .filter_map(|(above, own)| own.then_some(*above))
        .collect();
    let [nearest, ..] = own[..] else {
        // What was in memory is gone with its file system, if nothing hides that.
        return match is_in_memory(&thing.file_system) {
            true => Whereabouts::Gone,
            false => Whereabouts::NotKnown,
        };
    };
    if let Some((over, _)) = seen[..others].last() {
        return Whereabouts::HiddenBy(over.to_path_buf());
    }
    let mut left = NAMES_MAX;
    for root in [nearest].into_iter().chain(own.last().copied()) {
        match host.seen_below(root, thing, &mut left) {
            Ok(Some(found)) => return Whereabouts::MovedTo(found),
            Ok(None) => {}
            Err(TooMuch) => return Whereabouts::NotKnown,
        }
    }
    Whereabouts::Gone
}

/// The mount that a path lies on, by its place in the table.
fn around<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let holds = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    holds.max_by_key(|mount| mount.mount_point.components().count())
}

/// The mount over a directory above a thing, which hides it.
fn covering(thing: &MadeThing, path: &Path, mounts: &[MountInfo]) -> Option<PathBuf> {
    let seen = around(path, mounts)?;
    let own = mounts.iter().find(|mount| mount.st_dev == thing.device)?;
    // The mount that is seen at its path is another one, and lies at or below its own.
    let covers = seen.st_dev != thing.device && seen.mount_point.starts_with(&own.mount_point);
    covers.then(|| seen.mount_point.clone())
}

/// Looks below a directory of this machine, on its file system alone; `left` names at most, which it lowers.
///
/// # Errors
/// There was too much to look at.
pub(super) fn seen_below_here(
    root: &Path,
    thing: &MadeThing,
    left: &mut usize,
) -> Result<Option<PathBuf>, TooMuch> {
    let Some(SeenThing { device, .. }) = seen_here(root) else {
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
            *left = left.checked_sub(1).ok_or(TooMuch)?;
            let Ok(about) = name.metadata() else {
                continue;
            };
            let seen = SeenThing::of(&about);
            if seen.device != device {
                continue;
            }
            if thing.is_seen(&seen) {
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
    use super::super::Host;
    use super::super::local::LocalHost;
    use super::*;
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

    /// A machine that shows no mounts: each path with its device and inode.
    struct Unlisted(Vec<(&'static str, u32, u64)>);

    impl ThingReads for Unlisted {
        fn seen_at(&self, path: &Path) -> Option<SeenThing> {
            let (_, device, inode) = self.0.iter().find(|(it, ..)| Path::new(it) == path)?;
            Some(SeenThing {
                device: (8, *device),
                inode: *inode,
                made_ns: None,
            })
        }

        fn seen_below(
            &self,
            root: &Path,
            thing: &MadeThing,
            left: &mut usize,
        ) -> Result<Option<PathBuf>, TooMuch> {
            *left = left.checked_sub(self.0.len()).ok_or(TooMuch)?;
            let below = self.0.iter().map(|(path, ..)| Path::new(path));
            let mut below = below.filter(|path| path.starts_with(root));
            let same = |path: &&Path| self.seen_at(path).is_some_and(|seen| thing.is_seen(&seen));
            Ok(below.find(same).map(Path::to_path_buf))
        }

        fn leads_on(&self, _path: &Path) -> bool {
            true
        }

        fn table(&self) -> Option<Vec<MountInfo>> {
            None
        }

        fn kind_at(&self, _path: &Path) -> Option<String> {
            Some("ext4".to_owned())
        }

        fn boot(&self) -> Option<String> {
            None
        }
    }

    #[test]
    fn where_no_mounts_are_shown_a_thing_is_found_along_its_path() {
        let (root, srv) = (("/", 1, 2), ("/srv", 1, 3));
        let path = Path::new("/srv/two/mark");
        let thing = at(
            &Unlisted(vec![root, srv, ("/srv/two", 1, 4), ("/srv/two/mark", 1, 5)]),
            path,
        );
        let found = |now: Vec<_>| find(&Unlisted(now), thing.as_ref().unwrap(), path);
        let away = vec![
            root,
            srv,
            ("/srv/two", 1, 9),
            ("/srv/away", 1, 4),
            ("/srv/away/mark", 1, 5),
        ];
        assert_eq!(found(away), Whereabouts::MovedTo("/srv/away/mark".into()));
        assert_eq!(found(vec![root, srv]), Whereabouts::Gone);
        let over = vec![root, srv, ("/srv/two", 7, 1)];
        assert_eq!(found(over), Whereabouts::HiddenBy("/srv/two".into()));
        // Its file system is not there, or under another one.
        assert_eq!(found(vec![("/", 2, 2)]), Whereabouts::NotKnown);
    }
}
