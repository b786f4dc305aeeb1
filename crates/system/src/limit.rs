//! Limits on the size of the files this process may write (`RLIMIT_FSIZE`, `ulimit -f`), on how many it may have
//! open (`RLIMIT_NOFILE`, `ulimit -n`), and on processes and threads (`RLIMIT_NPROC`, `ulimit -u`).
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
pub fn words_at(errno: i32, path: &Path) -> String {
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

/// Number by which the kernel ends a call to a server of NFS that it has given up; the C library has no words for it.
const GIVEN_UP: i32 = 512;

/// The message of an errno; EFBIG also names the limit, if there is one.
pub fn words(errno: i32) -> String {
    if errno == GIVEN_UP {
        return "the wait for the server was ended (ERESTARTSYS)".to_owned();
    }
    let told = std::io::Error::from_raw_os_error(errno).to_string();
    // The number is for programs, which have it as a value.
    let number = format!(" (os error {errno})");
    let words = told.strip_suffix(&number).unwrap_or(&told);
    let limit = getrlimit(Resource::Fsize).current;
    match limit.filter(|_| errno == Errno::FBIG.raw_os_error()) {
        Some(bytes) => {
            format!("{words}; this process may write files of {bytes} bytes (ulimit -f)")
        }
        None => words.to_owned(),
    }
}

/// What the system said against a call, in words. [`std::fmt::Display`] of the library adds a number, which is for programs.
pub trait InWords {
    /// The words, as they stand in a message: `No space left on device`.
    fn in_words(&self) -> String;
}

impl InWords for std::io::Error {
    fn in_words(&self) -> String {
        self.raw_os_error().map_or_else(|| self.to_string(), words)
    }
}

impl InWords for Errno {
    fn in_words(&self) -> String {
        words(self.raw_os_error())
    }
}

/// Files that a process must be able to have open at once to measure anything.
const OPEN_FILES_MIN: u64 = 64;
/// Size that the log of a small run takes, bytes.
const FILE_BYTES_MIN: u64 = 1 << 20;
/// Threads and processes that a run needs beside its first: signals, progress, the commands of a layer, the load.
const THREADS_MIN: usize = 8;
/// Limit on the processes of a user under which a load may miss threads, too.
#[cfg(not(target_os = "illumos"))]
const FEW_PROCESSES: u64 = 10_000;
/// Stack of a thread that only waits, bytes.
const SMALL_STACK: usize = 64 << 10;

/// A limit of this process with which nothing can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowLimit {
    /// The limit and what it takes, as a clause.
    pub said: String,
    /// Advice: how it is raised.
    pub next: &'static str,
}

/// The first limit with which each step would fail in another place.
///
/// Threads are tried, which takes a while, only where it will take `many`, or the limit on them is low.
pub fn too_low(many: bool) -> Option<LowLimit> {
    let below = |resource, least| {
        let limit = getrlimit(resource).current;
        limit.filter(|&limit| limit < least)
    };
    if let Some(files) = below(Resource::Nofile, OPEN_FILES_MIN) {
        return Some(LowLimit {
            said: format!(
                "this process may have {files} files open at once; to measure takes {OPEN_FILES_MIN}"
            ),
            next: "raise the limit (ulimit -n 1024) and start again",
        });
    }
    if let Some(bytes) = below(Resource::Fsize, FILE_BYTES_MIN) {
        return Some(LowLimit {
            said: format!(
                "this process may write files of {bytes} bytes; the log of a run takes {FILE_BYTES_MIN} and more"
            ),
            next: "raise the limit (ulimit -f unlimited) and start again",
        });
    }
    #[cfg(not(target_os = "illumos"))]
    let tried = many || below(Resource::Nproc, FEW_PROCESSES).is_some();
    // It limits the processes of projects and zones, not of users.
    #[cfg(target_os = "illumos")]
    let tried = many;
    let missing = tried.then(threads_missing).flatten();
    missing.map(|error| LowLimit {
        said: format!("{THREADS_MIN} more threads cannot be started: {}", error.in_words()),
        next: "raise the limit on processes (ulimit -u) or on the control group (pids.max) and start again",
    })
}

/// Reason why as many threads as a run needs cannot be had. The limits cannot be read off: they count all processes of a
/// user, or of a control group.
fn threads_missing() -> Option<std::io::Error> {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let start = |_| {
        let held = std::sync::Arc::clone(&held);
        let thread = std::thread::Builder::new().stack_size(SMALL_STACK);
        // Ends as soon as the other end is gone.
        thread.spawn(move || drop(held.lock().map(|held| held.recv())))
    };
    let threads: Vec<_> = (0..THREADS_MIN).map(start).collect();
    drop(hold);
    let mut missing = None;
    for thread in threads {
        match thread {
            Ok(thread) => drop(thread.join()),
            Err(error) => missing = Some(error),
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_has_no_number() {
        for errno in (1..134).chain([512, 9999]) {
            let error = std::io::Error::from_raw_os_error(errno);
            let said = error.in_words();
            assert!(
                !said.is_empty() && !said.contains("os error"),
                "{errno}: {said}"
            );
        }
        assert_eq!(Errno::NOSPC.in_words(), "No space left on device");
        assert_eq!(std::io::Error::other("no tar").in_words(), "no tar");
    }
}
