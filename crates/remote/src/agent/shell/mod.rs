//! A machine that has nothing but a POSIX shell: its own `sh` at the other end of the user's ssh.
//!
//! Nothing is copied there. A [`mod@line`] carries one script after another, each framed by random digits, so
//! that nothing a command prints is taken for the end of its answer. A [`host`] is such a machine as the
//! rest of the program knows machines. A measured [`program`] has a connection of its own: whatever it
//! began ends with it. What is mounted is read from the system's own tables ([`mounts`]), where it has
//! any.
//!
//! Everything that is sent is POSIX: no bashism, no option of GNU. What `/proc` shows beyond that ([`stops`]) is used
//! where it is there, and nothing needs it.

mod about;
mod host;
mod line;
mod mounts;
mod owner;
mod program;
mod room;
mod stops;
mod things;

pub use about::SYSTEM_FACT;
pub use host::ShellHost;

use std::ffi::OsStr;

/// Reads a text as each answer that such a machine gives.
///
/// # Panics
/// A time, an amount or a place in it is impossible.
#[cfg(any(test, feature = "testing"))]
pub fn check_answers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for system in ["Linux", "FreeBSD", "SunOS"] {
        let table = mounts::parse(system, data);
        let lines = data.split(|&byte| byte == b'\n').count();
        assert!(table.len() <= lines, "{system}: {table:?}");
        let at = std::path::Path::new("/srv/data");
        if let Some(seen) = mounts::seen(table, at) {
            assert!(at.starts_with(seen.mount_point), "{system}");
        }
    }
    program::check_times(&text);
    let _ = stops::found(&text);
    for numbered in [true, false] {
        let _ = things::read_seen(&text, numbered);
    }
    let _ = things::read_below(&text);
    let _ = owner::only_root_renames(&text);
    let _ = room::free_bytes(&text);
}

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
