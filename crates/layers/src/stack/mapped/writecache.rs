//! A cache for writes on a faster device (dm-writecache). What was written is on the cache alone until it is
//! written back: when the cache dies, that is lost.

use crate::stack::mapped::{DMSETUP, MAPPER, Mapped, Maps, REMOVE, found, same, table};
use stackrace_base::event::Fact;
use stackrace_base::setting::{Refusal, SettingDoc, Settings};
use stackrace_base::unit;
use stackrace_foundation::foundation::block::SYS_SECTOR_BYTES;
use stackrace_foundation::foundation::{
    Device, GivesKind, Layer, LayerError, LayerKind, Setup, Takes, cached,
};
use stackrace_machine::host::{Driver, Host, Package, argv};

/// The word in a study, and the kernel's.
const NAME: &str = "writecache";

/// The layer `writecache` of a study.
pub(in crate::stack) const KIND: LayerKind = LayerKind {
    name: NAME,
    summary: "A cache for writes on the last of two devices (dm-writecache); empty at first.",
    settings: &[
        SettingDoc::bytes(
            "block-size",
            "4 KiB",
            "Block of the cache: 512, 1024, 2048 or 4096.",
        ),
        SettingDoc::share(
            "high",
            "50 %",
            "How full the cache is when writing back begins.",
        ),
        SettingDoc::share("low", "45 %", "How full it is when writing back ends."),
    ],
    takes: Takes::Devices { min: 2, max: 2 },
    gives: GivesKind::Devices,
    example: "writecache = { high = \"50 %\", low = \"45 %\" }",
    parse,
    packages: PACKAGES,
    reads: &[|text| super::words_of(text, NAME).map_or(Vec::new(), |words| facts(&words))],
    shapes: &[&[
        "loop = { size = \"1 GiB\", count = 2 }",
        "writecache = { high = \"90 %\", low = \"80 %\" }",
        "ext4 = {}",
    ]],
    #[cfg(any(test, feature = "testing"))]
    tried: super::testing::WRITECACHE,
    ..LayerKind::EMPTY
};

const PACKAGES: &[Package] = &[DMSETUP];

struct WriteCache {
    block: u64,
    /// Percents.
    high: u64,
    low: u64,
}

fn parse(settings: &Settings) -> Result<Box<dyn Layer>, Refusal> {
    let block = settings.bytes("block-size")?;
    if ![512, 1024, 2048, 4096].contains(&block) {
        return Err(settings.refuse(
            "block-size",
            format!("blocks of {block} B are not possible"),
            "write 512, 1024, 2048 or 4096",
        ));
    }
    let percents = |name: &str| -> Result<u64, Refusal> {
        let percents = settings.share(name)? * 100.0;
        match (percents.round() - percents).abs() < 1e-6 && (1.0..=100.0).contains(&percents) {
            true => Ok(percents.round() as u64),
            false => Err(settings.refuse(
                name,
                "the kernel takes whole percents from 1 to 100",
                "write it like \"50 %\"",
            )),
        }
    };
    let (high, low) = (percents("high")?, percents("low")?);
    // The kernel would write back without end.
    if low > high {
        return Err(settings.refuse(
            "low",
            format!("writing back would end at {low} % and begin at {high} %"),
            "write a low of at most high",
        ));
    }
    Ok(Box::new(Mapped(WriteCache { block, high, low })))
}

/// `s 7:0 7:1 4096 4 high_watermark 90 low_watermark 80`.
fn facts(words: &[String]) -> Vec<Fact> {
    // Behind the kind of the cache and both devices.
    let block = words.get(3).and_then(|word| word.parse().ok());
    let mark = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        Some(format!("{} %", words.get(at + 1)?))
    };
    let facts = [
        block.map(|bytes| Fact::new("block size", unit::bytes(bytes))),
        mark("high_watermark").map(|mark| Fact::new("high watermark", mark)),
        mark("low_watermark").map(|mark| Fact::new("low watermark", mark)),
    ];
    facts.into_iter().flatten().collect()
}

