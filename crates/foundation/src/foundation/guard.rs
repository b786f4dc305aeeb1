//! What stands between a study and a user's data: whether a disk may be written over.
//!
//! A disk is named by an id that stays, and its size and model must be what the study says. The id
//! is followed once: from then on the disk is known by its number, and held open. It must be unused,
//! and hold nothing, unless its id is repeated on the command line: then what it holds is wiped.
//! What is in use is never touched. Looking is one thing ([`inspect`]), judging another
//! ([`objections`]): the judgement needs no machine.

use crate::foundation::block;
use crate::foundation::error::LayerError;
use crate::foundation::identity::Identity;
use stackrace_base::event::shell;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::{DeviceContent, FixedDevice, Host, HostError, Needs, Output, argv};
use stackrace_machine::journal::{erase, partitions};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Model of a disk that reports none.
pub const NO_MODEL: &str = "none";

/// A disk that a study names, found once and held since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDisk {
    /// The disk as the study names it.
    pub asked: Identity,
    /// The device it was found to be.
    pub device: FixedDevice,
}

/// Findings about a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The kernel's name: `sdb`; `None` if there is no such link.
    pub name: Option<String>,
    /// True if it is a part of a disk.
    pub partition: bool,
    /// Bytes.
    pub size: Option<u64>,
    /// The model as the kernel gives it; [`NO_MODEL`] where it gives none.
    pub model: String,
    /// Content that would be lost: `ext4 "photos"`, `the partition sdb1`.
    pub carries: Vec<String>,
    /// Its uses: `mounted at /srv`.
    pub uses: Vec<String>,
}

/// Objections to writing over a disk, each with what to do; empty if there are none.
pub fn objections(asked: &Identity, found: &Found, wipe: bool) -> Vec<(String, String)> {
    let id = &asked.id;
    let Some(name) = &found.name else {
        return vec![(
            format!("there is no device {}", asked.link().shown()),
            format!(
                "look for its id: {}",
                shell(&["ls".as_ref(), "-l".as_ref(), asked.directory.as_os_str()])
            ),
        )];
    };
    let mut objections = Vec::new();
    if found.partition {
        objections.push((
            format!("{id} ({name}) is a part of a disk"),
            "name the whole disk, or make a study for a directory".to_string(),
        ));
    }
    // To the byte: a model is sold in several sizes, and an id may be mistyped.
    if found.size != Some(asked.size) {
        let (words, next) = match found.size {
            Some(size) => (
                format!("has {size} bytes, and the study says {}", asked.size),
                format!("if it is the disk you mean, write size = \"{size} B\""),
            ),
            None => ("does not tell its size".to_string(), String::new()),
        };
        objections.push((format!("{id} ({name}) {words}"), next));
    }
    if found.model != asked.model {
        objections.push((
            format!(
                "{id} ({name}) is of the model \"{}\", and the study says \"{}\"",
                found.model, asked.model
            ),
            format!(
                "if it is the disk you mean, write model = \"{}\"",
                found.model
            ),
        ));
    }
    objections.extend(found.uses.iter().map(|usage| {
        (
            format!("{id} ({name}) is in use: {usage}"),
            "choose another device, or end that use yourself".to_string(),
        )
    }));
    if !wipe && !found.carries.is_empty() {
        objections.push((
            format!("{id} ({name}) carries {}", found.carries.join(", ")),
            format!("if all of that may be lost, add: --wipe {id}"),
        ));
    }
    objections
}

/// Refuses a disk that may not be written over; wipes what it holds where that is allowed.
///
/// # Errors
/// The first objection; that it still holds something after wiping.
pub fn clear(host: &dyn Host, asked: &Identity, wipe: bool) -> Result<NamedDisk, LayerError> {
    let disk = find(host, asked)?;
    let found = look(host, &disk, Looking::AtAll)?;
    refuse(objections(asked, &found, wipe))?;
    if !found.carries.is_empty() {
        let node = &disk.device.node;
        // Partitions first: wiping the table of the disk makes their devices disappear.
        for partition in partitions(host, node) {
            erase(host, &partition)?;
        }
        erase(host, node)?;
        // Between its ends it holds what it held: that this may be lost was said.
        host.leave_device(&disk.device)?;
        let found = look(host, &disk, Looking::AtAll)?;
        refuse(objections(asked, &found, false))?;
    }
    Ok(disk)
}

