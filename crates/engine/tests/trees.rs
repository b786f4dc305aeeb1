//! Trees on storage and beside tools that not every machine has.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

#[path = "fixtures/trees.rs"]
mod fixtures;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, UNIX_EPOCH};

use fixtures::{CLASSIC, SLICE_NS, built, count, counts, extract, picture, plain, set};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use stackrace_engine::files::{AtEnd, FileSet};
use stackrace_engine::tree::{
    CopyMethod, CopyStyle, EntryKind, RECORD_BYTES, RSYNC_BUFFER_BYTES, TreeEntry, build,
    copy_file, copy_tree, delete_tree, profile, scan,
};
use stackrace_engine::{Control, Op, PhaseEnd};
use stackrace_test_needs as needs;

/// Something mounted on a directory of its own, unmounted in the end.
struct Mounted {
    path: PathBuf,
    /// Empty where the directory belongs to the test.
    _home: Option<tempfile::TempDir>,
}

impl Mounted {
    /// A file system in memory. Skips the test without the right to mount.
    fn tmpfs(options: &str) -> Mounted {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_path_buf();
        let mut mount = Mounted::tmpfs_on(path, options);
        mount._home = Some(home);
        mount
    }

    fn tmpfs_on(path: PathBuf, options: &str) -> Mounted {
        let options = std::ffi::CString::new(options).unwrap();
        let done = mount(
            "stackrace-test",
            &path,
            "tmpfs",
            MountFlags::empty(),
            options.as_c_str(),
        );
        Mounted::made(path, done)
    }

    fn made(path: PathBuf, done: Result<(), Errno>) -> Mounted {
        if done == Err(Errno::PERM) {
            needs::skip("needs the right to mount");
        }
        done.unwrap();
        Mounted { path, _home: None }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.path, UnmountFlags::DETACH).unwrap();
    }
}

