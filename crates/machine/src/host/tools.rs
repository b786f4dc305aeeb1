//! Programs: where they are looked for, and which package holds them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// This program itself, whatever its file is called and became of it.
const OURSELVES: &str = "stackrace";

/// Directories looked through besides `PATH`: an ordinary user's `PATH` often leaves them out.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Debian's package for a program that no layer owns; other distributions use nearly the same names.
pub(super) fn package(tool: &str) -> Option<&'static str> {
    Some(match tool {
        "mount" | "umount" => "mount",
        "wipefs" | "blkid" | "blkdiscard" => "util-linux",
        "ip" | "tc" => "iproute2",
        "modprobe" => "kmod",
        "qemu-system-x86_64" => "qemu-system-x86",
        "qemu-img" => "qemu-utils",
        "mmdebstrap" => "mmdebstrap",
        "mksquashfs" => "squashfs-tools",
        "xz" => "xz-utils",
        _ => return None,
    })
}

/// Directories programs are looked for in, as `PATH` has them.
#[expect(
    clippy::disallowed_methods,
    reason = "the room that starts programs must look where the user's shell would"
)]
pub(super) fn path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A relative directory would mean another one with each working directory, for root too.
    let theirs = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let all = theirs.chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from));
    // A directory that came out of PATH has no colon.
    std::env::join_paths(all).unwrap_or_default()
}

/// Returns true if a program makes file systems.
pub(super) fn formats(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // Some words of these are names of files that they would read.
    name.starts_with("mkfs") || name == "bcachefs"
}

/// Path of a program.
pub(super) fn find(tool: &str) -> Option<PathBuf> {
    if tool == OURSELVES {
        // The program that runs, even where it was replaced or removed since.
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
