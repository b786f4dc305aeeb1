//! The tree below the recorded directory, as it is before the recording.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use stackrace_base::failure::Failure;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_trace::trace::{Compiler, EntryKind, KeptEntry, ROOT};

/// Names every entry of the tree; what is gone meanwhile is left out, and other file systems in it are not entered.
///
/// # Errors
/// The directory cannot be read, or there are more names than a trace takes.
pub(super) fn named(directory: &Path, compiler: &mut Compiler) -> Result<Vec<KeptEntry>, Failure> {
    let unread = |error: std::io::Error| {
        Failure::unable(format!(
            "could not read {}: {error}",
            directory.shown(),
            error = error.in_words()
        ))
    };
    let root = std::fs::symlink_metadata(directory).map_err(unread)?;
    std::fs::read_dir(directory).map_err(unread)?;
    compiler.root(root.ino());
    let mut found = Vec::new();
    let mut waiting: Vec<(PathBuf, u32)> = vec![(directory.to_owned(), ROOT)];
    while let Some((path, parent)) = waiting.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        // The order of a directory differs from one file system to the other.
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            // It is gone, as in a tree that is in use.
            let Ok(about) = entry.metadata() else {
                continue;
            };
            let kind = match about.file_type() {
                kind if kind.is_dir() => EntryKind::Directory,
                kind if kind.is_file() => EntryKind::File,
                kind if kind.is_symlink() => EntryKind::Link,
                _ => EntryKind::Other,
            };
            let is_directory = kind == EntryKind::Directory;
            let name = entry.file_name();
            let path = compiler.entry(parent, name.as_bytes(), about.ino(), is_directory);
            let path = path.ok_or_else(|| {
                Failure::refused(format!(
                    "{} has more names than a trace takes",
                    directory.shown()
                ))
                .next("name a directory further below")
            })?;
            found.push(KeptEntry {
                path,
                kind,
                size: about.size(),
                stored: about.blocks().saturating_mul(512),
            });
            if is_directory && about.dev() == root.dev() {
                waiting.push((entry.path(), path));
            }
        }
    }
    Ok(found)
}
