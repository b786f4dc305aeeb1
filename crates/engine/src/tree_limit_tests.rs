//! What deleting, copying and scanning a tree must leave alone, and how they stop.

use std::sync::atomic::Ordering;

use rustix::fs::CWD;

use super::*;

#[test]
fn deleting_removes_the_tree_and_nothing_else() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let (root, outside) = (home.path().join("tree"), home.path().join("outside"));
    built(&root);
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), b"precious").unwrap();
    std::os::unix::fs::symlink(&outside, root.join("to a directory")).unwrap();
    std::os::unix::fs::symlink(outside.join("precious"), root.join("to a file")).unwrap();
    std::fs::write(root.join(OsStr::from_bytes(b"\xff")), b"").unwrap();
    let control = Control::default();
    let gone = delete_tree(&root, AtEnd::Durable, SLICE_NS, &control).unwrap();
    assert_eq!(gone.ended, PhaseEnd::Complete, "{:?}", gone.error);
    assert_eq!(count(&gone, Op::Unlink), (203, 0));
    assert_eq!(count(&gone, Op::Rmdir), (21, 0));
    assert_eq!(count(&gone, Op::Readdir), (21, 0));
    assert_eq!(count(&gone, Op::Fsync), (1, 0));
    assert!(!root.exists());
    assert_eq!(
        std::fs::read(outside.join("precious")).unwrap(),
        b"precious"
    );
    // A root that is itself a link is refused, and so is one without a name.
    std::os::unix::fs::symlink(&outside, &root).unwrap();
    for bad in [root, outside.join(".."), PathBuf::from("/")] {
        delete_tree(&bad, AtEnd::Return, SLICE_NS, &control).unwrap_err();
    }
    assert!(outside.join("precious").exists());
}

#[test]
fn deleting_and_copying_stop_at_mount_points_and_scanning_goes_around_them() {
    let home = tempfile::tempdir().unwrap();
    let (root, outside) = (home.path().join("tree"), home.path().join("outside"));
    let point = root.join("a/point");
    std::fs::create_dir_all(&point).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), b"").unwrap();
    let control = Control::default();
    for bind in [false, true] {
        // A bind mount has the device number of the tree: only the mount itself tells.
        let mounted = if bind {
            TestMount::made(point.clone(), mount_bind(&outside, &point))
        } else {
            TestMount::tmpfs_on(point.clone(), "size=1m")
        };
        let Some(mounted) = mounted else { return };
        std::fs::write(point.join("precious"), b"").unwrap();

        let gone = delete_tree(&root, AtEnd::Return, SLICE_NS, &control).unwrap();
        assert_eq!(gone.ended, PhaseEnd::Failed);
        let error = gone.error.unwrap();
        assert_eq!(error.path, point);
        assert!(error.to_string().contains("mount point"), "{error}");
        assert!(point.join("precious").exists());
        let error = delete_tree(&point, AtEnd::Return, SLICE_NS, &control).unwrap_err();
        assert_eq!(error.errno, Errno::BUSY.raw_os_error());
        assert!(point.join("precious").exists());

        let to = home.path().join(format!("to {bind}"));
        let (manner, at_end) = (CopyStyle::Direct, AtEnd::Return);
        let made = copy_tree(&root, &to, CLASSIC, manner, at_end, SLICE_NS, &control).unwrap();
        assert_eq!(made.error.unwrap().path, point);
        let found = scan(&root).unwrap();
        assert_eq!((found.skipped_mounts, found.entries.len()), (1, 2));
        drop(mounted);
    }
    assert!(outside.join("precious").exists());
}

#[test]
fn what_is_no_file_is_counted_by_scan_and_refused_by_copy() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("from");
    std::fs::create_dir(&from).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
    assert_eq!(scan(&from).unwrap().skipped_special, 1);
    let (to, control) = (home.path().join("to"), Control::default());
    let made = copy_tree(
        &from,
        &to,
        CLASSIC,
        CopyStyle::Direct,
        AtEnd::Return,
        SLICE_NS,
        &control,
    )
    .unwrap();
    assert_eq!(made.error.unwrap().path, from.join("socket"));
}

#[test]
fn stop_ends_a_phase_and_leaves_the_rest_alone() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    built(&root);
    let before = picture(&root);
    let control = Control::default();
    control.stop.store(true, Ordering::Relaxed);
    let gone = delete_tree(&root, AtEnd::Durable, SLICE_NS, &control).unwrap();
    assert_eq!(gone.ended, PhaseEnd::Stopped);
    assert!(picture(&root) == before);
    let to = home.path().join("to");
    let made = copy_file(
        Path::new("/etc/passwd"),
        &to,
        CLASSIC,
        AtEnd::Return,
        SLICE_NS,
        &control,
    );
    assert_eq!(made.unwrap().ended, PhaseEnd::Stopped);
}

