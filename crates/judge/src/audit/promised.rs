//! What a stack promises to survive a power cut, as far as its settings tell.
//!
//! Nothing is tried here: a drive may lie, and only a run that cuts the power finds out. Sources: mount(8),
//! ext4(5), exports(5), zfsprops(7), and `Documentation/block/writeback_cache_control.rst` of Linux.

use stackrace_base::event::{Fact, FactFigure, LayerEffect, LayerFacts};

/// One clause for each part of a stack that has a say, bottom up as in the record; empty if nothing is known of any.
pub fn promised(layers: &[LayerFacts]) -> Vec<String> {
    let mut clauses = Vec::new();
    for layer in layers {
        for fact in &layer.facts {
            // Facts of all layers: a file system above cannot repair what a drive below promises.
            let clause = clause(layer, fact);
            // What ZFS was asked says more than that it can be asked.
            let told = fact.value == "zfs" && layer.facts.iter().any(|one| one.name == "sync");
            let clause = clause.filter(|_| !told);
            // The place repeats what the layers below it said.
            clauses.extend(clause.filter(|clause| !clauses.contains(clause)));
        }
    }
    clauses
}

fn clause(layer: &LayerFacts, fact: &Fact) -> Option<String> {
    let value = fact.value.as_str();
    match fact.name.as_str() {
        "mount options" | "mount options in force" => mount(value).map(str::to_owned),
        // Two layers name their options alike: what is read back after mounting.
        "file system" if value == "tmpfs" => {
            Some("tmpfs is memory: nothing survives a power cut".to_owned())
        }
        "file system" if value.starts_with("nfs") => Some(
            "an NFS mount: whether a commit is on the server's disk depends on its export (sync or async)"
                .to_owned(),
        ),
        "file system" if value == "zfs" => Some(
            "ZFS: what fsync is worth depends on the property sync of the dataset".to_owned(),
        ),
        "sync" => zfs(value).map(str::to_owned),
        "export in force" => export(value).map(str::to_owned),
        // What a server of disk images does with them.
        "flushes" if value == "ignored" => Some(
            "the disk image ignores flushes (cache=unsafe): fsync promises nothing".to_owned(),
        ),
        _ if fact.figure == Some(FactFigure::Effect(LayerEffect::FlushesKept)) => Some(
            "the server of the device takes no flushes: fsync promises nothing".to_owned(),
        ),
        "protocol" if layer.layer == "drbd" => drbd(value).map(str::to_owned),
        // Anything else is either a disk or says nothing of durability.
        name => cache(name.strip_prefix("disk ")?, fact.figure.as_ref()?),
    }
}

fn mount(options: &str) -> Option<&'static str> {
    // Whole words: `barrier=0` is not a part of another option.
    let given = |word: &str| options.split(',').any(|option| option == word);
    // Each option switches off what the next would ask for, so the strongest is said.
    if given("nobarrier") || given("barrier=0") || given("nobarriers") {
        return Some("mounted without barriers: fsync does not empty the caches of drives");
    }
    // overlayfs.rst; kernels since 6.17 show it as fsync=volatile.
    if given("volatile") || given("fsync=volatile") {
        return Some(
            "mounted volatile: fsync does nothing, and after a power cut nothing is mounted",
        );
    }
    // nfs(5).
    if given("soft") || given("softerr") {
        return Some(
            "mounted soft: a request that takes too long is given up, and what was written may be lost",
        );
    }
    given("data=writeback")
        .then_some("data=writeback: after a power cut files may hold old or foreign content")
}

fn zfs(sync: &str) -> Option<&'static str> {
    // zfsprops(7): the property of the dataset, inherited or its own.
    match sync {
        "disabled" => {
            Some("ZFS sync=disabled: fsync promises nothing, up to a transaction group is lost")
        }
        "always" => Some("ZFS sync=always: every write is durable when it returns"),
        "standard" => Some("ZFS sync=standard: what was synced is durable"),
        _ => None,
    }
}

