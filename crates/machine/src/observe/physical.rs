//! What a device cannot exceed: the rate of its bus or link, the turning of its disks, as `/sys`
//! tells (Documentation/ABI/stable/sysfs-block, sysfs-bus-pci, sysfs-ata, sysfs-bus-usb).
//!
//! Rates are net of the line code (8b/10b, 128b/130b …) and gross of protocol headers, so that no
//! device can be faster: `3938461538 B/s, PCIe 8.0 GT/s x4`. Devices that are memory say so. What a
//! virtual machine does not tell is absent.

use std::fs;
use std::path::{Path, PathBuf};

use stackrace_base::event::Fact;

/// Most devices that are asked.
const DEVICES_MAX: usize = 512;

/// Page 0xB1 of the vital product data: where the rate of rotation is, turns a minute, big endian
/// (SBC-4, 6.6.2). 1 means that nothing turns.
const ROTATION_AT: usize = 4;
const ROTATION_RPM_MIN: u16 = 1025;

/// One fact per limit of each block device, below `sys` (`/sys`), in the order of their names.
pub(super) fn limits(sys: &Path) -> Vec<Fact> {
    let listed = fs::read_dir(sys.join("block")).into_iter().flatten();
    let mut names: Vec<String> = listed
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.truncate(DEVICES_MAX);
    names.iter().flat_map(|name| device(sys, name)).collect()
}

fn device(sys: &Path, name: &str) -> Vec<Fact> {
    let block = sys.join("block").join(name);
    let in_use = text(&block.join("size")).is_some_and(|size| size != "0");
    if name.starts_with("loop") || !in_use {
        // A loop device's limit is that of the file system its file lies in.
        return Vec::new();
    }
    if name.starts_with("zram") || name.starts_with("ram") || name.starts_with("pmem") {
        return vec![Fact::new(
            format!("limit {name}"),
            "memory: no bus, no seeks",
        )];
    }
    let mut facts = Vec::new();
    if let Ok(path) = fs::canonicalize(&block) {
        let links = path.ancestors().filter_map(link);
        // The slowest of all that lie between.
        let slowest = links.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((rate, words)) = slowest {
            facts.push(Fact::rate(
                format!("limit {name}"),
                rate.round() as u64,
                words,
            ));
        }
    }
    if let Some(rpm) = rotation(&block) {
        let half_turn_ms = 30_000.0 / f64::from(rpm);
        facts.push(Fact::new(
            format!("rotation {name}"),
            format!("{rpm} rpm, half a turn takes {half_turn_ms:.2} ms"),
        ));
    }
    facts
}

/// Turns a minute of a disk that says so.
fn rotation(block: &Path) -> Option<u16> {
    let page = fs::read(block.join("device/vpd_pgb1")).ok()?;
    let rate = page.get(ROTATION_AT..ROTATION_AT + 2)?;
    let rpm = u16::from_be_bytes([rate[0], rate[1]]);
    (ROTATION_RPM_MIN..u16::MAX).contains(&rpm).then_some(rpm)
}

/// The rate of the link that a directory of `/sys/devices` stands for, B/s, with its name.
fn link(directory: &Path) -> Option<(f64, String)> {
    pcie(directory)
        .or_else(|| usb(directory))
        .or_else(|| ata(directory))
        .or_else(|| sas(directory))
}

fn pcie(directory: &Path) -> Option<(f64, String)> {
    let speed = text(&directory.join("current_link_speed"))?;
    let width = text(&directory.join("current_link_width"))?;
    let transfers: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let lanes: f64 = width.parse().ok()?;
    // PCI Express Base Specification: 8b/10b below 8 GT/s, 128b/130b up to 32, none (FLIT) above.
    let code = match transfers {
        t if t < 8.0 => 0.8,
        t if t <= 32.0 => 128.0 / 130.0,
        _ => 1.0,
    };
    let rate = transfers * 1e9 * lanes * code / 8.0;
    (rate > 0.0).then(|| (rate, format!("PCIe {transfers:.1} GT/s x{lanes:.0}")))
}

fn usb(directory: &Path) -> Option<(f64, String)> {
    // Only a USB device has both.
    text(&directory.join("bMaxPacketSize0"))?;
    let mbit: f64 = text(&directory.join("speed"))?.parse().ok()?;
    // USB 3.2: 8b/10b at 5 Gbit/s a lane, 128b/132b at 10; USB 2 has no line code.
    let code = match mbit {
        m if m < 5000.0 => 1.0,
        m if m < 10_000.0 => 0.8,
        _ => 128.0 / 132.0,
    };
    let rate = mbit * 1e6 * code / 8.0;
    (rate > 0.0).then(|| (rate, format!("USB {mbit:.0} Mbit/s")))
}

/// A port of libata: `…/ata1/link1/ata_link/link1/sata_spd` says `6.0 Gbps`; 8b/10b.
fn ata(directory: &Path) -> Option<(f64, String)> {
    let name = directory.file_name()?.to_str()?;
    let number = name.strip_prefix("ata")?.parse::<u32>().ok()?;
    let link = format!("link{number}");
    let speed = text(
        &directory
            .join(&link)
            .join("ata_link")
            .join(&link)
            .join("sata_spd"),
    )?;
    let gbit: f64 = speed.strip_suffix("Gbps")?.trim().parse().ok()?;
    let rate = gbit * 1e9 * 0.8 / 8.0;
    (rate > 0.0).then(|| (rate, format!("SATA {gbit:.1} Gbit/s")))
}

