//! Limits on the size of the files this process may write (`RLIMIT_FSIZE`, `ulimit -f`), and on how many it may have
//! open (`RLIMIT_NOFILE`, `ulimit -n`).
//!
//! A write beyond it raises SIGXFSZ, which ends the process. If the signal is ignored, the write
//! fails with EFBIG instead, as beyond the largest file of the file system (setrlimit(2)).

use std::path::Path;

use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Makes writes beyond the limit fail with an error, in this process and its children.
pub fn fail_beyond() {
    // SAFETY: a signal that is ignored runs no code of ours.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    debug_assert_ne!(before, libc::SIG_ERR, "SIGXFSZ can be ignored");
}

/// The message of an errno at a path; "no space" also says so where it is inodes that are used up.
pub(crate) fn words_at(errno: i32, path: &Path) -> String {
    let words = words(errno);
    let near = path.parent().unwrap_or(path);
    // Asked when the error is told: what was made still stands then. File systems without a number of inodes say 0.
    let used_up = || statvfs(near).is_ok_and(|space| space.f_files > 0 && space.f_favail == 0);
    match errno == Errno::NOSPC.raw_os_error() && used_up() {
        true => format!(
            "{words}; the inodes of the file system are used up, whatever bytes are free (df -i)"
        ),
        false => words,
    }
}

/// The message of an errno; EFBIG also names the limit, if there is one.
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

/// Files that a process must be able to have open at once to measure anything.
pub const OPEN_FILES_MIN: u64 = 64;

/// Fewest threads and processes that may run beside this one: those that wait for Ctrl-C and show progress, those of
/// a phase with few workers, and the commands of a stack.
pub const THREADS_MIN: usize = 8;

/// Number of threads that could be started at once, where that is too few to measure with.
pub fn too_few_threads() -> Option<usize> {
    let gate = std::sync::Mutex::new(());
    let started = std::thread::scope(|scope| {
        // Each of them waits until all are there: the limit is one of what runs at once.
        let shut = gate.lock();
        let wait = || drop(gate.lock());
        let start = |_: &usize| {
            std::thread::Builder::new()
                .spawn_scoped(scope, wait)
                .is_ok()
        };
        let started = (0..THREADS_MIN).take_while(start).count();
        drop(shut);
        started
    });
    (started < THREADS_MIN).then_some(started)
}

/// Number of files that this process may have open at once, where that is too few to measure with.
pub fn too_few_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile).current;
    limit.filter(|&files| files < OPEN_FILES_MIN)
}
