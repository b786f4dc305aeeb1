//! What others do after a disk was looked at, and before it is formatted or while it is.

use super::disk_users::{self, Loop, run};
use super::guarded::{Disk, disk};
use super::repointed::{precious, scratch_of};
use super::{Ended, site};
use crate::stack::{Layer, Stack, undo_all};
use stackrace_foundation::foundation::{
    Device, Gives, GivesKind, LayerError, LayerKind, Origin, Setup, StandingLayer, Takes,
    filesystem, guard,
};
use stackrace_machine::host::{Host, Needs};
use stackrace_machine::journal::Journal;
use std::any::Any;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Action between two layers; it sees what is handed on.
type Act = dyn Fn(&mut Setup<'_>, &Gives) -> Result<(), LayerError> + Send + Sync;

/// A layer that does something, and hands on what it is given.
struct Between(Box<Act>);

/// A layer that does this, and hands on what it is given.
pub(super) fn between(
    act: impl Fn(&mut Setup<'_>, &Gives) -> Result<(), LayerError> + Send + Sync + 'static,
) -> Box<dyn Layer> {
    Box::new(Between(Box::new(act)))
}

const BETWEEN: LayerKind = LayerKind {
    name: "between",
    takes: Takes::Devices { min: 1, max: 1 },
    gives: GivesKind::Devices,
    ..LayerKind::EMPTY
};

impl Layer for Between {
    fn of_kind(&self) -> &'static LayerKind {
        &BETWEEN
    }

    fn describe_asked(&self) -> String {
        String::new()
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn set_up(&self, setup: &mut Setup<'_>, below: Gives) -> Result<StandingLayer, LayerError> {
        (self.0)(setup, &below)?;
        Ok(StandingLayer::new(self.kind(), Vec::new(), below))
    }
}

/// Each of these was not there when the disk was looked at.
pub(super) fn what_others_do_between_check_and_format() -> Ended {
    type Use = fn(&Disk) -> Box<dyn Any>;
    let uses: [(&str, Use); 5] = [
        (" is mounted at ", disk_users::mounted),
        ("lies on it, from byte 1048576", |disk| {
            Box::new(Loop::on(disk, &disk.device, 1 << 20))
        }),
        ("has it open", |disk| {
            Box::new(disk_users::opened(&disk.device, "<>"))
        }),
        ("with exclusive right", disk_users::held),
        ("carries ext4", |disk| {
            disk.run("mkfs.ext4 -q DEVICE");
            Box::new(())
        }),
    ];
    for (words, make) in uses {
        let disk = disk(&["mkfs.ext4", "mount", "losetup"])?;
        let checked = guard::clear(&disk.host, &disk.identity(), false).unwrap();
        let device = Device {
            path: checked.device.node.clone(),
            origin: Origin::Disk(checked),
        };
        filesystem::ours_to_format(&disk.host, &device).unwrap();
        let user = make(&disk);
        let before = disk.digest();
        let error = filesystem::ours_to_format(&disk.host, &device).unwrap_err();
        let error = error.to_string();
        // A process that another test has just begun has copies of our open files for a moment, and
        // open files are looked at before exclusive use.
        let held = words == "with exclusive right" && error.contains("has it open");
        assert!(error.contains(words) || held, "{words}: {error}");
        assert_eq!(disk.digest(), before, "{words}");
        drop(user);
    }
    Ok(())
}

/// The same in a whole stack: the disk is put to use while its stack is set up.
pub(super) fn a_disk_that_changes_before_its_stack_stands() -> Ended {
    for upper in ["ext4 = {}", "xfs = {}"] {
        let disk = disk(&["mkfs.ext4", "mkfs.xfs", "mount"])?;
        let words = ["mkfs.ext4", "-q", "-L", "photos"].map(String::from);
        let formats = between(move |setup, below| {
            let device = only(below);
            let command = words.iter().map(Into::into);
            setup
                .host()
                .must(&command.chain([device.path.into()]).collect::<Vec<_>>())?;
            Ok(())
        });
        let stack = Stack::new(vec![disk.layer(), formats, super::layer(upper)]).unwrap();
        let journal = Journal::nowhere();
        let error = stack
            .set_up(&site(&disk.host, &journal, &scratch_of(&disk)))
            .unwrap_err();
        assert!(error.to_string().contains("carries ext4"), "{error}");
        let found = guard::inspect(&disk.host, &disk.identity()).unwrap();
        assert!(found.carries[0].contains("photos"), "{:?}", found.carries);
        assert_eq!(undo_all(&disk.host, &journal).unwrap().failed, []);
    }
    Ok(())
}

/// Permission to wipe is given for what was there, not for what comes while it is wiped.
pub(super) fn a_disk_that_is_opened_while_it_is_wiped() -> Ended {
    let disk = disk(&["mkfs.ext4"])?;
    disk.run("mkfs.ext4 -q DEVICE");
    let file = std::fs::File::open(disk.base.path().join("file")).unwrap();
    let mut opener = disk_users::Process::waiting(&disk.device);
    let wiped = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut magic = [0; 2];
            // Where ext4 has its magic: the first thing that is wiped.
            while file.read_exact_at(&mut magic, 1080).is_ok() && magic != [0; 2] {
                std::thread::yield_now();
            }
            opener.goes_on();
        });
        guard::clear(&disk.host, &disk.identity(), true)
    });
    let error = wiped.unwrap_err();
    assert!(error.to_string().contains("has it open"), "{error}");
    Ok(())
}

