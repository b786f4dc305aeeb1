//! Trees of directories, files and symbolic links: invent one, learn one, build, copy, delete it.
//!
//! A tree is a list of [`TreeEntry`], parents before children. It comes from a [`TreeShape`] (invented,
//! the same for the same seed), from a [`profile`] (invented after real ones) or from [`scan`] (learnt
//! from a real directory); [`build`] makes it, [`archive()`] puts it into a tar archive.
//! [`copy_tree()`], [`copy_file`], [`delete_tree`], [`extract_tar`] and [`read_file`] are what is
//! measured, one thread doing one call after the other as `cp`, `rsync`, `rm`, `tar` and `dd` do.
//!
//! Nothing here follows a symbolic link or crosses a mount point.

use std::collections::HashSet;
use std::f64::consts::TAU;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, chmodat, mkdirat, openat, readlinkat, statx, symlinkat,
};
use rustix::io::Errno;

use crate::calls::{close, source, write_content};
use crate::content::FileContent;
use crate::control::Control;
use crate::draw::{Draw, derive};
use crate::outcome::{Op, OpError, PhaseEnd};
use crate::spec::Content;
use crate::worker_pool::{fault, refusal};
use walk::{Descent, Walk, WalkStep};

mod archive;
mod copy;
mod copy_tree;
mod delete;
mod extract;
pub mod profile;
mod read;
mod walk;

pub use archive::archive;
pub use copy::{COPY_BUFFER_BYTES, CopyMethod, RSYNC_BUFFER_BYTES, copy_file};
pub use copy_tree::{CopyStyle, copy_tree};
pub use delete::delete_tree;
pub use extract::{RECORD_BYTES, extract_tar};
pub use read::read_file;
pub use walk::DEPTH_MAX;

/// Longest name of a file, bytes, on Linux.
const NAME_BYTES_MAX: u8 = 255;
/// What an invented tree draws from the seed.
const TREE: u64 = 0x7472_6565_0000_0000;
/// The seeds of what a tree's files are filled with.
const FILL: u64 = 0x6669_6c6c_0000_0000;

/// What an entry of a tree is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file of so many bytes.
    File {
        /// Its size.
        bytes: u64,
    },
    /// A symbolic link.
    Symlink {
        /// What it says, which need not exist.
        target: PathBuf,
    },
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeEntry {
    /// Where, relative to the tree's root.
    pub path: PathBuf,
    /// What.
    pub kind: EntryKind,
    /// Permission bits (`0o7777`); meaningless for a symbolic link.
    pub mode: u32,
}

/// How large the files of an invented tree are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeDistribution {
    /// All alike.
    Fixed {
        /// Size of each, bytes.
        bytes: u64,
    },
    /// Log-normal, as sizes of real files roughly are (Downey, "The structural cause of file size
    /// distributions", 2001).
    LogNormal {
        /// Half of the files are smaller than this, bytes.
        median_bytes: u64,
        /// Standard deviation of the natural logarithm of the size.
        sigma: f64,
        /// Sizes above this are cut to it, bytes.
        max_bytes: u64,
    },
}

/// A tree to invent.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeShape {
    /// Directories, the root not counted.
    pub directories: u32,
    /// Components of the deepest directory's path; at least 1 is used.
    pub depth_max: u32,
    /// Files and symbolic links.
    pub files: u64,
    /// Sizes of the files.
    pub size: SizeDistribution,
    /// Share of `files` that are symbolic links to others of them, 0 … 1.
    pub symlink_share: f64,
    /// Shortest name, bytes, at least 1. Names grow where a directory has used up the short ones.
    pub name_bytes_min: u8,
    /// Longest name, bytes.
    pub name_bytes_max: u8,
    /// Everything random follows from it.
    pub seed: u64,
}

