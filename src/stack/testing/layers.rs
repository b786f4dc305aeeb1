//! The real thing: loop devices, as root.

use super::{Ended, ground, site, stack, value, whole_life};
use crate::host::Host;
use crate::journal::Journal;
use crate::stack::StackError;
use crate::stack::undo_all;

pub(super) fn ext2() -> Ended {
    whole_life(&["loop = { size = \"64 MiB\" }", "ext2 = {}"], |raised| {
        let facts = &raised.facts()[1].facts;
        assert!(!value(facts, "Filesystem features").contains("has_journal"));
    })?;
    Ok(())
}

pub(super) fn ext3() -> Ended {
    let ext3 = "ext3 = { mount = [\"data=writeback\"] }";
    whole_life(&["loop = { size = \"64 MiB\" }", ext3], |raised| {
        let facts = &raised.facts()[1].facts;
        assert!(value(facts, "Filesystem features").contains("has_journal"));
        assert!(value(facts, "mount options in force").contains("data=writeback"));
    })?;
    Ok(())
}

pub(super) fn ext4_on_large_sectors_with_options() -> Ended {
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
    })?;
    Ok(())
}

pub(super) fn xfs() -> Ended {
    let xfs = "xfs = { mkfs = [\"-m\", \"reflink=0\"], mount = [\"allocsize=1m\"] }";
    whole_life(
        &["loop = { size = \"320 MiB\", laid-out = \"no\" }", xfs],
        |raised| {
            let facts = &raised.facts()[1].facts;
            assert!(value(facts, "meta-data").contains("reflink=0"));
            assert!(facts.iter().all(|f| f.name != "mount option not as asked"));
        },
    )?;
    Ok(())
}

pub(super) fn btrfs_on_one_two_and_four_disks() -> Ended {
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
        })?;
    }
    Ok(())
}

pub(super) fn f2fs() -> Ended {
    let f2fs = "f2fs = { mount = [\"noatime\"] }";
    whole_life(&["loop = { size = \"128 MiB\" }", f2fs], |raised| {
        let facts = &raised.facts()[1].facts;
        assert!(value(facts, "mount options in force").contains("noatime"));
    })?;
    Ok(())
}

pub(super) fn bcachefs() -> Ended {
    let disks = "loop = { size = \"256 MiB\", count = 2 }";
    let bcachefs = "bcachefs = { replicas = 2, compression = \"lz4\" }";
    whole_life(&[disks, bcachefs], |raised| {
        let facts = &raised.facts()[1].facts;
        assert_eq!(value(facts, "data_replicas"), "2");
    })?;
    Ok(())
}

pub(super) fn arrays() -> Ended {
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
        })?;
    }
    Ok(())
}

pub(super) fn volumes() -> Ended {
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
        })?;
    }
    Ok(())
}

/// An array under volumes, and a file system that lies on both.
pub(super) fn a_volume_on_an_array() -> Ended {
    let disks = "loop = { size = \"128 MiB\", count = 2 }";
    whole_life(
        &[disks, "md = { raid = 1 }", "lvm = {}", "ext3 = {}"],
        |raised| {
            assert!(value(&raised.facts()[3].facts, "Filesystem features").contains("has_journal"));
        },
    )?;
    Ok(())
}

pub(super) fn tmpfs() -> Ended {
    whole_life(&["tmpfs = { size = \"8 MiB\" }"], |raised| {
        let facts = &raised.facts()[0].facts;
        assert!(value(facts, "mount options in force").contains("size=8192k"));
        assert!(raised.devices().is_empty());
    })?;
    Ok(())
}

pub(super) fn an_existing_directory_needs_no_root() -> Ended {
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
    })?;
    assert!(base.path().join("photo").exists());
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    Ok(())
}

pub(super) fn a_stack_whose_program_died_is_undone_from_the_journal() -> Ended {
    let stack = stack(&[
        "loop = { size = \"130 MiB\", count = 2 }",
        "btrfs = { profile = \"raid1\" }",
    ]);
    let ground = ground(&stack)?;
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
    Ok(())
}

pub(super) fn a_refused_option_is_an_error_and_nothing_is_left() -> Ended {
    let stack = stack(&[
        "loop = { size = \"320 MiB\" }",
        "xfs = { mount = [\"nobarrier\"] }",
    ]);
    let ground = ground(&stack)?;
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
    Ok(())
}

/// What is busy is not torn away: the error names who holds it, the journal keeps it, and once it
/// is let go everything goes.
pub(super) fn a_busy_stack_is_not_forced_down() -> Ended {
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let ground = ground(&stack)?;
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
    Ok(())
}

/// A path that is no text, with a blank and a line end, goes through every command and back.
pub(super) fn odd_paths_are_raised_and_undone() -> Ended {
    use std::os::unix::ffi::OsStrExt;
    let stack = stack(&["loop = { size = \"64 MiB\" }", "ext4 = {}"]);
    let ground = ground(&stack)?;
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
    Ok(())
}