impl Maps for WriteCache {
    const KIND: &'static LayerKind = &KIND;

    const DRIVERS: &'static [Driver] = &[
        MAPPER,
        Driver {
            module: "dm_writecache",
            shown_by: "/sys/module/dm_writecache",
            what: "caches for writes (dm-writecache)",
        },
    ];
    const TOOLS: &'static [&'static str] = &["dmsetup", "wipefs"];

    fn asked(&self) -> String {
        format!(
            "writes cached on the last device, blocks of {}, written back from {} to {} % full",
            unit::bytes(self.block),
            self.high,
            self.low
        )
    }

    fn accepts(&self, below: &[Box<dyn Layer>]) -> Result<(), String> {
        cached::accepts(NAME, below)
    }

    fn map(
        &self,
        setup: &mut Setup<'_>,
        devices: &[Device],
        name: &str,
    ) -> Result<Vec<Fact>, LayerError> {
        let sizes = cached::sizes(setup.host(), devices)?;
        let [origin, cache] = [0, 1].map(|at| devices[at].path.to_string_lossy());
        // By the kernel's own table: LVM's tools would want volumes.
        let marks = format!("4 high_watermark {} low_watermark {}", self.high, self.low);
        let mapped = format!(
            "0 {} writecache s {} {} {} {marks}",
            sizes.origin / SYS_SECTOR_BYTES,
            origin,
            cache,
            self.block
        );
        let create = argv(["dmsetup", "create", name, "--table", &mapped]);
        setup.make(REMOVE.of([name.into()]), &create)?;
        Ok(vec![sizes.fact()])
    }

    fn read_back(&self, host: &dyn Host, name: &str) -> Result<Vec<Fact>, LayerError> {
        let facts = facts(&table(host, name, NAME)?);
        let found = |name: &str| found(&facts, name);
        same(
            name,
            &[
                ("blocks of", found("block size"), unit::bytes(self.block)),
                (
                    "a high watermark of",
                    found("high watermark"),
                    format!("{} %", self.high),
                ),
                (
                    "a low watermark of",
                    found("low watermark"),
                    format!("{} %", self.low),
                ),
            ],
        )?;
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;
    use crate::stack::mapped::words_of;
    use crate::stack::testing::{layer, try_layer};

    /// A line of dmsetup(8), as writecache.rst of the kernel describes it.
    #[test]
    fn the_kernels_table_is_understood() {
        let line = "0 100 writecache s 7:0 7:1 4096 4 high_watermark 90 low_watermark 80\n";
        let facts = facts(&words_of(line, NAME).unwrap());
        assert_eq!(Fact::value_of(&facts, "block size"), Some("4 KiB"));
        assert_eq!(Fact::value_of(&facts, "low watermark"), Some("80 %"));
    }

    #[test]
    fn what_no_cache_has_is_refused_before_anything_is_made() {
        for (line, said) in [
            ("writecache = { block-size = \"8 KiB\" }", "8192 B"),
            ("writecache = { high = \"40 %\" }", "would end at 45 %"),
            ("writecache = { high = \"50.5 %\" }", "whole percents"),
        ] {
            let refused = try_layer(line).err().unwrap();
            assert!(refused.message.contains(said), "{}", refused.message);
        }
        let model = "seagate-st3000dm001";
        let disks = format!(
            "lab-disks = {{ model = \"{model}\", size = \"1 GiB\", count = 2, last-model = \"{model}\", last-size = \"2 GiB\" }}"
        );
        let larger = [&disks, "writecache = {}", "ext4 = {}"].map(layer);
        let (at, why) = Stack::new(larger.into()).err().unwrap();
        assert_eq!(at, 1);
        assert!(why.starts_with("the cache (2 GiB) is larger"), "{why}");
    }
}
