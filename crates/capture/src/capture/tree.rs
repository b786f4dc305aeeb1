//! The tree below the recorded directory, as it is before the recording.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use stackrace_base::failure::Failure;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_system::resident;
use stackrace_trace::trace::{Compiler, EntryKind, KeptEntry, ROOT, ResidentRange};

/// Longest gap between two parts in memory that is taken for one of them: the kernel reads as much ahead.
const GAP_MAX: u64 = 64 << 10;

/// Entries of a tree, and which parts of its files are in memory.
type Tree = (Vec<KeptEntry>, Vec<ResidentRange>);

/// Names every entry of the tree; what is gone meanwhile is left out, and other file systems in it are not entered.
///
/// # Errors
/// The directory cannot be read, or there are more names than a trace takes.
pub(super) fn named(directory: &Path, compiler: &mut Compiler) -> Result<Tree, Failure> {
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
    let (mut found, mut resident) = (Vec::new(), Vec::new());
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
            // Its number may be that of another file here: roots of file systems and of subvolumes are often alike.
            let path = match about.dev() == root.dev() {
                true => compiler.entry(parent, name.as_bytes(), about.ino(), is_directory),
                false => compiler.foreign(parent, name.as_bytes()),
            };
            let path = path.ok_or_else(|| {
                Failure::refused(format!(
                    "{} has more names than a trace takes",
                    directory.shown()
                ))
                .next("name a directory further below")
            })?;
            let target = match kind {
                EntryKind::Link => std::fs::read_link(entry.path()).ok(),
                _ => None,
            };
            let target =
                target.and_then(|leads| compiler.target(path, leads.as_os_str().as_bytes()));
            if kind == EntryKind::File {
                in_memory(&entry.path(), (path, about.size()), &mut resident);
            }
            found.push(KeptEntry {
                path,
                kind,
                size: about.size(),
                stored: about.blocks().saturating_mul(512),
                target: target.unwrap_or_default(),
            });
            if is_directory && about.dev() == root.dev() {
                waiting.push((entry.path(), path));
            }
        }
    }
    Ok((found, resident))
}

/// Adds the parts of a file that are in memory.
fn in_memory(file: &Path, (path, size): (u32, u64), found: &mut Vec<ResidentRange>) {
    // Never one that became a pipe meanwhile: opening it would wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(file, flags, Mode::empty());
    // One that cannot be opened counts as not in memory, as one that is gone.
    let parts = opened.and_then(|opened| resident::parts(opened, size));
    let first = found.len();
    for part in parts.unwrap_or_default() {
        match found[first..].last_mut() {
            Some(last) if part.start - (last.offset + last.length) <= GAP_MAX => {
                last.length = part.end - last.offset;
            }
            _ => found.push(ResidentRange {
                path,
                offset: part.start,
                length: part.end - part.start,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_trace::trace::{NameKey, Recorded};

    #[test]
    fn the_tree_says_what_is_in_memory_and_where_links_lead() {
        // Not /tmp, which may be in memory.
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("file", home.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("out")).unwrap();
        let mut compiler = Compiler::new(
            Recorded {
                directories: vec![home.path().as_os_str().as_bytes().to_vec()],
                device: 1,
                subvolumes: false,
                above: Vec::new(),
                began: 0,
                architecture: 0,
            },
            NameKey([1; 32]),
        );
        let (entries, resident) = named(home.path(), &mut compiler).unwrap();
        let [found, link, out] = entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!((link.target, out.target), (found.path, 0));
        let whole = ResidentRange {
            path: found.path,
            offset: 0,
            length: 1 << 20,
        };
        assert_eq!(resident, [whole]);
    }
}