#[test]
fn a_missing_tree_is_named() {
    let missing = Path::new("/nowhere/at/all");
    let home = tempfile::tempdir().unwrap();
    let control = Control::default();
    let (manner, at_end) = (CopyStyle::Direct, AtEnd::Return);
    let to = home.path().join("to");
    for error in [
        scan(missing).unwrap_err(),
        delete_tree(missing, at_end, SLICE_NS, &control).unwrap_err(),
        copy_tree(missing, &to, CLASSIC, manner, at_end, SLICE_NS, &control).unwrap_err(),
        copy_file(missing, &to, CLASSIC, at_end, SLICE_NS, &control).unwrap_err(),
        build(&[], missing, &Content::Zero.into(), 0, &control).unwrap_err(),
    ] {
        assert!(
            error
                .to_string()
                .contains("/nowhere/at/all failed: No such file"),
            "{error}"
        );
    }
    let to = home.path().join("missing/to");
    let error = copy_tree(
        home.path(),
        &to,
        CLASSIC,
        manner,
        at_end,
        SLICE_NS,
        &control,
    )
    .unwrap_err();
    assert_eq!(error.path, home.path().join("missing"));
}

#[test]
fn a_tree_too_deep_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let deep: PathBuf = (0..DEPTH_MAX + 2).map(|_| "d").collect();
    std::fs::create_dir_all(home.path().join(deep)).unwrap();
    let error = scan(home.path()).unwrap_err();
    assert!(
        error.to_string().contains("more than 256 directories deep"),
        "{error}"
    );
}

/// Against the real one: same files, modes, owners, times, links.
#[test]
#[expect(clippy::disallowed_methods, reason = "the tool to be compared with")]
fn the_manner_of_rsync_leaves_what_rsync_leaves() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let (from, ours) = (home.path().join("from"), home.path().join("ours"));
    let mut entries = built(&from);
    entries.push(TreeEntry {
        path: PathBuf::new(),
        kind: EntryKind::Directory,
        mode: 0,
    });
    // rsync leaves the time of a directory or link that it made in the same second.
    let old = rustix::fs::Timespec {
        tv_sec: 1_000_000_000,
        tv_nsec: 1,
    };
    let times = rustix::fs::Timestamps {
        last_access: old,
        last_modification: old,
    };
    for entry in &entries {
        let path = from.join(&entry.path);
        let itself = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(CWD, &path, &times, itself).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        let somebody = Some(12_345);
        std::os::unix::fs::chown(&from, somebody, somebody).unwrap();
        for entry in std::fs::read_dir(&from).unwrap() {
            std::os::unix::fs::lchown(entry.unwrap().path(), somebody, None).unwrap();
        }
    }
    let owners = |root: &Path| -> Vec<_> {
        let paths = picture(root).into_keys();
        paths
            .map(|path| root.join(path).symlink_metadata().unwrap())
            .map(|about| (about.uid(), about.gid()))
            .collect()
    };
    let (manner, control) = (CopyStyle::Renamed, Control::default());
    let method = CopyMethod::Classic {
        buffer_bytes: RSYNC_BUFFER_BYTES,
    };
    let at_end = AtEnd::Return;
    let made = copy_tree(&from, &ours, method, manner, at_end, SLICE_NS, &control).unwrap();
    assert_eq!(made.ended, PhaseEnd::Complete, "{:?}", made.error);
    assert!(picture(&ours) == picture(&from) && owners(&ours) == owners(&from));
    let theirs = home.path().join("theirs");
    let source = from.join("");
    let rsync = std::process::Command::new("rsync")
        .arg("-a")
        .args([&source, &theirs])
        .status();
    match rsync {
        Ok(status) => {
            assert!(status.success());
            let theirs_is = picture(&theirs);
            for (path, what) in picture(&ours) {
                assert!(theirs_is.get(&path) == Some(&what), "{}", path.display());
            }
            assert_eq!(owners(&ours), owners(&theirs));
        }
        Err(error) => eprintln!("skipped: rsync cannot be run: {error}"),
    }
}

#[test]
fn a_file_is_read_to_its_end_and_each_call_is_counted() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = home.path().join("file");
    std::fs::write(&path, vec![3; 300_001]).unwrap();
    let control = Control::default();
    for (direct, block) in [
        (false, 65_536),
        (true, 65_536),
        (false, 300_001),
        (false, 7),
    ] {
        let read = read_file(&path, block, direct, None, SLICE_NS, &control).unwrap();
        assert_eq!(
            (read.ended, read.short),
            (PhaseEnd::Complete, 0),
            "{:?}",
            read.error
        );
        let calls = 300_001_u64.div_ceil(block.into()) + 1;
        assert_eq!(count(&read, Op::Read), (calls, 300_001));
    }
    let part = read_file(&path, 1000, false, Some(2500), SLICE_NS, &control).unwrap();
    assert_eq!(count(&part, Op::Read), (3, 3000), "whole blocks");
    let refused = |path: &Path, block, direct| {
        read_file(path, block, direct, None, SLICE_NS, &control)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&path, 0, false).contains("empty"));
    assert!(refused(&home.path().join("none"), 512, false).contains("No such file"));
    let failed = read_file(home.path(), 512, false, None, SLICE_NS, &control).unwrap();
    assert_eq!(failed.error.unwrap().errno, Errno::ISDIR.raw_os_error());
    control.stop.store(true, Ordering::Relaxed);
    let stopped = read_file(&path, 512, false, None, SLICE_NS, &control).unwrap();
    assert_eq!(
        (stopped.ended, count(&stopped, Op::Read)),
        (PhaseEnd::Stopped, (0, 0))
    );
}
