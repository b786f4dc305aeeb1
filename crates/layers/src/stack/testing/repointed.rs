//! Ids of disks that lead elsewhere a moment later: what was looked at is what is written to.

use super::between::between;
use super::guarded::{Disk, SIZE, disk};
use super::{Ended, settings, site};
use crate::stack::devices::in_directory;
use crate::stack::{Danger, Stack, undo_all};
use stackrace_foundation::foundation::guard;
use stackrace_machine::host::Host;
use stackrace_machine::journal::Journal;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Makes a link lead to a device, at once: at no moment it is not there.
fn point(link: &Path, device: &Path) {
    let fresh = link.with_extension("fresh");
    let _ = std::fs::remove_file(&fresh);
    symlink(device, &fresh).unwrap();
    std::fs::rename(&fresh, link).unwrap();
}

/// A disk that is not to be touched, with an ext4 that carries a file system label.
pub(super) fn precious() -> Result<(Disk, String), String> {
    let disk = disk(&["mkfs.ext4", "mkfs.xfs", "mount"])?;
    disk.run("mkfs.ext4 -q -L photos DEVICE");
    let digest = disk.digest();
    Ok((disk, digest))
}

pub(super) fn scratch_of(disk: &Disk) -> PathBuf {
    let scratch = disk.base.path().canonicalize().unwrap().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    scratch
}

pub(super) fn an_id_that_leads_elsewhere_after_the_check() -> Ended {
    let (other, before) = precious()?;
    for upper in ["ext4 = {}", "xfs = {}"] {
        let disk = disk(&["mkfs.ext4", "mkfs.xfs", "mount"])?;
        let link = disk.identity().link();
        let (moved, to) = (link.clone(), other.device.clone());
        let elsewhere = between(move |_, _| {
            point(&moved, &to);
            Ok(())
        });
        let layers = vec![disk.layer(), elsewhere, super::layer(upper)];
        let stack = Stack::new(layers).unwrap();
        let journal = Journal::nowhere();
        let scratch = scratch_of(&disk);
        let site = site(&disk.host, &journal, &scratch);
        let standing = stack.set_up(&site).unwrap();
        let root = standing.directory().parent().unwrap();
        let source = disk.host.mount_of(root).unwrap().source;
        assert_eq!(
            Path::new(&source),
            disk.device,
            "the disk that was looked at"
        );
        // The journal knows the id, which lasts longer than the kernel's name: it leads elsewhere,
        // and what is there is not ours.
        let error = standing.tear_down(&site).unwrap_err();
        assert!(
            error.to_string().contains("does not bear our mark"),
            "{error}"
        );
        point(&link, &disk.device);
        assert_eq!(undo_all(&disk.host, &journal).unwrap().failed, []);
        guard::blank(&disk.host, &disk.identity()).unwrap();
        assert_eq!(other.digest(), before, "{upper}");
    }
    Ok(())
}

pub(super) fn an_id_that_is_pointed_to_and_fro_during_40_set_ups() -> Ended {
    const SET_UPS: usize = 40;
    let (other, before) = precious()?;
    let disk = disk(&["mkfs.ext4", "mkfs.xfs", "mount"])?;
    let link = disk.identity().link();
    let scratch = scratch_of(&disk);
    let stack = Stack::new(vec![disk.layer(), super::layer("ext4 = {}")]).unwrap();
    let mut stood = 0;
    for _ in 0..SET_UPS {
        let journal = Journal::nowhere();
        let site = site(&disk.host, &journal, &scratch);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    point(&link, &other.device);
                    point(&link, &disk.device);
                }
            });
            match stack.set_up(&site) {
                Ok(standing) => {
                    stood += 1;
                    let _ = standing.tear_down(&site);
                }
                // It led to the other disk when it was looked at.
                Err(error) => assert!(error.to_string().contains("carries ext4"), "{error}"),
            }
            ended.store(true, Ordering::Relaxed);
        });
        point(&link, &disk.device);
        assert_eq!(undo_all(&disk.host, &journal).unwrap().failed, []);
        assert_eq!(other.digest(), before);
    }
    assert!(stood > 0 && stood < SET_UPS, "both happened: {stood}");
    Ok(())
}

pub(super) fn two_ids_of_one_disk() -> Ended {
    let disk = disk(&["wipefs"])?;
    let directory = disk.ids.path();
    symlink(&disk.device, directory.join("same-loop-of-test")).unwrap();
    let line = format!(
        "devices = {{ ids = [\"loop-of-test\", \"same-loop-of-test\"], size = \"{SIZE} B\", model = \"none\" }}"
    );
    let both = in_directory(&settings(&line), directory).unwrap();
    let stack = Stack::new(vec![Box::new(both), super::layer("btrfs = {}")]).unwrap();
    let refused = Stack::named_twice([&stack].into_iter(), &disk.host);
    let name = disk.device.file_name().unwrap().to_string_lossy();
    let words = format!("loop-of-test and same-loop-of-test are the same disk ({name})");
    assert!(
        matches!(&refused[..], [Danger::Refused(error)] if error.to_string() == words),
        "{refused:?}"
    );
    let scratch = scratch_of(&disk);
    let journal = Journal::nowhere();
    let error = stack
        .set_up(&site(&disk.host, &journal, &scratch))
        .unwrap_err();
    assert!(error.to_string().ends_with(&words), "{error}");
    let alone = Stack::new(vec![disk.layer(), super::layer("ext4 = {}")]).unwrap();
    assert_eq!(
        Stack::named_twice([&alone, &alone].into_iter(), &disk.host),
        []
    );
    Ok(())
}

/// While a stack stands, the kernel does not give the name of its disk to another one.
#[expect(
    clippy::disallowed_methods,
    reason = "it waits for programs that are not ours"
)]
pub(super) fn a_disk_is_held_until_its_stack_is_torn_down() -> Ended {
    let disk = disk(&["mkfs.ext4", "mount"])?;
    let scratch = scratch_of(&disk);
    let journal = Journal::nowhere();
    let site = site(&disk.host, &journal, &scratch);
    let stack = Stack::new(vec![disk.layer(), super::layer("ext4 = {}")]).unwrap();
    let standing = stack.set_up(&site).unwrap();
    let point = standing.directory().parent().unwrap().to_path_buf();
    disk.run(&format!("umount {}", point.display()));
    // A loop device goes with its last user: this one has a user until the stack is torn down.
    disk.run("losetup --detach DEVICE");
    let backing = Path::new("/sys/block")
        .join(disk.device.file_name().unwrap())
        .join("loop/backing_file");
    assert!(disk.host.exists(&backing));
    standing.tear_down(&site).unwrap();
    // Other programs open block devices for a moment: udev, or a search for signatures. The last
    // one to close it frees the loop device.
    let patience = Instant::now() + Duration::from_secs(60);
    while disk.host.exists(&backing) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!disk.host.exists(&backing), "the disk is still held");
    let file = disk.base.path().join("file");
    disk.run(&format!("losetup DEVICE {}", file.display()));
    Ok(())
}