/// A disk that nothing uses, whatever it holds.
///
/// # Errors
/// The first objection.
pub fn unused(host: &dyn Host, asked: &Identity) -> Result<NamedDisk, LayerError> {
    let disk = find(host, asked)?;
    // It is only read and mounted: what it carries is no objection.
    refuse(objections(
        asked,
        &look(host, &disk, Looking::AtSignatures)?,
        true,
    ))?;
    Ok(disk)
}

/// Refuses a disk that may not be written over, or holds anything.
///
/// # Errors
/// The first objection.
#[cfg(any(test, feature = "testing"))]
pub fn blank(host: &dyn Host, asked: &Identity) -> Result<(), LayerError> {
    refuse(objections(asked, &inspect(host, asked)?, false))
}

/// Refuses a disk that was accepted, if it has been put to use since, or carries a signature.
///
/// # Errors
/// The first objection; another disk that stands in its place.
pub fn still_free(host: &dyn Host, disk: &NamedDisk) -> Result<(), LayerError> {
    still_there(host, disk)?;
    let found = look(host, disk, Looking::AtSignatures)?;
    refuse(objections(&disk.asked, &found, false))
}

/// Refuses a disk whose path leads to another one now.
///
/// # Errors
/// When it does.
pub fn still_there(host: &dyn Host, disk: &NamedDisk) -> Result<(), LayerError> {
    let NamedDisk { asked, device } = disk;
    if host.fix_device(&device.node)?.number == device.number {
        return Ok(());
    }
    Err(LayerError::refused(
        format!(
            "{} was {} and is another disk now",
            device.node.shown(),
            asked.id
        ),
        "look what happened to it: dmesg | tail",
    ))
}

/// The error that two ids of a study lead to one disk.
pub fn same_disk(one: &str, other: &str, node: &Path) -> LayerError {
    LayerError::refused(
        format!(
            "{one} and {other} are the same disk ({})",
            block::name(node)
        ),
        format!("write {one} wherever that disk is meant"),
    )
}

fn refuse(objections: Vec<(String, String)>) -> Result<(), LayerError> {
    match objections.into_iter().next() {
        None => Ok(()),
        Some((message, next)) => Err(LayerError::refused(message, next)),
    }
}

/// Follows the id of a disk, for the only time.
fn find(host: &dyn Host, asked: &Identity) -> Result<NamedDisk, LayerError> {
    let link = asked.link();
    // With nothing found, the first objection says that there is no such device.
    if !host.exists(&link) {
        refuse(objections(asked, &Found::default(), false))?;
    }
    Ok(NamedDisk {
        asked: asked.clone(),
        device: host.fix_device(&link)?,
    })
}

/// Looks at a disk with the system's own tools, and with those of md, LVM and ZFS where they are
/// installed; changes nothing.
///
/// # Errors
/// When a tool that must be there fails: what cannot be looked at cannot be judged.
pub fn inspect(host: &dyn Host, asked: &Identity) -> Result<Found, LayerError> {
    if !host.exists(&asked.link()) {
        return Ok(Found::default());
    }
    Ok(look(host, &find(host, asked)?, Looking::AtAll)?)
}

/// Extent to which a disk is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looking {
    /// Everything that the tools know, and samples of all it holds.
    AtAll,
    /// Everything that the tools know.
    AtSignatures,
}

