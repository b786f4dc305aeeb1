//! The real thing: loop devices, as root.

use super::{ALL, settings, site, stack};
use crate::event::Fact;
use crate::host::Host;
use crate::host::local::LocalHost;
use crate::journal::{Journal, undo_all};
use crate::stack::{Layer, StackError, StandingStack};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scratch directory that shows what was left in it.
pub(super) struct Ground {
    _base: tempfile::TempDir,
    pub(super) scratch: PathBuf,
    pub(super) host: LocalHost,
}

/// None, said on the terminal, where this user may not mount.
pub(super) fn ground(test: &str, needs: &[&dyn Layer]) -> Option<Ground> {
    let host = LocalHost::new(Arc::new(|_| {}));
    let missing = needs
        .iter()
        .flat_map(|layer| host.missing(&layer.needs()))
        .next();
    if let Some(missing) = missing {
        // Not println!, which a passing test swallows: a skipped test must be seen.
        writeln!(std::io::stderr(), "skipped: {test}: {missing}").unwrap();
        return None;
    }
    let base = tempfile::tempdir().unwrap();
    let scratch = base.path().canonicalize().unwrap().join("mnt");
    std::fs::create_dir(&scratch).unwrap();
    Some(Ground {
        _base: base,
        scratch,
        host,
    })
}

impl Ground {
    pub(super) fn journal(&self) -> PathBuf {
        self.scratch.with_file_name("journal.jsonl")
    }

    /// No mount, no loop device, no file of this test is there any more.
    pub(super) fn assert_nothing_left(&self) {
        let mounts = self.host.mounts().unwrap();
        assert!(
            mounts
                .iter()
                .all(|m| !m.mount_point.starts_with(&self.scratch))
        );
        for name in self.host.list(Path::new("/sys/block")).unwrap() {
            let file = Path::new("/sys/block").join(name).join("loop/backing_file");
            let file = self.host.read_text(&file).unwrap_or_default();
            assert!(!Path::new(&file).starts_with(&self.scratch), "{file}");
        }
        assert_eq!(self.host.list(&self.scratch).unwrap(), [""; 0]);
    }
}

pub(super) fn value<'a>(facts: &'a [Fact], name: &str) -> &'a str {
    let found = facts.iter().find(|fact| fact.name == name);
    &found
        .unwrap_or_else(|| panic!("no {name} in {facts:#?}"))
        .value
}

