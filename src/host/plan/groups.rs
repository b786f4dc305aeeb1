//! What the imagined machine puts together of devices: arrays, volume groups, pools.
//!
//! As strict as the rest of it: what holds a device keeps it from being detached, wiped or given
//! away twice, and nothing goes while what it gives is in use.

use super::{Output, Signature, World, after, complained, said};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the parameters of the kernel's modules are.
pub(super) const PARAMETERS: &str = "/sys/module";

/// One array, volume group or pool.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// The tool that made it.
    tool: &'static str,
    /// Devices it lies on.
    pub(super) members: Vec<OsString>,
    /// Devices it gives.
    gives: Vec<OsString>,
    /// Exported: it is on its members alone.
    away: bool,
    /// What its tool was asked.
    asked: BTreeMap<String, String>,
    /// Datasets, by name, with what was asked for each.
    datasets: BTreeMap<String, BTreeMap<String, String>>,
}

/// `-o name=value`, `-O name=value` and `--name value` words.
fn asked(words: &[OsString]) -> BTreeMap<String, String> {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut found = BTreeMap::new();
    for (index, word) in words.iter().enumerate() {
        let next = words.get(index + 1).cloned().unwrap_or_default();
        if word == "-o" || word == "-O" {
            if let Some((name, value)) = next.split_once('=') {
                found.insert(name.to_string(), value.to_string());
            }
        } else if let Some((name, value)) = word
            .strip_prefix("--")
            .and_then(|word| word.split_once('='))
        {
            found.insert(name.to_string(), value.to_string());
        } else if let Some(name) = word.strip_prefix("--") {
            found.insert(name.to_string(), next);
        }
    }
    found
}

fn last(words: &[OsString]) -> String {
    words
        .last()
        .map(|word| word.to_string_lossy().into_owned())
        .unwrap_or_default()
}

impl World {
    pub(super) fn is_device(&self, name: &OsStr) -> bool {
        self.loops.contains_key(name)
            || self.disks.contains_key(name)
            || self.lab_disks.contains_key(name)
            || name.to_string_lossy().starts_with("/dev/drbd")
            || self
                .groups
                .values()
                .any(|group| !group.away && group.gives.iter().any(|given| given == name))
    }

    /// Whether it is mounted, or a member of something.
    pub(super) fn in_use(&self, device: &OsStr) -> bool {
        let member = |group: &Group| group.members.iter().any(|member| member == device);
        let mounted = |source: &OsStr| {
            let source = source.to_string_lossy();
            source.split(':').any(|part| OsStr::new(part) == device)
        };
        self.mounts.iter().any(|mount| mounted(&mount.source))
            || self
                .groups
                .values()
                .any(|group| !group.away && member(group))
    }

    fn is_busy(&self, name: &str) -> bool {
        let Some(group) = self.groups.get(name) else {
            return false;
        };
        let inside = format!("{name}/");
        group.gives.iter().any(|given| self.in_use(given))
            || self
                .mounts
                .iter()
                .any(|mount| mount.source.to_string_lossy().starts_with(&inside))
    }

    pub(super) fn sign(&mut self, device: &OsStr, file_system: &str, mark: &str) {
        let signature = Signature {
            file_system: file_system.to_string(),
            data: String::new(),
            metadata: String::new(),
            mark: mark.to_string(),
        };
        self.signatures.insert(device.to_os_string(), signature);
    }

    /// Devices among some words that are free to become members; an error where one is not.
    fn members(&self, words: &[OsString]) -> Result<Vec<OsString>, Output> {
        let devices = words.iter().filter(|word| self.is_device(word));
        let devices: Vec<OsString> = devices.cloned().collect();
        match devices.iter().find(|device| self.in_use(device)) {
            Some(device) => Err(complained(1, &format!("{device:?} is busy"))),
            None => Ok(devices),
        }
    }

    fn remove(&mut self, name: &str) -> Output {
        if self.is_busy(name) {
            return complained(1, "it is busy");
        }
        match self.groups.remove(name) {
            Some(group) => {
                for device in &group.gives {
                    self.signatures.remove(device);
                    self.forget_groups_on(device);
                }
                said("")
            }
            None => complained(1, "there is no such thing"),
        }
    }

