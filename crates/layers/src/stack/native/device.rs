//! Devices on files, as each system puts them there, finds them again by their file, and takes them away.

use stackrace_base::unit::ShownPath;
use stackrace_foundation::foundation::LayerError;
use stackrace_machine::host::{Host, HostError, Output, argv, argv_at};
use stackrace_machine::journal::{Param, UndoKind, until_free};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The tool that puts a device on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFile {
    /// mdconfig(8) of FreeBSD.
    Md,
    /// lofiadm(8) of illumos.
    Lofi,
    /// losetup(8) of Linux.
    Loop,
    /// vnconfig(8) of NetBSD.
    Vnd,
}

/// Takes away whatever device lies on a file, or unmounts the image that it is.
pub(super) const DETACH: UndoKind = UndoKind::new("native", "detach", &[Param::Path], detach);

/// The devices that a command names, which fails where there is none; `none` knows that failure from others.
fn named(
    host: &dyn Host,
    command: &[OsString],
    none: fn(&Output) -> bool,
) -> Result<Vec<String>, HostError> {
    let said = host.exec(command)?;
    match said.status {
        Some(0) => Ok(said.stdout.split_whitespace().map(str::to_owned).collect()),
        _ if none(&said) => Ok(Vec::new()),
        // What is on the file is not known: it must stay.
        _ => Err(HostError::failed(command, said)),
    }
}

/// Recognises how mdconfig(8) says that no device is on a file: it fails without a word, which only
/// its source tells.
fn says_nothing(said: &Output) -> bool {
    said.stdout.trim().is_empty() && said.stderr.trim().is_empty()
}

/// Recognises how lofiadm(8) says that no device is on a file, which only its source tells.
fn finds_nothing(said: &Output) -> bool {
    said.stderr.contains("could not find device")
}

/// The answer is one line with a name in it.
fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

impl OnFile {
    /// The command that puts a device on a file; `unit` is one that is free, where a number has to be given.
    fn attach(self, file: &Path, unit: &str) -> Vec<OsString> {
        match self {
            // mdconfig(8): -a -t vnode -f FILE prints the name of the new device.
            Self::Md => argv_at(["mdconfig", "-a", "-t", "vnode", "-f"], file),
            // lofiadm(8): -a FILE prints the new device.
            Self::Lofi => argv_at(["lofiadm", "-a"], file),
            // losetup(8).
            Self::Loop => argv_at(["losetup", "--find", "--show"], file),
            // vnconfig(8): -c DISK FILE.
            Self::Vnd => argv_at(["vnconfig", "-c", unit], file),
        }
    }

    /// Puts a device on a file; its path for mount(8).
    pub(super) fn attached(self, host: &dyn Host, file: &Path) -> Result<String, LayerError> {
        let unit = match self {
            Self::Vnd => free_unit(host)?,
            _ => String::new(),
        };
        let said = host.must(&self.attach(file, &unit))?;
        let name = said.stdout.lines().next().unwrap_or_default().trim();
        let device = match self {
            Self::Md => format!("/dev/{name}"),
            // vnd(4): a disk without a label is one file system, whatever the partition: tests of NetBSD's
            // own use the first.
            Self::Vnd => format!("/dev/{unit}a"),
            Self::Lofi | Self::Loop => name.to_owned(),
        };
        // Without a name, the next command would be given another device's.
        match name.is_empty() && self != Self::Vnd {
            true => Err(LayerError::refused(
                format!("the device on {} has no name", file.shown()),
                "",
            )),
            false => Ok(device),
        }
    }

