//! `.pmrc` in the directory the shell is in: PostMark obeys it without being asked.
//!
//! Its commands may start any program. So it is obeyed only where no other user can have written it.

use stackrace_base::unit::InWords;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::Failure;

/// Name of the file.
pub(super) const NAME: &str = ".pmrc";

/// Permissions of the group and of others to write.
const WRITABLE: u32 = 0o022;

/// Reads what it holds; `None` if there is no such file.
///
/// # Errors
/// It is a link, no regular file, larger than the limit, or another user's to write.
pub(super) fn read(most: ByteLimit) -> Result<Option<Vec<u8>>, Failure> {
    // A FIFO without a writer must not hold the program.
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(CWD, NAME, how, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        // ELOOP is what O_NOFOLLOW answers for a symbolic link (open(2)).
        Err(Errno::LOOP) => return Err(refused("is a link")),
        Err(errno) => {
            return Err(refused(&format!(
                "cannot be read: {errno}",
                errno = errno.in_words()
            )));
        }
    };
    // Of the open file and not of the name, which may lead elsewhere by now.
    let meta = file.metadata().map_err(|error| {
        refused(&format!(
            "cannot be read: {error}",
            error = error.in_words()
        ))
    })?;
    let own = rustix::process::geteuid().as_raw();
    match foreign(meta.is_file(), meta.uid(), meta.mode(), own) {
        Some(why) => Err(refused(&why)),
        None => most.read_from(file).map(Some).map_err(|error| {
            refused(&format!(
                "cannot be read: {error}",
                error = error.in_words()
            ))
        }),
    }
}

/// Reason why a file is not obeyed by a user; `None` if only this user and root can have written
/// it.
fn foreign(regular: bool, owner: u32, mode: u32, own: u32) -> Option<String> {
    if !regular {
        return Some("is no regular file".to_owned());
    }
    // Root may change any file, so a file of root's is no greater risk.
    if owner != own && owner != 0 {
        return Some(format!("belongs to another user (id {owner})"));
    }
    (mode & WRITABLE != 0)
        .then(|| format!("can be written by other users (mode {:o})", mode & 0o7777))
}

fn refused(why: &str) -> Failure {
    Failure::refused(format!("{NAME} in this directory {why}, and is not obeyed")).next(format!(
        "read it; if you trust it, name it: stackrace postmark {NAME}"
    ))
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn only_a_file_that_no_other_user_can_write_is_obeyed() {
        for (owner, mode, own, obeyed) in [
            (1000, 0o644, 1000, true),
            (0, 0o644, 1000, true),
            (0, 0o600, 0, true),
            (1000, 0o644, 0, false),
            (1001, 0o644, 1000, false),
            (1000, 0o664, 1000, false),
            (1000, 0o646, 1000, false),
        ] {
            let why = foreign(true, owner, mode, own);
            assert_eq!(why.is_none(), obeyed, "{owner} {mode:o} {own}: {why:?}");
        }
        assert!(foreign(false, 0, 0o600, 0).is_some());
    }
}
