//! Programs: where they are looked for, and which package holds them.

use std::ffi::OsString;
use std::path::PathBuf;

/// This program itself, whatever its file is called and became of it.
const OURSELVES: &str = "stackrace";

/// Directories looked through besides `PATH`: an ordinary user's `PATH` often leaves them out.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Debian's package for a program; other distributions use the same or nearly the same names.
pub(super) fn package(tool: &str) -> Option<&'static str> {
    Some(match tool {
        "mkfs.ext2" | "mkfs.ext3" | "mkfs.ext4" | "dumpe2fs" => "e2fsprogs",
        "mkfs.xfs" | "xfs_info" => "xfsprogs",
        "mkfs.btrfs" | "btrfs" => "btrfs-progs",
        "mount" | "umount" | "losetup" => "mount",
        "wipefs" | "blkid" | "blkdiscard" => "util-linux",
        "mdadm" => "mdadm",
        "pvcreate" | "vgcreate" | "lvcreate" | "lvconvert" | "lvs" | "vgs" | "vgremove" => "lvm2",
        "thin_check" | "cache_check" => "thin-provisioning-tools",
        "zpool" | "zfs" | "zdb" => "zfsutils-linux",
        "mkfs.f2fs" | "dump.f2fs" => "f2fs-tools",
        "bcachefs" => "bcachefs-tools",
        "drbdadm" | "drbdsetup" | "drbdmeta" => "drbd-utils",
        "mkfs.gfs2" => "gfs2-utils",
        "corosync" | "corosync-quorumtool" => "corosync",
        "dlm_controld" | "dlm_tool" => "dlm-controld",
        "exportfs" | "rpc.nfsd" | "rpc.mountd" => "nfs-kernel-server",
        "mount.nfs" => "nfs-common",
        "rpcbind" => "rpcbind",
        "smbd" | "testparm" => "samba",
        "mount.cifs" => "cifs-utils",
        "netatalk" => "netatalk",
        "ip" | "tc" => "iproute2",
        "modprobe" => "kmod",
        "qemu-system-x86_64" => "qemu-system-x86",
        "mmdebstrap" => "mmdebstrap",
        "mksquashfs" => "squashfs-tools",
        "xz" => "xz-utils",
        _ => return None,
    })
}

/// The lab's system that has a program which not all of them have.
pub(super) fn lab_system(tool: &str) -> Option<&'static str> {
    // Debian 12 came without it.
    (tool == "netatalk").then_some("debian-13")
}

/// Directories programs are looked for in, as `PATH` has them.
#[expect(
    clippy::disallowed_methods,
    reason = "the room that starts programs must look where the user's shell would"
)]
pub(super) fn path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let theirs = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let all = theirs.chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from));
    // A directory that came out of PATH has no colon.
    std::env::join_paths(all).unwrap_or_default()
}

/// Where a program is.
pub(super) fn find(tool: &str) -> Option<PathBuf> {
    if tool == OURSELVES {
        return Some(PathBuf::from("/proc/self/exe"));
    }
    std::env::split_paths(&path())
        .map(|directory| directory.join(tool))
        .find(|file| {
            use std::os::unix::fs::PermissionsExt;
            file.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}