/// A device that another program has taken exclusively is not marked as left by us.
pub(super) fn what_is_in_use_is_not_given_back() -> Ended {
    let disk = disk(&["mkfs.ext4", "mount"])?;
    let fixed = disk.host.fix_device(&disk.device).unwrap();
    let user = disk_users::mounted(&disk);
    let before = disk.digest();
    let error = disk.host.leave_device(&fixed).unwrap_err();
    assert!(error.to_string().contains("exclusive right"), "{error}");
    assert_eq!(disk.digest(), before);
    drop(user);
    Ok(())
}

fn only(below: &Gives) -> Device {
    let Gives::Devices(devices) = below else {
        panic!("no devices: {below:?}");
    };
    devices[0].clone()
}

/// The path of one loop device leads to another one, until this is dropped.
struct Covered(PathBuf);

impl Covered {
    fn by(path: &Path, other: &Path) -> Self {
        run(&["mount", "--bind", text(other), text(path)]);
        Self(path.to_path_buf())
    }
}

impl Drop for Covered {
    fn drop(&mut self) {
        run(&["umount", text(&self.0)]);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The kernel's path of the disk leads to one of others: before the check, before it is formatted,
/// and while it is.
pub(super) fn a_path_that_leads_to_another_disk_meanwhile() -> Ended {
    let (other, before) = precious()?;
    let disk = disk(&["mkfs.ext4", "mount", "mknod"])?;
    let checked = guard::clear(&disk.host, &disk.identity(), false).unwrap();
    // The number alone is right.
    let second = disk_users::another_path(&disk);
    let covered = Covered::by(&disk.device, &other.device);
    let error = disk.host.fix_device(&second).unwrap_err();
    assert!(error.to_string().contains("kernel's number"), "{error}");
    let device = Device {
        path: checked.device.node.clone(),
        origin: Origin::Disk(checked.clone()),
    };
    let error = filesystem::ours_to_format(&disk.host, &device).unwrap_err();
    assert!(error.to_string().contains("another disk now"), "{error}");
    drop(covered);
    // The same path and numbers, and yet another disk: a medium that was changed.
    let mut changed = checked;
    let name = Path::new("/sys/block").join(changed.device.node.file_name().unwrap());
    if disk.host.exists(&name.join("diskseq")) {
        let number = changed.device.number.as_mut().unwrap();
        number.sequence = Some(number.sequence.unwrap() - 1);
        let error = guard::still_there(&disk.host, &changed).unwrap_err();
        assert!(error.to_string().contains("another disk now"), "{error}");
    }
    // While the tool works: it is told, and nothing is built on it.
    let to = text(&other.device).to_owned();
    let covers = between(move |setup, below| {
        let device = only(below);
        let line = format!("mount --bind {to} \"$0\"");
        let command = ["sh", "-c", &line].map(String::from);
        let formatted = filesystem::format(
            setup,
            &command,
            |_| Vec::new(),
            std::slice::from_ref(&device),
        );
        run(&["umount", text(&device.path)]);
        formatted
    });
    let stack = Stack::new(vec![disk.layer(), covers, super::layer("ext4 = {}")]).unwrap();
    let journal = Journal::nowhere();
    let site = site(&disk.host, &journal, &scratch_of(&disk));
    let error = stack.set_up(&site).unwrap_err();
    assert!(error.to_string().contains("another disk now"), "{error}");
    assert_eq!(undo_all(&disk.host, &journal).unwrap().failed, []);
    assert_eq!(other.digest(), before);
    Ok(())
}
