//! Images that are found, refused and counted.

use super::*;
use stackrace_machine::host::local::LocalHost;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

#[test]
fn a_damaged_image_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let cache = ImageCache::in_dir(dir.path());
    let work = cache.dir.join("work");
    std::fs::create_dir_all(work.join("boot")).unwrap();
    for name in ["packages", "boot/busybox"] {
        std::fs::write(work.join(name), "zfsutils-linux 2.1\nlibc6 2.36\n").unwrap();
    }
    let names = ["packages".to_string(), "boot/busybox".to_string()];
    let dir = cache.dir_of(&system::ALL[0]);
    keep(&work, &dir, "6.1".to_string(), "0".to_string(), &names).unwrap();
    let image = find(&cache, &system::ALL[0]).unwrap();
    image.verify().unwrap();
    assert_eq!(image.package("libc6").unwrap(), "2.36");
    let mut other = image.clone();
    other.manifest.parts[1].blake3 = "0".repeat(64);
    assert_ne!(image.content(), other.content(), "one recipe, other files");
    let state = || stock(&cache);
    assert!(matches!(&state()[..], [Stocked::Used(system, _)] if *system == &system::ALL[0]));
    let busybox = image.file("boot/busybox");
    std::fs::write(&busybox, "zfsutils-linux 2.2\nlibc6 2.36\n").unwrap();
    assert!(matches!(image.verify(), Err(LabError::Damaged(path)) if path == busybox));
    assert!(matches!(&state()[..], [Stocked::Damaged(_)]));
    std::fs::write(&busybox, "short").unwrap();
    assert!(matches!(Image::open(&dir), Err(LabError::Damaged(path)) if path == busybox));
    assert!(matches!(&state()[..], [Stocked::Damaged(found)] if *found == dir));
}

#[test]
fn root_uses_no_image_that_another_user_owns_or_can_write() {
    let dir = tempfile::tempdir().unwrap();
    let cache = ImageCache::in_dir(&dir.path().join("cache"));
    made(&cache.dir, &system::ALL[0].image_name(&[]), "2.1");
    let image = find(&cache, &system::ALL[0]).unwrap();
    // For an ordinary user who owns it already, giving it to that user succeeds and changes nothing.
    let strict = rustix::process::geteuid().is_root();
    std::os::unix::fs::chown(&cache.dir, Some(65_534), None).ok();
    std::os::unix::fs::chown(&cache.dir, Some(0), None).ok();
    for path in [
        cache.dir.clone(),
        image.dir.clone(),
        image.file("packages"),
        image.file(MANIFEST),
    ] {
        // Only root can give a file away, and only root is refused what is not root's.
        std::os::unix::fs::chown(&path, Some(65_534), None).ok();
        let found = find(&cache, &system::ALL[0]);
        assert_eq!(
            matches!(found, Err(LabError::NotOwn(_))),
            strict,
            "{}",
            path.display()
        );
        std::os::unix::fs::chown(&path, Some(0), None).ok();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let found = find(&cache, &system::ALL[0]);
        assert_eq!(
            matches!(found, Err(LabError::NotOwn(_))),
            strict,
            "{}",
            path.display()
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    find(&cache, &system::ALL[0]).unwrap();
}

/// Puts something into the cache, of kernel 6.1 and with a version of ZFS.
fn made(cache: &Path, name: &str, zfs: &str) {
    let work = cache.join(".work");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("packages"), format!("zfsutils-linux {zfs}\n")).unwrap();
    let names = ["packages".to_string()];
    let kept = cache.join(name);
    keep(&work, &kept, "6.1".to_string(), "0".to_string(), &names).unwrap();
}

#[test]
fn an_image_whose_shell_cannot_read_the_first_program_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let work = cache.path().join("work");
    std::fs::create_dir_all(work.join("boot")).unwrap();
    let busybox = work.join("boot/busybox");
    // The shell of this machine in its place: what it cannot read either is enough here.
    std::fs::write(&busybox, "#!/bin/sh\nshift\nexec /bin/sh \"$@\"\n").unwrap();
    std::fs::set_permissions(&busybox, std::fs::Permissions::from_mode(0o755)).unwrap();
    let kept = cache.path().join("image");
    let names = ["boot/busybox".to_string()];
    let image = keep(&work, &kept, "6.1".to_string(), "0".to_string(), &names).unwrap();
    let host = LocalHost::new(Arc::new(|_| ()));
    check_init(&host, &image, system::INIT).unwrap();
    let refused = check_init(&host, &image, "no( )(").unwrap_err().to_string();
    assert!(
        refused.contains("cannot read the guest's first program"),
        "{refused}"
    );
}

#[test]
fn what_no_recipe_makes_any_more_is_unneeded() {
    let dir = tempfile::tempdir().unwrap();
    let cache = &ImageCache::in_dir(dir.path());
    let (first, others) = system::ALL.split_first().unwrap();
    let second = &others[0];
    assert!(matches!(find(cache, second), Err(LabError::NoImage(none)) if none == second));
    let name_of = |system: &System| system.image_name(&[]);
    let mut expected: Vec<String> = others.iter().map(name_of).collect();
    for name in ["image-0036df089b3a", "zfs-2.1-6.1", "zfs-2.0-6.1"] {
        made(&cache.dir, name, "2.1");
    }
    for name in &expected {
        made(&cache.dir, name, "2.1");
    }
    expected.push("zfs-2.1-6.1".to_string());
    expected.sort_unstable();
    let image = find(cache, second).unwrap();
    assert!(find_zfs(cache, &image).unwrap().is_some());
    let sorted = || {
        let mut names = [const { Vec::new() }; 3];
        for stocked in stock(cache) {
            let name = stocked.dir().file_name().unwrap();
            let kind = match stocked {
                Stocked::Used(_, _) => 0,
                Stocked::Spare(_) => 1,
                Stocked::Unneeded(_) => 2,
                Stocked::Damaged(dir) => panic!("{}", dir.display()),
            };
            names[kind].push(name.to_string_lossy().into_owned());
        }
        names
    };
    let [used, spare, unneeded] = sorted();
    assert_eq!(used, expected);
    assert_eq!(spare, ["zfs-2.0-6.1"], "the first system may need it");
    assert_eq!(unneeded, ["image-0036df089b3a"]);
    for (zfs, needed) in [("2.0", true), ("2.3", false)] {
        let dir = cache.dir_of(first);
        let _ = std::fs::remove_dir_all(&dir);
        made(&cache.dir, &name_of(first), zfs);
        let [used, spare, unneeded] = sorted();
        assert_eq!(used.contains(&"zfs-2.0-6.1".to_string()), needed);
        assert_eq!(unneeded.len(), if needed { 1 } else { 2 });
        assert!(spare.is_empty());
    }
}
