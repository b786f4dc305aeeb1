//! Btrfs on one or more devices, with the profile of its data and metadata read back.

mod imagined;
#[cfg(any(test, feature = "testing"))]
mod testing;

use stackrace_base::event::Fact;
use stackrace_base::setting::{ChoiceDoc, OverShell, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::lasting::LastingState;
use stackrace_foundation::foundation::words::{
    OptionValue::{Alone, AloneOrOneOf, Amount, Names, OneOf, Word},
    Words,
};
use stackrace_foundation::foundation::{
    Device, FileData, Gives, GivesKind, Layer, LayerError, LayerKind, Memory, ON_TWO_DISKS, Origin,
    Setup, StandingLayer, Takes, filesystem, options,
};
use stackrace_machine::host::imagined::Tool;
use stackrace_machine::host::{Host, Needs, Package, argv, argv_at};
use std::ffi::OsStr;
use std::path::Path;

/// Ways in which btrfs spreads data or metadata over its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    Single,
    Raid0,
    Raid1,
    Raid10,
}

/// A setting that is one of the profiles of mkfs.btrfs(8).
macro_rules! profile {
    ($name:literal, $default:literal, $doc:literal) => {
        choice!(
            $name,
            [
                "single" => Spread::Single,
                "raid0" => Spread::Raid0,
                "raid1" => Spread::Raid1,
                "raid10" => Spread::Raid10,
            ],
            $default,
            $doc,
        )
    };
}

const PROFILE: ChoiceDoc<Spread> =
    profile!("profile", "single", "How data is spread over the devices.");
const METADATA: ChoiceDoc<Spread> = profile!(
    "metadata-profile",
    "",
    "How metadata is spread over the devices; the same as data unless given."
);

/// The layer `btrfs` of a study.
pub(super) const KIND: LayerKind = LayerKind {
    name: "btrfs",
    summary: "Btrfs on one or more devices of about 130 MiB or more each.",
    settings: &[
        PROFILE.doc,
        METADATA.doc,
        SettingDoc::text(
            "compression",
            "none",
            "none, lzo, zlib, zlib:1 to zlib:9, zstd or zstd:1 to zstd:15.",
        ),
        options::MKFS,
        options::MOUNT,
    ],
    takes: Takes::at_least(1),
    gives: GivesKind::Directory,
    example: "btrfs = { profile = \"raid1\", compression = \"zstd:3\", mount = [\"noatime\"] }",
    words: &[&MKFS, &MOUNT],
    parse,
    packages: &[Package::new("btrfs-progs", &["mkfs.btrfs", "btrfs"])],
    imagined: &[
        Tool::new("mkfs.btrfs", imagined::format),
        Tool::new("btrfs", imagined::btrfs),
    ],
    reads: &[|text| {
        let profiles = profile_of(text, "Data").into_iter();
        let profiles = profiles.map(|profile| Fact::new("profile", profile));
        lines("space", text).into_iter().chain(profiles).collect()
    }],
    over_shell: OverShell::Nearest("native = { file-system = \"btrfs\", size = \"1 GiB\" }"),
    shapes: &[
        &[
            "loop = { size = \"1 GiB\", count = 4 }",
            "btrfs = { profile = \"raid10\" }",
        ],
        &[ON_TWO_DISKS, "btrfs = { profile = \"raid1\" }"],
    ],
    #[cfg(any(test, feature = "testing"))]
    tried: testing::TRIED,
    data: FileData {
        in_place: false,
        page_cache_alone: true,
    },
    ..LayerKind::EMPTY
};

/// mkfs.btrfs(8). Not on the list: what reads files (`--rootdir`), and what is set by the layer
/// (`--uuid`, `--data`, `--metadata`).
const MKFS: Words = Words {
    tool: "mkfs.btrfs",
    manual: "mkfs.btrfs(8)",
    options: &[
        ("--byte-count", Amount),
        ("--checksum", OneOf(CHECKSUMS)),
        ("--csum", OneOf(CHECKSUMS)),
        ("--features", Names),
        ("--label", Word),
        ("--mixed", Alone),
        ("--nodesize", Amount),
        ("--nodiscard", Alone),
        ("--quiet", Alone),
        ("--runtime-features", Names),
        ("--sectorsize", Amount),
        ("--verbose", Alone),
        ("-b", Amount),
        ("-K", Alone),
        ("-L", Word),
        ("-M", Alone),
        ("-n", Amount),
        ("-O", Names),
        ("-q", Alone),
        ("-R", Names),
        ("-s", Amount),
        ("-v", Alone),
    ],
};

