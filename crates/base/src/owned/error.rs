//! Why a file or directory is not used.

use crate::event::shell;
use crate::unit::{InWords, ShownPath};
use std::io;
use std::path::{Path, PathBuf};

/// Reasons a file or directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The system refused something.
    #[error("cannot {tried} {}: {}", path.shown(), source.in_words())]
    System {
        /// Operation that was tried, as a verb: `open`.
        tried: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The path is a link, or reached through one of another user's.
    #[error("{} is a link, which is not followed here", path.shown())]
    Link {
        /// The file or directory that is refused.
        path: PathBuf,
    },
    /// The path is a FIFO, a device or the like.
    #[error("{} is no regular file", path.shown())]
    NoFile {
        /// The file or directory that is refused.
        path: PathBuf,
    },
    /// The path belongs to another user.
    #[error("{} belongs to another user (uid {owner})", path.shown())]
    Foreign {
        /// The file or directory that is refused.
        path: PathBuf,
        /// Number of that user.
        owner: u32,
    },
    /// Others may write it.
    #[error("{} can be written by other users (mode {mode:04o})", path.shown())]
    Writable {
        /// The file or directory that is refused.
        path: PathBuf,
        /// Its mode, as chmod(1) writes it.
        mode: u32,
    },
}

impl OwnError {
    pub(super) fn system(tried: &'static str, path: &Path, errno: impl Into<io::Error>) -> Self {
        Self::System {
            tried,
            path: path.to_path_buf(),
            source: errno.into(),
        }
    }

    /// Returns true if nothing of that name is there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Advice for the user; empty if there is nothing better than what the system said.
    pub fn next(&self) -> String {
        match self {
            Self::System { source, .. } => match source.kind() {
                io::ErrorKind::NotADirectory => "name a directory: --store DIR".to_owned(),
                _ => String::new(),
            },
            Self::Link { path } => {
                format!(
                    "look where it leads ({}), and remove it",
                    shell(&["ls".as_ref(), "-l".as_ref(), path.as_os_str()])
                )
            }
            Self::NoFile { path } => {
                // It may be a directory, of which something is wanted.
                let mut aside = path.as_os_str().to_owned();
                aside.push(".aside");
                let words = ["mv".as_ref(), path.as_os_str(), &aside];
                format!("put it aside: {}", shell(&words))
            }
            Self::Foreign { .. } => {
                "run stackrace as that user, or name a store of your own: --store DIR".to_owned()
            }
            Self::Writable { path, .. } => format!(
                "see that all in it is yours, then: {}; or name another store: --store DIR",
                shell(&["chmod".as_ref(), "go-w".as_ref(), path.as_os_str()])
            ),
        }
    }
}