    /// What was exported is gone with what it lies on, and with its labels; so is what lay on that.
    pub(super) fn forget_groups_on(&mut self, device: &OsString) {
        let gone = self
            .groups
            .extract_if(.., |_, group| group.members.contains(device));
        let gone: Vec<Group> = gone.map(|(_, group)| group).collect();
        for given in gone.iter().flat_map(|group| &group.gives) {
            self.signatures.remove(given);
            self.forget_groups_on(given);
        }
    }

    pub(super) fn untouched(&self, device: Option<&OsString>) -> Output {
        match device.is_some_and(|device| self.in_use(device)) {
            true => complained(1, "Device or resource busy"),
            false => said(""),
        }
    }

    /// A disk of ours that is not in use is blank afterwards.
    pub(super) fn discard(&mut self, device: Option<&OsString>) -> Output {
        let answer = self.untouched(device);
        if let Some(device) = device.filter(|_| answer.status == Some(0)) {
            self.signatures.remove(device);
        }
        answer
    }

    pub(super) fn wipefs(&mut self, words: &[OsString]) -> Output {
        let Some(device) = words.last() else {
            return complained(1, "bad usage");
        };
        if words.iter().any(|word| word == "--all") {
            let answer = self.untouched(Some(device));
            if answer.status == Some(0) {
                self.signatures.remove(device);
                self.forget_groups_on(device);
            }
            return answer;
        }
        let found = self.signatures.get(device);
        said(found.map_or("", |signature| &signature.file_system))
    }

    pub(super) fn blkid(&self, words: &[OsString]) -> Output {
        match words.last().and_then(|device| self.signatures.get(device)) {
            Some(found) => said(format!("UUID={}\nTYPE={}\n", found.mark, found.file_system)),
            None => complained(2, ""),
        }
    }

    pub(super) fn mdadm(&mut self, words: &[OsString]) -> Output {
        let of_device = |world: &Self, device: &OsStr| {
            let mut groups = world.groups.iter();
            let found = groups.find(|(_, group)| group.gives.iter().any(|given| given == device));
            found.map(|(uuid, _)| uuid.clone())
        };
        if let Some(device) = after(words, "--create") {
            let members = match self.members(words) {
                Ok(members) => members,
                Err(answer) => return answer,
            };
            let asked = asked(words);
            let uuid = asked.get("uuid").cloned().unwrap_or_default();
            for member in &members {
                self.sign(member, "linux_raid_member", &uuid);
            }
            let group = Group {
                tool: "mdadm",
                members,
                gives: vec![device.clone()],
                asked,
                ..Group::default()
            };
            self.groups.insert(uuid, group);
            return said("");
        }
        if words.iter().any(|word| word == "--scan") {
            let arrays = self
                .groups
                .iter()
                .filter(|(_, group)| group.tool == "mdadm");
            let lines = arrays.map(|(uuid, group)| {
                let device = group.gives[0].to_string_lossy();
                format!("ARRAY {device} metadata=1.2 UUID={uuid}\n")
            });
            return said(lines.collect::<String>());
        }
        if let Some(device) = after(words, "--stop") {
            return match of_device(self, device) {
                Some(uuid) => self.remove(&uuid),
                None => complained(1, "no such array"),
            };
        }
        let device = words.last().and_then(|device| of_device(self, device));
        match device.and_then(|uuid| self.groups.get(&uuid)) {
            Some(group) => said(format!(
                "MD_LEVEL=raid{}\nMD_DEVICES={}\n",
                group.asked.get("level").cloned().unwrap_or_default(),
                group.asked.get("raid-devices").cloned().unwrap_or_default(),
            )),
            None => said(""),
        }
    }

    /// What `/sys/class/block/NAME/md` says of an imagined array.
    pub(super) fn about_array(&self, name: &OsStr, about: &str) -> Option<String> {
        let of_name = |group: &&Group| {
            let mut given = group.gives.iter();
            group.tool == "mdadm" && given.any(|given| Path::new(given).file_name() == Some(name))
        };
        let group = self.groups.values().find(of_name)?;
        let word = |name: &str| group.asked.get(name).cloned();
        let count: usize = word("raid-devices")?.parse().ok()?;
        Some(match about.strip_prefix("md/")? {
            "level" => format!("raid{}", word("level")?),
            "raid_disks" => count.to_string(),
            "degraded" => (count - group.members.len()).to_string(),
            "chunk_size" => {
                let kib: u64 = word("chunk").unwrap_or_default().parse().unwrap_or(0);
                (kib * 1024).to_string()
            }
            "bitmap/location" => match word("bitmap").as_deref() {
                Some("internal") => "+8".to_string(),
                _ => "none".to_string(),
            },
            "metadata_version" => word("metadata")?,
            _ => return None,
        })
    }

