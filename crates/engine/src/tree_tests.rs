//! Trees on real file systems: what was asked for is there, what was not is left alone.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;

use super::entry::check;
use super::*;
use crate::calls::{source, write_content};
use crate::control::Control;
use crate::files::AtEnd;
use crate::outcome::{PhaseEnd, PhaseOutcome};
use crate::spec::Content;

#[path = "tree_limit_tests.rs"]
mod limits;

const SLICE_NS: u64 = 100_000_000;
const CLASSIC: CopyMethod = CopyMethod::Classic {
    buffer_bytes: COPY_BUFFER_BYTES,
};

/// Something mounted on a directory of its own, unmounted in the end.
pub(crate) struct TestMount {
    path: PathBuf,
    /// Empty where the directory belongs to the test.
    _home: Option<tempfile::TempDir>,
}

impl TestMount {
    /// A file system in memory, or `None` (said on the terminal) without the right to mount.
    pub(crate) fn tmpfs(options: &str) -> Option<TestMount> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_path_buf();
        let mut mount = TestMount::tmpfs_on(path, options)?;
        mount._home = Some(home);
        Some(mount)
    }

    fn tmpfs_on(path: PathBuf, options: &str) -> Option<TestMount> {
        let options = std::ffi::CString::new(options).unwrap();
        let done = mount(
            "stackrace-test",
            &path,
            "tmpfs",
            MountFlags::empty(),
            options.as_c_str(),
        );
        TestMount::made(path, done)
    }

    fn made(path: PathBuf, done: Result<(), Errno>) -> Option<TestMount> {
        if done == Err(Errno::PERM) {
            // Past the test runner, which keeps the output of tests that pass to itself.
            std::io::stderr()
                .write_all(b"SKIPPED: mounting needs root\n")
                .unwrap();
            return None;
        }
        done.unwrap();
        Some(TestMount { path, _home: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TestMount {
    fn drop(&mut self) {
        unmount(&self.path, UnmountFlags::DETACH).unwrap();
    }
}

fn shape() -> TreeShape {
    TreeShape {
        directories: 20,
        depth_max: 4,
        files: 200,
        size: SizeDistribution::LogNormal {
            median_bytes: 3000,
            sigma: 1.5,
            max_bytes: 400_000,
        },
        symlink_share: 0.1,
        name_bytes_min: 1,
        name_bytes_max: 12,
        seed: 5,
    }
}

fn built(root: &Path) -> Vec<TreeEntry> {
    let entries = shape().entries();
    let ended = build(
        &entries,
        root,
        &Content::Random.into(),
        5,
        &Control::default(),
    )
    .unwrap();
    assert_eq!(ended, PhaseEnd::Complete);
    entries
}

fn count(outcome: &PhaseOutcome, op: Op) -> (u64, u64) {
    outcome
        .ops
        .iter()
        .find(|kind| kind.op == op)
        .map_or((0, 0), |kind| (kind.count, kind.bytes))
}

/// Everything below a directory by the standard library alone: type, mode, time, content.
fn picture(root: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let about = path.symlink_metadata().unwrap();
        let content = if about.is_symlink() {
            path.read_link().unwrap().as_os_str().as_bytes().to_vec()
        } else if about.is_dir() {
            waiting.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            Vec::new()
        } else {
            std::fs::read(&path).unwrap()
        };
        let relative = path.strip_prefix(root).unwrap().to_path_buf();
        found.insert(
            relative,
            (about.mode(), about.mtime(), about.mtime_nsec(), content),
        );
    }
    found
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
fn a_refused_method_is_an_error_and_no_fallback() {
    let Some(mount) = TestMount::tmpfs("size=8m") else {
        return;
    };
    let (from, to) = (mount.path().join("from"), mount.path().join("to"));
    std::fs::write(&from, vec![1; 100_000]).unwrap();
    let control = Control::default();
    let at_end = AtEnd::Return;
    let made = copy_file(&from, &to, CopyMethod::Reflink, at_end, SLICE_NS, &control).unwrap();
    assert_eq!(made.ended, PhaseEnd::Failed);
    assert_eq!(made.error.unwrap().errno, Errno::OPNOTSUPP.raw_os_error());
    assert_eq!(
        to.metadata().unwrap().len(),
        0,
        "nothing was copied behind our back"
    );
    let again = copy_file(&from, &to, CLASSIC, at_end, SLICE_NS, &control).unwrap_err();
    assert_eq!((again.path, again.errno), (to, Errno::EXIST.raw_os_error()));
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
fn a_copy_into_a_full_file_system_keeps_what_was_measured() {
    let Some(mount) = TestMount::tmpfs("size=4m") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("from");
    std::fs::write(&from, vec![1; 6 << 20]).unwrap();
    let (to, control) = (mount.path().join("to"), Control::default());
    let made = copy_file(&from, &to, CLASSIC, AtEnd::Return, SLICE_NS, &control).unwrap();
    assert_eq!(made.ended, PhaseEnd::Failed);
    let error = made.error.as_ref().unwrap();
    assert_eq!(
        (&error.path, error.errno),
        (&to, Errno::NOSPC.raw_os_error())
    );
    let (_, bytes) = count(&made, Op::Write);
    assert_eq!(to.metadata().unwrap().len(), bytes);
    assert_eq!(error.offset, Some(bytes));
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("from");
    std::fs::create_dir(&from).unwrap();
    let (to, control) = (from.join("to"), Control::default());
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
    let error = made.error.unwrap();
    assert!(error.to_string().contains("into itself"), "{error}");
    assert_eq!(count_below(&to), 0);
}

fn count_below(path: &Path) -> usize {
    std::fs::read_dir(path).unwrap().count()
}
