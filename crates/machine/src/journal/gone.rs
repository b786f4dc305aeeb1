//! Whether what an entry names is gone: found by what it is, and not only by its path.
//!
//! A directory above it may have been renamed, or something mounted over it. At its path there is nothing
//! then, and it is as much there as before.

use super::entry::Undo;
use super::peers;
use crate::host::thing::{boot_of, is_same_name, mounted};
use crate::host::{Host, HostError, MadeThing, MountInfo, Whereabouts, argv};
use stackrace_base::event::{again, again_in, shell};
use stackrace_base::unit::ShownPath;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The layers' word for the undo of a device on a file; the file is its first word.
const DETACH: &str = "detach";

/// Advice about something that was moved.
const MOVE_BACK: &str = "move it back";

/// Parts of a store in which a run keeps its own directory.
const IN_A_STORE: [&str; 2] = ["runs", "probes"];

/// The thing just made by an entry, where that can be told.
pub(super) fn made(host: &dyn Host, undo: &Undo) -> Option<MadeThing> {
    match undo {
        Undo::RemoveFile(path) | Undo::RemoveDir(path) | Undo::RemoveTree(path) => {
            host.thing_at(path)
        }
        Undo::Unmount(path) => {
            let mounts = host.mounts().ok()?;
            let mut topmost_first = mounts.iter().rev();
            let mount = topmost_first.find(|mount| mount.mount_point == *path)?;
            Some(mounted(mount, boot(host)))
        }
        Undo::OnPeer {
            host: name, undo, ..
        } => made(peers::named(host, name).ok()?, undo),
        Undo::Layer(_) => host.thing_at(file_of(undo)?),
        Undo::Blank { .. }
        | Undo::WriteBack { .. }
        | Undo::EndMachine(_)
        | Undo::EndProcess { .. } => None,
    }
}

/// Text that tells the present start of a machine from others.
fn boot(host: &dyn Host) -> Option<String> {
    let text = host.read_text(Path::new(peers::BOOT)).ok()?;
    Some(boot_of(&text))
}

/// The file under a device that is detached.
fn file_of(undo: &Undo) -> Option<&Path> {
    match undo {
        Undo::Layer(undo) if undo.undo == DETACH => undo.of.first().map(Path::new),
        _ => None,
    }
}

/// Refuses to take nothing for something that was removed: it is looked for.
///
/// # Errors
/// It was moved, is hidden, or something else is in its place.
pub(super) fn check_before(
    host: &dyn Host,
    undo: &Undo,
    thing: Option<&MadeThing>,
) -> Result<(), HostError> {
    let path = match undo {
        Undo::RemoveFile(path) | Undo::RemoveDir(path) | Undo::RemoveTree(path) => path,
        Undo::OnPeer {
            host: name, undo, ..
        } => return check_before(peers::named(host, name)?, undo, thing),
        _ => return Ok(()),
    };
    thing.map_or(Ok(()), |thing| is_here_or_gone(host, path, thing))
}

/// Looks for something that was made at a path.
///
/// # Errors
/// It was moved, is hidden, or something else is in its place.
pub fn is_here_or_gone(host: &dyn Host, path: &Path, thing: &MadeThing) -> Result<(), HostError> {
    let now = host.thing_at(path);
    if now.as_ref().is_some_and(|now| thing.is(now)) {
        return Ok(());
    }
    let other = now.is_some();
    if !other {
        // To a machine that is lost it looks as if there were nothing.
        host.answers()?;
    }
    let clean = host.cleaned_by();
    match host.find_thing(thing, path) {
        // Whatever took its name was not made by the run.
        Whereabouts::Gone if other => Err(HostError::NotOurs {
            path: path.to_path_buf(),
            why: "it is not what the run made there".to_owned(),
        }),
        Whereabouts::Gone => Ok(()),
        Whereabouts::MovedTo(to) => Err(moved(host, path, &to)),
        Whereabouts::HiddenBy(point) => Err(HostError::Moved {
            path: path.to_path_buf(),
            why: format!("it is hidden: something is mounted at {}", point.shown()),
            next: format!(
                "{}, then: {clean}",
                shell(&["umount".as_ref(), point.as_os_str()])
            ),
        }),
        Whereabouts::NotMounted => Err(HostError::Moved {
            path: path.to_path_buf(),
            why: format!("its file system ({}) is not mounted", thing.file_system),
            next: format!("mount it again, then: {clean}"),
        }),
        Whereabouts::NotKnown => Err(HostError::Moved {
            path: path.to_path_buf(),
            why: "the directory that it was in is not there".to_owned(),
            next: format!("{MOVE_BACK}, then: {clean}"),
        }),
    }
}

