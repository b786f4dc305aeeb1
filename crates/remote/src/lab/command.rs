//! The command line of QEMU that is one guest.
//!
//! The machine is `q35` with virtio devices alone and the kernel proper started directly. The smaller
//! `microvm` boots a second sooner, but has no clock a guest can trust when its instructions are
//! emulated. File names are relative to the machine's directory, in which QEMU is started: paths of
//! sockets are short by law (`sun_path`).

use super::description::Description;
use super::{postgresql, switch};
use crate::agent::message::PORT;
use stackrace_machine::host::LabDisk;
use std::path::Path;

/// The emulator that runs the guests.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// The program that says what an image of a disk is, and makes a file over one.
pub const QEMU_IMG: &str = "qemu-img";

/// Devices a `q35` has room for on its first bus, without those that are built in.
pub(super) const DEVICES_MAX: usize = 28;

/// Root, ZFS modules, serial port, network card, scratch disk.
const DEVICES_OTHER: usize = 5;

/// Most disks of one guest.
pub(super) const DISKS_MAX: usize = DEVICES_MAX - DEVICES_OTHER;

/// Means of running the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor itself.
    Kvm,
    /// Emulation by software.
    Tcg,
}

impl Accelerator {
    /// Name that QEMU gives the machine.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// QEMU's words for it, behind `-accel`.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Kvm => "kvm -cpu host",
            // One thread for each processor; without it TCG runs all of them in turn.
            Self::Tcg => "tcg,thread=multi -cpu max",
        }
    }
}

/// Files of one guest.
pub(super) struct GuestFiles<'a> {
    /// The machine's directory.
    pub(super) dir: &'a Path,
    /// The kernel of the image, uncompressed.
    pub(super) kernel: &'a Path,
    /// Its root file system.
    pub(super) root: &'a Path,
    /// Its ZFS modules.
    pub(super) zfs: Option<&'a Path>,
    /// True if the archive the kernel unpacks first has PostgreSQL.
    pub(super) postgresql: bool,
}

/// Serial of the disk for everything the guest keeps while it lives.
pub(super) const SCRATCH: &str = "lab-scratch";

/// Names of a node's files in the machine's directory.
pub(super) fn file(node: usize, what: &str) -> String {
    format!("node-{node}.{what}")
}

/// The command of one node, from 1.
pub(super) fn command(
    node: usize,
    description: &Description,
    accelerator: Accelerator,
    files: &GuestFiles<'_>,
) -> Vec<String> {
    let mut words: Vec<String> = vec![PROGRAM.to_string()];
    let mut add = |text: String| words.extend(text.split(' ').map(str::to_string));
    let cpu = accelerator.words();
    // Only the devices that are named, so that a guest is the same under every version of QEMU.
    add("-nodefaults -no-user-config -no-reboot -display none -machine q35,sata=off,smbus=off,usb=off".to_string());
    add(format!("-name stackrace-lab-{node} -accel {cpu}"));
    add(format!("-smp {}", description.processors));
    add(format!("-m size={}k", description.memory_bytes / 1024));
    let console = if description.shell_on == Some(node) {
        // Ctrl-C belongs to the guest whose console this is.
        "stdio,id=console,signal=off".to_string()
    } else {
        format!("file,id=console,path={}", file(node, "console"))
    };
    add(format!("-chardev {console} -serial chardev:console"));
    add("-device virtio-serial-pci".to_string());
    let agent = file(node, "agent");
    add(format!(
        "-chardev socket,id=agent,path={agent},server=on,wait=off -device virtserialport,chardev=agent,name={PORT}"
    ));
    if description.nodes > 1 {
        let (inside, outside) = (switch::inside(node), switch::outside(node));
        add(format!(
            "-netdev dgram,id=net,local.type=unix,local.path={inside},remote.type=unix,remote.path={outside}"
        ));
        add(format!(
            "-device virtio-net-pci,netdev=net,mac=52:54:00:77:00:{node:02x}"
        ));
    }
    for disk in &description.disks {
        add(drive(&file(node, &disk.serial), disk));
    }
    if let Some(bytes) = description.scratch_bytes {
        add(drive(&file(node, SCRATCH), &scratch(bytes)));
    }
    words.extend(["-kernel".to_string(), files.kernel.display().to_string()]);
    words.extend(["-initrd".to_string(), file(1, "first")]);
    words.extend([
        "-append".to_string(),
        append(node, description, accelerator, files),
    ]);
    let squashed = [("lab-root", Some(files.root)), ("lab-zfs", files.zfs)];
    for (serial, path) in squashed {
        if let Some(path) = path {
            words.extend(read_only(serial, path));
        }
    }
    // Names the machine's directory in full: that is how it is found when this program has died.
    words.push("-pidfile".to_string());
    words.push(files.dir.join(file(node, "pid")).display().to_string());
    words
}

/// The disk for what the guest keeps.
pub(super) fn scratch(bytes: u64) -> LabDisk {
    LabDisk {
        serial: SCRATCH.to_string(),
        bytes,
        logical_sector: 512,
        physical_sector: 4096,
        rate: None,
        requests: None,
        latency_ns: None,
        model: None,
    }
}

