//! How a file system stores data: holes, reserved and compressed extents (`FS_IOC_FIEMAP`).

use std::path::Path;

use stackrace_engine::extents;

use stackrace_base::event::StoredBytes;

/// Bytes stored of the files below a directory, `files_max` of them at most; `None` if the file
/// system does not tell.
pub fn stored_below(directory: &Path, files_max: usize) -> Option<StoredBytes> {
    extents::of_tree(directory, files_max).ok().map(recorded)
}

/// Bytes stored of one file; `None` if the file system does not tell.
pub fn stored_file(file: &Path) -> Option<StoredBytes> {
    extents::of_file(file).ok().map(recorded)
}

fn recorded(stored: extents::Stored) -> StoredBytes {
    StoredBytes {
        bytes: stored.bytes,
        hole_bytes: stored.hole_bytes,
        unwritten_bytes: stored.unwritten_bytes,
        encoded_bytes: stored.encoded_bytes,
    }
}
