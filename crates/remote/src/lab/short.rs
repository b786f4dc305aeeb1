//! A directory under a name short enough for the path of a socket, which may have 107 bytes
//! (`sun_path`, unix(7)), while it is open.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A directory that is held open, so that paths of sockets in it are short.
pub(super) struct Short {
    dir: File,
}

impl Short {
    /// Opens a directory and holds it.
    pub(super) fn of(dir: &Path) -> std::io::Result<Self> {
        File::open(dir).map(|dir| Self { dir })
    }

    /// The name of a file in it, good while this value lives.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.dir.as_raw_fd()))
    }
}