    /// Devices that lie on a file, by the names that [`OnFile::take_away`] takes. By the file: a number
    /// may be another's by now.
    fn on(self, host: &dyn Host, file: &Path) -> Result<Vec<String>, HostError> {
        Ok(match self {
            // Neither finds a file that is gone, and both fail with words of their own then.
            Self::Md | Self::Lofi if !host.exists(file) => Vec::new(),
            // mdconfig(8): -l -f FILE shows the devices on that file, in one line.
            Self::Md => named(host, &argv_at(["mdconfig", "-l", "-f"], file), says_nothing)?,
            // lofiadm(8): FILE alone shows its device.
            Self::Lofi => named(host, &argv_at(["lofiadm"], file), finds_nothing)?,
            // losetup(8).
            Self::Loop => {
                let mut list = argv_at(["losetup", "--associated"], file);
                list.extend(argv(["--noheadings", "--output", "NAME"]));
                let said = host.must(&list)?.stdout;
                said.lines().map(|line| line.trim().to_owned()).collect()
            }
            // vnconfig(8): -l shows the file system that each file lies on and its inode, but not its name.
            Self::Vnd => {
                if !host.exists(file) {
                    return Ok(Vec::new());
                }
                let inode = host.must(&argv_at(["ls", "-i"], file))?.stdout;
                let list = units(host)?;
                let source = host.mount_of(file)?.source;
                let inode = first_word(&inode).unwrap_or_default();
                units_of(&list, inode, &source.to_string_lossy())
            }
        })
    }

    /// The command that takes a device away.
    fn take_away(self, device: &str) -> Vec<OsString> {
        match self {
            // mdconfig(8): -d -u UNIT, with or without the prefix.
            Self::Md => argv(["mdconfig", "-d", "-u", device]),
            // lofiadm(8).
            Self::Lofi => argv(["lofiadm", "-d", device]),
            // losetup(8).
            Self::Loop => argv(["losetup", "--detach", device]),
            // vnconfig(8).
            Self::Vnd => argv(["vnconfig", "-u", device]),
        }
    }
}

/// The list of vnconfig(8): a line for each unit.
fn units(host: &dyn Host) -> Result<String, HostError> {
    let command = argv(["vnconfig", "-l"]);
    let said = host.exec(&command)?;
    match said.status {
        // NetBSD 6 asks for one unit after the last, and ends with 255 behind a whole list.
        Some(0 | 255) if said.stdout.starts_with("vnd") => Ok(said.stdout),
        Some(0) => Ok(said.stdout),
        _ => Err(HostError::failed(&command, said)),
    }
}

/// Units of vnconfig(8) that are configured on a file with an inode on a file system that is mounted from
/// `source`: `vnd0: /usr (/dev/wd0a) inode 1234`.
fn units_of(list: &str, inode: &str, source: &str) -> Vec<String> {
    let lines = list.lines().filter_map(|line| line.split_once(':'));
    let ours = lines.filter(|(_, about)| {
        let mut words = about.split_whitespace().rev();
        let same =
            !inode.is_empty() && words.next() == Some(inode) && words.next() == Some("inode");
        // A file of another file system can have the same inode. Where that is no mounted disk, its name
        // is not in parentheses, and the inode is all there is.
        let lies = words.next().filter(|word| word.starts_with('('));
        same && lies.is_none_or(|word| word == format!("({source})"))
    });
    ours.map(|(unit, _)| unit.trim().to_owned()).collect()
}

/// A unit that vnconfig(8) says is not in use.
fn free_unit(host: &dyn Host) -> Result<String, LayerError> {
    let list = units(host)?;
    let mut lines = list.lines().filter_map(|line| line.split_once(':'));
    let free = lines.find(|(_, about)| about.trim() == "not in use");
    free.map(|(unit, _)| unit.trim().to_owned()).ok_or_else(|| {
        LayerError::refused(
            "every vnd is in use",
            "free one: vnconfig -l, vnconfig -u vndN",
        )
    })
}

/// Devices of hdiutil(1) that lie on an image: the lines behind its `image-path` that begin with `/dev/`.
fn images(list: &str, file: &Path) -> Vec<String> {
    let mut ours = false;
    let mut devices = Vec::new();
    for line in list.lines() {
        if let Some((name, value)) = line.split_once(':')
            && name.trim() == "image-path"
        {
            ours = Path::new(value.trim()) == file;
        }
        // The first device is the whole image; the others are parts of it.
        if ours && let Some(device) = first_word(line).filter(|word| word.starts_with("/dev/")) {
            devices.push(device.to_owned());
            ours = false;
        }
    }
    devices
}

