//! Calls of this process, or of one that it started, that wait for storage at the moment, as the kernel tells (`/proc/self/task/*/syscall`,
//! proc_pid_syscall(5)): what is waited for is named, where a program only sees that nothing comes back.

use std::path::{Path, PathBuf};

use stackrace_system::shown::ShownPath;

/// A thread of this process that is in a call to storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageWait {
    /// Thread by the kernel's number, with the call and its arguments: two looks that find the same found one call.
    pub same: (u32, String),
    /// Name of the call: `fsync`.
    pub call: &'static str,
    /// File or directory that it is about; `None` if the kernel does not tell.
    pub path: Option<PathBuf>,
}

impl std::fmt::Display for StorageWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{} of {}", self.call, path.shown()),
            None => write!(f, "{}", self.call),
        }
    }
}

/// Position of the argument that says which file a call is about.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
enum Names {
    /// A descriptor.
    Open(usize),
    /// A path, below the directory that the argument before it is.
    PathAt(usize),
    /// A path that is looked up from the working directory.
    Path(usize),
}

/// Calls that wait for storage, by number.
#[cfg(target_os = "linux")]
const CALLS: &[(libc::c_long, &str, Names)] = &[
    (libc::SYS_read, "read", Names::Open(0)),
    (libc::SYS_write, "write", Names::Open(0)),
    (libc::SYS_pread64, "read", Names::Open(0)),
    (libc::SYS_pwrite64, "write", Names::Open(0)),
    (libc::SYS_preadv, "read", Names::Open(0)),
    (libc::SYS_pwritev, "write", Names::Open(0)),
    (libc::SYS_fsync, "fsync", Names::Open(0)),
    (libc::SYS_fdatasync, "fdatasync", Names::Open(0)),
    (libc::SYS_syncfs, "syncfs", Names::Open(0)),
    (libc::SYS_close, "close", Names::Open(0)),
    (libc::SYS_ftruncate, "ftruncate", Names::Open(0)),
    (libc::SYS_fallocate, "fallocate", Names::Open(0)),
    (libc::SYS_fstatfs, "statfs", Names::Open(0)),
    (libc::SYS_fchmod, "chmod", Names::Open(0)),
    (libc::SYS_fstat, "stat", Names::Open(0)),
    (libc::SYS_ioctl, "ioctl", Names::Open(0)),
    (libc::SYS_getdents64, "listing", Names::Open(0)),
    (libc::SYS_copy_file_range, "copy", Names::Open(0)),
    (libc::SYS_openat, "open", Names::PathAt(1)),
    (libc::SYS_openat2, "open", Names::PathAt(1)),
    (libc::SYS_unlinkat, "removal", Names::PathAt(1)),
    (libc::SYS_mkdirat, "mkdir", Names::PathAt(1)),
    (libc::SYS_statx, "stat", Names::PathAt(1)),
    (libc::SYS_newfstatat, "stat", Names::PathAt(1)),
    (libc::SYS_fchmodat, "chmod", Names::PathAt(1)),
    (libc::SYS_renameat, "rename", Names::PathAt(1)),
    (libc::SYS_renameat2, "rename", Names::PathAt(1)),
    (libc::SYS_readlinkat, "readlink", Names::PathAt(1)),
    (libc::SYS_statfs, "statfs", Names::Path(0)),
    (libc::SYS_umount2, "unmounting", Names::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open", Names::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "removal", Names::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "removal", Names::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir", Names::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename", Names::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, "chmod", Names::Path(0)),
];

/// Longest path that is read out of a call, bytes.
#[cfg(target_os = "linux")]
const PATH_BYTES: usize = 4096;

/// Calls to storage that threads of this process are in now, most of them for an instant only; none where the
/// system does not tell.
pub fn storage_waits() -> Vec<StorageWait> {
    waits_in(Path::new("/proc/self"))
}

/// The same of another process that this one may look into, by its number.
pub fn storage_waits_of(process: u32) -> Vec<StorageWait> {
    waits_in(&Path::new("/proc").join(process.to_string()))
}

fn waits_in(process: &Path) -> Vec<StorageWait> {
    let Ok(threads) = std::fs::read_dir(process.join("task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| wait_of(&thread.path()))
        .collect()
}

/// The kernel's number of the thread that asks; 0 where [`storage_waits`] finds none.
pub fn this_thread() -> u32 {
    #[cfg(target_os = "linux")]
    return rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .cast_unsigned();
    #[cfg(not(target_os = "linux"))]
    return 0;
}

#[cfg(not(target_os = "linux"))]
fn wait_of(_thread: &Path) -> Option<StorageWait> {
    None
}

/// The call that a thread is in, if it is one to storage.
#[cfg(target_os = "linux")]
fn wait_of(thread: &Path) -> Option<StorageWait> {
    let number = thread.file_name()?.to_str()?.parse().ok()?;
    let text = std::fs::read_to_string(thread.join("syscall")).ok()?;
    let mut words = text.split_whitespace();
    let call: libc::c_long = words.next()?.parse().ok()?;
    let (_, name, names) = CALLS.iter().find(|(known, ..)| *known == call)?;
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let arguments: Vec<u64> = words.filter_map(hex).collect();
    let path = match *names {
        Names::Open(at) => {
            let path = opened(thread, *arguments.get(at)?)?;
            // Pipes, sockets and terminals are waited for as a matter of course.
            let is_storage = path.is_absolute() && !path.starts_with("/dev/pts");
            is_storage.then_some(())?;
            Some(path)
        }
        Names::Path(at) => path_at(thread, *arguments.get(at)?),
        Names::PathAt(at) => {
            let path = path_at(thread, *arguments.get(at)?);
            let below = at
                .checked_sub(1)
                .and_then(|at| opened(thread, *arguments.get(at)?));
            match (below, path) {
                // An absolute path takes the place of the directory.
                (Some(below), Some(path)) => Some(below.join(path)),
                (below, path) => path.or(below),
            }
        }
    };
    Some(StorageWait {
        same: (number, text.clone()),
        call: name,
        path,
    })
}

/// Path of what is open under a number in a thread, which may have a table of its own. The arguments of a call
/// are whole registers.
#[cfg(target_os = "linux")]
fn opened(thread: &Path, descriptor: u64) -> Option<PathBuf> {
    let number = (descriptor as u32).to_string();
    std::fs::read_link(thread.join("fd").join(number)).ok()
}

/// The path at an address of a thread, read as a file: the thread that gave it may go on meanwhile.
#[cfg(target_os = "linux")]
fn path_at(thread: &Path, address: u64) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::FileExt;
    let memory = std::fs::File::open(thread.join("mem")).ok()?;
    let mut bytes = vec![0; PATH_BYTES];
    // It may end at the end of what is mapped.
    let read = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..read].iter().position(|&byte| byte == 0)?;
    bytes.truncate(end);
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    // A path of ours through a directory that is held says nothing to a person.
    let Ok(held) = path.strip_prefix("/proc/self/fd") else {
        return Some(path);
    };
    let mut rest = held.components();
    let number = rest.next()?.as_os_str().to_str()?.parse().ok()?;
    Some(opened(thread, number)?.join(rest.as_path()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};

    #[test]
    fn a_call_that_does_not_return_is_named_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        // To open a pipe for reading waits for one who writes.
        let (to_open, opener) = (pipe.clone(), pipe.clone());
        let waiting = std::thread::spawn(move || std::fs::read(to_open));
        let named = loop {
            let waits = storage_waits();
            if let Some(wait) = waits
                .into_iter()
                .find(|wait| wait.path.as_ref() == Some(&pipe))
            {
                break wait;
            }
            std::thread::yield_now();
        };
        assert_eq!(named.to_string(), format!("open of {}", pipe.display()));
        assert!(storage_waits().iter().any(|wait| wait.same == named.same));
        rustix::fs::open(opener, OFlags::WRONLY, Mode::empty()).unwrap();
        assert_eq!(waiting.join().unwrap().unwrap(), b"");
        assert!(storage_waits().iter().all(|wait| wait.same != named.same));
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "what is looked at is another process"
    )]
    fn a_call_of_a_command_that_does_not_return_is_named_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let mut cat = std::process::Command::new("cat")
            .arg(&pipe)
            .spawn()
            .unwrap();
        let named = loop {
            let mut waits = storage_waits_of(cat.id()).into_iter();
            if let Some(wait) = waits.find(|wait| wait.path.as_ref() == Some(&pipe)) {
                break wait;
            }
            std::thread::yield_now();
        };
        assert_eq!(named.to_string(), format!("open of {}", pipe.display()));
        rustix::fs::open(&pipe, OFlags::WRONLY, Mode::empty()).unwrap();
        cat.wait().unwrap();
        assert_eq!(storage_waits_of(cat.id()), []);
    }
}