    /// The size of what is given, of which nothing else is looked at: of no matter.
    pub(super) fn about_given(&self, name: &OsStr, about: &str) -> Option<String> {
        let mut given = self.groups.values().flat_map(|group| &group.gives);
        let known = given.any(|given| Path::new(given).file_name() == Some(name));
        (known && about == "size").then(|| (1 << 21).to_string())
    }

    pub(super) fn about_disk(&self, name: &OsStr, about: &str) -> Option<String> {
        let mut disks = self.disks.iter();
        let (_, disk) = disks.find(|(link, _)| Path::new(link).file_name() == Some(name))?;
        match about {
            "size" => Some((disk.size / 512).to_string()),
            "device/model" => Some(disk.model.clone()),
            _ => None,
        }
    }

    pub(super) fn parameter(&self, path: &Path) -> Option<String> {
        if !path.starts_with(PARAMETERS) {
            return None;
        }
        let written = self.parameters.get(path).cloned();
        Some(written.unwrap_or_else(|| "{before}".to_string()))
    }

    pub(super) fn lvm(&mut self, tool: &str, words: &[OsString]) -> Output {
        match tool {
            "pvcreate" => {
                let mark = asked(words).get("uuid").cloned().unwrap_or_default();
                match (self.untouched(words.last()), words.last()) {
                    (answer, Some(device)) if answer.status == Some(0) => {
                        self.sign(device, "LVM2_member", &mark);
                        answer
                    }
                    (answer, _) => answer,
                }
            }
            "vgcreate" => match self.members(words) {
                Err(answer) => answer,
                Ok(members) => {
                    let first = words.iter().position(|word| self.is_device(word));
                    let name = first.and_then(|at| words.get(at.checked_sub(1)?));
                    let name = name.map(|name| name.to_string_lossy().into_owned());
                    let group = Group {
                        tool: "vgcreate",
                        members,
                        ..Group::default()
                    };
                    self.groups.insert(name.unwrap_or_default(), group);
                    said("")
                }
            },
            "vgs" => {
                let groups = self
                    .groups
                    .iter()
                    .filter(|(_, group)| group.tool == "vgcreate");
                said(
                    groups
                        .map(|(name, _)| format!("  {name}\n"))
                        .collect::<String>(),
                )
            }
            "vgremove" => self.remove(&last(words)),
            "lvs" => self.lvs(&last(words)),
            _ => self.lvcreate(tool, words),
        }
    }

    fn lvcreate(&mut self, tool: &str, words: &[OsString]) -> Output {
        let asked = asked(words);
        let mut places = words.iter().map(|word| word.to_string_lossy());
        let place = places.find_map(|word| {
            let group = word.split('/').next()?;
            self.groups.contains_key(group).then(|| group.to_string())
        });
        let Some(group) = place.as_ref().and_then(|name| self.groups.get_mut(name)) else {
            return complained(5, "Volume group not found");
        };
        if tool == "lvconvert" {
            group.asked.extend(asked);
            return said("");
        }
        let name = asked.get("name").cloned().unwrap_or_default();
        let path = PathBuf::from("/dev")
            .join(place.unwrap_or_default())
            .join(&name);
        group.gives.push(path.into());
        if name == "data" {
            group.asked.extend(asked);
        }
        said("")
    }

    /// The volume `data` as `lvs --reportformat json` gives it.
    fn lvs(&self, name: &str) -> Output {
        let Some(group) = self.groups.get(name) else {
            return complained(5, "Volume group not found");
        };
        let word = |name: &str, default: &str| {
            let word = group.asked.get(name).cloned();
            word.unwrap_or_else(|| default.to_string())
        };
        let kib: u64 = word("stripesize", "0")
            .trim_end_matches('k')
            .parse()
            .unwrap_or(0);
        said(format!(
            "{{\"report\":[{{\"lv\":[{{\"lv_name\":\"data\",\"segtype\":\"{}\",\"stripes\":\"{}\",\"stripe_size\":\"{}\",\"cache_mode\":\"{}\",\"lv_size\":\"1073741824\",\"origin\":\"\"}},{{\"lv_name\":\"[pool]\",\"segtype\":\"thin-pool\",\"lv_size\":\"1073741824\",\"origin\":\"\"}},{{\"lv_name\":\"snapshot\",\"segtype\":\"linear\",\"lv_size\":\"1073741824\",\"origin\":\"data\"}}]}}]}}",
            word("type", "linear"),
            word("stripes", "1"),
            kib * 1024,
            word("cachemode", ""),
        ))
    }

