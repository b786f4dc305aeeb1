//! Whether what an entry asks for belongs to the run of its journal.
//!
//! A journal is a file, and files get damaged, copied or edited. An entry is therefore carried out
//! only if it proves itself: what it names carries a mark that this run drew, 16 random digits, and
//! lies where this run said that it would create something. Everything else is left alone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Beginning of names of ours: those of files, and those that tools know.
pub(super) const HIDDEN: &str = ".stackrace-";
const OURS: &str = "stackrace-";

/// Hexadecimal digits of the mark that tells a run's own things.
const MARK_DIGITS: usize = 16;

/// Digits of a UUID of ours behind its mark, and the number of those behind them, which count what a stack made. A
/// random UUID has these with a probability of 1 in 10¹⁴ (RFC 9562 fixes the first two bits of them).
const UUID_OURS: &str = "800000000000";
const UUID_NUMBER: usize = 4;

/// Text that a plan writes where a run draws digits.
const PLANNED: &str = "{id}";

/// The run's statements about itself before it created anything.
#[derive(Debug, Clone, Default)]
pub(super) struct Proof {
    /// The run's own directory, as it was found; what lies below it is the run's.
    own: Option<PathBuf>,
    /// Digits that it drew.
    marks: BTreeSet<String>,
    /// Directories in which it creates what carries one of them.
    places: BTreeSet<PathBuf>,
}

/// Returns true if a text can be a mark: 16 hexadecimal digits.
pub(super) fn is_mark(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text == PLANNED || (text.len() == MARK_DIGITS && text.bytes().all(digit))
}

impl Proof {
    /// The proof of the run in a directory.
    pub(super) fn of_run(own: &Path) -> Self {
        Self {
            own: is_plain(own).then(|| own.to_path_buf()),
            ..Self::default()
        }
    }

    /// Adds digits the run drew; false: it had them already.
    pub(super) fn add_mark(&mut self, mark: &str) -> bool {
        self.marks.insert(mark.to_string())
    }

    /// Adds a directory in which the run creates something.
    pub(super) fn add_place(&mut self, place: PathBuf) {
        self.places.insert(place);
    }

    /// Returns true if digits are a mark of the run.
    pub(super) fn has_mark(&self, mark: &str) -> bool {
        self.marks.contains(mark)
    }

    /// Directory in which something with a mark of the run is created, if that is not known yet.
    pub(super) fn place_of(&self, path: &Path) -> Option<PathBuf> {
        if self.is_below_own(path) {
            return None;
        }
        let (place, _) = self.marked(path).next()?;
        (!self.places.contains(place)).then(|| place.to_path_buf())
    }

    /// Returns true if a part of a path carries a mark of the run.
    pub(super) fn is_marked(&self, path: &Path) -> bool {
        self.marked(path).next().is_some()
    }

    /// Returns true if a path is the run's: below its own directory, or below something that
    /// carries its mark in a place of its own.
    pub(super) fn is_ours(&self, path: &Path) -> bool {
        let mut marked = self.marked(path);
        self.is_below_own(path) || marked.any(|(place, _)| self.places.contains(place))
    }

    /// The same on another machine, where the run's own directory is not.
    pub(super) fn there(&self) -> Self {
        Self {
            own: None,
            ..self.clone()
        }
    }

    fn is_below_own(&self, path: &Path) -> bool {
        let below = |own: &PathBuf| path.starts_with(own) && path != own;
        is_plain(path) && self.own.as_ref().is_some_and(below)
    }

    /// The parts of a path that carry a mark, each with the directory it lies in.
    fn marked<'a>(&self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a OsStr)> {
        let parts = path.ancestors().filter(|_| is_plain(path));
        let named = parts.filter_map(|part| Some((part.parent()?, part.file_name()?)));
        named.filter(|(_, name)| {
            let name = name.as_bytes();
            name.starts_with(HIDDEN.as_bytes())
                && std::str::from_utf8(name).is_ok_and(|name| self.carries(name))
        })
    }

    /// Returns true if a name that a tool knows is the run's:
    /// `stackrace-r1-t0-0123456789abcdef-pool-1`.
    pub(super) fn is_name(&self, name: &str) -> bool {
        name.starts_with(OURS) && self.carries(name)
    }

    /// Returns true if a UUID is the run's: a mark, and then what no tool draws. A journal may name the first digits of
    /// any UUID its mark, but cannot choose what a foreign one has behind them.
    pub(super) fn is_uuid(&self, uuid: &str) -> bool {
        let digits = uuid.replace([':', '-'], "");
        let number = |mark: &String| digits.strip_prefix(mark.as_str())?.strip_prefix(UUID_OURS);
        let digit = |byte: u8| byte.is_ascii_hexdigit();
        self.marks
            .iter()
            .filter_map(number)
            .any(|number| number.len() == UUID_NUMBER && number.bytes().all(digit))
    }

    /// Returns true if one of the words of a name is a mark, whole.
    fn carries(&self, name: &str) -> bool {
        name.split(['-', '.']).any(|word| self.marks.contains(word))
    }
}

/// Returns true if a path means one thing only: absolute, and without `..`.
pub(super) fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "0123456789abcdef";

    fn proof() -> Proof {
        let mut proof = Proof::of_run(Path::new("/store/runs/r"));
        proof.add_mark(MARK);
        proof.add_place("/srv".into());
        proof
    }

    #[test]
    fn a_path_needs_the_whole_mark_and_a_place_of_the_run() {
        let proof = proof();
        for ours in [
            "/srv/.stackrace-r1-t0-0123456789abcdef-disks",
            "/srv/.stackrace-r1-t0-0123456789abcdef-disks/disk-1",
            "/srv/.stackrace-bonnie-0123456789abcdef.000",
            "/store/runs/r/mnt",
        ] {
            assert!(proof.is_ours(Path::new(ours)), "{ours}");
        }
        for theirs in stackrace_test_needs::attacks([
            "/srv",
            "/srv/photos",
            "/srv/.stackrace-r1-t0-0123456789abcde-disks",
            "/srv/.stackrace-r1-t0-0123456789abcdef0-disks",
            "/srv/0123456789abcdef",
            "/home/.stackrace-r1-t0-0123456789abcdef-disks",
            "/srv/.stackrace-0123456789abcdef-x/../photos",
            "srv/.stackrace-0123456789abcdef-x",
            "/store/runs/r",
            "/store/runs/r/../s",
            "/store/runs/r2/mnt",
        ]) {
            assert!(!proof.is_ours(Path::new(theirs)), "{theirs}");
        }
    }

    #[test]
    fn what_a_tool_knows_needs_the_whole_mark_too() {
        let proof = proof();
        assert!(proof.is_name("stackrace-r1-t0-0123456789abcdef-pool-1"));
        assert!(!proof.is_name("tank-0123456789abcdef") && !proof.is_name("stackrace-pool-1"));
        assert!(proof.is_uuid("01234567-89ab-cdef-8000-000000000001"));
        assert!(proof.is_uuid("012345-6789-abcd-ef80-0000-0000-000001"));
        for theirs in [
            "",
            "0",
            "0123456789abcde",
            // The first digits of a file system of another user's, taken for a mark.
            "0123456789abcdef",
            "01234567-89ab-cdef-8123-456789abcdef",
            "01234567-89ab-cdef-8000-00000000000100",
            "01234567-89ab-cdef-8000-000100000001",
            "f0123456-789a-bcde-f800-000000000001",
        ] {
            assert!(!proof.is_uuid(theirs), "{theirs}");
        }
    }
}