fn detach(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
    let file = Path::new(&of[0]);
    let on = match host.system()?.as_str() {
        "FreeBSD" => OnFile::Md,
        "SunOS" => OnFile::Lofi,
        "Linux" => OnFile::Loop,
        "NetBSD" => OnFile::Vnd,
        _ => {
            // hdiutil(1): info lists what is attached; detach unmounts it, too.
            let list = host.must(&argv(["hdiutil", "info"]))?.stdout;
            let mut devices = images(&list, file).into_iter();
            return devices
                .try_for_each(|device| until_free(host, &argv(["hdiutil", "detach", &device])));
        }
    };
    let devices = on.on(host, file)?;
    devices
        .iter()
        .try_for_each(|device| until_free(host, &on.take_away(device)))
}

/// The command that attaches an image and mounts what is in it (hdiutil(1)).
pub(super) fn attach_image(file: &Path, point: &Path) -> Vec<OsString> {
    // -nobrowse: the Finder leaves it alone. -owners on: a new image is taken for a removable disk, whose
    // owners of files are ignored otherwise.
    let mut command = argv([
        "hdiutil",
        "attach",
        "-nobrowse",
        "-owners",
        "on",
        "-mountpoint",
    ]);
    command.extend([OsStr::new(point).to_owned(), file.into()]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::Filling;
    use stackrace_machine::host::imagined::{Tool, complained};
    use stackrace_machine::host::plan::{Fault, PlanHost};

    /// The file of a device stays where it is not known whether the device is gone.
    #[test]
    fn only_one_failure_means_that_there_is_no_device() {
        let detached = |system: &str, name: &'static str, run| {
            let tool = Tool::new(name, run);
            let host = PlanHost::new(vec![tool], Fault::Never)
                .of_system(system, [Path::new("/fs").to_path_buf()]);
            let file = Path::new("/fs/disk");
            host.create_file(file, 1 << 20, Filling::Allocated).unwrap();
            detach(&host, &[file.into()]).map_err(|e| e.to_string())
        };
        let md = |run| detached("FreeBSD", "mdconfig", run);
        assert_eq!(md(|_, _| complained(255, "")), Ok(()));
        let said = md(|_, _| complained(1, "mdconfig: open(/dev/mdctl): Permission denied"));
        assert!(said.unwrap_err().contains("Permission denied"));
        let lofi = |run| detached("SunOS", "lofiadm", run);
        assert_eq!(
            lofi(|_, _| complained(1, "lofiadm: could not find device for /fs/disk.")),
            Ok(())
        );
        let said = lofi(|_, _| complained(1, "lofiadm: open: /dev/lofictl: Permission denied"));
        assert!(said.unwrap_err().contains("/dev/lofictl"));
    }

    #[test]
    fn a_device_is_found_by_its_file_alone() {
        let list = "vnd0: /usr (/dev/wd0a) inode 1234\nvnd1: /tmp (/dev/wd0e) inode 12345\nvnd2: not in use\n\
                    vnd3: dev 1,2 inode 77\nvnd4: /tmp (/dev/wd0e) inode 1234\n";
        let units = |inode| units_of(list, inode, "/dev/wd0a");
        assert_eq!(units("1234"), ["vnd0"]);
        assert_eq!(units("77"), ["vnd3"]);
        for another in ["34", "12345", ""] {
            assert_eq!(units(another), [""; 0]);
        }
        let list = "================\nimage-path      : /private/tmp/a.dmg\nimage-type : read/write\n/dev/disk4\tGUID_partition_scheme\t\n/dev/disk4s1\tX\t\n/dev/disk6\tEF57347C\t\n/dev/disk6s1\t41504653\t/Volumes/a\n\
                    ================\nimage-path      : /private/tmp/b.dmg\n/dev/disk5\t\t/private/tmp/m\n";
        assert_eq!(
            images(list, Path::new("/private/tmp/b.dmg")),
            ["/dev/disk5"]
        );
        assert_eq!(
            images(list, Path::new("/private/tmp/a.dmg")),
            ["/dev/disk4"]
        );
        assert_eq!(images(list, Path::new("/private/tmp/c.dmg")), [""; 0]);
    }
}
