//! A device that checks what it reads (dm-integrity): a checksum for each sector, written with the data.

use crate::stack::mapped::{MAPPER, Mapped, Maps, REMOVE, imagined, same, table};
use stackrace_base::event::{Fact, FactFigure, LayerEffect};
use stackrace_base::setting::{ChoiceDoc, Refusal, SettingDoc, Settings, choice};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    Device, GivesKind, Layer, LayerError, LayerKind, Setup, Takes, block,
};
use stackrace_machine::host::{Driver, Host, Package, argv};
use std::ffi::OsString;
use std::path::Path;

/// The word in a study, and the kernel's.
const NAME: &str = "integrity";

/// A way to keep data and checksums together after a crash: the kernel's letter, and the words of
/// integritysetup(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    letter: &'static str,
    words: &'static [&'static str],
}

const MODE: ChoiceDoc<Mode> = choice!(
    "mode",
    [
        "journal" => Mode { letter: "J", words: &[] },
        "bitmap" => Mode { letter: "B", words: &["--integrity-bitmap-mode"] },
        "direct" => Mode { letter: "D", words: &["--integrity-no-journal"] },
    ],
    "journal",
    "journal writes all data twice; bitmap marks what is being written; direct loses the checksums of what a crash hits.",
);

/// Each checksum with its bytes.
const CHECKSUM: ChoiceDoc<u32> = choice!(
    "checksum",
    ["crc32c" => 4, "xxhash64" => 8, "sha1" => 20, "sha256" => 32],
    "crc32c",
    "Checksum of each sector.",
);

