//! What is printed, and files that are written for the user.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::failure::Failure;

/// Writes to standard output; a reader that has gone away ends the program quietly.
pub(super) fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// Writes to standard output, and goes on where nobody reads it.
pub(super) fn print_on(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes bytes to standard output, as [`print()`] does.
pub(super) fn print_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    // `stackrace show layers | head` is no error.
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Writes to standard error.
pub(super) fn error(text: &str) {
    // Where standard error is closed, there is no other place to report that.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a file beside its final name and renames it: an old one is never half overwritten.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut name = path
        .file_name()
        .map(OsStr::to_os_string)
        .ok_or_else(|| Failure::usage(format!("{} is not a file name", path.display())))?;
    name.push(".part");
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|error| Failure::internal(format!("cannot write {}: {error}", path.display())))
}