/// Everything an archive of files can hold, on a real file system.
fn original(root: &Path) {
    let (entries, fill) = profile::by_name("source-code").unwrap().tree(0.005, 1);
    let ended = build(&entries, root, &fill, 1, &Control::default()).unwrap();
    assert_eq!(ended, PhaseEnd::Complete);
    fs::write(root.join("empty"), b"").unwrap();
    fs::write(root.join("record"), vec![7; RECORD_BYTES]).unwrap();
    fs::write(
        root.join("more than a record"),
        vec![8; 3 * RECORD_BYTES + 1],
    )
    .unwrap();
    fs::write(root.join(OsStr::from_bytes(b"not utf-8 \xff")), b"content").unwrap();
    fs::hard_link(root.join("record"), root.join("second name")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("../../nowhere", root.join("upwards")).unwrap();
    let deep = root
        .join("d".repeat(90))
        .join("e".repeat(90))
        .join("f".repeat(90));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("g".repeat(200)), b"a long name").unwrap();
    symlink("h".repeat(150), deep.join("a long target")).unwrap();
    fs::create_dir(root.join("not to be written to")).unwrap();
    fs::write(root.join("not to be written to/file"), b"x").unwrap();
    let mode = |name, mode| {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("record", 0o4711);
    // Without root a file that may not be read can be neither archived nor compared.
    mode("empty", if needs::is_root() { 0o000 } else { 0o400 });
    mode("not to be written to", 0o2550);
    for (number, path) in (0..).zip(picture(root).into_keys().rev()) {
        let path = root.join(path);
        if !path.is_symlink() && path.file_name() != Some(OsStr::new("empty")) {
            let time = UNIX_EPOCH + Duration::new(1_000_000_000 + number, 123_456_789);
            fs::File::open(path).unwrap().set_modified(time).unwrap();
        }
    }
}

/// GNU tar does what it is told. Skips the test where there is none.
#[expect(clippy::disallowed_methods, reason = "the tool to be compared with")]
fn gnu_tar(args: &[&OsStr]) {
    let status = Command::new(needs::tool("tar"))
        .args(args)
        .status()
        .unwrap();
    assert!(status.success(), "tar {args:?}");
}

fn what_is_unpacked_is_what_tar_unpacks() {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let (from, archive) = (home.path().join("from"), home.path().join("a.tar"));
    original(&from);
    for format in ["--format=gnu", "--format=posix"] {
        let create = [
            OsStr::new(format),
            "-cf".as_ref(),
            archive.as_os_str(),
            "-C".as_ref(),
        ];
        gnu_tar(&[&create[..], &[from.as_os_str(), ".".as_ref()]].concat());
        let (theirs, ours) = (home.path().join("theirs"), home.path().join("ours"));
        fs::create_dir(&theirs).unwrap();
        gnu_tar(&[
            "-xpf".as_ref(),
            archive.as_os_str(),
            "-C".as_ref(),
            theirs.as_os_str(),
        ]);
        let outcome = extract(&archive, &ours);
        assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
        let (theirs_is, ours_is) = (picture(&theirs), picture(&ours));
        for (path, what) in &theirs_is {
            // Of a symbolic link tar keeps the time as we do.
            assert!(
                ours_is.get(path) == Some(what),
                "{format} {}",
                path.display()
            );
        }
        assert_eq!(ours_is.len(), theirs_is.len());
        let of = |kind: u32| {
            theirs_is
                .values()
                .filter(|p| p.0 & 0o170_000 == kind)
                .count() as u64
        };
        let bytes: u64 = theirs_is
            .iter()
            .filter(|(path, p)| p.0 & 0o170_000 == 0o100_000 && **path == p.6)
            .map(|(_, p)| p.5.len() as u64)
            .sum();
        assert_eq!(count(&outcome, Op::Link), (1, 0));
        assert_eq!(
            count(&outcome, Op::Mkdir),
            (of(0o040_000) - 1, 0),
            "the root was there"
        );
        assert_eq!(
            count(&outcome, Op::Create),
            (of(0o100_000) - 1 + of(0o120_000), bytes)
        );
        for unpacked in [theirs, ours] {
            // Only root may empty a directory that is not writable.
            let locked = unpacked.join("not to be written to");
            fs::set_permissions(locked, fs::Permissions::from_mode(0o755)).unwrap();
            fs::remove_dir_all(unpacked).unwrap();
        }
    }
}

/// Against the real one: same files, modes, owners, times, links.
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
        let another = Some(12_345);
        std::os::unix::fs::chown(&from, another, another).unwrap();
        for entry in fs::read_dir(&from).unwrap() {
            std::os::unix::fs::lchown(entry.unwrap().path(), another, None).unwrap();
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
    let rsync = Command::new(needs::tool("rsync"))
        .arg("-a")
        .args([&source, &theirs])
        .status()
        .unwrap();
    assert!(rsync.success());
    let theirs_is = picture(&theirs);
    for (path, what) in picture(&ours) {
        assert!(theirs_is.get(&path) == Some(&what), "{}", path.display());
    }
    assert_eq!(owners(&ours), owners(&theirs));
}

fn a_refused_method_is_an_error_and_no_fallback() {
    let mount = Mounted::tmpfs("size=8m");
    let (from, to) = (mount.path().join("from"), mount.path().join("to"));
    fs::write(&from, vec![1; 100_000]).unwrap();
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

fn a_copy_into_a_full_file_system_keeps_what_was_measured() {
    let mount = Mounted::tmpfs("size=4m");
    let home = tempfile::tempdir().unwrap();
    let from = home.path().join("from");
    fs::write(&from, vec![1; 6 << 20]).unwrap();
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

fn deleting_and_copying_stop_at_mount_points_and_scanning_goes_around_them() {
    let home = tempfile::tempdir().unwrap();
    let (root, outside) = (home.path().join("tree"), home.path().join("outside"));
    let point = root.join("a/point");
    fs::create_dir_all(&point).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), b"").unwrap();
    let control = Control::default();
    for bind in [false, true] {
        // A bind mount has the device number of the tree: only the mount itself tells.
        let mounted = if bind {
            Mounted::made(point.clone(), mount_bind(&outside, &point))
        } else {
            Mounted::tmpfs_on(point.clone(), "size=1m")
        };
        fs::write(point.join("precious"), b"").unwrap();

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

fn a_full_file_system_fails_the_phase_and_keeps_what_was_measured() {
    let mount = Mounted::tmpfs("size=1m,nr_inodes=10k");
    let set = FileSet {
        size_min: 10_000,
        size_max: 10_000,
        ..set(mount.path())
    };
    set.prepare().unwrap();
    let made = set.create(plain(&Control::default())).unwrap();
    assert_eq!(made.ended, PhaseEnd::Failed);
    let errno = made.error.as_ref().unwrap().errno;
    assert_eq!(errno, Errno::NOSPC.raw_os_error());
    let (_, count, bytes) = counts(&made)[0];
    // 1 MiB holds 85 files of three pages each; each of four threads may lose one to the rush.
    assert!((80..=85).contains(&count), "{count}");
    assert_eq!(bytes, count * 10_000);
    assert_eq!(made.ops[0].latency.len(), count);
}

fn a_file_system_without_room_for_names_fails_the_phase() {
    let mount = Mounted::tmpfs("size=1m,nr_inodes=40");
    let control = Control::default();
    let set = FileSet {
        directories: 60,
        threads: 1,
        size_max: 0,
        ..set(mount.path())
    };
    let outcome = set.mkdir(plain(&control)).unwrap();
    let counts = counts(&outcome);
    let error = outcome.error.unwrap();
    // The root is one of the forty.
    assert_eq!(error.path, mount.path().join("d000039"));
    assert_eq!(error.errno, Errno::NOSPC.raw_os_error());
    assert_eq!(counts, [(Op::Mkdir, 39, 0)]);
}

fn main() -> ExitCode {
    needs::run(vec![needs::group(
        "trees",
        needs::tests![
            a_copy_into_a_full_file_system_keeps_what_was_measured,
            a_file_system_without_room_for_names_fails_the_phase,
            a_full_file_system_fails_the_phase_and_keeps_what_was_measured,
            a_refused_method_is_an_error_and_no_fallback,
            deleting_and_copying_stop_at_mount_points_and_scanning_goes_around_them,
            the_manner_of_rsync_leaves_what_rsync_leaves,
            what_is_unpacked_is_what_tar_unpacks,
        ],
    )])
}
