//! exFAT on one device.
//!
//! It has no journal: after a power cut a file or a name may be half there, as on ext2. It has no owners, modes,
//! symbolic links, hard links, or holes in files. The kernel refuses links, and a trial that makes them fails.
//! Its UUID has 32 bits and its label 11 letters, so that neither can hold a mark of ours.

#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::plain::{self, AskedUnmarked, Unmarked};
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, Amount, OneOf, Word},
    Words,
};
use stackrace_foundation::foundation::{FileData, GivesKind, Layer, LayerKind, options};
use stackrace_machine::host::Package;
use stackrace_machine::host::imagined::{Tool, said};

/// The layer `exfat` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "exfat",
    summary: "exFAT, without a journal, owners, modes, links or holes in files, on one device that is no disk.",
    settings: &[
        SettingDoc::bytes(
            "cluster-size",
            "",
            "Bytes in which files are laid out: a power of two from 512 B to 32 MiB; left out, mkfs.exfat chooses by the device's size.",
        ),
        SettingDoc::bytes(
            "boundary-align",
            "",
            "The file allocation table and the data begin at multiples of this: a power of two from 512 B; left out, mkfs.exfat chooses.",
        ),
        options::MKFS,
        options::MOUNT,
    ],
    takes: plain::TAKES,
    gives: GivesKind::Directory,
    example: "exfat = { cluster-size = \"128 KiB\", mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse,
    packages: PACKAGES,
    imagined: &[
        plain::imagined_mkfs("mkfs.exfat"),
        Tool::new("dump.exfat", |_, _| said("Cluster size:  \t\t\t\t4096\n")),
    ],
    reads: &[|text| plain::told(text, &GEOMETRY)],
    shapes: &[
        &["loop = { size = \"1 GiB\" }", "exfat = {}"],
        &[
            "lab-disks = { size = \"1 GiB\" }",
            "exfat = { cluster-size = \"64 KiB\", boundary-align = \"1 MiB\" }",
        ],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    data: FileData::IN_PLACE,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[Package::new(
    "exfatprogs",
    &["mkfs.exfat", "dump.exfat", "fsck.exfat"],
)];

/// mkfs.exfat(8). Not on the list: what is a setting of the layer (`-b`, `-c`).
const MKFS: Words = Words {
    tool: "mkfs.exfat",
    manual: "mkfs.exfat(8)",
    options: &[
        ("--full-format", Alone),
        ("--pack-bitmap", Alone),
        ("--verbose", Alone),
        ("--volume-label", Word),
        ("-f", Alone),
        ("-L", Word),
        ("-v", Alone),
    ],
};

/// No manual page has them: `exfat_parameters` in the kernel. Not on the list: owners and modes, and what has
/// no effect (`utf8`, `debug`, `namecase`, `codepage`).
const MOUNT: Words = Words {
    tool: "a mount of exFAT",
    manual: "fs/exfat/super.c of the kernel",
    options: &[
        ("discard", Alone),
        ("errors", OneOf(&["continue", "panic", "remount-ro"])),
        ("iocharset", Word),
        ("time_offset", Amount),
    ],
};

/// Lines of `dump.exfat` that say how the file system was made.
const GEOMETRY: [&str; 6] = [
    "FAT Offset(sector offset)",
    "FAT Length(sectors)",
    "Cluster Heap Offset (sector offset)",
    "Cluster Count",
    "Sector Size Bits",
    "Cluster size",
];

/// Smallest sector of a device, in bytes: nothing can be smaller.
const SECTOR_BYTES: u64 = 512;

/// Largest cluster that mkfs.exfat makes, in bytes.
const CLUSTER_BYTES_MAX: u64 = 32 << 20;

/// Largest power of two that mkfs.exfat reads as an alignment, in bytes.
const ALIGN_BYTES_MAX: u64 = 2 << 30;

const EXFAT: Unmarked = Unmarked {
    kind: &KIND,
    why: "an exFAT cannot be marked as ours, so it could not be wiped from a disk afterwards",
    tools: &["mkfs.exfat", "dump.exfat", "wipefs", "mount", "umount"],
    ask: &["dump.exfat"],
    lines: &GEOMETRY,
    repair: &["fsck.exfat", "-y"],
};

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let mut command = vec!["mkfs.exfat".to_string()];
    let mut text = KIND.name.to_string();
    // Where nothing is asked, mkfs.exfat chooses.
    for (name, max, option, what) in [
        ("cluster-size", CLUSTER_BYTES_MAX, "-c", "clusters of"),
        ("boundary-align", ALIGN_BYTES_MAX, "-b", "aligned to"),
    ] {
        if let Some(bytes) = power_of_two(settings, name, max)? {
            command.extend([option.to_string(), bytes.to_string()]);
            text.push_str(&format!(", {what} {}", unit::bytes(bytes)));
        }
    }
    Ok(Box::new(AskedUnmarked {
        of: &EXFAT,
        command,
        text,
        mkfs: options::mkfs(settings, &MKFS)?,
        mount: options::mount(settings, &MOUNT)?,
    }))
}

/// Bytes that a study gives, at most `max`.
fn power_of_two(settings: &Settings, name: &str, max: u64) -> Result<Option<u64>, Refusal> {
    let given = settings.optional_bytes(name)?;
    match given {
        Some(bytes) if !bytes.is_power_of_two() || !(SECTOR_BYTES..=max).contains(&bytes) => {
            Err(Refusal::at(
                settings.span_of(name),
                format!("{name} cannot be {bytes} B"),
                format!("write a power of two from 512 B to {}", unit::bytes(max)),
            ))
        }
        given => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::testing::{layer, try_layer};
    use stackrace_base::event::Fact;
    use stackrace_foundation::foundation::ON_A_DISK;

    #[test]
    fn a_disk_is_refused_where_it_is_written() {
        let refused = |bottom: &str| Stack::new(vec![layer(bottom), layer("exfat = {}")]).err();
        let (place, why) = refused(ON_A_DISK).unwrap();
        assert_eq!(place, 1);
        assert!(why.contains("put it on loop"), "{why}");
        assert!(refused("loop = { size = \"1 GiB\" }").is_none());
    }

    #[test]
    fn sizes_are_powers_of_two() {
        for (setting, size) in [
            ("cluster-size", "96 KiB"),
            ("cluster-size", "256 B"),
            ("cluster-size", "64 MiB"),
            ("boundary-align", "3 MiB"),
        ] {
            let refusal = try_layer(&format!("exfat = {{ {setting} = \"{size}\" }}")).err();
            let message = refusal.unwrap().message;
            assert!(
                message.starts_with(&format!("{setting} cannot be")),
                "{message}"
            );
        }
        let asked = layer("exfat = { cluster-size = \"64 KiB\", mkfs = [\"--pack-bitmap\"] }");
        let words = "exfat, clusters of 64 KiB, mkfs --pack-bitmap";
        assert_eq!(asked.describe_asked(), words);
    }

    #[test]
    fn what_dump_exfat_prints_is_read() {
        // exfatprogs 1.2.0, shortened.
        let text = "exfatprogs version : 1.2.0\n-------------- Dump Boot sector region --------------\n\
            FAT Offset(sector offset): \t\t2048\nVolume Serial: \t\t\t\t0x7bad3017\n\n\
            ---------------- Show the statistics ----------------\nCluster size:  \t\t\t\t65536\n";
        let facts = [
            Fact::new("FAT Offset(sector offset)", "2048"),
            Fact::new("Cluster size", "65536"),
        ];
        assert_eq!(plain::told(text, &GEOMETRY), facts);
    }
}
