//! Wiping the signatures that a stack left on devices, and writing parameters of the kernel back.
//!
//! Each signature bears a mark that was drawn before it was made (a UUID, or a name with 16 random
//! digits) and stands in the journal. Only what bears that mark is wiped: another user may have put
//! the device to use by the time a dead run is cleaned up.

use super::busy::until_free;
use crate::host::{Host, HostError, argv};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Bytes written over at either end of a device: all labels of ZFS and md lie there.
const ENDS_BYTES: u64 = 1 << 20;

/// `/sys` counts sizes in 512 byte units, whatever the device's sectors are.
const SYS_SECTOR_BYTES: u64 = 512;

/// Signs that a device shows of itself, as `blkid --probe` reads them from the device.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    /// `ext4`, `linux_raid_member`, `zfs_member` …
    kind: Option<String>,
    /// True if there is a partition table.
    table: bool,
    /// UUID and label.
    names: Vec<String>,
}

/// Wipes the signatures from a device that bears our mark; a device that is gone, or bears none, is
/// fine. A link is followed once: what was looked at is what is wiped.
pub(super) fn blank(host: &dyn Host, device: &Path, mark: &str) -> Result<(), HostError> {
    if !host.exists(device) {
        return Ok(());
    }
    let fixed = host.fix_device(device)?;
    if !wipe_ours(host, &fixed.node, mark)? {
        return Ok(());
    }
    // A study names a disk by a link, and the disk is there after the stack.
    match fixed.node == device {
        true => Ok(()),
        false => host.leave_device(&fixed),
    }
}

/// Wipes the signatures from a device that bears our mark; whether there were any.
fn wipe_ours(host: &dyn Host, device: &Path, mark: &str) -> Result<bool, HostError> {
    let Some(shown) = shown(host, device)? else {
        return Ok(false);
    };
    if shown.bears(mark) {
        wipe(host, device, &shown)?;
        return Ok(true);
    }
    let not_ours = |why: &str| HostError::NotOurs {
        path: device.to_path_buf(),
        why: why.to_string(),
    };
    // A table of partitions bears no mark of ours even where we caused it; what is in the partitions
    // decides.
    if shown.kind.is_some() || !shown.table {
        return Err(not_ours("what it carries now does not bear our mark"));
    }
    // A pool on a whole disk lies in a partition that zpool made.
    let mut ours = Vec::new();
    for partition in partitions(host, device) {
        match self::shown(host, &partition)? {
            None => {}
            Some(shown) if shown.bears(mark) => ours.push((partition, shown)),
            Some(_) => return Err(not_ours("a partition on it does not bear our mark")),
        }
    }
    if ours.is_empty() {
        return Err(not_ours("it has a partition table that is not ours"));
    }
    for (partition, shown) in ours {
        wipe(host, &partition, &shown)?;
    }
    wipe(host, device, &shown)?;
    Ok(true)
}

impl Shown {
    /// Returns true if a name is the mark, or begins with it: one mark may stand for several pools.
    fn bears(&self, mark: &str) -> bool {
        let mark = digits(mark);
        let bears = |name: &String| digits(name).starts_with(&mark);
        // Each text begins with an empty one.
        !mark.is_empty() && self.names.iter().any(bears)
    }
}

/// A UUID without the hyphens or colons each tool groups its digits with.
fn digits(uuid: &str) -> String {
    uuid.replace([':', '-'], "")
}

fn shown(host: &dyn Host, device: &Path) -> Result<Option<Shown>, HostError> {
    let command = argv([
        OsStr::new("blkid"),
        OsStr::new("--probe"),
        OsStr::new("--output"),
        OsStr::new("export"),
        device.as_os_str(),
    ]);
    let output = host.exec(&command)?;
    match output.status {
        Some(0) => Ok(Some(parse(&output.stdout))),
        // blkid(8): 2 is "nothing found".
        Some(2) => Ok(None),
        _ => Err(HostError::failed(&command, output)),
    }
}

/// `NAME=value` lines of `blkid --output export`.
fn parse(text: &str) -> Shown {
    let mut shown = Shown::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match name {
            "TYPE" => shown.kind = Some(value.to_string()),
            "PTTYPE" => shown.table = true,
            "UUID" | "LABEL" => shown.names.push(value.to_string()),
            _ => {}
        }
    }
    shown
}

fn wipe(host: &dyn Host, device: &Path, shown: &Shown) -> Result<(), HostError> {
    // Of ZFS, wipefs takes away what blkid looks for and leaves what ZFS itself looks for.
    match shown.kind.as_deref() {
        Some("zfs_member") => erase(host, device),
        _ => wipe_signatures(host, device),
    }
}

fn wipe_signatures(host: &dyn Host, device: &Path) -> Result<(), HostError> {
    until_free(
        host,
        &argv([
            OsStr::new("wipefs"),
            OsStr::new("--all"),
            device.as_os_str(),
        ]),
    )
}

/// Wipes every signature from a device and writes zeros over its first and last MiB.
///
/// # Errors
/// When the device is in use, or a tool fails.
pub fn erase(host: &dyn Host, device: &Path) -> Result<(), HostError> {
    wipe_signatures(host, device)?;
    let bytes = size(host, device)?;
    // Aligned to the largest sector there is; a device refuses to zero half of one.
    let end = bytes.saturating_sub(ENDS_BYTES) / 4096 * 4096;
    for (offset, length) in [(0, ENDS_BYTES.min(bytes)), (end, bytes - end)] {
        let (offset, length) = (offset.to_string(), length.to_string());
        let words = ["--zeroout", "--offset", &offset, "--length", &length];
        let mut command = argv(["blkdiscard"]);
        command.extend(words.iter().map(OsString::from));
        command.push(device.into());
        until_free(host, &command)?;
    }
    Ok(())
}

fn size(host: &dyn Host, device: &Path) -> Result<u64, HostError> {
    let file = in_sys(host, device).join("size");
    let sectors = host.read_text(&file)?;
    let sectors: u64 = sectors.trim().parse().map_err(|_| {
        HostError::path("understand", &file, std::io::Error::other(sectors.clone()))
    })?;
    Ok(sectors.saturating_mul(SYS_SECTOR_BYTES))
}

fn in_sys(host: &dyn Host, device: &Path) -> PathBuf {
    let device = host.canonical(device).unwrap_or(device.to_path_buf());
    let name = device.file_name().unwrap_or_default();
    Path::new("/sys/class/block").join(name)
}

/// The partitions the kernel sees on a device.
pub fn partitions(host: &dyn Host, device: &Path) -> Vec<PathBuf> {
    let directory = in_sys(host, device);
    let names = host.list(&directory).unwrap_or_default();
    names
        .into_iter()
        .filter(|name| host.exists(&directory.join(name).join("partition")))
        .map(|name| Path::new("/dev").join(name))
        .collect()
}

/// Writes a parameter back that still is what we wrote.
pub(super) fn write_back(
    host: &dyn Host,
    file: &Path,
    ours: &str,
    before: &str,
) -> Result<(), HostError> {
    if host.exists(file) && host.read_text(file)?.trim() == ours {
        host.write_text(file, before)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_ours_by_uuid_or_label_alone() {
        let shown = parse("DEVNAME=/dev/loop0\nUUID=012345-6789-ab\nLABEL=x\nTYPE=LVM2_member\n");
        assert!(shown.bears("0123456789ab") && shown.bears("x"));
        assert!(!shown.bears("LVM2_member") && !shown.bears(""));
        assert!(parse("PTUUID=1\nPTTYPE=gpt\n").table);
    }
}
