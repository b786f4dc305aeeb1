//! The limit on the size of the files this process may write (`RLIMIT_FSIZE`, `ulimit -f`).
//!
//! The kernel meets a write beyond it with SIGXFSZ, which ends the process unless it is ignored;
//! then the write fails with EFBIG, as it does beyond what the file system can hold (setrlimit(2)).

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// From here on a write beyond the limit fails, in this process and in those it starts.
pub fn fail_beyond() {
    // SAFETY: a signal that is ignored runs no code of ours.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    debug_assert_ne!(before, libc::SIG_ERR, "SIGXFSZ can be ignored");
}

/// The system's words for an errno; for EFBIG, with the limit where there is one.
pub(crate) fn words(errno: i32) -> String {
    let words = std::io::Error::from_raw_os_error(errno).to_string();
    let limit = getrlimit(Resource::Fsize).current;
    match limit.filter(|_| errno == Errno::FBIG.raw_os_error()) {
        Some(bytes) => {
            format!("{words}; this process may write files of {bytes} bytes (ulimit -f)")
        }
        None => words,
    }
}