/// Checksums of mkfs.btrfs(8).
const CHECKSUMS: &[&str] = &["crc32c", "xxhash", "sha256", "blake2"];

/// btrfs(5). Not on the list: other devices and roots (`device`, `subvol`), and what leaves changes
/// or checks out (`rescue`, `nologreplay`, `degraded`).
const MOUNT: Words = Words {
    tool: "a mount of Btrfs",
    manual: "btrfs(5)",
    options: &[
        ("acl", Alone),
        ("autodefrag", Alone),
        ("barrier", Alone),
        ("commit", Amount),
        ("compress", AloneOrOneOf(COMPRESSIONS)),
        ("compress-force", AloneOrOneOf(COMPRESSIONS)),
        ("datacow", Alone),
        ("datasum", Alone),
        ("discard", AloneOrOneOf(&["sync", "async"])),
        ("enospc_debug", Alone),
        ("flushoncommit", Alone),
        ("max_inline", Amount),
        ("metadata_ratio", Amount),
        ("noacl", Alone),
        ("noautodefrag", Alone),
        ("nobarrier", Alone),
        ("nodatacow", Alone),
        ("nodatasum", Alone),
        ("nodiscard", Alone),
        ("noenospc_debug", Alone),
        ("noflushoncommit", Alone),
        ("nospace_cache", Alone),
        ("nossd", Alone),
        ("nossd_spread", Alone),
        ("notreelog", Alone),
        ("skip_balance", Alone),
        ("space_cache", AloneOrOneOf(&["v1", "v2"])),
        ("ssd", Alone),
        ("ssd_spread", Alone),
        ("thread_pool", Amount),
        ("treelog", Alone),
    ],
};

/// Compressions of btrfs(5) with their levels.
const COMPRESSIONS: &[&str] = &[
    "no", "none", "lzo", "zlib", "zlib:1", "zlib:2", "zlib:3", "zlib:4", "zlib:5", "zlib:6",
    "zlib:7", "zlib:8", "zlib:9", "zstd", "zstd:1", "zstd:2", "zstd:3", "zstd:4", "zstd:5",
    "zstd:6", "zstd:7", "zstd:8", "zstd:9", "zstd:10", "zstd:11", "zstd:12", "zstd:13", "zstd:14",
    "zstd:15",
];

struct Btrfs {
    data: Spread,
    metadata: Spread,
    compression: Option<String>,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let data = settings.choice(PROFILE)?;
    // Never left to mkfs.btrfs, whose choice for metadata depends on the number of devices.
    let metadata = settings.optional_choice(METADATA)?.unwrap_or(data);
    // No option at all: uncompressed is the default, and then not shown.
    let compression = settings.text("compression")?;
    let compression = (compression != "none").then_some(compression);
    if let Some(word) = &compression
        && !is_compression(word)
    {
        return Err(Refusal::at(
            settings.span_of("compression"),
            format!("btrfs has no compression \"{word}\""),
            "write none, lzo, zlib, zlib:1 to zlib:9, zstd or zstd:1 to zstd:15",
        ));
    }
    Ok(Box::new(Btrfs {
        data,
        metadata,
        compression,
        mkfs: options::mkfs(settings, &MKFS)?,
        mount: options::mount(settings, &MOUNT)?,
    }))
}

fn is_compression(word: &str) -> bool {
    let levels = match word.split(':').next() {
        Some("zlib") => 1..=9,
        Some("zstd") => 1..=15,
        // lzo has no levels (btrfs(5)).
        _ => return word == "lzo",
    };
    match word.split_once(':') {
        None => true,
        Some((_, level)) => level
            .parse()
            .is_ok_and(|level: u32| levels.contains(&level)),
    }
}

/// Devices a profile needs; RAID 10 on fewer than four is RAID 0 or 1 under another name.
fn devices_min(profile: Spread) -> usize {
    match profile {
        Spread::Single => 1,
        Spread::Raid0 | Spread::Raid1 => 2,
        Spread::Raid10 => 4,
    }
}

