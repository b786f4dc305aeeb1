//! What all file systems on block devices share: the permission to format, formatting, reading back
//! how they are mounted.

use crate::foundation::error::LayerError;
use crate::foundation::gives::{Device, Gives, Origin, StandingLayer};
use crate::foundation::layer::Layer;
use crate::foundation::setup::{Memory, Setup};
use crate::foundation::{block, guard, options};
use stackrace_base::event::Fact;
use stackrace_base::unit::ShownPath;
use stackrace_machine::host::{Host, MountInfo, argv};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The devices given from below.
///
/// # Errors
/// When there are none; a `Stack` cannot be made so.
pub fn devices(below: Gives) -> Result<Vec<Device>, LayerError> {
    match below {
        Gives::Devices(devices) if !devices.is_empty() => Ok(devices),
        _ => Err(LayerError::refused("there are no devices below", "")),
    }
}

/// The devices given from below, if all of them are ours to format.
///
/// # Errors
/// When one of them is not.
pub fn to_format(host: &dyn Host, below: Gives) -> Result<Vec<Device>, LayerError> {
    let devices = devices(below)?;
    for device in &devices {
        ours_to_format(host, device)?;
    }
    Ok(devices)
}

/// The root of a file system that the stack made.
///
/// # Errors
/// When there is none below; [`not_theirs`] says so earlier.
pub fn own_root(below: Gives) -> Result<PathBuf, LayerError> {
    match below {
        Gives::Mounted(root) => Ok(root),
        _ => Err(LayerError::refused("there is no file system below", "")),
    }
}

/// Refuses a directory of the user's below a layer that works as root by the paths of its files: there
/// others could exchange them.
///
/// # Errors
/// One clause.
pub fn not_theirs(layer: &str, below: &[Box<dyn Layer>]) -> Result<(), String> {
    let mut theirs = below.iter().map(|layer| layer.existing_directory());
    match theirs.any(|directory| directory.is_some()) {
        true => Err(format!(
            "{layer} takes a file system that the stack makes: put it on loop and ext4, and not on dir"
        )),
        false => Ok(()),
    }
}

/// Refuses disks below what leaves nothing of ours on them by which it could be wiped again.
///
/// # Errors
/// One clause.
pub fn no_disks(kind: &str, below: &[Box<dyn Layer>]) -> Result<(), String> {
    match below.iter().any(|layer| !layer.disks().is_empty()) {
        true => Err(format!(
            "{kind} cannot be marked as ours, so it could not be wiped from a disk afterwards: put it on loop or lab-disks"
        )),
        false => Ok(()),
    }
}

/// Makes a file system on devices of ours: `command`, then the devices. Where they outlive the
/// stack, the file system is given a UUID of ours, in `uuid_words`, by which it is wiped again.
///
/// # Errors
/// When one of them is not ours to format, or the tool fails.
pub fn format(
    setup: &mut Setup<'_>,
    command: &[String],
    uuid_words: impl FnOnce(&str) -> Vec<String>,
    devices: &[Device],
) -> Result<(), LayerError> {
    // All are looked at before anything is written to one of them.
    for device in devices {
        ours_to_format(setup.host(), device)?;
    }
    let mut words: Vec<OsString> = command.iter().map(OsString::from).collect();
    // On a loop device the file goes, and the signature with it. A disk stays, and would be taken
    // for another's.
    if setup.is_outlived() {
        let uuid = setup.uuid();
        for device in devices {
            setup.will_carry(device, &uuid)?;
        }
        words.extend(uuid_words(&uuid).into_iter().map(OsString::from));
    }
    words.extend(devices.iter().map(|device| device.path.clone().into()));
    setup.host().must(&words)?;
    for device in devices {
        if let Origin::Disk(disk) = &device.origin {
            // The tool was given a path: if another disk is there by now, this has to be known.
            guard::still_there(setup.host(), disk)?;
        }
    }
    Ok(())
}

/// The one place that decides whether a device may be written over. One of the loop layer must still
/// lie on the very file that layer created for this stack; a disk must be the one the study names and
/// unused; one that was put together for it must bear a name of ours; one of the lab must be
/// the one it is taken for. None may carry a signature.
///
/// # Errors
/// Why it may not.
pub fn ours_to_format(host: &dyn Host, device: &Device) -> Result<(), LayerError> {
    match &device.origin {
        Origin::LoopOn(file) => still_on(host, device, file)?,
        Origin::Disk(disk) => return guard::still_free(host, disk),
        Origin::Replica(name) => {
            let known = host.exec(&argv(["drbdsetup", "show", name]))?;
            // `device minor 0;`, or as it was configured.
            let number = block::name(&device.path).replace("drbd", "");
            let shown = [format!("minor {number};"), format!("/dev/drbd{number};")];
            if !shown.iter().any(|words| known.stdout.contains(words)) {
                return Err(not_ours(device, &format!("it is not the device of {name}")));
            }
        }
        Origin::Made(name) => {
            // Its name was drawn for this stack, and its path is made of that name.
            if !device.path.to_string_lossy().contains(name) || !name.starts_with("stackrace-") {
                return Err(not_ours(device, &format!("{name} is not ours")));
            }
        }
        Origin::Lent { shown, holds } => {
            let found = host.read_text(shown)?;
            if !block::says(&found, holds) {
                let why = format!("it is {} and not {holds}", found.trim());
                return Err(not_ours(device, &why));
            }
        }
        // Nothing can have been there before: that it carries no signature is still looked at.
        Origin::Served => {}
        Origin::Lab(serial) => {
            let shown = Path::new(block::DISKS).join(block::name(&device.path));
            let found = host.read_text(&shown.join("serial"))?;
            if found.trim() != serial {
                let why = format!("it is {} and not {serial}", found.trim());
                return Err(not_ours(device, &why));
            }
        }
    }
    let found = host.must(&argv([
        OsStr::new("wipefs"),
        OsStr::new("--no-act"),
        OsStr::new("--noheadings"),
        OsStr::new("--output"),
        OsStr::new("TYPE"),
        device.path.as_os_str(),
    ]))?;
    match found.stdout.trim() {
        "" => Ok(()),
        signature => Err(not_ours(device, &format!("it holds {signature} already"))),
    }
}