fn look(host: &dyn Host, disk: &NamedDisk, looking: Looking) -> Result<Found, HostError> {
    let device = &disk.device.node;
    let name = block::name(device);
    let directory = Path::new("/sys/class/block").join(&name);
    let read = |what: &str| host.read_text(&directory.join(what));
    let model = read("device/model").unwrap_or_default();
    let parts = partitions(host, device);
    let mut found = Found {
        partition: host.exists(&directory.join("partition")),
        size: read("size")
            .ok()
            .and_then(|sectors| sectors.trim().parse::<u64>().ok())
            .and_then(|sectors| sectors.checked_mul(block::SYS_SECTOR_BYTES)),
        model: match model.trim() {
            "" => NO_MODEL.to_string(),
            model => model.to_string(),
        },
        name: Some(name),
        ..Found::default()
    };
    found.carries.extend(
        parts
            .iter()
            .map(|part| format!("the partition {}", block::name(part))),
    );
    for part in std::iter::once(device).chain(&parts) {
        carried(host, part, &mut found)?;
        used(host, part, &mut found.uses)?;
    }
    // A switch on the device, or a snapshot: it would fail at the first write.
    if read("ro").is_ok_and(|flag| flag.trim() == "1") {
        found.uses.push("it is read-only".to_string());
    }
    if found.uses.is_empty() {
        // Only where the tables show nothing: going through all processes takes time.
        found.uses = host.device_users(&disk.device);
    }
    // Reading a hard disk here and there takes seconds, and says nothing more of one that carries
    // a signature or is in use.
    if looking == Looking::AtAll
        && found.carries.is_empty()
        && found.uses.is_empty()
        && let DeviceContent::Data { at } = host.device_content(&disk.device)?
    {
        let what = format!("data without a known signature, at or before byte {at}");
        found.carries.push(what);
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, what: String) {
        // Several tools may name the same.
        if !self.carries.contains(&what) {
            self.carries.push(what);
        }
    }
}

/// Asks a tool about a device.
fn ask(host: &dyn Host, words: &[&str], device: &Path) -> Result<Output, HostError> {
    let words = words.iter().map(OsString::from);
    host.exec(&argv(words.chain([device.as_os_str().to_os_string()])))
}

/// Finds what one device or partition carries, as each tool names it, and whether its pool is imported.
fn carried(host: &dyn Host, device: &Path, found: &mut Found) -> Result<(), HostError> {
    let listed = [
        "wipefs",
        "--no-act",
        "--noheadings",
        "--output",
        "TYPE,LABEL",
    ];
    let listed = host.must(&argv(
        listed.iter().map(OsStr::new).chain([device.as_os_str()]),
    ))?;
    for line in listed.stdout.lines().filter(|line| !line.trim().is_empty()) {
        found.add(signature(line));
    }
    let probed = ask(host, &["blkid", "--probe", "--output", "export"], device)?;
    match probed.status {
        // blkid(8): 2 is "nothing found".
        Some(2) => {}
        // wipefs has named it already, with its label.
        Some(0) if !listed.stdout.trim().is_empty() => {}
        _ => found.add(format!(
            "what blkid says: {}",
            [probed.stdout.trim(), probed.stderr.trim()]
                .join(" ")
                .trim()
                .replace('\n', ", ")
        )),
    }
    pooled(host, device, found)
}

/// Finds what md, LVM and ZFS know of a device, where they are installed: each finds remains of its
/// own that the others do not know.
fn pooled(host: &dyn Host, device: &Path, found: &mut Found) -> Result<(), HostError> {
    let installed = |tool: &'static [&'static str]| {
        let needs = Needs {
            tools: tool,
            ..Needs::default()
        };
        host.missing(&needs).is_empty()
    };
    if installed(&["mdadm"]) {
        let examined = ask(host, &["mdadm", "--examine"], device)?;
        if examined.stdout.contains("Array UUID") {
            found.add("a member of an array (mdadm)".to_string());
        }
    }
    if installed(&["pvs"]) {
        let names = ["pvs", "--noheadings", "--options", "vg_name"];
        let volume = ask(host, &names, device)?;
        // pvs fails for a device that is no physical volume.
        if volume.status == Some(0) {
            found.add(match volume.stdout.trim() {
                "" => "a physical volume (pvs)".to_string(),
                group => format!("a physical volume of the group {group} (pvs)"),
            });
        }
    }
    if installed(&["zdb"]) {
        let labels = ask(host, &["zdb", "-l"], device)?;
        if let Some(pool) = pool_of(&labels.stdout) {
            found.add(format!("a label of the pool {pool} (zdb)"));
            // ZFS in user space holds no device in a way that the kernel would know of.
            let pools = host.exec(&argv(["zpool", "list", "-H", "-o", "name"]))?;
            if pools.stdout.lines().any(|line| line.trim() == pool) {
                found.uses.push(format!("the pool {pool} is imported"));
            }
        }
    }
    Ok(())
}

