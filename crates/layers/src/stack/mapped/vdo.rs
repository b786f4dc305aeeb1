//! A device that stores equal blocks once, and compresses others (dm-vdo). The format is made by vdoformat(8), which
//! not every distribution has.

use crate::stack::mapped::{DMSETUP, MAPPER, Mapped, Maps, REMOVE, found, imagined, same, table};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::{
    Device, GivesKind, Layer, LayerError, LayerKind, Setup, Takes, cached,
};
use stackrace_machine::host::{Driver, Host, argv};

/// The word in a study, and the kernel's.
const NAME: &str = "vdo";

/// The program that makes the format.
const FORMAT: &str = "vdoformat";

/// What the device is made of.
const BLOCK: u64 = 4096;

/// Blocks of its map that are cached, and the age at which they are written: what vdo.rst of the kernel proposes.
const MAP: [&str; 2] = ["32768", "16380"];

/// The layer `vdo` of a study.
pub(in crate::stack) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A device that stores equal blocks once and can compress (dm-vdo); needs vdoformat and some GiB.",
    settings: &[
        SettingDoc::bytes(
            "logical-size",
            "",
            "Size of the disk above, in whole blocks of 4 KiB; that of the device below unless given.",
        ),
        SettingDoc::count(
            "slab-bits",
            "19",
            "Blocks of a slab as a power of two, 13 to 23: at least one slab has to fit beside an index of 2.5 GiB.",
        ),
        SettingDoc::flag(
            "deduplication",
            "true",
            "Whether equal blocks are stored once.",
        ),
        SettingDoc::flag("compression", "false", "Whether blocks are compressed."),
    ],
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    example: "vdo = { slab-bits = 15, compression = true }",
    parse,
    packages: &[DMSETUP],
    imagined: imagined::VDO,
    reads: &[|text| super::words_of(text, NAME).map_or(Vec::new(), |words| facts(&words))],
    shapes: &[&[
        "loop = { size = \"8 GiB\" }",
        "vdo = { logical-size = \"32 GiB\", slab-bits = 15, compression = true }",
        "xfs = {}",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: super::testing::VDO,
    ..LayerKind::EMPTY
};

struct Vdo {
    logical: Option<u64>,
    slab_bits: u64,
    deduplication: bool,
    compression: bool,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let logical = settings.optional_bytes("logical-size")?;
    if let Some(bytes) = logical.filter(|bytes| *bytes == 0 || !bytes.is_multiple_of(BLOCK)) {
        let what = format!("{bytes} bytes is not a whole number of blocks of 4 KiB");
        return Err(settings.refuse("logical-size", what, "write a size like \"32 GiB\""));
    }
    let slab_bits = settings.count("slab-bits")?;
    if !(13..=23).contains(&slab_bits) {
        let what = format!("slabs of 2^{slab_bits} blocks are not possible");
        return Err(settings.refuse("slab-bits", what, "write 13 to 23"));
    }
    Ok(Box::new(Mapped(Vdo {
        logical,
        slab_bits,
        deduplication: settings.flag("deduplication")?,
        compression: settings.flag("compression")?,
    })))
}

fn on_off(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

/// `V4 7:0 262144 4096 32768 16380 … deduplication on compression off`.
fn facts(words: &[String]) -> Vec<Fact> {
    let value = |name: &'static str| {
        let at = words.iter().position(|word| word == name)?;
        Some(Fact::new(name, words.get(at + 1)?))
    };
    let facts = [value("deduplication"), value("compression")];
    facts.into_iter().flatten().collect()
}

impl Maps for Vdo {
    const KIND: &'static LayerKind = &KIND;

    const DRIVERS: &'static [Driver] = &[
        MAPPER,
        Driver {
            module: "dm_vdo",
            shown_by: "/sys/module/dm_vdo",
            what: "devices that store equal blocks once (dm-vdo)",
        },
    ];
    const TOOLS: &'static [&'static str] = &[FORMAT, "dmsetup", "wipefs"];

    fn asked(&self) -> String {
        let size = self
            .logical
            .map_or(String::new(), |bytes| format!("{}, ", unit::bytes(bytes)));
        format!(
            "vdo, {size}slabs of {}, deduplication {}, compression {}",
            unit::bytes(BLOCK << self.slab_bits),
            on_off(self.deduplication),
            on_off(self.compression)
        )
    }

    fn map(
        &self,
        setup: &mut Setup<'_>,
        devices: &[Device],
        name: &str,
    ) -> Result<Vec<Fact>, LayerError> {
        let host = setup.host();
        let below = cached::size(host, &devices[0])?;
        // Blocks that are stored once make room: a disk above may be larger than the one below.
        let logical = self.logical.unwrap_or(below / BLOCK * BLOCK);
        let path = devices[0].path.to_string_lossy();
        // vdoformat(8): it asks nothing, and says what does not fit.
        host.must(&argv([
            FORMAT,
            &format!("--logical-size={}K", logical / 1024),
            &format!("--slab-bits={}", self.slab_bits),
            &path,
        ]))?;
        let mapped = format!(
            "0 {} vdo V4 {path} {} {BLOCK} {} deduplication {} compression {}",
            logical / 512,
            below / BLOCK,
            MAP.join(" "),
            on_off(self.deduplication),
            on_off(self.compression)
        );
        // The table gives the size below again: the driver checks it against the format.
        let create = argv(["dmsetup", "create", name, "--table", &mapped]);
        setup.make(REMOVE.of([name.into()]), &create)?;
        Ok(Vec::new())
    }

    fn read_back(&self, host: &dyn Host, name: &str) -> Result<Vec<Fact>, LayerError> {
        let facts = facts(&table(host, name, NAME)?);
        let found = |name: &str| found(&facts, name);
        let asked = |flag| on_off(flag).to_owned();
        // The driver switches either off by itself where it cannot do it.
        same(
            name,
            &[
                (
                    "deduplication",
                    found("deduplication"),
                    asked(self.deduplication),
                ),
                ("compression", found("compression"), asked(self.compression)),
            ],
        )?;
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::mapped::words_of;
    use crate::stack::testing::try_layer;

    /// A line of dmsetup(8), as vdo.rst of the kernel describes it.
    #[test]
    fn the_kernels_table_is_understood() {
        let line =
            "0 2097152 vdo V4 7:0 262144 4096 32768 16380 deduplication off compression on\n";
        let facts = facts(&words_of(line, NAME).unwrap());
        assert_eq!(Fact::value_of(&facts, "deduplication"), Some("off"));
        assert_eq!(Fact::value_of(&facts, "compression"), Some("on"));
    }

    #[test]
    fn what_no_format_has_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("vdo = { slab-bits = 12 }", "2^12 blocks"),
            (
                "vdo = { logical-size = \"1000 B\" }",
                "whole number of blocks",
            ),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }
}
