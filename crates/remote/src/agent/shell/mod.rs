//! A machine that has nothing but a POSIX shell: its own `sh` at the other end of the user's ssh.
//!
//! Nothing is copied there. A [`mod@line`] carries one script after another, each framed by random digits, so
//! that nothing a command prints is taken for the end of its answer. A [`host`] is such a machine as the
//! rest of the program knows machines. A measured [`program`] has a connection of its own: whatever it
//! began ends with it. What is mounted is read from the system's own tables ([`mounts`]), where it has
//! any.
//!
//! Everything that is sent is POSIX: no bashism, no option of GNU, nothing of `/proc`.

mod about;
mod host;
mod line;
mod mounts;
mod owner;
mod program;
mod room;
mod things;

pub use host::ShellHost;

use std::ffi::OsStr;

/// A word as `sh` takes it back unchanged: nothing in it is interpreted.
pub(super) fn quoted(word: &OsStr) -> String {
    // In single quotes every character stands for itself but the single quote (POSIX, XCU 2.2.2).
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}

/// Words as a command of `sh`.
pub(super) fn quoted_all<W: AsRef<OsStr>>(words: &[W]) -> String {
    let words = words.iter().map(|word| quoted(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}