impl Btrfs {
    fn mkfs_command(&self) -> Vec<String> {
        // No discard (mkfs.btrfs(8)): blocks that were laid out stay.
        let words = [
            "mkfs.btrfs",
            "--nodiscard",
            "--data",
            PROFILE.word(self.data),
            "--metadata",
            METADATA.word(self.metadata),
        ];
        let words = words.iter().map(|word| (*word).to_string());
        words.chain(self.mkfs.iter().cloned()).collect()
    }

    /// Options that the user asked to be in force.
    fn options_asked(&self) -> Vec<String> {
        let mut asked = self.mount.clone();
        asked.extend(
            self.compression
                .iter()
                .map(|word| format!("compress={word}")),
        );
        asked
    }
}

impl Layer for Btrfs {
    fn of_kind(&self) -> &'static LayerKind {
        &KIND
    }

    fn brief(&self) -> String {
        format!("btrfs, profile = {}", PROFILE.word(self.data))
    }

    fn describe_asked(&self) -> String {
        let [data, metadata] = [self.data, self.metadata].map(|spread| PROFILE.word(spread));
        let kind = format!("btrfs, data {data}, metadata {metadata}");
        filesystem::asked(&kind, &self.mkfs, &self.options_asked())
    }

    fn written_below(&self, bytes: u64, _devices: usize) -> u64 {
        match self.data {
            Spread::Single | Spread::Raid0 => bytes,
            Spread::Raid1 | Spread::Raid10 => bytes.saturating_mul(2),
        }
    }

    fn takes(&self) -> Takes {
        Takes::at_least(devices_min(self.data).max(devices_min(self.metadata)))
    }

    fn needs(&self) -> Needs {
        Needs {
            file_system: Some("btrfs"),
            ..Needs::as_root(
                &["mkfs.btrfs", "btrfs", "wipefs", "mount", "umount"],
                KIND.packages,
            )
        }
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let uuid = |uuid: &str| vec!["--uuid".to_string(), uuid.to_string()];
        filesystem::format(setup, &self.mkfs_command(), uuid, &devices)?;
        let asked = self.options_asked();
        let given = self.options_given(&devices);
        let source = devices[0].path.as_os_str();
        let root = setup.mount("btrfs", source, &given, Memory::No)?;
        // Counters of a file system that is new: any error is of this run.
        let stats = argv_at(["btrfs", "device", "stats"], &root);
        let at = (setup.node, setup.host());
        let state = LastingState::now("the file system", at, stats, devices_at_work)?;
        if let Some(bad) = state.said_other(WITHOUT_ERRORS) {
            let text = format!("the file system that was just made is {bad}");
            return Err(LayerError::refused(text, "check its devices"));
        }
        setup.parts.stays.push(state);
        let mut facts = self.profiles(setup.host(), &root)?;
        facts.extend(filesystem::mount_facts(
            setup.host(),
            &root,
            "btrfs",
            &asked,
            &[],
        )?);
        Ok(filesystem::standing(
            setup.host(),
            self.kind(),
            root,
            facts,
            &devices,
        ))
    }

    fn returns(&self) -> bool {
        true
    }

    fn bring_back(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        let devices = filesystem::devices(below)?;
        let served = |device: &Device| device.origin == Origin::Served;
        if devices.len() > 1 && devices.iter().all(served) {
            // A guest that brings back one cut after the other has a kernel that remembers drives of
            // an earlier one, which are gone, and refuses older ones of the same file system. A kernel
            // that was started anew remembers nothing.
            let forget = argv(["btrfs", "device", "scan", "--forget"]);
            setup.host().must(&forget)?;
        }
        let given = self.options_given(&devices);
        let source = devices[0].path.as_os_str();
        // Nothing repairs it: btrfs-check(8) warns of its own --repair.
        let root = filesystem::mount_again(setup, self.kind(), source, &given, &[])?;
        let host = setup.host();
        let facts = filesystem::mount_facts(host, &root, self.kind(), &[], &[])?;
        Ok(filesystem::standing(
            host,
            self.kind(),
            root,
            facts,
            &devices,
        ))
    }
}

impl Btrfs {
    /// Mount options, the devices among them: so that mounting does not hang on what the kernel
    /// scanned earlier.
    fn options_given(&self, devices: &[Device]) -> Vec<String> {
        let mut given = self.options_asked();
        given.extend(devices[1..].iter().map(device_option));
        given
    }
}