impl TreeShape {
    /// The tree's entries, sorted by path, which puts parents before their children.
    ///
    /// Each directory lies in a random one of those above the depth limit, each file in a random
    /// directory; one file in ten is executable.
    pub fn entries(&self) -> Vec<TreeEntry> {
        let mut random = Draw::new(self.seed, TREE);
        let mut taken = HashSet::new();
        let mut entries = Vec::new();
        let mut homes = vec![(PathBuf::new(), 0)];
        let mut parents = vec![0];
        for _ in 0..self.directories {
            let parent = parents[random.below(parents.len() as u64) as usize];
            let depth: u32 = homes[parent].1 + 1;
            let path = self.fresh(&homes[parent].0, &mut random, &mut taken);
            entries.push(TreeEntry {
                path: path.clone(),
                kind: EntryKind::Directory,
                mode: 0o755,
            });
            if depth < self.depth_max {
                parents.push(homes.len());
            }
            homes.push((path, depth));
        }
        let share = self.symlink_share.clamp(0.0, 1.0);
        let links = (self.files as f64 * share).round() as u64;
        let files_from = entries.len();
        for _ in links..self.files {
            let home = random.below(homes.len() as u64) as usize;
            let path = self.fresh(&homes[home].0, &mut random, &mut taken);
            let kind = EntryKind::File {
                bytes: self.size.draw(&mut random),
            };
            let mode = if random.below(10) == 0 { 0o755 } else { 0o644 };
            entries.push(TreeEntry { path, kind, mode });
        }
        let files_to = entries.len();
        for _ in 0..links {
            let (home, depth) = &homes[random.below(homes.len() as u64) as usize];
            let path = self.fresh(home, &mut random, &mut taken);
            let mut target: PathBuf = (0..*depth).map(|_| "..").collect();
            if files_to > files_from {
                let file = random.below((files_to - files_from) as u64) as usize;
                target.push(&entries[files_from + file].path);
            } else {
                target.push("nothing");
            }
            entries.push(TreeEntry {
                path,
                kind: EntryKind::Symlink { target },
                mode: 0o777,
            });
        }
        entries.sort();
        entries
    }

    /// A name that is new in `home`.
    fn fresh(&self, home: &Path, random: &mut Draw, taken: &mut HashSet<PathBuf>) -> PathBuf {
        const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        let (min, max) = (self.name_bytes_min.max(1), self.name_bytes_max);
        let spread = u64::from(max.saturating_sub(min)) + 1;
        let mut length = u64::from(min) + random.below(spread);
        loop {
            let letter = |_| LETTERS[random.below(LETTERS.len() as u64) as usize];
            let name: Vec<u8> = (0..length).map(letter).collect();
            let path = home.join(OsStr::from_bytes(&name));
            if taken.insert(path.clone()) {
                return path;
            }
            length = (length + 1).min(u64::from(NAME_BYTES_MAX));
        }
    }
}

impl SizeDistribution {
    fn draw(self, random: &mut Draw) -> u64 {
        match self {
            SizeDistribution::Fixed { bytes } => bytes,
            SizeDistribution::LogNormal {
                median_bytes,
                sigma,
                max_bytes,
            } => {
                // Box-Muller; the first number is moved from [0, 1) to (0, 1].
                let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
                let normal = radius * (TAU * random.unit()).cos();
                let bytes = median_bytes as f64 * (sigma * normal).exp();
                (bytes.round() as u64).min(max_bytes)
            }
        }
    }
}

/// Bytes of all files of a tree together.
pub fn total_bytes(entries: &[TreeEntry]) -> u64 {
    let bytes = |entry: &TreeEntry| match entry.kind {
        EntryKind::File { bytes } => bytes,
        EntryKind::Directory | EntryKind::Symlink { .. } => 0,
    };
    entries.iter().map(bytes).sum()
}

/// What the files of a tree are filled with: one content for all, or one for each kind of file.
#[derive(Debug, Clone, PartialEq)]
pub struct Fill {
    contents: Vec<Content>,
    /// Which of them, by position of the entry; the first for those beyond.
    which: Vec<u8>,
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

    fn place(&self, entry: usize) -> usize {
        usize::from(self.which.get(entry).copied().unwrap_or(0))
    }