/// Looks whether something is still there although its undo succeeded.
///
/// # Errors
/// It is mounted or attached elsewhere.
pub(super) fn check_after(
    host: &dyn Host,
    undo: &Undo,
    thing: Option<&MadeThing>,
) -> Result<(), HostError> {
    match undo {
        Undo::Unmount(path) => {
            let mounts = host.mounts()?;
            let thing = thing.filter(|thing| thing.is_of_this_start(boot(host)));
            let mut left = mounts.iter().filter(|mount| is_ours(mount, path, thing));
            left.next().map_or(Ok(()), |mount| {
                let moved = moved(host, path, &mount.mount_point);
                Err(still("mounted", &mount.mount_point, moved))
            })
        }
        Undo::OnPeer {
            host: name, undo, ..
        } => check_after(peers::named(host, name)?, undo, thing),
        _ => {
            let Some(file) = file_of(undo) else {
                return Ok(());
            };
            let left = match thing {
                Some(thing) => device_on(host, thing, file)?,
                None => device_by_name(host, file),
            };
            left.map_or(Ok(()), |(device, now)| {
                let what = format!("attached to {}", device.shown());
                Err(still(&what, &now, moved(host, file, &now)))
            })
        }
    }
}

/// A loop device on a file of the same name in a directory of the same name, for journals without numbers:
/// that directory's name carries 16 random digits.
fn device_by_name(host: &dyn Host, file: &Path) -> Option<(PathBuf, PathBuf)> {
    let last = |path: &Path| -> Option<PathBuf> {
        let directory = path.parent()?.file_name()?;
        Some(Path::new(directory).join(path.file_name()?))
    };
    if host.exists(file) {
        return None;
    }
    let block = Path::new("/sys/block");
    let names = host.list(block).unwrap_or_default();
    names.iter().find_map(|name| {
        let about = host.read_text(&block.join(name).join("loop/backing_file"));
        let now = PathBuf::from(about.ok()?.trim_end_matches('\n'));
        (last(&now) == last(file)).then(|| (Path::new("/dev").join(name), now))
    })
}

/// Returns true if a mount is what was mounted at a path, wherever it is now; `thing` is of this
/// start of the machine.
fn is_ours(mount: &MountInfo, path: &Path, thing: Option<&MadeThing>) -> bool {
    if let Some(thing) = thing {
        return thing.is_mount(mount, path);
    }
    // Older journals have the path alone. Its last name carries 16 random digits.
    is_same_name(&mount.mount_point, path)
}

/// A loop device on a file, found by the file's numbers, and where the file is.
fn device_on(
    host: &dyn Host,
    thing: &MadeThing,
    file: &Path,
) -> Result<Option<(PathBuf, PathBuf)>, HostError> {
    if !thing.is_of_this_start(boot(host)) {
        // Loop devices end with the machine.
        return Ok(None);
    }
    let output = host.exec(&argv([
        "losetup",
        "--list",
        "--raw",
        "--noheadings",
        "--output",
        "NAME,BACK-INO,BACK-MAJ:MIN,BACK-FILE",
    ]))?;
    if output.status != Some(0) {
        // BusyBox has a losetup that lists no numbers.
        return Ok(device_by_name(host, file));
    }
    let (major, minor) = thing.device;
    let device = format!("{major}:{minor}");
    let inode = thing.inode.map(|inode| inode.to_string());
    let found = output.stdout.lines().find_map(|line| {
        let mut fields = line.splitn(4, ' ');
        let name = fields.next()?;
        // Old versions of losetup write the blanks that align a column as `\x20`.
        let mut number = || Some(fields.next()?.replace("\\x20", ""));
        let same = number() == inode && number().as_deref() == Some(&*device);
        let file = fields.next().unwrap_or_default();
        same.then(|| (PathBuf::from(name), PathBuf::from(file)))
    });
    Ok(found)
}

