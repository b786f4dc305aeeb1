//! Names of files: each part replaced by a keyed hash of the same length.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::columns::{Bytes, put};

/// The recorded directory.
pub const ROOT: u32 = 1;
/// Most names of a trace, and most bytes of all of them.
const NAMES: usize = 4 << 20;
const NAME_BYTES: usize = 128 << 20;
/// Longest part of a name, and most parts of one.
const PART: usize = 300;
const DEEPEST: u16 = 256;
/// Longest path below the directory (`PATH_MAX`): the kernel takes no longer one.
const PATH: usize = 4095;
/// Letters of hashed names: none that a file system forbids.
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

/// The key by which names are hashed. It is thrown away with the recorder.
#[derive(Clone)]
pub struct NameKey(pub [u8; 32]);

impl std::fmt::Debug for NameKey {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("NameKey(secret)")
    }
}

/// The names of a trace: each is a directory's name and one part more. Number 0 is no name, [`ROOT`] the directory.
#[derive(Debug, Clone)]
pub struct Names {
    entries: Vec<(u32, Box<[u8]>)>,
    depths: Vec<u16>,
    /// Lengths of the paths below the directory.
    lengths: Vec<u16>,
    bytes: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            entries: vec![(0, Box::default()), (0, Box::default())],
            depths: vec![0, 0],
            lengths: vec![0, 0],
            bytes: 0,
        }
    }
}

impl Names {
    /// How many there are; numbers are below it.
    pub fn count(&self) -> u32 {
        // At most `NAMES`.
        self.entries.len() as u32
    }

    /// The directory that a name stands in, and its last part; none: there is no such name, or it is the directory.
    pub fn last(&self, name: u32) -> Option<(u32, &[u8])> {
        let (parent, part) = self.entries.get(name as usize)?;
        (name > ROOT).then_some((*parent, part))
    }

    /// Length of its path below the directory, bytes.
    pub fn length(&self, name: u32) -> usize {
        let length = self.lengths.get(name as usize);
        length.copied().map_or(0, usize::from)
    }

    /// The parts of a name below the directory.
    #[cfg(test)]
    fn parts(&self, mut name: u32) -> Vec<&[u8]> {
        let mut parts = Vec::new();
        while let Some((parent, part)) = self.last(name) {
            parts.push(part);
            name = parent;
        }
        // They were found from the last one on.
        parts.reverse();
        parts
    }

    fn add(&mut self, parent: u32, part: &[u8]) -> Result<u32, String> {
        let depth = self.depths.get(parent as usize).filter(|_| parent >= ROOT);
        let depth = depth.ok_or_else(|| format!("name {parent} is not there yet"))? + 1;
        // A replay makes these names: none may lead out of its directory.
        let no_part = part.is_empty()
            || part == b"."
            || part == b".."
            || part.len() > PART
            || depth > DEEPEST;
        // A slash before each part but the first.
        let length = self.length(parent) + usize::from(parent > ROOT) + part.len();
        if length > PATH {
            return Err(format!("a path is longer than {PATH} bytes"));
        }
        if no_part || part.iter().any(|byte| [b'/', 0].contains(byte)) {
            return Err("a name leaves its directory, or is none".to_owned());
        }
        // Counted before it is kept.
        self.bytes += part.len();
        if self.entries.len() >= NAMES || self.bytes > NAME_BYTES {
            return Err(format!(
                "it has more than {NAMES} names, or more than {NAME_BYTES} bytes of them"
            ));
        }
        let number = self.count();
        self.entries.push((parent, part.into()));
        self.depths.push(depth);
        // At most `PATH`.
        self.lengths.push(length as u16);
        Ok(number)
    }

    /// Appends the names of these numbers.
    pub(super) fn put(&self, numbers: Range<u32>, out: &mut Vec<u8>) {
        let numbers = numbers.start as usize..numbers.end as usize;
        let new = self.entries.get(numbers).unwrap_or_default();
        put(out, new.len() as u64);
        for (parent, part) in new {
            put(out, u64::from(*parent));
            put(out, part.len() as u64);
            out.extend(part);
        }
    }

    /// Reads names that follow those that are known; else says what is wrong.
    pub(super) fn take(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let short = || "it ends within its names".to_owned();
        for _ in 0..bytes.at_most(NAMES as u64).ok_or_else(short)? {
            let parent = bytes.at_most(NAMES as u64).ok_or_else(short)? as u32;
            let length = bytes.at_most(PART as u64).ok_or_else(short)?;
            let part = bytes.take(length as usize).ok_or_else(short)?;
            self.add(parent, part)?;
        }
        Ok(())
    }
}

/// Why a path has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoName {
    /// It leaves the directory.
    Leaves,
    /// There are more names than a trace takes, or a part is none.
    Full,
}

