//! What is refused, what is followed, and for whom files are made.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn ground() -> (tempfile::TempDir, OwnDir) {
    let base = tempfile::tempdir().unwrap();
    let dir = OwnDir::open(base.path()).unwrap();
    (base, dir)
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let (_base, dir) = ground();
    for name in ["", ".", "..", "a/b", "../a", "/etc/passwd", "a/", "a/."] {
        assert!(dir.create(name).is_err(), "{name:?}");
        assert!(dir.make_dir(name).is_err(), "{name:?}");
        assert!(dir.remove_file(name).is_err(), "{name:?}");
        assert!(dir.remove_tree(name).is_err(), "{name:?}");
    }
    assert_eq!(dir.names().unwrap(), [""; 0]);
}

#[test]
fn a_link_is_not_followed_and_a_fifo_does_not_block() {
    let (base, dir) = ground();
    let victim = base.path().join("victim");
    std::fs::write(&victim, "x").unwrap();
    symlink(&victim, base.path().join("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        base.path().join("fifo"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    std::fs::create_dir(base.path().join("dir")).unwrap();
    symlink("dir", base.path().join("link-to-dir")).unwrap();
    assert!(matches!(dir.read("link"), Err(OwnError::Link { .. })));
    assert!(matches!(
        dir.append("link", true),
        Err(OwnError::Link { .. })
    ));
    assert!(matches!(dir.dir("link-to-dir"), Err(OwnError::Link { .. })));
    assert!(matches!(dir.read("fifo"), Err(OwnError::NoFile { .. })));
    assert!(matches!(dir.read("dir"), Err(OwnError::NoFile { .. })));
    assert!(dir.read("nothing").is_err_and(|error| error.is_missing()));
    assert_eq!(std::fs::read(victim).unwrap(), b"x");
}

#[test]
fn what_others_can_write_is_not_obeyed() {
    let (base, dir) = ground();
    let file = base.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for (mode, obeyed) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(dir.read_to_obey("file").is_ok(), obeyed, "{mode:o}");
    }
    std::fs::set_permissions(base.path(), PermissionsExt::from_mode(0o770)).unwrap();
    let error = dir.obeyed().unwrap_err();
    assert!(
        matches!(error, OwnError::Writable { mode: 0o770, .. }),
        "{error}"
    );
    assert!(error.next().contains("chmod go-w"));
}

#[test]
fn what_is_made_is_for_the_user_alone() {
    let base = tempfile::tempdir().unwrap();
    let dir = OwnDir::open_or_make(&base.path().join("a/b")).unwrap();
    dir.create("file").unwrap();
    let mode = |path: &str| std::fs::metadata(base.path().join(path)).unwrap().mode() & 0o777;
    assert_eq!(
        [mode("a"), mode("a/b"), mode("a/b/file")],
        [0o700, 0o700, 0o600]
    );
    assert!(dir.create("file").is_err());
}

#[test]
fn links_of_the_user_above_a_directory_are_followed() {
    let base = tempfile::tempdir().unwrap();
    let real = base.path().join("real");
    std::fs::create_dir_all(real.join("store")).unwrap();
    symlink("real/store/..", base.path().join("link")).unwrap();
    let dir = OwnDir::open(&base.path().join("link/store")).unwrap();
    assert_eq!(dir.path(), real.join("store").canonicalize().unwrap());
    let around = base.path().join("link/store/../store");
    assert_eq!(OwnDir::open(&around).unwrap().path(), dir.path());
    symlink("loop", base.path().join("loop")).unwrap();
    let error = OwnDir::open(&base.path().join("loop")).unwrap_err();
    assert!(matches!(error, OwnError::Link { .. }), "{error}");
}

/// The owner of the directory above can rename a link of ours, or of root's, to the name of what lay there.
#[test]
fn below_what_was_made_no_link_is_followed() {
    let base = tempfile::tempdir().unwrap();
    let [named, precious] = ["named", "precious"].map(|name| base.path().join(name));
    std::fs::create_dir_all(named.join(".stackrace-b/in")).unwrap();
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("disk-1"), "x").unwrap();
    // The directory itself, one in it, and one above it, which the user named.
    symlink(&precious, named.join(".stackrace-a")).unwrap();
    symlink(&precious, named.join(".stackrace-b/in/a")).unwrap();
    symlink(&named, base.path().join("link")).unwrap();
    for below in [
        "named/.stackrace-a",
        "named/.stackrace-b/in/a",
        "link/.stackrace-a",
    ] {
        let path = base.path().join(below).join("disk-1");
        let error = OwnDir::around(&path).unwrap_err();
        assert!(matches!(error, OwnError::Link { .. }), "{below}: {error}");
    }
    let (dir, name) = OwnDir::around(&base.path().join("link/.stackrace-b/in/disk-1")).unwrap();
    dir.create(name.to_str().unwrap()).unwrap();
    assert!(named.join(".stackrace-b/in/disk-1").exists());
    assert_eq!(std::fs::read(precious.join("disk-1")).unwrap(), b"x");
}

/// A reader that looks all the time sees one of the two, and no moment without either.
#[test]
fn a_file_that_is_replaced_is_there_at_every_instant() {
    let (base, dir) = ground();
    let (old, new) = (vec![1; 100], vec![2; 100_000]);
    dir.replace("f", &old).unwrap();
    let there = || OwnDir::open(base.path()).and_then(|dir| dir.read_all("f"));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..100 {
                dir.replace("f", &new).unwrap();
                dir.replace("f", &old).unwrap();
            }
        });
        while !writer.is_finished() {
            let found = there().unwrap();
            assert!(found == old || found == new, "{} bytes", found.len());
        }
    });
    assert_eq!(dir.names().unwrap(), ["f"]);
    // What cannot be written leaves what was there.
    dir.make(OsStr::new("d")).unwrap();
    assert!(dir.replace("d", &new).is_err());
    assert_eq!(dir.names().unwrap(), ["d", "f"]);
}