/// A SAS port with its phys: `…/port-0:1/phy-0:1/sas_phy/phy-0:1/negotiated_linkrate` says `12.0
/// Gbit`; 8b/10b up to 12 Gbit/s, 128b/150b at 22.5. A wide port adds up.
fn sas(directory: &Path) -> Option<(f64, String)> {
    directory.file_name()?.to_str()?.strip_prefix("port-")?;
    let phys: Vec<PathBuf> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let mut rate = 0.0;
    let mut count = 0;
    for phy in phys {
        let Some(name) = phy
            .file_name()
            .filter(|name| name.to_string_lossy().starts_with("phy-"))
        else {
            continue;
        };
        let path = phy.join("sas_phy").join(name).join("negotiated_linkrate");
        let speed = text(&path)?;
        let gbit: f64 = speed.strip_suffix("Gbit")?.trim().parse().ok()?;
        let code = if gbit > 12.0 { 128.0 / 150.0 } else { 0.8 };
        rate += gbit * 1e9 * code / 8.0;
        count += 1;
    }
    (rate > 0.0).then(|| (rate, format!("SAS, {count} phys")))
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/sys` with one block device below a path of `devices`, and further files.
    fn sys(device: &str, name: &str, files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let own = sys
            .path()
            .join("devices")
            .join(device)
            .join("block")
            .join(name);
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("size"), "2048\n").unwrap();
        fs::create_dir(sys.path().join("block")).unwrap();
        std::os::unix::fs::symlink(&own, sys.path().join("block").join(name)).unwrap();
        for (path, content) in files {
            let path = sys.path().join("devices").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        sys
    }

    fn said(sys: &tempfile::TempDir) -> Vec<(String, String)> {
        let facts = limits(sys.path()).into_iter();
        facts.map(|fact| (fact.name, fact.value)).collect()
    }

    fn one(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn the_slowest_link_on_the_way_counts() {
        let sys = sys(
            "pci0/port/nvme",
            "nvme0n1",
            &[
                ("pci0/port/nvme/current_link_speed", b"8.0 GT/s PCIe\n"),
                ("pci0/port/nvme/current_link_width", b"4\n"),
                ("pci0/port/current_link_speed", b"5.0 GT/s PCIe\n"),
                ("pci0/port/current_link_width", b"4\n"),
            ],
        );
        // 5 GT/s, 4 lanes, 8 of 10 bits.
        assert_eq!(
            said(&sys),
            one("limit nvme0n1", "2000000000 B/s, PCIe 5.0 GT/s x4")
        );
    }

    #[test]
    fn a_disk_on_sata_has_a_link_and_turns() {
        let sys = sys(
            "pci0/ata1/host0",
            "sda",
            &[
                ("pci0/ata1/link1/ata_link/link1/sata_spd", b"6.0 Gbps\n"),
                (
                    "pci0/ata1/host0/block/sda/device/vpd_pgb1",
                    &[0, 0xb1, 0, 60, 0x1c, 0x20],
                ),
            ],
        );
        let facts = said(&sys);
        assert_eq!(facts[0].1, "600000000 B/s, SATA 6.0 Gbit/s");
        assert_eq!(
            facts[1],
            (
                "rotation sda".into(),
                "7200 rpm, half a turn takes 4.17 ms".into()
            )
        );
    }

    #[test]
    fn usb_and_sas_have_line_codes_of_their_own() {
        let stick = sys(
            "usb1/1-1",
            "sdb",
            &[
                ("usb1/1-1/speed", b"10000\n"),
                ("usb1/1-1/bMaxPacketSize0", b"9\n"),
            ],
        );
        assert_eq!(
            said(&stick),
            one("limit sdb", "1212121212 B/s, USB 10000 Mbit/s")
        );
        let phy =
            |n: u32| format!("host1/port-1:0/phy-1:{n}/sas_phy/phy-1:{n}/negotiated_linkrate");
        let disk = sys(
            "host1/port-1:0/end_device-1:0",
            "sdc",
            &[(&phy(0), b"12.0 Gbit\n"), (&phy(1), b"12.0 Gbit\n")],
        );
        assert_eq!(said(&disk), one("limit sdc", "2400000000 B/s, SAS, 2 phys"));
    }

    #[test]
    fn memory_says_so_and_what_is_not_known_is_absent() {
        assert_eq!(
            said(&sys("virtual", "zram0", &[])),
            one("limit zram0", "memory: no bus, no seeks")
        );
        let virtual_disk = [
            ("pci0/virtio1/current_link_speed", b"Unknown\n".as_slice()),
            ("pci0/virtio1/current_link_width", b"0\n"),
        ];
        assert_eq!(said(&sys("pci0/virtio1", "vda", &virtual_disk)), []);
        assert_eq!(said(&sys("virtual", "loop0", &[])), []);
        // A solid state drive reports 1 turn.
        let drive = [(
            "pci0/block/sdd/device/vpd_pgb1",
            [0, 0xb1, 0, 60, 0, 1].as_slice(),
        )];
        assert_eq!(said(&sys("pci0", "sdd", &drive)), []);
    }
}
