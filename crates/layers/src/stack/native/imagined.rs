//! The tools of other systems as a plan imagines them.

use stackrace_machine::host::Output;
use stackrace_machine::host::imagined::{
    ImaginedDevice, Signature, Tool, World, after, complained, last, said, word,
};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Every tool that the layer and its undo call, and that no other layer imagines.
pub(super) const TOOLS: &[Tool] = &[
    Tool::new("mdconfig", mdconfig),
    Tool::new("lofiadm", lofiadm),
    Tool::new("vnconfig", vnconfig),
    Tool::new("hdiutil", hdiutil),
    Tool::new("newfs", make),
    Tool::new("ls", |_, _| said("1234 file\n")),
];

/// Puts an imagined device on a file.
fn attach(world: &mut World, file: &str, device: &str) -> Result<(), Output> {
    let file = PathBuf::from(file);
    if world.file_size(&file).is_none() {
        return Err(complained(1, "No such file or directory"));
    }
    let device_on_it = ImaginedDevice {
        file: Some(file),
        ..ImaginedDevice::default()
    };
    world.attach(device, device_on_it);
    Ok(())
}

/// Names of the devices on a file, a line each.
fn on(world: &World, file: &str) -> String {
    let devices = world.devices_on(Path::new(file)).into_iter();
    devices
        .map(|name| format!("{}\n", name.display()))
        .collect()
}

fn answered(attached: Result<(), Output>, text: &str) -> Output {
    attached.map_or_else(|complaint| complaint, |()| said(text))
}

fn mdconfig(world: &mut World, words: &[OsString]) -> Output {
    match word(words, 1).as_str() {
        // As the program's source has it: without a device, it says nothing and fails.
        "-l" => match on(world, &last(words)) {
            none if none.is_empty() => complained(255, ""),
            devices => said(devices.replace("/dev/", "")),
        },
        "-d" => world.detach(OsStr::new(&format!("/dev/{}", last(words)))),
        _ => answered(attach(world, &last(words), "/dev/md0"), "md0\n"),
    }
}

fn lofiadm(world: &mut World, words: &[OsString]) -> Output {
    match word(words, 1).as_str() {
        "-a" => answered(attach(world, &last(words), "/dev/lofi/1"), "/dev/lofi/1\n"),
        "-d" => world.detach(OsStr::new(&last(words))),
        file => match on(world, file) {
            none if none.is_empty() => complained(1, "could not find device"),
            devices => said(devices),
        },
    }
}

fn vnconfig(world: &mut World, words: &[OsString]) -> Output {
    let device = OsStr::new("/dev/vnd0a");
    match word(words, 1).as_str() {
        // As NetBSD 6 does it: the whole list, and a failure.
        "-l" => Output {
            status: Some(255),
            ..said(match world.is_device(device) {
                true => "vnd0: dev 1,2 inode 1234\nvnd1: not in use\n",
                false => "vnd0: not in use\nvnd1: not in use\n",
            })
        },
        "-u" => world.detach(device),
        _ => answered(attach(world, &last(words), "/dev/vnd0a"), ""),
    }
}

fn hdiutil(world: &mut World, words: &[OsString]) -> Output {
    match word(words, 1).as_str() {
        "create" => {
            world.make_file(Path::new(&last(words)));
            said("")
        }
        "attach" => {
            let file = last(words);
            let point = after(words, "-mountpoint")
                .map(PathBuf::from)
                .unwrap_or_default();
            let attached = attach(world, &file, "/dev/disk4");
            attached.map_or_else(
                |complaint| complaint,
                |()| world.mount(OsStr::new("/dev/disk4"), &point, "hfs", ""),
            )
        }
        "info" => match world.file_on(OsStr::new("/dev/disk4")) {
            Some(file) => said(format!("image-path : {}\n/dev/disk4\tx\n", file.display())),
            None => said(""),
        },
        _ => {
            if let Some(point) = world.mounted_from(OsStr::new("/dev/disk4")) {
                world.unmount(&point);
            }
            world.detach(OsStr::new("/dev/disk4"))
        }
    }
}

/// newfs(8): whatever device is among the words carries a file system then.
fn make(world: &mut World, words: &[OsString]) -> Output {
    // The raw device is the same disk.
    let disk = |word: &OsString| word.to_string_lossy().replace("/dev/r", "/dev/").into();
    let words: Vec<OsString> = words.iter().map(disk).collect();
    let signature = Signature {
        file_system: "native".to_string(),
        ..Signature::default()
    };
    world.sign(&words, &signature);
    said("")
}