/// The same error of something that still works where it is.
fn still(what: &str, now: &Path, moved: HostError) -> HostError {
    match moved {
        HostError::Moved { path, why, next } => HostError::Moved {
            why: match path == now {
                true => format!("it is still {what}"),
                false => format!("it is still {what}; {why}"),
            },
            path,
            next,
        },
        other => other,
    }
}

/// The error that something has another path; what was renamed is told from what only moved along.
fn moved(host: &dyn Host, path: &Path, now: &Path) -> HostError {
    let clean = host.cleaned_by();
    let parts = |path: &Path| -> Vec<_> {
        path.components()
            .map(|it| it.as_os_str().to_owned())
            .collect()
    };
    let (was, is) = (parts(path), parts(now));
    let same = was.iter().rev().zip(is.iter().rev());
    let along = same.take_while(|(was, is)| was == is).count();
    let above = |parts: &[_]| -> PathBuf { parts[..parts.len() - along].iter().collect() };
    let (before, after) = (above(&was), above(&is));
    let why = match before == *path {
        true => format!("it was moved to {}", now.shown()),
        false => format!("{} was moved to {}", before.shown(), after.shown()),
    };
    HostError::Moved {
        path: path.to_path_buf(),
        why,
        // A store of another machine cannot be named here.
        next: match store_of(now).filter(|_| before != *path && clean == again(&["clean"])) {
            Some(store) => format!("move it back, or name it: {}", again_in(&["clean"], &store)),
            None => format!("{MOVE_BACK}, then: {clean}"),
        },
    }
}

/// The store in whose run something lies; `None` if it lies in no run's own directory.
fn store_of(path: &Path) -> Option<PathBuf> {
    let mut store = PathBuf::new();
    for part in path.components() {
        let kept = |name: &&str| part == Component::Normal(OsStr::new(name));
        if IN_A_STORE.iter().any(kept) {
            return Some(store);
        }
        store.push(part);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::local::LocalHost;
    use std::sync::Arc;

    #[test]
    fn the_directory_that_was_renamed_is_named_with_the_command() {
        let said = |was: &str, now: &str| {
            let host = LocalHost::new(Arc::new(|_| ()));
            let moved = moved(&host, Path::new(was), Path::new(now));
            format!("{moved}; {}", moved.next())
        };
        assert_eq!(
            said("/var/s/runs/r/mnt/m", "/var/t/runs/r/mnt/m"),
            "it is not gone: /var/s was moved to /var/t; move it back, or name it: \
             stackrace clean --store /var/t"
        );
        assert_eq!(
            said("/srv/.stackrace-a", "/srv/.stackrace-ax"),
            "it is not gone: it was moved to /srv/.stackrace-ax; move it back, then: stackrace clean"
        );
    }

    #[test]
    fn a_mount_of_ours_is_known_wherever_its_directory_is_now() {
        let table = |line: &str| crate::host::mountinfo::parse(line.as_bytes()).remove(0);
        let name = ".stackrace-t-0123456789abcdef-mnt";
        let point = Path::new("/s/mnt").join(name);
        let ours = table(&format!("9 1 7:0 / /s/mnt/{name} rw - ext4 /dev/loop0 rw"));
        let thing = mounted(&ours, Some("a start".to_owned()));
        for (line, expected) in [
            ("9 1 7:0 / /t/other rw - ext4 /dev/loop0 rw", true),
            ("8 1 7:0 / /t/NAME rw - ext4 /dev/loop0 rw", true),
            // Another one, at a number that was free again.
            ("8 1 7:0 / /media/usb rw - ext4 /dev/loop0 rw", false),
            ("9 1 7:1 / /t/other rw - ext4 /dev/loop1 rw", false),
        ] {
            let mount = table(&line.replace("NAME", name));
            assert_eq!(is_ours(&mount, &point, Some(&thing)), expected, "{line}");
        }
        // What an older program wrote: the name alone.
        let moved = table(&format!("8 1 7:9 / /t/{name} rw - ext4 /dev/loop0 rw"));
        assert!(is_ours(&moved, &point, None));
        let other = table("8 1 7:9 / /t/mnt rw - ext4 /dev/loop0 rw");
        assert!(!is_ours(&other, &point, None));
    }
}
