//! What a directory of the user's lies on, as values that are compared: a configuration is the same one
//! in all rounds only if it lies on the same storage.

use super::loop_file::LoopFile;
use super::mount_options;
use crate::unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A directory and the storage that it lies on.
///
/// A field that the system does not tell is `None` and is never compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageIdentity {
    /// The directory: absolute, without links.
    pub directory: String,
    /// Device number of the file system: major, minor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<(u32, u32)>,
    /// `ext4`, `tmpfs` …; empty if not told.
    pub file_system: String,
    /// `/dev/vda1`, `tank/data`, `server:/export` …; empty if not told.
    pub source: String,
    /// Mount point of the file system; empty if not told.
    pub mount_point: String,
    /// Directory of the file system that is seen there.
    #[serde(default)]
    pub root: String,
    /// True if it is mounted read-only.
    #[serde(default)]
    pub read_only: bool,
    /// Options in force, of the mount and of the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// Number of the directory in its file system; `None` if its numbers do not last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// Time when the directory was made, ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ns: Option<u64>,
    /// Identity of the file system by its own account (`f_fsid` of `statvfs(3)`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system_id: Option<u64>,
    /// UUID of the file system, where it can be had without root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// ZFS numbers of pool and dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zfs: Option<ZfsIdentity>,
    /// Origin of a network file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteExport>,
    /// The file that the file system lies in, where it is mounted from a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_file: Option<LoopFile>,
    /// Settings of the directory, of the devices below it and of this program's control group that change how fast or
    /// how safe it is: `read_ahead_kb of sda` is `128`. One that only one of two looks tells is not compared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The start of the machine in which this was seen: device numbers hold no longer than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// The numbers (GUID) by which ZFS knows a pool and a dataset, whatever their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZfsIdentity {
    /// GUID of the whole pool, decimal.
    pub pool: String,
    /// GUID of the one that is mounted, decimal.
    pub dataset: String,
}

/// Origin of a network file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteExport {
    /// The server's name or address.
    pub server: String,
    /// Directory that it gives out under this name.
    pub export: String,
}

impl RemoteExport {
    /// The export of what is mounted, by its source; `None` if it comes from no other machine.
    pub fn of(source: &str) -> Option<Self> {
        // `//server/share` of SMB; `server:/export` of NFS, SSHFS, GlusterFS, and of Ceph, whose
        // servers are a list.
        let (server, export) = match source.strip_prefix("//") {
            Some(rest) => rest.split_once('/')?,
            None => {
                let (server, export) = source.rsplit_once(":/")?;
                (server, source.get(source.len() - export.len() - 1..)?)
            }
        };
        (!server.is_empty()).then(|| Self {
            server: server.to_owned(),
            export: export.to_owned(),
        })
    }
}

/// Returns true if a file system ends when it is unmounted.
pub fn is_in_memory(file_system: &str) -> bool {
    ["tmpfs", "ramfs"].contains(&file_system)
}

/// Both values, where both are known and differ.
fn unlike<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a != b)
}

impl StorageIdentity {
    /// Returns true if something names the file system that stays through mounting it again.
    fn is_lasting(&self) -> bool {
        let own = self.uuid.is_some() || self.file_system_id.is_some();
        own || self.zfs.is_some() || self.remote.is_some()
    }

    /// Returns true if it is the same directory on the same storage.
    pub fn is_same(&self, now: &Self) -> bool {
        self.is_same_storage(now)
            && self.mounted_otherwise(now).is_none()
            && self.set_otherwise(now).is_none()
            && !self.leads_elsewhere(now)
            && !unlike(self.inode, now.inode)
            && !unlike(self.made_ns, now.made_ns)
    }

    /// Returns true if its name leads to another directory now. Where directories have lasting numbers, these say more:
    /// the same one may be reached by another way.
    fn leads_elsewhere(&self, now: &Self) -> bool {
        self.inode.zip(now.inode).is_none() && self.directory != now.directory
    }