    /// A source for each content, with a seed of its own.
    fn sources(&self, seed: u64, root: &Path) -> Result<Vec<FileContent>, OpError> {
        let numbered = self.contents.iter().zip(0..);
        numbered
            .map(|(content, number)| source(*content, derive(seed, FILL | number), root))
            .collect()
    }
}

/// Makes a tree at `root`, which is made if it does not exist. Not measured; progress is told.
///
/// # Errors
/// The list makes no sense (an entry's directory is not listed before it, or a path leaves the
/// root), something is there already, or the system refuses. What was made until then stays.
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
            Mode::from_raw_mode(entry.mode),
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
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(entry.mode))?;
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

/// Each entry must lie in the root or in a directory listed before it: so no path leaves the root,
/// neither by `..` nor through a symbolic link of the list.
fn check(entries: &[TreeEntry], root: &Path) -> Result<(), OpError> {
    let mut directories = HashSet::from([Path::new("")]);
    for entry in entries {
        let plain = entry
            .path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let listed = entry
            .path
            .parent()
            .is_some_and(|parent| directories.contains(parent));
        if !plain || !listed {
            let detail = "is not below a directory listed before it: nothing was built";
            return Err(refusal(
                Op::Create,
                &root.join(&entry.path),
                Errno::INVAL,
                detail,
            ));
        }
        if entry.kind == EntryKind::Directory {
            directories.insert(&entry.path);
        }
    }
    Ok(())
}

/// What [`scan`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The tree, sorted by path, parents before children. Hard links are files of their own;
    /// holes of sparse files count as bytes.
    pub entries: Vec<TreeEntry>,
    /// Devices, sockets and pipes, which are left out.
    pub skipped_special: u64,
    /// Mount points and subvolumes, which stand in `entries` as empty directories.
    pub skipped_mounts: u64,
}

/// Learns the tree below a real directory: shape, sizes, modes, link targets, no content.
///
/// Symbolic links are not followed, mount points not entered.
///
/// # Errors
/// Something cannot be read: a tree known in part is not a tree.
pub fn scan(root: &Path) -> Result<Scan, OpError> {
    let mut walk = Walk::open(root, Op::Readdir)?;
    let mut found = Scan {
        entries: Vec::new(),
        skipped_special: 0,
        skipped_mounts: 0,
    };
    walk.read().map_err(|errno| walk.here(Op::Readdir, errno))?;
    loop {
        match walk.next()? {
            WalkStep::Done => break,
            WalkStep::Leave => walk.leave(),
            WalkStep::Entry(kind) => scan_one(&mut walk, kind, root, &mut found)?,
        }
    }
    found.entries.sort();
    Ok(found)
}

fn scan_one(walk: &mut Walk, kind: FileType, root: &Path, found: &mut Scan) -> Result<(), OpError> {
    let (parent, name) = walk.current();
    let about = statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, walk::PLACE)
        .map_err(|errno| fault(Op::Stat, &walk.current_path(), errno))?;
    let kind = match kind {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File {
            bytes: about.stx_size,
        },
        FileType::Symlink => {
            let target = readlinkat(parent, name, Vec::new())
                .map_err(|errno| fault(Op::Stat, &walk.current_path(), errno))?;
            EntryKind::Symlink {
                target: OsStr::from_bytes(target.to_bytes()).into(),
            }
        }
        _ => {
            found.skipped_special += 1;
            return Ok(());
        }
    };
    let path = walk.current_path();
    let path = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
    let mode = u32::from(about.stx_mode) & 0o7777;
    let is_directory = kind == EntryKind::Directory;
    found.entries.push(TreeEntry { path, kind, mode });
    if is_directory {
        match walk.descend(Op::Readdir)? {
            Descent::Elsewhere(_) => found.skipped_mounts += 1,
            Descent::Entered => {
                walk.read().map_err(|errno| walk.here(Op::Readdir, errno))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tree_tests.rs"]
pub(crate) mod tests;
