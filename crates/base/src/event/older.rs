//! What logs from before have in words alone: read here, and for facts beside their values.

use super::{Fact, LabGuests, OperationsOf, OtherMachines, RunPlace};

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

/// Whose operations a workload does.
pub(super) fn operations(kind: &str) -> OperationsOf {
    match kind {
        "command" => OperationsOf::Command,
        "fio" => OperationsOf::Job,
        "promises" => OperationsOf::Promised,
        _ => OperationsOf::Itself,
    }
}

/// The work of a summary, which is `imported from TOOL VERSION: SETTINGS` if it was imported.
pub(super) fn work(summary: &str) -> String {
    let work = match summary.strip_prefix("imported from ") {
        Some(told) => told.split_once(": ").map_or("", |(_, settings)| settings),
        None => summary,
    };
    // Earlier versions wrote `1 thread(s)`, and `1050 entries`: the same work.
    let work = work.replace(" 1 thread(s)", " 1 thread");
    without_thousands(&work.replace("thread(s)", "threads"))
}

/// A text whose numbers have no commas; behind any other comma stands a blank.
fn without_thousands(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let kept = text.char_indices();
    let kept =
        kept.filter(|(at, sign)| *sign != ',' || *at == 0 || !digit(at - 1) || !digit(at + 1));
    kept.map(|(_, sign)| sign).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_is_known_however_its_numbers_are_written() {
        let now = "a tree of 1,050 entries, 1,000,000 B, random, 4 threads";
        let before = "a tree of 1050 entries, 1000000 B, random, 4 thread(s)";
        assert_eq!(work(now), work(before));
        assert_ne!(work("2 sizes, 1, 2"), work("2 sizes, 12"));
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
}