/// The layer `integrity` of a study.
pub(in crate::stack) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A device that checks what it reads (dm-integrity): a checksum for each sector.",
    settings: &[
        MODE.doc,
        CHECKSUM.doc,
        SettingDoc::bytes(
            "sector-size",
            "512 B",
            "Bytes with one checksum: 512, 1024, 2048 or 4096.",
        ),
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "integrity = { mode = \"bitmap\", sector-size = \"4 KiB\" }",
    parse,
    packages: PACKAGES,
    imagined: imagined::INTEGRITY,
    reads: &[|text| {
        super::words_of(text, NAME).map_or(Vec::new(), |words| Table::of(&words).facts())
    }],
    shapes: &[&[
        "loop = { size = \"1 GiB\" }",
        "integrity = { mode = \"direct\", checksum = \"sha256\", sector-size = \"4 KiB\" }",
        "luks = {}",
        "xfs = {}",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: super::testing::INTEGRITY,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[
    Package::new("cryptsetup-bin", &["integritysetup"]),
    super::DMSETUP,
];

struct Integrity {
    mode: Mode,
    checksum: &'static str,
    tag: u32,
    sector: u64,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    // The tool takes another size than the checksum has, and would cut it.
    let tag = settings.choice(CHECKSUM)?;
    let sector = block::sector(settings, "sector-size")?;
    Ok(Box::new(Mapped(Integrity {
        mode: settings.choice(MODE)?,
        checksum: CHECKSUM.word(tag),
        tag,
        sector,
    })))
}

/// What the kernel says of such a device.
struct Table {
    letter: String,
    tag: String,
    sector: u64,
    checksum: String,
}

impl Table {
    /// `7:0 0 4 J 7 journal_sectors:1024 … block_size:4096 … internal_hash:crc32c`.
    fn of(words: &[String]) -> Self {
        let at = |at: usize| words.get(at).cloned().unwrap_or_default();
        let value = |name: &str| {
            let mut found = words.iter().filter_map(|word| word.strip_prefix(name));
            found.next().unwrap_or_default().to_owned()
        };
        Self {
            letter: at(3),
            tag: at(2),
            // The kernel leaves its own size out.
            sector: value("block_size:").parse().unwrap_or(512),
            checksum: value("internal_hash:"),
        }
    }

    fn facts(&self) -> Vec<Fact> {
        let modes = MODE.values().iter().find(|mode| mode.letter == self.letter);
        let mode = modes.map_or("another one", |mode| MODE.word(*mode));
        vec![
            match &*self.letter {
                "J" => Fact::new("mode", mode).with(FactFigure::Effect(LayerEffect::WrittenTwice)),
                _ => Fact::new("mode", mode),
            },
            Fact::new("checksum", self.checksum.clone()),
            Fact::new("sector size", unit::bytes(self.sector)),
        ]
    }
}

impl Integrity {
    /// Words that both commands take.
    fn words(&self) -> Vec<OsString> {
        let mut words = argv(["--batch-mode", "--integrity", self.checksum]);
        words.extend(argv(self.mode.words.iter().copied()));
        words
    }

    /// Writes the checksums of the whole device: without them, what was never written cannot be read.
    fn format(&self, device: &Path) -> Vec<OsString> {
        let mut words = argv(["integritysetup", "format"]);
        words.extend(self.words());
        words.extend(argv(["--tag-size".to_owned(), self.tag.to_string()]));
        words.extend(argv(["--sector-size".to_owned(), self.sector.to_string()]));
        words.push(device.into());
        words
    }

    fn open(&self, device: &Path, name: &str) -> Vec<OsString> {
        let mut words = argv(["integritysetup", "open"]);
        words.extend(self.words());
        words.extend([device.into(), name.into()]);
        words
    }
}

impl Maps for Integrity {
    const KIND: &'static LayerKind = &KIND;

    const DRIVERS: &'static [Driver] = &[
        MAPPER,
        Driver {
            module: "dm_integrity",
            shown_by: "/sys/module/dm_integrity",
            what: "devices with checksums (dm-integrity)",
        },
    ];
    const TOOLS: &'static [&'static str] = &["integritysetup", "dmsetup", "wipefs"];

    fn asked(&self) -> String {
        format!(
            "checked ({}, mode {}), sectors {}",
            self.checksum,
            MODE.word(self.mode),
            unit::bytes(self.sector)
        )
    }

    /// With the journal all data are written twice.
    fn written_below(&self, bytes: u64) -> u64 {
        match self.mode.letter {
            "J" => bytes.saturating_mul(2),
            _ => bytes,
        }
    }

    fn map(
        &self,
        setup: &mut Setup<'_>,
        devices: &[Device],
        name: &str,
    ) -> Result<Vec<Fact>, LayerError> {
        // While it formats, the tool maps the device under a name of its own, and unmaps it again.
        setup.host().must(&self.format(&devices[0].path))?;
        // The mode is no part of what is on the device: it is given again.
        let open = self.open(&devices[0].path, name);
        setup.make(REMOVE.of([name.into()]), &open)?;
        Ok(Vec::new())
    }

    fn read_back(&self, host: &dyn Host, name: &str) -> Result<Vec<Fact>, LayerError> {
        let found = Table::of(&table(host, name, NAME)?);
        same(
            name,
            &[
                ("mode", found.letter.clone(), self.mode.letter.to_owned()),
                ("checksum", found.checksum.clone(), self.checksum.to_owned()),
                (
                    "bytes of a checksum",
                    found.tag.clone(),
                    self.tag.to_string(),
                ),
                (
                    "sectors of",
                    found.sector.to_string(),
                    self.sector.to_string(),
                ),
            ],
        )?;
        Ok(found.facts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::mapped::words_of;

    /// A line of dmsetup(8), as dm-integrity.rst of the kernel describes it.
    #[test]
    fn the_kernels_table_is_understood() {
        let line = "0 100 integrity 7:0 0 32 B 5 interleave_sectors:32768 block_size:4096 sectors_per_bit:32768 bitmap_flush_interval:10000 internal_hash:sha256\n";
        let found = Table::of(&words_of(line, NAME).unwrap());
        assert_eq!(
            (&*found.letter, &*found.tag, found.sector),
            ("B", "32", 4096)
        );
        assert_eq!(found.facts()[0].value, "bitmap");
        assert_eq!(found.checksum, "sha256");
        assert!(words_of("0 8 linear 7:0 0", NAME).is_none());
    }

    #[test]
    fn sectors_that_it_does_not_have_are_refused() {
        let line = "integrity = { sector-size = \"8 KiB\" }";
        let refused = crate::stack::testing::try_layer(line).err().unwrap();
        assert_eq!(refused.message, "sectors of 8192 B are not possible");
        let disk = [
            stackrace_foundation::foundation::ON_A_DISK,
            "integrity = {}",
            "ext4 = {}",
        ];
        let disk = disk.map(crate::stack::testing::layer);
        let (at, why) = crate::stack::Stack::new(disk.into()).err().unwrap();
        assert_eq!(at, 1);
        assert!(why.contains("cannot be marked as ours"), "{why}");
    }
}