fn not_ours(device: &Device, why: &str) -> LayerError {
    LayerError::refused(
        format!("{} is not formatted: {why}", device.path.shown()),
        "see what it is with: lsblk --fs",
    )
}

fn still_on(host: &dyn Host, device: &Device, file: &Path) -> Result<(), LayerError> {
    let ours = file
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name.as_bytes().starts_with(b".stackrace-"));
    if !ours {
        return Err(not_ours(device, &format!("{} is not ours", file.shown())));
    }
    let backing = Path::new(block::DISKS)
        .join(block::name(&device.path))
        .join("loop/backing_file");
    let backing = host.read_text(&backing)?;
    // Only the line break: a path may end with a blank.
    let backing = backing.trim_end_matches('\n');
    // `/sys` is read as text, so a path that is none is compared as it would be shown.
    if backing == file.to_string_lossy() {
        return Ok(());
    }
    let why = format!("it lies on {backing} and not on {}", file.shown());
    Err(not_ours(device, &why))
}

/// Facts about how a file system is mounted, and about asked options that are not seen.
/// `defaults_too` are options known to be in force besides those in the table of mounts.
///
/// # Errors
/// When it is not mounted there, or as another file system.
pub fn mount_facts(
    host: &dyn Host,
    root: &Path,
    file_system: &str,
    asked: &[String],
    defaults_too: &[String],
) -> Result<Vec<Fact>, LayerError> {
    let mount = mounted(host, root)?;
    // mount(8) may run a helper (mount.TYPE), which mounts what it likes.
    if mount.file_system != file_system {
        return Err(LayerError::refused(
            format!(
                "{} was mounted as {} although {file_system} was asked for",
                root.shown(),
                mount.file_system
            ),
            "",
        ));
    }
    let mut facts = vec![Fact::new("mount options in force", mount.options.join(","))];
    let mut in_force = mount.options;
    in_force.extend_from_slice(defaults_too);
    facts.extend(options::missing(asked, &in_force));
    facts.extend(block::kernel(host));
    Ok(facts)
}

/// Mounts a file system that lost its power; where that is refused, once more after `repair`, unless
/// it is empty.
///
/// # Errors
/// It cannot be mounted.
pub fn mount_again(
    setup: &mut Setup<'_>,
    file_system: &str,
    source: &OsStr,
    options: &[String],
    repair: &[OsString],
) -> Result<PathBuf, LayerError> {
    let path = setup.mount_point()?;
    let mut command = argv(["mount", "-t", file_system]);
    if !options.is_empty() {
        command.extend(argv(["-o".to_string(), options.join(",")]));
    }
    command.extend([source.to_os_string(), path.clone().into_os_string()]);
    match setup.mount_with(command.clone(), &path, Memory::No) {
        Err(_) if !repair.is_empty() => {
            setup.repair(repair)?;
            setup.mount_with(command, &path, Memory::No)?;
        }
        mounted => mounted?,
    }
    Ok(path)
}

/// A file system on these devices, as it came to stand at its root.
pub fn standing(
    host: &dyn Host,
    layer: &str,
    root: PathBuf,
    facts: Vec<Fact>,
    devices: &[Device],
) -> StandingLayer {
    let name = |device: &Device| block::kernel_name(host, &device.path);
    StandingLayer {
        devices: devices.iter().map(name).collect(),
        ..StandingLayer::new(layer, facts, Gives::Mounted(root))
    }
}

/// The mount at a directory.
///
/// # Errors
/// When nothing is.
pub fn mounted(host: &dyn Host, root: &Path) -> Result<MountInfo, LayerError> {
    let mount = host
        .mounts()?
        .into_iter()
        // The last one: a later mount at the same point hides those before.
        .rev()
        .find(|mount| mount.mount_point == root);
    mount.ok_or_else(|| {
        LayerError::refused(
            format!("{} is not mounted although mount succeeded", root.shown()),
            "",
        )
    })
}

/// One line for the plan: kind, then mkfs words and mount options where there are any.
pub fn asked(kind: &str, mkfs: &[String], mount: &[String]) -> String {
    let mut text = kind.to_string();
    if !mkfs.is_empty() {
        text.push_str(&format!(", mkfs {}", mkfs.join(" ")));
    }
    if !mount.is_empty() {
        text.push_str(&format!(", mounted with {}", mount.join(",")));
    }
    text
}