    /// How it was mounted, and how it is now, where that may change what is measured.
    fn mounted_otherwise(&self, now: &Self) -> Option<(String, String)> {
        if self.read_only != now.read_only {
            let how = |it: &Self| {
                if it.read_only {
                    "read-only"
                } else {
                    "writable"
                }
            };
            return Some((how(self).to_owned(), how(now).to_owned()));
        }
        let options = self.options.as_ref().zip(now.options.as_ref());
        let options = options.and_then(|(was, now)| mount_options::changed(was, now));
        let files = self.loop_file.as_ref().zip(now.loop_file.as_ref());
        options.or_else(|| files.and_then(|(was, now)| was.changed(now)))
    }

    /// The first setting that is another one now: its name, what it was, and what it is. After another start the same
    /// name may be another device.
    fn set_otherwise(&self, now: &Self) -> Option<(String, String, String)> {
        let mut settings = self.settings.iter();
        let changed = settings.find_map(|(name, was)| {
            let is = now.settings.get(name).filter(|is| *is != was)?;
            let (was, is) = mount_options::apart(was, is);
            Some((name.clone(), was, is))
        });
        changed.filter(|_| !unlike(self.boot.as_ref(), now.boot.as_ref()))
    }

    /// Returns true if it is the same storage that is only mounted or set otherwise.
    pub(super) fn is_same_changed(&self, now: &Self) -> bool {
        let elsewhere = !self.is_same_storage(now) || self.leads_elsewhere(now);
        !elsewhere && (self.mounted_otherwise(now).is_some() || self.set_otherwise(now).is_some())
    }

    /// Returns true if the data are lost when the machine is switched off.
    pub fn is_in_memory(&self) -> bool {
        let below = self.loop_file.as_ref();
        let below = below.and_then(|file| file.file_system.as_deref());
        is_in_memory(below.unwrap_or(&self.file_system))
    }

    /// The same of the storage alone.
    fn is_same_storage(&self, now: &Self) -> bool {
        let names = |it: &Self| {
            (
                it.file_system.clone(),
                it.mount_point.clone(),
                it.root.clone(),
            )
        };
        let same = names(self) == names(now)
            && !unlike(self.uuid.as_ref(), now.uuid.as_ref())
            && !unlike(self.zfs.as_ref(), now.zfs.as_ref())
            && self.remote == now.remote;
        let one_start = !unlike(self.boot.as_ref(), now.boot.as_ref());
        let lasts = self.is_lasting() && now.is_lasting();
        if lasts && !one_start {
            // Another start may give the disk another name and number.
            return same;
        }
        if let Some((before, now_in)) = self.loop_file.as_ref().zip(now.loop_file.as_ref()) {
            // A loop device is numbered anew each time it is set up; its file stays what it is.
            return same
                && before.is_same(now_in)
                && !unlike(self.file_system_id, now.file_system_id);
        }
        // A number without a device behind it is drawn anew each time it is mounted (NFS, Btrfs).
        let drawn = |device: Option<(u32, u32)>| device.is_some_and(|(major, _)| major == 0);
        let numbered = !(lasts && drawn(self.device) && drawn(now.device)) && one_start;
        same && self.source == now.source
            && !(numbered && unlike(self.device, now.device))
            && !unlike(self.file_system_id, now.file_system_id)
    }

    /// Differences between both, as a sentence without its end; `None` if nothing differs.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let directory = &self.directory;
        if self.is_same(now) {
            return None;
        }
        if !self.is_same_storage(now) {
            // Two mounts after each other may look alike in all that is shown.
            let (was, is) = (self.to_string(), now.to_string());
            let is = match was == is {
                true => format!("another one of the same kind, {is}"),
                false => is,
            };
            return Some(format!("{directory} was on {was} and is now on {is}"));
        }
        if self.leads_elsewhere(now) {
            return Some(format!("{directory} leads to {} now", now.directory));
        }
        if let Some((was, is)) = self.mounted_otherwise(now) {
            return Some(format!(
                "{directory} was mounted {was} and is now mounted {is}"
            ));
        }
        if let Some((name, was, is)) = self.set_otherwise(now) {
            return Some(format!(
                "below {directory} {name} was {was} and is now {is}"
            ));
        }
        let told = |it: &Self| {
            let inode = it.inode.map(|inode| format!("inode {inode}"));
            inode.unwrap_or_else(|| "one made at another time".to_owned())
        };
        let is = match self.inode == now.inode {
            // A file system gives the number of a removed directory to the next one.
            true => "a newer one with the same number".to_owned(),
            false => told(now),
        };
        Some(format!(
            "{directory} is another directory than before (it was {}, and is now {is})",
            told(self)
        ))
    }
}