/// The kernel's words.
fn append(
    node: usize,
    description: &Description,
    accelerator: Accelerator,
    files: &GuestFiles<'_>,
) -> String {
    let mut text = format!(
        "console=ttyS0 quiet panic=-1 rdinit=/init lab.node={node} lab.nodes={}",
        description.nodes
    );
    if accelerator == Accelerator::Tcg {
        // The emulated time-stamp counter is calibrated wrongly on a busy machine, tenfold at worst;
        // the HPET follows the host's clock. Where the guest is kept waiting too long, the kernel takes
        // the timer to be broken and panics, unless told not to try it. And it would test each of its
        // ciphers, which takes seconds here.
        text.push_str(" tsc=unstable clocksource=hpet no_timer_check cryptomgr.notests");
    }
    if files.zfs.is_some() {
        text.push_str(" lab.zfs");
    }
    if files.postgresql {
        text.push_str(postgresql::TOLD);
    }
    if description.shell_on == Some(node) {
        text.push_str(" lab.shell=yes");
    }
    text
}

/// A disk that this program serves from a file (see [`super::disk`]). The page cache of this machine
/// is bypassed: what a disk forgets in a power cut and how fast it is would depend on it.
///
/// QEMU reads the rest of a sector and writes the whole where its sectors are larger than what the guest may write, as
/// such a disk does (`blkdebug` with nothing but `align`); each of these requests counts. Bytes are counted above that:
/// a throttle below would count what is discarded.
fn drive(file: &str, disk: &LabDisk) -> String {
    let serial = &disk.serial;
    let mut text = String::new();
    let mut below = "image".to_string();
    if let Some(requests) = disk.requests {
        text.push_str(&format!(
            "-object throttle-group,id={serial}-requests,x-iops-total={requests} "
        ));
    }
    text.push_str(&format!(
        "-drive if=none,id={serial},driver=blkdebug,align={},cache=none,discard=unmap",
        disk.physical_sector
    ));
    if let Some(rate) = disk.rate {
        text.push_str(&format!(",throttling.bps-total={rate}"));
    }
    if disk.requests.is_some() {
        text.push_str(&format!(
            ",image.driver=throttle,image.throttle-group={serial}-requests"
        ));
        below.push_str(".file");
    }
    text.push_str(&format!(
        ",{below}.driver=nbd,{below}.server.type=unix,{below}.server.path={} \
         -device virtio-blk-pci,drive={serial},serial={serial},logical_block_size={},physical_block_size={}",
        socket(file),
        disk.logical_sector,
        disk.physical_sector
    ));
    text
}

/// The socket a disk is served on, by the name of its file.
pub(super) fn socket(file: &str) -> String {
    format!("{file}.nbd")
}

fn read_only(serial: &str, path: &Path) -> [String; 4] {
    // QEMU's own escape for a comma in a value is a second one.
    let path = path.display().to_string().replace(',', ",,");
    [
        "-drive".to_string(),
        format!("if=none,id={serial},file={path},format=raw,read-only=on"),
        "-device".to_string(),
        format!("virtio-blk-pci,drive={serial},serial={serial}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_given_to_the_guest_as_declared() {
        let disk = LabDisk {
            serial: "disk-1".to_string(),
            bytes: 1 << 30,
            logical_sector: 512,
            physical_sector: 4096,
            rate: Some(60_000_000),
            requests: Some(120),
            latency_ns: Some(4_000_000),
            model: None,
        };
        let description = Description {
            nodes: 2,
            disks: vec![disk.clone()],
            ..Description::default()
        };
        let files = GuestFiles {
            dir: Path::new("/store/machine"),
            kernel: Path::new("/images/vmlinux"),
            root: Path::new("/images/a,b/root.squashfs"),
            zfs: None,
            postgresql: true,
        };
        let words = command(2, &description, Accelerator::Tcg, &files);
        for pair in [
            [
                "-drive",
                "if=none,id=disk-1,driver=blkdebug,align=4096,cache=none,discard=unmap,throttling.bps-total=60000000,image.driver=throttle,image.throttle-group=disk-1-requests,image.file.driver=nbd,image.file.server.type=unix,image.file.server.path=node-2.disk-1.nbd",
            ],
            [
                "-object",
                "throttle-group,id=disk-1-requests,x-iops-total=120",
            ],
            [
                "-device",
                "virtio-blk-pci,drive=disk-1,serial=disk-1,logical_block_size=512,physical_block_size=4096",
            ],
            [
                "-drive",
                "if=none,id=lab-root,file=/images/a,,b/root.squashfs,format=raw,read-only=on",
            ],
            [
                "-netdev",
                "dgram,id=net,local.type=unix,local.path=net-2.inside,remote.type=unix,remote.path=net-2.outside",
            ],
            ["-accel", "tcg,thread=multi"],
            [
                "-append",
                "console=ttyS0 quiet panic=-1 rdinit=/init lab.node=2 lab.nodes=2 tsc=unstable clocksource=hpet no_timer_check cryptomgr.notests lab.postgresql",
            ],
            ["-pidfile", "/store/machine/node-2.pid"],
        ] {
            assert!(
                words.windows(2).any(|two| two == pair),
                "{pair:?} in {words:?}"
            );
        }
        assert_eq!(
            disk.described(),
            "1 GiB, logical sector 512 B, physical sector 4096 B, at most 60.0 MB/s, at most 120 requests/s, at least 4.00 ms a request"
        );
    }
}
