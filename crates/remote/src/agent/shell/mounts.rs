//! What `mount` prints on different systems, as one kind of table.
//!
//! POSIX has no command for this. NetBSD writes `X on Y type T (…)`, FreeBSD and macOS
//! `X on Y (T, …)`, illumos, asked with -v, `X on Y type T … on DATE`.

use super::quoted;
use stackrace_base::event::{LoopFile, StorageIdentity};
use stackrace_machine::host::identity::{self, has_lasting_inodes};
use stackrace_machine::host::{HostError, MountInfo, mountinfo};
use std::path::{Path, PathBuf};

/// Name `uname -s` has for Linux, which has a table that tells the numbers of devices, too.
pub(super) const LINUX: &str = "Linux";

/// The command that shows all mounts on a system.
pub(super) fn command(system: &str) -> &'static str {
    match system {
        LINUX => "cat /proc/self/mountinfo",
        // Without -v the type is not shown there (mount(8) of illumos).
        "SunOS" => "mount -v",
        _ => "mount",
    }
}

/// Reads what that command prints there; a line that cannot be understood is left out.
pub(super) fn parse(system: &str, table: &[u8]) -> Vec<MountInfo> {
    match system {
        LINUX => mountinfo::parse(table),
        _ => printed(&String::from_utf8_lossy(table)),
    }
}

fn printed(text: &str) -> Vec<MountInfo> {
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

/// Storage a directory lies on, as far as commands tell it; `mount`: `None` if the system shows no mounts.
///
/// # Errors
/// It is no directory.
pub(super) fn identity(
    mount: Option<&MountInfo>,
    boot: Option<String>,
    ask: &dyn Fn(&str) -> Option<String>,
    path: &Path,
) -> Result<StorageIdentity, HostError> {
    let p = quoted(path.as_os_str());
    // A file in its place is no other directory.
    if ask(&format!("[ -d {p} ]")).is_none() {
        return Err(HostError::path(
            "look into",
            path,
            std::io::Error::from(std::io::ErrorKind::NotADirectory),
        ));
    }
    // POSIX has no command for the number of a file system and its kind; GNU and BusyBox have one.
    let told = ask(&format!("stat -f -c '%i %T' {p} 2>/dev/null"));
    let mut told = told.as_deref().unwrap_or_default().split_whitespace();
    let id = told.next().and_then(|id| u64::from_str_radix(id, 16).ok());
    let of_kind = told.next().filter(|kind| *kind != "UNKNOWN");
    let identity = match mount {
        Some(mount) => identity::of_mount(path, mount, boot),
        None => StorageIdentity {
            directory: path.to_string_lossy().into_owned(),
            file_system: of_kind.unwrap_or_default().to_owned(),
            boot,
            ..StorageIdentity::default()
        },
    };
    let kind = kind(&identity.file_system);
    let inode = || {
        let told = ask(&format!("ls -di {p}"))?;
        told.split_whitespace().next()?.parse().ok()
    };
    let loop_file = || {
        let about = identity::about_device(identity.device?);
        let told = |what: &str| {
            let told = ask(&format!("cat {about}/{what} 2>/dev/null"))?;
            (!told.is_empty()).then_some(told)
        };
        let file = LoopFile::at(identity::backing_path(&told("loop/backing_file")?));
        let [direct, sectors] = ["loop/dio", "queue/logical_block_size"].map(told);
        Some(identity::set_up(
            file,
            direct.as_deref(),
            sectors.as_deref(),
        ))
    };
    let on_loop = identity.source.starts_with("/dev/loop");
    Ok(StorageIdentity {
        loop_file: on_loop.then(loop_file).flatten(),
        inode: has_lasting_inodes(kind).then(inode).flatten(),
        file_system_id: id.filter(|id| *id != 0),
        ..identity
    })
}

/// Kind of a file system as a table of mounts has it: `ext2/ext3` of `stat -f` says that it is one of them.
pub(super) fn kind(told: &str) -> &str {
    told.split('/').next().unwrap_or_default()
}

/// Identity of a directory on a system that shows no mounts.
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
        let one = printed(text).pop()?;
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
    fn a_file_system_is_told_apart_also_where_no_mounts_are_shown() {
        let told = |kind: &'static str| {
            let ask = move |script: &str| match script.starts_with("stat -f") {
                true => Some(format!("abc {kind}\n")),
                false => Some("12 /srv/a\n".to_owned()),
            };
            identity(None, None, &ask, Path::new("/srv/a")).unwrap()
        };
        let tmpfs = told("tmpfs");
        assert_eq!((&*tmpfs.file_system, tmpfs.inode), ("tmpfs", Some(12)));
        assert_eq!(tmpfs.file_system_id, Some(0xabc));
        assert_eq!(told("ext2/ext3").inode, Some(12));
        let unknown = told("UNKNOWN");
        assert_eq!((&*unknown.file_system, unknown.inode), ("", None));
        assert!(!tmpfs.is_same(&told("ext2/ext3")));
    }

    #[test]
    fn read_only_is_known_in_the_words_of_each_system() {
        for (text, read_only) in [
            ("/dev/md0 on /mnt (ufs, local, read-only)", true),
            (
                "tank/data on /mnt type zfs read only/setuid/devices on Thu Jan  1",
                true,
            ),
            ("/dev/vnd0a on /mnt type ffs (read-only, local)", true),
            ("/dev/md0 on /mnt (ufs, local)", false),
        ] {
            let mount = printed(text).pop();
            let is_directory = |script: &str| script.starts_with('[').then(String::new);
            let told = identity(mount.as_ref(), None, &is_directory, Path::new("/mnt"));
            assert_eq!(told.unwrap().read_only, read_only, "{text}");
        }
    }

    #[test]
    fn how_it_is_mounted_is_compared_wherever_the_system_shows_it() {
        let told = |system: &str, text: &str| {
            let mount = parse(system, text.as_bytes()).pop();
            let is_directory = |script: &str| script.starts_with('[').then(String::new);
            identity(mount.as_ref(), None, &is_directory, Path::new("/mnt")).unwrap()
        };
        for (system, was, now, said) in [
            (
                LINUX,
                "36 35 98:0 / /mnt rw,relatime - ext4 /dev/vda rw",
                "36 35 98:0 / /mnt rw,relatime - ext4 /dev/vda rw,sync",
                "/mnt was mounted without sync and is now mounted with sync",
            ),
            (
                "FreeBSD",
                "/dev/md0 on /mnt (ufs, local)",
                "/dev/md0 on /mnt (ufs, local, noatime)",
                "/mnt was mounted with atime and is now mounted with noatime",
            ),
            (
                "NetBSD",
                "/dev/vnd0a on /mnt type ffs",
                "/dev/vnd0a on /mnt type ffs (synchronous)",
                "/mnt was mounted without synchronous and is now mounted with synchronous",
            ),
        ] {
            let (was, now) = (told(system, was), told(system, now));
            assert_eq!(was.difference(&now).as_deref(), Some(said));
            let unknown = identity(None, None, &|_| Some(String::new()), Path::new("/mnt"));
            assert_eq!(unknown.unwrap().options, None);
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