/// `ext4 (/dev/loop0, device 7:0, mounted at /mnt/a)`
impl fmt::Display for StorageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.file_system.as_str() {
            "" => "an unknown file system",
            known => known,
        })?;
        let mut about = Vec::new();
        if !self.source.is_empty() {
            about.push(match &self.loop_file {
                Some(file) => {
                    let size = file
                        .bytes
                        .map(|bytes| format!(" of {}", unit::bytes(bytes)));
                    let size = size.unwrap_or_default();
                    format!("{} on the file {}{size}", self.source, file.path)
                }
                None => self.source.clone(),
            });
        }
        if let Some((major, minor)) = self.device {
            about.push(format!("device {major}:{minor}"));
        }
        match (&self.uuid, self.file_system_id, self.device) {
            (Some(uuid), _, _) => about.push(format!("UUID {uuid}")),
            // Where the device tells enough, a number of 16 digits only takes room.
            (None, Some(id), None) => about.push(format!("id {id:x}")),
            _ => {}
        }
        // Most often what is compared is a mount by itself.
        if !self.mount_point.is_empty() && self.mount_point != self.directory {
            about.push(format!("mounted at {}", self.mount_point));
        }
        match about.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", about.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::sample::ext4;

    #[test]
    fn each_field_that_tells_another_storage_is_compared() {
        let was = ext4();
        assert!(was.is_same(&was.clone()));
        let others: [fn(&mut StorageIdentity); 10] = [
            |it| it.device = Some((7, 1)),
            |it| it.file_system = "xfs".into(),
            |it| it.source = "/dev/loop1".into(),
            |it| it.mount_point = "/".into(),
            |it| it.root = "/other".into(),
            |it| it.read_only = true,
            |it| it.options = Some(vec!["noatime".into()]),
            |it| it.inode = Some(13),
            |it| it.made_ns = Some(2),
            |it| it.file_system_id = Some(0xdef),
        ];
        for change in others {
            let mut now = was.clone();
            change(&mut now);
            assert!(!was.is_same(&now), "{now:?}");
            let said = was.difference(&now).unwrap();
            assert!(said.contains("/mnt/a/d"), "{said}");
        }
        let mut now = was.clone();
        now.uuid = Some("2".into());
        // Not known before: not compared.
        assert!(was.is_same(&now));
        let mut known = was.clone();
        known.uuid = Some("1".into());
        assert!(!known.is_same(&now));
    }

    #[test]
    fn a_mount_with_other_options_is_other_storage_and_one_without_told_options_is_not() {
        let was = ext4();
        let mut now = ext4();
        now.options = Some(vec!["rw".into(), "sync".into(), "relatime".into()]);
        let said = "/mnt/a/d was mounted without sync and is now mounted with sync";
        assert_eq!(was.difference(&now).as_deref(), Some(said));
        // A log of an older version, and a system that shows no mounts.
        now.options = None;
        assert!(was.is_same(&now) && now.is_same(&was));
    }

    #[test]
    fn a_file_in_memory_below_a_loop_device_is_memory() {
        let on = |file_system: &str| StorageIdentity {
            loop_file: Some(LoopFile {
                file_system: Some(file_system.into()),
                ..LoopFile::at("/run/a.img")
            }),
            ..ext4()
        };
        assert!(on("tmpfs").is_in_memory() && !on("xfs").is_in_memory());
        assert!(!ext4().is_in_memory());
    }

    #[test]
    fn where_directories_have_no_lasting_numbers_the_way_to_them_is_compared() {
        let fat = || StorageIdentity {
            file_system: "vfat".into(),
            inode: None,
            made_ns: None,
            ..ext4()
        };
        let mut now = fat();
        now.directory = "/mnt/a/other".into();
        assert_eq!(
            fat().difference(&now).as_deref(),
            Some("/mnt/a/d leads to /mnt/a/other now")
        );
        // With numbers, the same directory is reached by another way.
        let mut same = ext4();
        same.directory = "/mnt/a/other".into();
        assert!(ext4().is_same(&same));
    }

    #[test]
    fn what_the_system_does_not_tell_is_not_said() {
        let mut was = StorageIdentity {
            directory: "/srv/b".into(),
            file_system_id: Some(0xabc),
            ..StorageIdentity::default()
        };
        assert_eq!(was.to_string(), "an unknown file system (id abc)");
        was.file_system = "tmpfs".into();
        assert_eq!(was.to_string(), "tmpfs (id abc)");
    }

    #[test]
    fn a_tmpfs_is_another_one_even_if_it_has_the_number_of_the_one_before() {
        let tmpfs = |id| StorageIdentity {
            file_system: "tmpfs".into(),
            device: Some((0, 45)),
            inode: Some(1),
            made_ns: None,
            file_system_id: Some(id),
            ..ext4()
        };
        assert!(!tmpfs(1).is_same(&tmpfs(2)));
    }

    #[test]
    fn a_start_of_the_machine_and_a_new_mount_change_numbers_and_no_storage() {
        let was = ext4();
        let mut now = was.clone();
        now.boot = Some("two".into());
        now.device = Some((8, 1));
        now.source = "/dev/sda1".into();
        assert!(was.is_same(&now));
        now.uuid = Some("2".into());
        let mut known = was;
        known.uuid = Some("1".into());
        assert!(!known.is_same(&now));
        let nfs = |minor, source: &str| StorageIdentity {
            device: Some((0, minor)),
            file_system: "nfs4".into(),
            source: source.into(),
            file_system_id: None,
            remote: RemoteExport::of(source),
            ..ext4()
        };
        assert!(nfs(1, "s:/a").is_same(&nfs(2, "s:/a")));
        assert!(!nfs(1, "s:/a").is_same(&nfs(1, "t:/a")));
    }

    #[test]
    fn a_loop_device_whose_number_another_file_took_is_other_storage() {
        let lying_in = |file| StorageIdentity {
            device: Some((7, 0)),
            loop_file: Some(file),
            ..ext4()
        };
        let known = |path: &str, inode| LoopFile {
            device: (8, 1),
            inode,
            bytes: Some(64),
            ..LoopFile::at(path)
        };
        let was = lying_in(known("/a.img", 5));
        // Removed while it is mounted, and told by a shell, which knows the path alone.
        assert!(was.is_same(&lying_in(LoopFile::at("/a.img"))));
        assert!(!was.is_same(&lying_in(LoopFile::at("/b.img"))));
        assert!(!was.is_same(&lying_in(known("/a.img", 6))));
        let cut_off = LoopFile {
            bytes: Some(0),
            ..known("/a.img", 5)
        };
        assert!(!was.is_same(&lying_in(cut_off)));
    }

    #[test]
    fn a_file_that_is_mounted_again_has_another_loop_device_and_is_the_same_storage() {
        let lying_in = |inode, minor| StorageIdentity {
            device: Some((7, minor)),
            source: format!("/dev/loop{minor}"),
            loop_file: Some(LoopFile {
                device: (254, 0),
                inode,
                ..LoopFile::at("/srv/a.img")
            }),
            ..ext4()
        };
        assert!(lying_in(5, 4).is_same(&lying_in(5, 6)));
        // A copy has all numbers of the file system inside, and is another file.
        let said = lying_in(5, 4).difference(&lying_in(9, 4)).unwrap();
        assert!(said.contains("another one of the same kind"), "{said}");
        assert!(said.contains("/dev/loop4 on the file /srv/a.img"), "{said}");
    }

    #[test]
    fn servers_and_exports_are_told_apart() {
        let told = |source| {
            let remote = RemoteExport::of(source)?;
            Some((remote.server, remote.export))
        };
        let both = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(told("box:/srv/a"), both("box", "/srv/a"));
        assert_eq!(told("[fe80::1]:/srv"), both("[fe80::1]", "/srv"));
        assert_eq!(told("//box/share/x"), both("box", "share/x"));
        assert_eq!(told("/dev/sda1"), None);
        assert_eq!(told("tank/data"), None);
    }
}
