//! Systems that were added, in a cache of the test's own.

use super::*;

/// A system whose image has a few bytes.
fn add(cache: &Path, name: &str) -> AddedSystem {
    let dir = dir_of(cache, name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(DISK), b"a disk").unwrap();
    let about = AboutAdded {
        name: name.to_owned(),
        blake3: blake3::hash(b"a disk").to_hex().to_string(),
        bytes: 6,
        format: "raw".to_owned(),
        login: "root".to_owned(),
        ssh: vec!["ssh".to_owned()],
        kernel: "FreeBSD".to_owned(),
        described: "FreeBSD 14.1-RELEASE amd64".to_owned(),
    };
    std::fs::write(dir.join(ABOUT), serde_json::to_vec(&about).unwrap()).unwrap();
    AddedSystem { dir, about }
}

#[test]
fn a_system_is_found_by_its_name_and_named_by_its_hash() {
    // Not below /tmp: for root no other user may lead the way elsewhere.
    let dir = tempfile::tempdir_in("/var/lib")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let cache = dir.path();
    assert_eq!(find(cache, "freebsd-14"), Ok(None));
    let system = add(cache, "freebsd-14");
    assert_eq!(find(cache, "freebsd-14"), Ok(Some(system.clone())));
    assert_eq!(names(cache), ["freebsd-14"]);
    assert!(system.image_name().starts_with("freebsd-14-"));
    assert_eq!(system.image_name().len(), "freebsd-14-".len() + HASH_LEN);
    // What is not whole yet is none.
    std::fs::create_dir(cache.join(DIRECTORY).join(".stackrace-1-added")).unwrap();
    assert_eq!(names(cache), ["freebsd-14"]);
}

#[test]
fn an_image_that_changed_is_refused_with_the_command_that_removes_it() {
    let dir = tempfile::tempdir_in("/var/lib")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    let cache = dir.path();
    let system = add(cache, "a");
    assert_eq!(system.verify(), Ok(()));
    std::fs::write(system.disk(), b"b disk").unwrap();
    let damaged = LabError::from(AddedError::Damaged("a".to_owned()));
    assert_eq!(system.verify(), Err(damaged.clone()));
    assert!(
        damaged.next().contains("lab clean --system a"),
        "{}",
        damaged.next()
    );
    // By its length before each run.
    std::fs::write(system.disk(), b"longer than before").unwrap();
    assert_eq!(find(cache, "a"), Err(damaged.clone()));
    std::fs::remove_file(system.dir().join(ABOUT)).unwrap();
    assert_eq!(find(cache, "a"), Err(damaged));
    // One that is damaged is still known by its name, so that it can be removed.
    assert_eq!(names(cache), ["a"]);
}

#[test]
fn a_name_is_a_word_that_no_other_system_has() {
    for name in ["freebsd-14", "omnios-r151050", "netbsd-10.0", "a"] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    for name in [
        "",
        ".",
        "..",
        ".a",
        "-a",
        "1a",
        "a/b",
        "A",
        "a b",
        "a\n",
        "ü",
        &"a".repeat(41),
    ] {
        assert_eq!(check_name(name), Err(AddedError::Name(name.to_owned())));
    }
    assert!(matches!(
        check_name("debian-13"),
        Err(AddedError::OfTheLab(_))
    ));
}
