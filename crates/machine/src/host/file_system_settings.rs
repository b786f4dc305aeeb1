//! Settings of a file system that no option of its mount shows: what it was made or tuned with, and the properties of
//! its datasets and directories.

use super::{MountInfo, ended_command, reading, tools};
use stackrace_base::event::counting_options;
use stackrace_base::unit::ShownPath;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The attribute by which Btrfs keeps how files of a directory are compressed (btrfs-property(8)).
const COMPRESSION: &str = "btrfs.compression";
/// Letters that its value has at most: `zstd`, `lzo`.
const COMPRESSION_MAX: usize = 64;
/// Groups of blocks of Btrfs, each of which has its profile.
const GROUPS: [&str; 3] = ["data", "metadata", "system"];

/// Properties of a ZFS dataset that change how fast or how safe it is (zfsprops(7)); the others are sizes, times and
/// rights.
const DATASET: [&str; 17] = [
    "atime",
    "checksum",
    "compression",
    "copies",
    "dedup",
    "direct",
    "dnodesize",
    "encryption",
    "logbias",
    "prefetch",
    "primarycache",
    "recordsize",
    "redundant_metadata",
    "secondarycache",
    "special_small_blocks",
    "sync",
    "xattr",
];

/// Adds those of the file system that holds a path.
pub(super) fn add(settings: &mut BTreeMap<String, String>, path: &Path, mount: &MountInfo) {
    match mount.file_system.as_str() {
        "btrfs" => add_btrfs(settings, path, mount),
        "ext2" | "ext3" | "ext4" => add_ext4(settings, mount),
        "zfs" => add_zfs(settings, mount),
        _ => {}
    }
}

fn add_btrfs(settings: &mut BTreeMap<String, String>, path: &Path, mount: &MountInfo) {
    let mut value = [0; COMPRESSION_MAX];
    let compression = match stackrace_system::extended_attribute(path, COMPRESSION, &mut value) {
        Ok(Some(bytes)) => Some(String::from_utf8_lossy(&value[..bytes]).into_owned()),
        Ok(None) => Some("none".to_owned()),
        // Not told is not none.
        Err(_) => None,
    };
    if let Some(compression) = compression {
        let name = format!("the property compression of {}", path.shown());
        settings.insert(name, compression);
    }
    let Some(about) = about_btrfs(mount) else {
        return;
    };
    for group in GROUPS {
        let profiles = names_in(&about.join("allocation").join(group));
        // Beside the profiles there are files with figures.
        let all = profiles.into_iter().filter(|name| {
            let about = about.join("allocation").join(group).join(name);
            about.is_dir()
        });
        let all: Vec<String> = all.collect();
        if !all.is_empty() {
            let name = format!("the profile of {group} of {}", mount.mount_point.shown());
            settings.insert(name, all.join(","));
        }
    }
}

/// The directory of sysfs about the Btrfs that has the device of a mount.
fn about_btrfs(mount: &MountInfo) -> Option<PathBuf> {
    let device = std::fs::canonicalize(Path::new(&mount.source)).ok()?;
    let device = device.file_name()?;
    let all = Path::new("/sys/fs/btrfs");
    let mut about = names_in(all).into_iter().map(|name| all.join(name));
    about.find(|about| about.join("devices").join(device).exists())
}

/// The options in force: also those that the file system was made or tuned with (tune2fs(8)), of which the table of
/// mounts shows none.
fn add_ext4(settings: &mut BTreeMap<String, String>, mount: &MountInfo) {
    let device = std::fs::canonicalize(Path::new(&mount.source)).ok();
    let Some(device) = device.as_deref().and_then(Path::file_name) else {
        return;
    };
    let about = Path::new("/proc/fs/ext4").join(device).join("options");
    if let Ok(text) = reading::text(&about) {
        let name = format!(
            "the list of options in force of {}",
            mount.mount_point.shown()
        );
        settings.insert(name, counting_options(text.lines()));
    }
}

fn add_zfs(settings: &mut BTreeMap<String, String>, mount: &MountInfo) {
    let Some(zfs) = tools::find("zfs") else {
        return;
    };
    // All of them: it tells nothing at all where one is named that it does not know.
    let words = ["get", "-Hp", "-o", "property,value", "all"].map(OsString::from);
    let words = words.into_iter().chain([mount.source.clone()]);
    let words: Vec<OsString> = words.collect();
    let Ok(told) = ended_command::unrecorded(&zfs, &words) else {
        return;
    };
    let dataset = mount.source.to_string_lossy();
    for (property, value) in properties(&told) {
        let name = format!("the property {property} of {dataset}");
        settings.insert(name, value.to_owned());
    }
}

/// Those of the properties that `zfs get -Hp -o property,value all` printed.
fn properties(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.filter(|(name, value)| DATASET.contains(name) && *value != "-")
}

/// Names in a directory, in their order; none where it is not there.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_a_dataset_are_told_with_their_values() {
        let text = "used\t98304\ncompression\tlz4\nrecordsize\t131072\ndirect\t-\n";
        let told: Vec<_> = properties(text).collect();
        assert_eq!(told, [("compression", "lz4"), ("recordsize", "131072")]);
    }
}