/// Real names as they become hashed ones.
#[derive(Debug)]
pub(super) struct Hashing {
    key: NameKey,
    pub(super) names: Names,
    real: HashMap<(u32, Box<[u8]>), u32>,
    taken: HashMap<(u32, Box<[u8]>), ()>,
}

impl Hashing {
    pub(super) fn new(key: NameKey) -> Self {
        Self {
            key,
            names: Names::default(),
            real: HashMap::new(),
            taken: HashMap::new(),
        }
    }

    /// The number of a part in a directory; none: there are too many names.
    pub(super) fn part(&mut self, parent: u32, part: &[u8]) -> Option<u32> {
        let known = (parent, Box::from(part));
        if let Some(number) = self.real.get(&known) {
            return Some(*number);
        }
        // Short names soon have the hash of another one: then the next hash, and at last a longer one.
        let mut hashed = (0..).map(|attempt: u32| {
            let longer = attempt / 64;
            hash(&self.key, part, attempt, part.len() + longer as usize)
        });
        let hashed = hashed.find(|hashed| {
            let place = (parent, hashed.clone().into_boxed_slice());
            !self.taken.contains_key(&place)
        })?;
        let number = self.names.add(parent, &hashed).ok()?;
        self.taken.insert((parent, hashed.into()), ());
        self.real.insert(known, number);
        Some(number)
    }

    /// The number of a path that begins in a directory; neither `..` nor one of these links leads out of the recorded one.
    pub(super) fn path(
        &mut self,
        from: u32,
        path: &[u8],
        leaving: &HashSet<u32>,
    ) -> Result<u32, NoName> {
        let mut at = from;
        for part in path.split(|byte| *byte == b'/') {
            at = match part {
                b"" | b"." => at,
                _ if leaving.contains(&at) => return Err(NoName::Leaves),
                b".." => self.names.last(at).ok_or(NoName::Leaves)?.0,
                part => self.part(at, part).ok_or(NoName::Full)?,
            };
        }
        Ok(at)
    }
}

/// A part of a name as letters, so many.
fn hash(key: &NameKey, part: &[u8], attempt: u32, length: usize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new_keyed(&key.0);
    hasher.update(&attempt.to_le_bytes()).update(part);
    let mut letters = vec![0; length];
    hasher.finalize_xof().fill(&mut letters);
    for letter in &mut letters {
        *letter = LETTERS[usize::from(*letter & 63)];
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn path(hashing: &mut Hashing, path: &[u8]) -> Result<u32, NoName> {
        hashing.path(ROOT, path, &HashSet::new())
    }

    #[test]
    fn names_keep_their_length_and_tell_nothing() {
        let mut hashing = Hashing::new(NameKey([7; 32]));
        let number = path(&mut hashing, b"base/5/pg_internal.init").unwrap();
        let parts = hashing.names.parts(number);
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [4, 1, 16]);
        assert!(parts[0] != b"base" && parts[2] != b"pg_internal.init");
        assert_eq!(
            path(&mut hashing, b"./base//5/../5/pg_internal.init"),
            Ok(number)
        );
    }

    #[test]
    fn another_key_gives_other_names() {
        let named = |key| {
            let mut hashing = Hashing::new(NameKey([key; 32]));
            let number = path(&mut hashing, b"a-rather-long-name").unwrap();
            hashing.names.parts(number).concat()
        };
        assert_ne!(named(1), named(2));
    }

    #[test]
    fn two_short_names_never_become_one() {
        let mut hashing = Hashing::new(NameKey([7; 32]));
        let all: Vec<u32> = (1..=255)
            .filter(|byte| ![b'/', b'.'].contains(byte))
            .map(|byte| path(&mut hashing, &[byte]).unwrap())
            .collect();
        let names: BTreeSet<Vec<u8>> = all
            .iter()
            .map(|number| hashing.names.parts(*number).concat())
            .collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn no_path_is_longer_than_the_kernel_takes() {
        let mut names = Names::default();
        let mut at = ROOT;
        for _ in 0..16 {
            at = names.add(at, &[b'a'; 255]).unwrap();
        }
        // 16 parts and 15 slashes.
        assert_eq!(names.length(at), PATH);
        assert!(
            names
                .add(at, b"a")
                .unwrap_err()
                .contains("longer than 4095")
        );
    }

    #[test]
    fn a_path_never_leaves_the_directory() {
        let mut hashing = Hashing::new(NameKey([7; 32]));
        assert_eq!(path(&mut hashing, b"a/../../etc"), Err(NoName::Leaves));
        let mut names = Names::default();
        for part in [&b".."[..], b".", b"", b"a/b", b"a\0"] {
            assert!(names.add(ROOT, part).is_err());
        }
        assert!(names.add(0, b"a").is_err() && names.add(9, b"a").is_err());
    }
}
