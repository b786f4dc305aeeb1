//! Block devices as `/sys` shows them: which lie under a directory, and what they are.

use stackrace_base::event::{DriveClass, DriveTold, Fact, FactFigure};
use stackrace_base::setting::{Refusal, Settings};
use stackrace_base::unit;
use stackrace_machine::host::{Host, HostError, MountInfo};
use std::path::{Path, PathBuf};

/// Deepest pile of devices that is followed.
const DEPTH_MAX: u32 = 16;

/// The kernel's disks.
pub const DISKS: &str = "/sys/block";

/// `/sys` counts sizes in 512 byte units, whatever the device's sectors are.
pub const SYS_SECTOR_BYTES: u64 = 512;

/// The kernel's name of a device: `loop3` for `/dev/loop3`.
pub fn name(device: &Path) -> String {
    device
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Bytes that so many bytes take on devices of which `parity` hold no data.
pub fn with_parity(bytes: u64, devices: usize, parity: usize) -> u64 {
    // With too few devices the layer itself is refused.
    let data = devices.saturating_sub(parity).max(1);
    bytes.saturating_mul(devices.max(1) as u64) / data as u64
}

/// The kernel's own name of a device, also where a link names it: `/dev/vg/lv` → `dm-3`.
pub fn kernel_name(host: &dyn Host, device: &Path) -> String {
    match host.canonical(device) {
        Ok(device) => name(&device),
        Err(_) => name(device),
    }
}

/// Names of the block devices a mounted file system lies on; empty where it lies on none, or they
/// cannot be found out.
pub fn under_mount(host: &dyn Host, mount: &MountInfo) -> Vec<String> {
    let (major, minor) = mount.st_dev;
    let by_number = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    if let Ok(device) = host.canonical(&by_number) {
        return vec![name(&device)];
    }
    // Btrfs answers stat(2) with a number of its own; its source is one device of possibly many.
    let source = Path::new(&mount.source);
    if !source.starts_with("/dev") {
        return Vec::new();
    }
    // A source may be a link (/dev/mapper/x); members below have the kernel's names.
    let Ok(device) = host.canonical(source) else {
        return Vec::new();
    };
    let one = name(&device);
    let pools = Path::new("/sys/fs/btrfs");
    for pool in host.list(pools).unwrap_or_default() {
        let members = host.list(&pools.join(pool).join("devices"));
        let members: Vec<String> = members
            .unwrap_or_default()
            .iter()
            .map(|member| member.to_string_lossy().into_owned())
            .collect();
        if members.contains(&one) {
            return members;
        }
    }
    vec![one]
}

/// The whole disks under some devices: partitions give their disk, mapped and loop devices what they
/// lie on. None twice, in order of appearance.
pub fn disks(host: &dyn Host, devices: &[String]) -> Vec<String> {
    let all = all_below(host, devices).into_iter();
    all.filter(|device| device.is_disk)
        .map(|device| device.name)
        .collect()
}

/// A device that was found on the way down.
pub struct FoundDevice {
    /// The kernel's name of it.
    pub name: String,
    /// True if it lies on nothing else of this machine.
    is_disk: bool,
}

/// Some devices and everything below them, upper ones first, none twice: what a loop device's file lies
/// on, what a mapped device is made of, the disk of a partition.
pub fn all_below(host: &dyn Host, devices: &[String]) -> Vec<FoundDevice> {
    let mut found = Vec::new();
    for device in devices {
        descend(host, device, DEPTH_MAX, &mut found);
    }
    found
}

fn descend(host: &dyn Host, device: &str, depth_left: u32, found: &mut Vec<FoundDevice>) {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return;
    };
    // Two members of an array may be partitions of one disk.
    if found.iter().any(|known| known.name == device) {
        return;
    }
    let directory = host.canonical(&Path::new("/sys/class/block").join(device));
    let below = directory.as_ref().map(|directory| below(host, directory));
    found.push(FoundDevice {
        name: device.to_owned(),
        is_disk: matches!(below, Ok(None)),
    });
    for device in below.ok().flatten().unwrap_or_default() {
        descend(host, &device, depth_left, found);
    }
}

