//! What deleting, copying and scanning a tree must leave alone, and how they stop.

use std::sync::atomic::Ordering;

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
fn what_is_no_file_is_counted_by_scan_and_refused_by_copy() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("from");
    std::fs::create_dir(&from).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
    assert_eq!(scan(&from).unwrap().skipped_special, 1);
    let to = home.path().join("to");
    let made = copied(&from, &to).unwrap();
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