/// `ext4   photos` → `ext4 "photos"`.
fn signature(line: &str) -> String {
    match line.trim().split_once(char::is_whitespace) {
        None => line.trim().to_string(),
        Some((kind, label)) => format!("{kind} \"{}\"", label.trim()),
    }
}

/// The pool in the labels `zdb -l` prints.
pub fn pool_of(labels: &str) -> Option<&str> {
    let line = labels
        .lines()
        .find_map(|line| line.trim().strip_prefix("name: "))?;
    Some(line.trim().trim_matches('\''))
}

/// Finds what one device or partition is used for, as the system's tables show it.
fn used(host: &dyn Host, device: &Path, uses: &mut Vec<String>) -> Result<(), HostError> {
    let name = block::name(device);
    let directory = Path::new("/sys/class/block").join(&name);
    for holder in host.list(&directory.join("holders")).unwrap_or_default() {
        uses.push(format!("{name} is held by {}", holder.to_string_lossy()));
    }
    // By number as well: the source of a mount is whatever text was given to mount(2).
    let number = host.read_text(&directory.join("dev")).unwrap_or_default();
    for mount in host.mounts()? {
        let (major, minor) = mount.st_dev;
        let source = host.canonical(Path::new(&mount.source));
        if source.is_ok_and(|source| source == device)
            || number.trim() == format!("{major}:{minor}")
        {
            uses.push(format!(
                "{name} is mounted at {}",
                mount.mount_point.shown()
            ));
        }
    }
    let swaps = host.read_text(Path::new("/proc/swaps")).unwrap_or_default();
    let swapped = |line: &str| {
        let file = line.split_whitespace().next().unwrap_or_default();
        host.canonical(Path::new(file))
            .is_ok_and(|file| file == device)
    };
    // The first line is the head of the table.
    if swaps.lines().skip(1).any(swapped) {
        uses.push(format!("{name} holds swapped memory"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn asked() -> Identity {
        Identity {
            directory: PathBuf::from("/dev/disk/by-id"),
            id: "ata-X_1".to_string(),
            size: 4096,
            model: "X".to_string(),
        }
    }

    fn found() -> Found {
        Found {
            name: Some("sdb".to_string()),
            size: Some(4096),
            model: "X".to_string(),
            ..Found::default()
        }
    }

    #[test]
    fn the_disk_that_is_named_blank_and_unused_is_accepted() {
        assert_eq!(objections(&asked(), &found(), false), []);
        assert_eq!(objections(&asked(), &found(), true), []);
    }

    /// Every single reason is enough, and permission to wipe helps against one of them alone.
    #[test]
    fn every_reason_alone_refuses() {
        let one = |change: &dyn Fn(&mut Found)| {
            let mut found = found();
            change(&mut found);
            found
        };
        let reasons = [
            (one(&|f| f.name = None), "there is no device"),
            (one(&|f| f.partition = true), "is a part of a disk"),
            (one(&|f| f.size = Some(4097)), "has 4097 bytes"),
            (one(&|f| f.size = None), "does not tell its size"),
            (one(&|f| f.model = "Y".to_string()), "of the model \"Y\""),
            (one(&|f| f.uses = vec!["mounted".to_string()]), "is in use"),
            (
                one(&|f| f.carries = vec!["ext4".to_string()]),
                "carries ext4",
            ),
        ];
        for (found, words) in reasons {
            let refused = objections(&asked(), &found, false);
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(refused[0].0.contains(words), "{refused:?}");
            let wiped = objections(&asked(), &found, true);
            assert_eq!(wiped.is_empty(), !found.carries.is_empty(), "{wiped:?}");
        }
    }

    #[test]
    fn a_pool_is_named_by_its_label() {
        // What zdb of zfs-fuse 0.7.0 printed of a loop device; OpenZFS indents the same words.
        let labels = "----\nLABEL 0\n----\n    version: 23\n    name: 'tank'\n    state: 0\n";
        assert_eq!(pool_of(labels), Some("tank"));
        assert_eq!(pool_of("failed to unpack label 0\n"), None);
        assert_eq!(signature("ext4       my photos"), "ext4 \"my photos\"");
        assert_eq!(signature("gpt "), "gpt");
    }
}
