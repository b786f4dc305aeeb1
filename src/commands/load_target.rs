//! What a load is put on: a directory, or something that exists and is only read.

use stackrace_base::unit::{InWords, ShownPath};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use stackrace_base::failure::Failure;

/// Storage that a load is put on.
#[derive(Debug)]
pub(crate) enum LoadTarget {
    /// A private subdirectory is made in it.
    Directory(PathBuf),
    /// A regular file or block device: only ever read.
    Existing {
        /// Path of the file or device.
        path: PathBuf,
        /// Size of its content, bytes.
        bytes: u64,
    },
}

impl LoadTarget {
    /// Finds out what a path is; nothing is changed by that.
    ///
    /// # Errors
    /// It does not exist, cannot be read, or is nothing that holds data.
    pub(crate) fn look(asked: &Path) -> Result<Self, Failure> {
        let refused = |why: &str, next: &str| {
            Failure::refused(format!("{}: {why}", asked.shown())).next(next.to_owned())
        };
        let existing = "name an existing directory, file or block device";
        let path =
            std::fs::canonicalize(asked).map_err(|error| refused(&error.in_words(), existing))?;
        let kind =
            std::fs::metadata(&path).map_err(|error| refused(&error.in_words(), existing))?;
        if kind.is_dir() {
            return Ok(Self::Directory(path));
        }
        if !kind.is_file() && !kind.file_type().is_block_device() {
            return Err(refused(
                "it is neither a directory, a file nor a block device",
                existing,
            ));
        }
        let readable = match rustix::process::geteuid().is_root() {
            true => {
                "not even root may read it here (a container, or a rule of the system): name another"
            }
            false => "become a user who may read it (root, or the group disk for a device)",
        };
        // The length of a device is where its end is.
        let bytes = File::open(&path)
            .and_then(|mut file| file.seek(SeekFrom::End(0)))
            .map_err(|error| refused(&error.in_words(), readable))?;
        if bytes == 0 {
            return Err(refused("it is empty", "name a file with something in it"));
        }
        Ok(Self::Existing { path, bytes })
    }

    /// Path of the file, directory or device that is loaded.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Existing { path, .. } => path,
        }
    }
}