/// Devices on which the device of a directory of `/sys` lies; `None` if it is a whole disk.
fn below(host: &dyn Host, directory: &Path) -> Option<Vec<String>> {
    // A partition's directory lies in that of its disk.
    if host.exists(&directory.join("partition")) {
        return Some(vec![name(directory.parent()?)]);
    }
    // dm and md list here what they are made of.
    let members = host.list(&directory.join("slaves")).unwrap_or_default();
    if !members.is_empty() {
        let names = members.iter();
        return Some(
            names
                .map(|name| name.to_string_lossy().into_owned())
                .collect(),
        );
    }
    // A loop device has no members: it lies where its file lies.
    let file = host.read_text(&directory.join("loop/backing_file")).ok()?;
    let folder = Path::new(file.trim_end_matches('\n')).parent()?;
    Some(under_mount(host, &host.mount_of(folder).ok()?))
}

/// Describes a whole disk in one line: model, size, sectors, scheduler, rotation, write cache.
pub fn fact(host: &dyn Host, disk: &str) -> Fact {
    let directory = Path::new("/sys/class/block").join(disk);
    let read = |name: &str| {
        let text = host.read_text(&directory.join(name)).ok()?;
        let text = text.trim();
        // Some drivers have the file and say nothing in it.
        (!text.is_empty()).then(|| text.to_string())
    };
    let size = read("size").and_then(|sectors| sectors.parse::<u64>().ok());
    let cache = read("queue/write_cache");
    let rotational = read("queue/rotational").map(|flag| flag == "1");
    let drive = DriveTold {
        class: DriveClass::of(disk, rotational),
        model: read("device/model"),
        bytes: size.map(|sectors| sectors.saturating_mul(SYS_SECTOR_BYTES)),
    };
    let parts = [
        drive.model.as_ref().map(|model| format!("model {model}")),
        drive.bytes.map(unit::bytes),
        read("queue/logical_block_size").map(|bytes| format!("logical sector {bytes} B")),
        read("queue/physical_block_size").map(|bytes| format!("physical sector {bytes} B")),
        read("queue/scheduler").map(|all| format!("scheduler {}", chosen(&all))),
        rotational.map(|turns| match turns {
            true => "rotational".to_owned(),
            false => "not rotational".to_owned(),
        }),
        cache.as_ref().map(|mode| format!("cache {mode}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let fact = Fact::new(format!("disk {disk}"), parts.join(", ")).of_drive(drive);
    match cache.as_deref() {
        Some("write back") => fact.with(FactFigure::VolatileCache(true)),
        Some("write through") => fact.with(FactFigure::VolatileCache(false)),
        _ => fact,
    }
}

/// `mq-deadline [none] kyber` → `none`.
pub fn chosen(all: &str) -> &str {
    all.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(all, |(word, _)| word)
}

/// Returns true if a file of the kernel's says just this of a device; a page of SCSI has bytes that are no text
/// before it.
pub fn says(text: &str, what: &str) -> bool {
    let parts = text.split(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    parts.into_iter().any(|part| part.trim() == what)
}

/// The kernel's release, as a fact; `None` if it cannot be read.
pub fn kernel(host: &dyn Host) -> Option<Fact> {
    host.read_text(Path::new("/proc/sys/kernel/osrelease"))
        .ok()
        .map(|text| Fact::new("kernel", text.trim()))
}

/// Bytes of a sector that a study gives: one that the kernel has.
///
/// # Errors
/// Another size.
pub fn sector(settings: &Settings, name: &str) -> Result<u64, Refusal> {
    let sector = settings.bytes(name)?;
    match [512, 1024, 2048, 4096].contains(&sector) {
        true => Ok(sector),
        false => Err(settings.refuse(
            name,
            format!("sectors of {sector} B are not possible"),
            "write 512, 1024, 2048 or 4096",
        )),
    }
}

/// A text of a disk below `/sys/block/NAME`, without the line's end.
///
/// # Errors
/// It cannot be read.
pub fn told(host: &dyn Host, disk: &str, file: &str) -> Result<String, HostError> {
    let text = host.read_text(&Path::new(DISKS).join(disk).join(file))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_force_is_the_one_in_brackets() {
        assert_eq!(chosen("[none] mq-deadline kyber bfq"), "none");
        assert_eq!(chosen("mq-deadline [bfq] none"), "bfq");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn a_device_is_not_taken_for_one_whose_name_begins_alike() {
        assert!(says("loop1\n", "loop1"));
        assert!(!says("loop10\n", "loop1"));
        let page = String::from_utf8_lossy(b"\x00\x80\x00\x05ours1");
        assert!(says(&page, "ours1"));
        assert!(!says(&page, "ours"));
    }
}
