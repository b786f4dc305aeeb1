//! Commands of this program that are advised: each finds what this process kept, wherever that is.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::shell;

/// Name of this program.
const PROGRAM: &str = "stackrace";

/// Store that the command line named; unset where the usual one is used.
// Advice is written in every room, by values that know nothing of the command line.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Tells that this process keeps its runs in a directory that the command line named; a second call changes nothing.
pub fn store_is_named(dir: &Path) {
    let _ = NAMED.set(dir.to_path_buf());
}

/// Returns true if the command line named a store.
pub fn is_store_named() -> bool {
    NAMED.get().is_some()
}

/// This program, where `sudo stackrace` would not find it; unset where it would.
static BESIDE_SUDO: OnceLock<PathBuf> = OnceLock::new();

/// Directories in which sudo finds a program, whatever the user's own PATH says (`secure_path` of Debian).
const OF_SUDO: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Words that were typed behind the name of this program; unset in a process that another one started.
static TYPED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Tells where this program lies, and the words typed behind its name at this machine; a second call changes nothing.
pub fn program_is(path: &Path, words: impl Iterator<Item = OsString>) {
    if !sudo_finds(path) {
        let _ = BESIDE_SUDO.set(path.to_path_buf());
    }
    let _ = TYPED.set(words.collect());
}

fn sudo_finds(path: &Path) -> bool {
    let of_sudo = |dir: &Path| OF_SUDO.iter().any(|known| dir == Path::new(known));
    path.file_name() == Some(OsStr::new(PROGRAM)) && path.parent().is_some_and(of_sudo)
}

/// The beginning of a command of this program as root: `sudo stackrace`, or its whole path where that is not found.
pub fn sudo() -> String {
    as_root(&[])
}

/// The command that was typed, as root: `sudo stackrace run study.toml`.
pub fn again_as_root() -> String {
    as_root(TYPED.get().map_or(&[], Vec::as_slice))
}

fn as_root(words: &[OsString]) -> String {
    let program = BESIDE_SUDO
        .get()
        .map_or(Path::new(PROGRAM), PathBuf::as_path);
    let command = [OsStr::new("sudo"), program.as_os_str()];
    let words = words.iter().map(OsString::as_os_str);
    shell(&command.into_iter().chain(words).collect::<Vec<_>>())
}

/// A command of this program as it is typed: words behind its name, and the store if this process was given one.
pub fn again<W: AsRef<OsStr>>(words: &[W]) -> String {
    typed(words, NAMED.get().map(PathBuf::as_path))
}

/// The same for a store that is elsewhere.
pub fn again_in<W: AsRef<OsStr>>(words: &[W], store: &Path) -> String {
    typed(words, Some(store))
}

fn typed<W: AsRef<OsStr>>(words: &[W], store: Option<&Path>) -> String {
    let mut all = vec![OsString::from(PROGRAM)];
    all.extend(words.iter().map(|word| word.as_ref().to_owned()));
    if let Some(store) = store {
        all.extend(["--store".into(), store.into()]);
    }
    shell(&all)
}

/// Things that a second Ctrl-C leaves, and the commands for them.
#[derive(Debug, Clone, Copy)]
pub struct LeftBehind {
    /// Words of the command that removes them, behind the program's name; empty if none is needed.
    pub clean: &'static [&'static str],
    /// A clause of which that command is the subject: `removes what is left`.
    pub told: &'static str,
    /// A run is among them, which goes on later.
    pub resumes: bool,
}

impl LeftBehind {
    /// Files of a command that keeps no run.
    pub const FILES: Self = Self {
        clean: &["clean"],
        told: "removes what is left",
        resumes: false,
    };

    /// The sentence that is shown, without its point.
    pub fn words(&self) -> String {
        if self.clean.is_empty() {
            return self.told.to_owned();
        }
        let mut words = format!("`{}` {}", again(self.clean), self.told);
        if self.resumes {
            words.push_str(&format!(", `{}` continues the run", again(&["resume"])));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_with_blanks_and_quotes_is_one_word() {
        assert_eq!(
            again_in(&["resume", "r1"], Path::new("/srv/it's a b")),
            r"stackrace resume r1 --store '/srv/it'\''s a b'"
        );
        assert_eq!(typed(&["clean"], None), "stackrace clean");
    }

    #[test]
    fn sudo_finds_a_program_in_its_own_path_alone() {
        assert!(sudo_finds(Path::new("/usr/local/bin/stackrace")));
        for path in [
            "/home/ann/.cargo/bin/stackrace",
            "/usr/bin/stackrace-1",
            "stackrace",
        ] {
            assert!(!sudo_finds(Path::new(path)), "{path}");
        }
        assert_eq!(sudo(), "sudo stackrace", "nothing was told");
        let words = ["run", "a b.toml"].map(OsString::from);
        assert_eq!(as_root(&words), "sudo stackrace run 'a b.toml'");
    }
}
