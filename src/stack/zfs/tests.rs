//! Pools, for real: with OpenZFS where the kernel has it, else with zfs-fuse if its daemon runs.

use crate::host::local::LocalHost;
use crate::host::{Host, argv};
use crate::journal::Journal;
use crate::stack::Layer;
use crate::stack::tests::real::{ground, value, whole_life};
use crate::stack::tests::{site, stack};
use crate::stack::undo_all;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const TWO: &str = "loop = { size = \"128 MiB\", count = 2 }";
const FOUR: &str = "loop = { size = \"128 MiB\", count = 4 }";

/// Whether some ZFS answers; said on the terminal where none does.
fn answers(test: &str) -> bool {
    let host = LocalHost::new(Arc::new(|_| {}));
    let answer = host.exec(&argv(["zpool", "list", "-H", "-o", "name"]));
    let answers = answer.is_ok_and(|output| output.status == Some(0));
    if !answers {
        writeln!(
            std::io::stderr(),
            "skipped: {test}: no ZFS answers (load the module, or start zfs-fuse)"
        )
        .unwrap();
    }
    answers
}

/// Whether it is that of the kernel, which alone has volumes, lz4 and zstd.
fn of_the_kernel() -> bool {
    Path::new("/sys/module/zfs").exists()
}

#[test]
fn every_topology() {
    if !answers("every topology") {
        return;
    }
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
            whole_life(&[FOUR, &pool, "dataset = {}"], |raised| {
                let facts = &raised.facts()[1].facts;
                let layout = value(facts, "layout");
                assert!(layout.contains(word), "{layout}");
                let mirrors = layout.split(' ').filter(|name| name.starts_with("mirror"));
                assert_eq!(mirrors.count() == 2, topology == "raid10", "{layout}");
                for device in &raised.devices()[..4] {
                    let found = value(facts, &format!("ashift of {device}"));
                    assert_eq!(found, ashift.to_string());
                }
            });
        }
    }
}

#[test]
fn properties_are_read_back() {
    if !answers("properties") {
        return;
    }
    let dataset = "dataset = { compression = \"gzip-9\", recordsize = \"8 KiB\", atime = \"off\", primarycache = \"metadata\", logbias = \"throughput\", properties = [\"copies=2\"] }";
    let pool = "zpool = { topology = \"mirror\", properties = [\"failmode=continue\"] }";
    whole_life(&[TWO, pool, dataset], |raised| {
        assert_eq!(value(&raised.facts()[1].facts, "failmode"), "continue");
        let facts = &raised.facts()[2].facts;
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
    });
}

#[test]
fn log_and_cache_take_the_last_devices() {
    if !answers("log and cache") {
        return;
    }
    let pool = "zpool = { topology = \"mirror\", log = 1, cache = 1 }";
    whole_life(&[FOUR, pool, "dataset = {}"], |raised| {
        let layout = value(&raised.facts()[1].facts, "layout").to_string();
        let names: Vec<&str> = layout.split(' ').collect();
        assert_eq!(names.len(), 7, "{layout}");
        assert!(names[0].starts_with("mirror") && names[3] == "logs" && names[5] == "cache");
    });
}

#[test]
fn a_property_that_is_refused_leaves_nothing() {
    if !answers("refused property") {
        return;
    }
    for (pool, dataset) in [
        ("zpool = { properties = [\"nonsense=1\"] }", "dataset = {}"),
        ("zpool = {}", "dataset = { properties = [\"nonsense=1\"] }"),
    ] {
        let stack = stack(&[TWO, pool, dataset]);
        let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
        let Some(ground) = ground("refused property", &needs) else {
            return;
        };
        let journal = Journal::create(&ground.journal()).unwrap();
        let error = stack
            .set_up(&site(&ground.host, &journal, &ground.scratch))
            .unwrap_err();
        assert!(error.to_string().contains("nonsense"), "{error}");
        assert_eq!(error.left, Vec::<String>::new());
        assert!(journal.pending().is_empty());
        ground.assert_nothing_left();
    }
}

/// Disks with sectors of 4096 B cannot have an ashift of 9: ZFS takes 12 or refuses, and either is
/// an error. zfs-fuse does neither: it writes 512 B for ever.
#[test]
fn another_ashift_than_asked_is_an_error() {
    if !answers("another ashift") {
        return;
    }
    if !of_the_kernel() {
        writeln!(std::io::stderr(), "skipped: another ashift: zfs-fuse").unwrap();
        return;
    }
    let disks = "loop = { size = \"128 MiB\", count = 2, logical-sector = 4096 }";
    let stack = stack(&[
        disks,
        "zpool = { topology = \"mirror\", ashift = 9 }",
        "dataset = {}",
    ]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("another ashift", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let error = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap_err();
    assert!(error.to_string().starts_with("zpool: "), "{error}");
    ground.assert_nothing_left();
}

#[test]
fn a_pool_whose_program_died_is_undone_from_the_journal() {
    if !answers("pool of a dead program") {
        return;
    }
    let stack = stack(&[TWO, "zpool = { topology = \"mirror\" }", "dataset = {}"]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("pool of a dead program", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let raised = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap();
    std::fs::write(raised.directory().join("data"), b"x").unwrap();
    drop((raised, journal));
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    ground.assert_nothing_left();
    let pools = ground
        .host
        .exec(&argv(["zpool", "list", "-H", "-o", "name"]));
    assert!(!pools.unwrap().stdout.contains("stackrace-r1-t0"));
}

#[test]
fn a_file_system_on_a_volume() {
    if !answers("volume") {
        return;
    }
    if !of_the_kernel() {
        writeln!(
            std::io::stderr(),
            "skipped: volume: zfs-fuse gives no devices"
        )
        .unwrap();
        return;
    }
    let disks = "loop = { size = \"512 MiB\", count = 2 }";
    let volume = "zvol = { size = \"384 MiB\", volblocksize = \"16 KiB\", compression = \"lz4\" }";
    whole_life(
        &[
            disks,
            "zpool = { topology = \"mirror\" }",
            volume,
            "xfs = {}",
        ],
        |raised| {
            assert_eq!(value(&raised.facts()[2].facts, "volblocksize"), "16384");
            assert!(raised.devices()[0].starts_with("zd"));
        },
    );
}
