//! Trees that follow from a few numbers and a seed.

use std::collections::HashSet;
use std::f64::consts::TAU;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::entry::{EntryKind, TreeEntry};
use stackrace_system::draw::Draw;

/// Longest name of a file, bytes, on Linux.
const NAME_BYTES_MAX: u8 = 255;
/// Purpose of the seed for an invented tree.
const TREE: u64 = 0x7472_6565_0000_0000;
/// The sizes of the files of an invented tree.
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
            // Up to the root and down again: a relative target holds wherever the tree lies.
            let mut target: PathBuf = (0..*depth).map(|_| "..").collect();
            if files_to > files_from {
                let file = random.below((files_to - files_from) as u64) as usize;
                target.push(&entries[files_from + file].path);
            } else {
                // A link to nothing is a link as well.
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
            // Names are drawn until one is new; longer ones are not used up so soon.
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
