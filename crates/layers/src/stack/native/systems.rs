//! What each system makes file systems on files with: one table, a manual page for each command.
//!
//! Where a page names several ways, the one is taken that asks nothing and needs no device number
//! chosen beforehand. Each table says which pages its commands were compared with, those of
//! [`super::device`] included; `docs/platforms.md` says what was compared with nothing.

use super::device::OnFile;
use stackrace_machine::host::argv;
use std::ffi::OsString;

/// A system by what `uname -s` says.
pub(super) struct NativeSystem {
    /// The system's word.
    pub(super) name: &'static str,
    /// The name that people use.
    pub(super) called: &'static str,
    /// File systems it can make by itself.
    pub(super) file_systems: &'static [NativeFileSystem],
}

/// A file system that a system makes by itself.
pub(super) struct NativeFileSystem {
    /// The word in a study.
    pub(super) word: &'static str,
    /// Programs that it takes.
    pub(super) tools: &'static [&'static str],
    /// The way it is made.
    pub(super) way: NativeWay,
}

/// The way in which a file system comes onto a file.
pub(super) enum NativeWay {
    /// A device is put on the file, the file system made on it, and mounted.
    Device {
        /// The tool that puts a device on a file.
        on: OnFile,
        /// The command that makes the file system on a device that mount(8) takes.
        make: fn(device: &str) -> Vec<OsString>,
        /// The command that mounts it, up to the device.
        mount: &'static [&'static str],
    },
    /// A pool of ZFS has the file as its only device.
    Pool,
    /// The system makes the file with the file system in it, and mounts it in one step. Which one, in its
    /// own words.
    Image(&'static str),
}

/// Every system, alphabetical by what it is called.
pub(super) const ALL: &[NativeSystem] = &[FREEBSD, ILLUMOS, LINUX, MACOS, NETBSD];

/// Compared with the pages of FreeBSD 14: mdconfig(8) of November 6, 2020, and its source; newfs(8) of
/// January 7, 2021; mount(8) of August 28, 2019. Of 11.3: umount(8) of July 25, 2017.
const FREEBSD: NativeSystem = NativeSystem {
    name: "FreeBSD",
    called: "FreeBSD",
    file_systems: &[
        NativeFileSystem {
            word: "ufs",
            tools: &["mdconfig", "newfs", "mount", "umount"],
            way: NativeWay::Device {
                on: OnFile::Md,
                // newfs(8): -U: with soft updates.
                make: |device| argv(["newfs", "-U", device]),
                // mount(8).
                mount: &["mount", "-t", "ufs"],
            },
        },
        POOL,
    ],
};

/// Compared with the pages of illumos: lofiadm(8) of June 14, 2016; newfs(8) of March 1, 2007; mount(8), which
/// has umount, of September 8, 2015; mount_ufs(8) of June 22, 2009.
const ILLUMOS: NativeSystem = NativeSystem {
    name: "SunOS",
    called: "illumos",
    file_systems: &[
        NativeFileSystem {
            word: "ufs",
            tools: &["lofiadm", "newfs", "mount", "umount"],
            way: NativeWay::Device {
                on: OnFile::Lofi,
                // newfs(8): the raw device. It asks nothing where its input is no terminal. mkfs_ufs(8) says
                // that it is this one's work.
                make: |device| argv(["newfs", &device.replace("/dev/lofi/", "/dev/rlofi/")]),
                // mount_ufs(8), mount(8).
                mount: &["mount", "-F", "ufs"],
            },
        },
        POOL,
    ],
};

/// Run on Debian, but for ZFS.
const LINUX: NativeSystem = NativeSystem {
    name: "Linux",
    called: "Linux",
    file_systems: &[
        linux(
            "ext4",
            &["losetup", "mkfs.ext4", "mount", "umount"],
            |device| {
                // mke2fs(8): -q: quietly.
                argv(["mkfs.ext4", "-q", device])
            },
            &["mount", "-t", "ext4"],
        ),
        linux(
            "xfs",
            &["losetup", "mkfs.xfs", "mount", "umount"],
            |device| {
                // mkfs.xfs(8): -q: quietly.
                argv(["mkfs.xfs", "-q", device])
            },
            &["mount", "-t", "xfs"],
        ),
        linux(
            "btrfs",
            &["losetup", "mkfs.btrfs", "mount", "umount"],
            |device| {
                // mkfs.btrfs(8): -q: quietly.
                argv(["mkfs.btrfs", "-q", device])
            },
            &["mount", "-t", "btrfs"],
        ),
        POOL,
    ],
};

/// hdiutil(1) of macOS 10.9 to 10.14: the page itself could be read at its beginning only. Of `create`, `attach`,
/// `detach` and `info`, its words were read as public wrappers quote them; what `info` prints, as tests of
/// public programs keep it. `docs/platforms.md` says more.
const MACOS: NativeSystem = NativeSystem {
    name: "Darwin",
    called: "macOS",
    file_systems: &[
        NativeFileSystem {
            word: "hfs+",
            tools: &["hdiutil"],
            way: NativeWay::Image("HFS+J"),
        },
        NativeFileSystem {
            word: "apfs",
            tools: &["hdiutil"],
            way: NativeWay::Image("APFS"),
        },
    ],
};

/// Compared with the pages of NetBSD: vndconfig(8) of 9.4, which vnconfig is the older name of; newfs(8) of
/// December 10, 2007, and what 10.0 says of its options; mount(8) of October 2, 2009; mount_ffs(8) and umount(8)
/// of 10.0; vnd(4) of December 18, 2009, and its driver.
const NETBSD: NativeSystem = NativeSystem {
    name: "NetBSD",
    called: "NetBSD",
    file_systems: &[
        NativeFileSystem {
            word: "ffs",
            tools: &["vnconfig", "newfs", "mount", "umount"],
            way: NativeWay::Device {
                on: OnFile::Vnd,
                // newfs(8): the raw device; -O 2: FFSv2; -I: there is no label that says what it is for.
                make: |device| {
                    let raw = device.replace("/dev/vnd", "/dev/rvnd");
                    argv(["newfs", "-I", "-O", "2", &raw])
                },
                // mount_ffs(8), mount(8).
                mount: &["mount", "-t", "ffs"],
            },
        },
        POOL,
    ],
};

/// The same on every system that has it. Compared with the pages: of FreeBSD and Linux those of OpenZFS 2.2,
/// a page for each subcommand; of illumos zpool(8) of September 6, 2025, and zfs(8) of November 3, 2023; of NetBSD
/// zpool(8) of July 26, 2014, and of zfs(8) of May 31, 2016, the synopsis.
const POOL: NativeFileSystem = NativeFileSystem {
    word: "zfs",
    tools: &["zpool", "zfs", "umount"],
    way: NativeWay::Pool,
};

const fn linux(
    word: &'static str,
    tools: &'static [&'static str],
    make: fn(&str) -> Vec<OsString>,
    mount: &'static [&'static str],
) -> NativeFileSystem {
    NativeFileSystem {
        word,
        tools,
        way: NativeWay::Device {
            on: OnFile::Loop,
            make,
            mount,
        },
    }
}

/// The system of a name.
pub(super) fn named(name: &str) -> Option<&'static NativeSystem> {
    ALL.iter().find(|system| system.name == name)
}