fn device_option(device: &Device) -> String {
    format!("device={}", device.path.display())
}

impl Btrfs {
    /// Reads back where data and metadata really go.
    fn profiles(&self, host: &dyn Host, root: &Path) -> Result<Vec<Fact>, LayerError> {
        let ask = |what: &str| {
            // -b: bytes, where other units are rounded.
            let command = ["btrfs", "filesystem", what, "-b"].map(OsStr::new);
            host.must(&argv(command.into_iter().chain([root.as_os_str()])))
        };
        let spread = ask("df")?.stdout;
        for (kind, asked) in [("Data", self.data), ("Metadata", self.metadata)] {
            let asked = PROFILE.word(asked);
            let got = profile_of(&spread, kind);
            // Any of them: mkfs may leave an empty chunk of another profile behind.
            if !got.iter().any(|got| got.eq_ignore_ascii_case(asked)) {
                return Err(LayerError::refused(
                    format!(
                        "{} was asked for {}, and {} was made",
                        asked,
                        kind.to_lowercase(),
                        got.join(" and ")
                    ),
                    "",
                ));
            }
        }
        let mut facts = lines("space", &spread);
        facts.extend(lines("usage", &ask("usage")?.stdout));
        Ok(facts)
    }
}

/// `Data, RAID1: total=…` → `RAID1`.
pub(super) fn profile_of<'a>(spread: &'a str, kind: &str) -> Vec<&'a str> {
    spread
        .lines()
        .filter_map(|line| {
            let (line_kind, rest) = line.split_once(", ")?;
            let (profile, _) = rest.split_once(':')?;
            (line_kind == kind).then_some(profile)
        })
        .collect()
}

/// One fact for each line that has a value.
pub(super) fn lines(prefix: &str, text: &str) -> Vec<Fact> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim(), value.split_whitespace().collect::<Vec<_>>()))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Fact::new(format!("{prefix}, {name}"), value.join(" ")))
        .collect()
}

/// End of what is said of devices that met no error.
const WITHOUT_ERRORS: &str = "without errors";

/// The devices of a mounted file system and the errors that they met, as `btrfs device stats` counts both. With an
/// error it reads or writes a copy only.
fn devices_at_work(text: &str) -> String {
    let counters = text
        .lines()
        .filter_map(|line| line.rsplit_once(char::is_whitespace));
    let (mut devices, mut errors) = (0, 0_u64);
    for (name, count) in counters {
        devices += usize::from(name.contains(".write_io_errs"));
        errors += count.parse().unwrap_or(0);
    }
    let devices = unit::counted(devices, "device");
    match errors {
        0 => format!("on {devices} {WITHOUT_ERRORS}"),
        errors => format!(
            "on {devices} with {}",
            unit::counted(errors as usize, "error")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_read_back() {
        let text = "Data, RAID1: total=8388608, used=0\nData, single: total=1, used=0\nMetadata, DUP: total=8388608, used=131072\n";
        assert_eq!(profile_of(text, "Data"), ["RAID1", "single"]);
        assert_eq!(profile_of(text, "Metadata"), ["DUP"]);
        assert!(profile_of(text, "System").is_empty());
    }

    #[test]
    fn a_device_less_or_an_error_is_another_state() {
        let of = |device: &str, errors: u64| {
            format!("[{device}].write_io_errs    {errors}\n[{device}].read_io_errs     0\n")
        };
        let two = of("/dev/loop0", 0) + &of("/dev/loop1", 0);
        assert_eq!(devices_at_work(&two), "on 2 devices without errors");
        let failed = of("/dev/loop0", 0) + &of("/dev/loop1", 31);
        assert_eq!(devices_at_work(&failed), "on 2 devices with 31 errors");
        let one = of("/dev/loop0", 0);
        assert_eq!(devices_at_work(&one), "on 1 device without errors");
    }

    #[test]
    fn compressions_are_those_of_the_manual() {
        for word in ["lzo", "zlib", "zlib:9", "zstd", "zstd:1", "zstd:15"] {
            assert!(is_compression(word), "{word}");
        }
        for word in [
            "lz4",
            "lzo:1",
            "zlib:10",
            "zstd:0",
            "zstd:16",
            "zstd:",
            "",
            "zstd:3,ro",
        ] {
            assert!(!is_compression(word), "{word}");
        }
    }
}
