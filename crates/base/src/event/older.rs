//! What logs from before have in words alone: the only place that reads values from them.

use super::{Fact, FactFigure, LabGuests, OtherMachines, RunPlace};

/// Kinds of workload whose amount of work may follow from the seed.
const SEEDED: [&str; 6] = [
    "bonnie++",
    "files",
    "postmark",
    "copy-tree",
    "extract-tar",
    "delete-tree",
];

/// Kinds of workload that do one thing from the first to the last moment of a phase.
const LEVEL: [&str; 6] = [
    "copy-file",
    "fileio",
    "random",
    "read-file",
    "sequential",
    "stream-video",
];

/// Whether the sizes of a workload's files may be drawn from the seed.
pub(super) fn draws_sizes(kind: &str, summary: &str) -> bool {
    // Most use bonnie++ without files, or with empty ones: only its summary tells.
    SEEDED.contains(&kind) && (kind != "bonnie++" || summary.contains("files of "))
}

/// Whether the rate of a workload ought to be level.
pub(super) fn is_level(kind: &str) -> bool {
    LEVEL.contains(&kind)
}

/// The work of a summary, which is `imported from TOOL VERSION: SETTINGS` if it was imported.
pub(super) fn work(summary: &str) -> String {
    let work = match summary.strip_prefix("imported from ") {
        Some(told) => told.split_once(": ").map_or("", |(_, settings)| settings),
        None => summary,
    };
    // Earlier versions wrote `1 thread(s)`: the same work.
    work.replace(" 1 thread(s)", " 1 thread")
        .replace("thread(s)", "threads")
}

/// Memory of a guest that is not on record, bytes.
const GUEST_BYTES: u64 = 1 << 30;

/// Place a run was made at, from the facts of its head.
pub(super) fn place(facts: &[Fact]) -> RunPlace {
    let fact = |name: &str| Fact::value_of(facts, name);
    let owned = |name: &str| fact(name).map(str::to_owned);
    if let Some(clock) = fact("lab") {
        let memory = fact("lab memory").and_then(|text| crate::unit::parse_bytes(text).ok());
        let guests = LabGuests {
            system: owned("lab system"),
            memory_bytes: memory.unwrap_or(GUEST_BYTES),
        };
        return match clock.starts_with("virtual time") {
            true => RunPlace::Virtual(guests),
            false => RunPlace::Lab(guests),
        };
    }
    if let Some(started) = owned("clients") {
        let processes = fact("processes on each client").and_then(|number| number.parse().ok());
        let processes = processes.unwrap_or(1);
        return RunPlace::Clients { started, processes };
    }
    let peer = |node: u32| owned(&format!("node {node} over ssh"));
    let there = OtherMachines {
        on: owned("over ssh"),
        peers: (2..=10).filter_map(peer).collect(),
        directory: owned("working directory"),
    };
    // `agent`, or `agent on HOST` where machines differ.
    let of_kind = |kind: &str| {
        let mut names = facts.iter().map(|fact| &*fact.name);
        names.any(|name| name == kind || name.starts_with(&format!("{kind} on ")))
    };
    match (
        of_kind("agent"),
        of_kind("over ssh") || !there.peers.is_empty(),
    ) {
        (true, _) => RunPlace::Shell(there),
        (false, true) => RunPlace::Ssh(there),
        (false, false) => RunPlace::Here {
            directory: there.directory,
        },
    }
}

/// The value of a fact, from its name and its words; `None` if it is words alone.
pub(super) fn figure(name: &str, words: &str) -> Option<FactFigure> {
    match name {
        "space used" => used(words),
        "file system made" => {
            let seconds = words.strip_suffix(" s since 1970")?;
            Some(FactFigure::SecondsSince1970(seconds.parse().ok()?))
        }
        "mounted" => Some(FactFigure::BeforeTheRun(words == "before the run")),
        "devices" => Some(FactFigure::Devices(
            words.split(", ").map(str::to_owned).collect(),
        )),
        _ => {
            // Of several machines, each has a name of its own behind that of the fact.
            let kind = name.split(' ').next()?;
            match kind {
                "memory" => memory(name, words),
                "limit" | "line" => rate(words),
                "disk" => cache(words),
                _ => None,
            }
        }
    }
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
    fn older_logs_say_in_their_facts_where_the_run_was_made() {
        let of = |facts: &[(&str, &str)]| {
            let facts = facts.iter().map(|(name, words)| Fact::new(*name, *words));
            place(&facts.collect::<Vec<Fact>>())
        };
        let there = |on: Option<&str>, peers: &[&str]| OtherMachines {
            on: on.map(str::to_owned),
            peers: peers.iter().map(|peer| (*peer).to_owned()).collect(),
            directory: None,
        };
        let guests = |system: Option<&str>, memory_bytes| LabGuests {
            system: system.map(str::to_owned),
            memory_bytes,
        };
        let here = |directory: Option<&str>| RunPlace::Here {
            directory: directory.map(str::to_owned),
        };
        for (facts, place) in [
            (&[("kernel", "6.1")][..], here(None)),
            (&[("working directory", "/tmp")], here(Some("/tmp"))),
            (
                &[("over ssh", "far")],
                RunPlace::Ssh(there(Some("far"), &[])),
            ),
            (
                &[("over ssh on a", "a"), ("over ssh on b", "b")],
                RunPlace::Ssh(there(None, &[])),
            ),
            (
                &[("node 2 over ssh", "b=10.0.0.2")],
                RunPlace::Ssh(there(None, &["b=10.0.0.2"])),
            ),
            (
                &[("over ssh", "far"), ("agent", "none")],
                RunPlace::Shell(there(Some("far"), &[])),
            ),
            (&[("agent on a", "none")], RunPlace::Shell(there(None, &[]))),
            (
                &[("clients", "ssh:a,b"), ("processes on each client", "4")],
                RunPlace::Clients {
                    started: "ssh:a,b".to_owned(),
                    processes: 4,
                },
            ),
            (
                &[
                    ("lab", "kvm"),
                    ("lab memory", "2 GiB"),
                    ("lab system", "debian-13"),
                ],
                RunPlace::Lab(guests(Some("debian-13"), 2 << 30)),
            ),
            (
                &[("lab", "virtual time, 1 GIPS")],
                RunPlace::Virtual(guests(None, 1 << 30)),
            ),
        ] {
            assert_eq!(of(facts), place, "{facts:?}");
        }
    }

    #[test]
    fn a_fact_with_its_value_is_read_as_it_was_written() {
        let fact = Fact::new("memory", "about 1 KiB").with(FactFigure::Bytes(1000));
        let text = serde_json::to_string(&fact).unwrap();
        assert_eq!(serde_json::from_str::<Fact>(&text).unwrap(), fact);
    }
}
