//! What a directory lies on, told so that another storage in its place is noticed.

use super::sysfs::mounted_device;
pub use super::sysfs::{about_device, backing_path};
use super::{HostError, MountInfo, reading, storage_settings};
use rustix::fs::{Mode, OFlags};
use stackrace_base::event::{LoopFile, RemoteExport, StorageIdentity, comparable_options};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// File whose text tells one start of Linux from another.
pub const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// File systems whose numbers of directories stay after they have left the kernel's memory. Others (FAT,
/// FUSE, layers of overlays on several file systems) draw them anew: those say nothing.
const LASTING_INODES: [&str; 18] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "nilfs2", "bcachefs", "gfs2",
    "ocfs2", "tmpfs", "ramfs", "nfs", "nfs4", "ufs", "apfs",
];

/// File systems whose own number is another one when they are mounted again: the client of SMB takes it from a time
/// that the server may move.
const DRAWN_IDS: [&str; 3] = ["cifs", "smb3", "smbfs"];

/// Words by which Linux, the BSDs with macOS, and illumos show that something is mounted read-only.
const READ_ONLY: [&str; 3] = ["ro", "read-only", "read only"];

/// Returns true if a file system numbers its directories for good.
pub fn has_lasting_inodes(file_system: &str) -> bool {
    LASTING_INODES.contains(&file_system)
}

/// Number by which a file system is known through mounts; `None` if it has none that lasts.
fn lasting_id(file_system: &str, id: u64) -> Option<u64> {
    Some(id).filter(|id| *id != 0 && !DRAWN_IDS.contains(&file_system))
}

/// The identity as the table of mounts alone tells it; `boot` is what tells this start of the
/// machine from others.
pub fn of_mount(path: &Path, mount: &MountInfo, boot: Option<String>) -> StorageIdentity {
    let source = mount.source.to_string_lossy().into_owned();
    let options = mount.options.iter().map(String::as_str);
    StorageIdentity {
        directory: path.to_string_lossy().into_owned(),
        // No number of a real file system is 0.
        device: Some(mount.st_dev).filter(|device| *device != (0, 0)),
        remote: RemoteExport::of(&source),
        source,
        file_system: mount.file_system.clone(),
        mount_point: mount.mount_point.to_string_lossy().into_owned(),
        root: mount.root.to_string_lossy().into_owned(),
        read_only: mount
            .options
            .iter()
            .any(|option| READ_ONLY.contains(&option.as_str())),
        options: Some(comparable_options(options)),
        boot: boot.map(|boot| boot.trim().to_owned()),
        ..StorageIdentity::default()
    }
}

/// The identity as this machine's kernel tells it. Everything is asked of one open directory, so
/// that all of it is of the same one; `mounts` is the table where it was just read.
pub(super) fn here(path: &Path, mounts: &[MountInfo]) -> Result<StorageIdentity, HostError> {
    let cannot = |error: rustix::io::Errno| {
        HostError::path("find out what holds", path, std::io::Error::from(error))
    };
    let is_device = is_block_device(path);
    let kind = match is_device {
        true => OFlags::empty(),
        false => OFlags::DIRECTORY,
    };
    let flags = stackrace_system::PLACE_ONLY | kind | OFlags::CLOEXEC;
    let held = rustix::fs::open(path, flags, Mode::empty()).map_err(cannot)?;
    let mut mount = reading::mount_of_open(&held, path, mounts)?;
    if is_device {
        // Nothing between it and who uses it: what is below, and how that is set, is its own.
        mount.source = path.into();
    }
    let id = rustix::fs::fstatvfs(&held).map_or(0, |space| space.f_fsid);
    let about = std::fs::File::from(held)
        .metadata()
        .map_err(|error| HostError::path("find out what holds", path, error))?;
    // Not every file system knows when a directory was made.
    let made = about.created().ok();
    let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    Ok(StorageIdentity {
        inode: has_lasting_inodes(&mount.file_system).then_some(about.ino()),
        // Others have a time that their root was mounted at (exFAT), that of a copy made with the first write
        // (overlays), or none (FAT).
        made_ns: made
            .filter(|_| has_lasting_inodes(&mount.file_system))
            .and_then(|made| u64::try_from(made.as_nanos()).ok()),
        file_system_id: lasting_id(&mount.file_system, id),
        uuid: uuid(&mount),
        loop_file: mounted_device(&mount).and_then(|device| loop_file(device, LOOPS_MAX)),
        settings: storage_settings::of(path, &mount),
        ..of_mount(path, &mount, reading::text(Path::new(BOOT)).ok())
    })
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device())
}

