//! Why a phase could not begin, and what to do about it.

use std::path::PathBuf;

use rustix::io::Errno;

use crate::outcome::OpError;
use stackrace_system::limit::{words, words_at};
use stackrace_system::memory::NoMemory;
use stackrace_system::shown::ShownPath;

/// The phase could not begin. Nothing was measured.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// The description contradicts itself or cannot be carried out.
    #[error("{what}")]
    Spec {
        /// The fault, with the numbers that clash.
        what: String,
        /// The change that helps, beginning with a verb.
        next: &'static str,
    },
    /// A file or device could not be opened.
    #[error("cannot open {}: {}", path.shown(), words_at(*errno, path))]
    Open {
        /// The file or device.
        path: PathBuf,
        /// Error of the system (raw errno).
        errno: i32,
    },
    /// The file system refuses `O_DIRECT`.
    #[error("{} cannot be opened for direct I/O", path.shown())]
    DirectRefused {
        /// The file.
        path: PathBuf,
    },
    /// The blocks of a file could not be reserved.
    #[error("cannot reserve {bytes} bytes for {}: {}", path.shown(), words(*errno))]
    Preallocate {
        /// The file.
        path: PathBuf,
        /// Number of bytes, from its beginning.
        bytes: u64,
        /// Error of the system (raw errno).
        errno: i32,
    },
    /// The kernel refuses io_uring.
    #[error("the kernel refuses io_uring: {}{}", words(*errno), switch(*disabled))]
    Ring {
        /// Error of the kernel (raw errno).
        errno: i32,
        /// `kernel.io_uring_disabled`, where it could be read.
        disabled: Option<u8>,
    },
    /// The system has no io_uring.
    #[error("{}", stackrace_system::lacking("io_uring"))]
    NoRing,
    /// Buffers could not be had.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// A thread could not be started.
    #[error("cannot start a thread: {}", words(*errno))]
    Thread {
        /// Error of the system (raw errno; 0 where it gave none).
        errno: i32,
    },
    /// Laying out files failed on the way.
    #[error("laying out files: {0}")]
    LayOut(OpError),
}

/// ` (kernel.io_uring_disabled is 2)`, where that could be read.
fn switch(disabled: Option<u8>) -> String {
    disabled.map_or(String::new(), |value| {
        format!(" (kernel.io_uring_disabled is {value})")
    })
}

impl StartError {
    /// The number that the system gave (raw errno); `None` if it is not the system that refuses.
    pub fn errno(&self) -> Option<i32> {
        let errno = match self {
            Self::Open { errno, .. }
            | Self::Preallocate { errno, .. }
            | Self::Memory(NoMemory { errno, .. })
            | Self::Thread { errno } => *errno,
            Self::LayOut(error) => error.errno,
            Self::Spec { .. } | Self::DirectRefused { .. } | Self::Ring { .. } | Self::NoRing => 0,
        };
        (errno != 0).then_some(errno)
    }

    /// Advice to the user: one sentence that begins with a verb.
    pub fn next(&self) -> String {
        match self {
            Self::Spec { next, .. } => (*next).to_owned(),
            Self::Open { path, .. } => {
                format!("check that {} exists and may be accessed", path.shown())
            }
            Self::DirectRefused { .. } => {
                "use direct = false, or a file system that supports direct I/O".to_owned()
            }
            Self::Preallocate { errno, .. } => match Errno::from_raw_os_error(*errno) {
                // fallocate(2): the file system cannot, or this is no regular file.
                Errno::OPNOTSUPP | Errno::NODEV => {
                    "leave preallocation out: only some file systems can reserve blocks, and a \
                     device has all of its own"
                }
                errno => room_or_device(errno),
            }
            .to_owned(),
            Self::Ring {
                // 1: only members of `kernel.io_uring_group` may; 2: no process may.
                disabled: Some(1 | 2),
                ..
            } => "allow it with: sysctl kernel.io_uring_disabled=0, or use the sync engine"
                .to_owned(),
            Self::Ring { .. } => {
                "use the sync engine, or allow io_uring in the container's seccomp profile"
                    .to_owned()
            }
            Self::NoRing => "use the sync engine".to_owned(),
            Self::Memory(_) => {
                "lower the queue depth, the number of threads or the block size".to_owned()
            }
            Self::Thread { .. } => {
                "lower the number of threads, or raise the limit on processes (ulimit -u)"
                    .to_owned()
            }
            Self::LayOut(error) => room_or_device(Errno::from_raw_os_error(error.errno)).to_owned(),
        }
    }
}

/// The advice when a file cannot have its bytes.
fn room_or_device(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => "free some space, or lower the size of the working set",
        Errno::DQUOT => {
            "raise the quota (`quota` or `btrfs qgroup show` tells it), or lower the size of the working set"
        }
        Errno::FBIG => {
            "lower the size of the working set, spread it over more files, or raise the limit on \
             the size of a file (ulimit -f)"
        }
        _ => "look at the device's state and the kernel's messages (dmesg)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Op;

    #[test]
    fn an_error_stays_on_its_line_whatever_the_file_is_called() {
        let path = PathBuf::from("/srv/a\nVERDICT  b is 2 x as fast\u{202e}");
        let errno = Errno::ACCESS.raw_os_error();
        let open = StartError::Open {
            path: path.clone(),
            errno,
        };
        let reserve = StartError::Preallocate {
            path: path.clone(),
            bytes: 1,
            errno,
        };
        let failed = OpError {
            op: Op::Write,
            path: path.clone(),
            offset: Some(0),
            errno,
            detail: String::new(),
        };
        let said = [
            open.to_string(),
            open.next(),
            reserve.to_string(),
            StartError::DirectRefused { path }.to_string(),
            failed.to_string(),
        ];
        for text in said {
            assert!(!text.contains(['\n', '\u{202e}']), "{text}");
        }
    }
}
