//! Making a tree from a list of its entries.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, mkdirat, openat, symlinkat};
use rustix::io::Errno;

use super::entry::{EntryKind, TreeEntry, check};
use crate::calls::{close, source, write_content};
use crate::content::FileContent;
use crate::control::Control;
use crate::outcome::{Op, OpError, PhaseEnd};
use crate::spec::Content;
use crate::worker_pool::fault;
use stackrace_system::draw::derive;
use stackrace_system::permissions;

/// The seeds of what a tree's files are filled with.
const FILL: u64 = 0x6669_6c6c_0000_0000;

/// The content of the files of a tree: one for all, or one for each kind of file.
#[derive(Debug, Clone, PartialEq)]
pub struct Fill {
    pub(super) contents: Vec<Content>,
    /// Index of the content, by position of the entry; the first for those beyond.
    pub(super) which: Vec<u8>,
}

impl From<Content> for Fill {
    fn from(content: Content) -> Fill {
        Fill {
            contents: vec![content],
            which: Vec::new(),
        }
    }
}

impl Fill {
    /// The content of an entry's file.
    pub fn of(&self, entry: usize) -> Content {
        self.contents[self.place(entry)]
    }

    pub(super) fn place(&self, entry: usize) -> usize {
        usize::from(self.which.get(entry).copied().unwrap_or(0))
    }

    /// A source for each content, with a seed of its own.
    pub(super) fn sources(&self, seed: u64, root: &Path) -> Result<Vec<FileContent>, OpError> {
        let numbered = self.contents.iter().zip(0..);
        numbered
            .map(|(content, number)| source(*content, derive(seed, FILL | number), root))
            .collect()
    }
}

/// Creates a tree at `root`, which is created if missing. Not measured; `control` shows the
/// progress.
///
/// # Errors
/// The list is invalid (an entry's directory is not listed before it, or a path leaves the root),
/// an entry exists already, or the system refuses. Entries created until then stay.
pub fn build(
    entries: &[TreeEntry],
    root: &Path,
    fill: &Fill,
    seed: u64,
    control: &Control,
) -> Result<PhaseEnd, OpError> {
    check(entries, root)?;
    match mkdirat(CWD, root, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(fault(Op::Mkdir, root, errno)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let home =
        openat(CWD, root, flags, Mode::empty()).map_err(|errno| fault(Op::Mkdir, root, errno))?;
    let mut contents = fill.sources(seed, root)?;
    for (number, entry) in entries.iter().enumerate() {
        if control.stopped() {
            return Ok(PhaseEnd::Stopped);
        }
        let content = &mut contents[fill.place(number)];
        let (op, done) = build_one(entry, &home, number as u64, content);
        done.map_err(|errno| fault(op, &root.join(&entry.path), errno))?;
        control.ops.fetch_add(1, Ordering::Relaxed);
        if let EntryKind::File { bytes } = entry.kind {
            control.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
    // Directories get their modes last: one that forbids writing could not be filled otherwise.
    for entry in entries
        .iter()
        .rev()
        .filter(|entry| entry.kind == EntryKind::Directory)
    {
        chmodat(
            &home,
            &entry.path,
            permissions(entry.mode),
            AtFlags::empty(),
        )
        .map_err(|errno| fault(Op::Mkdir, &root.join(&entry.path), errno))?;
    }
    Ok(PhaseEnd::Complete)
}

fn build_one(
    entry: &TreeEntry,
    home: &OwnedFd,
    number: u64,
    content: &mut FileContent,
) -> (Op, Result<(), Errno>) {
    let mut file = |bytes| {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = openat(home, &entry.path, flags, Mode::from_raw_mode(0o600))?;
        let write = |part: &[u8]| rustix::io::write(&fd, part);
        write_content(write, number, bytes, content, &mut 0)?;
        // Explicitly: the umask would take bits off the mode given to `open`.
        rustix::fs::fchmod(&fd, permissions(entry.mode))?;
        close(fd)
    };
    match &entry.kind {
        EntryKind::Directory => (
            Op::Mkdir,
            mkdirat(home, &entry.path, Mode::from_raw_mode(0o700)),
        ),
        EntryKind::File { bytes } => (Op::Create, file(*bytes)),
        EntryKind::Symlink { target } => (Op::Create, symlinkat(target, home, &entry.path)),
    }
}
