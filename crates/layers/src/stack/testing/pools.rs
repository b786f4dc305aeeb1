//! Pools, for real: with OpenZFS where the kernel has it, else with zfs-fuse if its daemon runs.

use super::{Ended, ground, site, stack, value, whole_life};
use crate::stack::undo_all;
use stackrace_machine::host::local::LocalHost;
use stackrace_machine::host::{Host, argv};
use stackrace_machine::journal::Journal;
use std::path::Path;
use std::sync::Arc;

const TWO: &str = "loop = { size = \"128 MiB\", count = 2 }";
const FOUR: &str = "loop = { size = \"128 MiB\", count = 4 }";

/// Tells what is missing where no ZFS answers.
pub(super) fn answers() -> Ended {
    let host = LocalHost::new(Arc::new(|_| {}));
    let answer = host.exec(&argv(["zpool", "list", "-H", "-o", "name"]));
    if answer.is_ok_and(|output| output.status == Some(0)) {
        Ok(())
    } else {
        Err("needs ZFS (load the module, or start zfs-fuse)".to_owned())
    }
}

/// Tells what is missing where ZFS is not that of the kernel, which alone has volumes, lz4 and zstd.
fn of_the_kernel() -> Ended {
    if Path::new("/sys/module/zfs").exists() {
        Ok(())
    } else {
        Err("needs the kernel's ZFS, zfs-fuse does not do".to_owned())
    }
}

pub(super) fn every_topology() -> Ended {
    answers()?;
    for (topology, word) in [
        ("stripe", "loop"),
        ("mirror", "mirror"),
        ("raid10", "mirror"),
        ("raidz1", "raidz1"),
        ("raidz2", "raidz2"),
        ("raidz3", "raidz3"),
    ] {
        for ashift in [9, 12] {
            let pool = format!("zpool = {{ topology = \"{topology}\", ashift = {ashift} }}");
            whole_life(&[FOUR, &pool, "dataset = {}"], |standing| {
                let facts = &standing.facts()[1].facts;
                let layout = value(facts, "layout");
                assert!(layout.contains(word), "{layout}");
                let mirrors = layout.split(' ').filter(|name| name.starts_with("mirror"));
                assert_eq!(mirrors.count() == 2, topology == "raid10", "{layout}");
                for device in &standing.devices()[..4] {
                    let found = value(facts, &format!("ashift of {device}"));
                    assert_eq!(found, ashift.to_string());
                }
            })?;
        }
    }
    Ok(())
}

pub(super) fn properties_are_read_back() -> Ended {
    answers()?;
    let dataset = "dataset = { compression = \"gzip-9\", recordsize = \"8 KiB\", atime = \"off\", primarycache = \"metadata\", logbias = \"throughput\", properties = [\"copies=2\"] }";
    let pool = "zpool = { topology = \"mirror\", properties = [\"failmode=continue\"] }";
    whole_life(&[TWO, pool, dataset], |standing| {
        assert_eq!(value(&standing.facts()[1].facts, "failmode"), "continue");
        let facts = &standing.facts()[2].facts;
        for (name, found) in [
            ("compression", "gzip-9"),
            ("recordsize", "8192"),
            ("atime", "off"),
            ("primarycache", "metadata"),
            ("logbias", "throughput"),
            ("copies", "2"),
        ] {
            assert_eq!(value(facts, name), found);
        }
    })?;
    Ok(())
}

pub(super) fn log_and_cache_take_the_last_devices() -> Ended {
    answers()?;
    let pool = "zpool = { topology = \"mirror\", log = 1, cache = 1 }";
    whole_life(&[FOUR, pool, "dataset = {}"], |standing| {
        let layout = value(&standing.facts()[1].facts, "layout").to_string();
        let names: Vec<&str> = layout.split(' ').collect();
        assert_eq!(names.len(), 7, "{layout}");
        assert!(names[0].starts_with("mirror") && names[3] == "logs" && names[5] == "cache");
    })?;
    Ok(())
}

pub(super) fn a_property_that_is_refused_leaves_nothing() -> Ended {
    answers()?;
    for (pool, dataset) in [
        (
            "zpool = { properties = [\"compatibility=nonsense\"] }",
            "dataset = {}",
        ),
        (
            "zpool = {}",
            "dataset = { properties = [\"aclinherit=nonsense\"] }",
        ),
    ] {
        let stack = stack(&[TWO, pool, dataset]);
        let ground = ground(&stack)?;
        let journal = Journal::create(&ground.journal()).unwrap();
        let error = stack
            .set_up(&site(&ground.host, &journal, &ground.scratch))
            .unwrap_err();
        assert!(error.to_string().contains("nonsense"), "{error}");
        assert_eq!(error.left, Vec::<String>::new());
        assert!(journal.pending().is_empty());
        ground.assert_nothing_left();
    }
    Ok(())
}

/// Disks with sectors of 4096 B cannot have an ashift of 9: ZFS takes 12 or refuses, and either is
/// an error. zfs-fuse does neither: it writes 512 B for ever.
pub(super) fn another_ashift_than_asked_is_an_error() -> Ended {
    answers()?;
    of_the_kernel()?;
    let disks = "loop = { size = \"128 MiB\", count = 2, logical-sector = 4096 }";
    let stack = stack(&[
        disks,
        "zpool = { topology = \"mirror\", ashift = 9 }",
        "dataset = {}",
    ]);
    let ground = ground(&stack)?;
    let journal = Journal::create(&ground.journal()).unwrap();
    let error = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap_err();
    assert!(error.to_string().starts_with("zpool: "), "{error}");
    ground.assert_nothing_left();
    Ok(())
}

pub(super) fn a_pool_whose_program_died_is_undone_from_the_journal() -> Ended {
    answers()?;
    let stack = stack(&[TWO, "zpool = { topology = \"mirror\" }", "dataset = {}"]);
    let ground = ground(&stack)?;
    let journal = Journal::create(&ground.journal()).unwrap();
    let standing = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap();
    std::fs::write(standing.directory().join("data"), b"x").unwrap();
    drop((standing, journal));
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    ground.assert_nothing_left();
    let pools = ground
        .host
        .exec(&argv(["zpool", "list", "-H", "-o", "name"]));
    assert!(!pools.unwrap().stdout.contains("stackrace-r1-t0"));
    Ok(())
}

pub(super) fn a_file_system_on_a_volume() -> Ended {
    answers()?;
    of_the_kernel()?;
    let disks = "loop = { size = \"512 MiB\", count = 2 }";
    let volume = "zvol = { size = \"384 MiB\", volblocksize = \"16 KiB\", compression = \"lz4\" }";
    whole_life(
        &[
            disks,
            "zpool = { topology = \"mirror\" }",
            volume,
            "xfs = {}",
        ],
        |standing| {
            assert_eq!(value(&standing.facts()[2].facts, "volblocksize"), "16384");
            assert!(standing.devices()[0].starts_with("zd"));
        },
    )?;
    Ok(())
}
