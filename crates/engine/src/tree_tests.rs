//! Trees on real file systems: what was asked for is there, what was not is left alone.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;

use super::entry::check;
use super::*;
use crate::calls::{source, write_content};
use crate::control::Control;
use crate::files::AtEnd;
use crate::fixtures::{CLASSIC, SLICE_NS, built, count, picture, shape};
use crate::outcome::{PhaseEnd, PhaseOutcome};
use crate::spec::Content;

#[path = "tree_limit_tests.rs"]
mod limits;

/// Copies as `cp -a` does, without waiting for the disk.
fn copied(from: &Path, to: &Path) -> Result<PhaseOutcome, OpError> {
    let (style, at_end) = (CopyStyle::Direct, AtEnd::Return);
    copy_tree(
        from,
        to,
        CLASSIC,
        style,
        at_end,
        SLICE_NS,
        &Control::default(),
    )
}

#[test]
fn the_same_seed_invents_the_same_tree_within_its_limits() {
    let entries = shape().entries();
    assert_eq!(entries, shape().entries());
    assert_ne!(entries, TreeShape { seed: 6, ..shape() }.entries());
    let of = |wanted: fn(&EntryKind) -> bool| entries.iter().filter(|e| wanted(&e.kind)).count();
    assert_eq!(of(|kind| *kind == EntryKind::Directory), 20);
    assert_eq!(of(|kind| matches!(kind, EntryKind::File { .. })), 180);
    assert_eq!(of(|kind| matches!(kind, EntryKind::Symlink { .. })), 20);
    let depth = |entry: &TreeEntry| entry.path.components().count();
    let directories = entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Directory);
    assert_eq!(directories.map(depth).max(), Some(4));
    assert_eq!(
        check(&entries, Path::new("/")).map_err(|error| error.to_string()),
        Ok(())
    );
}

#[test]
fn half_of_the_invented_files_are_below_the_median_and_none_above_the_maximum() {
    let mut sizes: Vec<u64> = Vec::new();
    for entry in (TreeShape {
        files: 20_000,
        symlink_share: 0.0,
        ..shape()
    })
    .entries()
    {
        if let EntryKind::File { bytes } = entry.kind {
            sizes.push(bytes);
        }
    }
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    // The standard error of the median is sigma * 1.2533 / sqrt(20,000) = 1.3 %.
    assert!((2800..3200).contains(&median), "{median}");
    assert_eq!(sizes.last(), Some(&400_000));
}

#[test]
fn names_grow_where_a_directory_has_used_up_the_short_ones() {
    let shape = TreeShape {
        directories: 0,
        name_bytes_max: 1,
        files: 500,
        ..shape()
    };
    let names: HashSet<PathBuf> = shape
        .entries()
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    assert_eq!(names.len(), 500);
}

#[test]
fn a_built_tree_is_scanned_as_it_was_described() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("tree");
    let entries = built(&root);
    let found = scan(&root).unwrap();
    assert_eq!(found.entries, entries);
    assert_eq!((found.skipped_special, found.skipped_mounts), (0, 0));
    let links = entries
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::Symlink { .. }));
    for link in links {
        assert!(
            root.join(&link.path).metadata().unwrap().is_file(),
            "links lead to files"
        );
    }
}