/// The same of the settings of a loop device as the kernel tells them: `loop/dio`, `queue/logical_block_size`.
pub fn set_up(file: LoopFile, direct_io: Option<&str>, sector_bytes: Option<&str>) -> LoopFile {
    LoopFile {
        direct_io: direct_io.map(|told| told.trim() == "1"),
        sector_bytes: sector_bytes.and_then(|told| told.trim().parse().ok()),
        ..file
    }
}

/// Loop devices on files in file systems on loop devices that are followed down at most.
const LOOPS_MAX: usize = 8;

/// The file below a loop device; `None` if the device is another one.
fn loop_file(device: (u32, u32), loops_left: usize) -> Option<LoopFile> {
    let about = |what: &str| reading::text(&Path::new(&about_device(device)).join(what)).ok();
    let shown = about("loop/backing_file")?;
    let [direct, sectors] = ["loop/dio", "queue/logical_block_size"].map(about);
    let told = set_up(
        LoopFile::at(backing_path(&shown)),
        direct.as_deref(),
        sectors.as_deref(),
    );
    // One that was removed while it is in use is still the same one, and another may stand at its path.
    let path = Path::new(shown.trim_end_matches('\n'));
    let Ok(file) = std::fs::metadata(path) else {
        return Some(told);
    };
    let holds = reading::mount_of(path).ok();
    let below = holds.as_ref().and_then(mounted_device);
    let below = below.and_then(|device| loop_file(device, loops_left.checked_sub(1)?));
    Some(LoopFile {
        device: stackrace_system::device_parts(file.dev()),
        inode: file.ino(),
        bytes: Some(file.len()).filter(|_| file.is_file()),
        file_system: match below {
            Some(below) => below.file_system,
            None => holds.map(|mount| mount.file_system),
        },
        ..told
    })
}

/// UUID of what is mounted from a device, as udev wrote it down: anybody may read that.
fn uuid(mount: &MountInfo) -> Option<String> {
    let (major, minor) = mounted_device(mount)?;
    let known = reading::text(Path::new(&format!("/run/udev/data/b{major}:{minor}"))).ok()?;
    let uuid = known
        .lines()
        .find_map(|line| line.strip_prefix("E:ID_FS_UUID="));
    uuid.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::Host;
    use super::super::local::LocalHost;
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn a_device_has_the_settings_of_its_own_queue() {
        let names = std::fs::read_dir("/sys/block").into_iter().flatten();
        let names = names.filter_map(|it| it.ok()?.file_name().into_string().ok());
        for name in names {
            let path = Path::new("/dev").join(&name);
            if super::is_block_device(&path) {
                let told = super::here(&path, &[]).unwrap();
                let read_ahead = format!("read_ahead_kb of {name}");
                assert!(told.settings.contains_key(&read_ahead), "{told:?}");
            }
        }
    }

    #[test]
    fn a_number_that_is_drawn_at_each_mount_is_no_identity() {
        for drawn in super::DRAWN_IDS {
            assert_eq!(super::lasting_id(drawn, 7), None);
        }
        assert_eq!(super::lasting_id("ext4", 7), Some(7));
        assert_eq!(super::lasting_id("nfs4", 0), None);
    }

    #[test]
    fn a_file_below_a_loop_device_keeps_its_name_when_it_is_removed() {
        assert_eq!(super::backing_path("/a.img (deleted)\n"), "/a.img");
        assert_eq!(super::backing_path("/a.img\n"), "/a.img");
        // Its mark stands once, at the end.
        let odd = "/a (deleted).img (deleted) (deleted)";
        assert_eq!(super::backing_path(odd), "/a (deleted).img (deleted)");
    }

    #[test]
    fn a_table_of_mounts_that_was_just_read_is_not_read_again() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let base = tempfile::tempdir().unwrap();
        let mut mounts = host.mounts().unwrap();
        for mount in &mut mounts {
            mount.options = vec!["of-this-table".to_owned()];
        }
        let told = host.identity_among(&mounts, base.path()).unwrap();
        assert_eq!(told.options, Some(vec!["of-this-table".to_owned()]));
        // What was mounted after it was read is found all the same.
        let told = host.identity_among(&[], base.path()).unwrap();
        assert_eq!(told, host.identity_of(base.path()).unwrap());
    }

    #[test]
    fn a_directory_is_told_from_one_that_took_its_place() {
        let host = LocalHost::new(Arc::new(|_| ()));
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("d");
        std::fs::create_dir(&path).unwrap();
        let before = host.identity_of(&path).unwrap();
        assert!(before.device.is_some() && !before.mount_point.is_empty());
        assert_eq!(before.difference(&host.identity_of(&path).unwrap()), None);
        std::fs::rename(&path, base.path().join("away")).unwrap();
        assert!(host.identity_of(&path).is_err());
        std::fs::create_dir(&path).unwrap();
        let now = host.identity_of(&path).unwrap();
        assert!(!before.is_same(&now), "{before:?} {now:?}");
    }
}
