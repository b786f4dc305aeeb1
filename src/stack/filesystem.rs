//! What all file systems on block devices share: the permission to format, formatting, reading back
//! how they are mounted.

use super::{Device, Gives, LayerError, Origin, block, options};
use crate::event::Fact;
use crate::host::{Host, argv};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The devices given from below.
///
/// # Errors
/// When there are none; [`super::Stack::new`] does not let that happen.
pub(super) fn devices(below: Gives) -> Result<Vec<Device>, LayerError> {
    match below {
        Gives::Devices(devices) if !devices.is_empty() => Ok(devices),
        _ => Err(LayerError::refused("there are no devices below", "")),
    }
}

/// Makes a file system on devices of ours: `command`, then the devices.
///
/// # Errors
/// When one of them is not ours to format, or the tool fails.
pub(super) fn format(
    host: &dyn Host,
    command: &[String],
    devices: &[Device],
) -> Result<(), LayerError> {
    for device in devices {
        ours_to_format(host, device)?;
    }
    let mut words: Vec<OsString> = command.iter().map(OsString::from).collect();
    words.extend(devices.iter().map(|device| device.path.clone().into()));
    host.must(&words)?;
    Ok(())
}

/// The one place that decides whether a device may be written over: it must come from the loop layer
/// of this raise and still lie on the very file that layer created, or be the disk of the lab it is
/// taken for; and carry no signature.
///
/// # Errors
/// Why it may not.
pub(super) fn ours_to_format(host: &dyn Host, device: &Device) -> Result<(), LayerError> {
    let not_ours = |why: String| {
        LayerError::refused(
            format!("{} is not formatted: {why}", device.path.display()),
            "see what it is with: lsblk --fs",
        )
    };
    match &device.origin {
        Origin::LoopOn(file) => still_on(host, &device.path, file)?.map_err(not_ours)?,
        Origin::Made(name) => {
            let known = host.exec(&argv(["drbdsetup", "show", name]))?;
            // `device minor 0;`, or as it was configured.
            let number = block::name(&device.path).replace("drbd", "");
            let shown = [format!("minor {number};"), format!("/dev/drbd{number};")];
            if !shown.iter().any(|words| known.stdout.contains(words)) {
                return Err(not_ours(format!("it is not the device of {name}")));
            }
        }
        Origin::Lab(serial) => {
            let shown = Path::new("/sys/block").join(block::name(&device.path));
            let found = host.read_text(&shown.join("serial"))?;
            if found.trim() != serial {
                return Err(not_ours(format!("it is {} and not {serial}", found.trim())));
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
        signature => Err(not_ours(format!("it holds {signature} already"))),
    }
}

/// Whether a loop device lies on a file that is ours; else why not.
fn still_on(host: &dyn Host, device: &Path, file: &Path) -> Result<Result<(), String>, LayerError> {
    let ours = file
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name.as_bytes().starts_with(b".stackrace-"));
    if !ours {
        return Ok(Err(format!("{} is not ours", file.display())));
    }
    let backing = Path::new("/sys/block")
        .join(block::name(device))
        .join("loop/backing_file");
    let backing = host.read_text(&backing)?;
    let backing = backing.trim_end_matches('\n');
    // `/sys` is read as text, so a path that is none is compared as it would be shown.
    if backing == file.to_string_lossy() {
        return Ok(Ok(()));
    }
    Ok(Err(format!(
        "it lies on {backing} and not on {}",
        file.display()
    )))
}

/// How a file system is mounted, and which asked options are not seen. `defaults_too` are options
/// known to be in force besides those in the table of mounts.
///
/// # Errors
/// When it is not mounted there, or as another file system.
pub(super) fn mount_facts(
    host: &dyn Host,
    root: &Path,
    file_system: &str,
    asked: &[String],
    defaults_too: &[String],
) -> Result<Vec<Fact>, LayerError> {
    let mount = host
        .mounts()?
        .into_iter()
        .rev()
        .find(|mount| mount.mount_point == root);
    let Some(mount) = mount else {
        return Err(LayerError::refused(
            format!("{} is not mounted although mount succeeded", root.display()),
            "",
        ));
    };
    if mount.file_system != file_system {
        return Err(LayerError::refused(
            format!(
                "{} was mounted as {} although {file_system} was asked",
                root.display(),
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

/// One line for the plan: kind, then mkfs words and mount options where there are any.
pub(super) fn asked(kind: &str, mkfs: &[String], mount: &[String]) -> String {
    let mut text = kind.to_string();
    if !mkfs.is_empty() {
        text.push_str(&format!(", mkfs {}", mkfs.join(" ")));
    }
    if !mount.is_empty() {
        text.push_str(&format!(", mounted with {}", mount.join(",")));
    }
    text
}