fn export(options: &str) -> Option<&'static str> {
    let given = |word: &str| {
        // exportfs(8) shows the host first and the options in brackets.
        let mut options = options.split([',', '(', ')', ' ']);
        options.any(|option| option == word)
    };
    if given("async") {
        return Some("exported async: the server acknowledges commits before they are on its disk");
    }
    given("sync")
        .then_some("exported sync: a commit is on the server's disk when it is acknowledged")
}

fn drbd(protocol: &str) -> Option<&'static str> {
    // drbd.conf(5). What is lost also depends on which machine is cut.
    match protocol {
        "A" => Some("DRBD protocol A: a write is acknowledged before the peer has it"),
        "B" => Some("DRBD protocol B: a write is acknowledged when it is in the peer's memory"),
        "C" => Some("DRBD protocol C: a write is acknowledged when it is on both disks"),
        _ => None,
    }
}

/// The kernel's knowledge of a drive's cache.
fn cache(disk: &str, known: &FactFigure) -> Option<String> {
    match known {
        FactFigure::VolatileCache(true) => Some(format!(
            "{disk} has a volatile write cache: what is in it is safe after a flush, if the drive obeys it"
        )),
        FactFigure::VolatileCache(false) => Some(format!("{disk} reports no volatile write cache")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(layer: &str, name: &str, value: &str) -> Vec<String> {
        promised(&[LayerFacts {
            layer: layer.to_owned(),
            facts: vec![Fact::of_older_log(name, value)],
        }])
    }

    #[test]
    fn settings_say_what_they_promise() {
        for (layer, name, value, words) in [
            (
                "dir",
                "mount options in force",
                "rw,nobarrier",
                "without barriers",
            ),
            (
                "ext4",
                "mount options",
                "rw,barrier=0,noatime",
                "without barriers",
            ),
            (
                "ext4",
                "mount options",
                "rw,data=writeback",
                "foreign content",
            ),
            (
                "dir",
                "mount options in force",
                "rw,vers=4.2,soft",
                "given up",
            ),
            (
                "dir",
                "mount options",
                "rw,fsync=volatile",
                "fsync does nothing",
            ),
            ("vm", "flushes", "ignored", "ignores flushes"),
            ("dir", "file system", "tmpfs", "nothing survives"),
            ("dir", "file system", "nfs4", "sync or async"),
            ("zfs", "sync", "disabled", "promises nothing"),
            (
                "nfs",
                "export in force",
                "rw,async,no_subtree_check",
                "before they are on its disk",
            ),
            (
                "nfs",
                "export in force",
                "rw,sync,no_subtree_check",
                "when it is acknowledged",
            ),
            ("drbd", "protocol", "B", "peer's memory"),
            (
                "dir",
                "disk sda",
                "model X, 4 GiB, cache write back",
                "sda has a volatile",
            ),
            (
                "dir",
                "disk sdb",
                "4 GiB, cache write through",
                "sdb reports no volatile",
            ),
        ] {
            let said = of(layer, name, value);
            assert_eq!(said.len(), 1, "{name} {value}");
            assert!(said[0].contains(words), "{}", said[0]);
        }
    }

    #[test]
    fn a_directory_on_zfs_says_what_its_dataset_was_asked() {
        let facts = |sync: &[Fact]| LayerFacts {
            layer: "dir".to_owned(),
            facts: [&[Fact::of_older_log("file system", "zfs")], sync].concat(),
        };
        let said = promised(&[facts(&[Fact::of_older_log("sync", "disabled")])]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("sync=disabled"), "{said:?}");
        assert!(promised(&[facts(&[])])[0].contains("depends on the property"));
    }

    #[test]
    fn what_says_nothing_of_durability_is_not_mentioned() {
        for (name, value) in [
            ("mount options", "rw,noatime,barrier"),
            ("disk sda", "model cache, 4 GiB"),
            ("protocol", "C"),
            ("sync", "maybe"),
            ("size", "4 GiB"),
        ] {
            assert_eq!(
                of("dir", name, value),
                Vec::<String>::new(),
                "{name} {value}"
            );
        }
    }
}
