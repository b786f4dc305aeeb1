//! Values of facts; in logs from before facts had values, read from their words.

use serde::{Deserialize, Serialize};

use super::drive::{DriveClass, DriveTold};
use crate::unit;

/// A fact that can be computed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactFigure {
    /// Amount in bytes: memory.
    Bytes(u64),
    /// Bytes in use of all bytes.
    Used {
        /// Bytes in use.
        bytes: u64,
        /// All bytes.
        of: u64,
    },
    /// The most that a device or a line carries.
    Rate {
        /// Bytes per second.
        bytes_per_s: u64,
        /// Source of that: `PCIe 8.0 GT/s x4`.
        known_by: String,
    },
    /// Seconds since the beginning of 1970.
    SecondsSince1970(u64),
    /// True if it was there before the run, and not made by it.
    BeforeTheRun(bool),
    /// Images that a guest was started from, that of its system first.
    Images(Vec<String>),
    /// Block devices by name, from the top down.
    Devices(Vec<String>),
    /// True if the cache of a drive loses its content with the power, unless it is flushed.
    VolatileCache(bool),
    /// The I/O of this program is limited by its control group: the fact has the kernel's own words.
    IoLimit,
    /// Processor time that a control group gives to this program, in thousandths of one processor.
    ProcessorLimit(u64),
    /// Bytes of memory that a control group gives to this program, the caches of what it reads and writes included.
    MemoryLimit(u64),
    /// Processes and threads that a control group lets this program have.
    ProcessLimit(u64),
    /// What its layer does to every figure that is measured on it.
    Effect(LayerEffect),
}

/// What a layer does to figures, so that they say something else than a reader may think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerEffect {
    /// The processor has no instructions for the cipher.
    SlowCipher,
    /// All data are written twice.
    WrittenTwice,
    /// A cache was empty when the stack was set up.
    EmptyCache,
    /// A server and its client are on one machine.
    NoNetwork,
    /// A server keeps in its memory what it was asked to make durable.
    FlushesKept,
}

/// The value of a fact, from its name and its words; `None` if it is words alone.
pub(super) fn of_words(name: &str, words: &str) -> Option<FactFigure> {
    match name {
        "space used" => used(words),
        "file system made" => {
            let seconds = words.strip_suffix(" s since 1970")?;
            Some(FactFigure::SecondsSince1970(seconds.parse().ok()?))
        }
        "i/o limit" => Some(FactFigure::IoLimit),
        "mounted" => Some(FactFigure::BeforeTheRun(words == "before the run")),
        "devices" => Some(FactFigure::Devices(
            words.split(", ").map(str::to_owned).collect(),
        )),
        _ => {
            // Of several machines, each has a name of its own behind that of the fact.
            let kind = name.split(' ').next()?;
            match kind {
                "lab" => images(name, words),
                "memory" => memory(name, words),
                "limit" | "line" => rate(words),
                "disk" => cache(words),
                _ => None,
            }
        }
    }
}

/// `debian-13 with zfs`; what the files of an image hold is another fact.
fn images(name: &str, words: &str) -> Option<FactFigure> {
    (name == "lab image" || name.starts_with("lab image on "))
        .then(|| FactFigure::Images(words.split(" with ").map(str::to_owned).collect()))
}

/// `83.1 % of 320 MiB`: thousandths are all that is known.
fn used(words: &str) -> Option<FactFigure> {
    let percent: f64 = words.split_once(" % of ")?.0.parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| FactFigure::Used {
        bytes: (percent * 10.0).round() as u64,
        of: 1000,
    })
}

/// `24684084 kB`, which are KiB (proc_meminfo(5)); what was available at the start is another fact.
fn memory(name: &str, words: &str) -> Option<FactFigure> {
    let kib: u64 = words.strip_suffix("kB")?.trim().parse().ok()?;
    (name == "memory" || name.starts_with("memory on "))
        .then(|| FactFigure::Bytes(kib.saturating_mul(1024)))
}

/// `3938461538 B/s, PCIe 8.0 GT/s x4`
fn rate(words: &str) -> Option<FactFigure> {
    let (bytes_per_s, known_by) = words.split_once(" B/s, ")?;
    Some(FactFigure::Rate {
        bytes_per_s: bytes_per_s.parse().ok().filter(|rate| *rate > 0)?,
        known_by: known_by.to_owned(),
    })
}