    pub(super) fn zpool(&mut self, words: &[OsString]) -> Output {
        let verb = words
            .first()
            .map(|word| word.to_string_lossy().into_owned());
        match verb.as_deref() {
            Some("create") => self.zpool_create(words),
            Some("list") => {
                let pools = self.groups.iter();
                let pools = pools.filter(|(_, group)| group.tool == "zpool" && !group.away);
                said(
                    pools
                        .map(|(name, _)| format!("{name}\n"))
                        .collect::<String>(),
                )
            }
            Some("destroy") => self.remove(&last(words)),
            Some("export") if self.is_busy(&last(words)) => complained(1, "pool is busy"),
            Some(verb @ ("export" | "import")) => {
                let devices = self
                    .groups
                    .get(&last(words))
                    .map(|group| group.members.clone());
                let there = |device: &OsString| self.is_device(device);
                if !devices.is_some_and(|devices| devices.iter().all(there)) {
                    return complained(1, "no such pool available");
                }
                if let Some(group) = self.groups.get_mut(&last(words)) {
                    group.away = verb == "export";
                }
                said("")
            }
            Some("get") => match self.groups.get(&last(words)) {
                Some(group) => said(table(&last(words), &group.asked, "  ")),
                None => complained(1, "no such pool"),
            },
            _ => said(""),
        }
    }

    fn zpool_create(&mut self, words: &[OsString]) -> Output {
        let members = match self.members(words) {
            Ok(members) => members,
            Err(answer) => return answer,
        };
        // After the options, each of one word: the name, then the topology.
        let mut rest = words[1..].iter().peekable();
        let mut name = String::new();
        while let Some(word) = rest.next() {
            match word.to_string_lossy().as_ref() {
                "-o" | "-O" => {
                    rest.next();
                }
                "-f" => {}
                word => {
                    name = word.to_string();
                    break;
                }
            }
        }
        for member in &members {
            self.sign(member, "zfs_member", &name);
        }
        let group = Group {
            tool: "zpool",
            members,
            asked: asked(words),
            ..Group::default()
        };
        self.groups.insert(name, group);
        said("")
    }

    pub(super) fn zfs(&mut self, words: &[OsString]) -> Output {
        let name = last(words);
        let pool = name.split('/').next().unwrap_or_default().to_string();
        let Some(group) = self.groups.get_mut(&pool).filter(|group| !group.away) else {
            return complained(1, "dataset does not exist");
        };
        match words.first().map(|word| word.to_string_lossy()).as_deref() {
            Some("create") => {
                let mut asked = asked(words);
                if let Some(size) = after(words, "-V") {
                    asked.insert("volsize".into(), size.to_string_lossy().into_owned());
                    group.gives.push(Path::new("/dev/zvol").join(&name).into());
                }
                group.datasets.insert(name, asked);
                said("")
            }
            Some("mount") => {
                let asked = group.datasets.get(&name);
                let point = asked.and_then(|asked| asked.get("mountpoint")).cloned();
                let Some(point) = point.filter(|point| self.dirs.contains(Path::new(point))) else {
                    return complained(1, "cannot be mounted");
                };
                let options = vec!["rw".to_string()];
                self.mounted(OsStr::new(&name), point.into(), "zfs", options);
                said("")
            }
            Some("get") => match group.datasets.get(&name) {
                Some(asked) => said(table(&name, asked, "\t")),
                None => complained(1, "dataset does not exist"),
            },
            _ => said(""),
        }
    }

    pub(super) fn zdb(&self, words: &[OsString]) -> Output {
        let Some(device) = words.last() else {
            return complained(1, "bad usage");
        };
        let member = |group: &&Group| group.tool == "zpool" && group.members.contains(device);
        let Some(group) = self.groups.values().find(member) else {
            return complained(1, "failed to unpack label 0");
        };
        let ashift = group.asked.get("ashift").map_or("12", String::as_str);
        said(format!("    vdev_tree:\n        ashift: {ashift}\n"))
    }
}

fn table(name: &str, asked: &BTreeMap<String, String>, between: &str) -> String {
    let line = |(property, value): (&String, &String)| {
        [name, property, value, "local"].join(between) + "\n"
    };
    asked.iter().map(line).collect()
}
