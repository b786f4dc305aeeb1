//! What `mount` prints on different systems, as one kind of table.
//!
//! POSIX has no command for this. Linux and NetBSD write `X on Y type T (…)`, FreeBSD and macOS
//! `X on Y (T, …)`, illumos, asked with -v, `X on Y type T … on DATE`.

use super::quoted;
use stackrace_base::event::StorageIdentity;
use stackrace_machine::host::identity::has_lasting_inodes;
use stackrace_machine::host::{MountInfo, mountinfo};
use std::path::{Path, PathBuf};

/// The command that shows all mounts on a system.
pub(super) fn command(system: &str) -> &'static str {
    match system {
        // Without -v the type is not shown there (mount(8) of illumos).
        "SunOS" => "mount -v",
        _ => "mount",
    }
}

/// Reads what that command prints; a line that cannot be understood is left out.
pub(super) fn parse(text: &str) -> Vec<MountInfo> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<MountInfo> {
    let (source, rest) = text.split_once(" on ")?;
    // The last of these words: a directory may have a name with either of them in it.
    let (point, file_system, options) = match rest.rsplit_once(" type ") {
        Some((point, about)) => {
            let (kind, options) = about.split_once(' ').unwrap_or((about, ""));
            (point, kind, options)
        }
        None => {
            let (point, about) = rest.rsplit_once(" (")?;
            let about = about.trim_end().strip_suffix(')')?;
            let (kind, options) = about.split_once(',').unwrap_or((about, ""));
            (point, kind, options)
        }
    };
    if !point.starts_with('/') || file_system.is_empty() {
        return None;
    }
    // Between slashes and without parentheses on illumos alone: elsewhere a slash belongs to a path.
    let between = match rest.trim_end().ends_with(')') {
        true => ',',
        false => '/',
    };
    // On illumos the date of the mount stands behind the options.
    let options = options.split(" on ").next().unwrap_or_default();
    let options = options
        .trim_matches(|c: char| c.is_whitespace() || "()".contains(c))
        .split(between)
        .map(|option| option.trim().to_owned());
    Some(MountInfo {
        // None of these is told; no number of a real mount is 0.
        id: 0,
        st_dev: (0, 0),
        root: PathBuf::from("/"),
        mount_point: PathBuf::from(point),
        options: options.filter(|option| !option.is_empty()).collect(),
        file_system: file_system.to_owned(),
        source: source.into(),
    })
}

/// The mount of a table that is seen at a path.
pub(super) fn seen(table: Vec<MountInfo>, path: &Path) -> Option<MountInfo> {
    let holds = table
        .into_iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    // Of two at one place the last hides the other.
    holds.max_by_key(|mount| mount.mount_point.components().count())
}

/// The same of Linux, which tells the number of the device too; none: it is another system.
pub(super) fn seen_on_linux(
    system: &str,
    ask: &dyn Fn(&str) -> Option<String>,
    path: &Path,
) -> Option<MountInfo> {
    let table = match system {
        "Linux" => ask("cat /proc/self/mountinfo")?,
        _ => return None,
    };
    seen(mountinfo::parse(table.as_bytes()), path)
}

/// With the numbers of a directory and of its file system, as far as commands tell them.
pub(super) fn numbered(
    identity: StorageIdentity,
    ask: &dyn Fn(&str) -> Option<String>,
    path: &Path,
) -> StorageIdentity {
    let p = quoted(path.as_os_str());
    let inode = || {
        let told = ask(&format!("ls -di {p}"))?;
        told.split_whitespace().next()?.parse().ok()
    };
    // POSIX has no command for the number of a file system; GNU and BusyBox have one.
    let id = ask(&format!("stat -f -c %i {p} 2>/dev/null"));
    let id = id.and_then(|id| u64::from_str_radix(id.trim(), 16).ok());
    StorageIdentity {
        inode: match has_lasting_inodes(&identity.file_system) {
            true => inode(),
            false => None,
        },
        file_system_id: id.filter(|id| *id != 0),
        ..identity
    }
}

/// What is said of a directory on a system that shows no mounts.
pub(super) fn unknown() -> MountInfo {
    let unknown = "not told by the system";
    MountInfo {
        id: 0,
        st_dev: (0, 0),
        root: PathBuf::from("/"),
        mount_point: PathBuf::from(unknown),
        options: vec![unknown.to_owned()],
        file_system: unknown.to_owned(),
        source: unknown.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last file system of a text: its source, mount point, kind and options.
    fn read(text: &str) -> Option<(String, PathBuf, String, String)> {
        let one = parse(text).pop()?;
        let source = one.source.to_string_lossy().into_owned();
        let options = one.options.join(" ");
        Some((source, one.mount_point, one.file_system, options))
    }

    #[test]
    fn the_tables_of_five_systems_are_understood() {
        for (text, source, point, kind, options) in [
            (
                "/dev/loop0 on /mnt/a b type ext4 (rw,noatime)\n",
                "/dev/loop0",
                "/mnt/a b",
                "ext4",
                "rw noatime",
            ),
            (
                "/dev/md0 on /mnt (ufs, local, soft-updates)",
                "/dev/md0",
                "/mnt",
                "ufs",
                "local soft-updates",
            ),
            (
                "tank/data on /tank/data type zfs read/write/setuid/devices/xattr/atime/dev=4510014 on Thu Jan  1 00:00:00 2026",
                "tank/data",
                "/tank/data",
                "zfs",
                "read write setuid devices xattr atime dev=4510014",
            ),
            (
                "/dev/disk4 on /private/tmp/x (hfs, local, nodev, nosuid)",
                "/dev/disk4",
                "/private/tmp/x",
                "hfs",
                "local nodev nosuid",
            ),
            (
                "/dev/vnd0a on /mnt type ffs (local)",
                "/dev/vnd0a",
                "/mnt",
                "ffs",
                "local",
            ),
            (
                "overlay on / type overlay (rw,lowerdir=/a/b:/c)",
                "overlay",
                "/",
                "overlay",
                "rw lowerdir=/a/b:/c",
            ),
            // Without options NetBSD leaves the parentheses out.
            (
                "/dev/vnd0a on /mnt type ffs",
                "/dev/vnd0a",
                "/mnt",
                "ffs",
                "",
            ),
        ] {
            let expected = (
                source.to_owned(),
                PathBuf::from(point),
                kind.to_owned(),
                options.to_owned(),
            );
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_line_that_names_no_file_system_is_left_out() {
        for wrong in [
            "",
            "mount: no /proc/mounts",
            "a on b",
            "a on b (",
            "a on type ",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