#[test]
fn a_list_that_leaves_its_root_is_refused_before_anything_is_made() {
    let home = tempfile::tempdir().unwrap();
    let file = |path: &str| TreeEntry {
        path: path.into(),
        kind: EntryKind::File { bytes: 1 },
        mode: 0o644,
    };
    let link = EntryKind::Symlink {
        target: home.path().into(),
    };
    let link = TreeEntry {
        path: "a".into(),
        kind: link,
        mode: 0o777,
    };
    let root = home.path().join("tree");
    for bad in [
        vec![file("../x")],
        vec![file("/x")],
        vec![file("missing/x")],
        vec![file("")],
        vec![link, file("a/x")],
    ] {
        let error = build(&bad, &root, &Content::Zero.into(), 0, &Control::default()).unwrap_err();
        assert_eq!(error.errno, Errno::INVAL.raw_os_error());
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_copied_tree_is_identical_by_any_method_and_manner() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let from = home.path().join("from");
    let entries = built(&from);
    // Times that no copy made just now could have, on links and directories too.
    let odd = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    for entry in entries
        .iter()
        .rev()
        .filter(|entry| !matches!(entry.kind, EntryKind::Symlink { .. }))
    {
        std::fs::File::open(from.join(&entry.path))
            .unwrap()
            .set_modified(odd)
            .unwrap();
    }
    std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o2751)).unwrap();
    let name = OsStr::from_bytes(b"not utf-8 \xff\xfe");
    std::fs::write(from.join(name), b"content").unwrap();
    std::fs::write(from.join("n".repeat(255)), b"a name that leaves no room").unwrap();
    std::fs::set_permissions(from.join(name), std::fs::Permissions::from_mode(0o4501)).unwrap();
    let original = picture(&from);
    assert_eq!(original.len(), 223);
    let total = total_bytes(&entries) + 7 + 26;

    let small = CopyMethod::Classic { buffer_bytes: 1000 };
    for (method, manner) in [
        (CLASSIC, CopyStyle::Direct),
        (small, CopyStyle::Renamed),
        (CopyMethod::InKernel, CopyStyle::Renamed),
    ] {
        let to = home.path().join("to");
        let control = Control::default();
        let made = copy_tree(
            &from,
            &to,
            method,
            manner,
            AtEnd::Durable,
            SLICE_NS,
            &control,
        )
        .unwrap();
        assert_eq!(
            made.ended,
            PhaseEnd::Complete,
            "{method:?} {:?}",
            made.error
        );
        assert!(picture(&to) == original, "{method:?} {manner:?}");
        assert_eq!(count(&made, Op::Copy), (202, total));
        assert_eq!(count(&made, Op::Mkdir), (21, 0));
        assert_eq!(count(&made, Op::Readdir), (21, 0));
        assert_eq!(count(&made, Op::Fsync), (1, 0));
        let renamed = if manner == CopyStyle::Renamed { 182 } else { 0 };
        assert_eq!(count(&made, Op::Rename), (renamed, 0));
        delete_tree(&to, AtEnd::Return, SLICE_NS, &control).unwrap();
    }
}

#[test]
fn a_copied_file_is_identical_and_each_call_is_counted() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let from = home.path().join("from");
    let mut filling = source(Content::Random, 1, Path::new("x")).unwrap();
    let fd = OwnedFd::from(std::fs::File::create(&from).unwrap());
    let bytes = (20 << 20) + 5;
    let write = |part: &[u8]| rustix::io::write(&fd, part);
    write_content(write, 0, bytes, &mut filling, &mut 0).unwrap();
    let control = Control::default();
    for method in [CLASSIC, CopyMethod::InKernel] {
        let to = home.path().join("to");
        let made = copy_file(&from, &to, method, AtEnd::Durable, SLICE_NS, &control).unwrap();
        assert_eq!(made.ended, PhaseEnd::Complete, "{:?}", made.error);
        assert_eq!(count(&made, Op::Fsync), (1, 0));
        if method == CLASSIC {
            assert_eq!(
                count(&made, Op::Read),
                (162, bytes),
                "the last one finds the end"
            );
            assert_eq!(count(&made, Op::Write), (161, bytes));
            assert!(made.engine_why.contains("131072"), "{}", made.engine_why);
        } else {
            assert_eq!(count(&made, Op::Copy), (3, bytes));
            assert!(
                made.engine_why.contains("copy_file_range"),
                "{}",
                made.engine_why
            );
        }
        assert!(std::fs::read(&from).unwrap() == std::fs::read(&to).unwrap());
        std::fs::remove_file(to).unwrap();
    }
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("from");
    std::fs::create_dir(&from).unwrap();
    let to = from.join("to");
    let made = copied(&from, &to).unwrap();
    let error = made.error.unwrap();
    assert!(error.to_string().contains("into itself"), "{error}");
    assert_eq!(count_below(&to), 0);
}

fn count_below(path: &Path) -> usize {
    std::fs::read_dir(path).unwrap().count()
}