/// Raises, writes, settles with a remount, looks for what was written, lowers.
pub(super) fn whole_life(lines: &[&str], look: impl FnOnce(&StandingStack)) {
    let stack = stack(lines);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground(&lines.join(" + "), &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let site = site(&ground.host, &journal, &ground.scratch);
    let raised = stack.set_up(&site).unwrap();
    let directory = raised.directory().to_path_buf();
    assert_eq!(ground.host.list(&directory).unwrap(), [""; 0]);
    assert_eq!(raised.facts().len(), lines.len());
    look(&raised);
    std::fs::write(directory.join("data"), vec![7; 100_000]).unwrap();
    let settled = raised.settle(&site, false, true).unwrap();
    let in_memory = lines[0].starts_with("tmpfs");
    let ours = !lines[0].starts_with("dir");
    assert_eq!(settled.remounted, ours && !in_memory);
    assert_eq!(settled.caches, "none");
    assert_eq!(
        std::fs::read(directory.join("data")).unwrap(),
        vec![7; 100_000]
    );
    raised.tear_down(&site).unwrap();
    assert!(!directory.exists());
    assert!(journal.pending().is_empty());
    ground.assert_nothing_left();
}

#[test]
fn ext2() {
    whole_life(&["loop = { size = \"64 MiB\" }", "ext2 = {}"], |raised| {
        let facts = &raised.facts()[1].facts;
        assert!(!value(facts, "Filesystem features").contains("has_journal"));
    });
}

#[test]
fn ext3() {
    let ext3 = "ext3 = { mount = [\"data=writeback\"] }";
    whole_life(&["loop = { size = \"64 MiB\" }", ext3], |raised| {
        let facts = &raised.facts()[1].facts;
        assert!(value(facts, "Filesystem features").contains("has_journal"));
        assert!(value(facts, "mount options in force").contains("data=writeback"));
    });
}

#[test]
fn ext4_on_large_sectors_with_options() {
    let disk = "loop = { size = \"64 MiB\", logical-sector = 4096, laid-out = \"written\" }";
    let ext4 =
        "ext4 = { mkfs = [\"-I\", \"512\"], mount = [\"noatime,commit=30\", \"barrier=1\"] }";
    whole_life(&[disk, ext4], |raised| {
        let facts = &raised.facts()[1].facts;
        assert_eq!(value(facts, "Block size"), "4096");
        assert_eq!(value(facts, "Inode size"), "512");
        let options = value(facts, "mount options in force");
        assert!(options.contains("noatime") && options.contains("commit=30"));
        assert!(facts.iter().all(|f| f.name != "mount option not as asked"));
        let device = &raised.devices()[0];
        let shown = value(&raised.facts()[0].facts, &format!("device {device}"));
        assert_eq!(
            shown,
            "64 MiB, logical sector 4096 B, physical sector 4096 B, direct I/O on"
        );
        assert!(device.starts_with("loop"));
    });
}

#[test]
fn xfs() {
    let xfs = "xfs = { mkfs = [\"-m\", \"reflink=0\"], mount = [\"allocsize=1m\"] }";
    whole_life(
        &["loop = { size = \"320 MiB\", laid-out = \"no\" }", xfs],
        |raised| {
            let facts = &raised.facts()[1].facts;
            assert!(value(facts, "meta-data").contains("reflink=0"));
            assert!(facts.iter().all(|f| f.name != "mount option not as asked"));
        },
    );
}

#[test]
fn btrfs_on_one_two_and_four_disks() {
    for (count, profile, shown) in [
        (1, "single", "single"),
        (2, "raid1", "RAID1"),
        (4, "raid10", "RAID10"),
    ] {
        let disks = format!("loop = {{ size = \"130 MiB\", count = {count} }}");
        let btrfs = format!("btrfs = {{ profile = \"{profile}\", compression = \"zstd:5\" }}");
        whole_life(&[&disks, &btrfs], |raised| {
            let facts = &raised.facts()[1].facts;
            assert!(
                facts
                    .iter()
                    .any(|f| f.name == format!("space, Data, {shown}"))
            );
            assert!(value(facts, "mount options in force").contains("compress=zstd:5"));
            let loops = raised.devices().iter().filter(|d| d.starts_with("loop"));
            assert_eq!(loops.count(), count);
        });
    }
}

#[test]
fn f2fs() {
    let f2fs = "f2fs = { mount = [\"noatime\"] }";
    whole_life(&["loop = { size = \"128 MiB\" }", f2fs], |raised| {
        let facts = &raised.facts()[1].facts;
        assert!(value(facts, "mount options in force").contains("noatime"));
    });
}

#[test]
fn bcachefs() {
    let disks = "loop = { size = \"256 MiB\", count = 2 }";
    let bcachefs = "bcachefs = { replicas = 2, compression = \"lz4\" }";
    whole_life(&[disks, bcachefs], |raised| {
        let facts = &raised.facts()[1].facts;
        assert_eq!(value(facts, "data_replicas"), "2");
    });
}

#[test]
fn arrays() {
    let disks = "loop = { size = \"64 MiB\", count = 4 }";
    for (array, level, degraded) in [
        ("md = { raid = 0 }", "raid0", None),
        ("md = { raid = 1, bitmap = \"none\" }", "raid1", Some("0")),
        ("md = { raid = 1, degraded = true }", "raid1", Some("1")),
        (
            "md = { raid = 5, chunk = \"64 KiB\", assume-clean = false }",
            "raid5",
            Some("0"),
        ),
        ("md = { raid = 6 }", "raid6", Some("0")),
        ("md = { raid = 10, layout = \"f2\" }", "raid10", Some("0")),
    ] {
        whole_life(&[disks, array, "ext4 = {}"], |raised| {
            let facts = &raised.facts()[1].facts;
            assert_eq!(value(facts, "level"), level);
            let found = facts.iter().find(|fact| fact.name == "degraded");
            assert_eq!(found.map(|fact| fact.value.as_str()), degraded);
            assert!(raised.devices()[0].starts_with("md"));
        });
    }
}

#[test]
fn volumes() {
    let disks = "loop = { size = \"128 MiB\", count = 3 }";
    for (volume, kind) in [
        ("lvm = {}", "linear"),
        ("lvm = { snapshot = \"present\" }", "linear"),
        ("lvm = { kind = \"striped\", stripes = 2 }", "striped"),
        ("lvm = { kind = \"thin\", snapshot = \"present\" }", "thin"),
        (
            "lvm = { kind = \"cache\", cache-mode = \"writeback\" }",
            "cache",
        ),
    ] {
        whole_life(&[disks, volume, "ext4 = {}"], |raised| {
            let data = value(&raised.facts()[1].facts, "volume data");
            assert!(data.contains(&format!("segtype {kind}")), "{data}");
            assert!(raised.devices()[0].starts_with("dm-"));
        });
    }
}

/// An array under volumes, and a file system that lies on both.
#[test]
fn a_volume_on_an_array() {
    let disks = "loop = { size = \"128 MiB\", count = 2 }";
    whole_life(
        &[disks, "md = { raid = 1 }", "lvm = {}", "ext3 = {}"],
        |raised| {
            assert!(value(&raised.facts()[3].facts, "Filesystem features").contains("has_journal"));
        },
    );
}

#[test]
fn tmpfs() {
    whole_life(&["tmpfs = { size = \"8 MiB\" }"], |raised| {
        let facts = &raised.facts()[0].facts;
        assert!(value(facts, "mount options in force").contains("size=8192k"));
        assert!(raised.devices().is_empty());
    });
}

#[test]
fn an_existing_directory_needs_no_root() {
    let base = tempfile::tempdir().unwrap();
    std::fs::write(base.path().join("photo"), b"x").unwrap();
    let line = format!("dir = {{ path = \"{}\" }}", base.path().display());
    whole_life(&[&line], |raised| {
        assert!(!value(&raised.facts()[0].facts, "file system").is_empty());
        assert!(
            raised
                .directory()
                .starts_with(base.path().canonicalize().unwrap())
        );
    });
    assert!(base.path().join("photo").exists());
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
}

#[test]
fn a_stack_whose_program_died_is_undone_from_the_journal() {
    let stack = stack(&[
        "loop = { size = \"130 MiB\", count = 2 }",
        "btrfs = { profile = \"raid1\" }",
    ]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("undone from the journal", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let raised = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap();
    std::fs::write(raised.directory().join("data"), b"x").unwrap();
    drop(raised);
    drop(journal);
    assert_ne!(ground.host.list(&ground.scratch).unwrap(), [""; 0]);
    let journal = Journal::open(&ground.journal()).unwrap();
    let report = undo_all(&ground.host, &journal).unwrap();
    assert_eq!(report.failed, []);
    assert_eq!(report.undone.len(), 7);
    ground.assert_nothing_left();
    drop(journal);
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().undone, []);
}

#[test]
fn a_refused_option_is_an_error_and_nothing_is_left() {
    let stack = stack(&[
        "loop = { size = \"320 MiB\" }",
        "xfs = { mount = [\"nobarrier\"] }",
    ]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("refused option", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let error = stack
        .set_up(&site(&ground.host, &journal, &ground.scratch))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("xfs: `mount -t xfs -o nobarrier /dev/loop"),
        "{text}"
    );
    assert_eq!((error.layer, error.left), (Some(1), vec![]));
    assert!(journal.pending().is_empty());
    ground.assert_nothing_left();
}

/// What is busy is not torn away: the error names who holds it, the journal keeps it, and once it
/// is let go everything goes.
#[test]
fn a_busy_stack_is_not_forced_down() {
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("busy stack", &needs) else {
        return;
    };
    let journal = Journal::create(&ground.journal()).unwrap();
    let site = site(&ground.host, &journal, &ground.scratch);
    let raised = stack.set_up(&site).unwrap();
    let held = std::fs::File::create(raised.directory().join("held")).unwrap();
    let error: StackError = raised.tear_down(&site).unwrap_err();
    let me = format!("(process {})", std::process::id());
    assert!(error.to_string().contains(&me), "{error}");
    assert_eq!(journal.pending().len(), 5);
    drop(held);
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    ground.assert_nothing_left();
}

/// A path that is no text, with a blank and a line end, goes through every command and back.
#[test]
fn odd_paths_are_raised_and_undone() {
    use std::os::unix::ffi::OsStrExt;
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let needs: Vec<&dyn Layer> = stack.layers.iter().map(AsRef::as_ref).collect();
    let Some(ground) = ground("odd paths", &needs) else {
        return;
    };
    let odd = std::ffi::OsStr::from_bytes(b"a b\\\xff");
    let scratch = ground.scratch.join(odd);
    let journal = Journal::create(&ground.journal()).unwrap();
    let raised = stack
        .set_up(&site(&ground.host, &journal, &scratch))
        .unwrap();
    drop((raised, journal));
    let journal = Journal::open(&ground.journal()).unwrap();
    assert_eq!(undo_all(&ground.host, &journal).unwrap().failed, []);
    std::fs::remove_dir(&scratch).unwrap();
    ground.assert_nothing_left();
}

#[test]
fn every_kind_of_layer_is_raised_here() {
    // A new layer must be added to the tests above: the list is written twice on purpose.
    let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
    assert_eq!(
        names,
        [
            // Those that need a second machine, or the lab: raised by tests/lab.rs.
            "afp",
            "bare",
            "bcachefs",
            "btrfs",
            "dataset",
            "devices",
            "dir",
            // Those that need a second machine, or the lab: raised by tests/lab.rs.
            "drbd",
            "ext2",
            "ext3",
            "ext4",
            "f2fs",
            "gfs2",
            "lab-disks",
            "loop",
            "lvm",
            "md",
            "nfs",
            "smb",
            "tmpfs",
            "xfs",
            "zpool",
            "zvol"
        ]
    );
    assert_eq!(settings(ALL[0].example).owner, "afp");
}
