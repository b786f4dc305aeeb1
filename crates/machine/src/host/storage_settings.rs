//! Settings that change how fast or how safe storage is while it stays the same: of its devices, of the directory, and
//! of this program's control group.
//!
//! An administrator, a daemon (tuned, udev) or a container changes them in mid-run, and the mount stays as it was.

use super::sysfs::{about_device, backing_path, mounted_device};
use super::{MountInfo, file_system_settings, reading};
use crate::observe;
use rustix::fs::{Mode, OFlags};
use stackrace_base::event::counting_options;
use stackrace_base::unit::ShownPath;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What can be set of a device's queue (Documentation/ABI/stable/sysfs-block).
const QUEUE: [&str; 11] = [
    "read_ahead_kb",
    "write_cache",
    "fua",
    "scheduler",
    "nr_requests",
    "max_sectors_kb",
    "nomerges",
    "rq_affinity",
    "wbt_lat_usec",
    "io_poll",
    "rotational",
];

/// What can be set of the pages in memory that wait to be written to a device (Documentation/ABI/testing/sysfs-class-bdi).
/// In bytes it moves with the free memory.
const WRITE_BACK: [&str; 5] = [
    "min_ratio",
    "max_ratio",
    "min_ratio_fine",
    "max_ratio_fine",
    "strict_limit",
];

/// Devices that are looked at below one directory at most: of a large array the first ones.
const DEVICES_MAX: usize = 16;

/// File systems, one on another by loop devices and overlays, that are followed down at most.
const DEPTH_MAX: usize = 8;

/// The settings of a directory on a mount; what the system does not tell is left out.
pub(super) fn of(directory: &Path, mount: &MountInfo) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    if let Some(attributes) = attributes(directory) {
        let name = "the list of attributes (lsattr -d)".to_owned();
        settings.insert(name, attributes);
    }
    let limit = observe::io_limit().unwrap_or_else(|| "none".to_owned());
    settings.insert("the I/O limit of the control group".to_owned(), limit);
    file_system_settings::add(&mut settings, directory, mount);
    add_below(&mut settings, mount, DEPTH_MAX);
    settings
}

/// Adds the settings of the devices of a mount, and of the file systems that it lies on itself.
fn add_below(settings: &mut BTreeMap<String, String>, mount: &MountInfo, depth_left: usize) {
    let device = mounted_device(mount);
    let about = device.map(|device| PathBuf::from(about_device(device)));
    let mut below = layers(mount);
    for about in about.into_iter().flat_map(devices) {
        let Some(name) = about
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
        else {
            continue;
        };
        let queue = QUEUE.map(|setting| (setting, about.join("queue").join(setting)));
        let write_back = WRITE_BACK.map(|setting| (setting, about.join("bdi").join(setting)));
        for (setting, file) in queue.into_iter().chain(write_back) {
            if let Ok(text) = reading::text(&file) {
                settings.insert(format!("{setting} of {name}"), in_force(&text).to_owned());
            }
        }
        if let Ok(file) = reading::text(&about.join("loop/backing_file")) {
            below.push(PathBuf::from(backing_path(&file)));
        }
    }
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return;
    };
    for path in below {
        // One that is gone, or that this user may not see, tells nothing.
        let Ok(mount) = reading::mount_of(&path) else {
            continue;
        };
        if let Some(attributes) = attributes(&path) {
            settings.insert(
                format!("the list of attributes of {}", path.shown()),
                attributes,
            );
        }
        let options = counting_options(mount.options.iter().map(String::as_str));
        file_system_settings::add(settings, &path, &mount);
        let name = format!("the list of options of {}", mount.mount_point.shown());
        if settings.insert(name, options).is_none() {
            add_below(settings, &mount, depth_left);
        }
    }
}

/// The directories that an overlay lays over one another, as its options name them.
fn layers(mount: &MountInfo) -> Vec<PathBuf> {
    if mount.file_system != "overlay" {
        return Vec::new();
    }
    let named = mount.options.iter().filter_map(|option| {
        let (name, directories) = option.split_once('=')?;
        // With a plus where each was added by a call of its own (fsconfig(2)).
        ["lowerdir", "lowerdir+", "upperdir"]
            .contains(&name)
            .then_some(directories)
    });
    named
        .flat_map(|all| all.split(':'))
        .map(PathBuf::from)
        .collect()
}

/// The letters of what is set, or `none`; `None` where the file system has no attributes.
fn attributes(path: &Path) -> Option<String> {
    // NONBLOCK: opening a pipe must not hang.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let letters = stackrace_system::file_attributes(&opened).ok()?;
    Some(match letters.is_empty() {
        true => "none".to_owned(),
        false => letters,
    })
}

/// Directories of sysfs about a device and those below it, each once; a partition counts as its disk.
fn devices(about: PathBuf) -> Vec<PathBuf> {
    let (mut found, mut open): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), vec![about]);
    while let Some(about) = open.pop() {
        let Ok(about) = std::fs::canonicalize(about) else {
            continue;
        };
        let disk = match about.join("partition").exists() {
            true => about.parent().map(Path::to_path_buf).unwrap_or(about),
            false => about,
        };
        if found.len() == DEVICES_MAX || found.contains(&disk) {
            continue;
        }
        let slaves = std::fs::read_dir(disk.join("slaves")).into_iter().flatten();
        open.extend(slaves.flatten().map(|slave| slave.path()));
        found.push(disk);
    }
    found
}

/// The word in brackets, where the kernel lists all that there are: `none` of `[none] mq-deadline`.
fn in_force(text: &str) -> &str {
    let text = text.trim();
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text, |(chosen, _)| chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_force_is_told_and_not_what_else_there_is() {
        assert_eq!(in_force("mq-deadline kyber [none]\n"), "none");
        assert_eq!(in_force("write back\n"), "write back");
    }

    #[test]
    fn a_directory_tells_its_limit_and_its_attributes_where_it_has_any() {
        let base = tempfile::tempdir().unwrap();
        let mount = reading::mount_of(base.path()).unwrap();
        let told = of(base.path(), &mount);
        assert!(
            told.contains_key("the I/O limit of the control group"),
            "{told:?}"
        );
        assert_eq!(told, of(base.path(), &mount));
        if let Some(attributes) = attributes(base.path()) {
            assert_eq!(attributes, "none");
        }
    }

    #[test]
    fn an_overlay_lies_on_all_of_its_directories() {
        let options = [
            "rw",
            "lowerdir=/a:/b",
            "lowerdir+=/d",
            "upperdir=/c/up",
            "workdir=/c/work",
        ];
        let mut mount = reading::mount_of(Path::new("/")).unwrap();
        mount.options = options.map(str::to_owned).into();
        mount.file_system = "overlay".to_owned();
        assert_eq!(
            layers(&mount),
            ["/a", "/b", "/d", "/c/up"].map(PathBuf::from)
        );
        mount.file_system = "ext4".to_owned();
        assert_eq!(layers(&mount), Vec::<PathBuf>::new());
    }
}
