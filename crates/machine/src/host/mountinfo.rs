//! The kernel's table of mounts, `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
//!
//! Paths are bytes: the kernel writes space, tab, newline and backslash as three octal digits and
//! everything else as it is, UTF-8 or not.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountInfo {
    /// The kernel's number of this mount.
    pub id: u64,
    /// Device number of what is mounted, `major:minor` as `stat(2)` gives it.
    pub st_dev: (u32, u32),
    /// Directory of the file system that is seen at the mount point.
    pub root: PathBuf,
    /// Directory at which it is seen.
    pub mount_point: PathBuf,
    /// Options in force: those of this mount, then those of the file system, none twice.
    pub options: Vec<String>,
    /// `ext4`, `tmpfs` …
    pub file_system: String,
    /// `/dev/vda1`, `tmpfs` …
    pub source: OsString,
}

/// Reads the whole table; a line that cannot be understood is left out.
pub fn parse(table: &[u8]) -> Vec<MountInfo> {
    table
        .split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<MountInfo> {
    // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    let mut fields = line.split(|&byte| byte == b' ');
    let id = text(fields.next()?).parse().ok()?;
    let _parent = fields.next()?;
    let device = text(fields.next()?);
    let (major, minor) = device.split_once(':')?;
    let root = path(fields.next()?);
    let mount_point = path(fields.next()?);
    let of_mount = text(fields.next()?);
    // Optional fields, as many as there are, ended by a lone hyphen.
    fields.by_ref().find(|field| *field == b"-")?;
    let file_system = text(fields.next()?);
    let source = OsString::from_vec(unescape(fields.next()?));
    let of_file_system = text(fields.next().unwrap_or_default());
    // Options of the mount and of the file system overlap; each is named once.
    let mut known = HashSet::new();
    let options = of_mount
        .split(',')
        .chain(of_file_system.split(','))
        .filter(|option| !option.is_empty() && known.insert(*option))
        .map(str::to_string)
        .collect();
    Some(MountInfo {
        id,
        st_dev: (major.parse().ok()?, minor.parse().ok()?),
        root,
        mount_point,
        options,
        file_system,
        source,
    })
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// Turns `\040` and its like into the bytes they stand for.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = |at: usize| {
            tail.get(at)
                .filter(|digit| (b'0'..=b'7').contains(digit))
                .map(|digit| u32::from(digit - b'0'))
        };
        if first == b'\\'
            && let (Some(a), Some(b), Some(c)) = (octal(0), octal(1), octal(2))
            && let Ok(byte) = u8::try_from(a * 64 + b * 8 + c)
        {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn the_example_of_the_manual_page_is_understood() {
        let table = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 1);
        let mount = &mounts[0];
        assert_eq!(mount.id, 36);
        assert_eq!(mount.st_dev, (98, 0));
        assert_eq!(mount.root, PathBuf::from("/mnt1"));
        assert_eq!(mount.mount_point, PathBuf::from("/mnt2"));
        assert_eq!(mount.options, ["rw", "noatime", "errors=continue"]);
        assert_eq!(mount.file_system, "ext3");
        assert_eq!(mount.source, "/dev/root");
    }

    #[test]
    fn escapes_and_bytes_that_are_no_text_are_kept() {
        let table =
            b"1 0 0:5 / /a\\040b\\134c\\011\xff\\12 rw - tmpfs my\\040source rw,size=4k\nbroken line\n";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 1);
        assert_eq!(
            mounts[0].mount_point.as_os_str().as_bytes(),
            b"/a b\\c\t\xff\\12"
        );
        assert_eq!(mounts[0].source, "my source");
    }

    #[test]
    fn a_mount_without_optional_fields_is_understood() {
        let mounts = parse(b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard");
        assert_eq!(mounts[0].options, ["rw", "relatime", "discard"]);
    }
}
