//! What only the user may read: files with secrets, and the environment.

use crate::unit::InWords;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::bounded::ByteLimit;
use crate::event::shell;
use crate::failure::Failure;
use crate::unit::ShownPath;

/// Bytes of a file with an address, with passwords or with certificates.
pub const FILE_MAX: ByteLimit = ByteLimit::new(1 << 20);

/// A variable of the environment by its name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A text that no other user can read.
///
/// # Errors
/// Other users may open the file, it cannot be read, or it is no text.
pub fn private_text(path: &Path) -> Result<String, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::usage(format!(
            "cannot read {}: {error}",
            path.shown(),
            error = error.in_words()
        ))
        .next("name a file that you can read")
    };
    let mode = path.metadata().map_err(cannot)?.permissions().mode();
    // As psql has it for its file of passwords.
    if mode & 0o077 != 0 {
        let what = format!(
            "other users may open {}, which holds a secret",
            path.shown()
        );
        let chmod = ["chmod".as_ref(), "600".as_ref(), path.as_os_str()];
        return Err(Failure::refused(what).next(shell(&chmod)));
    }
    let text = FILE_MAX.read(path).map_err(cannot)?;
    String::from_utf8(text).map_err(|_| {
        Failure::usage(format!("{} is not UTF-8 text", path.shown())).next("name another file")
    })
}
