//! What is printed.

use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

use super::variable::variable;

/// Columns of a terminal; 80 where it is none or does not say. `COLUMNS` overrides it.
pub(super) fn columns(to: &impl AsFd) -> usize {
    let named = variable("COLUMNS").and_then(|value| value.to_str()?.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(to).ok()?;
        Some(usize::from(size.ws_col))
    };
    let known = |columns: &usize| *columns > 0;
    named
        .filter(known)
        .or_else(|| asked().filter(known))
        .unwrap_or(80)
}

/// Writes to standard output; a reader that has gone away ends the program quietly.
pub(super) fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// Writes to standard output, and goes on where its reader has gone.
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
