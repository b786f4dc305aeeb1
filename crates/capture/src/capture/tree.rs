//! The tree below the recorded directory, as it is before the recording.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use stackrace_base::failure::Failure;
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_system::resident;
use stackrace_trace::trace::{Compiler, EntryKind, KeptEntry, ROOT, ResidentRange};

/// Longest gap between two parts in memory that is taken for one of them: the kernel reads as much ahead.
const GAP_MAX: u64 = 64 << 10;

/// Most parts of a file between holes that are asked for.
const PARTS_MAX: u32 = 64 << 10;

/// Entries of a tree, and which parts of its files are in memory.
type Tree = (Vec<KeptEntry>, Vec<ResidentRange>);

/// Names every entry of the tree; what is gone meanwhile is left out, and other file systems in it are not entered.
///
/// # Errors
/// The directory cannot be read, it is not to go on, or there are more names than a trace takes.
pub(super) fn named(
    directory: &Path,
    compiler: &mut Compiler,
    going_on: &dyn Fn() -> Result<(), Failure>,
) -> Result<Tree, Failure> {
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
            // A single directory may have a million.
            going_on()?;
            // It is gone, as in a tree that is in use.
            let Ok(about) = entry.metadata() else {
                continue;
            };
            let kind = kind_of(&about);
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
                stored: stored(&entry.path(), about.size(), about.blocks()),
                target: target.unwrap_or_default(),
            });
            if is_directory && about.dev() == root.dev() {
                waiting.push((entry.path(), path));
            }
        }
    }
    Ok((found, resident))
}

fn kind_of(about: &Metadata) -> EntryKind {
    match about.file_type() {
        kind if kind.is_dir() => EntryKind::Directory,
        kind if kind.is_file() => EntryKind::File,
        kind if kind.is_symlink() => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// Bytes of a file that are no holes. Where it seems to have some it is asked: blocks of compressed files are fewer, too.
fn stored(file: &Path, size: u64, blocks: u64) -> u64 {
    let blocks = blocks.saturating_mul(512);
    if blocks.saturating_add(GAP_MAX) >= size {
        return blocks;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(file, flags, Mode::empty()) else {
        return blocks;
    };
    let (mut at, mut stored) = (0, 0_u64);
    for _ in 0..PARTS_MAX {
        let begins = match rustix::fs::seek(&opened, SeekFrom::Data(at)) {
            Ok(begins) if begins < size => begins,
            // Nothing but a hole is left.
            Ok(_) | Err(Errno::NXIO) => return stored,
            // It does not tell: nothing is taken for a hole.
            Err(_) => return size,
        };
        at = rustix::fs::seek(&opened, SeekFrom::Hole(begins)).unwrap_or(size);
        stored = stored.saturating_add(at.min(size).saturating_sub(begins));
    }
    // Too many parts to ask for each.
    blocks.max(stored)
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
    fn a_file_that_is_stored_in_fewer_blocks_has_no_holes_for_that() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        assert_eq!(stored(&file, 1 << 20, 100), 1 << 20);
        // A hole is one.
        let longer = std::fs::File::options().write(true).open(&file).unwrap();
        longer.set_len(1 << 30).unwrap();
        assert_eq!(stored(&file, 1 << 30, 100), 1 << 20);
    }

    #[test]
    fn a_walk_that_is_not_to_go_on_ends() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("file"), "").unwrap();
        let stopped = || Err(Failure::unable("stopped"));
        let refused = named(home.path(), &mut compiler(home.path()), &stopped).unwrap_err();
        assert!(refused.render().contains("stopped"));
    }

    fn compiler(directory: &Path) -> Compiler {
        let recorded = Recorded {
            directories: vec![directory.as_os_str().as_bytes().to_vec()],
            device: 1,
            subvolumes: false,
            above: Vec::new(),
            began: 0,
            architecture: 0,
        };
        Compiler::new(recorded, NameKey([1; 32]))
    }

    #[test]
    fn the_tree_says_what_is_in_memory_and_where_links_lead() {
        // Not /tmp, which may be in memory.
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, vec![7; 1 << 20]).unwrap();
        std::os::unix::fs::symlink("file", home.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", home.path().join("out")).unwrap();
        let mut compiler = compiler(home.path());
        let (entries, resident) = named(home.path(), &mut compiler, &|| Ok(())).unwrap();
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
