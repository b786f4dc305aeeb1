//! What each system makes file systems on files with: one table, a manual page for each command.
//!
//! Where a page names several ways, the one is taken that asks nothing and needs no device number
//! chosen beforehand. `docs/platforms.md` says which of these pages were read.

use super::device::OnFile;
use crate::host::argv;
use std::ffi::OsString;

/// A system by what `uname -s` says.
pub(super) struct NativeSystem {
    /// What it says.
    pub(super) name: &'static str,
    /// What people call it.
    pub(super) called: &'static str,
    /// What it can make by itself.
    pub(super) file_systems: &'static [NativeFileSystem],
}

/// A file system that a system makes by itself.
pub(super) struct NativeFileSystem {
    /// The word in a study.
    pub(super) word: &'static str,
    /// Programs that it takes.
    pub(super) tools: &'static [&'static str],
    /// How it is made.
    pub(super) way: NativeWay,
}

/// How a file system comes onto a file.
pub(super) enum NativeWay {
    /// A device is put on the file, the file system made on it, and mounted.
    Device {
        /// What puts a device on a file.
        on: OnFile,
        /// What makes the file system.
        make: fn(&FreshDevice<'_>) -> Vec<OsString>,
        /// The command that mounts it, up to the device.
        mount: &'static [&'static str],
    },
    /// A pool of ZFS has the file as its only device.
    Pool,
    /// The system makes the file with the file system in it, and mounts it in one step. Which one, in its
    /// own words.
    Image(&'static str),
}

/// What a file system is made on.
pub(super) struct FreshDevice<'a> {
    /// As mount(8) is told of it.
    pub(super) device: &'a str,
    /// Its size, bytes.
    pub(super) bytes: u64,
}

/// Every system, alphabetical by what it is called.
pub(super) const ALL: &[NativeSystem] = &[
    NativeSystem {
        name: "FreeBSD",
        called: "FreeBSD",
        file_systems: &[
            NativeFileSystem {
                word: "ufs",
                tools: &["mdconfig", "newfs", "mount", "umount"],
                way: NativeWay::Device {
                    on: OnFile::Md,
                    // newfs(8): -U: with soft updates.
                    make: |made| argv(["newfs", "-U", made.device]),
                    // mount(8).
                    mount: &["mount", "-t", "ufs"],
                },
            },
            POOL,
        ],
    },
    NativeSystem {
        name: "SunOS",
        called: "illumos",
        file_systems: &[
            NativeFileSystem {
                word: "ufs",
                tools: &["lofiadm", "mkfs", "mount", "umount"],
                way: NativeWay::Device {
                    on: OnFile::Lofi,
                    // mkfs_ufs(8): the raw device and its sectors; newfs(8) would ask a question.
                    make: |made| {
                        let raw = made.device.replace("/dev/lofi/", "/dev/rlofi/");
                        let sectors = (made.bytes / 512).to_string();
                        argv(["mkfs", "-F", "ufs", &raw, &sectors])
                    },
                    // mount_ufs(8), mount(8).
                    mount: &["mount", "-F", "ufs"],
                },
            },
            POOL,
        ],
    },
    NativeSystem {
        name: "Linux",
        called: "Linux",
        file_systems: &[
            linux(
                "ext4",
                &["losetup", "mkfs.ext4", "mount", "umount"],
                |made| {
                    // mke2fs(8): -q: quietly.
                    argv(["mkfs.ext4", "-q", made.device])
                },
                &["mount", "-t", "ext4"],
            ),
            linux(
                "xfs",
                &["losetup", "mkfs.xfs", "mount", "umount"],
                |made| {
                    // mkfs.xfs(8): -q: quietly.
                    argv(["mkfs.xfs", "-q", made.device])
                },
                &["mount", "-t", "xfs"],
            ),
            linux(
                "btrfs",
                &["losetup", "mkfs.btrfs", "mount", "umount"],
                |made| {
                    // mkfs.btrfs(8): -q: quietly.
                    argv(["mkfs.btrfs", "-q", made.device])
                },
                &["mount", "-t", "btrfs"],
            ),
            POOL,
        ],
    },
    NativeSystem {
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
    },
    NativeSystem {
        name: "NetBSD",
        called: "NetBSD",
        file_systems: &[
            NativeFileSystem {
                word: "ffs",
                tools: &["vnconfig", "newfs", "mount", "umount"],
                way: NativeWay::Device {
                    on: OnFile::Vnd,
                    // newfs(8): the raw device; -O 2: FFSv2.
                    make: |made| {
                        let raw = made.device.replace("/dev/vnd", "/dev/rvnd");
                        argv(["newfs", "-O", "2", &raw])
                    },
                    // mount_ffs(8), mount(8).
                    mount: &["mount", "-t", "ffs"],
                },
            },
            POOL,
        ],
    },
];

/// zpool(8), zfs(8): the same on every system that has them.
const POOL: NativeFileSystem = NativeFileSystem {
    word: "zfs",
    tools: &["zpool", "zfs", "umount"],
    way: NativeWay::Pool,
};

const fn linux(
    word: &'static str,
    tools: &'static [&'static str],
    make: fn(&FreshDevice<'_>) -> Vec<OsString>,
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