/// `model X, 1 TiB, cache write back`
fn cache(words: &str) -> Option<FactFigure> {
    let mut parts = words.split(", ");
    let cache = parts.find_map(|part| part.strip_prefix("cache "))?;
    match cache {
        "write back" => Some(FactFigure::VolatileCache(true)),
        "write through" => Some(FactFigure::VolatileCache(false)),
        _ => None,
    }
}

/// `model X, 1 TiB, not rotational` of `disk sda`, or of `disk sda on PLACE`
pub(super) fn drive_of_words(name: &str, words: &str) -> Option<DriveTold> {
    let mut name = name.split(' ');
    if name.next() != Some("disk") {
        return None;
    }
    let parts = || words.split(", ");
    let turns = parts().find_map(|part| match part {
        "rotational" => Some(true),
        "not rotational" => Some(false),
        _ => None,
    });
    let model = parts().find_map(|part| part.strip_prefix("model "));
    Some(DriveTold {
        class: DriveClass::of(name.next()?, turns),
        model: model.map(str::to_owned),
        bytes: parts().find_map(|part| unit::parse_bytes(part).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Fact;
    use super::*;

    /// A fact of an old log.
    fn read(name: &str, value: &str) -> Option<FactFigure> {
        let line = serde_json::json!({ "name": name, "value": value });
        serde_json::from_value::<Fact>(line).unwrap().figure
    }

    #[test]
    fn images_of_older_logs_are_told_from_what_their_files_hold() {
        let names = ["debian-13-1f", "zfs-2a"].map(str::to_owned).to_vec();
        let images = Some(FactFigure::Images(names));
        assert_eq!(
            read("lab image on debian-13", "debian-13-1f with zfs-2a"),
            images
        );
        assert_eq!(read("lab image content", "1f with 2a"), None);
    }

    #[test]
    fn facts_of_older_logs_have_their_values() {
        let rate = |bytes_per_s, known_by: &str| FactFigure::Rate {
            bytes_per_s,
            known_by: known_by.to_owned(),
        };
        for (name, value, figure) in [
            (
                "space used",
                "83.1 % of 320 MiB",
                FactFigure::Used {
                    bytes: 831,
                    of: 1000,
                },
            ),
            ("i/o limit", "io.max: 8:0 rbps=1", FactFigure::IoLimit),
            (
                "file system made",
                "1000000 s since 1970",
                FactFigure::SecondsSince1970(1_000_000),
            ),
            (
                "memory",
                "24684084 kB",
                FactFigure::Bytes(24_684_084 * 1024),
            ),
            ("memory on far", "1 kB", FactFigure::Bytes(1024)),
            ("mounted", "before the run", FactFigure::BeforeTheRun(true)),
            ("mounted", "by this run", FactFigure::BeforeTheRun(false)),
            (
                "devices",
                "sda1, sda",
                FactFigure::Devices(vec!["sda1".to_owned(), "sda".to_owned()]),
            ),
            (
                "limit sda",
                "600000000 B/s, SATA 6.0 Gbit/s",
                rate(600_000_000, "SATA 6.0 Gbit/s"),
            ),
            (
                "line to the peer",
                "5 B/s, one TCP connection",
                rate(5, "one TCP connection"),
            ),
            (
                "disk vda",
                "model X, 1 TiB, cache write back",
                FactFigure::VolatileCache(true),
            ),
            (
                "disk vda",
                "cache write through",
                FactFigure::VolatileCache(false),
            ),
        ] {
            assert_eq!(read(name, value), Some(figure), "{name}: {value}");
        }
        for (name, value) in [
            ("limit zram0", "memory: no bus, no seeks"),
            ("limit sda", "NaN B/s, x"),
            ("memory available at the start", "100 kB"),
            ("memory", "8 B/s, x"),
            ("space used", "much"),
            ("disk vda", "rotational"),
            ("kernel", "6.1"),
        ] {
            assert_eq!(read(name, value), None, "{name}: {value}");
        }
    }

    #[test]
    fn a_fact_with_its_value_is_read_as_it_was_written() {
        let fact = Fact::new("memory", "about 1 KiB").with(FactFigure::Bytes(1000));
        let text = serde_json::to_string(&fact).unwrap();
        assert_eq!(serde_json::from_str::<Fact>(&text).unwrap(), fact);
    }
}
